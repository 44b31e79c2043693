"""The search over all laws of a hull: each part against slow truth, margins wide enough to see."""

import math
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from takifugu.numeric import LEAST, Floats
from takifugu.translation.chain import start_hull
from takifugu.translation.chain.start_hull import StartHull, _Cell, _Search, hull_step, two_point
from takifugu.translation.chain.transport_steps import off_diagonal
from tests.oracles.transport import loss_by_potentials

pytestmark = pytest.mark.nightly

COST = np.array([[0.0, 0.8, 0.5], [0.3, 0.0, 0.6], [0.7, 0.75, 0.0]])
ROWS = np.array([[0.5, 0.375, 0.125], [0.125, 0.625, 0.25], [0.3, 0.2, 0.5]])
WEIGHTS = np.array([[0.2, 0.7, 0.4], [0.9, 0.1, 0.3], [0.5, 0.6, 0.05], [0.35, 0.3, 0.8]])
SPARSE = np.array([[0.6, 0.0, 0.4], [0.3, 0.7, 0.0], [0.2, 0.5, 0.3]])
PARTLY = np.array([[0.6, 0.0, 0.0], [0.3, 0.7, 0.5], [0.0, 0.0, 0.0], [0.0, 0.4, 0.9]])


def given(law: Floats, weights: Floats) -> Floats:
    """``[u]``: the law of the entry before, for the weights of what follows."""
    joint = law * weights
    found: Floats = joint / joint.sum()
    return found


def two_points(delta: float, omega: float) -> float:
    """β(Δ, ω) by the odds that make it: Δ is split evenly."""
    if math.isinf(delta):
        return omega
    a, b = delta / 4, omega / 4
    return 2 * (math.log(math.cosh(a + b)) - math.log(math.cosh(a - b)))


class _Wide(StartHull):
    """A hull whose laws are hardly known."""

    @property
    def slack(self) -> float:
        return 0.0625


def test_laws_a_step_later_sum_to_one_and_know_what_can_happen() -> None:
    rows = np.array([[0.5, 0.25, 0.0], [0.125, 0.25, 0.25], [0.0, 0.0, 1.0]])
    later = StartHull.whole(3).after(rows)
    assert later.laws == pytest.approx(rows / rows.sum(axis=1, keepdims=True))
    assert later.able.tolist() == (rows > 0).tolist() and later.steps == 1
    tiny = np.array([[1.0, 1e-200, 0.0], [0.0, 1.0, 1e-200], [0.0, 0.0, 1.0]])
    lost = StartHull.whole(3).after(tiny).after(tiny)
    assert lost.able.tolist() == np.triu(np.ones((3, 3), dtype=bool)).tolist()
    assert lost.laws[0, 2] == 0.0 and lost.faint and lost.steps == 2
    edge = np.array([[1.0, start_hull.FAINTEST]])
    assert not StartHull(edge, edge > 0).faint and StartHull(edge / 2, edge > 0).faint


@pytest.mark.parametrize("close", [start_hull.CLOSE, None])
@pytest.mark.parametrize(("steps", "size"), [(0, 3), (1, 2), (2, 3)])
def test_what_is_not_known_of_the_laws_comes_on_top(
    steps: int, size: int, close: float | None
) -> None:
    rows, weights = ROWS[:size, :size], WEIGHTS[:, :size]
    cost = COST[:size, :size]
    hull = StartHull.whole(size)
    for _ in range(steps):
        hull = hull.after(rows)
    plain = hull_step(hull, weights, cost, close=close)
    wide = hull_step(_Wide(hull.laws, hull.able, steps), weights, cost, close=close)
    apart = off_diagonal(4)
    assert wide == pytest.approx(np.minimum(plain + 0.0625 * apart, 0.8 * apart), abs=1e-9)
    assert (plain[apart > 0] > 0).all() and plain.max() <= 0.8 + 1e-12


