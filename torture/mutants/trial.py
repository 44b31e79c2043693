"""Trying mutants: the quick tests first, more for those that live, and what killed is checked."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from takifugu._core.atomic import write_whole
from torture.mutants.finding import source_of
from torture.mutants.line_map import digest
from torture.mutants.mutation import Mutant, valid
from torture.mutants.selection import THEN, Selection, compiled_modules
from torture.mutants.zygote import Outcome, module_name, tried

KILLED = ("failed", "import", "crash", "timeout")
SLACK = 4.0, 6.0  # times what tests take, and seconds of work more, before a child is ended
AT_ONCE = 10  # mutants between two checks of what killed them
ASKED = 40, 6.0  # tests that are tried with loops as plain Python, for each compiled module
PLAIN = 4.0  # seconds of work that such a test may take


@dataclass(frozen=True)
class Verdict:
    """What became of one mutant.

    Attributes:
        mutant: Which.
        kind: "failed", "import", "crash" or "timeout" if it was killed; "passed" if tests that run
            it all passed; "not covered" if there are none.
        by: What killed it.
        tests: How many tests were run.
        used: Those that would have passed on the code as it is, had it been killed by its change.
    """

    mutant: Mutant
    kind: str
    by: str
    tests: int
    used: tuple[str, ...] = ()

    @property
    def killed(self) -> bool:
        """Whether a test noticed."""
        return self.kind in KILLED


class Trial:
    """Tries mutants of one source tree with its tests.

    Those that live get ``rounds`` rounds of further tests.
    """

    def __init__(
        self,
        selection: Selection,
        source: Path,
        root: Path,
        *,
        rounds: int = len(THEN),
    ) -> None:
        self.selection, self.source, self.root = selection, source, root
        self._rounds = rounds
        self.fine: set[str] = set()  # tests that pass on the code as it is
        self._plain: dict[str, Mapping[str, float]] = {}

    def mutants(self, wanted: Iterable[Mutant]) -> Iterator[Mutant]:
        """Those that are changes."""
        for one in wanted:
            if valid(one, source_of(one.module, self.source).bytes):
                yield one

    def verdict(self, mutant: Mutant) -> Verdict:
        """Try one mutant; see `settled`."""
        outcome, tests = self._outcome(mutant)
        kind = "not covered" if outcome.kind == "no tests" else outcome.kind
        used = (outcome.by,) if kind == "failed" else tests
        return Verdict(mutant, kind, outcome.by, outcome.tried, used)

    def settled(self, verdicts: list[Verdict]) -> Iterator[Verdict]:
        """Try again what was killed by a test that fails on the code as it is."""
        open_ones = verdicts
        while open_ones:
            used = dict.fromkeys(
                one
                for known in open_ones
                if not self._interpreted(known.mutant)
                for one in known.used
            )
            self._check(tuple(one for one in used if one not in self.fine))
            again = []
            for known in open_ones:
                if known.killed and self.selection.bad & set(known.used):
                    again.append(self.verdict(known.mutant))
                else:
                    yield known
            open_ones = again

    def _interpreted(self, mutant: Mutant) -> bool:
        """Whether it is in a module that numba compiles, whose loops then run as plain Python."""
        return mutant.module in compiled_modules(self.source)

    def _seconds(self, mutant: Mutant) -> Mapping[str, float] | None:
        """What tests take that pass with loops as plain Python; none if the map knows it."""
        if not self._interpreted(mutant) or self.selection.seen(mutant.module):
            return None
        if mutant.module not in self._plain:
            self._plain[mutant.module] = self._passing_plainly(mutant)
        return self._plain[mutant.module]

    def _passing_plainly(self, mutant: Mutant) -> Mapping[str, float]:
        """Tests of a compiled module that pass without the compiler; kept, for it takes long."""
        lines = self.selection.lines
        home = lines.folder / "plain" / (mutant.module.replace("/", "+") + ".json")
        kept = json.loads(home.read_text(encoding="utf-8")) if home.is_file() else {}
        asked = self.selection.chosen(mutant, first=ASKED).first
        name = {one: f"{digest(self.root / one.partition('::')[0])} {one}" for one in asked}
        unknown = [one for one in asked if name[one] not in kept]
        for one in unknown:
            known = tried([one], PLAIN + SLACK[1], root=self.root, interpreted=True, each=PLAIN)
            kept[name[one]] = known.seconds[one] if known.kind == "passed" else None
            home.parent.mkdir(parents=True, exist_ok=True)
            write_whole(home, json.dumps(kept))
        return {one: kept[name[one]] for one in asked if kept[name[one]] is not None}

    def _outcome(self, mutant: Mutant) -> tuple[Outcome, tuple[str, ...]]:
        chosen = self.selection.chosen(mutant, self._seconds(mutant))
        if not chosen.first:  # perhaps it runs when its module is imported
            tests = self.selection.importing(mutant)
            found = self._run(mutant, tests, sum(self.selection.seconds[one] for one in tests))
            return (found if found.kind in KILLED else Outcome("no tests")), tests
        outcome = self._run(mutant, chosen.first, chosen.expected(chosen.first))
        tests = chosen.first
        for more in chosen.then[: self._rounds]:
            if outcome.kind != "passed":
                break
            found = self._run(mutant, more, chosen.expected(more))
            if found.kind != "no tests":
                outcome = Outcome(found.kind, found.by, outcome.tried + found.tried)
                tests = more
        return outcome, tests

    def _run(self, mutant: Mutant, tests: tuple[str, ...], expected: float) -> Outcome:
        path = self.source / mutant.module
        return tried(
            tests,
            SLACK[0] * expected + SLACK[1],
            root=self.root,
            name=module_name(mutant.module, self.source.name),
            path=path,
            text=mutant.applied(source_of(mutant.module, self.source).bytes),
            interpreted=self._interpreted(mutant),
        )

    def _check(self, tests: tuple[str, ...]) -> None:
        """Run tests on the code as it is; those that do not pass are not used from now on."""
        if not tests:
            return
        limit = SLACK[0] * sum(self.selection.seconds[one] for one in tests) + SLACK[1]
        plain = tried(tests, limit, root=self.root, first=False)
        if plain.kind in ("passed", "failed"):
            self.selection.bad |= set(plain.failed)
            self.fine |= set(tests) - set(plain.failed)
        elif len(tests) == 1:
            self.selection.bad |= set(tests)
        elif broken := [one for one in tests if plain.by and one.startswith(plain.by)]:
            self.selection.bad |= set(broken)  # a file that cannot be imported
            self._check(tuple(one for one in tests if one not in self.selection.bad))
        else:
            half = len(tests) // 2
            self._check(tests[:half])
            self._check(tests[half:])

    def verdicts(
        self, wanted: Iterable[Mutant], *, workers: int = 1, stop: Callable[[], bool] | None = None
    ) -> Iterator[Verdict]:
        """Try many, in turn or some at a time."""
        kept: list[Verdict] = []
        for known in self._tried(self.mutants(wanted), workers, stop or (lambda: False)):
            if not known.killed:
                yield known
                continue
            kept.append(known)
            if len(kept) == AT_ONCE:
                yield from self.settled(kept)
                kept = []
        yield from self.settled(kept)

    def _tried(
        self, wanted: Iterable[Mutant], workers: int, over: Callable[[], bool]
    ) -> Iterator[Verdict]:
        """A verdict on each, as they come."""
        if workers == 1:
            for one in wanted:
                if over():
                    return
                yield self.verdict(one)
            return
        with ThreadPoolExecutor(workers) as pool:
            for done in as_completed([pool.submit(self.verdict, one) for one in wanted]):
                yield done.result()


def sampled(mutants: list[Mutant], size: int, rng: np.random.Generator) -> list[Mutant]:
    """That many mutants, of each module as many as its share; in random order."""
    if size >= len(mutants):
        return [mutants[place] for place in rng.permutation(len(mutants))]
    order = sorted(
        (mutants[place] for place in rng.permutation(len(mutants))), key=lambda one: one.module
    )
    # systematic: every module gets its share up to one
    offset = rng.uniform()
    step = len(order) / size
    taken = [order[int((place + offset) * step)] for place in range(size)]
    return [taken[place] for place in rng.permutation(size)]
