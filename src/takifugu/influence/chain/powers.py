"""Many steps of a chain at once, as logarithms with a bound on their error."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from takifugu._rounding import UNIT, gamma
from takifugu.numeric import Booleans, Floats, Integers

SMALLEST = 2.0**-900  # above this no term that matters is lost to underflow
IMPOSSIBLE = -1e300  # stands for log 0 in a denominator, so that 0/0 reads −∞ and 1/0 reads 1e300
BLOCK = 2**18  # numbers worked on at once, so that they stay near the processor


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
        step = max(1, BLOCK // max(rows * width, 1))
        buffer = np.empty((min(step, rows), rows, width))
        for x in range(0, rows, step):
            part = buffer[: min(step, rows - x)]
            np.subtract(above[x : x + step, None, :], below[None], out=part)
            np.max(part, axis=2, out=table[x : x + step])
        worst = table[numerator, denominator]
    else:
        step = max(1, BLOCK // max(width, 1))
        for k in range(0, len(numerator), step):
            part = above[numerator[k : k + step]] - below[denominator[k : k + step]]
            np.max(part, axis=1, out=worst[k : k + step])
    slack = product.error + other.error + 2 * UNIT * (reach(product.log) + reach(other.log))
    return np.where(worst > -IMPOSSIBLE / 2, np.inf, worst + slack)


def turned(product: LogProduct) -> LogProduct:
    """The same with rows and columns exchanged."""
    return LogProduct(np.ascontiguousarray(product.log.T), product.error)
