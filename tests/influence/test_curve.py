"""Curves translate soundly in both directions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.influence import InfluenceCurve
from tests.raising import raises


@st.composite
def curves(draw: st.DrawFn) -> InfluenceCurve:
    points = draw(st.integers(1, 6))
    pairs = draw(st.integers(1, 4))
    steps = draw(st.lists(st.integers(1, 9), min_size=points, max_size=points))
    leaks = st.one_of(st.floats(0, 30), st.just(float("inf")), st.just(0.0))
    leak = draw(st.lists(leaks, min_size=points * pairs, max_size=points * pairs))
    return InfluenceCurve(
        exposed=np.cumsum(steps),
        leak=np.array(leak).reshape(pairs, points),
        entries=None,
        pairs=tuple(map(str, range(pairs))),
    )


def exact(curve: InfluenceCurve, epsilon: float) -> Fraction | float:
    """Theorem 6 in rational arithmetic, pair by pair."""
    worst: Fraction | float = Fraction(0)
    for row in curve.leak:
        values = [
            Fraction(int(b)) * Fraction(epsilon) + Fraction(float(a))
            for b, a in zip(curve.exposed, row, strict=True)
            if np.isfinite(a)
        ]
        worst = max(worst, min(values)) if values else float("inf")
    return worst


@given(curve=curves(), epsilon=st.floats(0, 20))
def test_losses_are_rounded_up_and_hardly(curve: InfluenceCurve, epsilon: float) -> None:
    guaranteed, truth = float(curve.to_pufferfish(epsilon)), exact(curve, epsilon)
    if truth == float("inf"):
        assert guaranteed == float("inf")
    else:
        assert Fraction(guaranteed) >= truth
        assert guaranteed <= float(truth) * (1 + 1e-14) + 1e-14


@given(curve=curves(), target=st.floats(0, 20))
def test_an_allowance_never_overspends(curve: InfluenceCurve, target: float) -> None:
    allowed = float(curve.to_dp(target))
    assert allowed == 0 or exact(curve, allowed) <= Fraction(target)
    assert allowed == 0 or float(curve.to_pufferfish(allowed)) <= target


@given(curve=curves(), target=st.floats(0.1, 20))
def test_an_allowance_is_not_wasted(curve: InfluenceCurve, target: float) -> None:
    allowed = float(curve.to_dp(target))
    more = allowed * (1 + 1e-9) + 1e-9
    assert exact(curve, more) >= target * (1 - 1e-9)


@given(curve=curves(), epsilons=st.lists(st.floats(0, 5), min_size=1, max_size=5))
def test_arrays_are_scalars_side_by_side(curve: InfluenceCurve, epsilons: list[float]) -> None:
    assert curve.to_pufferfish(epsilons).tolist() == [
        float(curve.to_pufferfish(e)) for e in epsilons
    ]
    assert curve.to_dp(epsilons).tolist() == [float(curve.to_dp(e)) for e in epsilons]


@given(curve=curves(), epsilon=st.floats(0, 20))
def test_pairs_kept_apart_are_never_worse_than_pooled(
    curve: InfluenceCurve, epsilon: float
) -> None:
    pooled = InfluenceCurve(curve.exposed, curve.pooled()[None, :], None)
    assert curve.to_pufferfish(epsilon) <= pooled.to_pufferfish(epsilon)


@pytest.mark.parametrize("epsilon", [-1.0, float("nan"), float("inf")])
def test_a_bad_epsilon_is_refused(epsilon: float) -> None:
    curve = InfluenceCurve(np.array([1]), np.array([[0.5]]), 1)
    with raises(UnsoundRequest, field="epsilon"):
        curve.to_pufferfish(epsilon)
    with raises(UnsoundRequest, field="epsilon"):
        curve.to_dp(epsilon)


@pytest.mark.parametrize(
    ("exposed", "leak", "entries", "field"),
    [
        ([1, 2], [[0.5]], 2, "leak"),
        ([0], [[0.5]], 2, "exposed"),
        ([2, 1], [[0.5, 0.1]], 2, "exposed"),
        ([1], [[-0.1]], 2, "leak"),
        ([1], [[float("nan")]], 2, "leak"),
        ([3], [[0.1]], 2, "entries"),
    ],
)
def test_a_malformed_curve_is_refused(
    exposed: list[int], leak: list[list[float]], entries: int, field: str
) -> None:
    with raises(UnsoundRequest, field=field):
        InfluenceCurve(np.array(exposed), np.array(leak), entries)


def test_what_is_given_as_lists_is_kept_as_arrays_that_cannot_be_written() -> None:
    curve = InfluenceCurve(exposed=[1, 3], leak=[[2.0, 0.5]], entries=None)  # type: ignore[arg-type]
    for array, values in ((curve.exposed, [1, 3]), (curve.leak[0], [2.0, 0.5])):
        assert array.tolist() == values and not array.flags.writeable
    assert curve.exact.tolist() == [[True, True]] and not curve.exact.flags.writeable
