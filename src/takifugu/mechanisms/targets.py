"""From a target for the error to the most noise that still meets it, hence the least loss."""

from collections.abc import Callable, Iterator
from math import exp, log1p, sqrt

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms import opendp_measurements as measurements
from takifugu.mechanisms.candidates import Additive, Priced, Selection
from takifugu.mechanisms.checks import WIDEST, probability
from takifugu.mechanisms.mechanism_protocol import Sensitivity
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.prediction import Shape, predicted
from takifugu.mechanisms.selection import Exponential, NoisyTopK, PermuteAndFlip


def additive_within(
    distance: float, confidence: float, delta: float | None, sensitivity: Sensitivity
) -> Iterator[Priced[Additive]]:
    """The most noise within ±``distance`` with ``confidence``; Gaussian if a δ is allowed."""
    if not distance >= 1:  # also false for NaN
        raise UnsoundRequest(
            f"within is {distance:.4g}; counts are whole and noise on them too: ask for 1 or more",
            field="within",
            given=distance,
            needed=1,
        )
    reach, miss = int(min(distance, WIDEST)), 1 - probability(confidence, "confidence")
    scale = _largest(lambda s: laplace_beyond(s, reach) <= miss, reach)
    laplace = IntegerLaplace(scale, sensitivity)
    yield Priced(laplace, laplace.loss)
    if delta is not None:
        scale = _largest(lambda s: gaussian_beyond(s, reach) <= miss, reach)
        gaussian = IntegerGaussian(scale, sensitivity)
        yield Priced(gaussian, gaussian.approximate(delta))


def ranked_right(
    references: Floats,
    k: int,
    confidence: float,
    delta: float | None,
    sensitivity: Sensitivity,
    weights: Floats | None = None,
) -> Iterator[Priced[Selection]]:
    """The most noise with which the places are right, on average, with ``confidence``.

    ``references[group, category]`` are public or synthetic; ``weights[group]`` count in the mean.
    """
    target = probability(confidence, "confidence")

    def scale(shape: Shape) -> float:
        return _largest(lambda s: mean_right(references, k, shape, s, weights) >= target, 1.0)

    laplace = IntegerLaplace(scale("laplace"), sensitivity)
    yield Priced(NoisyTopK(laplace, k), laplace.loss)
    flips = PermuteAndFlip(scale("flips"), k, sensitivity.linf)
    yield Priced(flips, flips.pure)
    width = scale("gumbel")
    peeled = Exponential(width, k, sensitivity.linf)
    yield Priced(peeled, peeled.pure)
    if delta is not None:
        gaussian = IntegerGaussian(scale("gaussian"), sensitivity)
        yield Priced(NoisyTopK(gaussian, k), gaussian.approximate(delta))
        rounds = measurements.noisy_top(k, width, concentrated=True)
        yield Priced(
            Exponential(width, k, sensitivity.linf, currency="concentrated"),
            measurements.approximate(rounds, sensitivity.linf, delta),
        )


def mean_right(
    references: Floats, k: int, shape: Shape, scale: float, weights: Floats | None = None
) -> float:
    """The mean probability, over groups and places, that a place is right."""
    return predicted(references, k, shape, scale, weights).mean


def laplace_beyond(scale: float, reach: int) -> float:
    """P(|Z| > reach) of integer Laplace noise: 2 r^(reach+1) / (1 + r), r = e^(−1/scale)."""
    return 2 * exp(-(reach + 1) / scale - log1p(exp(-1 / scale)))


def gaussian_beyond(scale: float, reach: int) -> float:
    """P(|Z| > reach) of integer Gaussian noise; of a rounded normal when it is very wide."""
    if scale > noise_laws.TABLE / 40:
        from scipy.special import erfc

        return float(erfc((reach + 0.5) / (scale * sqrt(2))))
    z, p = noise_laws.gaussian_table(scale)
    return float(p[np.abs(z) > reach].sum())


def _largest(good: Callable[[float], bool], guess: float) -> float:
    """The largest scale, to one part in 10⁴ and from below, that is good; the narrower the better.

    Noise much narrower than 1 changes no count, so the search ends there.
    """
    low = guess
    while not good(low):
        low /= 2
        if low < 2.0**-6:
            raise UnsoundRequest("no noise keeps this target; ask for less", reason="too strict")
    high = 2 * low
    while good(high):
        low, high = high, 2 * high
        if high > WIDEST:
            raise UnsoundRequest(
                "any noise keeps this target; nothing needs to be released", reason="too loose"
            )
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low
