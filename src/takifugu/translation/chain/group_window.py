r"""Secrets about groups of values, coupled together with the entries around them.

The group step (`takifugu.translation.chain.group_step`) bounds every pair of values by the
mechanism that is worst for that pair; one mechanism may not be worst for all at once. Coupling the
entries i − a … i + b together loses less. With U their states, the law of U given
:math:`X_i \in A` is coupled with that given :math:`X_i \in B` at costs

.. math:: \sum_{j=i-a}^{i+b} c_j(u_j,v_j) + B_{i-a}(u_{i-a},v_{i-a}) + F_{i+b}(u_{i+b},v_{i+b}),

by the same proof: given U, the entries before and after the window are independent, and what they
reveal is bounded by B and F at its ends. With the whole chain in the window this is the linear
program itself.

*Classes.* Values of an inner entry between which nothing is charged need not be told apart: g is
the same for all of them, so that the law of their classes, and of the states at both ends, is all
that the expectation of g depends on. So is that of the classes at an end beyond which nothing is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._rounding import UNIT, up
from takifugu.numeric import Floats
from takifugu.translation.chain.chain_losses import HeldLaw
from takifugu.translation.chain.entry_laws import FAINT, row_slack
from takifugu.translation.chain.group_step import SecretSides
from takifugu.translation.chain.stars import classes_of
from takifugu.translation.chain.transport_steps import LARGE, bound, closed, improve

STATES = 256  # of a window
REACH = 16  # entries on each side, at most

Steps = Sequence[tuple[Floats, Floats]]  # the rows that lead to an entry, and its cost


@dataclass(frozen=True, eq=False)
class Window:
    """The entries around a secret one, nearest first on both sides.

    Attributes:
        held: The law of the entry.
        cost: ``[u, v]``: what a change of the entry itself costs.
        ahead: For each entry after it: the rows that lead there, and its cost.
        behind: The same for the entries before it.
        forward: ``[u, v]``: what lies behind the last of ``ahead`` reveals.
        backward: The same before the last of ``behind``.
        slack: The rounding of the rows, of each step.
    """

    held: HeldLaw
    cost: Floats
    ahead: Steps
    behind: Steps
    forward: Floats
    backward: Floats
    slack: float

    def losses(self, secret: SecretSides) -> Floats:
        """``[group]``: the loss of each pair that has a group, rounded up; infinite if unknown."""
        law = self.held.law
        pairs = [secret.sides[k] for k in secret.groups]
        able = [all(law.possible[list(side)].any() for side in pair) for pair in pairs]
        kept = [pair for pair, can in zip(pairs, able, strict=True) if can]
        sides = list(dict.fromkeys(side for pair in kept for side in pair))
        number = {side: k for k, side in enumerate(sides)}
        if not sides:
            return np.full(len(pairs), np.inf)
        states = np.arange(secret.states)
        proven = self._coupled(np.array([law.given(np.isin(states, side)) for side in sides]))
        return np.array(
            [
                proven[number[a], number[b]] if can else np.inf
                for (a, b), can in zip(pairs, able, strict=True)
            ]
        )

    def _coupled(self, laws: Floats) -> Floats:
        """``[a, b]``: the loss of each pair of ``laws`` [side, x] of the entry."""
        law, cost = self._joint(laws)
        law = np.where(law < FAINT, 0.0, law)  # negligible: see `entry_laws`
        kept = np.flatnonzero(law.any(axis=0))
        cost = closed(up(cost[np.ix_(kept, kept)]))
        none = np.full((len(laws), len(laws)), np.inf)
        if not 0 < cost.max() < LARGE:
            return none
        law = np.ascontiguousarray(law[:, kept])
        law /= law.sum(axis=1, keepdims=True)
        _, couplings = improve(law, law, cost, guess=np.full_like(none, float(cost.max()) / 4))
        steps = len(self.ahead) + len(self.behind)
        slack = self.held.slack + row_slack(laws.shape[1]) + 2 * steps * self.slack
        terms = (steps + 1) * laws.shape[1] + len(kept)  # of sums and products
        proven: Floats = bound(law, law, cost, couplings) + slack + 4 * terms * UNIT
        return proven

    def _joint(self, laws: Floats) -> tuple[Floats, Floats]:
        """``[side, U]`` and ``[U, V]``: the laws and the cost of the window, by classes."""
        here = self.cost
        here = here if self.ahead else here + self.forward
        here = here if self.behind else here + self.backward
        own = _Classes(here)
        after, dear_after = _beyond(self.ahead, self.forward, len(here))
        before, dear_before = _beyond(self.behind, self.backward, len(here))
        around = np.einsum("xb,xa->xba", before, after).reshape(len(here), -1)
        law = np.einsum("sx,xc,xk->sck", laws, own.member, around, optimize=True)
        cost = _together(own.cost, _together(dear_before, dear_after))
        return law.reshape(len(laws), -1), cost


class _Classes:
    """The values of an entry by classes, between which a change costs something."""

    def __init__(self, cost: Floats) -> None:
        of, heads = np.unique(classes_of(cost), return_index=True)
        self.cost = cost[np.ix_(heads, heads)]  # g is the same for all values of a class
        self.member = np.eye(len(of))[classes_of(cost)]  # [x, class]


def _beyond(steps: Steps, end: Floats, size: int) -> tuple[Floats, Floats]:
    """The law of the classes of a side's entries, given x, and their cost: [x, key], [key, key].

    ``end`` is what lies beyond the last of them reveals.
    """
    law, cost = np.ones((size, 1)), np.zeros((1, 1))
    for k, (rows, charged) in reversed(list(enumerate(steps))):
        entry = _Classes(charged if k < len(steps) - 1 else charged + end)
        law = (entry.member[:, :, None] * law[:, None, :]).reshape(size, -1)  # given this entry
        law, cost = rows @ law, _together(entry.cost, cost)
    return law, cost


def _together(one: Floats, other: Floats) -> Floats:
    """``[key, key]``: the cost of a change of two things, the second counting faster."""
    wide = np.repeat(np.repeat(one, len(other), axis=0), len(other), axis=1)
    return wide + np.tile(other, one.shape)


def window_reach(
    cost: Floats, ahead: Sequence[Floats], behind: Sequence[Floats], ends: tuple[bool, bool]
) -> tuple[int, int]:
    """How many of the entries ahead and behind, whose costs are given, make a window.

    ``ends`` says of each side whether those are all of its entries: beyond them nothing is.
    """
    size, sides = len(cost), (ahead[:REACH], behind[:REACH])
    classes = [[int(classes_of(c).max()) + 1 for c in side] for side in sides]

    def states(taken: tuple[int, int]) -> int:
        """How many states such a window has."""
        open_ = [
            not (end and n == len(given))
            for end, n, given in zip(ends, taken, (ahead, behind), strict=True)
        ]
        bare = any(more and n == 0 for more, n in zip(open_, taken, strict=True))
        total = size if bare else int(classes_of(cost).max()) + 1
        for count, n, more in zip(classes, taken, open_, strict=True):
            if n:
                total *= int(np.prod(count[: n - 1], dtype=np.float64).clip(max=1e9))
                total *= size if more else count[n - 1]
        return total

    taken = (0, 0)
    while True:
        longer = [
            (n0, n1)
            for n0, n1 in ((taken[0] + 1, taken[1]), (taken[0], taken[1] + 1))
            if n0 <= len(sides[0]) and n1 <= len(sides[1]) and states((n0, n1)) <= STATES
        ]
        if not longer:
            return taken
        taken = min(longer, key=lambda pair: abs(pair[0] - pair[1]))
