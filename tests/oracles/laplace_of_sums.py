"""The law of a sum of jointly normal numbers with Laplace noise, in closed form.

Given one of the numbers the sum is normal, and so the density of an output is known. The loss is
the largest ratio of two such densities, which is reached far out. Nothing of the package.
"""

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]


def true_leak(covariance: Floats, entry: int, apart: float, scale: float) -> float:
    """The largest log ratio of outputs given two values of an entry that are ``apart``."""
    whole = covariance[entry, entry]
    shift = float(covariance[entry].sum() / whole) * apart
    variance = float(covariance.sum() - covariance[entry].sum() ** 2 / whole)
    outputs = np.linspace(-50, 50, 2001) * (sqrt(variance) + scale)
    first, second = (log_density(outputs, m, variance, scale) for m in (shift / 2, -shift / 2))
    return float(np.max(np.abs(first - second)))


def log_density(outputs: Floats, mean: float, variance: float, scale: float) -> Floats:
    """Of a normal number plus Laplace noise."""
    root, away = sqrt(variance), outputs - mean
    parts = [
        variance / (2 * scale**2)
        - sign * away / scale
        + log_ndtr(sign * away / root - root / scale)
        for sign in (1, -1)
    ]
    found: Floats = np.logaddexp(*parts) - log(2 * scale)
    return found
