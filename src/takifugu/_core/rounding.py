"""Directed rounding: losses go up, allowances go down.

Every probability given to takifugu counts as exact, as the float64 (or Fraction) it is. What
arithmetic does to it afterwards is bounded by the standard model of floating point
(Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., section 3.1): a sum of n
non-negative products is off by a factor of at most 1 ± γ(n), γ(n) = n·u / (1 − n·u), u = 2⁻⁵³.

* `float_up`, `float_down`: the nearest float on the safe side of an exact rational.
* `up`, `down`: a computed bound, moved past the error of the few operations that made it.
* `log_ratio_up`, `losses_up`, `log_bounds`: logarithms of ratios.
"""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats

UNIT = 2.0**-53  # unit roundoff of float64
_LARGEST = math.nextafter(math.inf, 0.0)


def float_up(value: Fraction) -> float:
    """The least float that is not below ``value``; infinity if all of them are."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -_LARGEST
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above ``value``: never infinity for a positive one."""
    return -float_up(-value) + 0.0


def up(bound: ArrayLike) -> Floats:
    """An upper bound, raised past the rounding of the few operations that computed it.

    By 8 units of roundoff of 1 + |bound|; an infinite bound stays.
    """
    value = np.asarray(bound, dtype=np.float64)
    return value + _margin(value)


def down(bound: ArrayLike) -> Floats:
    """A lower bound, lowered past the rounding of the few operations that computed it."""
    value = np.asarray(bound, dtype=np.float64)
    return value - _margin(value)


def _margin(value: Floats) -> Floats:
    return np.where(np.isinf(value), 0.0, (np.abs(value) + 1.0) * (8 * UNIT))


def gamma(terms: int) -> float:
    """Higham's γ(n): the relative error of a float64 sum of ``terms`` non-negative products.

    Infinite where n·u is no longer below 1: then no digit is left.
    """
    n = terms + 2  # the products themselves, and a division by the total
    return n * UNIT / (1 - n * UNIT) if n * UNIT < 1 else math.inf


def log_ratio_up(numerator: ArrayLike, denominator: ArrayLike, *, error: float) -> Floats:
    """An upper bound on log(n/d) when both were computed within a factor of 1 ± ``error``.

    n = 0 gives −∞ (that cannot happen, so it reveals nothing) and n > 0 = d gives +∞ (it happens
    under one side only, so it reveals everything). 0/0 is −∞. An error of 1 or more says nothing:
    +∞.
    """
    n, d = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_n, log_d = np.log(n), np.log(d)
        # each logarithm is off by up to 4 units in its own last place, and the two may cancel
        widened = 2 * error / (1 - error) if error < 1 else math.inf
        slack = widened + 8 * UNIT + 8 * UNIT * (np.abs(log_n) + np.abs(log_d))
        value = log_n - log_d + slack
    return np.asarray(np.where(n == 0, -np.inf, np.where(d == 0, np.inf, value)))


def losses_up(values: Floats, left: Sequence[int], right: Sequence[int], *, error: float) -> Floats:
    """log(values[left] / values[right]), rounded up, of numbers within a factor 1 ± ``error``.

    As `log_ratio_up`, for many ratios of the same numbers: each logarithm is taken once. It is off
    by a unit in the last place, 2u of it, and by −log(1 − error); adding that to it, and the
    difference in the end, are off by one u more each. So every logarithm is widened by 4u of
    itself.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = np.log(values)
        slack = np.abs(middle)
        slack *= 4 * UNIT
        slack += (error / (1 - error) if error < 1 else math.inf) + 8 * UNIT
        table: Floats = (middle + slack)[left] - (middle - slack)[right]
    impossible = values == 0
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