def test_laws_are_tried_one_by_one_only_where_that_is_wanted_and_affordable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = list[tuple[Floats, float]]()

    def cells(_: Any, found: Floats, close: float) -> Floats:
        asked.append((found, close))
        return found / 2

    monkeypatch.setattr(_Search, "cells", cells)
    hull = StartHull.whole(3).after(ROWS)
    loose = hull_step(hull, WEIGHTS, COST, close=None)
    assert not asked
    found = hull_step(hull, WEIGHTS, COST, close=0.125)
    assert found == pytest.approx(loose / 2, abs=1e-9)
    (seen, close) = asked.pop()
    assert seen == pytest.approx(loose, abs=1e-9) and close == 0.125
    hull_step(hull, WEIGHTS, COST)
    assert asked.pop()[1] == start_hull.CLOSE
    assert hull_step(hull, WEIGHTS[:1], COST).tolist() == [[0.0]] and not asked
    monkeypatch.setattr(start_hull, "POINTS", 3)
    hull_step(hull, WEIGHTS, COST)
    assert not asked  # the three vertices alone would take all of it
    monkeypatch.setattr(start_hull, "POINTS", 4)
    hull_step(hull, WEIGHTS, COST)
    assert len(asked) == 1


@pytest.mark.parametrize("weights", [WEIGHTS, PARTLY])
@pytest.mark.parametrize("free", [False, True])
def test_any_law_of_the_first_entry_is_as_bad_as_two_states(weights: Floats, free: bool) -> None:
    """Every pair of states in turn: how far apart their odds are, and what a change costs."""
    cost = COST.copy()
    if free:
        cost[1, 2] = cost[2, 1] = cost[0, 1] = 0.0
    found = start_hull._from_two_states(weights, cost)
    for x, y in product(range(4), repeat=2):
        worst = 0.0
        for a, b in permutations(range(3), 2):
            rows = weights.copy()  # what neither state leads to is taken for the likeliest
            never = (rows[:, a] == 0) & (rows[:, b] == 0)
            rows[never] = rows[int(np.argmax(rows[:, [a, b]].max(axis=1)))]
            above, below = rows[x, a] * rows[y, b], rows[x, b] * rows[y, a]
            if above > below:
                delta = math.log(above / below) if below else math.inf
                worst = max(worst, two_points(delta, cost[a, b]))
        assert found[x, y] == pytest.approx(worst if x != y else 0.0, abs=1e-12)
        assert found[x, y] >= (worst if x != y else 0.0) * (1 - 1e-15)


def test_odds_are_taken_to_be_wider_than_their_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    unit, seen = 2.0**-10, list[tuple[Floats, float]]()

    def kept(delta: Floats, omega: float) -> Floats:
        seen.append((delta, omega))
        return np.zeros_like(delta)

    monkeypatch.setattr(start_hull, "UNIT", unit)
    monkeypatch.setattr(start_hull, "two_point", kept)
    start_hull._from_two_states(WEIGHTS, COST)
    assert [price for _, price in seen] == [0.3, 0.8, 0.7, 0.5, 0.75, 0.6]
    pairs = [(1, 0), (0, 1), (2, 0), (0, 2), (2, 1), (1, 2)]
    for (delta, _), (a, b) in zip(seen, pairs, strict=True):
        for x, y in product(range(4), repeat=2):
            logs = [math.log(WEIGHTS[k, u]) for k in (x, y) for u in (a, b)]
            true = logs[0] - logs[1] - logs[2] + logs[3]
            if true > 1e-9:
                size = unit * sum(abs(one) for one in logs)
                assert true + 4 * size <= delta[x, y] <= true + 16 * size
            elif true < -1e-9:
                assert delta[x, y] == 0.0


