r"""Chains whose transition rows are only known to lie in boxes: the robust step, and star walks.

At every entry the chain may use any matrix whose row x is a distribution with
:math:`l_x ≤ p ≤ h_x`; one matrix serves both sides of a pair, so a state still costs nothing
against itself.

**The robust step** is :math:`\sup_{p,q} T(p,q,c)` over p in box x, q in box y: T is convex in p and
in q, so the supremum sits at vertices, of which there are exponentially many. Let p̂ and q̂ be
points of the boxes and :math:`θ(u) = 1 − e^{−\max_v c(u,v)}`. Then

.. math:: \sup_{p,q} T(p,q,c) \le
   T\big(\hat p + θ(h_x − \hat p),\ \hat q − θ(\hat q − l_y),\ c\big).

*Proof.* p comes from p̂ by moving masses τ(v, u) from v to u, at most h(u) − p̂(u) to u. Each move
changes E[g] by τ (g(u) − g(v)) ≤ τ g(u) (1 − e^{−c(u,v)}) ≤ τ g(u) θ(u). And q comes from q̂ by
moves from u, at most q̂(u) − l(u), each changing E[g] by τ (g(v) − g(u)) ≥ −τ g(u) θ(u). So the
ratio of expectations is at most that of the two measures on the right, for every g. ∎ It costs one
transport, equals the plain step for boxes that are points, and fades as c does. Any distribution
may be p̂ or q̂, in the box or not: so they may be rounded. And q̂ − θ(q̂ − l) is computed as l +
e^{−max c}(q̂ − l), in which nothing cancels, however large c is.

**One side under star costs.** As in `takifugu.translation.certify.stars`, F(x, y) ≤ log t if
the walk :math:`e_1 = P(x,·) − tP(y,·)`, :math:`e_{n+1} = G(e_n)P` ends with a sum of at most 0, now
for every choice of the matrices. Carry bounds :math:`\bar e_n \ge e_n` for all of them, *and* a
bound :math:`s_n` on the sum of :math:`e_n`: of the rows it is known that they sum to 1.

**Step.** Let :math:`D = \sum \bar e − s \ge 0`. An e ≤ ē with Σe ≤ s is ē − d with d ≥ 0 and
Σd ≥ D. G is increasing, with slopes of at least g⁻(u) = e^{−down(u)}, so
:math:`G(e)(u) \le G(\bar e)(u) − g^-(u) d(u)`, and w ↦ max over p in [l, h] of w·p has slopes of at
least l. Hence

.. math:: \sum e' = \sum G(e) \le \sum G(\bar e) − D \min_u g^-(u), \qquad
          e'(v) \le \sum_u \max_p G(\bar e)(u) p_u(v) − D \min_u g^-(u)\, l_u(v),

with the largest probability where G(ē) is positive and the least where it is negative. Both are
monotone in (ē, s), so every operation may be rounded up. The first sum is 1 − t, exactly. ∎
For p = q = .9 ± .005, T = 100, ε = .1 the side ahead is that of the worst member of the set.

**Backward.** Given the value of an entry, the one before has a law in a box too, if the law of the
entry before is bounded (`backward_boxes`): the reversed chain is one of a set of chains with boxes,
and the same walk bounds it. The entries of a window without a beginning all have laws within one
pair of bounds. If the first entry may have any law, entry k ≥ 1 has a law that is a mixture of rows
k times over, with bounds that narrow as k grows, and nothing is known of the step back to the first
entry itself. A side of n entries then walks the last n of a list of boxes: those of late entries,
…, of entry 1, and the free one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.compiled import share_range
from takifugu._core.numeric import LEAST, Floats, frozen
from takifugu._core.rounding import UNIT
from takifugu.errors import InvalidPrior
from takifugu.translation.certify.flow import Rows
from takifugu.translation.certify.stars import MIN_SHARED_WORK, Star

LARGEST_RAY = 100.0  # a longer ray is left to other bounds
LEAST_PROBABILITY = 1e-151  # and so is a smaller positive probability
LARGEST_LOSS = 300.0  # and a larger loss
MAX_STEPS = 2_000  # entries of an unbounded side, after which nothing is proven


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


@dataclass(frozen=True, eq=False)
class BoxSide:
    """The entries to one side of the secret one.

    Attributes:
        below: ``[kind, x, u]``: the least probabilities of a step.
        above: ``[kind, x, u]``: the largest.
        star: The cost of each entry, or one above it.
        length: How many entries there are at most; None if they are unbounded.
        begins: Whether the kinds are those of the entries from a late one to the first; else there
            is one kind.
    """

    below: Floats
    above: Floats
    star: Star
    length: int | None
    begins: bool = False

    @property
    def usable(self) -> bool:
        """Whether numbers stay in range."""
        rays = np.abs([self.star.up, self.star.down])
        if self.below.shape != self.above.shape or self.below.ndim != 3 or self.length == 0:
            return False
        inside = (self.below >= 0) & (self.below <= self.above) & (self.above <= 2)
        positive = self.above[self.above > 0]
        fits = bool((rays <= LARGEST_RAY).all() and (self.star.up + self.star.down >= 0).all())
        return bool(fits and inside.all() and positive.min(initial=1.0) >= LEAST_PROBABILITY)

    def upper(self, caps: Floats) -> Floats:
        """``[x, y]``: at least what the side reveals; infinite where ``caps`` is not proven."""
        from takifugu.translation.certify.box_loops import BoxSteps, least_proven

        size = self.below.shape[1]
        table = np.full((size, size), np.inf)
        np.fill_diagonal(table, 0.0)
        if not self.usable:
            return table
        pairs = np.argwhere(~np.eye(size, dtype=np.bool_))
        limits = caps[tuple(pairs.T)]
        limits = np.where((limits >= 0) & (limits < LARGEST_LOSS), limits, LARGEST_LOSS)
        losses = np.full(len(pairs), np.inf)
        unbounded = self.length is None or self.length > MAX_STEPS
        steps = BoxSteps(
            self.below,
            self.above,
            kinds=np.arange(len(self.below)),
            begins=self.begins,
            most=MAX_STEPS if unbounded or self.length is None else self.length,
            unbounded=unbounded,
            high=np.exp(self.star.up),
            low=np.exp(-self.star.down),
            error=4 * (size + 16) * UNIT,
            floor=1e-230 / float(self.above[self.above > 0].min()),
        )

        def work(begin: int, end: int) -> None:
            least_proven(steps, pairs, begin, end, limits, losses)

        share_range(work, len(pairs), worthwhile=len(pairs) * size**2 >= MIN_SHARED_WORK)
        table[tuple(pairs.T)] = np.where(losses >= 0, losses, np.inf)
        return table
