"""Noise follows its law, as OpenDP draws it and as numpy simulates it.

Secure noise has no seed. Each test counts how often events of known probability happened, and
rejects by the exact binomial law; all its events together raise a false alarm at most once in 10⁹.
The controls prove that noise 15 % too narrow or too wide would be caught.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from takifugu._core.numeric import Integers
from takifugu.mechanisms import IntegerGaussian, IntegerLaplace, ThresholdedHistogram
from takifugu.mechanisms.noise import IntegerGaussian as Gaussian
from tests.oracles import noise as oracle

ALARM = 1e-9
DRAWS = 12_000
SCALE = 3.0
REACH = 200
Noise = type[IntegerLaplace] | type[Gaussian]
LAWS: Mapping[Noise, Callable[[float, int], float]] = {
    IntegerLaplace: oracle.laplace,
    IntegerGaussian: oracle.gaussian,
}
EVENTS = [("near", 0), ("near", 2), ("near", 4), ("far", 6), ("above", 0), ("above", 3)]


def happens(event: tuple[str, int], z: Integers) -> Integers:
    """1 where the event is true: |z| ≤ t, |z| ≥ t or z > t."""
    kind, t = event
    where = {"near": np.abs(z) <= t, "far": np.abs(z) >= t, "above": z > t}[kind]
    return where.astype(np.int64)


def probability(law: Callable[[float, int], float], scale: float, event: tuple[str, int]) -> float:
    support = np.arange(-REACH, REACH + 1)
    return float(
        sum(law(scale, int(z)) for z in support[happens(event, support).astype(bool)].tolist())
    )


def follows(noise: Integers, law: Callable[[float, int], float], scale: float) -> bool:
    return all(
        oracle.plausible(
            int(happens(event, noise).sum()),
            noise.size,
            probability(law, scale, event),
            alarm=ALARM / len(EVENTS),
        )
        for event in EVENTS
    )


@pytest.mark.statistical
@pytest.mark.parametrize("kind", list(LAWS))
def test_released_noise_follows_its_law(kind: Noise) -> None:
    released = kind(SCALE).release(np.full((120, DRAWS // 120), 7))
    assert released.shape == (120, DRAWS // 120)
    assert follows(released.ravel() - 7, LAWS[kind], SCALE)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", list(LAWS))
def test_simulated_noise_follows_the_same_law(kind: Noise) -> None:
    rng = np.random.default_rng(1)
    simulated = kind(SCALE).simulate([7, -2, 0], 10 * DRAWS, rng=rng)
    assert simulated.shape == (10 * DRAWS, 3)
    assert follows(simulated - np.array([7, -2, 0]), LAWS[kind], SCALE)


@pytest.mark.parametrize("wrong", [0.85, 1.15])
@pytest.mark.parametrize("kind", list(LAWS))
def test_the_tests_above_would_catch_a_wrong_scale(kind: Noise, wrong: float) -> None:
    rng = np.random.default_rng(2)
    noise = kind(wrong * SCALE).simulate(np.zeros(DRAWS, dtype=int), 1, rng=rng)
    assert not follows(noise, LAWS[kind], SCALE)
    best = max(
        oracle.power(
            DRAWS,
            probability(LAWS[kind], SCALE, event),
            probability(LAWS[kind], wrong * SCALE, event),
            alarm=ALARM / len(EVENTS),
        )
        for event in EVENTS
    )
    assert best > 1 - 1e-6


@pytest.mark.statistical
def test_a_shifted_noise_would_be_caught() -> None:
    rng = np.random.default_rng(3)
    noise = IntegerLaplace(SCALE).simulate(np.ones(DRAWS, dtype=int), 1, rng=rng)
    assert not follows(noise, oracle.laplace, SCALE)


@pytest.mark.statistical
def test_a_very_wide_simulated_gaussian_is_a_normal() -> None:
    rng = np.random.default_rng(4)
    noise = IntegerGaussian(1e6).simulate([0], DRAWS, rng=rng)
    hits = int((np.abs(noise) <= 1e6).sum())
    assert oracle.plausible(hits, DRAWS, 0.682689, alarm=ALARM)


KEYS = 2_000


def shown(scale: float, threshold: int, count: int) -> float:
    return sum(oracle.laplace(scale, z) for z in range(threshold - count, 400))


@pytest.mark.statistical
@pytest.mark.parametrize("count", [3, 9])
def test_keys_pass_the_threshold_as_often_as_predicted(count: int) -> None:
    histogram = ThresholdedHistogram(4.0, 8)
    keys = {f"k{i}": count for i in range(KEYS)}
    released = histogram.release(keys)
    assert min(released.values()) == 8
    predicted = shown(4.0, 8, count)
    assert histogram.shown(count) == pytest.approx(predicted, rel=1e-9)
    assert oracle.plausible(len(released), KEYS, predicted, alarm=ALARM / 2)
    simulated = histogram.simulate(keys, 1, rng=np.random.default_rng(5))
    hits = int((~np.isnan(simulated)).sum())
    assert oracle.plausible(hits, KEYS, predicted, alarm=ALARM / 2)


def test_the_test_above_would_catch_a_strict_threshold() -> None:
    assert oracle.power(KEYS, shown(4.0, 8, 3), shown(4.0, 11, 3), alarm=ALARM / 2) > 1 - 1e-6
