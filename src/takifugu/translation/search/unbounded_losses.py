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


@dataclass(frozen=True, eq=False)
class UnboundedLosses:
    """Both directions of an unbounded chain at one cost ``[u, v]`` of every entry."""

    cost: Floats
    forward: FixedPoint
    backward: FixedPoint

    @cached_property
    def upper(self) -> Floats:
        """``[x, y]``: at least the loss of the pair; infinite if no bound was found."""
        return frozen(pair_losses(self.cost, self.forward.upper, self.backward.upper))

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
) -> UnboundedLosses:
    """Bound the loss of every pair in an unbounded stationary chain with ``cost`` on each entry.

    A cost is a closed matrix ``[u, v]``, or an ε for any change. ``near`` is the result for
    another cost of the same chain: its couplings are where the search begins. The result is within
    about ``tolerance`` of the best, and certified in any case.
    """
    rows = transition_rows(transition)
    size = len(rows)
    back = backward_rows(rows, recurrent_law(rows))[0]
    charged = entry_cost(cost, size)
    if not ((charged >= 0) & (charged < np.inf)).all():
        raise Malformed(
            "epsilon", given=f"is {charged.max():g}", needed="be a finite loss, 0 or more"
        )
    sides = [
        fixed_point(*(fixed_rows(kernel), charged), slack=slack, tolerance=tolerance, start=start)
        for kernel, slack, start in (
            (rows, row_slack(size), near.forward if near else None),
            (back, law_slack(size), near.backward if near else None),
        )
    ]
    return UnboundedLosses(charged, *sides)
