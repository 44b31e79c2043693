"""Parts of a chain's recursion: what is named worst, what rows are taken for, fixed points."""

import math
from itertools import permutations, product
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog

from takifugu.errors import TooLarge
from takifugu.numeric import Floats
from takifugu.translation.chain import chain_losses as module
from takifugu.translation.chain import fixed_point as solving
from takifugu.translation.chain import transport_steps
from takifugu.translation.chain.chain_losses import _LawWalk, chain_losses
from takifugu.translation.chain.entry_laws import Law, law_slack, row_slack
from takifugu.translation.chain.fixed_point import (
    FixedPoint,
    constant_cost,
    fixed_point,
    fixed_rows,
)
from takifugu.translation.chain.transport_steps import bound, closed, off_diagonal
from tests.oracles.transport import loss_by_potentials
from tests.raising import raises

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53
ROWS = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.35, 0.4]])
COST = np.array([[0.0, 0.2, 0.35], [0.3, 0.0, 0.15], [0.25, 0.4, 0.0]])
TWO = np.array([[0.7, 0.3], [0.2, 0.8]])


@pytest.mark.parametrize("start", [None, [0.5, 0.0, 0.5]])
def test_the_worst_entry_and_pair_are_named(start: list[float] | None) -> None:
    losses = chain_losses(ROWS, [0.2, 0.5, 0.1, 0.9, 0.3], start=start)
    entry, x, y = losses.worst
    tables = [losses.at(i) for i in range(5)]
    assert tables[entry][x, y] == max(table.max() for table in tables) == losses.loss
    assert losses.by_entry.tolist() == [table.max() for table in tables]
    assert x != y and entry == 3


