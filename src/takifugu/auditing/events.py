"""Choose the one event to test.

By the Neyman-Pearson lemma the best events are the sets on which the likelihood ratio is largest.
From outputs of two sides, a feature is cut into bins, the bins are put in order (by size, by size
reversed, by estimated likelihood ratio), and the first few bins of an order are an event. All of
this is learnt on one part of the outputs; the event is picked on a second part, by the bound that
it gives there; the test uses a third.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.auditing.epsilon_bounds import epsilon_below
from takifugu.auditing.features import Feature, bins, counts, edges_of, features, log_ratios
from takifugu.auditing.output_rows import Reader, reader

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
