"""What each mechanism says of itself, in full: its parameters, price, error and description."""

from fractions import Fraction
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from takifugu.costs.cost import Cost
from takifugu.costs.losses import Pure
from takifugu.errors import InvalidMechanism, UnsoundRequest
from takifugu.mechanisms import (
    BoundedMean,
    BoundedSum,
    Bounds,
    Exponential,
    IntegerGaussian,
    IntegerLaplace,
    NoisyTopK,
    PermuteAndFlip,
    RandomisedResponse,
    Sensitivity,
    ThresholdedHistogram,
    noise_laws,
)
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.mechanism_protocol import Error, loss_document
from tests.mechanisms.test_scales import Times
from tests.raising import raises

pytestmark = pytest.mark.nightly

HALF: Any = {"epsilon": 1, "translation": Times(2.0)}
WRONG: Any = {"epsilon": 1, "translation": Times(3.0, 0.5)}
FAR = 10**6  # a lead that noise of scale 1 leaves as it is but for e^-1000000


@pytest.mark.parametrize("kind", [PermuteAndFlip, Exponential])
def test_peeled_selections_split_their_loss_over_the_rounds(kind: Any) -> None:
    assert kind(4.0) == kind(4.0, 1, 1)
    for k, moves in ((1, 1), (3, 1), (2, 5)):
        made = kind(4.0, k, moves)
        assert made.pure == made.loss == Pure(Fraction(2 * k * moves, 4))
        within = kind.within("0.5", k=k, sensitivity=moves)
        assert (within.k, within.sensitivity) == (k, moves)
        assert within.scale == pytest.approx(4 * k * moves)
        assert within.loss.epsilon <= Fraction(1, 2)
        assert kind.calibrated(**HALF, k=k, sensitivity=moves) == within
    assert kind.within("0.5") == kind(4.0) and kind.calibrated(**HALF) == kind(4.0)
    with raises(UnsoundRequest, field="translation"):
        kind.calibrated(**WRONG)
    for wrong, field in (({"k": 0}, "k"), ({"sensitivity": 0}, "sensitivity")):
        with raises(UnsoundRequest, field=field):
            kind.within(1, **wrong)
        with raises(UnsoundRequest, field=field):
            kind(1.0, **wrong)


def test_the_exponential_mechanism_has_two_currencies() -> None:
    made = Exponential(4.0, 3, 2, currency="concentrated")
    assert made.loss == made.concentrated
    assert float(made.concentrated.rho) == pytest.approx(3 * (2 * 2 / 4) ** 2 / 8)
    assert Exponential(4.0, 3, 2).loss == made.pure == Pure(3)
    with raises(UnsoundRequest, field="currency", given="gold"):
        Exponential(4.0, currency="gold")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "made",
    [PermuteAndFlip(1.0, 2), Exponential(1.0, 2), NoisyTopK(IntegerLaplace(1.0), 2)],
    ids=lambda made: made.kind,
)
def test_far_leads_are_named_in_every_group(made: Any) -> None:
    scores = np.array([[[0, 2 * FAR, FAR], [FAR, 0, 2 * FAR]]])
    assert made.release(scores).tolist() == [[[1, 2], [2, 0]]]
    assert made.release(scores[0, 0]).tolist() == [1, 2]
    probabilities = made.probabilities(scores)
    assert probabilities.shape == (1, 2, 2, 3)
    assert probabilities[0, 1] == pytest.approx(np.array([[0, 0, 1], [1, 0, 0]]))
    error = made.error(scores)
    assert error.probabilities[0] == pytest.approx(np.array([[[1, 0, 0], [0, 1, 0]]] * 2))
    assert error.expected_rank == pytest.approx(np.array([[[0, 1], [0, 1]]]))
    assert error.first_is_best == pytest.approx(np.ones((1, 2)))
    with raises(UnsoundRequest, field="values"):
        made.error()
    with raises(InvalidMechanism, field="k"):
        made.probabilities([1])


def test_noise_then_sorting_is_priced_and_described_as_its_noise() -> None:
    for noise, kind in ((IntegerLaplace(2.0), "laplace"), (IntegerGaussian(2.0), "gaussian")):
        made = NoisyTopK(noise, 2)
        assert (made.kind, made.loss) == (f"{kind}-top-k", noise.loss)
        own = {"kind": f"{kind}-top-k", "query": "top 2", "k": 2}
        assert made.describe() == {**noise.describe(), **own}
    assert made.named(np.array([[3, 7, 7], [1, 0, 2]])).tolist() == [[1, 2], [2, 0]]
    assert NoisyTopK(noise).k == 1
    assert NoisyTopK.calibrated(**HALF) == NoisyTopK(IntegerLaplace.within("0.5"))
    made = NoisyTopK.calibrated(**HALF, delta=0.1, k=2, sensitivity=3)
    assert made == NoisyTopK(IntegerGaussian.calibrated(**HALF, delta=0.1, sensitivity=3), 2)
    with raises(UnsoundRequest, field="k"):
        NoisyTopK(noise, 0)