def test_what_is_too_small_to_matter_depends_on_all_that_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Below e^{−S}·2⁻⁶⁰/m, with S the sum of the dearest changes of all entries."""
    faint = list[float]()

    class Walk(_LawWalk):
        def __init__(self, law: Law, faint_below: float) -> None:
            faint.append(faint_below)
            super().__init__(law, faint_below)

    monkeypatch.setattr(module, "_LawWalk", lambda law, faint: Walk(law, faint))
    chain_losses(ROWS, [0.2, 0.5, 0.1, 0.9, 0.3], start=[0.5, 0.2, 0.3])
    chain_losses(ROWS, [200.0, 500.0], start=[0.5, 0.2, 0.3])
    assert faint[0] == pytest.approx(math.exp(-2.0) * 2.0**-60 / 3, rel=1e-12, abs=0.0)
    assert faint[1] == pytest.approx(math.exp(-300.0) * 2.0**-60 / 3, rel=1e-12, abs=0.0)


def test_rows_and_laws_pay_for_what_was_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "UNIT", 0.125)
    walk = _LawWalk(Law.of(np.array([0.5, 0.2, 0.3])), faint=0.0)
    walk.along(ROWS, COST, 1)
    assert walk.stretches[0].slack == pytest.approx(walk.laws[0].slack + 0.125, rel=1e-12)
    assert walk.laws[1].slack == pytest.approx(walk.laws[1].law.slack + 0.125, rel=1e-12)


def test_a_stationary_chain_pays_for_its_law_on_the_way_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walked = list[Any]()

    def walk(stretches: Any, size: int) -> Any:
        walked.append([(one.rows, one.cost, one.slack, one.count) for one in stretches])
        return WALK(stretches, size)

    monkeypatch.setattr(module, "_walk", walk)
    losses = chain_losses(ROWS, [0.2, 0.2, 0.5, 0.1])
    ahead, behind = walked
    assert [(one[2], one[3]) for one in ahead] == [(row_slack(3), 1)] * 2 + [(row_slack(3), 1)]
    assert [one[1].max() for one in ahead] == [0.1, 0.5, 0.2]
    assert [(one[2], one[3]) for one in behind] == [(law_slack(3), 2), (law_slack(3), 1)]
    assert [one[1].max() for one in behind] == [0.2, 0.5]
    assert all((one[0] == ahead[0][0]).all() for one in ahead)
    law = losses.laws[0].law.given(np.ones(3, dtype=np.bool_))
    assert law @ ROWS == pytest.approx(law) and losses.laws[0].slack == law_slack(3)
    for one in behind:
        assert one[0] == pytest.approx((law[:, None] * ROWS / law).T)
    assert losses.law_at.tolist() == losses.possible_at.tolist() == [0] * 4
    assert len(losses.laws) == len(losses.possible) == 1 and losses.possible[0].all()


WALK = module._walk


def test_nothing_charged_is_nothing_to_solve() -> None:
    for size in (1, 3):
        nothing = np.zeros((size, size))
        found = fixed_point(fixed_rows(np.eye(size)), nothing, slack=0.5)
        assert found.cost is nothing and found.couplings is None
        assert not found.upper.any() and not found.lower.any()
        assert (found.steps, found.solved) == (0, 0)
    # one state has no secret, whatever is charged
    assert fixed_point(fixed_rows(np.eye(1)), np.ones((1, 1)), slack=0.5).upper.tolist() == [[0.0]]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls = list[int]()
    improve = transport_steps.improve

    def counting(*given: Any, **more: Any) -> Any:
        calls.append(1)
        return improve(*given, **more)

    monkeypatch.setattr(solving, "improve", counting)
    return calls


@pytest.mark.parametrize("slack", [0.0, 0.0625])
def test_a_fixed_point_is_proven_by_its_flows(
    slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step from it, with the slack of its rows on top, leads to no more."""
    calls = counted(monkeypatch)
    found = fixed_point(fixed_rows(ROWS), COST, slack=slack, with_lower=False)
    assert found.solved == len(calls) > 0 and found.cost is COST
    assert not found.lower.any() and found.steps == 0
    assert found.couplings is not None
    cost = closed(COST + found.upper)
    proven = bound(ROWS, ROWS, cost, found.couplings) + slack * off_diagonal(3)
    assert (proven <= found.upper).all() and (np.diag(found.upper) == 0).all()
    value = np.zeros((3, 3))
    for _ in range(14):
        charged = closed(COST + value)
        value = np.array(
            [
                [loss_by_potentials(p, q, charged) + slack * (x != y) for y, q in enumerate(ROWS)]
                for x, p in enumerate(ROWS)
            ]
        )
    assert (value <= found.upper + 1e-7).all()  # it rises to the fixed point
    assert found.upper.max() <= value.max() * (1 + 2e-3) + slack
    for x, y in permutations(range(3), 2):
        assert loss_by_potentials(ROWS[x], ROWS[y], cost) + slack <= found.upper[x, y] + 1e-9


def two_state_sides(steps: int) -> Floats:
    """``[x, y]``: what so many steps lose, by the closed form."""
    value = np.zeros((2, 2))
    for _ in range(steps):
        after = np.zeros((2, 2))
        for x, y in ((0, 1), (1, 0)):
            gain = math.expm1(0.5 + value[x, y])
            after[x, y] = math.log((1 + gain * TWO[x, x]) / (1 + gain * TWO[y, x]))
        value = after
    return value


def test_two_states_from_both_sides() -> None:
    cost, true = off_diagonal(2, 0.5), two_state_sides(500)
    for tolerance in (1e-2, 1e-5):
        found = fixed_point(fixed_rows(TWO), cost, slack=0.0, tolerance=tolerance)
        assert (true <= found.upper * (1 + 1e-13) + 1e-13).all()
        assert found.upper.max() <= true.max() * (1 + tolerance)
        assert (found.lower <= two_state_sides(found.steps) * (1 + 1e-12)).all()
        assert found.lower.max() * (1 + tolerance) >= true.max() and found.steps > 2
    above = np.array([[0.0, 2.0], [0.5, 0.0]])
    raised = fixed_point(fixed_rows(TWO), cost, slack=0.0, above=above)
    assert (raised.upper >= above).all() and raised.upper[0, 1] <= 2.0 * (1 + 1e-2)
    free = fixed_point(fixed_rows(TWO), 0.0 * cost, slack=0.0, above=above)  # it only fades
    assert (free.upper >= above).all() and free.couplings is not None


