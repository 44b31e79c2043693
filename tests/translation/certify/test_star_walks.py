"""Sides under star costs: what is claimed of a pair is believed only where it is proven."""

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.translation.certify.laws import (
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.certify.stars import StarSide, star_of, within
from takifugu.translation.certify.terminals import TerminalSide
from takifugu.translation.search.star_chains import solve
from tests.oracles.cost_programs import chain_table, pair_loss

PAIRS = np.argwhere(~np.eye(3, dtype=np.bool_))


def side(seed: int, steps: int, *, unbounded: bool = False) -> tuple[StarSide, Floats, Floats]:
    rng = np.random.default_rng(seed)
    rows = transition_rows(rng.dirichlet(np.ones(3), size=3))
    rays = rng.random((2, 3))
    cost = np.asarray(rays[0][:, None] + rays[1][None])
    np.fill_diagonal(cost, 0.0)
    star, slack = star_of(cost), row_slack(3)
    walked = StarSide.of([rows] * steps, [star] * steps, slack=slack, unbounded=unbounded)
    assert walked is not None
    return walked, rows, cost


def truths(rows: Floats, cost: Floats, steps: int) -> Floats:
    """``[pair]``: what so many entries reveal of the one before them."""
    world = chain_table(np.full(3, 1 / 3), [rows] * steps)
    tables = [np.zeros_like(cost), *[cost] * steps]
    return np.array([pair_loss(world, tables, 0, x, y).lower for x, y in PAIRS.tolist()])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("unbounded", [False, True])
def test_no_claim_proves_too_little(seed: int, unbounded: bool) -> None:
    walked, rows, cost = side(seed, 1 if unbounded else 3, unbounded=unbounded)
    true = truths(rows, cost, 3)
    claims = [true * share for share in (-1.0, 0.0, 0.9, 1 - 1e-7, 1.5)]
    claims += [np.full(6, bad) for bad in (np.nan, np.inf, -np.inf, 1e9)]
    for claim in claims:
        assert (walked.upper(PAIRS, claim) >= true - 1e-9).all()
        proven = within([walked, None], np.zeros(6), PAIRS, [claim, np.zeros(6)], 0.9 * true.min())
        assert not proven.any()
    assert not within([walked], np.zeros(6), PAIRS, [1.5 * true], np.nan).any()
    _, above = solve(walked, PAIRS, true)
    if not unbounded:
        assert (above >= true - 1e-9).all() and (above <= true * (1 + 1e-6) + 1e-9).all()


def test_what_is_proven_of_another_chain_proves_nothing_here() -> None:
    walked, rows, cost = side(1, 3)
    other, _, _ = side(2, 3)
    true = truths(rows, cost, 3)
    _, above = solve(other, PAIRS, true)
    assert (walked.upper(PAIRS, above) >= true - 1e-9).all()


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (7,), (6, 1), (1, 6)])
def test_a_claim_about_other_pairs_proves_nothing(shape: tuple[int, ...]) -> None:
    walked, rows, cost = side(0, 3)
    true, claim = truths(rows, cost, 3), np.full(shape, 2.0)
    assert not walked.proves(PAIRS, claim).any()
    assert (walked.upper(PAIRS, 0.01 * claim) >= true - 1e-9).all()
    assert not within([walked, None], np.zeros(6), PAIRS, [claim, np.zeros(6)], 9.0).any()
    assert not within([None, None], np.zeros(6), PAIRS, [np.zeros(6), claim], 9.0).any()


@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (5, 4), (7, 4), (4,), (6, 4, 1)])
def test_a_grid_for_other_pairs_proves_nothing(shape: tuple[int, ...]) -> None:
    _, rows, cost = side(0, 3)
    terminal = TerminalSide(rows, star_of(cost), 3, np.ones(3), stochastic=True)
    assert np.isinf(terminal.upper(PAIRS, np.zeros(shape))[0]).all()
    assert np.isfinite(terminal.upper(PAIRS, np.zeros((6, 4)))[0][:, 0]).all()


def test_flags_that_the_kernel_refutes_make_a_side_unusable() -> None:
    _, rows, cost = side(0, 3)
    star, back = star_of(cost), np.ascontiguousarray(rows.T)
    law = recurrent_law(rows)
    slack = law_slack(3)
    assert TerminalSide(rows, star, 3, np.ones(3), stochastic=True).usable
    assert TerminalSide(back, star, 3, law, steady=True, law_slack=slack).usable
    assert not TerminalSide(back, star, 3, np.ones(3), stochastic=True).usable
    assert not TerminalSide(rows, star, 3, law, stochastic=True).usable
    assert not TerminalSide(rows, star, 3, None, stochastic=True).usable
    assert not TerminalSide(back, star, 3, np.array([0.5, 0.3, 0.2]), steady=True).usable
    assert not TerminalSide(back, star, 3, None, steady=True, law_slack=slack).usable