@pytest.mark.parametrize("steps", [1, 2])
def test_two_states_of_which_some_weights_are_nothing(steps: int) -> None:
    """No law of the hull loses more than the closed form tells, and one nearly as much."""
    weights = np.array([[0.0, 0.0], [0.7, 0.2], [0.0, 0.5], [0.4, 0.0], [0.3, 0.9]])
    cost = np.array([[0.0, 0.9], [0.4, 0.0]])
    hull = StartHull.whole(2)
    for _ in range(steps):
        hull = hull.after(np.array([[0.8, 0.2], [0.35, 0.65]]))
    found = start_hull._two_states(hull, weights, cost)
    for x, y in product(range(1, 5), repeat=2):
        worst = 0.0
        for share in np.linspace(0, 1, 201):
            law = (1 - share) * hull.laws[0] + share * hull.laws[1]
            p, q = given(law, weights[x]), given(law, weights[y])
            for u in (0, 1):  # the mechanism tells apart u from the other
                gain = math.expm1(cost[u, 1 - u])
                worst = max(worst, math.log((1 + gain * p[u]) / (1 + gain * q[u])))
        assert worst <= found[x, y] + 1e-12 and found[x, y] <= worst * (1 + 1e-4) + 1e-12
        assert (found[x, y] == 0.0) == (x == y)
    assert found[0] == pytest.approx(found[1]) and found[:, 0] == pytest.approx(found[:, 1])
    assert found[0, 1] == found[1, 0] == 0.0  # the second takes the place of what never happens


def test_two_states_of_which_one_is_certain() -> None:
    """A state that no law of the hull leads to is none: only the others have a loss."""
    hull = StartHull(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[True, False]] * 2), 3)
    weights, cost = np.array([[0.0, 0.5], [0.5, 0.5], [0.25, 0.75]]), off_diagonal(2, 0.5)
    found = start_hull._two_states(hull, weights, cost)
    assert found == pytest.approx(np.zeros((3, 3)))


def test_boxes_leave_out_laws_that_a_state_cannot_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = list[tuple[Floats, Floats]]()
    monkeypatch.setattr(start_hull, "robust_rows", lambda low, high: boxes.append((low, high)))
    small = 2.0**-505
    laws = np.array([[0.5, 0.0, 0.5], [0.25, 0.75 - small, small], [0.0, 1.0, 0.0]])
    start_hull.hull_boxes(StartHull(laws, laws > 0, 1), PARTLY)
    ((low, high),) = boxes
    for x in (0, 1, 3):
        rows = [given(law, PARTLY[x]) for law in laws if law @ PARTLY[x] > 0]
        least, most = np.min(rows, axis=0), np.max(rows, axis=0)
        assert low[x] == pytest.approx(np.where(least < LEAST, 0.0, least), rel=1e-14, abs=0.0)
        assert high[x] == pytest.approx(most, rel=1e-14, abs=0.0)
        assert (low[x] <= least).all() and (high[x] >= most).all()
    assert (low[2] == low[0]).all() and (high[2] == high[0]).all()  # it never happens
    boxes.clear()
    only = np.array([[0.5, 0.5 - small, small]])
    start_hull.hull_boxes(StartHull(only, only > 0, 1), np.ones((1, 3)))
    ((low, high),) = boxes
    assert low[0, 2] == 0.0 and high[0, 2] == LEAST


def search_of(hull: StartHull, weights: Floats = PARTLY) -> _Search:
    return _Search(hull, weights, COST, None)


def test_ends_of_an_edge_are_limits_from_inside_it() -> None:
    laws = np.array([[0.6, 0.0, 0.4], [0.0, 0.75, 0.25], [0.2, 0.3, 0.5]])
    search = search_of(StartHull(laws, laws > 0, 1))
    for a, b in permutations(range(3), 2):
        (first, second), (here, there) = search._ends(a, b)
        for end, rows, totals in ((a, first, here), (b, second, there)):
            near = (1 - 1e-9) * laws[end] + 1e-9 * laws[a + b - end]
            for x in (0, 1, 3):
                assert rows[x] == pytest.approx(given(near, PARTLY[x]), abs=1e-7)
                assert totals[x] == pytest.approx(laws[end] @ PARTLY[x], abs=1e-12)
            assert (rows[2] == rows[0]).all() and totals[2] == totals[0]  # it never happens


def cell_of(search: _Search, laws: Floats, found: tuple[Floats, Floats]) -> _Cell:
    rows, totals = start_hull._rows(laws, search._weights)
    return _Cell(
        (laws[0], laws[1]), (rows[0], rows[1]), (totals[0], totals[1]), found, np.zeros((4, 4))
    )


