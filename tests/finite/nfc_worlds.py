"""Small worlds for the tests of the necessary condition, by hand and by hypothesis."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.finite import FiniteMechanism, World
from takifugu.priors import Explicit, OneOf, SecretPair, Universe, both_ways


@dataclass(frozen=True)
class Problem:
    """A world of two secrets with its parts at hand: what the oracle needs."""

    world: World
    mechanisms: tuple[FiniteMechanism, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    @property
    def table(self) -> list[list[float]]:
        """``[output][dataset]`` of all mechanisms."""
        return [list(row) for m in self.mechanisms for row in m.likelihood.T.tolist()]

    @property
    def prior(self) -> list[float]:
        """The first prior."""
        return [float(x) for x in self.world.weights[0]]


def problem(
    tables: list[list[list[float]]], prior: list[float], left: int, *, reverse: bool = True
) -> Problem:
    """The first ``left`` datasets have secret s, the others s′; a table per mechanism."""
    n = len(prior)
    universe = Universe(tuple(f"D{i}" for i in range(n)))
    pair = SecretPair(OneOf("s", universe.datasets[:left]), OneOf("s′", universe.datasets[left:]))
    pairs = both_ways([pair]) if reverse else (pair,)
    world = World(universe, (Explicit(universe, np.array(prior), "theta"),), pairs)
    mechanisms = tuple(
        FiniteMechanism(universe, np.array(table), name=f"M{i}") for i, table in enumerate(tables)
    )
    return Problem(world, mechanisms, tuple(range(left)), tuple(range(left, n)))


@st.composite
def laws(draw: st.DrawFn, size: int, *, zeros: bool = False, most: int = 9) -> list[float]:
    """A distribution over ``size`` places, of small whole numbers."""
    parts = draw(st.lists(st.integers(0 if zeros else 1, most), min_size=size, max_size=size))
    if not any(parts):
        parts[draw(st.integers(0, size - 1))] = 1
    return [part / sum(parts) for part in parts]


@st.composite
def problems(
    draw: st.DrawFn, *, zeros: bool = False, left: int = 2, right: int = 3, outputs: int = 3
) -> Problem:
    """One prior, up to ``left`` and ``right`` datasets, one or two mechanisms."""
    a, b = draw(st.integers(1, left)), draw(st.integers(1, right))
    tables = [
        [draw(laws(size, zeros=zeros)) for _ in range(a + b)]
        for size in draw(st.lists(st.integers(2, outputs), min_size=1, max_size=2))
    ]
    return problem(tables, draw(laws(a + b)), a)


def apart() -> Problem:
    """D0 hides between D1 and D2: harmless once, not twice (ε = 0 and log 5/3)."""
    return problem([[[0.5, 0.5], [0.1, 0.9], [0.9, 0.1]]], [0.5, 0.25, 0.25], 1, reverse=False)


def twins() -> Problem:
    """Every dataset has a twin with the other secret, but the priors of the twins differ."""
    return problem([[[0.25, 0.75], [0.5, 0.5]] * 2], [0.25, 0.25, 0.45, 0.05], 2)


def random_laws(rng: np.random.Generator, *shape: int) -> Floats:
    """Distributions along the last axis, some of them close to the corners."""
    power = rng.choice([0.5, 1.0, 4.0], size=(*shape[:-1], 1))
    draws = rng.exponential(size=shape) ** power + 1e-12
    return np.asarray(draws / draws.sum(axis=-1, keepdims=True))
