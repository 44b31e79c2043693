"""Boxes of rows and laws, beside fractions, vertices written out, and many digits."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from takifugu.errors import InvalidPrior, Malformed
from takifugu.numeric import LEAST, Floats
from takifugu.translation.chain import interval_steps
from takifugu.translation.chain.fixed_point import fixed_point
from takifugu.translation.chain.interval_steps import (
    backward_boxes,
    box_rows,
    group_boxes,
    interval_losses,
    law_bounds,
    robust_rows,
)
from takifugu.translation.chain.unbounded_losses import unbounded_losses
from tests.raising import raises

pytestmark = pytest.mark.nightly

UNIT = 2.0**-53
LOW = np.array([[0.25, 0.125, 0.125], [0.0, 0.5, 0.25], [0.0625, 0.125, 0.25]])
HIGH = np.array([[0.5, 0.625, 0.25], [0.125, 0.625, 0.5], [0.25, 0.25, 0.875]])


def test_boxes_are_as_small_as_their_distributions_allow() -> None:
    low, high = box_rows(LOW, HIGH)
    edge = 4 * 3 * UNIT
    for x, u in product(range(3), repeat=2):
        others = [v for v in range(3) if v != u]
        least = Fraction(1) - sum(Fraction(float(HIGH[x, v])) for v in others)
        most = Fraction(1) - sum(Fraction(float(LOW[x, v])) for v in others)
        if least <= LOW[x, u]:
            assert low[x, u] == LOW[x, u]
        else:
            assert edge / 2 < least - Fraction(float(low[x, u])) <= 2 * edge
        if most >= HIGH[x, u]:
            assert high[x, u] == HIGH[x, u]
        else:
            assert edge / 2 < Fraction(float(high[x, u])) - most <= 2 * edge
    assert (low > LOW).any() and (high < HIGH).any()


def test_numbers_too_small_for_products_are_moved_outwards() -> None:
    low, high = box_rows(
        np.array([[LEAST / 2, 0.0], [LEAST, 0.5]]), np.array([[1.0, 0.0], [1.0, LEAST / 2 + 0.5]])
    )
    assert low[0].tolist() == [pytest.approx(1.0), 0.0] and high[0].tolist() == [1.0, 0.0]
    assert low[1].tolist() == [pytest.approx(0.5), 0.5]
    low, high = box_rows(
        np.array([[LEAST / 2, 0.0], [LEAST, 0.5]]), np.array([[1.0, 1.0], [0.5, 1.0]])
    )
    assert low.tolist() == [[0.0, 0.0], [LEAST, 0.5]]
    low, high = box_rows(
        np.array([[0.5, 0.0], [0.5, 0.0]]), np.array([[1.0, LEAST / 2], [1.0, LEAST]])
    )
    assert high.tolist() == [[1.0, LEAST], [1.0, LEAST]]


@pytest.mark.parametrize(
    ("low", "high", "field", "reason"),
    [
        ([0.5, 0.5], [0.5, 0.5], "upper", "shape"),
        ([[0.5, 0.5]], [[0.5, 0.5]], "upper", "shape"),
        (np.zeros((2, 2)), np.ones((3, 3)), "upper", "shape"),
        (np.full((2, 2), -0.125), np.ones((2, 2)), "lower", ""),
        (np.full((2, 2), 0.5), np.array([[1.0, 0.25], [1.0, 1.0]]), "lower", ""),
        (np.zeros((2, 2)), np.full((2, 2), 1.25), "lower", ""),
        (np.full((2, 2), np.nan), np.ones((2, 2)), "lower", ""),
        (np.array([[0.0, 0.0], [0.75, 0.5]]), np.ones((2, 2)), "lower", "sum"),
        (np.zeros((2, 2)), np.array([[1.0, 1.0], [0.5, 0.25]]), "lower", "sum"),
    ],
)
def test_boxes_without_distributions_are_refused(
    low: Floats, high: Floats, field: str, reason: str
) -> None:
    with raises(InvalidPrior) as caught:
        box_rows(low, high)
    assert caught.value.field == field
    if reason:
        assert caught.value.reason == reason
    if reason == "sum":
        assert "row 1 " in str(caught.value)
    if reason == "shape":
        assert str(np.shape(low)) in str(caught.value) and str(np.shape(high)) in str(caught.value)


@pytest.mark.parametrize(("off", "fine"), [(1, True), (3, False)])
def test_sums_may_be_off_by_their_rounding(off: int, fine: bool) -> None:
    step = off * 4 * UNIT
    for low, high in (
        (np.array([[0.5 + step, 0.5], [0.25, 0.25]]), np.ones((2, 2))),
        (np.zeros((2, 2)), np.array([[0.5 - step, 0.5], [1.0, 1.0]])),
    ):
        if fine:
            assert np.shape(box_rows(low, high)) == (2, 2, 2)
            continue
        with raises(InvalidPrior, reason="sum") as caught:
            box_rows(low, high)
        assert "row 0 " in str(caught.value)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_the_measures_of_the_robust_step(scale: float) -> None:
    """Numerator p̂ + θ(h − p̂), denominator l + e^{−max c}(p̂ − l), on the safe side."""
    cost = scale * np.array([[0.0, 0.5, 0.25], [1.0, 0.0, 0.5], [0.25, 0.75, 0.0]])
    for low, high in (
        (LOW, HIGH),
        (np.zeros((3, 3)), np.ones((3, 3))),
        (np.full((3, 3), 0.25), np.full((3, 3), 0.625)),
    ):
        above, below = robust_rows(low, high)(cost)
        for x, u in product(range(3), repeat=2):
            with mpmath.workdps(40):
                sums = mpmath.mpf(float(low[x].sum())), mpmath.mpf(float(high[x].sum()))
                share = (1 - sums[0]) / (sums[1] - sums[0])
                centre = low[x, u] + share * (mpmath.mpf(float(high[x, u])) - low[x, u])
                theta = -mpmath.expm1(-mpmath.mpf(float(cost[u].max())))
                most = centre + theta * (high[x, u] - centre)
                least = low[x, u] + (1 - theta) * (centre - low[x, u])
                assert -2 * UNIT <= above[x, u] - most <= 12 * UNIT
                assert -8 * UNIT <= below[x, u] - least <= 2 * UNIT
                if (low == 0).all():
                    assert above[x, u] > most and below[x, u] < least
    point = np.array([[0.25, 0.75], [0.5, 0.5]])
    for one in robust_rows(point, point)(np.array([[0.0, 3.0], [2.0, 0.0]])):
        assert one == pytest.approx(point, rel=1e-15)
    free = robust_rows(LOW, HIGH)(np.zeros((3, 3)))  # no cost: the centre, a distribution
    assert free[0] == pytest.approx(free[1]) and free[0].sum(axis=1) == pytest.approx(np.ones(3))
    outside = robust_rows(np.full((2, 2), 0.75), np.full((2, 2), 0.875))(1.0 - np.eye(2))
    assert outside[0] == pytest.approx(0.5 + (1 - math.exp(-1)) * 0.375 + np.zeros((2, 2)))
    assert outside[1] == pytest.approx(np.full((2, 2), 0.5))


def extreme(low: Floats, high: Floats, worth: Floats, *, most: bool) -> float:
    """The largest or least Σ μ·worth over all vertices of the box that are distributions."""
    found = []
    m = len(low)
    for free in range(m):
        others = [u for u in range(m) if u != free]
        for ends in product((0, 1), repeat=m - 1):
            law = np.zeros(m)
            law[others] = [(low, high)[e][u] for e, u in zip(ends, others, strict=True)]
            law[free] = 1 - law.sum()
            if low[free] - 1e-12 <= law[free] <= high[free] + 1e-12:
                found.append(float(law @ worth))
    return max(found) if most else min(found)


@pytest.mark.parametrize("most", [True, False])
def test_the_best_distribution_in_a_box(most: bool) -> None:
    rng = np.random.default_rng(3)
    for low, high in ((LOW[0], HIGH[0]), (LOW[1], HIGH[1]), (LOW[2], HIGH[2])):
        for _ in range(5):
            worth = rng.uniform(0.1, 1.0, 3)
            truth = extreme(low, high, worth, most=most)
            found = interval_steps._expected(low, high, worth, most=most)
            off = (found - truth) * (1 if most else -1)
            assert 4 * UNIT * worth.min() < off < 80 * UNIT
    full = np.array([0.5, 0.5])
    assert interval_steps._expected(full, full, np.array([1.0, 3.0]), most=most) == 2.0


@pytest.mark.parametrize("rounds", [0, 1, 2, 50])
def test_bounds_on_the_law_of_any_entry(rounds: int) -> None:
    low, high = LOW.min(axis=0), HIGH.max(axis=0)
    for _ in range(rounds):
        least = [extreme(low, high, LOW[:, v], most=False) for v in range(3)]
        most = [extreme(low, high, HIGH[:, v], most=True) for v in range(3)]
        low, high = np.maximum(low, least), np.minimum(high, most)
    found = law_bounds(LOW, HIGH, rounds=rounds)
    assert found[0] == pytest.approx(low, rel=1e-13) and found[1] == pytest.approx(high, rel=1e-13)
    assert (found[0] <= low).all() and (found[1] >= high).all()
    if rounds == 1:
        assert (found[0] < low * (1 - 2 * UNIT)).any() and (found[1] > high).any()
    if rounds == 50:
        assert [one.tolist() for one in law_bounds(LOW, HIGH)] == [one.tolist() for one in found]


def test_what_cannot_happen_has_no_bound_above_and_nothing_else() -> None:
    low = np.array([[0.5, LEAST / 4, 0.0], [0.5, LEAST / 4, 0.0], [0.5, LEAST, 0.0]])
    high = np.array([[1.0, LEAST / 2, 0.0], [1.0, LEAST / 3, 0.0], [1.0, LEAST / 2, 0.0]])
    found = law_bounds(low, high)
    assert found[0][1:].tolist() == [0.0, 0.0] and found[1][1:].tolist() == [LEAST, 0.0]
    assert found[0][0] == pytest.approx(0.5) and found[1][0] == pytest.approx(1.0)


def test_sums_of_all_others() -> None:
    table = np.array([[1.0, 20.0], [2.0, 30.0], [4.0, 50.0], [8.0, 70.0]])
    truth = [[14.0, 150.0], [13.0, 140.0], [11.0, 120.0], [7.0, 100.0]]
    assert interval_steps._others(table).tolist() == truth
    assert interval_steps._others(np.array([[5.0]])).tolist() == [[0.0]]
    assert interval_steps._others(np.array([[1.0], [1e-30]])).tolist() == [[1e-30], [1.0]]


def test_boxes_back_in_time() -> None:
    laws = np.array([0.25, 0.125, 0.25]), np.array([0.5, 0.375, 0.5])
    found = backward_boxes(LOW, HIGH, *laws)
    low, high = np.zeros((3, 3)), np.zeros((3, 3))
    for x, u in product(range(3), repeat=2):
        small, large = laws[0] * LOW[:, x], laws[1] * HIGH[:, x]
        low[x, u] = small[u] / (small[u] + large.sum() - large[u])
        high[x, u] = large[u] / (large[u] + small.sum() - small[u])
    truth = box_rows(low, np.minimum(high, 1.0))
    for one, other, sign in zip(found, truth, (1, -1), strict=True):
        assert one == pytest.approx(other, rel=1e-13)
        assert (sign * (other - one) >= 0).all()
        assert (sign * (other - one) > 8 * UNIT * other)[other > 0.01].any()
    with raises(InvalidPrior, field="lower") as caught:
        backward_boxes(LOW * np.array([1.0, 1.0, 0.0]), HIGH, *laws)
    assert "state 2" in str(caught.value)
    zero = HIGH * np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    high_zero = backward_boxes(LOW, zero, *laws)[1]
    assert high_zero[0, 1] == 0.0 and (high_zero.sum(axis=1) >= 1 - 1e-12).all()


def test_boxes_of_a_law_given_a_side() -> None:
    laws = np.array([0.25, 0.125, 0.0, 0.125]), np.array([0.5, 0.25, 0.25, 0.25])
    sides = [(0, 1), (2, 3), (1,), (0, 1, 2)]
    low, high = group_boxes(*laws, sides)
    for k, side in enumerate(sides):
        for u in range(4):
            small = sum(float(laws[0][v]) for v in side if v != u)
            large = sum(float(laws[1][v]) for v in side if v != u)
            if u not in side:
                assert low[k, u] == high[k, u] == 0.0
                continue
            own = float(laws[0][u]), float(laws[1][u])
            truth = own[0] / (own[0] + large) if own[0] else 0.0, own[1] / (own[1] + small)
            assert low[k, u] == pytest.approx(truth[0], rel=1e-13)
            assert high[k, u] == pytest.approx(truth[1], rel=1e-13)
            assert low[k, u] < truth[0] - 8 * UNIT * truth[0] or truth[0] == 0
            assert high[k, u] > truth[1] or truth[1] == high[k, u] == 1.0
    faint = group_boxes(np.array([LEAST / 2, 0.5]), np.array([0.5, 0.5]), [(0, 1)])
    assert faint[0][0, 0] == 0.0 and faint[0][0, 1] == pytest.approx(0.5)


def test_losses_of_rows_within_boxes() -> None:
    rows = np.array([[0.75, 0.25], [0.5, 0.5]])
    truth = unbounded_losses(rows, 0.5)
    point = interval_losses(rows, rows, 0.5)
    assert point.upper == pytest.approx(truth.upper, rel=3e-3)
    assert point.cost.tolist() == [[0.0, 0.5], [0.5, 0.0]]
    own = np.array([[0.0, 0.5], [0.5, 0.0]])
    assert point.lower == pytest.approx(own, abs=1e-14) and (point.lower <= own).all()
    cost = np.array([[0.0, 0.25], [0.5, 0.0]])
    low, high = box_rows(rows - 0.125, rows + 0.125)
    for tolerance in (1e-3, 0.1):
        wide = interval_losses(rows - 0.125, rows + 0.125, cost, tolerance=tolerance)
        boxes = (low, high), backward_boxes(low, high, *law_bounds(low, high))
        for side, box in zip((wide.forward, wide.backward), boxes, strict=True):
            again = fixed_point(
                *(robust_rows(*box), cost),
                slack=2 * 4 * (2 + 8) * UNIT,
                tolerance=tolerance,
                with_lower=False,
            )
            assert side.upper.tolist() == again.upper.tolist() and side.steps == 0
    for wrong in (-0.5, math.inf, np.array([[0.0, math.nan], [1.0, 0.0]])):
        with raises(Malformed, field="epsilon"):
            interval_losses(rows, rows, wrong)
    assert 0.0 <= interval_losses(rows, rows, 0.0).loss < 1e-14
