"""Environments with the oldest, the pinned or the newest versions of what the project needs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from torture.dependencies.oldest import OLDEST
from torture.dependencies.requirements import CONSTRAINTS
from torture.part_report import ROOT

LEVELS = {"oldest": OLDEST, "pinned": CONSTRAINTS, "newest": None}
MINUTES_TO_INSTALL = 20.0
NOT_COPIED = (
    *(".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "*.egg-info"),
    *("build", "dist", "out"),
)
_LIST = (
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
        level: A key of `LEVELS`.
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
        known: dict[str, str] = json.loads(self.run("-c", _LIST, timeout=120).stdout)
        return known


def surroundings(folder: Path) -> dict[str, str]:
    """Variables for what runs in an environment: none of this one's Python."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    path = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "VIRTUAL_ENV": str(folder)}


def extras() -> str:
    """The extras that are installed: Spark too where there is Java."""
    return "dev,tables,spark" if shutil.which("java") else "dev,tables"


def lines(python: Path, folder: Path, level: str, *, uv: bool) -> list[list[str]]:
    """The commands that make an environment, to be run in the sources."""
    constraints = LEVELS[level]
    pins = [] if constraints is None else ["-c", str(constraints.relative_to(ROOT))]
    ours = f".[{extras()}]"
    if uv:
        install = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
        install += ["--python", str(folder / "bin" / "python"), *pins]
        make = [sys.executable, "-m", "uv", "venv", "--quiet", "--python", str(python), str(folder)]
    else:
        make = [str(python), "-m", "venv", str(folder)]
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        install += ["--disable-pip-version-check", *pins]
    # Only the files of pgmpy are read: without what it needs to be imported, as `make test` has it.
    return [make, [*install, "-e", ours], [*install, "--no-deps", "pgmpy"]]


def has_uv() -> bool:
    """Whether uv is there, which makes environments in seconds."""
    return find_spec("uv") is not None


def cache(within: Path) -> Path:
    """Where uv keeps what it has unpacked, for the environments of one run: many gigabytes."""
    return within / "cache"


@contextmanager
def environment(
    version: str, python: Path, level: str, *, within: Path, tree: Path
) -> Iterator[Environment]:
    """An environment that is removed at the end.

    Raises:
        NotInstalled: The installer failed, or took too long.
    """
    folder = within / f"{version}-{level}"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        for line in lines(python, folder, level, uv=has_uv()):
            try:
                done = subprocess.run(  # noqa: S603 - an installer
                    line,
                    cwd=tree,
                    env={**os.environ, "UV_CACHE_DIR": str(cache(within))},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=60 * MINUTES_TO_INSTALL,
                )
            except subprocess.TimeoutExpired as late:
                raise NotInstalled(f"no end after {MINUTES_TO_INSTALL:g} minutes") from late
            if done.returncode:
                raise NotInstalled(done.stdout.strip()[-1500:])
        yield Environment(version, level, folder, tree)
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
