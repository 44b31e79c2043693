"""Random finite worlds for property tests: universes, priors, mechanisms, secrets."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from takifugu.finite import FiniteMechanism, World
from takifugu.priors import (
    Explicit,
    OneOf,
    SecretPair,
    Tables,
    Universe,
    both_ways,
    entry_pairs,
)


def laws(
    size: int, *, zeros: bool = True, smallest: float = 1e-6, positive: Sequence[int] = ()
) -> st.SearchStrategy[list[float]]:
    """Distributions on ``size`` points; the points in ``positive`` are given a probability."""
    probability = st.floats(smallest, 1.0)
    some = st.one_of(st.just(0.0), probability) if zeros else probability
    places = [probability if i in positive else some for i in range(size)]
    return st.tuples(*places).filter(any).map(lambda w: [x / sum(w) for x in w])


def universes(max_size: int = 6) -> st.SearchStrategy[Universe]:
    """Universes of 2 to ``max_size`` datasets without any structure."""
    return st.integers(2, max_size).map(lambda n: Universe(tuple(f"d{i}" for i in range(n))))


@st.composite
def tables(draw: st.DrawFn, *, max_entries: int = 3, max_values: int = 3) -> Tables:
    """Tables over a few entries, which belong to at most two records."""
    entries = draw(st.integers(1, max_entries))
    sizes = draw(st.lists(st.integers(2, max_values), min_size=entries, max_size=entries))
    owners = draw(st.lists(st.sampled_from(["ann", "bob"]), min_size=entries, max_size=entries))
    return Tables.of(
        {f"e{i}": tuple(range(n)) for i, n in enumerate(sizes)},
        records={f"e{i}": owner for i, owner in enumerate(owners)},
    )


@st.composite
def mechanisms(
    draw: st.DrawFn,
    universe: Universe,
    *,
    min_outputs: int = 1,
    max_outputs: int = 4,
    zeros: bool = True,
    name: str = "random",
) -> FiniteMechanism:
    """Any table of likelihoods; sometimes rows repeat, sometimes columns are proportional."""
    outputs = draw(st.integers(min_outputs, max_outputs))
    rows = draw(st.lists(laws(outputs, zeros=zeros), min_size=1, max_size=len(universe)))
    table = [rows[i % len(rows)] for i in range(len(universe))]
    if draw(st.booleans()):
        table = [[row[0] / 4, row[0] * 3 / 4, *row[1:]] for row in table]
    return FiniteMechanism(universe, np.array(table), name=name)


@st.composite
def worlds(
    draw: st.DrawFn, *, max_datasets: int = 6, max_priors: int = 2, zeros: bool = True
) -> World:
    """Two or three disjoint secrets over a few datasets, each allowed by every prior."""
    universe = draw(universes(max_datasets))
    secrets = draw(st.integers(2, min(3, len(universe))))
    labels = list(range(secrets)) + draw(
        st.lists(
            st.integers(0, secrets),  # the last label belongs to no secret
            min_size=len(universe) - secrets,
            max_size=len(universe) - secrets,
        )
    )
    named = [
        OneOf(f"s{s}", tuple(d for d, x in zip(universe.datasets, labels, strict=True) if x == s))
        for s in range(secrets)
    ]
    pairs = both_ways(SecretPair(named[0], other) for other in named[1:])
    law = laws(len(universe), zeros=zeros, positive=range(secrets))
    priors = draw(st.lists(law, min_size=1, max_size=max_priors))
    return World(
        universe,
        tuple(Explicit(universe, np.array(p), f"prior {i}") for i, p in enumerate(priors)),
        pairs,
    )


@st.composite
def table_worlds(draw: st.DrawFn, *, max_entries: int = 3, max_values: int = 2) -> World:
    """Tables with their entry pairs under one prior that allows everything."""
    universe = draw(tables(max_entries=max_entries, max_values=max_values))
    prior = Explicit(universe, np.array(draw(laws(len(universe), zeros=False))))
    return World(universe, (prior,), entry_pairs(universe))
