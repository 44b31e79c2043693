"""Calibration as printed and as it should be; composition three ways."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.influence import InfluenceCurve
from takifugu.papers.composition.baselines.algorithms import calibrate, compose_by_curve
from tests.influence.test_curve import curves
from tests.raising import raises


def binary(stay: float, entries: int, most: int) -> InfluenceCurve:
    """The symmetric binary chain from its closed form: two sides, split in the middle."""
    exposed = np.append(np.arange(1, most + 1), entries)
    strength = 2 * stay - 1
    sides = [((b + 1) // 2, (b + 2) // 2) for b in exposed[:-1]]
    one = [[np.log((1 + strength**d) / (1 - strength**d)) for d in pair] for pair in sides]
    return InfluenceCurve(exposed, np.append(np.sum(one, axis=1), 0.0)[None, :], entries)


def test_the_printed_algorithm_collapses_to_group_dp() -> None:
    curve = binary(0.8, 1000, 200)
    assert calibrate(curve, 1.0, paper=True) == pytest.approx(0.001, abs=1e-9)
    assert calibrate(curve, 1.0) == pytest.approx(0.0765, abs=5e-5)


def test_translating_the_sum_beats_theorem_7_by_far() -> None:
    total = compose_by_curve(binary(0.9, 10_000, 400), [1.0] * 100)
    assert total.by_theorem_7 == pytest.approx(72.7, abs=0.05)
    assert total.by_sum == pytest.approx(7.55, abs=0.005)
    assert total.by_adding == pytest.approx(100)


def test_theorem_7_takes_the_largest_leak_of_the_points_used() -> None:
    """Two releases that calibrate at different points: (1, 2) at ε = 6, (4, .5) at ε = 1."""
    curve = InfluenceCurve(np.array([1, 4, 20]), np.array([[2.0, 0.5, 0.0]]), 20)
    total = compose_by_curve(curve, [6.0, 1.0])
    assert total.by_theorem_7 == pytest.approx(2.0 + (6.0 - 2.0) + (1.0 - 0.5))
    # spent: 4 and .125 per entry; min(4.125 + 2, 4·4.125 + .5, …)
    assert total.by_sum == pytest.approx(6.125) and total.by_adding == pytest.approx(7.0)


@given(curve=curves(), epsilons=st.lists(st.floats(0.1, 5), min_size=1, max_size=5))
def test_translating_the_sum_is_never_worse_than_theorem_7(
    curve: InfluenceCurve, epsilons: list[float]
) -> None:
    if curve.pooled().min() >= min(epsilons):
        with raises(UnsoundRequest, field="curve"):
            compose_by_curve(curve, epsilons)
        return
    total = compose_by_curve(curve, epsilons)
    assert total.by_sum <= total.by_theorem_7 * (1 + 1e-12)
    assert total.by_theorem_7 <= total.by_adding * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bad_target_is_refused(epsilon: float) -> None:
    with raises(UnsoundRequest, field="epsilon"):
        calibrate(binary(0.8, 10, 3), epsilon)
    with raises(UnsoundRequest, field="epsilons"):
        compose_by_curve(binary(0.8, 10, 3), [1.0, epsilon])


def test_the_printed_algorithm_needs_an_end() -> None:
    curve = InfluenceCurve(np.array([1]), np.array([[0.5]]), None)
    with raises(UnsoundRequest, field="curve"):
        calibrate(curve, 1.0, paper=True)
