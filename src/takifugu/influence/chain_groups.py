"""Secrets that set groups of values against each other, in a chain."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from takifugu.influence.powers import SMALLEST, LogProduct
from takifugu.influence.questions import Side
from takifugu.numeric import UNIT, Booleans, Floats, gamma


@dataclass(frozen=True)
class GroupsAround:
    r"""What one entry leaks about "in A" against "in B".

    Given only that X_i is in A, left and right are not independent: both tell which value of A it
    is. The ratio of the mixtures is maximised over (l, z) together,

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
    _scaled: dict[tuple[int, str, int], tuple[Floats, float]] = field(default_factory=dict)

    def leaks(self, left: int, rights: range) -> Iterator[Floats]:
        """See `Around`."""
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
            ratio = _worst_ratio(past, future.T, size)
            value = np.log(ratio) if ratio > 0 else -np.inf
            total[k] = value + self.offset[k] + 2 * error + 8 * UNIT * (1 + abs(self.offset[k]))
        return total

    def _side(self, pair: int, which: str, distance: int) -> tuple[Floats, float]:
        """``[l or z, value of A or B]``: chances up to a factor for each row, and their error."""
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
            value = np.exp(log - top[:, None])
            deep = float(np.max(np.abs(log), where=log > -np.inf, initial=0.0))
            self._scaled[key] = value, source.error + UNIT * (16 + 4 * deep)
        return self._scaled[key]


def _worst_ratio(past: Floats, future: Floats, size: int) -> float:
    """The largest (past · future over A) / (the same over B), A being the first ``size`` values.

    What is possible but too small for float64 counts as the smallest number kept when above the
    line, and as 0 when below it.
    """
    above = past[:, :size] @ future[:size]
    below = past[:, size:] @ future[size:]
    if min(float(above.min()), float(below.min())) >= SMALLEST:
        return float(np.max(above / below))
    met = (past[:, :size] > 0).astype(np.float64) @ (future[:size] > 0).astype(np.float64) > 0
    above = np.where(met, np.maximum(above, SMALLEST), 0.0)
    below = np.where(below >= SMALLEST, below, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(above == 0, 0.0, above / below)
    return float(np.max(ratio))