def test_a_cell_loses_what_its_ends_do_and_what_lies_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    laws = np.array([[0.2, 0.3, 0.5], [0.25, 0.4, 0.35]])
    search = search_of(StartHull(laws, laws > 0, 1), WEIGHTS)
    rng = np.random.default_rng(2)
    found = (rng.uniform(0, 0.5, (4, 4)), rng.uniform(0, 0.5, (4, 4)))
    cell = cell_of(search, laws, found)
    upper, omega = search._upper(cell), search._apart(cell.rows)
    shift = [math.log((laws[1] @ w) / (laws[0] @ w)) for w in WEIGHTS]
    for x, y in product(range(4), repeat=2):
        between = two_points(abs(shift[x] - shift[y]), min(omega[x], omega[y]))
        larger = max(found[0][x, y], found[1][x, y])
        assert upper[x, y] == pytest.approx(0.0 if x == y else min(larger + between, 0.8))
        assert x == y or between > 1e-4
    seen = list[Floats]()

    def kept(delta: Floats, least: Floats) -> Floats:
        seen.append(delta)
        return two_point(delta, least)

    monkeypatch.setattr(start_hull, "UNIT", 2.0**-14)
    monkeypatch.setattr(start_hull, "two_point", kept)
    search._upper(cell)
    for x, y in product(range(4), repeat=2):
        assert 0.002 <= seen[-1][x, y] - abs(shift[x] - shift[y]) <= 0.008


def test_ends_that_are_the_same_are_rounded_up_and_nothing_else() -> None:
    laws = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    search = search_of(StartHull(laws, laws > 0, 1), WEIGHTS)
    same = off_diagonal(4, 0.4)
    upper = search._upper(cell_of(search, laws, (same, same)))
    apart = same > 0
    assert (upper[apart] > 0.4).all() and (upper[apart] < 0.4 + 1e-14).all()
    assert not upper[~apart].any()


def test_an_end_that_is_a_limit_bounds_nothing_between() -> None:
    """Where a total is 0 at one end, the odds go through everything."""
    laws = np.array([[0.6, 0.0, 0.4], [0.0, 0.75, 0.25]])
    search = search_of(StartHull(laws, laws > 0, 1))
    (rows, totals), nothing = search._ends(0, 1), np.zeros((4, 4))
    upper = search._upper(_Cell((laws[0], laws[1]), rows, totals, (nothing, nothing), nothing))
    omega = search._apart(rows)
    assert totals[1][0] == totals[1][2] == 0.0
    assert omega[0] == omega[2] == 0.0 and omega[1] > 0 and omega[3] > 0
    assert upper[0, 1] == pytest.approx(0.0, abs=1e-12)  # one side stays, and so does the ratio
    assert 0 < upper[1, 3] < 0.8
    both = _Cell((laws[0], laws[1]), (ROWS[[0, 1, 2, 0]], ROWS[[1, 2, 0, 1]]), totals,
                 (nothing, nothing), nothing)  # fmt: skip
    wide = search._upper(both)
    limits = search._apart(both.rows)
    assert wide[0, 2] == pytest.approx(min(limits[0], limits[2]))
    assert wide[0, 1] == pytest.approx(min(limits[0], limits[1]))


