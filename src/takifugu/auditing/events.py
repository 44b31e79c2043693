"""Choose the one event to test, by numbers computed from outputs (features).

An audit is sound whatever these are: features are learnt on outputs that are not counted later. A
good choice gives power. The candidates: every answer by itself, sums and differences of two, the
total, the linear direction that separates best, a vote of the answers that differ (each with its
own likelihood ratio), and the joint value of all answers.

By the Neyman-Pearson lemma the best events are the sets on which the likelihood ratio is largest.
From outputs of two sides, a feature is cut into bins, the bins are put in order (by size, by size
reversed, by estimated likelihood ratio), and the first few bins of an order are an event. All of
this is learnt on one part of the outputs; the event is picked on a second part, by the bound that
it gives there; the test uses a third.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.auditing.loss_bounds import epsilon_below
from takifugu.auditing.output_rows import UNSEEN, Reader, reader

MOST_ATOMS = 512  # up to this many different values, every value is a bin of its own
TAILS = 12  # extra bins towards either end, each half as likely as the one before
STEPS = 64
ALONE, PAIRED, VOTING = 16, 6, 64  # cells tried alone, in pairs and in votes, best first


class Feature(Protocol):
    """A number for every row; ``ordered`` if large and small mean something."""

    @property
    def words(self) -> str: ...  # noqa: D102
    @property
    def ordered(self) -> bool: ...  # noqa: D102
    def __call__(self, rows: Floats) -> Floats: ...  # noqa: D102


@dataclass(frozen=True)
class Weighted:
    """Σ weight·cell over some cells."""

    words: str
    cells: tuple[int, ...]
    weights: tuple[float, ...]
    ordered: bool = True

    def __call__(self, rows: Floats) -> Floats:
        """``[row]``: the weighted sum."""
        with np.errstate(invalid="ignore", over="ignore"):
            parts = rows[:, list(self.cells)] * np.array(self.weights)
            total: Floats = parts.sum(axis=1)
        return total


@dataclass(frozen=True)
class Votes:
    """The log likelihood ratios of some cells, added up as if they were independent."""

    words: str
    cells: tuple[int, ...]
    edges: tuple[Floats, ...]
    ratios: tuple[Floats, ...]
    ordered: bool = True

    def __call__(self, rows: Floats) -> Floats:
        """``[row]``: the sum of the votes."""
        total = np.zeros(len(rows))
        for cell, edges, ratios in zip(self.cells, self.edges, self.ratios, strict=True):
            total += ratios[bins(edges, rows[:, cell])]
        return np.round(total, 9)  # equal votes in another order are equal


@dataclass(frozen=True)
class Joint:
    """The values of some cells together, as one code."""

    words: str
    cells: tuple[int, ...]
    codes: Mapping[bytes, int]
    ordered: bool = False

    def __call__(self, rows: Floats) -> Floats:
        """``[row]``: the code, or that of what was not seen before."""
        return np.array([self.codes.get(key, UNSEEN) for key in _keys(rows, self.cells)])


def edges_of(values: Floats) -> Floats:
    """Where bins start: at every value if there are few, else at quantiles, finer in the tails."""
    distinct = np.unique(values)
    if len(distinct) <= MOST_ATOMS:
        return distinct
    tail = 1 / STEPS * 0.5 ** np.arange(1, TAILS)
    at = np.concatenate([tail[::-1], np.arange(1, STEPS) / STEPS, 1 - tail])
    return np.unique(np.quantile(values[~np.isnan(values)], at, method="lower"))


def bins(edges: Floats, values: Floats) -> Integers:
    """``[value]``: the number of edges at or below each value; one more bin for NaN."""
    below = np.searchsorted(edges, values, side="right")
    return np.where(np.isnan(values), len(edges) + 1, below)


def counts(edges: Floats, values: Floats) -> Integers:
    """``[bin]``: how many values fall into each bin."""
    return np.bincount(bins(edges, values), minlength=len(edges) + 2)


def log_ratios(hits: Integers, other: Integers) -> Floats:
    """``[bin]``: estimated log likelihood ratios, drawn towards 0 where little was seen."""
    n, m = hits.sum(), other.sum()
    pooled = (hits + other) / (n + m)
    ratio: Floats = np.log((hits + 2 * pooled + 0.1) / (n + 2.1)) - np.log(
        (other + 2 * pooled + 0.1) / (m + 2.1)
    )
    return ratio


def features(reader: Reader, first: Floats, second: Floats) -> Iterator[Feature]:
    """The candidate features, learnt from rows of the two sides."""
    edges = [edges_of(np.concatenate([a, b])) for a, b in zip(first.T, second.T, strict=True)]
    tallies = [
        (counts(e, a), counts(e, b)) for e, a, b in zip(edges, first.T, second.T, strict=True)
    ]
    separation = np.array([_chi_square(a, b) for a, b in tallies])
    order = [int(j) for j in np.argsort(-separation, kind="stable")]
    numbers = [j for j in order if reader.codes[j] is None]
    for j in order[:ALONE]:
        yield Weighted(_name(reader, j), (j,), (1.0,), ordered=reader.codes[j] is None)
    if len(order) == 1:
        return
    yield from _votes(order, edges, tallies, separation)
    yield from _pairs(numbers[:PAIRED])
    yield from _combined(numbers, first, second)
    yield from _joints(order, first, second)


def _votes(
    order: Sequence[int],
    edges: Sequence[Floats],
    tallies: Sequence[tuple[Integers, Integers]],
    separation: Floats,
) -> Iterator[Feature]:
    clear = [j for j in order[:VOTING] if separation[j] > 4]
    for chosen in dict.fromkeys((tuple(order[:2]), tuple(clear))):
        if len(chosen) > 1:
            ratios = tuple(log_ratios(*tallies[j]) for j in chosen)
            words = f"the votes of {len(chosen)} answers, added up,"
            yield Votes(words, chosen, tuple(edges[j] for j in chosen), ratios)


def _pairs(numbers: Sequence[int]) -> Iterator[Feature]:
    for j, k in combinations(sorted(numbers), 2):
        yield Weighted(f"answer {j + 1} minus answer {k + 1}", (j, k), (1.0, -1.0))
        yield Weighted(f"answer {j + 1} plus answer {k + 1}", (j, k), (1.0, 1.0))


def _combined(numbers: Sequence[int], first: Floats, second: Floats) -> Iterator[Feature]:
    if len(numbers) < 2:
        return
    cells = tuple(sorted(numbers))
    yield Weighted("the total of the numbers", cells, (1.0,) * len(cells))
    chosen = list(numbers[:VOTING])
    a, b = first[:, chosen], second[:, chosen]
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return
    spread = np.atleast_2d(np.cov(a.T)) + np.atleast_2d(np.cov(b.T))
    size = float(np.trace(spread))
    if not 0 < size < np.inf:
        return
    ridge = 1e-9 * size * np.eye(len(chosen))
    weights = np.linalg.solve(spread + ridge, a.mean(axis=0) - b.mean(axis=0))
    if np.isfinite(weights).all():
        yield Weighted("a weighted sum of the numbers", tuple(chosen), tuple(weights.tolist()))


def _joints(order: Sequence[int], first: Floats, second: Floats) -> Iterator[Feature]:
    both = np.concatenate([first, second])
    for chosen in dict.fromkeys((tuple(order[:2]), tuple(order))):
        codes: dict[bytes, int] = {}
        for key in _keys(both, chosen):
            codes.setdefault(key, len(codes))
        if len(codes) <= len(both) / 2:
            yield Joint(f"the joint value of {len(chosen)} answers", chosen, codes)


def _keys(rows: Floats, cells: Sequence[int]) -> Iterator[bytes]:
    block = np.ascontiguousarray(rows[:, list(cells)])
    return (row.tobytes() for row in block)


def _name(reader: Reader, cell: int) -> str:
    return "the answer" if len(reader.codes) == 1 else f"answer {cell + 1}"


def _chi_square(a: Integers, b: Integers) -> float:
    """How far two tallies are apart, in standard deviations above its mean under equality."""
    n, m = a.sum(), b.sum()
    seen = a + b > 0
    freedom = max(int(seen.sum()) - 1, 1)
    x, y = a[seen], b[seen]
    distance = ((x * np.sqrt(m / n) - y * np.sqrt(n / m)) ** 2 / (x + y)).sum()
    return float((distance - freedom) / np.sqrt(2 * freedom))


Sides = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class OutputEvent:
    """A set of outputs: those whose feature falls into one of the chosen bins.

    Attributes:
        reader: How an output is read.
        feature: What is computed from it.
        edges: Where the bins start.
        inside: ``[bin]``: whether the bin belongs to the event.
        swapped: Whether the event is more likely on the second side.
        words: The event in words, without any released value.
    """

    reader: Reader
    feature: Feature
    edges: Floats
    inside: Booleans
    swapped: bool
    words: str

    def contains(self, outputs: Any) -> Booleans:
        """``[output]``: whether the event happened."""
        happened: Booleans = self.inside[bins(self.edges, self.feature(self.reader.rows(outputs)))]
        return happened


@dataclass(frozen=True, eq=False)
class ChosenEvent:
    """An event and the bound on ε that it gave where it was picked; an estimate, no guarantee."""

    event: OutputEvent
    expected_bound: float


def choose(
    learn: Sides, pick: Sides, *, delta: float, confidence: float, both_ways: bool = True
) -> ChosenEvent:
    """Learn events on the two sides of ``learn``; pick the one with the best bound on ``pick``.

    Without ``both_ways``, only events that are more likely on the first side are considered.
    """
    read = reader(*learn)
    learnt = (read.rows(learn[0]), read.rows(learn[1]))
    picked = (read.rows(pick[0]), read.rows(pick[1]))
    candidates = []
    for feature in features(read, *learnt):
        for event, hits, other in _candidates(read, feature, learnt, picked, delta, both_ways):
            draws, others = len(picked[event.swapped]), len(picked[not event.swapped])
            expected_bound = epsilon_below(
                hits, draws, other, others, delta=delta, confidence=confidence
            )
            candidates.append(ChosenEvent(event, float(expected_bound)))
    return max(
        candidates, key=lambda chosen: chosen.expected_bound
    )  # there is a feature for every cell


def _candidates(
    read: Reader,
    feature: Feature,
    learnt: tuple[Floats, Floats],
    picked: tuple[Floats, Floats],
    delta: float,
    both_ways: bool,
) -> Iterator[tuple[OutputEvent, int, int]]:
    """For every order of the bins and either side, the prefix that guarantees most."""
    values = [feature(rows) for rows in learnt]
    edges = edges_of(np.concatenate(values))
    ratios = log_ratios(*(counts(edges, side) for side in values))
    tallies = [counts(edges, feature(rows)) for rows in picked]
    by_ratio = np.argsort(-ratios, kind="stable")
    orders = [(by_ratio, "takes a value more likely")]
    if feature.ordered:
        up = np.arange(len(ratios))
        orders += [(up, "is small, as is more likely"), (up[::-1], "is large, as is more likely")]
    for order, how in orders:
        for swapped in (False, True)[: 1 + both_ways]:
            seen = order[::-1] if swapped and order is by_ratio else order
            hits, other = tallies[swapped], tallies[not swapped]
            stop = _best_prefix(hits[seen], other[seen], delta)
            inside = np.zeros(len(ratios), dtype=bool)
            inside[seen[: stop + 1]] = True
            words = f"{feature.words} {how} on the {'second' if swapped else 'first'} side"
            event = OutputEvent(read, feature, edges, inside, swapped, words)
            yield event, int(hits[inside].sum()), int(other[inside].sum())


def _best_prefix(hits: Integers, other: Integers, delta: float) -> int:
    """The prefix with the best bound, by a normal approximation of the log ratio."""
    k, m = np.cumsum(hits), np.cumsum(other)
    n, size = max(int(k[-1]), 1), max(int(m[-1]), 1)
    probability = np.maximum((k + 0.5) / (n + 1) - delta, 1e-12)
    deviation = np.sqrt((k + 0.5) / (n + 1) ** 2 / probability**2 + 1 / (m + 0.5))
    bound = np.log(probability) - np.log((m + 0.5) / (size + 1)) - 3 * deviation
    return int(np.argmax(bound))
