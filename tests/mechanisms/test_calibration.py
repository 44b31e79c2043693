"""Calibrated mechanisms keep the Pufferfish loss asked for, and are not needlessly noisy."""

from collections.abc import Callable
from fractions import Fraction
from math import expm1
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.rounding import float_up
from takifugu.errors import UnsoundRequest
from takifugu.influence import InfluenceCurve
from takifugu.mechanisms import (
    COUNT,
    BoundedMean,
    BoundedSum,
    Bounds,
    Exponential,
    IntegerGaussian,
    IntegerLaplace,
    NoisyTopK,
    PermuteAndFlip,
    RandomisedResponse,
    ThresholdedHistogram,
)
from takifugu.mechanisms.calibration import approximate_allowance
from takifugu.papers.composition.baselines.algorithms import (
    PufferfishExponential,
    PufferfishLaplace,
    _rounded,
)
from takifugu.translation.curve_translation import CurveTranslation
from takifugu.translation.protocol import LossTranslation
from tests.influence.test_curve import curves
from tests.raising import raises

CURVE = InfluenceCurve(np.array([1, 3, 9]), np.array([[2.0, 0.5, 0.0]]), 9)
BY_CURVE = CurveTranslation(CURVE)

PURE: dict[str, Callable[[float, Any], Any]] = {
    "laplace": lambda e, t: IntegerLaplace.calibrated(epsilon=e, translation=t),
    "count": lambda e, t: IntegerLaplace.calibrated(epsilon=e, translation=t, sensitivity=COUNT),
    "flip": lambda e, t: PermuteAndFlip.calibrated(epsilon=e, translation=t),
    "peel": lambda e, t: Exponential.calibrated(epsilon=e, translation=t, k=3),
    "noisy top": lambda e, t: NoisyTopK.calibrated(epsilon=e, translation=t, k=3),
    "response": lambda e, t: RandomisedResponse.calibrated(
        epsilon=e, translation=t, categories="abcd"
    ),
    "sum": lambda e, t: BoundedSum.calibrated(epsilon=e, translation=t, bounds=Bounds(0, 10)),
    "mean": lambda e, t: BoundedMean.calibrated(
        epsilon=e, translation=t, bounds=Bounds(0, 1, "0.01"), entries=9
    ),
    "algorithm 1": lambda e, t: PufferfishLaplace.of(t, epsilon=e, lipschitz="2.5", unit="0.5"),
    "algorithm 2": lambda e, t: PufferfishExponential.of(t, epsilon=e, k=2),
}


@pytest.mark.parametrize("kind", list(PURE))
@given(curve=curves(), epsilon=st.floats(0.05, 6))
@settings(max_examples=15)
def test_a_calibrated_mechanism_keeps_its_guarantee(
    kind: str, curve: InfluenceCurve, epsilon: float
) -> None:
    allowed = float(curve.to_dp(epsilon))
    if allowed <= 0:
        with raises(UnsoundRequest, reason="no allowance"):
            PURE[kind](epsilon, CurveTranslation(curve))
        return
    if allowed < 1e-9:
        return
    loss = PURE[kind](epsilon, CurveTranslation(curve)).loss
    assert loss.epsilon <= Fraction(allowed)
    assert float(curve.to_pufferfish(float_up(loss.epsilon))) <= epsilon
    assert float(loss.epsilon) >= allowed * (1 - 1e-6) - 1e-12  # nothing is wasted


@pytest.mark.nightly
@given(epsilon=st.floats(0.1, 3), delta=st.floats(1e-12, 0.1))
@settings(max_examples=6)
def test_gaussian_noise_and_thresholds_keep_epsilon_and_delta(epsilon: float, delta: float) -> None:
    allowed, room = approximate_allowance(epsilon, delta, BY_CURVE)
    for b, a in zip(CURVE.exposed.tolist(), CURVE.leak[0].tolist(), strict=True):
        if b * allowed + a <= epsilon * (1 + 1e-9):  # the point in use: group privacy for b
            assert room * expm1(b * allowed) / expm1(allowed) <= delta * (1 + 1e-9)
    noise = IntegerGaussian.calibrated(epsilon=epsilon, delta=delta, translation=BY_CURVE)
    found = noise.approximate(room)
    assert found.epsilon <= Fraction(allowed)
    assert float(found.epsilon) >= allowed * (1 - 1e-6)
    keys = ThresholdedHistogram.calibrated(epsilon=epsilon, delta=delta, translation=BY_CURVE)
    assert keys.loss.epsilon <= Fraction(allowed)
    assert keys.loss.delta <= Fraction(room)
    mean = BoundedMean.calibrated(
        epsilon=epsilon, delta=delta, translation=BY_CURVE, bounds=Bounds(0, 5), entries=[4, 5]
    )
    assert mean.total.noise.kind == "integer-gaussian"