def test_where_a_search_begins_changes_nothing_else() -> None:
    cost, free = off_diagonal(2, 0.5), np.zeros((2, 2))
    plain = fixed_point(fixed_rows(TWO), cost, slack=0.0)
    starts = [
        fixed_point(fixed_rows(TWO), cost / 2, slack=0.0),
        FixedPoint(cost, solving.unbounded(2), free, 0, None, 9),
        FixedPoint(free, solving.unbounded(2), free, 0, plain.couplings, 9),
    ]
    for start in starts:
        found = fixed_point(fixed_rows(TWO), cost, slack=0.0, start=start)
        assert found.upper == pytest.approx(plain.upper, rel=2e-3)
        assert found.cost is cost and found.couplings is not None


def test_without_a_bound_there_is_no_proof() -> None:
    found = fixed_point(fixed_rows(np.eye(2)), off_diagonal(2, 0.5), slack=0.0)
    assert found.upper.tolist() == [[0.0, np.inf], [np.inf, 0.0]] and found.couplings is None
    assert np.isfinite(found.lower).all() and found.lower[0, 1] <= 0.5 * found.steps


def test_one_cost_for_all_moves_is_that_of_the_best_set() -> None:
    """Every set of states that a mechanism may favour; the rounding on top is small but there."""
    rng = np.random.default_rng(6)
    rows = rng.dirichlet(np.ones(4), 5) * (rng.random((5, 4)) < 0.8)
    rows = rows / rows.sum(axis=1, keepdims=True)
    for alpha in (1e-3, 0.7, 9.0):
        found = constant_cost(rows, alpha)
        for x, y in product(range(5), repeat=2):
            with mpmath.workdps(30):
                gain = mpmath.expm1(alpha)
                best = max(
                    (1 + gain * mpmath.fsum(rows[x][chosen]))
                    / (1 + gain * mpmath.fsum(rows[y][chosen]))
                    for chosen in map(np.array, product((False, True), repeat=4))
                )
                true = float(mpmath.log(best))
            if x == y:
                assert found[x, y] == 0.0
            else:
                assert true + 20 * UNIT <= found[x, y] <= true + (60 + 16 * true) * UNIT


def test_gains_beyond_floats_are_not_computed_with() -> None:
    found = constant_cost(TWO, 700.0)
    assert found[0, 1] == pytest.approx(math.log(0.7 / 0.2))
    assert constant_cost(TWO, 700.5).tolist() == [[0.0, 700.5], [700.5, 0.0]]


