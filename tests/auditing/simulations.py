"""Small mechanisms, right and wrong, with their exact laws; for the auditor to judge."""

from collections.abc import Callable, Sequence
from math import exp
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.auditing import Comparison, always, simulated

Simulate = Callable[..., Any]


def geometric(shape: Any, scale: float, rng: np.random.Generator) -> Integers:
    """Two-sided geometric noise: P(z) ∝ e^{−|z|/scale}."""
    p = 1 - exp(-1 / scale)
    noise: Integers = rng.geometric(p, shape) - rng.geometric(p, shape)
    return noise


def geometric_law(reach: int, scale: float) -> Floats:
    """P(z) for |z| ≤ reach."""
    a = exp(-1 / scale)
    law: Floats = (1 - a) / (1 + a) * a ** np.abs(np.arange(-reach, reach + 1.0))
    return law


def noisy_counts(scale: float) -> Simulate:
    """Independent noise of this scale on every count."""

    def simulate(counts: Integers, *, rng: np.random.Generator) -> Integers:
        return counts + geometric(counts.shape, scale, rng)

    return simulate


def shared_noise(scale: float) -> Simulate:
    """The bug: one noise for all counts of a release."""

    def simulate(counts: Integers, *, rng: np.random.Generator) -> Integers:
        return counts + geometric((len(counts), 1), scale, rng)

    return simulate


def exponential(factor: float) -> Simulate:
    """Picks c with P ∝ e^{factor·count}; factor = ε/2 is right for sensitivity 1."""

    def simulate(counts: Integers, *, rng: np.random.Generator) -> Integers:
        noisy = factor * counts + rng.gumbel(size=counts.shape)
        winner: Integers = np.argmax(noisy, axis=1)
        return winner

    return simulate


def randomised_response(epsilon: float) -> Simulate:
    """Every bit is flipped with probability 1/(1 + e^ε)."""

    def simulate(bits: Integers, *, rng: np.random.Generator) -> Integers:
        return np.where(rng.random(bits.shape) < 1 / (1 + exp(epsilon)), 1 - bits, bits)

    return simulate


def noisy_total(epsilon: float) -> Simulate:
    """How many ones, with noise for one replaced bit."""

    def simulate(bits: Integers, *, rng: np.random.Generator) -> Integers:
        noisy: Integers = bits.sum(axis=1) + geometric(len(bits), 1 / epsilon, rng)
        return noisy

    return simulate


def between(
    simulate: Simulate, first: Sequence[int], second: Sequence[int], rng: np.random.Generator
) -> Comparison:
    """Two datasets that differ in one entry."""
    one, other = (simulated(simulate, always(np.array(d)), rng=rng) for d in (first, second))
    return Comparison(one, other)
