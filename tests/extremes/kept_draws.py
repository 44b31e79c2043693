"""Which instances are kept: quick ones that run lines which others do not."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import coverage
import numpy as np

import takifugu
from takifugu.errors import TakifuguError
from tests.extremes.kept_bounds import Kept, TooSlow, at_most, say
from tests.extremes.kept_questions import FURTHER, OWN, asked_of
from torture.oracles.families import BY_NAME

ROOT = Path(takifugu.__file__).parent
QUICK, SLOW = 0.06, 0.4  # seconds of work, while lines are noted
LONGEST = 2.0  # seconds after which a question is given up
LEAST = {OWN: 14, FURTHER: 6}  # of a question to a family, at least
MORE = 2  # of another question
MOST = 250  # instances of a family that are drawn


@dataclass(frozen=True)
class _Tried:
    kept: Kept
    seconds: float
    lines: frozenset[tuple[str, int]]


def drawn(names: Sequence[str], seed: int, seconds: float) -> list[Kept]:
    """What is kept, without answers."""
    tried = [one for name in names for one in _tried(name, seed, seconds)]
    chosen = list(_covering(tried))
    for name in names:
        for question in asked_of(name):
            there = sum(t.kept.family == name and t.kept.question == question for t in chosen)
            asked = [
                t
                for t in tried
                if t.kept.family == name and t.kept.question == question and t not in chosen
            ]
            asked.sort(key=lambda t: (t.seconds > QUICK, -len(t.lines)))
            chosen += asked[: max(LEAST.get(question, MORE) - there, 0)]
    lines = set().union(*(t.lines for t in chosen))
    say(f"{len(tried)} tried, {len(chosen)} kept, {len(lines)} lines")
    return [t.kept for t in chosen]


def _tried(name: str, seed: int, seconds: float) -> list[_Tried]:
    """Questions about instances of one family, with the lines that they run."""
    rng = np.random.default_rng([seed, sum(name.encode())])
    sources = [str(ROOT / "translation"), str(ROOT / "influence")]
    watch = coverage.Coverage(data_file=None, source=sources, config_file=False)
    found: list[tuple[Kept, float]] = []
    began = process_time()
    watch.start()
    for _ in range(MOST):
        if process_time() > began + seconds:
            break
        instance = json.loads(json.dumps(BY_NAME[name].draw(rng)))
        own, *others = asked_of(name)
        for question in (own, *rng.permutation(others).tolist()[:5]):
            kept = Kept(name, instance, question)
            watch.switch_context(str(len(found)))
            start = process_time()
            try:
                with at_most(LONGEST):
                    answered = kept.now()
            except (TakifuguError, TooSlow):
                answered = []
            found.append((kept, process_time() - start if answered else np.inf))
    watch.stop()
    data = watch.get_data()
    lines: list[set[tuple[str, int]]] = [set() for _ in found]
    for path in data.measured_files():
        for line, contexts in data.contexts_by_lineno(path).items():
            for context in contexts:
                if context:
                    lines[int(context)].add((path, line))
    say(f"{name}: {len(found)} tried")
    return [
        _Tried(kept, taken, frozenset(seen))
        for (kept, taken), seen in zip(found, lines, strict=True)
        if taken <= SLOW
    ]


def _covering(tried: list[_Tried]) -> Iterator[_Tried]:
    """One after the other, the one that runs most new lines for its time."""
    left = {k: set(one.lines) for k, one in enumerate(tried)}
    while left:
        best = max(left, key=lambda k: len(left[k]) / (0.02 + tried[k].seconds))
        new = left.pop(best)
        if not new:
            return
        yield tried[best]
        for others in left.values():
            others -= new
        left = {k: others for k, others in left.items() if others}
