"""Slow truth about Gaussian processes: high precision, and densities of outputs by quadrature.

Nothing here is taken from the package.
"""

from collections.abc import Sequence
from itertools import product
from math import erf, exp, inf, log, sqrt

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def correlation(kernel: str, parameter: float, lag: int, digits: int = 60) -> mpmath.mpf:
    """ρ(k) of a kernel, to many digits; ``parameter`` is its scale, or ρ of AR(1)."""
    with mpmath.workdps(digits):
        p, k = mpmath.mpf(parameter), mpmath.mpf(abs(lag))
        if kernel == "squared-exponential":
            return mpmath.exp(-k * k / p)
        if kernel == "ar1":
            return p ** int(k) if k else mpmath.mpf(1)
        nu = mpmath.mpf(kernel[0]) / 2  # "1/2", "3/2", "5/2": by Bessel functions
        if k == 0:
            return mpmath.mpf(1)
        z = mpmath.sqrt(2 * nu) * k / p
        return 2 ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z)


def total_correlation(kernel: str, parameter: float) -> mpmath.mpf:
    """Σ|ρ(k)| over all integers, one lag at a time until nothing is left."""
    with mpmath.workdps(40):
        total, lag = mpmath.mpf(1), 0
        while True:
            lag += 1
            more = 2 * abs(correlation(kernel, parameter, lag, 40))
            total += more
            if more < total * mpmath.mpf("1e-30"):
                return total


def conditional(law: Array, mean: Array, entry: int, value: float) -> tuple[Array, Array]:
    """The mean and covariance of the other entries, given one."""
    rest = [j for j in range(len(law)) if j != entry]
    given = law[rest, entry] / law[entry, entry]
    return (
        mean[rest] + given * (value - mean[entry]),
        law[np.ix_(rest, rest)] - np.outer(given, law[entry, rest]),
    )


def points(mean: Array, law: Array, *, count: int = 301, reach: float = 9.0) -> tuple[Array, Array]:
    """``[point, entry]`` of a grid over a Gaussian law, and the weight of each point."""
    root = np.linalg.cholesky(law + 1e-14 * np.eye(len(law)))
    axis = np.linspace(-reach, reach, count)
    standard = np.array(list(product(axis, repeat=len(mean))))
    weight = np.exp(-(standard**2).sum(axis=1) / 2)
    return mean + standard @ root.T, weight / weight.sum()


def laplace_density(
    law: Array,
    mean: Array,
    entry: int,
    value: float,
    queries: Sequence[tuple[Array, float, tuple[float, float] | None]],
    outputs: Array,
) -> Array:
    """``[output]``: the log-density of outputs, one number for each query, given one entry.

    A query has weights, the scale of its Laplace noise, and bounds to clamp the numbers to.
    """
    others, weight = points(
        *conditional(law, mean, entry, value), count=121 if len(law) > 2 else 1201
    )
    whole = np.insert(others, entry, value, axis=1)
    density = np.empty(len(outputs))
    for k, output in enumerate(outputs):
        exponent = np.zeros(len(whole))
        for (weights, scale, bounds), out in zip(queries, output, strict=True):
            seen = whole if bounds is None else np.clip(whole, *bounds)
            exponent -= np.abs(out - seen @ weights) / scale
        top = exponent.max()
        density[k] = top + log(float(weight @ np.exp(exponent - top)))
    return density


def laplace_loss(
    law: Array,
    mean: Array,
    entry: int,
    pair: tuple[float, float],
    queries: Sequence[tuple[Array, float, tuple[float, float] | None]],
    outputs: Array,
) -> float:
    """The largest log-ratio over some outputs."""
    x, y = (laplace_density(law, mean, entry, value, queries, outputs) for value in pair)
    return float(np.abs(x - y).max())


def gaussian_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """δ(ε) of two unit normal laws that are ``mu`` apart, to many digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def joint_mu(law: Array, shift: Array) -> float:
    """How far apart two normal laws with one covariance are, in deviations."""
    return float(sqrt(shift @ np.linalg.solve(law, shift)))


def clamped_leak(
    mean: tuple[float, float], deviation: float, low: float, high: float, steep: float
) -> float:
    """The logarithm of E exp(steep·clamp X) under N(mean[0], ·) less that of N(mean[1], ·)."""

    def log_mean(m: float) -> float:
        def phi(z: float) -> float:
            return (1 + erf(z / sqrt(2))) / 2 if z < inf else 1.0

        a, b = (low - m) / deviation, (high - m) / deviation
        s = steep * deviation
        return log(
            exp(steep * low) * phi(a)
            + exp(steep * high) * phi(-b)
            + exp(steep * m + s * s / 2) * (phi(b - s) - phi(a - s))
        )

    return log_mean(mean[0]) - log_mean(mean[1])
