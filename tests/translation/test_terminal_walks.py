"""Walks of stars against adversaries who know more: no grid proves too little, a fine one enough.

`tests.oracles.cost_programs` solves the linear program over all datasets, and shares no code.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Floats
from takifugu.priors import MarkovChain
from takifugu.translation import Translation
from takifugu.translation.certify.laws import transition_rows
from takifugu.translation.certify.stars import star_of
from takifugu.translation.certify.terminals import TerminalSide
from takifugu.translation.search.adversary_walks import SettledSides
from tests.oracles.cost_programs import chain_table, known_losses, pair_loss, two_point_starts

HOSTILE = [
    [],
    [np.nan],
    [np.inf, -np.inf, np.nan],
    [-1e9, 1e9],
    [0.5, 0.1, 0.1, -3.0, np.nan, 0.2],
]


def instance(seed: int) -> tuple[Floats, Floats]:
    """Rows of two or three states, some of them with zeros, and a star."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    rows = rng.dirichlet(np.full(k, 0.7), size=k)
    if rng.random() < 0.4:
        rows = np.where((rng.random((k, k)) < 0.3) & ~np.eye(k, dtype=bool), 0.0, rows)
    rows = rows + 1e-4 * np.eye(k)
    up, down = rng.random((2, k)) * float(rng.choice([0.1, 1.0]))
    cost = np.asarray(up[:, None] + down[None, :])
    np.fill_diagonal(cost, 0.0)
    return transition_rows(rows / rows.sum(axis=1, keepdims=True)), cost


def both_sides(rows: Floats, cost: Floats, law: Floats | None, *, known: bool) -> SettledSides:
    star, size = star_of(cost), len(rows)
    after = TerminalSide(rows, star, 2, np.ones(size), known=known, stochastic=True)
    before = TerminalSide(np.ascontiguousarray(rows.T), star, 2, law, known=known)
    return SettledSides(after, before, cost, np.argwhere(~np.eye(size, dtype=np.bool_)))


@pytest.mark.costly
@given(seed=st.integers(0, 2**32 - 1), known=st.booleans())
@settings(max_examples=20, deadline=None)
def test_no_start_loses_more_and_some_start_loses_as_much(seed: int, known: bool) -> None:
    rows, cost = instance(seed)
    sides = both_sides(rows, cost, None, known=known)
    found = sides.losses(3)
    for pair, (x, y) in enumerate(sides.pairs.tolist()):
        largest = np.zeros(3)
        for law in two_point_starts(len(rows), (0.002, 0.1, 0.3, 0.5, 0.7, 0.9, 0.998)):
            world = chain_table(law, [rows] * 2)
            for entry in range(3):
                share = world.sum(axis=tuple(e for e in range(3) if e != entry))
                if min(share[x], share[y]) < 1e-9:
                    continue
                truth = pair_loss(world, [cost] * 3, entry, x, y).lower
                largest[entry] = max(largest[entry], truth)
        assert (largest <= found[pair] + 1e-9).all()
        for points in HOSTILE:
            grid = np.array([points]).reshape(1, -1)
            proven = [
                side.upper(sides.pairs[[pair]], grid)[0][0] for side in (sides.after, sides.before)
            ]
            for entry in range(3):
                assert largest[entry] <= cost[x, y] + proven[0][2 - entry] + proven[1][entry] + 1e-9


@pytest.mark.costly
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_no_known_entry_reveals_more(seed: int) -> None:
    rows, cost = instance(seed)
    law = np.random.default_rng(seed).dirichlet(np.ones(len(rows)))
    sides = both_sides(rows, cost, law, known=True)
    found = sides.losses(3)
    world = chain_table(law, [rows] * 2)
    for pair, (x, y) in enumerate(sides.pairs.tolist()):
        for entry in range(3):
            for solved in known_losses(world, [cost] * 3, entry, x, y).values():
                assert solved.lower <= found[pair, entry] + 1e-9


@pytest.mark.parametrize("bad", [np.nan, -0.1, np.inf])
def test_a_side_that_is_none_proves_nothing(bad: float) -> None:
    star = star_of(0.5 * (1 - np.eye(2)))
    rows = np.array([[0.5, 0.5], [bad, 0.5]])
    for side in (
        TerminalSide(rows, star, 3, None),
        TerminalSide(np.full((2, 3), 0.5), star, 3, None),
        TerminalSide(np.full((2, 2), 0.5), star, 3, np.array([0.5, bad])),
    ):
        assert not side.usable
        assert np.isinf(side.upper(np.array([[0, 1]]), np.array([[0.1, 0.5]]))[0]).all()


def test_many_states_with_an_unknown_start_are_as_close_as_few() -> None:
    rng = np.random.default_rng(4)
    rows = 0.7 * rng.dirichlet(np.full(30, 0.5), size=30) + 0.3 * np.eye(30)
    plain, free = (
        float(Translation(MarkovChain(rows, length=40, start=start)).to_pufferfish(0.1))
        for start in ("stationary", "unknown")
    )
    assert plain <= free * (1 + 1e-9) <= 1.4 * plain
