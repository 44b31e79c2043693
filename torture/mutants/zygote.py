"""A process that has imported everything but takifugu, and forks a child for every mutant.

The child serves the mutated text of one module from memory: no file is ever changed. What it runs
writes to folders of its own. It is ended, with whatever it started, when it takes too long.
"""

import contextlib
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from torture.mutants.line_map import PACKAGES

HEAVY = (
    *("numpy", "scipy.optimize", "scipy.stats", "scipy.sparse", "scipy.linalg", "scipy.special"),
    *("duckdb", "opendp.prelude", "pytest", "hypothesis", "hypothesis.stateful"),
    *("hypothesis.extra.numpy", "sqlite3", "mpmath", "numba"),
    *("cryptography.hazmat.primitives.asymmetric.ed25519", "pyarrow", "pandas", "psycopg"),
    *("rich.console", "asyncio", "http.server", "multiprocessing.pool"),
)


WAITED = 10.0  # seconds for each second of work: the machine may have other work


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.

    Attributes:
        kind: "passed", "failed", "import", "crash", "timeout" or "no tests".
        by: The test that failed.
        tried: How many tests were run.
        failed: All that failed.
        seconds: Of work, for each test that was run.
    """

    kind: str
    by: str = ""
    tried: int = 0
    failed: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)


class MutatedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from a text, under the name and path of its file."""

    def __init__(self, name: str, path: str, text: bytes) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        """The code of the text; nothing is kept on disk."""
        del fullname
        return compile(self._text, self.path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        """The text."""
        del fullname
        return self._text.decode()


class MutatedFinder(importlib.abc.MetaPathFinder):
    """Finds one module, and leaves all others to the rest."""

    def __init__(self, name: str, path: Path, text: bytes) -> None:
        self._name, self._path, self._text = name, path, text

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of the module if that is asked for."""
        del path, target
        if fullname != self._name:
            return None
        loader = MutatedLoader(fullname, str(self._path), self._text)
        inside = [str(self._path.parent)] if self._path.name == "__init__.py" else None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=loader, submodule_search_locations=inside
        )


class _Watcher:
    """A plugin of pytest: only the tests asked for, in that order, and the first that fails."""

    def __init__(
        self, tests: Sequence[str], each: float, finder: MutatedFinder | None = None
    ) -> None:
        self._finder = finder
        self._place = {name: index for index, name in enumerate(tests)}
        self._each = each
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.broken = ""
        self.tried = 0

    def pytest_configure(self, config: Any) -> None:
        del config
        from hypothesis import Phase, settings

        without = Phase.explicit, Phase.generate  # a smaller example is of no use here
        quick = settings(settings.default, phases=without, database=None)
        settings.register_profile("mutants", quick)
        settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        """Before pytest itself, which takes files that it is given, examples too, from the disk."""
        if self._finder is not None:
            sys.meta_path.remove(self._finder)
            sys.meta_path.insert(0, self._finder)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = sorted(
            (one for one in items if one.nodeid in self._place),
            key=lambda one: self._place[one.nodeid],
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        signal.signal(signal.SIGPROF, self._too_slow)
        signal.setitimer(signal.ITIMER_PROF, self._each)
        began = time.process_time()
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self.seconds[item.nodeid] = round(time.process_time() - began, 3)

    @staticmethod
    def _too_slow(*_: object) -> None:
        pytest.fail("too slow", pytrace=False)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.broken = report.nodeid or "collection"

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.tried += report.when == "call"
        if report.failed:
            self.failed.append(report.nodeid)


def prepared(root: Path, top: str = "takifugu") -> None:
    """Import what is heavy and never mutated, so that a child need not."""
    early = {name.split(".")[1] for name in sys.modules if name.startswith(f"{top}.")}
    if early & {name.partition("/")[0] for name in PACKAGES}:
        raise RuntimeError(f"{top} is imported already: its mutants would not be")
    sys.dont_write_bytecode = False
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    os.chdir(root)
    for place in (str(root), str(root / "src")):
        if place not in sys.path:
            sys.path.insert(0, place)
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()  # so that children share what is there


def tried(
    tests: Sequence[str],
    seconds: float,
    *,
    root: Path,
    name: str = "",
    path: Path | None = None,
    text: bytes = b"",
    interpreted: bool = False,
    first: bool = True,
    each: float = 1e6,
) -> Outcome:
    """Run tests in a child in which one module has another text.

    Args:
        tests: Their ids.
        seconds: Of work, after which the child is ended; of time, many times that.
        root: Of the project.
        name: The module; "" for the code as it is.
        path: Its file.
        text: Its text.
        interpreted: Whether compiled loops run as plain Python.
        first: Whether to stop at the first that fails.
        each: Seconds of work after which a test fails.
    """
    if not tests:
        return Outcome("no tests")
    folder = tempfile.mkdtemp(prefix="mutant")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        work = int(seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (work, work + 5))
        more = ["-x"] if first else []
        _child(writing, folder, tests, root, name, path, text, interpreted, more, each)
    os.close(writing)
    try:
        found = _awaited(child, reading, WAITED * seconds)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(child, 0)
        shutil.rmtree(folder, ignore_errors=True)
    if found is None:
        return Outcome("timeout")
    if not found:
        return Outcome("crash")
    kind = "failed" if found["failed"] else "import" if found["broken"] else "passed"
    if kind == "passed" and not found["tried"]:
        kind = "no tests"
    by = found["failed"][0] if found["failed"] else found["broken"]
    return Outcome(kind, by, found["tried"], tuple(found["failed"]), found["seconds"])


def _awaited(child: int, reading: int, seconds: float) -> dict[str, Any] | None:
    """What the child wrote; nothing if it died; none if it took too long."""
    until = time.monotonic() + seconds
    written = b""
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([reading], [], [], min(left, 0.5))
        if ready:
            more = os.read(reading, 1 << 16)
            if not more:
                break
            written += more
            if written.endswith(b"\n"):
                break  # something it started may keep the pipe open
    else:
        return None
    if os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGXCPU:
        return None
    if not written.endswith(b"\n"):
        return {}
    found: dict[str, Any] = json.loads(written)
    return found


def _child(
    writing: int,
    folder: str,
    tests: Sequence[str],
    root: Path,
    name: str,
    path: Path | None,
    text: bytes,
    interpreted: bool,
    more: list[str],
    each: float,
) -> None:
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2) if not os.environ.get("MUTANTS_SHOWN") else ():
            os.dup2(nothing, stream)
        os.environ |= {"TMPDIR": folder, "XDG_STATE_HOME": folder}
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # none that the tests need
        tempfile.tempdir = None
        if interpreted:
            import numba

            os.environ["NUMBA_DISABLE_JIT"] = "1"
            setattr(numba.config, "DISABLE_JIT", 1)  # noqa: B010 - not in its stubs
        finder = None if path is None else MutatedFinder(name, path, text)
        if finder is not None:
            sys.meta_path.insert(0, finder)
        watcher = _Watcher(tests, each, finder)
        files = list(dict.fromkeys(one.partition("::")[0] for one in tests))
        options = ["-q", "-p", "no:cacheprovider", "--tb=no", "--no-header"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        options += [f"--rootdir={root}", f"--basetemp={folder}/pytest", *more]
        status = pytest.main([*options, *files], plugins=[watcher])
        if status == pytest.ExitCode.USAGE_ERROR and not watcher.broken:
            watcher.broken = "conftest"  # it cannot be imported
        found = {"failed": watcher.failed, "broken": watcher.broken, "tried": watcher.tried}
        found["seconds"] = watcher.seconds
        os.write(writing, json.dumps(found).encode() + b"\n")
    except BaseException:  # noqa: BLE001 - the parent is told nothing, which it counts as a crash
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def module_name(module: str, top: str = "takifugu") -> str:
    """The dotted name of a file relative to the package of all."""
    name = module.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return f"{top}.{name}"
