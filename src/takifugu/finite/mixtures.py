"""Mixtures of likelihoods: exactly in fractions, or by their logarithms."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from takifugu._core.numeric import Floats, Integers


def exact_mixture(
    weights: Sequence[float], likelihood: Floats, counts: Sequence[int] | Integers
) -> Fraction:
    """Σ_D w_D · Π_ω likelihood[D, ω]^counts[ω], with every float taken as the fraction it is."""
    seen = [(w, int(c)) for w, c in enumerate(counts) if c]
    terms: list[tuple[int, int]] = []  # mantissa · 2^exponent
    for weight, row in zip(weights, likelihood, strict=True):
        mantissa, exponent = _binary(float(weight))
        for w, c in seen:
            factor, power = _binary(float(row[w]))
            mantissa *= factor**c
            exponent += power * c
        if mantissa:
            terms.append((mantissa, exponent))
    if not terms:
        return Fraction(0)
    least = min(exponent for _, exponent in terms)
    total = sum(mantissa << (exponent - least) for mantissa, exponent in terms)
    return Fraction(total) * Fraction(2) ** least


def _binary(value: float) -> tuple[int, int]:
    """``value`` as an integer times a power of two."""
    numerator, denominator = value.as_integer_ratio()
    return numerator, 1 - denominator.bit_length()


def log_sum(terms: Floats) -> Floats:
    """The logarithm of Σ exp over the last axis; −∞ where every term is −∞."""
    top = terms.max(axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Floats = np.log(np.exp(terms - top).sum(axis=-1)) + top[..., 0]
    return total
