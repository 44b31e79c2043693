"""The Pythons of this machine: on the path, or where pyenv keeps them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")

# What an interpreter has to have been built with; some are without one of these.
_ASKED = "import bz2, ctypes, lzma, sqlite3, ssl, sys, venv; print('%d.%d' % sys.version_info[:2])"


def interpreters(versions: tuple[str, ...] = VERSIONS) -> dict[str, Path]:
    """An interpreter for each of these versions that can be had here."""
    found = ((version, _first(version)) for version in versions)
    return {version: path for version, path in found if path is not None}


def _first(version: str) -> Path | None:
    return next((path for path in candidates(version) if answers(path) == version), None)


def candidates(version: str) -> Iterator[Path]:
    """Where an interpreter of that version may be, the newest of pyenv's first."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        yield Path(sys.base_exec_prefix) / "bin" / f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    kept = [path for path in pyenv.glob(f"{version}.*") if path.name.split(".")[-1].isdigit()]
    for path in sorted(kept, key=lambda path: -int(path.name.split(".")[-1])):
        yield path / "bin" / "python"
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield Path(on_path)


def answers(path: Path) -> str | None:
    """The version that an interpreter says it is; ``None`` if it does not run or lacks a module."""
    try:
        done = subprocess.run(  # noqa: S603 - an interpreter of this machine
            [path, "-I", "-c", _ASKED], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