class Liar(LossTranslation):
    """A translation whose two directions contradict each other."""

    def to_pufferfish(self, dp: float, /) -> float:
        """Three times as much."""
        return 3 * dp

    def to_dp(self, pufferfish: float, /) -> float:
        """Half as much."""
        return pufferfish / 2


@pytest.mark.parametrize("kind", list(PURE))
def test_a_translation_that_contradicts_itself_is_caught(kind: str) -> None:
    with raises(UnsoundRequest, field="translation"):
        PURE[kind](1.0, Liar())


@pytest.mark.parametrize("kind", list(PURE))
@pytest.mark.parametrize("epsilon", [0.0, -1.0, float("nan"), float("inf"), "x"])
def test_a_bad_target_is_refused(kind: str, epsilon: Any) -> None:
    with raises(UnsoundRequest, field="epsilon"):
        PURE[kind](epsilon, BY_CURVE)


def test_no_allowance_is_refused_with_advice() -> None:
    stuck = InfluenceCurve(np.array([1]), np.array([[2.0]]), None)
    with raises(UnsoundRequest, field="epsilon", reason="no allowance"):
        IntegerLaplace.calibrated(epsilon=1.0, translation=CurveTranslation(stuck))


def test_the_printed_algorithms_add_more_noise() -> None:
    right = PufferfishLaplace.of(BY_CURVE, epsilon=1.0)
    printed = PufferfishLaplace.of(BY_CURVE, epsilon=1.0, paper=True)
    assert float(right.loss.epsilon) == pytest.approx(1 / 6)  # (1 − 0.5) / 3
    assert float(printed.loss.epsilon) == pytest.approx(1 / 9)  # group DP over |I| = 9
    assert printed.deviation > right.deviation
    choice = PufferfishExponential.of(BY_CURVE, epsilon=1.0)
    as_printed = PufferfishExponential.of(BY_CURVE, epsilon=1.0, paper=True)
    # probability ∝ exp(u ε_DP / 2L): odds of one unit of score
    for mechanism, per_entry in ((choice, 1 / 6), (as_printed, 1 / 9)):
        probabilities = mechanism.probabilities([1, 0])[0]
        assert np.log(probabilities[0] / probabilities[1]) == pytest.approx(per_entry / 2, rel=1e-9)
    with pytest.raises(UnsoundRequest, match="points of an influence curve"):
        PufferfishLaplace.of(Liar(), epsilon=1.0, paper=True)


def test_answers_on_a_grid_keep_their_lipschitz_constant() -> None:
    mechanism = PufferfishLaplace.of(BY_CURVE, epsilon=1.0, lipschitz="0.3", unit="0.1")
    assert mechanism.noise.sensitivity.l1 == 3
    rng = np.random.default_rng(1)
    drawn = mechanism.simulate([0.25, 0.24], 4, rng=rng)
    assert np.allclose(drawn * 10, np.rint(drawn * 10))
    assert mechanism.release([0.25]).shape == (1,)
    for x in np.linspace(-2, 2, 801):  # halves included: one step apart stays one step apart
        a, b = _rounded([x, x + 1.0], Fraction(1)).tolist()
        assert b - a <= 1 or (Fraction(x + 1.0) - Fraction(x)) > 1


def test_the_tightest_response_is_within_and_near_its_allowance() -> None:
    response = RandomisedResponse.within(1e-6, categories=range(5))
    assert 0 < response.loss.epsilon <= Fraction(1e-6)
    with raises(UnsoundRequest, field="epsilon", reason="too small"):
        RandomisedResponse.within(1e-17, categories=range(5))


def test_a_target_given_as_a_rational_is_never_exceeded() -> None:
    tenth = Fraction(1, 10)  # the float 0.1 is above it
    for kind in PURE.values():
        loss = kind(tenth, BY_CURVE).loss  # type: ignore[arg-type]
        assert Fraction(float(CURVE.to_pufferfish(float_up(loss.epsilon)))) <= tenth
    assert IntegerLaplace.within(tenth).loss.epsilon <= tenth
    assert IntegerLaplace.within("0.1").loss.epsilon <= tenth


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf")])
def test_a_bad_per_entry_loss_is_refused(epsilon: float) -> None:
    for within in (
        IntegerLaplace.within,
        PermuteAndFlip.within,
        Exponential.within,
        lambda e: RandomisedResponse.within(e, categories="ab"),
    ):
        with raises(UnsoundRequest, field="epsilon"):
            within(epsilon)


def test_rounding_several_answers_of_one_entry_costs_a_unit_each() -> None:
    one = PufferfishLaplace.of(BY_CURVE, epsilon=1.0, lipschitz=1)
    three = PufferfishLaplace.of(BY_CURVE, epsilon=1.0, lipschitz=1, moved=3)
    assert (one.noise.sensitivity.l1, three.noise.sensitivity.l1) == (1, 3)
    before, after = (_rounded(x, Fraction(1)) for x in ([0.4, 0.4, 0.4], [0.7, 0.7, 0.7]))
    assert np.abs(before - after).sum() == 3  # although the answers moved by 0.9 in all