@pytest.mark.parametrize("unit", [None, 2.0**-20])
def test_two_rows_are_apart_by_their_ratio_or_by_what_is_moved(
    unit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if unit is not None:
        monkeypatch.setattr(start_hull, "UNIT", unit)
    search = search_of(StartHull.whole(3).after(ROWS), WEIGHTS)
    one = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [1e-6, 0.4, 0.6 - 1e-6], [0.1, 0.9, 0.0]])
    other = np.array([[0.4, 0.6, 0.0], [0.21, 0.29, 0.5], [1e-3, 0.4, 0.6 - 1e-3], [0.1, 0.8, 0.1]])
    found = search._apart((one, other))
    for x in range(4):
        logs = [
            math.log(p / q) if p and q else math.inf
            for p, q in zip(one[x], other[x], strict=True)
            if p or q
        ]
        by_ratio = two_points(max(logs) - min(logs), 0.8)
        moved = float(np.abs(one[x] - other[x]).sum() / 2)
        by_mass = math.log1p(math.expm1(0.8) * moved)
        true = min(by_ratio, by_mass)
        assert true * (1 - 1e-12) <= found[x] <= true + 200 * (unit or 1e-14)
        if unit is not None:
            assert found[x] >= true + 5 * unit
        assert (by_ratio < by_mass) == (x == 0)
    assert not search._apart((one, one)).any()


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("turned", [False, True])
def test_a_cell_is_cut_where_its_odds_change_by_as_much_on_both_sides(
    far: bool, turned: bool
) -> None:
    small = 1e-12 if far else 0.1
    laws = np.array([[0.2, 0.8 - small, small], [0.25, 0.05, 0.7]])
    laws = laws[::-1].copy() if turned else laws
    weights = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.3, 0.6, 0.2]])
    search = search_of(StartHull(laws, laws > 0, 1), weights)
    rows, totals = search._ends(0, 1)
    found = (off_diagonal(4, 0.25), off_diagonal(4, 0.125))
    cell = _Cell((laws[0], laws[1]), rows, totals, found, np.zeros((4, 4)))
    cell.upper = np.zeros((4, 4))
    cell.upper[0, 1] = 1.0  # the pair that is worst
    left, right = search._split(cell, np.zeros((4, 4)))
    law = left.laws[1]
    share = (law[2] - laws[0, 2]) / (laws[1, 2] - laws[0, 2])
    assert law == pytest.approx((1 - share) * laws[0] + share * laws[1])
    if far:
        assert share == pytest.approx(1 - 1e-3 if turned else 1e-3)
    else:
        assert law[2] ** 2 == pytest.approx(laws[0, 2] * laws[1, 2])
    assert left.laws[0] is cell.laws[0] and right.laws[1] is cell.laws[1]
    assert right.laws[0] is law
    for x in (0, 1, 3):
        assert left.rows[1][x] == pytest.approx(given(law, weights[x]))
        assert left.totals[1][x] == pytest.approx(law @ weights[x])
    assert (left.rows[1][2] == left.rows[1][0]).all()  # it never happens
    assert left.totals[1][2] == left.totals[1][0]
    assert left.rows[0] is cell.rows[0] and right.rows[1] is cell.rows[1]
    assert right.rows[0] is left.rows[1] and right.totals[0] is left.totals[1]
    assert left.totals[0] is cell.totals[0] and right.totals[1] is cell.totals[1]
    assert left.found[0] is cell.found[0] and right.found[1] is cell.found[1]
    assert left.found[1] is right.found[0]
    for x, y in permutations((0, 1, 3), 2):
        true = loss_by_potentials(given(law, weights[x]), given(law, weights[y]), COST)
        assert true - 1e-8 <= left.found[1][x, y] <= true + 1e-6
    for half in (left, right):
        assert half.upper == pytest.approx(search._upper(half))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_law_of_a_hull_with_zeros_loses_more(seed: int) -> None:
    """Sparse rows: ends of edges that are limits, states that follow some laws alone."""
    rng = np.random.default_rng(seed)
    weights = PARTLY[rng.permutation(4)][:, rng.permutation(3)]
    hull = StartHull.whole(3).after(SPARSE[rng.permutation(3)])
    found = hull_step(hull, weights, COST)
    assert (np.diag(found) == 0).all()
    for x, y in permutations(np.flatnonzero(weights.any(axis=1)), 2):
        worst = 0.0
        for a, b in ((0, 1), (0, 2), (1, 2)):
            for share in (1e-6, 0.01, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99, 1 - 1e-6):
                law = (1 - share) * hull.laws[a] + share * hull.laws[b]
                if law @ weights[x] > 0 and law @ weights[y] > 0:
                    one, other = given(law, weights[x]), given(law, weights[y])
                    worst = max(worst, loss_by_potentials(one, other, COST))
        assert worst <= found[x, y] + 1e-8 and found[x, y] <= worst * 1.05 + 2e-3


