"""What a run was made with: enough to say why another one differs."""

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from takifugu.papers.composition.data.simulated import SEED as WORLD_SEED
from takifugu.papers.composition.results import Results

PACKAGES = (
    "takifugu", "numpy", "scipy", "numba", "opendp", "duckdb", "matplotlib", "typer", "rich",
    "pgmpy",
)  # fmt: skip


def manifest(
    results: Results,
    *,
    command: str,
    seed: int,
    seconds: float,
    folder: Path,
    files: Iterable[Path],
    notices: Iterable[str] = (),
) -> dict[str, Any]:
    """Versions, data, seeds, time and every file with its hash; paths are those within ``folder``.

    Args:
        results: What was measured.
        command: The command as typed.
        seed: The seed of the simulations; nothing that protects data has one.
        seconds: The wall time of this run; parts found from an earlier one took none.
        folder: Where everything was written.
        files: What was written.
        notices: What was not there.
    """
    return {
        "command": command,
        "seconds": round(seconds, 1),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "commit": commit(),
        "seeds": {"mechanisms": seed, "simulated worlds": WORLD_SEED},
        "datasets": [
            {
                "key": one.key,
                "title": one.title,
                "origin": one.origin,
                "fingerprint": one.fingerprint,
                "repetitions": one.repetitions,
                "facts": dict(one.facts),
            }
            for one in results.about
        ],
        "notices": list(notices),
        "files": {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(files)
        },
    }


def commit() -> str | None:
    """The commit of the working copy that this file belongs to; None if it belongs to none."""
    git = shutil.which("git")
    here = Path(__file__).parent
    if git is None:
        return None

    def git_output(*words: str) -> str | None:
        done = subprocess.run(  # noqa: S603
            [git, "-C", str(here), *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else None

    if git_output("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None  # another repository around an installed copy
    found = git_output("rev-parse", "HEAD")
    changed = git_output("status", "--porcelain", "--untracked-files=no", "--", "..")
    return f"{found} and changes" if found and changed else found


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
