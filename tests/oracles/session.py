"""The slow truth about a sequence of noisy counts: every table, every output, one fraction.

A person is a list of states that follow a chain. A release is a list of sets of rows; it tells, for
each set, how many of its rows are in state 1, with integer Laplace noise. Beyond the smallest and
the largest possible count another unit of noise changes all likelihoods by one factor, so that the
outputs in between are all that matter.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product

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
    """``[table, row]`` and ``[table]``: tables of independent people, their probabilities."""
    every, probabilities = [], []
    for table in product((0, 1), repeat=sum(lengths)):
        probability, first = 1.0, 0
        for length in lengths:
            person = table[first : first + length]
            probability *= start[person[0]]
            for before, after in pairwise(person):
                probability *= step[before][after]
            first += length
        every.append(table)
        probabilities.append(probability)
    return np.array(every), np.array(probabilities)


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


def numbers(values: NDArray[np.int64], scale: float, most: int) -> Floats:
    """``[output, table]``: Laplace noise on ``values[table, number]``, up to a factor each.

    Outputs beyond the least and the largest value are as those; only the corners if many.
    """
    ends = list(zip(values.min(axis=0).tolist(), values.max(axis=0).tolist(), strict=True))
    grid = [range(low, high + 1) for low, high in ends]
    if np.prod([len(outputs) for outputs in grid]) > most:
        grid = [range(low, high + 1, max(high - low, 1)) for low, high in ends]
    found = [
        np.exp(-np.abs(np.array(output) - values).sum(axis=1) / scale) for output in product(*grid)
    ]
    return np.unique(np.array(found), axis=0)


def steps(every: NDArray[np.int64], people: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """``[table, pair of states]``: how often one state follows another in the rows of a person."""
    found = np.zeros((len(every), 4), dtype=np.int64)
    for rows in people:
        for before, after in pairwise(rows):
            for t, table in enumerate(every):
                found[t, 2 * table[before] + table[after]] += 1
    return found


def quantile(values: NDArray[np.int64], level: float, grid: Sequence[int], scale: float) -> Floats:
    """``[candidate, table]``: permute-and-flip by rank distance, order by order."""
    probabilities = np.zeros((len(grid), len(values)))
    orders = list(permutations(range(len(grid))))
    for t, row in enumerate(values):
        n = len(row)
        far = [
            max(sum(v < c for v in row) - level * n, level * n - sum(v <= c for v in row), 0)
            for c in grid
        ]
        for order in orders:
            left = 1 / len(orders)
            for candidate in order:
                taken = np.exp((min(far) - far[candidate]) / scale)
                probabilities[candidate, t] += left * taken
                left *= 1 - taken
    return probabilities


def leak(
    every: NDArray[np.int64], probabilities: Floats, releases: Sequence[Noisy], *, most: int = 16
) -> float:
    """The largest |log| ratio of the joint probabilities of all outputs, given a row is 0 or 1."""
    return joint_leak(every, probabilities, [likelihoods(every, one, most) for one in releases])


def joint_leak(
    every: NDArray[np.int64], probabilities: Floats, channels: Sequence[Floats]
) -> float:
    """The same for releases given as ``[output, table]``."""
    joint = np.ones((1, len(every)))
    for one in channels:
        joint = (joint[:, None, :] * one[None, :, :]).reshape(-1, len(every))
    worst = 0.0
    for row in range(every.shape[1]):
        given = [np.where(every[:, row] == state, probabilities, 0) for state in (0, 1)]
        zero, one_ = (joint @ (weights / weights.sum()) for weights in given)
        worst = max(worst, float(np.max(np.abs(np.log(zero) - np.log(one_)))))
    return worst


def sums_of(charges: Sequence[tuple[frozenset[int], float]], rows: int) -> list[float]:
    """What each row has lost: the losses of the charges that read it, added up."""
    return [sum(loss for read, loss in charges if row in read) for row in range(rows)]
