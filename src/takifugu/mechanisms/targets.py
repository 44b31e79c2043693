"""From an error that is wanted to the most noise that still keeps it, hence the least loss."""

from collections.abc import Callable, Iterator
from math import exp, log1p, sqrt

import numpy as np

from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import backend, laws
from takifugu.mechanisms.candidates import Additive, Priced, Selection
from takifugu.mechanisms.checks import WIDEST
from takifugu.mechanisms.checks import chance as checked_chance
from takifugu.mechanisms.gaussian_top import GaussianTopK
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.prediction import Shape, predicted
from takifugu.mechanisms.protocol import Sensitivity
from takifugu.mechanisms.selection import Exponential, LaplaceTopK, PermuteAndFlip
from takifugu.numeric import Floats


def additive_within(
    distance: float, chance: float, delta: float | None, sensitivity: Sensitivity
) -> Iterator[Priced[Additive]]:
    """The most noise that stays within ±``distance`` with ``chance``; Gaussian if δ is allowed."""
    if not distance >= 1:  # also false for NaN
        raise UnsoundRequest(
            f"within is {distance:g}; counts are whole and noise on them too: ask for 1 or more"
        )
    reach, miss = int(min(distance, WIDEST)), 1 - checked_chance(chance, "chance")
    scale = _largest(lambda s: laplace_beyond(s, reach) <= miss, reach)
    laplace = IntegerLaplace(scale, sensitivity)
    yield Priced(laplace, laplace.loss)
    if delta is not None:
        scale = _largest(lambda s: gaussian_beyond(s, reach) <= miss, reach)
        gaussian = IntegerGaussian(scale, sensitivity)
        yield Priced(gaussian, gaussian.approximate(delta))


def ranked_right(
    references: Floats, k: int, chance: float, delta: float | None, sensitivity: Sensitivity
) -> Iterator[Priced[Selection]]:
    """The most noise with which the places are right, on average, with ``chance``.

    ``references[group, category]`` are public or made-up.
    """
    wanted = checked_chance(chance, "chance")

    def scale(shape: Shape) -> float:
        return _largest(lambda s: mean_right(references, k, shape, s) >= wanted, 1.0)

    laplace = LaplaceTopK(IntegerLaplace(scale("laplace"), sensitivity), k)
    yield Priced(laplace, laplace.loss)
    flips = PermuteAndFlip(scale("flips"), k, sensitivity.linf)
    yield Priced(flips, flips.pure)
    width = scale("gumbel")
    peeled = Exponential(width, k, sensitivity.linf)
    yield Priced(peeled, peeled.pure)
    if delta is not None:
        gaussian = GaussianTopK(IntegerGaussian(scale("gaussian"), sensitivity), k)
        yield Priced(gaussian, gaussian.approximate(delta))
        rounds = backend.noisy_top(k, width, concentrated=True)
        yield Priced(
            Exponential(width, k, sensitivity.linf, currency="concentrated"),
            backend.approximate(rounds, sensitivity.linf, delta),
        )


def mean_right(references: Floats, k: int, shape: Shape, scale: float) -> float:
    """The mean chance, over groups and places, that a place is right."""
    return float(np.mean([predicted(row, k, shape, scale).mean for row in references]))


def laplace_beyond(scale: float, reach: int) -> float:
    """P(|Z| > reach) of integer Laplace noise: 2 r^(reach+1) / (1 + r), r = e^(−1/scale)."""
    return 2 * exp(-(reach + 1) / scale - log1p(exp(-1 / scale)))


def gaussian_beyond(scale: float, reach: int) -> float:
    """P(|Z| > reach) of integer Gaussian noise; of a rounded normal when it is very wide."""
    if scale > laws.TABLE / 40:
        from scipy.special import erfc

        return float(erfc((reach + 0.5) / (scale * sqrt(2))))
    z, p = laws.gaussian_table(scale)
    return float(p[np.abs(z) > reach].sum())


def _largest(good: Callable[[float], bool], guess: float) -> float:
    """The largest scale, to one part in 10⁴ and from below, that is good; the narrower the better.

    Noise much narrower than 1 changes no count, so the search ends there.
    """
    low = guess
    while not good(low):
        low /= 2
        if low < 2.0**-6:
            raise UnsoundRequest("no noise keeps this target; ask for less")
    high = 2 * low
    while good(high):
        low, high = high, 2 * high
        if high > WIDEST:
            raise UnsoundRequest("any noise keeps this target; nothing needs to be released")
    while high - low > 1e-4 * low:
        middle = (low + high) / 2
        low, high = (middle, high) if good(middle) else (low, middle)
    return low
