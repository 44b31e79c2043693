r"""The step when the transition rows are only known to lie in boxes.

At every entry the chain may use any matrix whose row x is a distribution with
:math:`l_x ≤ p ≤ h_x`; one matrix serves both sides of a pair, so a state still costs nothing
against itself. The step is then :math:`\sup_{p,q} T(p,q,c)` over p in box x, q in box y: T is
convex in p and in q, so the supremum sits at vertices, of which there are exponentially many.

**Bound.** Let p̂ and q̂ be points of the boxes and :math:`θ(u) = 1 − e^{−\max_v c(u,v)}`. Then

.. math:: \sup_{p,q} T(p,q,c) \le
   T\big(\hat p + θ(h_x − \hat p),\ \hat q − θ(\hat q − l_y),\ c\big).

*Proof.* p comes from p̂ by moving masses τ(v, u) from v to u, at most h(u) − p̂(u) to u. Each move
changes E[g] by τ (g(u) − g(v)) ≤ τ g(u) (1 − e^{−c(u,v)}) ≤ τ g(u) θ(u). And q comes from q̂ by
moves from u, at most q̂(u) − l(u), each changing E[g] by τ (g(v) − g(u)) ≥ −τ g(u) θ(u). So the
ratio of expectations is at most that of the two measures on the right, for every g. ∎
It costs one transport, equals the plain step for boxes that are points, and fades as c does. Any
distribution may be p̂ or q̂, in the box or not: so they may be rounded. And q̂ − θ(q̂ − l) is
computed as l + e^{−max c}(q̂ − l), in which nothing cancels, however large c is.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import LEAST, Floats, frozen
from takifugu._core.rounding import UNIT
from takifugu.errors import InvalidPrior, Malformed
from takifugu.translation.certify.flow import Rows, entry_cost
from takifugu.translation.certify.laws import row_slack
from takifugu.translation.search.fixed_point import fixed_point
from takifugu.translation.search.unbounded_losses import UnboundedLosses


def box_rows(lower: ArrayLike, upper: ArrayLike) -> tuple[Floats, Floats]:
    """The smallest boxes that hold the same distributions, widened past rounding."""
    low, high = frozen(lower), frozen(upper)
    if low.ndim != 2 or low.shape[0] != low.shape[1] or high.shape != low.shape:
        raise InvalidPrior(
            "upper",
            given=f"has shape {high.shape} beside `lower` of shape {low.shape}",
            needed="be square, as `lower` is",
            reason="shape",
        )
    if not ((low >= 0) & (low <= high) & (high <= 1)).all():
        raise InvalidPrior("lower", given="leaves its range", needed="be 0 or more, below `upper`")
    below, above = low.sum(axis=1, keepdims=True), high.sum(axis=1, keepdims=True)
    edge = 4 * len(low) * UNIT
    if not ((below <= 1 + edge) & (above >= 1 - edge)).all():
        row = int(np.argmax(~((below <= 1 + edge) & (above >= 1 - edge))))
        raise InvalidPrior(
            "lower", given=f"row {row} holds no distribution", needed="hold one", reason="sum"
        )
    narrow_low = np.maximum(low, 1 - (above - high) - edge)
    narrow_high = np.minimum(high, 1 - (below - low) + edge)
    # a box may always be wider: what is too small for products of two is moved outwards
    narrow_low = np.where(narrow_low < LEAST, 0.0, narrow_low)
    narrow_high = np.where((narrow_high > 0) & (narrow_high < LEAST), LEAST, narrow_high)
    return narrow_low, np.maximum(narrow_high, narrow_low)


def robust_rows(lower: Floats, upper: Floats) -> Rows:
    """The two measures of the bound above, as functions of the cost."""
    below, width = lower.sum(axis=1, keepdims=True), (upper - lower).sum(axis=1, keepdims=True)
    share = np.clip((1 - below) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    centre = lower + share * (upper - lower)
    centre = centre / centre.sum(axis=1, keepdims=True)

    def rows(cost: Floats) -> tuple[Floats, Floats]:
        dearest = cost.max(axis=1)
        theta = -np.expm1(-dearest) * (1 + 8 * UNIT)
        numerator = centre + theta * np.maximum(upper - centre, 0.0)
        least = np.minimum(lower, centre)
        return numerator, least + np.exp(-dearest) * (1 - 8 * UNIT) * (centre - least)

    return rows


def law_bounds(lower: Floats, upper: Floats, *, rounds: int = 50) -> tuple[Floats, Floats]:
    """Bounds on the law of any entry of a chain without beginning, from boxes of its rows.

    The law μ of an entry is ν P for the law ν of the one before. So μ(v) lies between the least
    and the greatest entry of column v, and then between ν·l and ν·h over the ν so bounded. What
    can happen is said by the zeros of ``upper`` alone: no other bound from above is below `LEAST`.
    """
    low, high = lower.min(axis=0), upper.max(axis=0)
    can = (upper > 0).any(axis=0)
    for _ in range(rounds):
        least = np.array([_expected(low, high, column, most=False) for column in lower.T])
        most = np.array([_expected(low, high, column, most=True) for column in upper.T])
        error = 1 + 4 * (len(low) + 4) * UNIT
        low, high = np.maximum(low, least / error), np.minimum(high, most * error)
    return np.where(low < LEAST, 0.0, low), np.where(can, np.maximum(high, LEAST), 0.0)


def backward_boxes(
    lower: Floats, upper: Floats, law_low: Floats, law_high: Floats
) -> tuple[Floats, Floats]:
    """Boxes ``[x, u]`` that hold P(u before | x now) for rows and laws within the given bounds.

    They cover every chain, stationary or not, whose rows stay in the boxes and whose laws stay
    within the bounds at every entry. The backward rows are treated as if chosen freely.
    """
    small = law_low[:, None] * lower  # [u, x]
    large = law_high[:, None] * upper
    if (small.sum(axis=0) == 0).any():
        state = int(np.argmax(small.sum(axis=0) == 0))
        raise InvalidPrior(
            "lower",
            given=f"does not keep state {state} possible",
            needed="be positive somewhere in every column that a secret may name",
        )
    rest_large, rest_small = _others(large), _others(small)
    error = 8 * (len(lower) + 4) * UNIT
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(small > 0, small / (small + rest_large), 0.0) * (1 - error)
        high = np.where(large > 0, large / (large + rest_small), 0.0) * (1 + error)
    return box_rows(np.maximum(low.T, 0.0), np.minimum(high.T, 1.0))


def group_boxes(
    law_low: Floats, law_high: Floats, sides: Sequence[tuple[int, ...]]
) -> tuple[Floats, Floats]:
    """Boxes ``[side, x]`` that hold the law of an entry, given that it is one of a side's values.

    A share l/(l + rest) falls as the rest grows, and rises with l.
    """
    inside = np.array([np.isin(np.arange(len(law_low)), side) for side in sides])
    small, large = np.where(inside, law_low, 0.0), np.where(inside, law_high, 0.0)
    error = 8 * (len(law_low) + 4) * UNIT
    rest_small, rest_large = _others(small.T).T, _others(large.T).T
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(small > 0, small / (small + rest_large), 0.0) * (1 - error)
        high = np.where(large > 0, large / (large + rest_small), 0.0) * (1 + error)
    return np.where(low < LEAST, 0.0, low), np.minimum(high, 1.0)


def interval_losses(
    lower: ArrayLike, upper: ArrayLike, cost: float | Floats, *, tolerance: float = 1e-3
) -> UnboundedLosses:
    """Bound the loss in an unbounded chain whose rows may change within boxes at every entry.

    ``cost`` [u, v] is what a change of each entry costs, or an ε for any change. Only an upper
    bound: ``lower`` of the result is the cost alone.
    """
    low, high = box_rows(lower, upper)
    charged = entry_cost(cost, len(low))
    if not ((charged >= 0) & (charged < np.inf)).all():
        raise Malformed(
            "epsilon", given=f"is {charged.max():g}", needed="be a finite loss, 0 or more"
        )
    sides = [
        fixed_point(
            *(robust_rows(*boxes), charged),
            slack=2 * row_slack(len(low)),
            tolerance=tolerance,
            with_lower=False,
        )
        for boxes in ((low, high), backward_boxes(low, high, *law_bounds(low, high)))
    ]
    return UnboundedLosses(charged, *sides)


def _others(table: Floats) -> Floats:
    """``[u, x]``: the sum of a column over all rows but u.

    Taking the entry off the whole sum would not do: beside a large entry the others are lost in
    the rounding of the sum, although they may be large beside the *other* bound of that entry.
    """
    ahead, behind = np.zeros_like(table), np.zeros_like(table)
    np.cumsum(table[:-1], axis=0, out=ahead[1:])
    np.cumsum(table[:0:-1], axis=0, out=behind[-2::-1])
    others: Floats = ahead + behind
    return others


def _expected(low: Floats, high: Floats, worth: Floats, *, most: bool) -> float:
    """The largest Σ μ·worth over distributions μ between ``low`` and ``high``, or the least.

    What is left beyond ``low`` is a difference from 1: it is rounded towards more for the largest
    and towards less for the least, so that a small remainder is not lost to rounding.
    """
    order = np.argsort(-worth if most else worth)
    room = (high - low)[order]
    margin = 4 * (len(low) + 4) * UNIT * (1 if most else -1)
    left = np.clip(1 - low.sum() - np.r_[0.0, np.cumsum(room)[:-1]] + margin, 0.0, None)
    return float(low @ worth + np.minimum(room, left) @ worth[order])
