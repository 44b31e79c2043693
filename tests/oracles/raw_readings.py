"""The slow truth about releases on raw cells that are read in one way and later in another.

A cell holds a raw value. A reading makes a state of each raw value; the prior is a chain over the
states of one reading. A release adds numbers of raw values, whatever the reading was when it was
made. Given the states of all cells, raw values are independent of each other and follow any law, so
that the largest leakage is that of a law which puts all mass on one raw value for each cell and
state: a ratio of expectations is largest at a vertex, one law after another. All are tried.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NoisySums:
    """One release: sums over ``rows`` of the numbers of their raw values, with Laplace noise."""

    rows: tuple[int, ...]
    numbers: Mapping[Any, tuple[int, ...]]  # of each raw value, one for each sum
    scale: float


def leakage(
    sequences: Sequence[Sequence[int]],
    start: Sequence[float],
    step: Sequence[Sequence[float]],
    raw: Sequence[Sequence[Any]],
    releases: Sequence[NoisySums],
) -> float:
    """The largest log odds about the state of a row; ``raw[state]`` are the raw values read so.

    Of outputs only the corners are tried, so it is a lower bound where sums have many values.
    """
    rows, states = sum(map(len, sequences)), range(len(raw))
    assert all(raw), "a state without a raw value would be impossible"
    tables = np.array(list(product(states, repeat=rows)))  # [table, row]
    law = np.ones(len(tables))
    for sequence in sequences:
        law *= np.asarray(start)[tables[:, sequence[0]]]
        for before, after in pairwise(sequence):
            law *= np.asarray(step)[tables[:, before], tables[:, after]]
    best = 0.0
    for chosen in product(list(product(*raw)), repeat=rows):  # [row][state]
        likelihood = np.ones((1, len(tables)))
        for release in releases:
            sums = np.zeros((len(tables), len(next(iter(release.numbers.values())))))
            for row in release.rows:
                sums += np.array([release.numbers[one] for one in chosen[row]])[tables[:, row]]
            corners = product(
                *({low, high} for low, high in zip(sums.min(0), sums.max(0), strict=True))
            )
            told = [
                np.exp(-np.abs(np.array(o) - sums).sum(axis=1) / release.scale) for o in corners
            ]
            likelihood = (likelihood[:, None] * np.array(told)[None]).reshape(-1, len(tables))
        for row in range(rows):
            mass = np.array([law[tables[:, row] == s].sum() for s in states])
            seen = np.array([(likelihood * law)[:, tables[:, row] == s].sum(1) for s in states])
            odds = seen[mass > 0] / mass[mass > 0, None]
            best = max(best, float(np.log(odds.max(axis=0) / odds.min(axis=0)).max()))
    return best
