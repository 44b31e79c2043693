r"""An unbounded chain: a proven upper bound near the least fixed point of the step.

Let T be the step of the recursion when every entry has the same cost c, :math:`T(F)(x,y)` = the
transport between rows x and y with costs :math:`c(u,v) + F(u,v)`; c = ε[u≠v] for a scalar loss. A
super-solution, T(F) ≤ F, bounds the loss of chains of every length
(`takifugu.translation.certify.flow`). It is found by policy iteration. The trees are solved for the
current F; F is swept with the trees held fixed, m products a pair; and so on until solving changes
nothing. The sweeps settle F for T + σ with a small σ > 0: then T(F) = F − σ, which leaves room for
rounding. How much a step is rounded up is seen each time the trees are solved, and added to σ, pair
by pair.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, frozen
from takifugu.errors import Malformed
from takifugu.translation.certify.flow import (
    LARGE,
    Couplings,
    RepeatedStep,
    Rows,
    entry_cost,
    off_diagonal,
    pair_losses,
)
from takifugu.translation.certify.laws import (
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.search.couplings import follow, improve

MAX_SWEEPS = 300  # with one set of trees, before they are solved again
MAX_REFINEMENT_ROUNDS = 60  # of solving couplings
DIVERGING = 1 - 1e-7  # at this rate sweeps no longer converge
MAX_STUCK_ROUNDS = 6  # rounds at that rate before the search for a bound is given up
NOISY = 1.5  # of the rounding of a step, for that of the next one may be larger


@dataclass(frozen=True, eq=False)
class FixedPoint:
    """What one direction of an unbounded chain adds to the loss.

    Attributes:
        cost: ``[u, v]``: what a change of each entry costs.
        upper: ``[x, y]``: at least the loss of every chain length; infinite if no bound was found.
        couplings: The flows that prove ``upper``; None where it is infinite.
        solved: The number of times that the couplings were solved.
    """

    cost: Floats
    upper: Floats
    couplings: Couplings | None
    solved: int


def constant_cost(rows: Floats, alpha: float) -> Floats:
    r"""``[x, y]``: one step between rows x and y when all moves cost ``alpha``, rounded up.

    The best g takes two values, high on the states A with the greatest ratio p/q, so

    .. math:: \log t = \max_A \log\frac{1 + (e^\alpha - 1)\,p(A)}{1 + (e^\alpha - 1)\,q(A)}

    over the prefixes A of that order (Cao, Yoshikawa, Xiao & Xiong, ICDE 2017: the largest entry
    is their loss function L). Never more than ``alpha``, which is given where e^alpha is no float.
    """
    if alpha > 700:
        return alpha * (1 - np.eye(len(rows)))
    gain = np.expm1(alpha)
    value = np.zeros((len(rows), len(rows)))
    for x, p in enumerate(rows):
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(p > 0, p / rows, 0.0)  # [y, u]: an order, which may be any
        order = np.argsort(-ratio, axis=1)
        above = 1 + gain * np.cumsum(p[order], axis=1)
        below = 1 + gain * np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        value[x] = np.log(np.max(above / below, axis=1))
        value[x, x] = 0.0
    return np.maximum(value, 0.0)


def fixed_rows(rows: Floats) -> Rows:
    """The same rows whatever the cost."""
    return lambda _cost: (rows, rows)


def fixed_point(
    rows: Rows,
    charged: Floats,
    *,
    slack: float,
    tolerance: float = 1e-3,
    above: Floats | None = None,
    start: FixedPoint | None = None,
    known: Couplings | None = None,
) -> FixedPoint:
    """A super-solution of the step within about ``tolerance`` of the least one, or infinity.

    ``charged`` [u, v] is what a change of the next entry costs. The solution is at least ``above``,
    if given. ``slack`` is added at every step: the rounding of the rows themselves. ``start`` is
    the answer for another cost, or for nearby rows, and ``known`` couplings are where the search
    begins: they save time and change nothing else.
    """
    size = len(charged)
    nothing = np.zeros((size, size))
    least = nothing if above is None else above
    if size == 1 or not (charged.any() or least.any()):
        return FixedPoint(charged, nothing, None, 0)  # T(0) = 0
    step = RepeatedStep(rows, charged, slack)
    value = _guess(step, start) if known is None else least
    value = np.maximum(value, least)
    couplings = start.couplings if start else known
    room, noise = 0.02 * tolerance * float(value.max()), nothing
    upper, proof, solved, stuck = off_diagonal(size, np.inf), None, 0, 0
    while solved < MAX_REFINEMENT_ROUNDS:
        cost = step.cost(value)
        if not cost.max() < LARGE:
            break
        solved += 1
        best, couplings = improve(*rows(cost), cost, guess=value, known=couplings)
        shown = step.upper(value, couplings)
        if step.proves(value, shown, least):
            if value.max() <= upper.max():
                upper, proof = value, couplings
            if float((value - noise - np.maximum(best, least)).max()) <= 2 * room:
                break  # another step would lower it by no more than was put on top
        # what rounding puts on top of a step, where flows are large beside the masses they reach
        noise = np.where(shown < np.inf, NOISY * np.maximum(shown - best, 0.0), 0.0)
        value, rate = _sweep(step, couplings, value, room, noise, least)
        stuck = stuck + 1 if rate >= DIVERGING else 0
        if stuck == MAX_STUCK_ROUNDS:
            break
        room = 0.1 * tolerance * (1 - rate) * float(value.max()) + 4 * slack + 1e-12
    return FixedPoint(charged, upper, proof, solved)


def _guess(step: RepeatedStep, start: FixedPoint | None) -> Floats:
    """Where to begin: another answer, scaled, or costs that are all alike."""
    if start is not None and start.couplings is not None and start.cost.any():
        scaled: Floats = start.upper * (float(step.charged.max()) / float(start.cost.max()))
        return np.minimum(scaled, 0.2 * LARGE)
    unit = off_diagonal(len(step.charged))
    value = 0.0 * unit
    for _ in range(3):
        alpha = float((step.charged + value).sum() / unit.sum())
        value = constant_cost(step.rows(unit * alpha)[0], alpha)
    return value


def _sweep(
    step: RepeatedStep,
    couplings: Couplings,
    value: Floats,
    room: float,
    noise: Floats,
    least: Floats,
) -> tuple[Floats, float]:
    """Sweep ``value`` with fixed trees until it settles; also the rate of convergence.

    Every step adds ``room`` and ``noise``, so that the limit can be proven.
    """
    last, rate, steady, unit = np.inf, 0.5, 0, off_diagonal(len(value))
    limit = 2 * float(value.max()) + 4 * float(
        step.charged.max()
    )  # further, other trees will be better
    for _ in range(MAX_SWEEPS):
        cost = step.charged + value
        if not cost.max() < LARGE:
            break
        after = follow(*step.rows(cost), cost, couplings) + room * unit + noise
        after = np.maximum(after, least)
        gain = after - value
        moved = float(np.abs(gain).max())
        value = after
        if not value.max() < limit or moved <= 0.1 * room:
            break
        now = moved / last
        steady = steady + 1 if abs(now - rate) < 0.02 else 0
        rate = min(max(now, 0.0), DIVERGING)
        last = moved
        if steady >= 4 and 0.6 < rate < DIVERGING:  # geometric: jump to where it leads
            jump = np.maximum(value + gain * (rate / (1 - rate)), least)
            value = np.minimum(jump, limit)
            last, steady = np.inf, 0
    return value, rate


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
