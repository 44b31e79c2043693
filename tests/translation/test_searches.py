"""Searches for the largest ε: what they return was evaluated, and is within the target."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from takifugu.errors import UnsoundRequest
from takifugu.translation.accounting import largest_epsilon as searches
from takifugu.translation.accounting.largest_epsilon import largest_by_bracket, largest_within
from tests.raising import raises

pytestmark = pytest.mark.nightly

Loss = Callable[[float], float]


class Watched:
    """A loss that remembers what it was asked."""

    def __init__(self, loss: Loss) -> None:
        self.loss, self.asked = loss, list[float]()

    def __call__(self, epsilon: float) -> float:
        """The loss of ε."""
        self.asked.append(epsilon)
        return self.loss(epsilon)


def always(loss: float) -> Loss:
    return lambda _: loss


SMOOTH: list[Loss] = [
    lambda e: e,
    lambda e: 3 * e,
    lambda e: e + 2 * math.sqrt(e),
    lambda e: e + e * e,
    lambda e: math.expm1(3 * e) / 2,
    lambda e: e * (1 + 50 * e**3),
    lambda e: 10 * e / (1 + e) + e,
    lambda e: 1e4 * e,
]


@pytest.mark.parametrize("target", [1e-9, 0.03, 1.0, 7.0])
@pytest.mark.parametrize("number", range(len(SMOOTH)))
def test_a_smooth_loss_takes_a_handful_of_evaluations(number: int, target: float) -> None:
    loss = Watched(SMOOTH[number])
    found = largest_within(loss, target)
    if number == 2 and target < 1e-6:  # a billionth of the target is too much already
        assert found == 0.0 and len(loss.asked) < 6
        return
    assert found in loss.asked and loss.loss(found) <= target
    assert loss.loss(found) >= target * (1 - 1e-6)
    assert max(loss.asked) <= target and len(loss.asked) <= 11
    assert sum(one <= found * (1 + 1e-12) for one in loss.asked) >= 1
    assert loss.asked[0] == target / 4


@pytest.mark.parametrize("target", [0.0, 5e-324, 1e-320, 1e-305])
def test_a_target_that_floats_hardly_hold_allows_nothing(target: float) -> None:
    assert largest_within(lambda epsilon: 3 * epsilon, target) == 0.0


@pytest.mark.parametrize("number", range(len(SMOOTH)))
def test_a_good_beginning_and_an_estimate_save_evaluations(number: int) -> None:
    shape = SMOOTH[number]
    truth = largest_within(shape, 0.5, tolerance=1e-12)
    loss = Watched(shape)
    assert largest_within(loss, 0.5, first=truth) == pytest.approx(truth, rel=2e-6)
    assert loss.asked[0] == truth and len(loss.asked) <= 4
    loss = Watched(lambda e: 1.3 * shape(e))
    found = largest_within(loss, 0.65, first=truth / 3, nearby=lambda _: shape)
    assert found == pytest.approx(truth, rel=2e-6)
    assert loss.asked[0] == truth / 3 and len(loss.asked) <= 3
    # an estimate that says nothing is not relied on
    for useless in (lambda _: None, lambda _: always(0.0), lambda _: always(math.inf)):
        assert largest_within(shape, 0.5, nearby=useless) == pytest.approx(truth, rel=2e-6)


def test_nothing_above_the_most_is_tried() -> None:
    for most in (0.01, 0.2, 5.0):
        loss = Watched(lambda e: e / 2)
        found = largest_within(loss, 1.0, most=most)
        assert found == pytest.approx(min(most, 2.0), rel=2e-6) and max(loss.asked) <= most
        assert loss.asked[0] == most / 4
        loss = Watched(lambda e: e / 2)
        largest_within(loss, 1.0, most=most, first=7.0)
        assert loss.asked[0] == min(most, 7.0)
    assert largest_within(always(0.0), 1.0) == pytest.approx(1.0, rel=1e-3)


def test_where_no_epsilon_will_do_none_is_returned() -> None:
    for never in (math.inf, 2.0, math.nan):
        loss = Watched(always(never))
        assert largest_within(loss, 1.0) == 0.0
        assert len(loss.asked) <= 40 and min(loss.asked) > 1e-12
    # a floor that only tiny ε are below
    found = largest_within(lambda e: 1e5 * e if e < 1e-5 else math.inf, 1.0)
    assert 1e-6 < found < 1e-5


def test_a_jump_is_left_after_a_few_evaluations_and_what_is_beyond_it_looked_at() -> None:
    loss = Watched(lambda e: e if e <= 0.3 else e + 0.8)
    found = largest_within(loss, 1.0)
    assert loss.loss(found) <= 1.0 and found == pytest.approx(0.3, rel=1e-3)
    assert len(loss.asked) <= 26
    # above the jump the bound is lower again: the whole share of what is missing is tried first
    bumpy = Watched(lambda e: e if e <= 0.3 or e >= 0.9 else 2.0)
    found = largest_within(bumpy, 1.0)
    assert found > 0.9 and bumpy.loss(found) <= 1.0
    partly = Watched(lambda e: e if e <= 0.3 or 0.7 <= e <= 0.8 else 2.0)
    assert largest_within(partly, 1.0) > 0.7
    least = Watched(lambda e: e if e <= 0.3 or 0.5 <= e <= 0.6 else 2.0)
    assert largest_within(least, 1.0) > 0.5


@pytest.mark.parametrize("search", [largest_within, largest_by_bracket])
def test_targets_that_are_none(search: Callable[[Loss, float], float]) -> None:
    for bad in (-1e-9, math.inf, math.nan):
        with raises(UnsoundRequest, field="target"):
            search(lambda e: e, bad)
    assert search(lambda e: e, 0.0) == 0.0


def test_interpolation_by_its_points() -> None:
    meet = searches._interpolated
    assert meet([(2.0, 3.0)], 6.0) == pytest.approx(4.0)  # proportional
    # a power law, of points too far apart for a polynomial
    assert meet([(1.0, 3.0), (10.0, 300.0)], 30.0) == pytest.approx(math.sqrt(10.0))
    assert meet([(1.0, 3.0), (10.0, 300.0)], 290.0) == pytest.approx(10 * math.sqrt(290 / 300))
    # whose slope is kept within 0.2 and 5
    assert meet([(1.0, 1.0), (5.0, 5.0**10)], 2.0) == pytest.approx(2 ** (1 / 5))
    assert meet([(1.0, 1.0), (5.0, 5.0**0.1)], 1.05) == pytest.approx(1.05**5)
    # points that are the same point say no more than one
    assert meet([(2.0, 3.0), (2.0, 3.5)], 6.0) == pytest.approx(2 * 6 / 3.5)
    assert meet([(2.0, 3.5), (4.0, 3.5)], 6.0) == pytest.approx(2 * 6 / 3.5)

    def bent(e: float) -> float:
        return e * (1 + 0.5 * e + 0.3 * e**2 + 0.1 * e**3)

    for wanted in (1.1, 1.37, 1.9):
        points = [(e, bent(e)) for e in (0.8, 1.2, 1.6, 2.2)]
        assert meet(points, bent(wanted)) == pytest.approx(wanted, rel=1e-10)
        three = [(e, e * (1 + 0.5 * e + 0.3 * e**2)) for e in (0.8, 1.3, 2.2)]
        aim = wanted * (1 + 0.5 * wanted + 0.3 * wanted**2)
        assert meet(three, aim) == pytest.approx(wanted, rel=1e-10)
    # a point far away is not drawn through
    far = [(0.8, bent(0.8)), (1.2, bent(1.2)), (1.6, bent(1.6)), (2.2, bent(2.2)), (90.0, 1e9)]
    assert meet(far, bent(1.4)) == pytest.approx(1.4, rel=1e-10)


def test_estimates_lead_to_where_they_say() -> None:
    def shape(e: float) -> float:
        return e + e**3

    wanted = 1.7 * shape(1.25)
    found = searches._estimated(shape, 0.5, 1.7 * shape(0.5), wanted, 0.9)
    assert found == pytest.approx(1.25, rel=1e-6)
    for nothing in (0.0, math.inf, math.nan):
        assert searches._estimated(always(nothing), 0.5, 1.0, 2.0, 0.9) == 0.9


@pytest.mark.parametrize("target", [1e-200, 1e-9, 0.03, 1.0, 7.0])
@pytest.mark.parametrize("number", range(len(SMOOTH)))
def test_a_bracket_closes_on_the_largest(number: int, target: float) -> None:
    loss = Watched(SMOOTH[number])
    found = largest_by_bracket(loss, target)
    assert loss.loss(found) <= target and max(loss.asked) <= target
    if number == 2 and target < 1e-150:  # less than any ε that is tried
        assert found == 0.0 and min(loss.asked) < 1e-290
        return
    assert loss.loss(found * (1 + 3e-10)) >= target * (1 - 1e-12) or found == target
    assert len(loss.asked) <= 45
    assert found == target or found in loss.asked


def test_a_bracket_with_jumps_and_ends() -> None:
    for jump in (1e-4, 0.2, 0.9999):
        loss = Watched(lambda e, jump=jump: e if e <= jump else math.inf)  # type: ignore[misc]
        found = largest_by_bracket(loss, 1.0)
        assert jump * (1 - 1e-9) <= found <= jump and len(loss.asked) <= 120
        step = Watched(lambda e, jump=jump: 0.0 if e <= jump else 50.0)  # type: ignore[misc]
        assert largest_by_bracket(step, 1.0) == pytest.approx(jump, rel=1e-9)
        assert len(step.asked) <= 120
    assert largest_by_bracket(lambda e: 0.25 * e, 2.0) == 2.0
    assert largest_by_bracket(lambda e: e, 2.0) == 2.0
    never = Watched(always(3.0))
    assert largest_by_bracket(never, 2.0) == 0.0 and min(never.asked) < 1e-290
    rough = largest_by_bracket(lambda e: 2 * e, 1.0, tolerance=0.1)
    assert 0.44 < rough <= 0.5 and np.isfinite(rough)


@pytest.mark.parametrize("target", [0.003, 0.03, 0.3])
def test_a_search_far_from_the_target_is_not_given_up(target: float) -> None:
    """A loss that is steep at first: a few losses in a row are all far from a small target."""
    loss = Watched(lambda e: e + 0.3 * math.sqrt(e))
    found = largest_within(loss, target)
    assert target * (1 - 1e-3) <= loss.loss(found) <= target
