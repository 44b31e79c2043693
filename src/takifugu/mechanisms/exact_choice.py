r"""Choices with exact probabilities, drawn with the same amount of work whatever the data are.

How long a draw takes must not tell what it was drawn from. OpenDP's own selection tries one
candidate after another and stops at the first that it accepts, so that its time depends on the
scores. Here the samplers of OpenDP are never given the data: they draw noise, or random bits, whose
number depends on the number of candidates alone, and the data are compared with what was drawn.

A choice by weights reads `FIRST_BYTES` random bytes, which suffice but for a probability of less
than :math:`10^{-8}` (of :math:`10^{-30}` for whole weights); only then it draws more.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from itertools import accumulate

import numpy as np

from takifugu._core.numeric import Booleans
from takifugu.mechanisms import opendp_measurements as measurements

FIRST_BYTES = 16  # of a random number in [0, 1): drawn at once, whatever the weights are
FIRST_DIGITS = 60  # of weights that float could not tell apart

Bytes = Callable[[int], bytes]
Gaps = np.ndarray[tuple[int], np.dtype[np.uint64]]  # how far each score is below the best


def flip_coins(gaps: Gaps, scale: float) -> Booleans:
    r"""``[candidate]``: whether each coin falls on heads, with probability exp(−gap/scale) exactly.

    One draw of integer Laplace noise Z for each candidate. With :math:`r = e^{-1/scale}` the law
    of Z is :math:`(1-r)/(1+r)\, r^{|z|}`, and G = Z for Z ≥ 0, −Z − 1 for Z < 0 has
    :math:`P(G = g) = (1-r)/(1+r)\,(r^g + r^{g+1}) = (1-r)\,r^g`. So :math:`P(G \ge g) = r^g`.
    """
    drawn = measurements.release(measurements.laplace(scale), [0] * len(gaps))
    noise = np.array(drawn, dtype=np.int64)
    return np.asarray(np.where(noise < 0, -(noise + 1), noise).astype(np.uint64) >= gaps)


def pick(weights: Sequence[int], draw: Bytes = measurements.fair_bytes) -> int:
    """An index, drawn with probability exactly weight / sum, by whole numbers alone.

    A uniform real is revealed until every real that it may still be falls on the same index.
    """
    ends = list(accumulate(weights))
    total, low, parts = ends[-1], 0, 1
    while True:
        low, parts = _revealed(low, parts, draw)
        first = bisect_right(ends, low * total // parts)
        last = bisect_right(ends, ((low + 1) * total - 1) // parts)
        if first == last:
            return first


def pick_by_gap(
    gaps: Gaps,
    scale: float,
    draw: Bytes = measurements.fair_bytes,
) -> int:
    r"""An index, drawn with probability exactly proportional to exp(−gap/scale); one gap is 0.

    A uniform real is compared with the sums of the weights, first in floats. A weight is at most
    1, so that it is off by a few units in the last place of 1, and the total is 1 or more: the
    sums are off by at most 8 units for each candidate, in parts of the total. If the real is
    closer to a sum than that, more of its digits are drawn and the weights are computed with more
    digits, until it lies between two sums for certain.
    """
    low, parts = _revealed(0, 1, draw)
    number = np.longdouble
    with np.errstate(over="ignore", under="ignore"):
        ends = np.cumsum(np.exp(-(gaps.astype(number) / number(scale))))
    at = ends[-1] * (number(low >> 64) / number(2**64))
    near = 8 * (len(gaps) + 8) * np.finfo(number).eps * ends[-1]
    first, last = np.searchsorted(ends[:-1], [at - near, at + near], side="right").tolist()
    if first == last:
        return int(first)
    return _picked_with_digits(gaps.tolist(), scale, low, parts, draw)


def _picked_with_digits(
    gaps: Sequence[int], scale: float, low: int, parts: int, draw: Bytes
) -> int:
    """`pick_by_gap` from what is revealed of the real, in decimals: exp is correctly rounded."""
    digits = FIRST_DIGITS
    while True:
        low, parts = _revealed(low, parts, draw)
        with localcontext(prec=digits):
            weights = {gap: (-Decimal(gap) / Decimal(scale)).exp() for gap in set(gaps)}
            ends = list(accumulate(weights[gap] for gap in gaps))
            near = ends[-1] * (len(gaps) * Decimal(10) ** (3 - digits) + 2 / Decimal(parts))
            at = ends[-1] * low / parts
            first = bisect_right(ends[:-1], at - near)
            if first == bisect_right(ends[:-1], at + near):
                return first
        digits *= 2


def _revealed(low: int, parts: int, draw: Bytes) -> tuple[int, int]:
    """More of a uniform real, which is known to lie in [low/parts, (low + 1)/parts)."""
    more = draw(FIRST_BYTES)
    return low << 8 * len(more) | int.from_bytes(more), parts << 8 * len(more)
