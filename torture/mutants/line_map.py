"""Which tests run which lines of the packages, and how long they take.

One file for each file of tests, remade when that file changes. The lines are those of the source as
it was, which is kept beside them: where it has changed since, lines are matched by their text.
"""

import contextlib
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from takifugu._core.atomic import write_whole
from torture.part_report import ROOT

PACKAGES = ("translation/certify", "ledger", "mechanisms")
MAP = ROOT / "out" / "mutants"
SLOWEST = 30  # seconds of work: a test that takes longer is not used
FOLDERS = (
    *("extremes", "finite", "influence", "ledger", "mechanisms", "priors", "project", "reports"),
    *("session", "translation"),
)
ALSO = ("server/test_owner_decisions.py",)
LOOPS = "_loops.py"  # files of tests of compiled loops, on instances small enough for plain Python
INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
Rows = dict[Path, set[int]]  # of source files
NOT_USED = {"test_docs", "test_site", "test_wheel", "test_notebook", "test_peers", "test_imports"}


def digest(path: Path) -> str:
    """Of the content of a file; "" if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:20] if path.is_file() else ""


def files_of_tests(root: Path = ROOT) -> list[str]:
    """The files of tests that are used, relative to the project."""
    tests = root / "tests"
    found = [path for name in FOLDERS for path in (tests / name).rglob("test_*.py")]
    found += [tests / name for name in ALSO if (tests / name).is_file()]
    found += [path for path in tests.glob("test_*.py") if path.stem not in NOT_USED]
    for name in PACKAGES:  # and the examples in the code itself
        sources = (root / "src" / "takifugu" / name).rglob("*.py")
        found += [path for path in sources if ">>> " in path.read_text(encoding="utf-8")]
    return sorted(path.relative_to(root).as_posix() for path in found)


@dataclass(frozen=True)
class Covered:
    """What one file of tests runs.

    Attributes:
        path: The file.
        digest: Of its content.
        seconds: Test to how long it takes by itself, with the fixtures that tests of the file
            share; for those that passed.
        lines: Source file to its digest and, for each line, the tests that ran it. What the file
            runs when it is imported, and in fixtures that its tests share, is run by all of them.
    """

    path: str
    digest: str
    seconds: dict[str, float]
    lines: dict[str, tuple[str, dict[int, list[str]]]]


class LineMap:
    """The map as it is kept in a folder."""

    def __init__(self, folder: Path, root: Path = ROOT, top: str = "takifugu") -> None:
        self.folder, self.root, self.top = folder, root, top

    def _home(self, path: str) -> Path:
        return self.folder / "lines" / (path.replace("/", "+") + ".json")

    def stale(self, files: Iterable[str]) -> list[str]:
        """The files of tests which are new or have changed since they were run for the map."""
        return [name for name in files if self._digest(name) != digest(self.root / name)]

    def _digest(self, name: str) -> str | None:
        home = self._home(name)
        if not home.is_file():
            return None
        with home.open(encoding="utf-8") as file:
            return str(json.loads(file.readline()))

    def known(self, name: str) -> bool:
        """Whether a file of tests was ever run for the map."""
        return self._home(name).is_file()

    def write(self, covered: Covered) -> None:
        """Keep what a file of tests runs, and the source as it is now."""
        home = self._home(covered.path)
        home.parent.mkdir(parents=True, exist_ok=True)
        sources = self.folder / "sources"
        sources.mkdir(exist_ok=True)
        for name, (sha, _) in covered.lines.items():
            kept = sources / f"{sha}.py"
            if not kept.exists():
                write_whole(kept, (self.root / name).read_text(encoding="utf-8"))
        tests = list(covered.seconds)
        place = {name: index for index, name in enumerate(tests)}
        lines = {
            name: [
                sha,
                {line: [place[one] for one in ran if one in place] for line, ran in known.items()},
            ]
            for name, (sha, known) in covered.lines.items()
        }
        body = json.dumps({"seconds": covered.seconds, "tests": tests, "lines": lines})
        write_whole(home, json.dumps(covered.digest) + "\n" + body + "\n")

    def read(self, name: str) -> Covered:
        """What a file of tests ran."""
        first, _, body = self._home(name).read_text(encoding="utf-8").partition("\n")
        known: dict[str, Any] = json.loads(body)
        tests = known["tests"]
        lines = {
            source: (sha, {int(line): [tests[one] for one in ran] for line, ran in rows.items()})
            for source, (sha, rows) in known["lines"].items()
        }
        return Covered(name, json.loads(first), known["seconds"], lines)

    def renew(
        self, files: list[str], *, processes: int = 1, stop: Callable[[], bool] | None = None
    ) -> bool:
        """Run files of tests again, each once, and keep what they run; whether it came to its end.

        Compiled loops run as plain Python in the files that test them: else no line is seen.
        ``stop`` ends it before its time; what is kept by then is used the next time.
        """
        loops = [name for name in files if name.endswith(LOOPS)]
        others = [name for name in files if not name.endswith(LOOPS)]
        shares = [others[start::processes] for start in range(processes)]
        command = [sys.executable, "-m", "torture.mutants.line_map", str(self.folder)]
        command += [str(self.root), self.top]
        places = [self.root / "src", self.root, ROOT / "src", ROOT]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
        running = [
            subprocess.Popen([*command, *share], cwd=self.root, env=environment | more)  # noqa: S603
            for share, more in [*((share, {}) for share in shares), (loops, INTERPRETED)]
            if share
        ]
        while any(process.poll() is None for process in running):
            if stop is not None and stop():
                for process in running:
                    process.kill()
                    process.wait()
                return False
            time.sleep(0.1)
        return True


class _Recorder:
    """A plugin of pytest that keeps for each test the lines it ran and its time."""

    def __init__(self, lines: LineMap) -> None:
        import coverage

        self.map = lines
        measured = [f"{name}/*" for name in PACKAGES] if lines.top == "takifugu" else ["*"]
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.context = ""
        self.shared = 0.0  # seconds of fixtures that the tests of a file share
        self.imported: dict[str, Rows] = {}  # by file of tests: what its own import runs
        self.covering = coverage.Coverage(
            data_file=None,
            config_file=False,
            include=[f"{lines.root}/src/{lines.top}/{name}" for name in measured],
        )
        self.covering.set_option("run:disable_warnings", ["no-data-collected"])
        self.covering.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Iterator[Any]:
        if isinstance(collector, pytest.File):
            self._switch(collector.nodeid)
        try:
            return (yield)
        finally:
            self._switch("")

    def _switch(self, context: str) -> None:
        self.context = context
        self.covering.switch_context(context)

    def pytest_collection_finish(self, session: Any) -> None:
        for path in {item.nodeid.partition("::")[0] for item in session.items}:
            self.imported[path] = {}
        for source, line, ran in self._recorded():
            for path in ran & self.imported.keys():
                self.imported[path].setdefault(source, set()).add(line)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        if fixturedef.scope == "function":
            return (yield)
        before, file = self.context, request._pyfuncitem.nodeid.partition("::")[0]
        if before == file:  # for another shared one
            return (yield)
        self._switch(file)  # for every test of the file
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.shared += time.process_time() - began
            self._switch(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Iterator[None]:
        self._switch(item.nodeid)
        previous = signal.signal(signal.SIGPROF, self._alarm)
        signal.setitimer(signal.ITIMER_PROF, SLOWEST)
        began, before = time.process_time(), self.shared
        try:
            result = yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, previous)
            self.seconds[item.nodeid] = time.process_time() + before - self.shared - began
            self._switch("")
        path = item.nodeid.partition("::")[0]
        if nextitem is None or nextitem.nodeid.partition("::")[0] != path:
            self._keep(path)
        return result

    @staticmethod
    def _alarm(*_: object) -> None:
        pytest.fail("too slow to be used for mutants", pytrace=False)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def _recorded(self) -> list[tuple[Path, int, set[str]]]:
        """Source, line and what ran it, since the last time; what is recorded begins anew."""
        self.covering.stop()
        data = self.covering.get_data()
        found = [
            (Path(source), line, set(ran))
            for source in sorted(data.measured_files())
            for line, ran in data.contexts_by_lineno(source).items()
        ]
        self.covering.erase()
        self.covering.start()
        return found

    def _keep(self, path: str) -> None:
        passed = {
            name: round(own + self.shared, 3)
            for name, own in self.seconds.items()
            if name not in self.failed
        }
        rows: dict[Path, dict[int, set[str]]] = {}
        for source, line, ran in self._recorded():
            tests = passed.keys() if path in ran else passed.keys() & ran
            if tests:
                rows.setdefault(source, {})[line] = set(tests)
        for source, at_import in self.imported.get(path, {}).items() if passed else ():
            rows.setdefault(source, {}).update((line, set(passed)) for line in at_import)
        lines = {
            source.relative_to(self.map.root).as_posix(): (
                digest(source),
                {line: sorted(ran) for line, ran in sorted(known.items())},
            )
            for source, known in sorted(rows.items())
        }
        self.map.write(Covered(path, digest(self.map.root / path), passed, lines))
        self.seconds, self.failed, self.shared = {}, set(), 0.0


def import_everything(lines: LineMap) -> None:
    """So that what runs when a module is imported is not taken for what a file of tests runs."""
    for package in PACKAGES if lines.top == "takifugu" else ("",):
        for path in sorted((lines.root / "src" / lines.top / package).rglob("*.py")):
            name = path.relative_to(lines.root / "src").with_suffix("").as_posix()
            with contextlib.suppress(ImportError):
                importlib.import_module(name.replace("/", ".").removesuffix(".__init__"))


def record(lines: LineMap, files: list[str]) -> None:
    """Run files of tests in this process and keep what they run."""
    recorder = _Recorder(lines)
    import_everything(lines)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--rootdir={lines.root}"]
    pytest.main([*options, *files], plugins=[recorder])


if __name__ == "__main__":
    record(LineMap(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]), sys.argv[4:])
