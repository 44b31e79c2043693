"""Chains within boxes: no member of the set loses more, by the program over all datasets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.priors import IntervalMarkovChain, Secrets
from takifugu.translation.certify.boxes import BoxSide
from takifugu.translation.certify.stars import star_of
from takifugu.translation.models.interval_transport import IntervalTransport
from tests.oracles.cost_programs import chain_table, pair_loss

LENGTH = 3


def boxes(rng: np.random.Generator) -> tuple[Floats, Floats]:
    k = int(rng.integers(2, 4))
    rows = rng.dirichlet(np.full(k, 0.8), size=k)
    width = float(rng.choice([0.0, 0.01, 0.1, 0.3]))
    return np.maximum(rows - width * rng.random((k, k)), 0), np.minimum(
        rows + width * rng.random((k, k)), 1
    )


def vertex(rng: np.random.Generator, low: Floats, high: Floats) -> Floats:
    """A member whose rows are at the corners of their boxes: filled up in a random order."""
    rows = low.copy()
    for row, most in zip(rows, high, strict=True):
        for u in rng.permutation(len(row)):
            row[u] += min(most[u] - row[u], max(1 - row.sum(), 0.0))
    member: Floats = rows / rows.sum(axis=1, keepdims=True)
    return member


@pytest.mark.costly
@given(seed=st.integers(0, 2**32 - 1), start=st.sampled_from(["any", "stationary"]))
@settings(max_examples=25, deadline=None)
def test_no_member_of_the_set_loses_more(seed: int, start: str) -> None:
    rng = np.random.default_rng(seed)
    low, high = boxes(rng)
    states = len(low)
    epsilon = float(rng.choice([0.1, 1.0, 2.0]))
    prior = IntervalMarkovChain(low, high, start=start, length=LENGTH)  # type: ignore[arg-type]
    try:
        found = IntervalTransport(prior, Secrets()).uniform(epsilon).value
    except ValueError:  # a state that may be impossible
        return
    cost = epsilon * (1 - np.eye(states))
    for _ in range(6):
        law = rng.dirichlet(np.full(states, 0.3))
        if start == "stationary":  # what came before is within the boxes as well
            for _ in range(12):
                law = law @ vertex(rng, low, high)
        world = chain_table(law, [vertex(rng, low, high) for _ in range(LENGTH - 1)])
        entry = int(rng.integers(LENGTH))
        share = world.sum(axis=tuple(e for e in range(LENGTH) if e != entry))
        for x, y in np.argwhere(~np.eye(states, dtype=np.bool_)).tolist():
            if min(share[x], share[y]) > 1e-9:
                assert pair_loss(world, [cost] * LENGTH, entry, x, y).lower <= found + 1e-9


def test_the_side_ahead_is_that_of_the_worst_member() -> None:
    rows = np.array([[0.9, 0.1], [0.1, 0.9]])
    prior = IntervalMarkovChain(rows - 0.005, rows + 0.005, start="stationary", length=100)
    assert IntervalTransport(prior, Secrets()).uniform(0.1).value == pytest.approx(
        0.96506, abs=1e-5
    )
    free = IntervalMarkovChain(rows - 0.005, rows + 0.005, length=100)
    assert IntervalTransport(free, Secrets()).uniform(0.1).value < 1.2049


def test_boxes_that_are_none_prove_nothing() -> None:
    star = star_of(0.5 * (1 - np.eye(2)))
    rows = np.full((1, 2, 2), 0.5)
    for below, above in (
        (rows + 0.1, rows),
        (rows * np.nan, rows),
        (rows, rows * np.inf),
        (rows[:, :, :1], rows),
    ):
        side = BoxSide(below, above, star, 3)
        assert not side.usable
        assert np.isinf(side.upper(np.full((2, 2), 0.4))[0, 1])
    caps = np.array([[0.0, np.nan], [-1.0, 0.0]])  # whatever is proposed
    assert (BoxSide(rows, rows, star, 3).upper(caps)[[0, 1], [1, 0]] >= 0).all()
