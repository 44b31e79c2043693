"""Random priors whose numbers sit where float64 is about to end."""

from typing import Any

import numpy as np

from takifugu._core.numeric import LEAST, Floats
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField

TINY = (1e-16, 3e-16, 1e-30, 1e-100, 1e-150, float(LEAST))


def row(size: int, rng: np.random.Generator, *, zeros: bool = True) -> Floats:
    """A distribution: sure, nearly sure, with zeros, with tiny parts, or an ordinary one."""
    kind = int(rng.integers(5))
    if kind == 0 and zeros:
        law = np.zeros(size)
        law[rng.integers(size)] = 1.0
        return law
    law = rng.dirichlet(np.ones(size))
    law = np.maximum(law, 1e-3)
    if kind in (1, 2):
        for place in rng.permutation(size)[: rng.integers(1, size)]:
            law[place] = rng.choice(TINY)
    if kind in (2, 3) and zeros and size > 1:
        law[rng.permutation(size)[: rng.integers(1, size)]] = 0.0
    law = law / law.sum()
    return np.where((law > 0) & (law < LEAST), LEAST, law)


def matrix(size: int, rng: np.random.Generator) -> Floats:
    """A transition matrix of such rows, now and then periodic."""
    if rng.integers(6) == 0:
        turn = np.eye(size)[rng.permutation(size)]
        tiny = float(rng.choice(TINY))
        return turn if rng.integers(2) else turn * (1 - (size - 1) * tiny) + (1 - turn) * tiny
    return np.stack([row(size, rng) for _ in range(size)])


def network(rng: np.random.Generator) -> BayesianNetwork:
    """A network of three or four nodes with two or three values."""
    count = int(rng.integers(3, 5))
    sizes = [int(rng.integers(2, 4)) if count == 3 else 2 for _ in range(count)]
    parents: list[tuple[str, ...]] = []
    tables = []
    for v in range(count):
        above = sorted(rng.permutation(v)[: rng.integers(0, min(v, 2) + 1)].tolist())
        shape = tuple(sizes[p] for p in above)
        table = np.array([row(sizes[v], rng) for _ in range(int(np.prod(shape)))])
        parents.append(tuple(f"v{p}" for p in above))
        tables.append(table.reshape(*shape, sizes[v]))
    return BayesianNetwork(
        tuple(f"v{v}" for v in range(count)),
        tuple(tuple(range(size)) for size in sizes),
        tuple(parents),
        tuple(tables),
    )


def weights(shape: tuple[int, ...], rng: np.random.Generator, *, zeros: bool) -> Floats:
    """A table of weights from 1e-150 to 1e150, most of them ordinary."""
    table = np.exp(rng.normal(size=shape))
    wild = rng.random(shape) < rng.choice([0.0, 0.3])
    spread = 10.0 ** rng.choice([-150, -100, -30, 30, 100, 150], size=shape)
    table = np.where(wild, spread, table)
    if zeros:
        table = np.where(rng.random(shape) < 0.15, 0.0, table)
    if not table.any():
        table.flat[0] = 1.0
    return table


def field(rng: np.random.Generator, *, zeros: bool = True) -> MarkovRandomField:
    """A field on three or four nodes with wild weights."""
    count = int(rng.integers(3, 5))
    edges = [(i, j) for i in range(count) for j in range(i) if rng.random() < 0.6] or [(1, 0)]
    return MarkovRandomField(
        tuple(range(count)),
        ((0, 1),) * count,
        tuple(weights((2,), rng, zeros=False) for _ in range(count)),
        tuple(edges),
        tuple(weights((2, 2), rng, zeros=zeros) for _ in edges),
    )


def attractive(rng: np.random.Generator) -> MarkovRandomField:
    """An attractive field of zeros and ones with fields and couplings of up to ±300."""
    count = int(rng.integers(2, 6))
    size = float(rng.choice([1, 10, 100, 300]))
    coupling = {
        (i, j): float(rng.uniform(0, size))
        for i in range(count)
        for j in range(i)
        if rng.random() < 0.7
    }
    return MarkovRandomField.ising(
        {i: float(rng.uniform(-size, size)) for i in range(count)}, coupling
    )


def tables(model: Any) -> tuple[list[int], list[tuple[tuple[int, ...], Floats]]]:
    """How many values each entry of a model has, and its tables."""
    sizes = [len(states) for states in model.states]
    return sizes, [(factor.scope, factor.table) for factor in model.factors()]


def interval_chain(rng: np.random.Generator) -> tuple[IntervalMarkovChain, Floats]:
    """Intervals, and a member of the set."""
    member = matrix(int(rng.integers(2, 4)), rng)
    loose = float(rng.choice([0.0, 0.1, 0.5]))
    lower = np.where(rng.random(member.shape) < 0.2, 0.0, member * (1 - loose))
    upper = np.minimum(member * (1 + loose) + 1e-15 * (member > 0), 1.0)
    return IntervalMarkovChain(lower, upper), member
