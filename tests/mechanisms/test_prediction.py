"""The parts of a prediction, each from its definition."""

from collections.abc import Callable
from math import exp, log
from typing import get_args

import mpmath
import numpy as np
import pytest

from takifugu.mechanisms.prediction import (
    Shape,
    different_groups,
    predicted,
    resolution,
    staircase,
)

pytestmark = pytest.mark.nightly

TAILS: dict[Shape, Callable[[float], float]] = {
    "laplace": lambda z: exp(-z) / 2 if z >= 0 else 1 - exp(z) / 2,
    "gaussian": lambda z: float(mpmath.ncdf(-z)),
    "gumbel": lambda z: float(-mpmath.expm1(-mpmath.exp(-z))),
}


@pytest.mark.parametrize("shape", ["laplace", "gaussian"])
def test_noise_then_sorting_is_right_as_often_as_the_integral_says(shape: Shape) -> None:
    scores = [2.0, 1.0, 1.0]
    z = np.linspace(-25, 25, 20_001)
    density = np.exp(-np.abs(z)) / 2 if shape == "laplace" else np.exp(-(z**2) / 2)
    density /= density.sum()

    def upto(t: float) -> np.ndarray:
        return 1 - np.array([TAILS[shape](float(x) + t) for x in z])

    first = float((density * upto(1.0) ** 2).sum())  # the leader is ahead of both
    last = float((density * (1 - upto(1.0)) ** 2).sum())
    found = predicted(np.array(scores), 3, shape, 1.0)
    assert found.places[0] == pytest.approx(first, abs=1e-3)
    middle = 1 - (1 - first - last)  # one of the others is second
    assert found.places[1:] == pytest.approx([middle, 1 - last], abs=1e-3)
    assert found.hits == pytest.approx(1.0)
    assert predicted(np.array(scores[::-1]) * 4, 3, shape, 4.0).places == pytest.approx(
        found.places
    )


@pytest.mark.parametrize(
    ("shape", "least"),
    [
        ("gumbel", log(19)),  # 1 / (1 + e^-x) = 0.95
        ("flips", log(10)),  # 1 - e^-x / 2 = 0.95
        ("gaussian", 1.6448536269514722 * 2**0.5),
        ("laplace", float(mpmath.findroot(lambda x: mpmath.exp(-x) * (2 + x) / 4 - 0.05, 3))),
    ],
)
def test_the_resolution_of_two_is_where_the_closed_form_is_right(
    shape: Shape, least: float
) -> None:
    found = resolution(2, 1, shape)
    assert least * (1 - 1e-4) <= found <= least * (1 + 2e-3)


@pytest.mark.parametrize("shape", get_args(Shape))
def test_groups_are_right_as_often_as_each_is_on_average(shape: Shape) -> None:
    groups = np.array([[9.0, 4, 4, 0], [3, 3, 3, 3], [0, 8, 1, 2], [4, 0, 9, 4], [9, 7, 7, 1]])
    for k in range(1, 5):
        found = predicted(groups, k, shape, 2.5)
        each = [predicted(row, k, shape, 2.5) for row in groups]
        assert found.places == pytest.approx(np.mean([one.places for one in each], axis=0))
        assert found.hits == pytest.approx(np.mean([one.hits for one in each]))
        different, weights = different_groups(groups)
        assert len(different) == 4  # the first and the fourth have the same scores
        weighed = predicted(different, k, shape, 2.5, weights)
        assert weighed.places == pytest.approx(found.places)
        assert weighed.hits == pytest.approx(found.hits)


@pytest.mark.parametrize("shape", TAILS)
@pytest.mark.parametrize("tail", [0, 30])
def test_few_leaders_of_a_staircase_stand_for_many(shape: Shape, tail: int) -> None:
    step = resolution(30 + tail, 30, shape)
    steps = staircase(30 + tail, 30)
    assert predicted(steps * step, 30, shape, 1.0).places.min() >= 0.95 - 1e-9
    assert predicted(steps * step * 0.998, 30, shape, 1.0).places.min() < 0.95
