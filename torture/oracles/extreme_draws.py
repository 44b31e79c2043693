"""Random numbers with a bias to where floating point, proofs and algorithms end."""

import numpy as np
from numpy.typing import NDArray

from takifugu._core.numeric import LEAST
from torture.oracles.comparison import Rng

Floats = NDArray[np.float64]
TINY = (2.0**-53, 1e-16, 3e-16, 1e-30, 1e-100, 1e-150, float(LEAST))
REFUSED = 1e-300  # a probability that a prior may refuse: it is below what products allow


def epsilon(rng: Rng) -> float:
    """A loss from 1e-300 to 1e3, half of them ordinary."""
    kind = rng.random()
    if kind < 0.5:
        return float(np.exp(rng.uniform(np.log(0.02), np.log(3))))
    if kind < 0.6:
        return float(rng.choice([1e-300, 1e-200, 1e-100, 1e-30]))
    if kind < 0.75:
        return float(10.0 ** rng.uniform(-16, -2))
    if kind < 0.9:
        return float(rng.uniform(3, 30))
    return float(rng.choice([30.0, 100.0, 500.0, 1e3]))


def ordinary_epsilon(rng: Rng) -> float:
    """A loss that people use, or one that is a little larger or smaller."""
    return float(np.exp(rng.uniform(np.log(0.001), np.log(8))))


def law(rng: Rng, size: int, *, zeros: bool = True) -> list[float]:
    """A distribution: sure, nearly sure, with zeros, with tiny numbers; half of them ordinary."""
    kind = int(rng.integers(12))
    plain = np.maximum(rng.dirichlet(np.ones(size)), 1e-4)
    if kind == 0 and zeros:
        plain = np.eye(size)[rng.integers(size)]
    elif kind == 1:
        plain = np.full(size, float(rng.choice(TINY)))
        plain[rng.integers(size)] = 1.0
    elif kind == 2 and zeros and size > 1:
        plain[rng.permutation(size)[: rng.integers(1, size)]] = 0.0
    elif kind in (3, 4) and size > 1:
        for place in rng.permutation(size)[: rng.integers(1, size)]:
            plain[place] = float(rng.choice(TINY))
    elif kind == 5 and rng.random() < 0.1:
        plain[rng.integers(size)] = REFUSED
    elif kind == 6:
        plain = rng.dirichlet(np.full(size, 0.2)) + 1e-9
    elif kind == 7:
        plain = np.ones(size)
    found = plain / plain.sum()
    return _raised(found).tolist()  # type: ignore[no-any-return]


def rows(rng: Rng, size: int, *, zeros: bool = True) -> list[list[float]]:
    """A transition matrix: periodic, sticky, with equal or nearly equal rows, or any rows."""
    kind = int(rng.integers(10))
    if kind == 0:
        turn = np.eye(size)[rng.permutation(size)]
        tiny = float(rng.choice(TINY))
        nearly = turn * (1 - (size - 1) * tiny) + (1 - turn) * tiny
        return (turn if zeros and rng.random() < 0.5 else nearly).tolist()  # type: ignore[no-any-return]
    if kind == 1:
        return [law(rng, size, zeros=zeros)] * size
    table = np.array([law(rng, size, zeros=zeros) for _ in range(size)])
    if kind == 2:
        stay = float(rng.choice([0.5, 0.9, 0.999, 1 - 1e-9]))
        table = stay * np.eye(size) + (1 - stay) * table
    elif kind == 3:
        near = float(rng.choice([1e-3, 1e-9, 1e-15]))
        table = (1 - near) * table[[0] * size] + near * table
    table = table / table.sum(axis=1, keepdims=True)
    return _raised(table).tolist()  # type: ignore[no-any-return]


def length(rng: Rng, most: int) -> int:
    """How many entries: from 2, as often below as above the geometric middle."""
    return int(np.exp(rng.uniform(np.log(2), np.log(most + 1))))


def _raised(found: Floats) -> Floats:
    """Nothing just below what a prior takes: that would only be refused."""
    return np.where((found > 0) & (found < LEAST) & (found != REFUSED), LEAST, found)