def test_edges_are_told_by_their_own_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a vertex loses is known once, but a limit belongs to its edge."""
    laws = np.array([[0.6, 0.0, 0.4], [0.0, 0.75, 0.25], [0.2, 0.3, 0.5], [0.4, 0.5, 0.1]])
    weights = PARTLY[[0, 1, 3]]
    search = search_of(StartHull(laws, laws > 0, 1), weights)
    search.affordable = 0
    asked, seen = list[_Cell](), list[Floats]()
    at = _Search._at

    def counted(self: _Search, rows: Floats) -> Floats:
        seen.append(rows)
        return at(self, rows)

    def upper(_: _Search, cell: _Cell) -> Floats:
        asked.append(cell)
        return np.full((3, 3), len(asked) % 4) + np.eye(3) * len(asked)

    monkeypatch.setattr(_Search, "_at", counted)
    monkeypatch.setattr(_Search, "_upper", upper)
    most = search.cells(np.full((3, 3), 9.0), 1e-3)
    assert (most == np.where(np.eye(3) > 0, 8.0, 3.0)).all()
    edges = [(a, b) for a in range(4) for b in range(a)]
    assert len(asked) == len(edges) == 6 and len(seen) == 9  # the others are known
    for cell, (a, b) in zip(asked, edges, strict=True):
        (first, second), (here, there) = search._ends(a, b)
        assert (cell.laws[0] == laws[a]).all() and (cell.laws[1] == laws[b]).all()
        assert (cell.rows[0] == first).all() and (cell.rows[1] == second).all()
        assert (cell.totals[0] == here).all() and (cell.totals[1] == there).all()
        for rows, found in zip(cell.rows, cell.found, strict=True):
            for x, y in permutations(range(3), 2):
                true = loss_by_potentials(rows[x], rows[y], COST)
                assert true - 1e-8 <= found[x, y] <= true + 1e-6


def test_costs_of_one_count_as_any_others() -> None:
    even = start_hull._from_two_states(WEIGHTS, off_diagonal(3))
    less = start_hull._from_two_states(WEIGHTS, off_diagonal(3, 0.999))
    assert even == pytest.approx(less, rel=0.01) and (even >= less).all() and even.max() > 0.3


def test_two_states_are_rounded_up() -> None:
    hull = StartHull.whole(2).after(np.array([[0.8, 0.2], [0.35, 0.65]]))
    found = start_hull._two_states(hull, np.eye(2), np.array([[0.0, 0.9], [0.4, 0.0]]))
    assert 0.9 < found[0, 1] < 0.9 + 1e-14 and 0.4 < found[1, 0] < 0.4 + 1e-14


def test_a_cell_of_which_an_end_is_a_limit_is_cut_in_the_middle() -> None:
    laws = np.array([[0.6, 0.0, 0.4], [0.0, 0.75, 0.25]])
    search = search_of(StartHull(laws, laws > 0, 1))
    (rows, totals), nothing = search._ends(0, 1), np.zeros((4, 4))
    for worst in ((0, 1), (1, 0), (0, 2)):  # the last pair has the same odds all along
        cell = _Cell((laws[0], laws[1]), rows, totals, (nothing, nothing), nothing.copy())
        cell.upper[worst] = 1.0
        left, _ = search._split(cell, nothing)
        assert left.laws[1] == pytest.approx(laws.mean(axis=0))
    inside = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    rows, totals = search_of(StartHull(inside, inside > 0, 1))._ends(0, 1)
    cell = _Cell((inside[0], inside[1]), rows, totals, (nothing, nothing), nothing.copy())
    cell.upper[0, 2] = 1.0
    assert search._split(cell, nothing)[0].laws[1] == pytest.approx(inside.mean(axis=0))


def test_closed_forms_are_taken_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("nothing is to be searched")

    first = hull_step(StartHull.whole(3), WEIGHTS, COST)
    assert first == pytest.approx(start_hull._from_two_states(WEIGHTS, COST), abs=1e-9)
    two = StartHull.whole(2).after(np.array([[0.8, 0.2], [0.35, 0.65]]))
    monkeypatch.setattr(start_hull, "_Search", refused)
    assert (hull_step(StartHull.whole(3), WEIGHTS, COST) == first).all()
    found = hull_step(two, WEIGHTS[:, :2], COST[:2, :2])
    assert found == pytest.approx(
        start_hull._two_states(two, WEIGHTS[:, :2], COST[:2, :2]), abs=1e-9
    )
    with pytest.raises(AssertionError, match="nothing is to be searched"):
        hull_step(StartHull.whole(3).after(ROWS), WEIGHTS, COST)
