r"""Temporal privacy leakage (Cao, Yoshikawa, Xiao and Xiong, ICDE 2017). Times count from 0.

**Sets of states.** A set A of states and two rows x, y give :math:`q = P_x(A)`, :math:`d = P_y(A)`
and a leakage of :math:`\log[(1 + Gq)/(1 + Gd)]`, :math:`G = e^α - 1`. For a fixed G the largest is
the logarithm of the λ ≥ 1 with :math:`\max (q - λd) = (λ - 1)/G`: it depends on the points (d, q)
through

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
a margin. Rows that are only known to a factor of 1 ± e are covered by q(1 + e) and d(1 − e), which
stretches the hull; λ then begins a little below 1.
"""

from collections.abc import Sequence
from itertools import islice
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu._core.rounding import UNIT, gamma, up
from takifugu.errors import UnsoundRequest
from takifugu.influence.rounded_ratios import LogProduct
from takifugu.papers.composition.baselines.chain_laws import (
    check_request,
    group_to_dp,
    initial_law,
    laws_over_time,
    square,
    stationary,
    stationary_terms,
)
from takifugu.translation.accounting.largest_epsilon import largest_by_bracket

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


LARGE = 600.0  # a loss whose exponential is above 1 over every probability
EVEN = 1e-12  # relative: how close the loss that is allowed comes to the largest


def tpl_step(kernel: ArrayLike, leak: ArrayLike) -> Floats:
    r"""One step of temporal privacy leakage: what a loss α on the next entry says of this one.

    .. math:: L(\alpha) = \max_{x,y}\max_A
        \log\frac{1 + (e^\alpha - 1) P_x(A)}{1 + (e^\alpha - 1) P_y(A)},

    the best A being a prefix of the states in order of falling P_x/P_y. Rounded up. Broadcasts.
    """
    return _step(ratio_front(square(kernel)), leak)


def tpl_path(kernel: ArrayLike, epsilons: Sequence[float]) -> Floats:
    """``[time]``: the leakage from one end (BPL with the backward kernel, FPL with the forward)."""
    front = ratio_front(square(kernel))
    path: list[float] = []
    for epsilon in _spent(epsilons):
        before = float(_step(front, path[-1])) if path else 0.0
        path.append(float(up(before + epsilon)))
    return frozen(path)


def tpl_supremum(kernel: ArrayLike, epsilon: float) -> float:
    r"""Where the leakage from one end ends up when every entry costs ``epsilon``; rounded up.

    The fixed point of :math:`\alpha = ε + L(\alpha)`. For a prefix with q = P_x(A) and d = P_y(A)
    and :math:`z = e^\alpha` it is the positive root of
    :math:`d z^2 + (1 - d - e^ε q) z - e^ε (1 - q) = 0`; the leakage ends at the largest. If d = 0
    and :math:`e^ε q \ge 1` there is none, and the leakage is unbounded.
    """
    check_request(1, epsilon)
    q, d = ratio_front(square(kernel))
    if epsilon > LARGE:  # then e^ε q ≥ 1 for every q > 0, and L is at most its limit
        q, d = q[q > 0], d[q > 0]
        with np.errstate(divide="ignore"):
            return float(up(epsilon + np.max(np.log(q) - np.log(d), initial=0.0)))
    grown = exp(float(up(epsilon)))
    slope = 1 - d - grown * q
    slope -= 8 * UNIT * (1 + d + grown * q)  # a smaller slope means a larger root
    rest = grown * np.maximum(1 - q, 0.0)  # q was rounded up; a larger rest means a larger root
    root = np.hypot(slope, 2 * np.sqrt(d * rest))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = np.where(slope < 0, (root - slope) / (2 * d), 2 * rest / (root + slope))
    return float(up(np.log(np.where((d == 0) & (slope <= 0), inf, z).max())))


def tpl_total(
    transition: ArrayLike, epsilons: Sequence[float], *, start: ArrayLike | None = None
) -> Floats:
    """``[time]``: BPL + FPL − ε, a bound on the Pufferfish loss of the entry at that time."""
    spent = _spent(epsilons)
    return _total(_steps(square(transition), len(spent), start), spent)


