"""Losses are what enumeration finds: never below the truth, and where it can be, equal to it."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Approximate, Concentrated, Pure
from takifugu.errors import UnsoundRequest
from takifugu.finite import FiniteMechanism
from takifugu.mechanisms import (
    COUNT,
    BoundedMean,
    BoundedSum,
    Bounds,
    Exponential,
    FiniteChannel,
    IntegerGaussian,
    IntegerLaplace,
    NoisyTopK,
    PermuteAndFlip,
    RandomisedResponse,
    Sensitivity,
    ThresholdedHistogram,
)
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.priors.universe import Tables
from tests.oracles import noise as oracle
from tests.raising import raises

scales = st.floats(0.3, 30)


@given(scale=scales)
@settings(max_examples=40)
def test_laplace_noise_on_a_histogram_loses_two_units(scale: float) -> None:
    claimed = float(IntegerLaplace(scale).loss.epsilon)
    window = range(-30, 31)  # the two counts that a replaced entry moves, one up, one down
    left = {z: oracle.laplace(scale, z) for z in window}
    up = {z: oracle.laplace(scale, z - 1) for z in window}
    down = {z: oracle.laplace(scale, z + 1) for z in window}
    truth = oracle.pure_loss(left, up) + oracle.pure_loss(left, down)
    assert truth <= claimed * (1 + 1e-9)
    assert claimed == pytest.approx(truth, rel=1e-9) == pytest.approx(2 / scale)
    one = float(IntegerLaplace(scale, COUNT).loss.epsilon)
    assert one == pytest.approx(oracle.pure_loss(left, up), rel=1e-9)


@pytest.mark.parametrize("scale", [0.8, 2.0, 10.0])
def test_gaussian_noise_keeps_its_renyi_curve(scale: float) -> None:
    rho = float(IntegerGaussian(scale, COUNT).loss.rho)
    reach = int(12 * scale) + 8
    left = {z: oracle.gaussian(scale, z) for z in range(-reach, reach + 1)}
    right = {z: oracle.gaussian(scale, z - 1) for z in range(-reach, reach + 1)}
    for order in (1.01, 2, 5, 20):
        assert oracle.renyi(left, right, order) <= rho * order * (1 + 1e-6)
    assert rho == pytest.approx(1 / (2 * scale**2))
    delta = 1e-5
    approximate = IntegerGaussian(scale, COUNT).approximate(delta)
    assert float(approximate.delta) == delta
    assert oracle.hockey_stick(left, right, float(approximate.epsilon)) <= delta


def test_a_histogram_is_wider_in_l2_than_one_count_but_less_than_twice() -> None:
    rho, one = (
        float(IntegerGaussian(3.0, s).loss.rho) for s in (IntegerGaussian(1.0).sensitivity, COUNT)
    )
    assert rho == pytest.approx(2 * one)
    assert rho >= 2 / (2 * 9)


@pytest.mark.parametrize(
    ("kind", "law"),
    [(PermuteAndFlip, oracle.permute_and_flip), (Exponential, oracle.softmax)],
)
@pytest.mark.parametrize("k", [1, 2])
def test_selections_lose_no_more_than_claimed(
    kind: type[PermuteAndFlip] | type[Exponential],
    law: Callable[[Sequence[float], float], list[float]],
    k: int,
) -> None:
    """All histograms of 5 entries over 3 categories, every replacement."""
    scale = 2.5
    claimed = float(kind(scale, k).pure.epsilon)
    histograms = [h for h in product(range(6), repeat=3) if sum(h) == 5]
    laws = {h: oracle.peeled(h, k, scale, law) for h in histograms}
    worst = 0.0
    for h in histograms:
        for i, j in product(range(3), repeat=2):
            if i != j and h[i] > 0:
                after = list(h)
                after[i] -= 1
                after[j] += 1
                worst = max(worst, oracle.pure_loss(laws[h], laws[tuple(after)]))
    assert worst <= claimed
    assert claimed == pytest.approx(2 * k / scale)
    if k == 1:
        assert worst > 0.5 * claimed


def test_permute_and_flip_attains_its_loss() -> None:
    """A far leader that loses its lead: the ratio tends to e^ε."""
    scale = 1.0
    left = oracle.permute_and_flip([10, 0, 0], scale)
    right = oracle.permute_and_flip([9, 1, 0], scale)
    assert log(right[1] / left[1]) > 0.98 * float(PermuteAndFlip(scale).pure.epsilon)


@pytest.mark.parametrize("gap", [0, 1, 5, 40])
def test_the_exponential_mechanism_keeps_its_concentrated_loss(gap: int) -> None:
    mechanism = Exponential(2.0, currency="concentrated")
    assert isinstance(mechanism.loss, Concentrated)
    rho = float(mechanism.loss.rho)
    assert rho == pytest.approx(1 / 8)
    left = dict(enumerate(oracle.softmax([gap, 0, 0], 2.0)))
    right = dict(enumerate(oracle.softmax([gap - 1, 1, 0], 2.0)))
    for order in (1.001, 1.5, 2, 4, 16, 200):
        assert oracle.renyi(left, right, order) <= rho * order
        assert oracle.renyi(right, left, order) <= rho * order
    assert isinstance(Exponential(2.0).loss, Pure)


def test_permute_and_flip_would_break_that_concentrated_loss() -> None:
    """Why the law of the concentrated selection is tested: OpenDP 0.15 drew this one."""
    left = dict(enumerate(oracle.permute_and_flip([0, 0], 1.0)))
    right = dict(enumerate(oracle.permute_and_flip([1, -1], 1.0)))
    rho = float(Exponential(1.0).concentrated.rho)
    assert oracle.renyi(left, right, 2.0) > 2 * rho


@given(truth=st.floats(0.35, 0.99))
@settings(max_examples=40)
def test_randomised_response_loses_the_log_odds(truth: float) -> None:
    response = RandomisedResponse(("a", "b", "c"), truth)
    rows = response.channel()
    worst = oracle.pure_loss(dict(enumerate(rows[0])), dict(enumerate(rows[1])))
    claimed = float(response.loss.epsilon)
    assert worst <= claimed + 1e-12
    assert claimed == pytest.approx(worst, abs=1e-9)


def _shown(scale: float, threshold: int, count: int) -> dict[object, float]:
    """What is seen of one key: hidden, or a noisy count."""
    if count == 0:
        return {"hidden": 1.0}
    seen: dict[object, float] = {
        z: oracle.laplace(scale, z - count) for z in range(threshold, threshold + 200)
    }
    return {**seen, "hidden": 1 - sum(seen.values())}


@pytest.mark.parametrize(("scale", "threshold"), [(0.25, 3), (1.0, 6), (4.0, 20)])
@pytest.mark.parametrize("counts", [((1, 0), (0, 1)), ((3, 1), (2, 2)), ((1, 1), (0, 2))])
def test_thresholded_histograms_keep_epsilon_and_delta(
    scale: float, threshold: int, counts: tuple[tuple[int, int], tuple[int, int]]
) -> None:
    """One entry moves from one key to another: the exact δ at the claimed ε, both ways."""
    loss = ThresholdedHistogram(scale, threshold).loss
    assert isinstance(loss, Approximate)
    epsilon, delta = float(loss.epsilon), float(loss.delta)
    for left, right in (counts, counts[::-1]):
        laws = []
        for pair in (left, right):
            a, b = (_shown(scale, threshold, c) for c in pair)
            a = dict(sorted(a.items(), key=lambda item: -item[1])[:60])
            b = dict(sorted(b.items(), key=lambda item: -item[1])[:60])
            laws.append({(x, y): p * q for x, p in a.items() for y, q in b.items()})
        assert oracle.hockey_stick(laws[0], laws[1], epsilon) <= delta + 1e-12


@pytest.mark.statistical
def test_opendp_itself_still_understates_delta() -> None:
    """Issue 2922. When this fails OpenDP was mended: drop the correction."""
    measurement = measurements.threshold(0.25, 2)
    claimed = measurements.approximate_pair(measurement, (1, 1, 1)).delta
    released = measurements.release(measurement, {f"k{i}": 1 for i in range(3_000)})
    assert not oracle.plausible(len(released), 3_000, float(claimed), alarm=1e-9)
    truth = sum(oracle.laplace(0.25, z) for z in range(1, 50))
    assert truth > 50 * float(claimed)
    with raises(UnsoundRequest, reason="understated"):
        measurements.loss_of(measurement, (1, 1, 1))


def test_sums_and_tops_lose_what_their_noise_loses() -> None:
    bounds = Bounds(-1, 4, "0.25")
    assert bounds.width == 20
    total = BoundedSum.laplace(bounds, 40.0)
    assert total.loss == Pure("0.5") == BoundedMean(total, (7,)).loss
    assert isinstance(BoundedSum.gaussian(bounds, 40.0).loss, Concentrated)
    assert NoisyTopK(IntegerLaplace(4.0), 3).loss == Pure("0.5")
    with raises(UnsoundRequest, field="noise", needed=20):
        BoundedSum(bounds, IntegerLaplace(40.0, COUNT))


def random_channel(seed: int) -> FiniteMechanism:
    rng = np.random.default_rng(seed)
    universe = Tables.of({"a": (0, 1), "b": (0, 1, 2)})
    return FiniteMechanism(universe, rng.dirichlet(np.ones(4), size=6))


@pytest.mark.parametrize("seed", range(5))
def test_a_channel_loses_what_enumeration_finds(seed: int) -> None:
    channel = random_channel(seed)
    worst = 0.0
    for x, y in product(range(6), repeat=2):
        left, right = (channel.universe.datasets[i] for i in (x, y))
        if sum(a != b for a, b in zip(left, right, strict=True)) == 1:  # type: ignore[call-overload]
            p, q = (dict(enumerate(channel.likelihood[i].tolist())) for i in (x, y))
            worst = max(worst, oracle.pure_loss(p, q))
    claimed = float(FiniteChannel(channel).loss.epsilon)
    assert worst - 1e-12 <= claimed <= worst + 1e-12


def test_a_channel_that_ignores_its_input_loses_nothing() -> None:
    assert FiniteChannel(FiniteMechanism(Tables.bits(2), np.array([[0.3, 0.7]] * 4))).loss == Pure(
        0
    )


def test_a_channel_with_a_telling_zero_is_refused() -> None:
    with raises(UnsoundRequest, reason="infinite"):
        _ = FiniteChannel(FiniteMechanism(Tables.bits(1), np.array([[1.0, 0.0], [0.5, 0.5]]))).loss


def test_sensitivities_are_rounded_up_and_hang_together() -> None:
    assert Sensitivity.of(3) == Sensitivity("number", 3, 9, 3)
    for squared in (2, 3, 5, 7, 10**17 + 3):
        assert Sensitivity("x", squared, squared, 1).l2 ** 2 >= squared * (1 - 1e-15)

        assert Fraction(Sensitivity("x", squared, squared, 1).l2) ** 2 >= squared
    with raises(UnsoundRequest, field="sensitivity"):
        Sensitivity("x", l1=1, l2_squared=4, linf=1)


@pytest.mark.parametrize(
    ("l1", "l2_squared", "linf", "fine"),
    [(3, 9, 3, True), (3, 3, 1, True), (3, 8, 3, False), (3, 10, 1, False), (3, 10, 4, False)],
)
def test_norms_of_a_sensitivity_do_not_contradict_each_other(
    l1: int, l2_squared: int, linf: int, fine: bool
) -> None:
    if fine:
        assert Sensitivity("x", l1, l2_squared, linf).l1 == l1
    else:
        with raises(UnsoundRequest, field="sensitivity"):
            Sensitivity("x", l1, l2_squared, linf)
