"""Which tests are run against a mutant: those that run its lines.

First come the fastest ones of each file, and those that run more of its module than others do.
"""

import ast
import difflib
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torture.mutants.line_map import LineMap, digest, files_of_tests
from torture.mutants.mutation import FUNCTIONS, Mutant

FIRST = 12, 2.0  # tests, and seconds that they take
THEN = (80, 10.0), (250, 25.0)  # further tests, for a mutant that lived, and then again
SERVER = 4.0  # seconds more for a test that starts a server, which works in a process of its own
Tests = tuple[str, ...]


@dataclass(frozen=True)
class Chosen:
    """The tests of one mutant.

    Attributes:
        first: The quick ones.
        then: More, for what lives, in turn.
        seconds: How long each takes.
    """

    first: Tests
    then: tuple[Tests, ...]
    seconds: Mapping[str, float]

    def expected(self, tests: Tests) -> float:
        """Seconds."""
        return sum(self.seconds[one] for one in tests)


class Selection:
    """Tests by the lines that they run."""

    def __init__(self, lines: LineMap, source: Path, files: Iterable[str] | None = None) -> None:
        self.lines, self._source = lines, source
        self._root = lines.root
        self.seconds: dict[str, float] = {}
        self._ran: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        names = files_of_tests(self._root) if files is None else files
        for covered in (lines.read(name) for name in names if lines.known(name)):
            for one, took in covered.seconds.items():
                self.seconds[one] = took + SERVER * ("postgres" in one)
            for path, (sha, rows) in covered.lines.items():
                place = self._moved(path, sha)
                for line, ran in rows.items():
                    if line in place:
                        self._ran[path][place[line]] += ran
        self.bad: set[str] = set()

    def _moved(self, path: str, sha: str) -> dict[int, int]:
        """Lines of the source as it was to lines as they are."""
        if (path, sha) not in self._known:
            self._known[path, sha] = self._matched(path, sha)
        return self._known[path, sha]

    @cached_property
    def _known(self) -> dict[tuple[str, str], dict[int, int]]:
        return {}

    def _matched(self, path: str, sha: str) -> dict[int, int]:
        now = self._root / path
        if not now.is_file():
            return {}
        new = now.read_text(encoding="utf-8").splitlines()
        if digest(now) == sha:
            return {line: line for line in range(1, len(new) + 1)}
        kept = self.lines.folder / "sources" / f"{sha}.py"
        old = kept.read_text(encoding="utf-8").splitlines()
        place: dict[int, int] = {}
        for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
            if tag in ("equal", "replace") and m > k:
                place |= {i + n + 1: k + min(n, m - k - 1) + 1 for n in range(j - i)}
        return place

    def covering(self, mutant: Mutant) -> set[str]:
        """The tests that run the statement, or its function, or anything of its module.

        The function is asked for what is in its signature, the module for what is in no function.
        """
        path = (self._source / mutant.module).relative_to(self._root).as_posix()
        ran = self._ran.get(path, {})
        compiled = self._compiled.get(mutant.module)
        if compiled is not None and not self.seen(mutant.module):
            return compiled
        if mutant.function and mutant.line >= mutant.function[0]:
            return {one for line in mutant.lines for one in ran.get(line, ())}
        if mutant.function:  # in the signature
            return {one for line in mutant.function for one in ran.get(line, ())}
        return self._of_module(mutant.module)

    def _of_module(self, module: str) -> set[str]:
        """The tests that run anything of a module."""
        path = (self._source / module).relative_to(self._root).as_posix()
        return {one for ran in self._ran.get(path, {}).values() for one in ran}

    def importing(self, mutant: Mutant) -> Tests:
        """One quick test that imports the module, for what runs only then."""
        tests = self._of_module(mutant.module) - self.bad
        return tuple(sorted(tests, key=lambda one: (self.seconds[one], one))[:1])

    def seen(self, module: str) -> bool:
        """Whether a module's lines were seen run inside functions, so also if it is compiled."""
        path = (self._source / module).relative_to(self._root).as_posix()
        if path not in self._seen:
            tree = ast.parse((self._source / module).read_bytes())
            inside = {
                line
                for node in ast.walk(tree)
                if isinstance(node, FUNCTIONS) and node.name not in ("compiled", "_compiled")
                for line in range(node.body[-1].lineno, (node.end_lineno or 0) + 1)
            }
            self._seen[path] = not inside.isdisjoint(self._ran.get(path, {}))
        return self._seen[path]

    @cached_property
    def _seen(self) -> dict[str, bool]:
        return {}

    @cached_property
    def _compiled(self) -> dict[str, set[str]]:
        """Modules that are compiled by numba, whose lines nobody sees run, to tests of callers."""
        found: dict[str, set[str]] = {}
        for module in compiled_modules(self._source):
            stem = Path(module).stem
            tests: set[str] = set()
            for path in sorted(self._source.rglob("*.py")):
                text = path.read_text(encoding="utf-8")
                name = path.relative_to(self._root).as_posix()
                if re.search(rf"\b{stem}\b", text) and name in self._ran:
                    tests |= self._callers(path, name, stem)
            found[module] = tests | self._of_module(module)
        return found

    def _callers(self, path: Path, name: str, stem: str) -> set[str]:
        """The tests that run a line which imports the module inside a function or uses it."""
        tree = ast.parse(path.read_bytes())
        imports = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            and (
                (node.module or "").endswith(f".{stem}") or stem in {one.name for one in node.names}
            )
        ]
        names = {alias.asname or alias.name for node in imports for alias in node.names}
        lines = {node.lineno for node in imports} | {
            node.lineno
            for function in ast.walk(tree)
            if isinstance(function, FUNCTIONS)
            for node in ast.walk(function)
            if isinstance(node, ast.Name) and node.id in names
        }
        return {one for line in lines for one in self._ran[name].get(line, ())}

    def chosen(
        self,
        mutant: Mutant,
        took: Mapping[str, float] | None = None,
        first: tuple[int, float] = FIRST,
    ) -> Chosen:
        """The tests of a mutant, by what they take, or only those that ``took`` has."""
        known = self.seconds if took is None else took
        covering = (one for one in self.covering(mutant) - self.bad if one in known)
        able = sorted(covering, key=lambda one: (known[one], one))
        by_file: dict[str, list[str]] = defaultdict(list)
        for one in able:
            by_file[one.partition("::")[0]].append(one)
        own = f"/{mutant.module.split('/')[0]}/"
        files = sorted(by_file, key=lambda name: (own not in name, known[by_file[name][0]]))
        turns = [
            by_file[name][turn]
            for turn in range(max(map(len, by_file.values()), default=0))
            for name in files
            if turn < len(by_file[name])
        ]
        rare = self._rare(mutant.module)
        told = sorted(able, key=lambda one: (-rare.get(one, 0.0) / (known[one] + 0.1), one))
        pairs = itertools.chain.from_iterable(zip(told, turns, strict=True))
        mixed = list(dict.fromkeys(pairs))
        soon = _within(mixed, known, *first) or tuple(mixed[:1])
        rest = [one for one in told if one not in set(soon)]
        then = []
        for most, seconds in THEN:
            more = _within(rest, known, most, seconds)
            rest = [one for one in rest if one not in set(more)]
            then += [more] if more else []
        return Chosen(soon, tuple(then), known)

    def _rare(self, module: str) -> Mapping[str, float]:
        """How much of a module each test runs, a line counting for less the more tests run it."""
        if module not in self._rarity:
            path = (self._source / module).relative_to(self._root).as_posix()
            found: dict[str, float] = defaultdict(float)
            for ran in self._ran.get(path, {}).values():
                for one in ran:
                    found[one] += 1.0 / len(ran)
            self._rarity[module] = found
        return self._rarity[module]

    @cached_property
    def _rarity(self) -> dict[str, Mapping[str, float]]:
        return {}


def _within(tests: list[str], known: Mapping[str, float], most: int, seconds: float) -> Tests:
    taken: list[str] = []
    total = 0.0
    for one in tests:
        if len(taken) < most and total + known[one] <= seconds:
            taken.append(one)
            total += known[one]
    return tuple(taken)


def compiled_modules(source: Path) -> frozenset[str]:
    """The modules that import numba, or what compiles with it."""
    if source not in _COMPILED:
        found = []
        for path in source.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            if "\nimport numba" in text or "import compiled" in text:
                found.append(path.relative_to(source).as_posix())
        _COMPILED[source] = frozenset(found)
    return _COMPILED[source]


_COMPILED: dict[Path, frozenset[str]] = {}