def test_the_least_of_all_that_was_proven_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that goes astray does not lose what it has."""
    cost = off_diagonal(2, 0.5)
    near = fixed_point(fixed_rows(TWO), cost, slack=0.0)
    start = FixedPoint(cost, 1.25 * near.upper, 0 * cost, 0, near.couplings, 1)
    monkeypatch.setattr(solving, "ROUNDS", 3)
    for factors in ((2.0, 3.0), (0.9, 2.0), (2.0, 0.9)):
        ways = iter((*factors, 1.0))
        monkeypatch.setattr(solving, "_sweep", lambda *_, w=ways: (next(w) * start.upper, 0.5))
        found = fixed_point(fixed_rows(TWO), cost, slack=0.0, start=start, with_lower=False)
        assert found.upper == pytest.approx(min(1.0, *factors) * start.upper)


def test_a_loss_that_happens_is_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = closed(COST)
    _, couplings = transport_steps.improve(ROWS, ROWS, cost, guess=np.zeros((3, 3)))
    plain = transport_steps.follow(ROWS, ROWS, cost, couplings, lower=False)
    for x, y in permutations(range(3), 2):
        assert plain[x, y] == pytest.approx(loss_by_potentials(ROWS[x], ROWS[y], cost), abs=1e-7)
    monkeypatch.setattr(transport_steps, "UNIT", 2.0**-12)
    lower = transport_steps.follow(ROWS, ROWS, cost, couplings, lower=True)
    apart = off_diagonal(3) > 0
    lowered = (plain - lower)[apart] / (1 + plain[apart])
    assert lowered == pytest.approx(8 * (3 + 8) * 2.0**-12)
    assert not np.diag(lower).any() and not np.diag(plain).any()
    monkeypatch.setattr(transport_steps, "UNIT", 0.25)
    assert not transport_steps.follow(ROWS, ROWS, cost, couplings, lower=True).any()
    assert (transport_steps.follow(ROWS, ROWS, cost, couplings, lower=False) == plain).all()


def test_closures_and_gains_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = np.array([[0.0, 0.2, 0.9], [0.3, 0.0, 0.15], [0.25, 0.8, 0.0]])
    shortest = np.array([[0.0, 0.2, 0.35], [0.3, 0.0, 0.15], [0.25, 0.45, 0.0]])
    assert closed(cost) == pytest.approx(shortest, rel=1e-14) and (closed(cost) >= shortest).all()
    assert cost[0, 2] == 0.9  # what was given is not written to
    assert transport_steps.gains(cost) == pytest.approx(np.exp(cost), rel=1e-14)
    monkeypatch.setattr(transport_steps, "UNIT", 2.0**-10)
    apart = off_diagonal(3) > 0
    for found, true, units in (
        (closed(cost), shortest, 6),
        (transport_steps.gains(cost), np.exp(cost), 8),
    ):
        assert found[apart] == pytest.approx(true[apart] * (1 + units * 2.0**-10), rel=1e-9)
        assert np.diag(found).tolist() == np.diag(true).tolist()


def test_only_the_bound_from_below_is_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps propose; what is claimed from below is admissible at each of its steps."""
    cost, flags = off_diagonal(2, 0.5), list[bool]()
    follow = transport_steps.follow

    def seen(*given: Any, lower: bool) -> Floats:
        flags.append(lower)
        return follow(*given, lower=lower)

    monkeypatch.setattr(solving, "follow", seen)
    above = fixed_point(fixed_rows(TWO), cost, slack=0.0, with_lower=False)
    assert flags and not any(flags)
    flags.clear()
    found = fixed_point(fixed_rows(TWO), cost, slack=0.0)
    assert sum(flags) == found.steps and all(flags[-found.steps :])
    assert not any(flags[: -found.steps]) and (found.upper == above.upper).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0])
def test_small_costs_are_solved_as_closely_as_large_ones(scale: float) -> None:
    cost = closed(scale * COST)
    value, couplings = transport_steps.improve(ROWS, ROWS, cost, guess=np.zeros((3, 3)))
    proven = bound(ROWS, ROWS, cost, couplings)
    assert not np.diag(value).any() and not np.diag(proven).any()
    for x, y in permutations(range(3), 2):
        # to first order in the costs it is the cost of moving one row to the other
        moved = linprog(
            cost.ravel() / scale,
            A_eq=np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))]),
            b_eq=np.concatenate([ROWS[x], ROWS[y]]),
        ).fun
        true = loss_by_potentials(ROWS[x], ROWS[y], cost) if scale == 1.0 else scale * moved
        assert value[x, y] == pytest.approx(true, rel=1e-4)
        assert value[x, y] * (1 - 1e-6) <= proven[x, y] <= value[x, y] * (1 + 1e-4)


def test_as_many_states_as_couplings_have_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_steps, "MOST_STATES", 3)
    transport_steps.improve(ROWS, ROWS, COST, guess=np.zeros((3, 3)))
    monkeypatch.setattr(transport_steps, "MOST_STATES", 2)
    with raises(TooLarge, field="states", size=3, limit=2):
        transport_steps.improve(ROWS, ROWS, COST, guess=np.zeros((3, 3)))
