r"""The sets of states that can set a step of temporal privacy leakage, for every loss at once.

A set A of states and two rows x, y give :math:`q = P_x(A)`, :math:`d = P_y(A)` and a leakage of
:math:`\log[(1 + Gq)/(1 + Gd)]`, :math:`G = e^α - 1`. For a fixed G the largest is the logarithm of
the λ ≥ 1 with :math:`\max (q - λd) = (λ - 1)/G`: it depends on the points (d, q) through

.. math:: h(λ) = \max_{x,y} S_{xy}(λ), \qquad S_{xy}(λ) = \sum_u (P_x(u) - λP_y(u))^+,

that is, through their upper hull. So a pair of rows whose :math:`S_{xy}` is nowhere above that of
others is left out, and only the few that remain are sorted by ratio, whose prefixes are the sets A.

**Leaving out.** Let two λ and a set that is best at each be known. Between them h is at least the
larger of the two lines :math:`q - λd` of these sets, and :math:`S_{xy}`, which is convex, at most
its chord. A line less the larger of two is largest where those two cross: a pair whose chord is not
above them there is not above them anywhere. For the others S is computed at the crossing, and both
halves are treated in the same way until few pairs are left.

**Rounding.** Every term of S is off by a share of itself, and q ≤ 1: all of S, its chords and lines
are within a few γ(states) of the truth, absolutely. A pair is kept unless it is below by more than
`_margin`. Rows that are only known to a factor of 1 ± e are covered by q(1 + e) and d(1 − e), which
stretches the hull; λ then begins a little below 1.
"""

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT, gamma

Front = tuple[Floats, Floats]  # P_x(A), rounded up, and P_y(A), rounded down: both rise
Line = tuple[float, float, float]  # λ, S there, and how fast it falls: P_y of the best set
BLOCK = 2**16  # numbers worked on at once, so that they stay near the processor
FEW = 24  # pairs that are sorted rather than sifted further
STEEPEST = 1e290  # ratios of rows with a larger one are all sorted
BELOW = 1 - 8 * UNIT  # rounds λ down, so that a sum that reads 0 is 0
COARSEST = 1e-4  # rows that are known less well are all sorted
FIRST = 0.999  # λ to begin with: below 1 by more than such an error


def ratio_front(rows: Floats, terms: int = 0) -> Front:
    """P_x(A) rounded up and P_y(A) rounded down, for rows x ≠ y and sets A; the best only.

    The step grows with the first and falls with the second, so a pair that another one beats in
    both is left out. ``terms`` is how many operations made the rows. A probability lost to
    underflow adds less than 2⁻¹⁰²² to the first, which is added.
    """
    states = rows.shape[1]
    error = gamma(states + terms)
    x, y = _contenders(rows) if error < COARSEST else _pairs(rows)
    upper, lower = rows[x], rows[y]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(upper > 0, np.log(upper) - np.log(lower), -np.inf)
    order = np.argsort(-ratio, axis=1, kind="stable")
    q = np.cumsum(np.take_along_axis(upper, order, 1), axis=1) * (1 + error)
    q = q + states * 2.0**-1022
    d = np.minimum(np.cumsum(np.take_along_axis(lower, order, 1), axis=1), 1.0) * (1 - error)
    q, d = np.append(q, 0.0), np.append(d, 0.0)  # the empty set: one row alone leaks nothing
    by_d = np.lexsort((-q, d))
    q, d = q[by_d], d[by_d]
    kept = np.append(True, q[1:] > np.maximum.accumulate(q)[:-1])
    return q[kept], d[kept]


def _pairs(rows: Floats) -> tuple[Integers, Integers]:
    x, y = np.nonzero(~np.eye(len(rows), dtype=bool))
    return x, y


def _contenders(rows: Floats) -> tuple[Integers, Integers]:
    """The pairs of rows that may reach the upper hull."""
    x, y = _pairs(rows)
    last = _largest_ratio(rows)
    if len(x) <= FEW or not last < STEEPEST:
        return x, y
    margin = 64 * gamma(rows.shape[1])
    needed = np.zeros(len(x), dtype=bool)

    def best(pairs: Integers, sums: Floats, rate: float) -> Line:
        pair = pairs[int(np.argmax(sums))]
        needed[pair] = True
        upper, lower = rows[x[pair]], rows[y[pair]]
        return rate, float(sums.max()), float(lower[upper > rate * lower].sum())

    everything = np.arange(len(x))
    at_first, at_last = (_all_sums(rows, rate)[x, y] for rate in (FIRST, last))
    lines = (best(everything, at_first, FIRST), best(everything, at_last, last))
    waiting = [(everything, at_first, at_last, *lines)]
    while waiting:
        pairs, at_low, at_high, below, above = waiting.pop()
        low, high = below[0], above[0]
        rate, level = _crossing(below, above)
        chord = at_low + (at_high - at_low) * ((rate - low) / (high - low))
        kept = (chord > level - margin) & (at_low > 0)  # S falls: it is 0 from here on
        pairs, at_low, at_high = pairs[kept], at_low[kept], at_high[kept]
        if len(pairs) <= FEW or not low < rate < high:
            needed[pairs] = True
            continue
        sums = _sums(rows, x[pairs], y[pairs], rate)
        line = best(pairs, sums, rate)
        waiting.append((pairs, at_low, sums, below, line))
        waiting.append((pairs, sums, at_high, line, above))
    return x[needed], y[needed]


def _crossing(below: Line, above: Line) -> tuple[float, float]:
    """A λ where two lines (nearly) cross, and the lower of them there.

    Wherever it is between the two, a pair that is at most the lower line there stays at or below
    the larger of both: its chord is below them at the ends, and either falls faster than the line
    ``above`` does, or is below that line all the way.
    """
    (low, low_sum, low_fall), (high, high_sum, high_fall) = below, above
    rate = low
    if low_fall > high_fall:
        rate += ((low_sum - high_sum) - (high - low) * high_fall) / (low_fall - high_fall)
    rate = min(max(rate, low), high)
    return rate, min(low_sum - (rate - low) * low_fall, high_sum + (high - rate) * high_fall)


def _largest_ratio(rows: Floats) -> float:
    """More than every finite P_x(u)/P_y(u): from there on every S is constant."""
    least = np.min(rows, axis=0, where=rows > 0, initial=1.0)
    with np.errstate(over="ignore"):
        return 2 * max(float((rows.max(axis=0) / least).max()), 1.0)


def _all_sums(rows: Floats, rate: float) -> Floats:
    """``[x, y]``: S of all pairs at λ = ``rate``."""
    n, states = rows.shape
    lower = rate * BELOW * rows
    found = np.empty((n, n))
    step = max(1, BLOCK // (n * states))
    part = np.empty((step, n, states))
    for first in range(0, n, step):
        upper = rows[first : first + step, None]
        more = part[: len(upper)]
        np.subtract(upper, lower, out=more)
        np.maximum(more, 0.0, out=more)
        np.sum(more, axis=2, out=found[first : first + step])
    return found


def _sums(rows: Floats, x: Integers, y: Integers, rate: float) -> Floats:
    """``[pair]``: S of some pairs at λ = ``rate``."""
    found = np.empty(len(x))
    step = max(1, BLOCK // rows.shape[1])
    for first in range(0, len(x), step):
        part = slice(first, first + step)
        more = rows[x[part]]
        more -= rate * BELOW * rows[y[part]]
        np.maximum(more, 0.0, out=more)
        np.sum(more, axis=1, out=found[part])
    return found
