r"""Ratios of probabilities, rounded up: the only code of influence curves that rounds.

* Products of stochastic matrices as logarithms with a bound on their error (`LogProduct`), and the
  largest ratios of their rows, of groups of states, and of mixtures.
* Probabilities between bounds, over many steps of an interval chain.
* Masses of windows under a normal law.
* Ratios of sums with so many roundings, and the sums that make a leak or a loss.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT, gamma, log_ratio_up, up

UNIT_ROUNDOFF = UNIT  # of what compiled loops leave room for
SMALLEST = 2.0**-900  # above this no term that matters is lost to underflow
IMPOSSIBLE = -1e300  # stands for log 0 in a denominator, so that 0/0 reads −∞ and 1/0 reads 1e300
BLOCK_SIZE = 2**18  # numbers worked on at once, so that they stay near the processor
FLOOR = 2.0**-900  # what is possible counts as at least this above the line, as 0 below it
LOG_ROOT = float(np.log(2 * np.pi) / 2)  # log √(2π)

Side = tuple[int, ...]


def sums_ratio_up(top: ArrayLike, base: ArrayLike, *, roundings: int) -> Floats:
    """The log of a ratio of sums, rounded up, each of them off by so many roundings at most."""
    return log_ratio_up(top, base, error=gamma(roundings))


def leak_up(leak: ArrayLike) -> Floats:
    """A leak that few operations computed, rounded up; at least 0."""
    return np.maximum(up(leak), 0.0)


def curve_loss_up(spent: ArrayLike, leak: ArrayLike) -> Floats:
    """What exposed entries lose and what the others leak, rounded up."""
    return up(np.asarray(spent) + leak)


def uncertainty_shift(relative: float) -> float:
    """log((1+r)/(1−r)), rounded up."""
    return float(up(np.log1p(relative) - np.log1p(-relative))) if relative else 0.0


@dataclass(frozen=True)
class LogProduct:
    """Logarithms of a product of stochastic matrices.

    Attributes:
        log: ``[x, z]``: log of the probability to go from x to z; −∞ exactly where it is 0.
        error: How far any finite one may be from the truth.
    """

    log: Floats
    error: float

    @property
    def possible(self) -> Booleans:
        """``[x, z]``: where the probability is positive."""
        return self.log > -np.inf


def products(
    first: Floats, first_error: float, kernels: Iterable[Floats], kernel_error: float
) -> Iterator[LogProduct]:
    """``first``, ``first`` K₁, ``first`` K₁ K₂, …: one after each kernel.

    A product of non-negative n × n matrices has in every entry at most the relative errors of
    its factors and γ(n). Where the numbers get too small for float64 the same is done with
    logarithms: slower, and just as sure. Zeros are tracked apart, so that nothing that is
    possible is ever taken for impossible.
    """
    value, relative = first, first_error
    possible = first > 0
    current = _logs(value, possible, relative)
    yield current
    in_logs = False
    for kernel in kernels:
        follows = kernel > 0
        if not possible.all():
            possible = (possible.astype(np.float64) @ follows.astype(np.float64)) > 0
        elif not follows.any(axis=0).all():
            possible = np.broadcast_to(follows.any(axis=0), possible.shape)
        if not in_logs:
            value = value @ kernel
            relative = (1 + relative) * (1 + kernel_error) * (1 + gamma(len(kernel))) - 1 + UNIT
            in_logs = not bool(np.min(value, where=possible, initial=1.0) >= SMALLEST)
        if in_logs:
            current = _log_step(current, _logs(kernel, follows, kernel_error))
        else:
            current = _logs(value, possible, relative)
        yield current


def _logs(value: Floats, possible: Booleans, relative: float) -> LogProduct:
    log = np.full(value.shape, -np.inf)
    np.log(value, out=log, where=possible)
    return LogProduct(log, relative / (1 - relative) + UNIT * (8 * reach(log) + 8))


def reach(log: Floats) -> float:
    """The largest finite absolute value: what a unit in the last place is measured by."""
    return float(np.max(np.abs(log), where=log > -np.inf, initial=0.0))


def _log_step(left: LogProduct, right: LogProduct) -> LogProduct:
    """The logarithm of a product of matrices, from the logarithms of its factors.

    A term e^{-t} below the largest is off by a share of t·u more, which e^{-t} outweighs.
    """
    out = np.full((left.log.shape[0], right.log.shape[1]), -np.inf)
    for x, row in enumerate(left.log):
        ways = np.flatnonzero(row > -np.inf)
        terms = row[ways, None] + right.log[ways]  # [k, z]
        top = terms.max(axis=0)
        met = top > -np.inf
        out[x, met] = top[met] + np.log(np.exp(terms[:, met] - top[met]).sum(axis=0))
    own = 6 * UNIT * (reach(left.log) + reach(right.log) + reach(out)) + gamma(len(right.log) + 32)
    return LogProduct(out, left.error + right.error + own)


def largest_ratios(
    product: LogProduct,
    numerator: Integers,
    denominator: Integers,
    under: LogProduct | None = None,
) -> Floats:
    """``[pair]``: at least max over z of log p(x, z) / p(y, z), for pairs (x, y) of rows.

    The maximum runs over the z that x can reach; if y cannot, it is infinite. ``under`` holds
    the denominators if they are others.
    """
    other = product if under is None else under
    above, below = product.log, np.maximum(other.log, IMPOSSIBLE)
    rows, width = above.shape
    worst = np.empty(len(numerator))
    if 2 * len(numerator) > rows * rows:  # nearly all pairs: go through all of them in order
        table = np.empty((rows, rows))
        step = max(1, BLOCK_SIZE // max(rows * width, 1))
        buffer = np.empty((min(step, rows), rows, width))
        for x in range(0, rows, step):
            part = buffer[: min(step, rows - x)]
            np.subtract(above[x : x + step, None, :], below[None], out=part)
            np.max(part, axis=2, out=table[x : x + step])
        worst = table[numerator, denominator]
    else:
        step = max(1, BLOCK_SIZE // max(width, 1))
        for k in range(0, len(numerator), step):
            part = above[numerator[k : k + step]] - below[denominator[k : k + step]]
            np.max(part, axis=1, out=worst[k : k + step])
    slack = product.error + other.error + 2 * UNIT * (reach(product.log) + reach(other.log))
    return np.where(worst > -IMPOSSIBLE / 2, np.inf, worst + slack)


def turned(product: LogProduct) -> LogProduct:
    """The same with rows and columns exchanged."""
    return LogProduct(np.ascontiguousarray(product.log.T), product.error)


def masses(law: LogProduct, sides: Sequence[Side]) -> tuple[Floats, float]:
    """``[row, side]``: log of the probability of each group, and a bound on its error."""
    if all(len(side) == 1 for side in sides):
        return law.log[:, [side[0] for side in sides]], law.error
    columns = [np.logaddexp.reduce(law.log[:, list(side)], axis=1) for side in sides]
    size = max(len(side) for side in sides)
    spread = float(np.max(np.abs(law.log), where=law.possible, initial=0.0))
    return np.stack(columns, axis=1), law.error + size * UNIT * (8 + 4 * spread)


def mixtures_ratio_up(rows: LogProduct, pairs: tuple[tuple[Side, Side], ...]) -> Floats:
    """``[pair]``: the largest log ratio right / left of any mixture of the rows."""
    left, error = masses(rows, [a for a, _ in pairs])
    right, _ = masses(rows, [b for _, b in pairs])
    with np.errstate(invalid="ignore"):
        ratio = np.where(right == -np.inf, -np.inf, right - left + 2 * error)
    worst: Floats = ratio.max(axis=0)
    worst[left.max(axis=0) == -np.inf] = -np.inf  # it never happens: no secret
    return worst


def masses_ratio_up(law: LogProduct, pairs: Sequence[tuple[Side, Side]]) -> tuple[Booleans, Floats]:
    """``[pair]``: whether both sides can happen, and at least log π(right) / π(left)."""
    left, error = masses(law, [a for a, _ in pairs])
    right, _ = masses(law, [b for _, b in pairs])
    keep = (left[0] > -np.inf) & (right[0] > -np.inf)
    with np.errstate(invalid="ignore"):
        offset = np.where(keep, right[0] - left[0] + 2 * error, 0.0)
    return keep, offset + 4 * UNIT * np.abs(offset)  # it may cancel what it is added to


def rounding_of_leaks(used: Sequence[LogProduct], law: LogProduct, members: int) -> float:
    """How far leaks of these products may be above the truth by rounding.

    The error of a product is at least 8 units for each nat of its logarithms. It is added to a
    bound that may be as far above the truth itself; groups add sums and units of their own.
    """
    most = max((product.error for product in used), default=0.0)
    deepest = max(reach(product.log) for product in (*used, law))
    return 6 * (2 * most + law.error) + 64 * members * UNIT * (1 + deepest)


def scaled_rows(log: Floats, error: float) -> tuple[Floats, float]:
    """Logarithms up to a shift of each row, and their error; without rows that cannot happen."""
    top = log.max(axis=1)
    log, top = log[top > -np.inf], top[top > -np.inf]
    return log - top[:, None], error + UNIT * (16 + 4 * reach(log))


def groups_ratio_up(
    past: tuple[Floats, float], future: tuple[Floats, float], size: int, offset: float
) -> float:
    """At least the largest log of (past · future over A) / (the same over B), plus ``offset``.

    A is the first ``size`` columns of both, B the others; both are from `scaled_rows`.
    """
    error = past[1] + future[1] + gamma(past[0].shape[1])
    value, deep = _worst_ratio(past[0], future[0].T, size)
    return value + offset + 2 * error + 16 * UNIT * (1 + deep + abs(offset))


def _worst_ratio(past: Floats, future: Floats, size: int) -> tuple[float, float]:
    """The largest log of (past · future over A) / (the same over B), all given as logarithms.

    A is the first ``size`` values. Returned with the largest logarithm met, by which rounding is
    measured. Where a sum is too small for float64 all of them are taken in logarithms, so that
    what is possible never reads 0.
    """
    one, other = np.exp(past), np.exp(future)
    above, below = one[:, :size] @ other[:size], one[:, size:] @ other[size:]
    if min(float(above.min()), float(below.min())) >= SMALLEST:
        return float(np.log(np.max(above / below))), 0.0
    able = [(part > -np.inf).astype(np.float64) for part in (past, future)]
    met, matched = (
        able[0][:, part] @ able[1][part] > 0 for part in (slice(None, size), slice(size, None))
    )
    if (met & ~matched).any():  # it happens under A only
        return np.inf, 0.0
    if not met.any():
        return -np.inf, 0.0
    if min(float(above[met].min()), float(below[met].min())) >= SMALLEST:
        return float(np.log(np.max(above[met] / below[met]))), 0.0
    worst, deep = -np.inf, 0.0
    for row in past:
        terms = row[:, None] + future
        top, base = (np.logaddexp.reduce(part, axis=0) for part in (terms[:size], terms[size:]))
        happens = top > -np.inf
        if happens.any():
            worst = max(worst, float(np.max(top[happens] - base[happens])))
            finite = np.abs(terms[terms > -np.inf])
            deep = max(deep, past.shape[1] * float(finite.max(initial=0.0)))
    return worst, deep


def interval_powers(
    lower: Floats, upper: Floats, far: int
) -> Iterator[tuple[LogProduct, LogProduct]]:
    """The largest and smallest probabilities to go from x to z, for 1, 2, … ``far`` steps."""
    high, low = _at_least_floor(upper), _zero_below_floor(lower)
    for step in range(far):
        if step:
            high = _mixed(lower, upper, high, largest=True)
            low = _mixed(lower, upper, low, largest=False)
        yield _interval_logs(high), _interval_logs(low)


def _interval_logs(value: Floats) -> LogProduct:
    log = np.full(value.shape, -np.inf)
    np.log(value, out=log, where=value > 0)
    return LogProduct(log, UNIT * (8 * reach(log) + 8))


def _mixed(lower: Floats, upper: Floats, values: Floats, *, largest: bool) -> Floats:
    """``[x, z]``: the extreme mean of ``values[:, z]`` under a row of the box, rounded outwards.

    Each row takes its lower bounds, then fills up to 1 where it pays most. What rounding does to
    the fill is a few (n + 2)·u of the largest value; a mean is never outside the values.
    """
    n = len(lower)
    out = lower @ values
    room = upper - lower
    spare = (1 - lower.sum(axis=1))[:, None]
    for z in range(n):
        order = np.argsort(-values[:, z] if largest else values[:, z], kind="stable")
        space = room[:, order]
        fill = np.clip(spare - (np.cumsum(space, axis=1) - space), 0.0, space)
        out[:, z] += fill @ values[order, z]
    tops = values.max(axis=0)
    blur = gamma(2 * n + 8)
    if largest:
        out = out * (1 + blur) + 8 * (n + 2) * UNIT * tops
        out = np.minimum(out, (upper @ values) * (1 + blur) + FLOOR)
        reached = (upper > 0) @ (values > 0)  # of truths: nothing possible is lost to underflow
        return np.where(reached, np.maximum(np.minimum(out, tops), FLOOR), 0.0)
    out = out * (1 - blur) - 8 * (n + 2) * UNIT * tops
    floor = np.maximum((lower @ values) * (1 - blur) - FLOOR, values.min(axis=0))
    return _zero_below_floor(np.maximum(out, floor))


def _zero_below_floor(value: Floats) -> Floats:
    """Least probabilities, with those too small for a product rounded down to 0."""
    return np.where(value >= FLOOR, value, 0.0)


def _at_least_floor(value: Floats) -> Floats:
    """Largest probabilities, with those that are possible but too small for a product raised."""
    return np.where(value > 0, np.maximum(value, FLOOR), 0.0)


class IntervalStep:
    """What one step from two rows does to values that differ by at most a factor of e^α."""

    def __init__(self, lower: Floats, upper: Floats) -> None:
        low, high = _zero_below_floor(lower), _at_least_floor(upper)
        n = len(low)
        self.n = n
        loose = (n + 2) * UNIT
        room = np.maximum(1 - low.sum(axis=1) + loose, 0.0)  # added to the numerator if low
        lack = 1 - high.sum(axis=1) - loose * np.maximum(high.sum(axis=1), 1.0)
        self.ways: list[tuple[Floats, Floats, Floats, Floats]] = []
        for above, more in ((high, np.zeros(n)), (low, room)):
            for below, less in ((low, np.zeros(n)), (high, lack)):
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = above[:, None, :] / below[None, :, :]  # [x, y, k]
                ratio[np.isnan(ratio)] = 0.0
                order = np.argsort(-ratio, axis=2, kind="stable")
                tops = np.take_along_axis(np.broadcast_to(above[:, None, :], order.shape), order, 2)
                bases = np.take_along_axis(np.broadcast_to(below, order.shape), order, 2)
                self.ways.append((np.cumsum(tops, axis=2), np.cumsum(bases, axis=2), more, less))

    def after(self, alpha: float) -> Floats:
        """``[x, y]``: at least the log-ratio of the two means."""
        factor = float(np.expm1(up(alpha)))
        best = np.full((self.n, self.n), np.inf)
        for tops, bases, more, less in self.ways:
            first = 1 + factor * more[:, None]
            last = 1 + factor * less[None, :]
            usable = last > 0
            under = np.where(usable, last, 1.0)
            ratio = (first[:, :, None] + factor * tops) / (under[:, :, None] + factor * bases)
            worst = np.maximum(ratio.max(axis=2), first / under)
            best = np.minimum(best, np.where(usable, worst, np.inf))
        return up(np.log(best)) + 4 * gamma(2 * self.n + 16)


def interval_past_up(side: Floats, back: Floats, alpha: float) -> Floats:
    """``[x, y]``: at least what is seen to the left leaks, from two ratios or the spread α.

    Where x or y cannot be reached from so far back only entries nearer to the start have both, and
    for them nothing is seen at this distance.
    """
    never = np.isneginf(side) | np.isneginf(back)
    past = up(np.where(never, 0.0, side) + np.where(never, 0.0, back))
    past = np.where(never, 0.0, past)
    return np.maximum(np.minimum(past, up(2 * alpha)), 0.0)


def half_square(x: float) -> float:
    """x²/2; infinite beyond all floats."""
    return x * x / 2


@dataclass(frozen=True)
class NormalMass:
    """The logarithm of a probability, and how far it may be off."""

    log: float
    error: float

    def over(self, other: "NormalMass") -> "NormalMass":
        """The logarithm of the ratio of the two."""
        return NormalMass(self.log - other.log, self.error + other.error)


def normal_window(start: float, width: float, mean: float, deviation: float) -> NormalMass:
    r"""The log of P(start ≤ X ≤ start + width) for X ~ N(mean, deviation²).

    Between standardised ends a < b the difference of two distribution functions cancels when
    h = b − a is small. With m the middle, the mass is
    :math:`φ(m)\int_{-h/2}^{h/2} e^{-mt-t^2/2}dt`, hence between e^{−h²/8} times and once
    :math:`h\,φ(m)\,\sinh(mh/2)/(mh/2)`. Of the two ways the one with the smaller error is taken.
    """
    from scipy.special import log_ndtr

    low, high = (start - mean) / deviation, (start + width - mean) / deviation
    if low > 0:
        low, high = -high, -low
    wide = width / deviation
    ulps = 16 * UNIT * (1 + abs(low) + abs(high))  # of the ends, each moving log φ by its own size
    shift = ulps * (1 + abs(low) + abs(high))
    mass = NormalMass(-np.inf, np.inf)
    a, b = float(log_ndtr(low)), float(log_ndtr(high))
    gone = -np.expm1(a - b)
    if gone > 0 and np.isfinite(b):
        error = shift + 64 * UNIT * (1 + abs(b)) + (shift + 64 * UNIT * (abs(a) + abs(b))) / gone
        mass = NormalMass(b + float(np.log(gone)), error)
    middle = (low + high) / 2
    x = abs(middle) * wide / 2
    if 0 < wide < 1 and np.isfinite(middle):
        bend = x + float(np.log(-np.expm1(-2 * x) / (2 * x))) if x > 1e-4 else 0.0  # log sinh x/x
        log = float(np.log(wide)) - half_square(middle) - LOG_ROOT + bend
        error = wide**2 / 8 + shift + 64 * UNIT * (1 + 2 * half_square(middle) + x)
        error += x**2 / 6 if x <= 1e-4 else 0.0  # 0 ≤ log sinh x/x ≤ x²/6
        mass = min(mass, NormalMass(log, error), key=lambda known: known.error)
    return mass
