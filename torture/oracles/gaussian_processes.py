r"""Gaussian processes beside the shift of all means, in 50 digits.

Given X_i = x against y the means differ by :math:`(K_{ji}/K_{ii})(x − y)`, so that a release with
the cost :math:`w·|u − v|` on every entry, clamped to a width, loses at most
:math:`w \sum_j \min(r|K_{ji}|/K_{ii}, \mathrm{width})`. With bounds that are hundreds of deviations
away, w of at most a deviation's inverse and K ≥ 0 that is attained, by the likelihood
:math:`e^{w\sum_j X_j}`, but for a share far below :math:`10^{-1000}`. With bounds near the mean and
two entries, that mechanism's loss is a closed form of normal laws, and a lower bound.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from takifugu.costs.cost import Cost, Distance
from takifugu.priors import AR1, Covariance, Gaussian, Matern, Secrets, SquaredExponential
from takifugu.translation import LinearQuery, LinearReleases, Translation
from torture.oracles.comparison import Compared, Family, Instance, Rng
from torture.oracles.extreme_draws import length

DIGITS = 50
STEEP = (-300.0, -30.0, *(-3.0, -1.0, -0.3) * 5)  # of the noise, as a power of ten
FAR = 400  # deviations from the mean to bounds that do not matter


def _draw_process(rng: Rng) -> Instance:
    kind = str(rng.choice(["se", "ar1", "1/2", "3/2", "5/2"]))
    parameter = float(np.exp(rng.uniform(np.log(0.05), np.log(30))))
    if kind == "ar1":
        parameter = float(rng.choice([0.0, 0.5, 0.9, -0.7, 0.999, rng.uniform(-1, 1)]))
    wide = bool(rng.random() < 0.6)
    return {
        "kernel": [kind, parameter],
        "length": None if rng.random() < 0.2 else length(rng, 200),
        "deviation": float(10.0 ** rng.uniform(-3, 3)),
        "wide": wide,
        "width": float(rng.uniform(0.5, 8)),
        "within": float(10.0 ** rng.uniform(-2, 1)),
        "steep": float(10.0 ** rng.choice(STEEP)),
    }


def _kernel(kind: str, parameter: float) -> Any:
    if kind == "se":
        return SquaredExponential(parameter)
    return AR1(parameter) if kind == "ar1" else Matern(kind, parameter)


def _correlation(kind: str, parameter: float, lag: int) -> Any:
    p, k = mpmath.mpf(parameter), mpmath.mpf(lag)
    if kind == "se":
        return mpmath.exp(-k * k / p)
    if kind == "ar1":
        return p**lag if lag else mpmath.mpf(1)
    a = mpmath.sqrt(int(kind[0])) * k / p
    more = {"1/2": 0, "3/2": a, "5/2": a + a * a / 3}[kind]
    return (1 + more) * mpmath.exp(-a)


def process(instance: Instance) -> tuple[Translation, Cost]:
    """The translation of a process, and what the noisy sum costs each entry."""
    deviation, (kind, parameter) = instance["deviation"], instance["kernel"]
    kernel = _kernel(kind, parameter)
    prior = Gaussian(kernel, instance["length"], variance=deviation * deviation)
    within, weight, bounds = _asked(instance)
    cost = Cost.of({Distance(*bounds): weight * (bounds[1] - bounds[0])})
    return Translation(prior, Secrets(within=within)), cost


def _asked(instance: Instance) -> tuple[Fraction, Fraction, tuple[Fraction, Fraction]]:
    """How far secrets are apart, the loss per unit of distance, and the bounds."""
    deviation = instance["deviation"]
    half = FAR if instance["wide"] else instance["width"] / 2
    bounds = Fraction(-half * deviation), Fraction(half * deviation)
    within = Fraction(instance["within"] * deviation)
    return within, Fraction(instance["steep"] / deviation), bounds


def _compare_process(instance: Instance) -> Iterator[Compared]:
    deviation, (kind, parameter) = instance["deviation"], instance["kernel"]
    variance = deviation * deviation
    within, weight, bounds = _asked(instance)
    width = bounds[1] - bounds[0]
    translation, cost = process(instance)
    found = translation.explain_cost(cost)
    # A logarithm of nearly equal sums is known to as many digits as are left of its size.
    small = max(0, -int(mpmath.log10(instance["steep"])))
    with mpmath.workdps(DIGITS + small):
        r, w, wide = (_mpf(v) for v in (within, weight, width))
        shares = _shares(instance, r, wide)
        most = w * shares
        signed = kind == "ar1" and parameter < 0
        least = w * min(r, wide)
        if instance["wide"] and not signed and instance["steep"] * (instance["length"] or 1) < 30:
            least = most
        elif instance["length"] == 2 and not signed:
            least = max(least, _pair_leak(instance, w, r, wide, _mpf(Fraction(variance))))
    yield Compared(
        *("noisy sum", found.pufferfish, least, most),
        *(found.witness.leak, found.exact),
    )


def _shares(instance: Instance, within: Any, width: Any) -> Any:
    """Σ_j min(r|ρ_ij|, width) of the entry in the middle."""
    kind, parameter = instance["kernel"]
    size = instance["length"]
    ends = (10**6, 10**6) if size is None else (size // 2, size - 1 - size // 2)
    total = min(within, width)
    for end in ends:
        for lag in range(1, end + 1):
            more = min(within * abs(_correlation(kind, parameter, lag)), width)
            total += more
            if more <= total * mpmath.mpf("1e-45"):
                break
    return total


def _pair_leak(instance: Instance, w: Any, r: Any, width: Any, variance: Any) -> Any:
    """What e^{w(clamp X_0 + clamp X_1)} tells of X_0, from some places within the bounds."""
    kind, parameter = instance["kernel"]
    rho = _correlation(kind, parameter, 1)
    rest = mpmath.sqrt(variance * (1 - rho * rho))
    best = mpmath.mpf(0)
    if not rest > 0 or r > width:
        return best
    low, high = -width / 2, width / 2
    for share in (0, 1, 2, 3, 4):
        y = low + (width - r) * share / 4
        for sign in (1, -1):
            means = [_tilted_mean(rho * v, rest, low, high, sign * w) for v in (y + r, y)]
            best = max(best, w * r + sign * mpmath.log(means[0] / means[1]))
    return best


def _tilted_mean(mean: Any, deviation: Any, low: Any, high: Any, steep: Any) -> Any:
    """E exp(steep·clamp X) of X ~ N(mean, deviation²)."""
    a, b = (low - mean) / deviation, (high - mean) / deviation
    s = steep * deviation
    inside = mpmath.exp(steep * mean + s * s / 2) * (mpmath.ncdf(b - s) - mpmath.ncdf(a - s))
    return (
        mpmath.exp(steep * low) * mpmath.ncdf(a)
        + mpmath.exp(steep * high) * mpmath.ncdf(-b)
        + inside
    )


def _mpf(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def _draw_linear(rng: Rng) -> Instance:
    size = int(rng.integers(1, 6))
    root = rng.normal(size=(size, size)) * 10.0 ** rng.uniform(-2, 2, size=(size, 1))
    law = root @ root.T
    law = (law + law.T) / 2 + np.diag(np.diag(law)) * 1e-6 + np.eye(size) * 1e-6
    queries = [
        [float(rng.choice([0.0, 1.0, -1.0, rng.normal()])) for _ in range(size)]
        for _ in range(int(rng.integers(1, 4)))
    ]
    top = 300 if rng.random() < 0.05 else 3
    return {
        "law": law.tolist(),
        "queries": [q if any(q) else [1.0] * size for q in queries],
        "scales": (10.0 ** rng.uniform(-3, top, len(queries))).tolist(),
        "within": float(10.0 ** rng.uniform(-3, 3)),
    }


def linear_releases(
    instance: Instance,
) -> tuple[LinearReleases, list[tuple[LinearQuery, Fraction]]]:
    """A Gaussian, and linear queries with the scales of their noise."""
    prior = Gaussian(Covariance(np.array(instance["law"])))
    listed = [
        (LinearQuery(weights), Fraction(scale))
        for weights, scale in zip(instance["queries"], instance["scales"], strict=True)
    ]
    return LinearReleases(prior, Secrets(within=Fraction(instance["within"]))), listed


def _compare_linear(instance: Instance) -> Iterator[Compared]:
    releases, listed = linear_releases(instance)
    law = [[Fraction(v) for v in row] for row in instance["law"]]
    within = Fraction(instance["within"])
    worst, squares = Fraction(0), Fraction(0)
    for i in range(len(law)):
        shifts = []
        for weights, (_, scale) in zip(instance["queries"], listed, strict=True):
            moved = sum((Fraction(a) * law[j][i] for j, a in enumerate(weights)), Fraction(0))
            shifts.append(abs(moved) / law[i][i] * within / scale)
        worst = max(worst, sum(shifts, Fraction(0)))
        squares = max(squares, sum((s * s for s in shifts), Fraction(0)))
    laplace, normal = releases.laplace(listed), releases.gaussian(listed)
    with mpmath.workdps(DIGITS):
        truth, mu = _mpf(worst), mpmath.sqrt(_mpf(squares))
    yield Compared(
        *("Laplace noise", laplace.pufferfish, truth, truth, laplace.lower, laplace.exact)
    )
    # adaptively the shifts alone count; a fixed list also hides in the prior's own variance
    yield Compared("Gaussian noise", normal.mu, mu, mu, counted=False)


SHIFT = "the shift of all means, 50 digits"
FAMILIES = (
    Family("Gaussian process, noisy sum", SHIFT, _draw_process, _compare_process),
    Family("Gaussian, linear queries", "the shift, in fractions", _draw_linear, _compare_linear),
)
