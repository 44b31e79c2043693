"""The slow truth about (ε, δ): every output of integer noise, and what two sides make of it.

Noise is cut off far out; the mass that is left out is at most ``MISSED`` for one number.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
MISSED = 1e-13


def gaussian(scale: float) -> tuple[NDArray[np.int64], Floats]:
    """Integers and their probabilities, P(z) ∝ exp(−z²/2 scale²)."""
    far = int(np.ceil(8 * scale)) + 3
    z = np.arange(-far, far + 1)
    weights = np.exp(-((z / scale) ** 2) / 2)
    return z, weights / weights.sum()


def laplace(scale: float) -> tuple[NDArray[np.int64], Floats]:
    """Integers and their probabilities, P(z) ∝ exp(−|z|/scale)."""
    far = int(np.ceil(31 * scale)) + 3
    z = np.arange(-far, far + 1)
    weights = np.exp(-np.abs(z) / scale)
    return z, weights / weights.sum()


def channel(values: Sequence[int], noise: tuple[NDArray[np.int64], Floats]) -> Floats:
    """``[dataset, output]``: the probabilities of the noisy value, for each dataset's exact one."""
    z, p = noise
    low, high = min(values), max(values)
    found = np.zeros((len(values), len(z) + high - low))
    for row, value in zip(found, values, strict=True):
        row[value - low : value - low + len(z)] = p
    return found


def both(one: Floats, other: Floats) -> Floats:
    """``[dataset, output]`` of two channels that draw on their own."""
    found: Floats = (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)
    return found


def delta(left: Floats, right: Floats, epsilon: float) -> float:
    """The hockey-stick divergence of two laws over the same outputs."""
    return float(np.maximum(left - np.exp(epsilon) * right, 0.0).sum())


def worst_delta(
    outputs: Floats, probabilities: Floats, sides: NDArray[np.bool_], epsilon: float
) -> float:
    """The largest δ of any question ``sides[question, dataset]`` against its opposite."""
    worst = 0.0
    for one in (*sides, *~sides):
        left = (probabilities * one) @ outputs / (probabilities * one).sum()
        right = (probabilities * ~one) @ outputs / (probabilities * ~one).sum()
        worst = max(worst, delta(left, right, epsilon))
    return worst
