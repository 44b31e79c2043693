r"""The transport bound of a stationary chain without a beginning or an end.

The pair (x, y) at any entry loses at most c(x, y) + F(x, y) + B(x, y), c the cost of an entry (ε
for any change, if the loss is scalar), with F and B super-solutions of the forward and the backward
step (`takifugu.translation.search.fixed_point`). This covers every
finite piece of the chain and every entry of it, also near its ends: an entry with n others after it
has :math:`F_i = T^n(0) ≤ F`, and likewise B, so no entry loses more than one deep inside.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, frozen
from takifugu.errors import Malformed
from takifugu.translation.certify.flow import entry_cost, pair_losses
from takifugu.translation.certify.laws import (
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.search.fixed_point import FixedPoint, fixed_point, fixed_rows

MAX_TRIALS = 40  # evaluations after which a search for the largest ε stops
MIN_TARGET_SHARE = 1e-6  # share of the target below which no ε is tried


@dataclass(frozen=True, eq=False)
class UnboundedLosses:
    """Both directions of an unbounded chain at one cost ``[u, v]`` of every entry.

    ``upper`` [x, y] is certified; ``lower`` bounds the recursion, not the truth, from below:
    the difference is what the search has left open.
    """

    cost: Floats
    forward: FixedPoint
    backward: FixedPoint

    @cached_property
    def upper(self) -> Floats:
        """``[x, y]``: at least the loss of the pair; infinite if no bound was found."""
        return frozen(pair_losses(self.cost, self.forward.upper, self.backward.upper))

    @cached_property
    def lower(self) -> Floats:
        """``[x, y]``: about what the recursion gives at least; the cost alone if not computed."""
        return frozen(self.cost + self.forward.lower + self.backward.lower)

    @property
    def loss(self) -> float:
        """The largest loss over all pairs, rounded up."""
        return float(self.upper.max(initial=0.0))

    @property
    def worst(self) -> tuple[int, int]:
        """The pair with the largest loss."""
        x, y = np.unravel_index(int(np.argmax(self.upper)), self.upper.shape)
        return int(x), int(y)


def unbounded_losses(
    transition: ArrayLike,
    cost: float | Floats,
    *,
    tolerance: float = 1e-3,
    near: UnboundedLosses | None = None,
    with_lower: bool = True,
) -> UnboundedLosses:
    """Bound the loss of every pair in an unbounded stationary chain with ``cost`` on each entry.

    A cost is a closed matrix ``[u, v]``, or an ε for any change. ``near`` is the result for
    another cost of the same chain: its couplings are where the search begins. The result is within
    about ``tolerance`` of the best, and certified in any case.
    """
    return _both(_Chain.from_transition(transition), cost, tolerance, near, with_lower)


def unbounded_allowance(
    transition: ArrayLike, target: float, *, tolerance: float = 1e-3
) -> tuple[float, UnboundedLosses | None]:
    """The largest ε, to ``tolerance``, whose certified loss is at most ``target``, and the proof.

    The search keeps the couplings from one ε to the next. If it finds none it returns 0, None.
    """
    if not 0 < target < np.inf:
        raise Malformed("target", given=f"is {target:g}", needed="be a finite loss above 0")
    chain = _Chain.from_transition(transition)
    proven, found = 0.0, None
    above = float(target)  # spending ε on an entry loses at least ε
    near: UnboundedLosses | None = None
    trial, slope = target / 8, 1.0
    before: tuple[float, float] | None = None
    for _ in range(MAX_TRIALS):
        near_before = near if near is not None and np.isfinite(near.loss) else found
        now = _both(chain, trial, 0.3 * tolerance, near_before, False)
        loss = now.loss
        if loss <= target:
            proven, found = trial, now
            if loss >= target * (1 - tolerance):
                break
        else:
            above = trial
        if above <= proven * (1 + tolerance) or above < target * MIN_TARGET_SHARE:
            break
        if np.isfinite(loss):
            near = now
            if before is not None and before[0] != trial:
                slope = float(np.log(loss / before[1]) / np.log(trial / before[0]))
            before = (trial, loss)
            aim = trial * (target * (1 - 0.4 * tolerance) / loss) ** (1 / max(slope, 1.0))
        else:
            aim = 0.0
        middle = np.sqrt(proven * above) if proven else above / 4
        trial = float(aim if proven < aim < above else middle)
    return proven, found


@dataclass(frozen=True)
class _Chain:
    ahead: Floats
    behind: Floats

    @classmethod
    def from_transition(cls, transition: ArrayLike) -> "_Chain":
        rows = transition_rows(transition)
        law = recurrent_law(rows)
        return cls(rows, backward_rows(rows, law)[0])


def _both(
    chain: _Chain,
    cost: float | Floats,
    tolerance: float,
    near: UnboundedLosses | None,
    with_lower: bool,
) -> UnboundedLosses:
    size = len(chain.ahead)
    charged = entry_cost(cost, size)
    if not ((charged >= 0) & (charged < np.inf)).all():
        raise Malformed(
            "epsilon", given=f"is {charged.max():g}", needed="be a finite loss, 0 or more"
        )
    sides = [
        fixed_point(
            *(fixed_rows(rows), charged),
            slack=slack,
            tolerance=tolerance,
            start=start,
            with_lower=with_lower,
        )
        for rows, slack, start in (
            (chain.ahead, row_slack(size), near.forward if near else None),
            (chain.behind, law_slack(size), near.backward if near else None),
        )
    ]
    return UnboundedLosses(charged, *sides)
