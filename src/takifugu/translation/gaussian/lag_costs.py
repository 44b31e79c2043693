r"""Costs of the shift of a stationary process, added up over lags.

An entry k steps away is shifted by :math:`r|ρ(k)|`, which falls with k, and a shift by d costs
f(d) ≤ s·d + j. So with M lags evaluated one by one the lags from M + 1 to m add at most
:math:`(m − M) f(r|ρ(M)|)`, and at most
:math:`s\,r \sum_{k>M} |ρ(k)| + (m − M)\,j`, where the sum is half of what the closed form of
:math:`\sum_k |ρ(k)|` leaves.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from takifugu._rounding import UNIT
from takifugu.costs import Cost
from takifugu.numeric import Floats, Integers
from takifugu.priors.kernels import TINY, StationaryKernel
from takifugu.translation.gaussian.shift_costs import largest_cost, slope_and_jump

MOST_LAGS = 2**14  # evaluated one by one


def shifts_by_lag(kernel: StationaryKernel, within: float, lags: Integers) -> Floats:
    """How far an entry at each lag is shifted, rounded up; 0 only where nothing moves."""
    shares = kernel.most(lags)
    with np.errstate(over="ignore", under="ignore"):
        moved = np.maximum(shares * within * (1 + 2 * UNIT), TINY)
    return np.where(shares > 0, moved, 0.0)


class LagCosts:
    """What the shift of an entry by ``within`` costs at each lag, if each entry has lost a cost."""

    def __init__(self, kernel: StationaryKernel, within: float, costs: Sequence[Cost]) -> None:
        self._kernel, self._within, self._costs = kernel, within, costs

    @cached_property
    def own(self) -> float:
        """What the entry itself costs."""
        return float(self._by_lag[0])

    @cached_property
    def _by_lag(self) -> Floats:
        return largest_cost(
            self._costs, shifts_by_lag(self._kernel, self._within, np.arange(MOST_LAGS + 1))
        )

    @cached_property
    def _running(self) -> Floats:
        """``[m]``: the lags from 1 to m together."""
        added = np.concatenate([[0.0], np.cumsum(self._by_lag[1:])])
        return added * (1 + (MOST_LAGS + 4) * UNIT)

    def up_to(self, lags: Integers) -> Floats:
        """What the lags from 1 to each of ``lags`` cost together, rounded up."""
        inside = self._running[np.minimum(lags, MOST_LAGS)]
        more = np.maximum(lags - MOST_LAGS, 0).astype(np.float64)
        if not (more > 0).any():
            return inside
        slope, jump = self._beyond
        last = float(self._by_lag[-1])
        rest = np.minimum(more * last, slope + more * jump) * (1 + 8 * UNIT)
        found = (inside + np.where(more > 0, rest, 0.0)) * (1 + 2 * UNIT)
        return np.minimum(found, self.all_lags)

    @cached_property
    def all_lags(self) -> float:
        """What all lags from 1 on cost together, rounded up; it may be infinite."""
        if self._by_lag[-1] == 0:  # nothing moves there, nor beyond
            return float(self._running[-1])
        slope, jump = self._beyond
        if jump > 0:
            return np.inf
        steep = max(a for a, _ in map(slope_and_jump, self._costs))
        with np.errstate(over="ignore"):
            unclamped = steep * self._within * ((self._kernel.total() - 1) / 2)
        return min(float(self._running[-1]) + slope, max(unclamped, TINY)) * (1 + 8 * UNIT)

    @cached_property
    def _beyond(self) -> tuple[float, float]:
        """What distances cost beyond the lags that were evaluated, and each jump."""
        parts = [slope_and_jump(cost) for cost in self._costs]
        slope = max((a for a, _ in parts), default=0.0)
        jump = max((b for _, b in parts), default=0.0)
        known = float(self._kernel.least(np.arange(1, MOST_LAGS + 1)).sum())
        left = (self._kernel.total() - 1) / 2 - known * (1 - (MOST_LAGS + 4) * UNIT)
        left += 8 * UNIT * self._kernel.total()
        with np.errstate(over="ignore"):
            far = slope * self._within * max(left, 0.0) * (1 + 8 * UNIT)
        return (max(far, TINY) if slope > 0 else 0.0), jump
