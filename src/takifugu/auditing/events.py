"""Choosing the one event that is worth testing.

By the Neyman-Pearson lemma the best events are the sets on which the likelihood ratio is largest.
From outputs of two sides, a feature is cut into bins, the bins are put in order (by size, by size
reversed, by estimated likelihood ratio), and the first few bins of an order are an event. All of
this is learnt on one part of the outputs; the event is picked on a second part, by the bound that
it gives there; whoever tests it uses a third.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu.auditing.bounds import epsilon_below
from takifugu.auditing.features import Feature, bins, counts, edges_of, features, log_ratios
from takifugu.auditing.outputs import Reader, reader
from takifugu.numeric import Booleans, Floats, Integers

Sides = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs: those whose feature falls into one of the chosen bins.

    Attributes:
        reader: How an output is read.
        feature: What is computed of it.
        edges: Where the bins start.
        inside: ``[bin]``: whether the bin belongs to the event.
        swapped: Whether the event speaks for the second side: it is likelier there.
        words: The event, in words, without any value that was released.
    """

    reader: Reader
    feature: Feature
    edges: Floats
    inside: Booleans
    swapped: bool
    words: str

    def contains(self, outputs: Any) -> Booleans:
        """``[output]``: whether the event happened."""
        found: Booleans = self.inside[bins(self.edges, self.feature(self.reader.rows(outputs)))]
        return found


@dataclass(frozen=True, eq=False)
class Chosen:
    """An event and the bound on ε that it gave where it was picked; no guarantee, a hope."""

    event: Event
    hope: float


def choose(
    learn: Sides, pick: Sides, *, delta: float, confidence: float, both_ways: bool = True
) -> Chosen:
    """Learn events on the two sides of ``learn``; pick the one with the best bound on ``pick``.

    Unless ``both_ways``, only events that are likelier on the first side are of use.
    """
    read = reader(*learn)
    learnt = (read.rows(learn[0]), read.rows(learn[1]))
    picked = (read.rows(pick[0]), read.rows(pick[1]))
    found = []
    for feature in features(read, *learnt):
        for event, hits, other in _candidates(read, feature, learnt, picked, delta, both_ways):
            draws, others = len(picked[event.swapped]), len(picked[not event.swapped])
            hope = epsilon_below(hits, draws, other, others, delta=delta, confidence=confidence)
            found.append(Chosen(event, float(hope)))
    return max(found, key=lambda chosen: chosen.hope)  # there is a feature for every cell


def _candidates(
    read: Reader,
    feature: Feature,
    learnt: tuple[Floats, Floats],
    picked: tuple[Floats, Floats],
    delta: float,
    both_ways: bool,
) -> Iterator[tuple[Event, int, int]]:
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
            event = Event(read, feature, edges, inside, swapped, words)
            yield event, int(hits[inside].sum()), int(other[inside].sum())


def _best_prefix(hits: Integers, other: Integers, delta: float) -> int:
    """The prefix with the best bound, by a normal approximation of the log ratio."""
    k, m = np.cumsum(hits), np.cumsum(other)
    n, size = max(int(k[-1]), 1), max(int(m[-1]), 1)
    chance = np.maximum((k + 0.5) / (n + 1) - delta, 1e-12)
    deviation = np.sqrt((k + 0.5) / (n + 1) ** 2 / chance**2 + 1 / (m + 0.5))
    bound = np.log(chance) - np.log((m + 0.5) / (size + 1)) - 3 * deviation
    return int(np.argmax(bound))
