"""Environments, which nox makes, with the oldest, pinned or newest versions that we require."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from python_discovery import get_interpreter

from torture.part_report import ROOT

VERSIONS = ("3.11", "3.12", "3.13")  # of Python, and
LEVELS = ("oldest", "pinned", "newest")  # of packages, as in noxfile.py
MINUTES_TO_INSTALL = 20.0
NOT_COPIED = (
    *(".git", ".venv", ".nox", ".hypothesis", ".*_cache", "__pycache__", "*.egg-info"),
    *("build", "dist", "out"),
)
_VERSIONS_OF_PACKAGES = (
    "import json; from importlib.metadata import distributions as d;"
    "print(json.dumps({one.name.lower().replace('_', '-'): one.version for one in d()}))"
)


class NotInstalled(Exception):
    """An environment cannot be made: what the installer said last."""


@dataclass(frozen=True)
class Environment:
    """A Python with packages of one level.

    Attributes:
        version: Of Python: "3.12".
        level: One of `LEVELS`.
        folder: Of the environment.
        tree: The sources that it runs.
    """

    version: str
    level: str
    folder: Path
    tree: Path

    @property
    def name(self) -> str:
        """What people call it."""
        return f"Python {self.version}, {self.level} versions"

    @property
    def session(self) -> str:
        """What nox calls it."""
        return f"tests-{self.version}({self.level})"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def run(self, *line: str, timeout: float) -> subprocess.CompletedProcess[str]:
        """Run its Python in the tree, with its commands on the path; told to end after a time."""
        return subprocess.run(  # noqa: S603 - an environment of ours
            [self.python, *line],
            cwd=self.tree,
            env=surroundings(self.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
            timeout=timeout,
        )

    def packages(self) -> dict[str, str]:
        """The versions of what is installed in it."""
        versions: dict[str, str] = json.loads(
            self.run("-c", _VERSIONS_OF_PACKAGES, timeout=120).stdout
        )
        return versions


def surroundings(folder: Path) -> dict[str, str]:
    """Variables for what runs in an environment: none of this one's Python."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)])
    return {**inherited, "PATH": path, "VIRTUAL_ENV": str(folder)}


def _with_pyenv() -> dict[str, str]:
    """The variables of this process, with which all Pythons that pyenv keeps are found as well."""
    folder = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    versions = sorted((path.name for path in (folder / "versions").glob("3.*")), reverse=True)
    return {**os.environ, "PYENV_ROOT": str(folder), "PYENV_VERSION": ":".join(versions)}


def interpreters() -> list[str]:
    """Those of `VERSIONS` that are on this machine."""
    return [version for version in VERSIONS if get_interpreter(version, env=_with_pyenv())]


def cache(within: Path) -> Path:
    """Where uv keeps what it has unpacked, for the environments of one run: many gigabytes."""
    return within / "cache"


@contextmanager
def environment(version: str, level: str, *, within: Path, tree: Path) -> Iterator[Environment]:
    """An environment that is removed at the end.

    Raises:
        NotInstalled: The installer failed, or took too long.
    """
    folder = within / f"tests-{version.replace('.', '-')}-{level}"  # as nox names it
    created = Environment(version, level, folder, tree)
    shutil.rmtree(folder, ignore_errors=True)
    line = [sys.executable, "-m", "nox", "--session", created.session, "--install-only"]
    line += ["--noxfile", str(tree / "noxfile.py"), "--envdir", str(within)]
    try:
        with subprocess.Popen(  # noqa: S603 - nox, on our own file
            [*line, "--error-on-missing-interpreters"],
            env={**_with_pyenv(), "UV_CACHE_DIR": str(cache(within))},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as nox:
            try:
                output, _ = nox.communicate(timeout=60 * MINUTES_TO_INSTALL)
            except subprocess.TimeoutExpired as late:
                raise NotInstalled(f"no end after {MINUTES_TO_INSTALL:g} minutes") from late
            finally:
                if nox.poll() is None:
                    os.killpg(nox.pid, signal.SIGKILL)  # what it has started, too
        if nox.returncode:
            raise NotInstalled(output.strip()[-1500:])
        yield created
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def copied_tree(to: Path, root: Path = ROOT) -> Path:
    """A copy of the sources, without environments, caches and what runs write.

    So nothing that is edited or installed meanwhile changes a run, nor a run anything else.
    """
    shutil.rmtree(to, ignore_errors=True)
    itself = to.relative_to(root).parts[:1] if to.is_relative_to(root) else ()
    ignored = shutil.ignore_patterns(*NOT_COPIED, *itself)
    shutil.copytree(root, to, symlinks=True, ignore=ignored)
    return to
