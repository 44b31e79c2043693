"""Leaks of secret pairs of groups of values, in a chain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from takifugu._rounding import UNIT, gamma
from takifugu.influence.chain.curve_request import Side
from takifugu.influence.chain.powers import SMALLEST, LogProduct
from takifugu.numeric import Booleans, Floats


@dataclass(frozen=True)
class GroupLeaks:
    r"""What one entry leaks about "in A" against "in B".

    Given only that X_i is in A, left and right are not independent: both depend on which value of
    A it is. The ratio of the mixtures is maximised over (l, z) together,

    .. math:: \max_{l,z} \log \frac{\sum_{x \in A} P^{d_L}(l,x)\,P^{d_R}(x,z)}
                                  {\sum_{x \in B} P^{d_L}(l,x)\,P^{d_R}(x,z)}
              + \log\frac{\pi_i(B)}{\pi_i(A)},

    with the law of entry i in place of a row of :math:`P^{d_L}` where nothing is seen to the
    left, and 1 in place of a column of :math:`P^{d_R}` where nothing is seen to the right.
    """

    entry: str
    reach: tuple[int | None, int | None]
    keep: Booleans
    exact: Booleans
    pairs: tuple[tuple[Side, Side], ...]
    before: Sequence[LogProduct]  # [distance - 1], rows: the l that are possible there
    after: Sequence[LogProduct]
    law: LogProduct
    offset: Floats
    error: float = 0.0
    _scaled: dict[tuple[int, str, int], tuple[Floats, float]] = field(default_factory=dict)

    def leaks(self, left: int, rights: range) -> Iterator[Floats]:
        """See `EntryLeaks`."""
        for right in rights:
            yield self._leak(left, right)

    def _leak(self, left: int, right: int) -> Floats:
        ends = [
            reach is not None and distance > reach
            for reach, distance in zip(self.reach, (left, right), strict=True)
        ]
        total = np.zeros(len(self.pairs))
        if all(ends):
            return total
        for k in np.flatnonzero(self.keep):
            past, past_error = self._side(int(k), "before", 0 if ends[0] else left)
            future, future_error = self._side(int(k), "after", 0 if ends[1] else right)
            size = len(self.pairs[k][0])
            error = past_error + future_error + gamma(past.shape[1])
            value, deep = _worst_ratio(past, future.T, size)
            slack = 2 * error + 16 * UNIT * (1 + deep + abs(self.offset[k]))
            total[k] = value + self.offset[k] + slack
        return total

    def _side(self, pair: int, which: str, distance: int) -> tuple[Floats, float]:
        """``[l or z, value of A or B]``: logarithms up to a shift of each row, and their error."""
        key = (pair, which, distance)
        if key not in self._scaled:
            columns = [x for side in self.pairs[pair] for x in side]
            if which == "before":
                source = self.before[distance - 1] if distance else self.law
                log = source.log[:, columns]
            elif distance:
                source = self.after[distance - 1]
                log = source.log[columns].T
            else:
                source = LogProduct(np.zeros((1, len(columns))), 0.0)
                log = source.log
            top = log.max(axis=1)
            log, top = log[top > -np.inf], top[top > -np.inf]
            deep = float(np.max(np.abs(log), where=log > -np.inf, initial=0.0))
            self._scaled[key] = log - top[:, None], source.error + UNIT * (16 + 4 * deep)
        return self._scaled[key]


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