def tpl_to_dp(
    transition: ArrayLike, length: int, epsilon: float, *, start: ArrayLike | None = None
) -> float:
    """The equal per-entry loss whose temporal privacy leakage is at most ``epsilon`` everywhere."""
    check_request(length, epsilon)
    steps = _steps(square(transition), length, start)
    found = largest_by_bracket(
        lambda each: float(_total(steps, np.full(length, each)).max()), epsilon, tolerance=EVEN
    )
    return max(found, group_to_dp(length, epsilon))


def _steps(P: Floats, length: int, start: ArrayLike | None) -> tuple[list[Front], list[Front]]:
    """For every time but the first the step back, for every time but the last the step ahead."""
    if start is None:
        law = stationary(P)
        back = ratio_front(_reverse(P, law), stationary_terms(len(P)))
        return [back] * (length - 1), [ratio_front(P)] * (length - 1)
    laws = list(islice(laws_over_time(initial_law(start, P), 0.0, P), length - 1))
    back_steps = [ratio_front(*_reverse_logs(P, law)) for law in laws]
    return back_steps, [ratio_front(P[law.possible[0]]) for law in laws]


def _total(steps: tuple[list[Front], list[Front]], spent: Floats) -> Floats:
    back, ahead = np.zeros(len(spent)), np.zeros(len(spent))
    step = _OneStep()
    for t in range(1, len(spent)):
        back[t] = step(steps[0][t - 1], float(up(back[t - 1] + spent[t - 1])))
    for t in range(len(spent) - 2, -1, -1):
        ahead[t] = step(steps[1][t], float(up(ahead[t + 1] + spent[t + 1])))
    return frozen(up(back + ahead + spent))


class _OneStep:
    """`_step` of one number; the one before is kept, which far from the ends is the same."""

    def __init__(self) -> None:
        self._front: Front | None = None
        self._leak, self._value = -1.0, 0.0

    def __call__(self, front: Front, leak: float) -> float:
        if front is not self._front or leak != self._leak:
            self._front, self._leak, self._value = front, leak, float(_step(front, leak))
        return self._value


def _step(front: Front, leak: ArrayLike) -> Floats:
    q, d = front
    alpha = np.asarray(leak, dtype=np.float64)
    grown = np.expm1(np.minimum(alpha, 700.0))[..., None]
    more = np.log1p(grown * (q - d) / (1 + grown * d))  # of two logarithms digits would cancel
    value = np.maximum(more.max(axis=-1), 0.0)
    value = np.where(alpha > 700, alpha, np.minimum(value, alpha))  # e^α would overflow
    return up(value)  # never more than α: q was rounded up, and may be above 1


def _reverse_logs(P: Floats, before: LogProduct) -> tuple[Floats, int]:
    """`_reverse` from a law in logarithms, and the roundings that went into it.

    Each row is scaled by its largest term. A share below all floats reads 0, which `ratio_front`
    allows for.
    """
    with np.errstate(divide="ignore"):
        joint = before.log[0] + np.log(P).T  # [now, before]
    top = joint.max(axis=1)
    rows = np.exp(joint[top > -np.inf] - top[top > -np.inf, None])
    finite = np.abs(joint[joint > -np.inf]).max(initial=0.0)
    off = 2 * (before.error + 8 * UNIT * (1 + finite))
    return rows / rows.sum(axis=1, keepdims=True), int(np.ceil(off / UNIT)) + 2 * len(P)


def _reverse(P: Floats, before: Floats) -> Floats:
    """``[now, before]``: P(X_{t−1} | X_t), for the states that are possible at t."""
    joint = (before[:, None] * P).T
    total = joint.sum(axis=1)
    rows: Floats = joint[total > 0] / total[total > 0, None]
    return rows


def _spent(epsilons: Sequence[float]) -> Floats:
    spent = np.asarray(epsilons, dtype=np.float64)
    if spent.ndim != 1 or not spent.size or not (np.isfinite(spent) & (spent >= 0)).all():
        raise UnsoundRequest("every entry needs an epsilon, 0 or more and finite", field="epsilons")
    return spent
