"""The slow truth about a sequence of noisy counts: every table, every output, one fraction.

A person is a list of states that follow a chain. A release is a list of sets of rows; it tells, for
each set, how many of its rows are in state 1, with integer Laplace noise. Beyond the smallest and
the largest possible count another unit of noise changes all likelihoods by one factor, so that the
outputs in between are all that matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Noisy:
    """One release: for each number, the rows it counts and whether it counts state 1 or 0."""

    numbers: tuple[tuple[frozenset[int], int], ...]
    scale: float


def tables(
    lengths: Sequence[int], start: Sequence[float], step: Sequence[Sequence[float]]
) -> tuple[NDArray[np.int64], Floats]:
    """``[table, row]`` and ``[table]``: all tables of independent people, and their chances."""
    every, chances = [], []
    for table in product((0, 1), repeat=sum(lengths)):
        chance, first = 1.0, 0
        for length in lengths:
            person = table[first : first + length]
            chance *= start[person[0]]
            for before, after in pairwise(person):
                chance *= step[before][after]
            first += length
        every.append(table)
        chances.append(chance)
    return np.array(every), np.array(chances)


def likelihoods(every: NDArray[np.int64], release: Noisy, most: int) -> Floats:
    """``[output, table]``: up to a factor for each output; only the corners if they are many."""
    counts = [
        (every[:, sorted(rows)] == state).sum(axis=1) for rows, state in release.numbers if rows
    ]
    sizes = [len(rows) for rows, _ in release.numbers if rows]
    grid = [range(size + 1) for size in sizes]
    if np.prod([size + 1 for size in sizes]) > most:
        grid = [range(0, size + 1, size) for size in sizes]
    found = [
        np.exp(-sum(abs(o - c) for o, c in zip(output, counts, strict=True)) / release.scale)
        for output in product(*grid)
    ]
    return np.unique(np.array(found), axis=0)


def leak(
    every: NDArray[np.int64], chances: Floats, releases: Sequence[Noisy], *, most: int = 16
) -> float:
    """The largest |log| ratio of the chances of all outputs together, given a row is 0 or 1."""
    joint = np.ones((1, len(every)))
    for release in releases:
        one = likelihoods(every, release, most)
        joint = (joint[:, None, :] * one[None, :, :]).reshape(-1, len(every))
    worst = 0.0
    for row in range(every.shape[1]):
        given = [np.where(every[:, row] == state, chances, 0) for state in (0, 1)]
        zero, one_ = (joint @ (weights / weights.sum()) for weights in given)
        worst = max(worst, float(np.max(np.abs(np.log(zero) - np.log(one_)))))
    return worst


def sums_of(charges: Sequence[tuple[frozenset[int], float]], rows: int) -> list[float]:
    """What each row has lost: the losses of the charges that read it, added up."""
    return [sum(loss for read, loss in charges if row in read) for row in range(rows)]