def test_a_sensitivity_does_not_contradict_itself() -> None:
    assert Sensitivity.of(3) == Sensitivity("number", 3, 9, 3)
    assert Sensitivity("x", 4, 16, 4).l2 == 4.0
    assert Sensitivity("x", 2, 4, 2).l2 == 2.0
    root = Sensitivity("x", 2, 2, 1).l2
    assert Fraction(root) ** 2 >= 2 > Fraction(np.nextafter(root, 0)) ** 2
    for l1, l2_squared, linf in ((2, 4, 3), (2, 5, 1), (5, 8, 3), (0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(UnsoundRequest):
            Sensitivity("x", l1, l2_squared, linf)


def test_a_response_that_would_publish_nothing_is_refused() -> None:
    with raises(UnsoundRequest, field="truth", given=0.25, needed=0.25):
        RandomisedResponse(tuple("abcd"), 0.25)
    assert RandomisedResponse(tuple("abcd"), 0.2500001).other == pytest.approx(0.25)
    with raises(UnsoundRequest, field="epsilon", reason="too small", given=1e-17):
        RandomisedResponse.within(1e-17, categories=range(5))


def test_a_response_and_what_it_says() -> None:
    made = RandomisedResponse(("a", "b", "c"), 0.6)
    assert made.other == pytest.approx(0.2)
    assert made.channel() == pytest.approx(
        np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])
    )
    assert float(made.loss.epsilon) == pytest.approx(log(3))
    assert made.cost == Cost.any(made.loss.epsilon)
    error = made.error(50)
    assert error.deviation == pytest.approx(sqrt(50 * 0.24) / 0.4)
    assert error.interval == pytest.approx(sqrt(50 * log(40) / 2) / 0.4)
    rare = RandomisedResponse(("a", "b"), 0.9).error()
    assert rare.deviation == pytest.approx(0.3 / 0.8)
    assert made.deviation == made.error().deviation == made.error(1).deviation
    many = RandomisedResponse(tuple(range(10)), 0.95)  # the truth spreads more than the others
    assert many.deviation == pytest.approx(sqrt(0.95 * 0.05) / (0.95 - 0.05 / 9))
    most = RandomisedResponse(tuple(range(3)), 0.98)
    assert most.deviation == pytest.approx(sqrt(0.98 * 0.02) / 0.97)
    assert made.estimate([[30, 10, 10], [1, 2, 3]]) == pytest.approx(
        np.array([[50, 0, 0], [-0.5, 2, 4.5]])
    )
    assert made.describe() == {
        "kind": "randomised-response",
        "query": "sequence",
        "categories": 3,
        "truth": 0.6,
        "loss": loss_document(made.loss),
    }
    for published in (5, [1, 2], [[1, 2, 3, 4]]):
        with raises(InvalidMechanism, field="published"):
            made.estimate(published)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 0.2), (6.0, 0.45), (9.0, 0.49)])
def test_the_least_threshold_within_epsilon_and_delta(epsilon: float, delta: float) -> None:
    made = ThresholdedHistogram.calibrated(epsilon=2 * epsilon, delta=delta, translation=Times(2.0))
    room = delta * (exp(epsilon) - 1) / (exp(2 * epsilon) - 1)
    assert made.scale == pytest.approx(2 / epsilon)
    assert float(made.loss.epsilon) <= epsilon
    enough = [
        t
        for t in range(3, made.threshold + 3)
        if ThresholdedHistogram(made.scale, t).loss.delta
        <= Fraction(room) * (1 - Fraction(1, 10**12))
    ]
    assert made.threshold == enough[0]
    with raises(UnsoundRequest, field="translation"):
        ThresholdedHistogram.calibrated(epsilon=epsilon, delta=delta, translation=Times(3.0, 0.5))


def test_a_delta_below_the_rounding_of_opendp_is_refused() -> None:
    with raises(UnsoundRequest, field="delta"):
        ThresholdedHistogram.calibrated(epsilon=80, delta=0.4, translation=Times(2.0))


def test_a_thresholded_histogram_and_what_it_says() -> None:
    made = ThresholdedHistogram(2.0, 5)
    below = measurements.threshold(2.0, 4).map((2, 2, 1))
    assert (made.loss.epsilon, made.loss.delta) == tuple(map(Fraction, below))
    assert made.error() == noise_laws.laplace_error(2.0)
    assert made.deviation == made.error().deviation
    assert made.describe() == {
        "kind": "thresholded-histogram",
        "query": "histogram of unknown keys",
        "scale": 2.0,
        "threshold": 5,
        "sensitivity": {"l0": 2, "l1": 2, "linf": 1},
        "loss": loss_document(made.loss),
    }
    found = made.release({"z": FAR, "a": 2 * FAR})
    assert list(found) == ["a", "z"]
    assert found["z"] == pytest.approx(FAR, abs=1000)  # but for e^-500
    assert made.release({}) == {}
    assert ThresholdedHistogram(2.0, 3).threshold == 3
    with raises(UnsoundRequest, field="threshold"):
        ThresholdedHistogram(2.0, 2)
    wrong: list[Any] = [{"a": 0}, {"a": 1, "b": -1}, {1: 1}, [1], {"a": 1.5}]
    for values in wrong:
        with raises(InvalidMechanism, field="values"):
            made.release(values)


