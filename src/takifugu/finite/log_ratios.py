"""Logarithms of ratios, rounded the safe way: of floats with known error, and of fractions."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from takifugu.numeric import UNIT, Floats, Integers


def losses_up(
    probabilities: Floats, left: Sequence[int], right: Sequence[int], *, error: float
) -> Floats:
    """log(chances[left] / chances[right]), rounded up, of numbers within a factor 1 ± ``error``.

    Each logarithm is off by a unit in the last place, 2u of it, and by −log(1 − error); adding
    that to it, and the difference in the end, are off by one u more each. So every logarithm is
    widened by 4u of itself. A numerator of 0 gives −∞ (an impossible output reveals
    nothing), a denominator of 0 under a positive numerator +∞ (it reveals everything).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.log(probabilities)
        slack = np.abs(middle)
        slack *= 4 * UNIT
        slack += error / (1 - error) + 8 * UNIT
        table: Floats = (middle + slack)[left] - (middle - slack)[right]
    impossible = probabilities == 0
    if impossible.any():
        table[impossible[right]] = np.inf
        table[impossible[left]] = -np.inf
    return table


def loss_up(numerator: float, denominator: float, *, error: float) -> float:
    """log(n/d), rounded up: `losses_up` of one ratio."""
    return float(losses_up(np.array([numerator, denominator]), [0], [1], error=error)[0])


def added_by(loss: float, numerator: float, denominator: float) -> float:
    """How far ``loss``, rounded up by `losses_up`, may lie above log(n/d); 0 if infinite."""
    if math.isinf(loss):
        return 0.0
    raised = loss - (math.log(numerator) - math.log(denominator))
    return 2 * raised + 8 * UNIT * (1 + abs(math.log(numerator)) + abs(math.log(denominator)))


def log_bounds(ratio: Fraction) -> tuple[float, float]:
    """Floats just below and just above log(``ratio``); both −∞ at 0."""
    if ratio == 0:
        return -math.inf, -math.inf
    shift = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    scaled = ratio / Fraction(2) ** shift  # between 1/2 and 2
    value = math.log(scaled) + shift * math.log(2)
    # three roundings, and log 2 is off by a unit in the last place `shift` times
    slack = 8 * UNIT * (1 + abs(value) + abs(shift))
    return value - slack, value + slack


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
