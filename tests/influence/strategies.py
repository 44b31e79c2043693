"""Random small networks and fields."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.priors import Name
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField


def network(
    entries: Sequence[Name],
    states: Sequence[Sequence[Name]],
    parents: Sequence[Sequence[Name]],
    *tables: ArrayLike,
) -> BayesianNetwork:
    """A network from plain lists."""
    return BayesianNetwork(
        tuple(entries),
        tuple(map(tuple, states)),
        tuple(map(tuple, parents)),
        tuple(np.array(table, dtype=np.float64) for table in tables),
    )


WEIGHTS = st.sampled_from([0.0, 1.0, 1.0, 2.0, 3.0, 5.0, 17.0])
POSITIVE = st.sampled_from([1.0, 2.0, 3.0, 5.0, 17.0, 100.0])


@st.composite
def networks(draw: st.DrawFn, *, zeros: bool = True, most: int = 5) -> BayesianNetwork:
    """Networks of 3 nodes or more with 2 or 3 values, up to two parents, with zeros or without."""
    n = draw(st.integers(3, most))
    sizes = [draw(st.integers(2, 3)) for _ in range(n)]
    parents, tables = [], []
    for v in range(n):
        above = draw(st.lists(st.integers(0, v - 1), max_size=2, unique=True)) if v else []
        shape = (*(sizes[p] for p in above), sizes[v])
        cells = int(np.prod(shape))
        weights = draw(st.lists(WEIGHTS if zeros else POSITIVE, min_size=cells, max_size=cells))
        table = np.array(weights).reshape(shape)
        table[..., 0] += ~table.any(axis=-1)
        parents.append(tuple(f"v{p}" for p in above))
        tables.append(table / table.sum(axis=-1, keepdims=True))
    return BayesianNetwork(
        tuple(f"v{v}" for v in range(n)),
        tuple(tuple(f"s{k}" for k in range(size)) for size in sizes),
        tuple(parents),
        tuple(tables),
    )


@st.composite
def fields(draw: st.DrawFn, *, zeros: bool = False, most: int = 5) -> MarkovRandomField:
    """Fields of 2 nodes or more with 2 or 3 values and weights on random edges.

    With zeros some weights of pairs are 0, but never where both values are the first.
    """
    n = draw(st.integers(2, most))
    sizes = [draw(st.integers(2, 3)) for _ in range(n)]
    pairs = [(i, j) for i in range(n) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True))

    def table(*shape: int) -> Floats:
        count = int(np.prod(shape))
        kind = WEIGHTS if zeros and len(shape) > 1 else POSITIVE
        found = np.array(draw(st.lists(kind, min_size=count, max_size=count))).reshape(shape)
        found.flat[0] = found.flat[0] or 1.0
        return found

    return MarkovRandomField(
        tuple(range(n)),
        tuple(tuple(range(size)) for size in sizes),
        tuple(table(size) for size in sizes),
        tuple(edges),
        tuple(table(sizes[i], sizes[j]) for i, j in edges),
    )


@st.composite
def attractive(draw: st.DrawFn, *, most: int = 6) -> MarkovRandomField:
    """Ising fields with couplings of 0 or more."""
    n = draw(st.integers(2, most))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True))
    field = {i: draw(st.floats(-3, 2)) for i in range(n)}
    return MarkovRandomField.ising(field, {edge: draw(st.floats(0, 2.5)) for edge in edges})
