r"""The exact translation of a Markov chain with two states, in closed form.

**Statement.** Let entry j carry the total ε_j, and let λ be the determinant of a step's matrix (the
probability of staying at 0 plus that of staying at 1, minus 1). Rename the two states of the
entries after every step with λ < 0. Then every step favours agreement, the prior is positively
affiliated, and the worst mechanism counts (`takifugu.translation.search.fields` has the
proof, which needs no positive probabilities: it rests on Holley's inequality). The loss of (X_i =
1, X_i = 0) is

.. math:: ε_i + \log\frac{E[e^{\sum_{j≠i} ε_j \tilde X_j} | X_i=1]}
                        {E[e^{\sum_{j≠i} ε_j \tilde X_j} | X_i=0]} = ε_i + F_i + B_i,

where the entries after i and those before i give a term each, being independent given X_i.

**Costs.** If the change of entry j from 1 to 0 costs :math:`c_j(1,0)` and that from 0 to 1
:math:`c_j(0,1)`, the same holds for the pair (1, 0) with :math:`c_j(1,0)`, as renamed, in place of
ε_j, and for (0, 1) with :math:`c_j(0,1)`: the proof divides any admissible f by
:math:`f^* = e^{\sum c_j(1,0) x_j}`, and the quotient is decreasing.

**Recursion.** With :math:`u = e^F − 1`, :math:`k = e^{ε_{i+1}} − 1` and ρ the probability that the
lower row of the renamed matrix gives to a one,

.. math:: u_i = \frac{|λ|\,m}{1 + ρ\,m},\qquad m = k + (1 + k)\,u_{i+1}.

Without renaming: u(1,0) and u(0,1) change places before a step with λ < 0. Entries before i obey
the same formula with the backward matrix of the step. If the step leads from weights
:math:`(w_0, w_1)` to :math:`(n_0, n_1)`, its determinant is :math:`λ\,w_0 w_1/(n_0 n_1)`. A
stationary chain of two states is reversible: its backward matrix is the matrix itself.

**Rounding.** All terms are non-negative and nothing is subtracted, so relative errors only add up:
an addition passes on the larger one, and m/(1 + ρm) at most that of m. Numbers are decimals of 38
digits (unit δ = 10⁻³⁷) with exponents beyond anything that can occur; underflow and overflow
raise. So a weight is 0 if and only if the state cannot happen. |λ| and ρ come from exact fractions,
a step adds less than 12δ to u, and a step of the law 4δ to a weight, which enters u four times:
after T steps the relative error of u is below (12T + 16T²)δ, that is 2·10⁻²¹ for T = 10⁷. The
logarithm log(1 + u) passes on at most that. It is taken in float64 to within 4 units in the last
place, and the sum of three terms adds 2 more. So 16 units up and down, and a few subnormal numbers,
make bounds on both sides; the lower one is attained, by the mechanism that counts.

A stretch of equal steps need not be walked to its end. The step is monotone and does not expand
distances between logarithms, so that n further steps move each by at most n times the last change.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
    Underflow,
    getcontext,
    localcontext,
)
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from takifugu._core.numeric import Booleans, Floats, frozen
from takifugu._core.rounding import UNIT, float_down, up

DIGITS = 38
SETTLED = Decimal("1e-18")  # a relative change by less than this is covered by the rounding
GONE = Decimal("1e-345")  # a u below this is none in float64, even times the least positive float
LEAST = 5e-324  # the least positive float
EVERY = 16  # steps between two checks whether a stretch has settled
LN10 = math.log(10)
ZERO, ONE = Decimal(0), Decimal(1)

Gains = tuple[Decimal, Decimal]  # k of the pairs (1, 0) and (0, 1)
Run = tuple[bool, Decimal, Decimal, Decimal, Gains, int]  # as `BinaryStep`, then k, and a count


def _digits(digits: int = DIGITS) -> Context:
    traps = [InvalidOperation, DivisionByZero, Overflow, Underflow]
    return Context(prec=digits, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=traps)


@dataclass(frozen=True)
class BinaryStep:
    """One step of the chain, as exact fractions.

    Attributes:
        rows: P(0|0), P(1|0), P(0|1), P(1|1).
        link: |λ|.
        same: Whether λ ≥ 0: the next state rather agrees than differs.
    """

    rows: tuple[Fraction, Fraction, Fraction, Fraction]

    @classmethod
    def of(cls, matrix: Floats) -> "BinaryStep":
        """The step of a matrix whose rows stand for themselves divided by their exact sums."""
        (a, b), (c, d) = [[Fraction(float(v)) for v in row] for row in matrix]
        return cls((a / (a + b), b / (a + b), c / (c + d), d / (c + d)))

    @property
    def determinant(self) -> Fraction:
        """λ."""
        return self.rows[0] + self.rows[3] - 1

    @property
    def same(self) -> bool:
        """Whether the next state rather agrees than differs."""
        return self.determinant >= 0

    def decimals(self) -> tuple[bool, Decimal, Decimal, Decimal]:
        """Whether λ ≥ 0, |λ|, and ρ of the pairs (1, 0) and (0, 1), rounded once each."""
        return _decimals(self, getcontext().prec)


@lru_cache(maxsize=1024)
def _decimals(step: BinaryStep, _precision: int) -> tuple[bool, Decimal, Decimal, Decimal]:
    """`BinaryStep.decimals`, once for each precision: an allowance is searched for step by step."""
    a, b, c, d = step.rows
    low, high = (b, c) if step.same else (a, d)
    return step.same, _decimal(abs(step.determinant)), _decimal(low), _decimal(high)


@dataclass(frozen=True, eq=False)
class BinaryLosses:
    """The worst loss of both ordered pairs of states at every entry, from both sides.

    Attributes:
        charged: ``[pair, entry]``: what a change costs; ε for both pairs, if the loss is scalar.
        upper: ``[pair, entry]``: no mechanism loses more; pair 0 is (1, 0), pair 1 is (0, 1).
        lower: ``[pair, entry]``: the mechanism that counts loses at least this much.
        possible: ``[entry]``: whether both states can happen; otherwise there is no pair.
    """

    charged: Floats
    upper: Floats
    lower: Floats
    possible: Booleans


def binary_losses(
    steps: BinaryStep | Sequence[BinaryStep], epsilon: Floats, *, start: Floats | None = None
) -> BinaryLosses:
    """The loss of every entry of a finite chain whose entry i was queried with ``epsilon[i]``.

    ``epsilon`` may be ``[pair, entry]``: what the change from 1 to 0 costs, and that from 0 to 1.
    ``steps`` is one step, which all are equal to, or one for each. Without ``start``, weights of
    the first entry's states, the chain is stationary; then there is one step, and both states can
    be reached from each other.
    """
    given = np.asarray(epsilon, dtype=np.float64)
    spent = given if given.ndim == 2 else np.array([given, given])
    size = spent.shape[1]
    listed = [steps] * (size - 1) if isinstance(steps, BinaryStep) else list(steps)
    possible = np.ones(size, dtype=np.bool_)
    with localcontext(_digits()):
        gains: dict[float, Decimal] = {}
        different = dict(zip(map(id, listed), listed, strict=True))
        known = {name: step.decimals() for name, step in different.items()}

        def runs(reverse: bool) -> Iterator[Run]:
            order = slice(None, None, -1) if reverse else slice(None)
            charged = spent[:, :0:-1] if reverse else spent[:, :-1]
            for step, cost, count in _stretches(listed[order], charged):
                yield (*known[id(step)], _gains(cost, gains), count)

        ahead = _walk(runs(reverse=True), size)[:, ::-1]
        if start is None:
            behind = _walk(runs(reverse=False), size)
        else:
            laws = _law_runs(listed, spent[:, :-1], start, gains, possible)
            behind = _walk(laws, size)
    return BinaryLosses(spent, *_both_sides(spent + ahead + behind), possible)


def stationary_losses(
    step: BinaryStep, epsilon: float | Floats, before: int | None, after: int | None
) -> tuple[Floats, Floats]:
    """``[pair]`` twice: upper and lower bound of an entry of a stationary chain, ε everywhere.

    ``epsilon`` may be ``[pair]``: what the change from 1 to 0 costs, and that from 0 to 1.

    ``before`` and ``after`` count the other entries on each side; None is the limit of ever more,
    which is the supremum over all numbers. It takes a logarithmic number of operations.
    """
    spent = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), 2)
    found = {count: _stationary_side(step, spent, count) for count in {before, after}}
    sides = np.array([found[before], found[after]])  # in a long chain they are the same
    upper, lower = _both_sides(spent + sides.sum(axis=0))
    return upper, lower


def group_privacy(cost: float, entries: int, *, summed: bool = False) -> float:
    """At least what so many entries lose in any case: the sum of their costs, rounded up.

    ``cost`` is that of each, or of all of them, ``summed`` in floats.
    """
    return float(up(cost * (1 + entries * UNIT))) if summed else float(up(entries * cost))


def single_entry(cost: float) -> float:
    """At most what the secret entry itself loses."""
    return cost * (1 - 16 * UNIT)


def attainable(costs: Sequence[Fraction]) -> list[float]:
    """What a mechanism tells of both orders of two values, rounded down.

    What costs nothing one way costs nothing the other way: if no output is likelier under one
    value than under the other, both have the same law.
    """
    return [float_down(value) for value in costs] if all(costs) else [0.0, 0.0]


def counting_factors(costs: Floats) -> Floats:
    """``[entry]``: the factor of a value that is counted, rounded down, at least 1."""
    return np.maximum(np.exp(costs) * (1 - 4 * UNIT), 1.0)


def _both_sides(total: Floats) -> tuple[Floats, Floats]:
    """Bounds on a sum of three logarithms, each within 4 units of its own last place."""
    upper = np.where(total > 0, total * (1 + 16 * UNIT) + 4 * LEAST, 0.0)
    lower = np.where(total < np.inf, total, 0.0) * (1 - 16 * UNIT) - 4 * LEAST
    return frozen(upper), frozen(np.maximum(lower, 0.0))


def _stretches(
    steps: Sequence[BinaryStep], spent: Floats
) -> Iterator[tuple[BinaryStep, Floats, int]]:
    """Runs of the same step and the same costs."""
    changed = (spent[:, 1:] != spent[:, :-1]).any(axis=0)
    if len(set(map(id, steps))) > 1:
        changed |= np.array([a is not b for a, b in pairwise(steps)], dtype=np.bool_)
    for begin, end in pairwise([0, *(np.flatnonzero(changed) + 1).tolist(), spent.shape[1]]):
        if end > begin:
            yield steps[begin], spent[:, begin], end - begin


def _law_runs(
    steps: Sequence[BinaryStep],
    spent: Floats,
    start: Floats,
    gains: dict[float, Decimal],
    possible: Booleans,
) -> Iterator[Run]:
    """The backward steps of a chain that begins with the weights ``start``.

    It marks in ``possible``, which is true everywhere at first, where not both states can happen.
    When the weights n steps on differ by less than the rounding, over all steps of a stretch, the
    rest of it is one run: a positive map keeps ratios, so weights that change by a factor of at
    most 1 ± η change by at most (1 ± η)^n.
    """
    w0, w1 = (Decimal(float(v)) for v in start)
    possible[0] = bool(w0) and bool(w1)
    place = 0
    for step, cost, count in _stretches(steps, spent):
        same, gain = step.same, _gains(cost, gains)
        a, b, c, d = (_decimal(v) for v in step.rows)
        link = _decimal(abs(step.determinant))
        left = count
        while left:
            n0, n1 = w0 * a + w1 * c, w0 * b + w1 * d
            place += 1
            both = bool(n0) and bool(n1)
            possible[place] = both
            if both and w0 and w1:
                r, s = (w1 * c / n0, w0 * b / n1) if same else (w0 * a / n0, w1 * d / n1)
                back = (same, link * w0 * w1 / (n0 * n1), r, s, gain)
                taken = 1
                if left % EVERY == 0:
                    drift = max(abs(n0 / w0 - 1), abs(n1 / w1 - 1))
                    taken = left if drift * left * left <= SETTLED else 1
            else:  # the entry before, or this one, has one possible state: it reveals nothing
                back, taken = (True, ZERO, ZERO, ZERO, gain), 1
            yield (*back, taken)
            place += taken - 1
            w0, w1, left = n0, n1, left - taken


def _walk(runs: Iterator[Run], size: int) -> Floats:
    """``[pair, n]``: log(1 + u) of both pairs after n steps."""
    found = np.zeros((2, size))
    u, v, at = ZERO, ZERO, 0
    for same, link, r, s, (k, n), count in runs:
        left = count
        while left:
            p, q = k + (ONE + k) * u, n + (ONE + n) * v
            if not same:
                p, q = q, p
            before = u, v
            u, v = link * p / (ONE + r * p), link * q / (ONE + s * q)
            at, left = at + 1, left - 1
            found[:, at] = _log1p(u), _log1p(v)
            if left and left % EVERY == 0 and _still(before, (u, v), (k, n), left):
                found[:, at + 1 : at + left + 1] = found[:, at, None]
                at, left = at + left, 0
    return found


def _still(before: tuple[Decimal, ...], now: tuple[Decimal, ...], gains: Gains, left: int) -> bool:
    """Whether what ``left`` more equal steps change is below the rounding of the logarithms."""
    if not any(gains) and max(now) < GONE:  # nothing is charged, so it only gets less
        return True
    change = max(abs(y - x) / (1 + min(x, y)) for x, y in zip(before, now, strict=True))
    # a pair that costs nothing stays at 0 if it was 0 twice; the other one decides
    return change * left <= SETTLED * min((x / (1 + x) for x in now if x), default=ZERO)


def _stationary_side(step: BinaryStep, spent: Floats, count: int | None) -> list[float]:
    """F of the pairs (1, 0) and (0, 1) with ``count`` equal steps to the end; None: unbounded."""
    if not spent.any():
        return [0.0, 0.0]
    if count is None:
        return [_limit(step, spent, pair) for pair in (0, 1)]
    with localcontext(_digits(DIGITS + len(str(count)))):
        found = []
        for pair in (0, 1):
            first, second = _maps(step, spent, pair)
            # two steps at once: where λ < 0 the two maps alternate
            power = _power(_times(first, second), count // 2)
            if count % 2:
                power = _times(power, first)
            found.append(_log1p(power[1] / power[3]))
        return found


Map = tuple[Decimal, Decimal, Decimal, Decimal]  # u becomes (p·u + q) / (r·u + s)


def _maps(step: BinaryStep, spent: Floats, pair: int) -> tuple[Map, Map]:
    """The map of ``pair`` and the one that it follows, as non-negative matrices."""
    same, link, *shares = step.decimals()
    gains = _gains(spent, {})
    both = [
        (link * (1 + gain), link * gain, share * (1 + gain), 1 + share * gain)
        for share, gain in zip(shares, gains if same else gains[::-1], strict=True)
    ]
    return both[pair], both[pair if same else 1 - pair]


def _times(one: Map, other: Map) -> Map:
    (a, b, c, d), (p, q, r, s) = one, other
    return (a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s)


def _power(base: Map, exponent: int) -> Map:
    """By squaring: relative errors double with each, so they grow with the exponent only."""
    found: Map = (ONE, ZERO, ZERO, ONE)
    while exponent:
        if exponent & 1:
            found = _times(found, base)
        base = _times(base, base)
        exponent >>= 1
    return found


def _limit(step: BinaryStep, spent: Floats, pair: int) -> float:
    r"""The limit of ever more steps: the fixed point of two of them, infinite if there is none.

    u = (pu + q)/(ru + s) is the positive root of ru² + (s − p)u − q = 0. An error η of s − p moves
    it by the share η/√D, D = (s − p)² + 4rq: digits are added until that is below the rounding.
    """
    digits = DIGITS
    while True:
        with localcontext(_digits(digits)):
            p, q, r, s = _times(*_maps(step, spent, pair))
            if not q:
                return 0.0
            slope, root = s - p, ((s - p) ** 2 + 4 * r * q).sqrt()
            if root * SETTLED > (s + p) * Decimal(40).scaleb(-digits):
                if slope > 0:
                    return _log1p(2 * q / (slope + root))
                return _log1p((root - slope) / (2 * r)) if r else math.inf
        digits *= 2


def _decimal(value: Fraction) -> Decimal:
    """A fraction, rounded once."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def _gains(costs: Floats, known: dict[float, Decimal]) -> Gains:
    """e^c − 1 of both pairs."""
    one, other = costs.tolist()
    return _gain(one, known), _gain(other, known)


def _gain(epsilon: float, known: dict[float, Decimal]) -> Decimal:
    """e^ε − 1, to nearly all digits."""
    if epsilon in known:
        return known[epsilon]
    with localcontext() as context:
        context.prec += 10
        x = Decimal(epsilon)
        if epsilon < 1e-6:  # the terms left out are below a share of 1e-6^(digits/6) / 5040
            terms, gain, term = 1 + context.prec // 6, ZERO, ONE
            for n in range(1, terms + 1):
                term = term * x / n
                gain += term
        else:
            gain = x.exp() - 1
    known[epsilon] = gain
    return gain


def _log1p(u: Decimal) -> float:
    """log(1 + u) within 4 units in the last place; above 0 for u > 0."""
    exponent = u.adjusted()
    if not u or exponent < 300:  # a decimal 0 has an exponent too, which may be a large one
        return math.log1p(float(u)) or (LEAST if u else 0.0)
    return math.log(float(u.scaleb(-exponent))) + exponent * LN10
