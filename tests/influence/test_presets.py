"""Older guarantees as curves; unions, uncertainty and mistakes about curves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.influence import InfluenceCurve
from takifugu.influence.presets import (
    dependent,
    group,
    per_entry,
    uncertain,
    union,
)
from tests.influence.test_curve import curves
from tests.raising import raises


def test_presets_are_multiples_of_the_dp_loss() -> None:
    assert per_entry(10).to_pufferfish(0.3) == pytest.approx(0.3)
    assert group(12).to_pufferfish(0.3) == pytest.approx(3.6)
    assert group(12, records=2, attributes=3).to_pufferfish(0.3) == pytest.approx(1.8)
    assert dependent(4).to_pufferfish(0.3) == pytest.approx(1.2)


@pytest.mark.parametrize("build", [lambda: group(3, records=4), lambda: dependent(0)])
def test_groups_that_cannot_be_are_refused(build: object) -> None:
    with pytest.raises(UnsoundRequest):
        build()  # type: ignore[operator]


def test_uncertainty_leaves_group_dp_alone() -> None:
    curve = InfluenceCurve(np.array([1, 2, 5]), np.array([[1.0, 0.25, 0.0]]), 5)
    unsure = uncertain(curve, relative=0.2)
    assert unsure.leak[0] == pytest.approx([1 + np.log(1.5), 0.25 + np.log(1.5), 0.0])
    assert unsure.leak[0, 2] == 0
    # below log 1.5 = 0.405 only group DP is left
    assert unsure.to_dp(0.4) == pytest.approx(0.4 / 5)
    assert uncertain(curve, relative=0.0) == curve


@pytest.mark.parametrize("relative", [-0.1, 1.0, float("nan")])
def test_uncertainty_must_be_a_fraction(relative: float) -> None:
    with raises(UnsoundRequest, field="relative"):
        uncertain(per_entry(3), relative=relative)


@given(first=curves(), second=curves(), epsilon=st.floats(0, 5))
def test_a_union_guarantees_the_worse_of_both(
    first: InfluenceCurve, second: InfluenceCurve, epsilon: float
) -> None:
    both = union({"one": first, "two": second})
    worse = max(float(first.to_pufferfish(epsilon)), float(second.to_pufferfish(epsilon)))
    # between its points a curve may only be used at the point before: never better than itself
    assert float(both.to_pufferfish(epsilon)) == pytest.approx(worse)