def test_bounds_are_whole_units() -> None:
    bounds = Bounds("-0.75", "1.25", "0.5")
    assert (bounds.least, bounds.most, bounds.width) == (-1, 3, 4)  # halves go up
    assert Bounds(0, 1).unit == 1
    assert bounds.units([-9.0, -0.3, 0.2, 0.3, 0.8, 9.0]).tolist() == [-1, -1, 0, 1, 2, 3]
    assert Bounds(0, 2**40).width == 2**40
    assert Bounds(0, 1, 2).width == 1
    top = 2**50
    assert Bounds(top - 1, top).most == top
    assert Bounds(-top, 1 - top).least == -top
    cases: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((0, 2**40 + 1), {"field": "bounds", "reason": "width", "given": 2**40 + 1}),
        ((0, 1, 3), {"field": "bounds", "reason": "width", "given": 0}),
        ((top, top + 1), {"field": "bounds", "reason": "range"}),
        ((-top - 1, -top), {"field": "bounds", "reason": "range"}),
        ((1, 1), {"field": "bounds", "reason": "empty"}),
        ((0, 1, 0), {"field": "unit", "given": 0}),
        ((0, 1, -1), {"field": "unit", "given": -1}),
    ]
    for given, fields in cases:
        with raises(UnsoundRequest, **fields):
            Bounds(*given)


def test_totals_are_exact_however_many_entries() -> None:
    bounds = Bounds(2**50 - 8, 2**50)
    for count in (1, 2**11 - 1, 2**11, 2**11 + 1, 2**12):
        entries = np.full((1, count), float(2**50))
        entries[0, -1] = 2**50 - 3
        if count == 2**12:  # 2^62 less 3
            assert bounds.total(entries) == 2**62 - 3
        else:
            assert bounds.total(entries) == count * 2**50 - 3
    assert bounds.total(np.full(2**12, 2.0**50)) == 2**62
    with raises(InvalidMechanism, field="entries"):
        bounds.total(np.full(2**12 + 1, 2.0**50))
    with raises(InvalidMechanism, field="entries"):
        Bounds(-(2**50), 8 - 2**50).total(np.full(2**12 + 1, -(2.0**50)))
    for entries_ in (["a"], [True], [float("nan"), 1.0]):
        with raises(InvalidMechanism, field="entries"):
            bounds.units(entries_)


def test_bounded_sums_and_means_and_what_they_say() -> None:
    bounds = Bounds(0, 10, "0.5")
    moves = Sensitivity("sum", l1=20, l2_squared=400, linf=20)
    total = BoundedSum.laplace(bounds, 30.0)
    assert total.noise == IntegerLaplace(30.0, moves)
    assert BoundedSum.gaussian(bounds, 30.0).noise == IntegerGaussian(30.0, moves)
    own = IntegerLaplace(30.0).error()
    assert total.error() == Error(own.deviation / 2, own.interval / 2)
    assert (total.deviation, total.rounding) == (own.deviation / 2, 0.25)
    assert total.loss == total.noise.loss
    said = {
        **total.noise.describe(),
        "kind": "bounded-sum",
        "bounds": {"low": "0", "high": "10", "unit": "1/2"},
        "noise": "integer-laplace",
        "error": {"deviation": own.deviation / 2, "interval": own.interval / 2},
        "rounding": 0.25,
    }
    assert total.describe() == said
    mean = BoundedMean(total, (4, 5))
    assert mean.describe() == {**said, "kind": "bounded-mean", "entries": [4, 5]}
    assert mean.error() == Error(own.deviation / 8, own.interval / 8)
    assert (mean.deviation, mean.loss) == (own.deviation / 8, total.loss)
    narrow = BoundedMean(BoundedSum(bounds, IntegerLaplace(0.01, Sensitivity.of(20))), (4, 5))
    assert narrow.release([8, 30]).tolist() == [1.0, 3.0]  # but for 2 e^-100
    rng = np.random.default_rng(1)
    assert narrow.simulate([8, 30], 2, rng=rng).tolist() == [[1.0, 3.0]] * 2
    assert narrow.total.release([8]).tolist() == [4.0]
    for values in ([1], [1, 2, 3], [[1, 2]]):
        with raises(InvalidMechanism, field="values"):
            mean.release(values)
    with raises(UnsoundRequest, field="noise", given=19, needed=20):
        BoundedSum(bounds, IntegerLaplace(30.0, Sensitivity.of(19)))
