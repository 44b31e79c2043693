"""Numbers computed from an output that may distinguish two sides.

An audit is sound whatever these are: features are learnt on outputs that are not counted later. A
good choice gives power. The candidates: every answer by itself, sums and differences of two, the
total, the linear direction that separates best, a vote of the answers that differ (each with its
own likelihood ratio), and the joint value of all answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.auditing.output_rows import UNSEEN, Reader

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
