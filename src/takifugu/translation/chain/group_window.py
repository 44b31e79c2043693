r"""Secrets about groups of values, coupled together with the entries around them.

The group step (`takifugu.translation.chain.group_step`) bounds every pair of values by the
mechanism that is worst for that pair; one mechanism may not be worst for all at once. Coupling the
entries i − a … i + b together loses less. With U their states, the law of U given
:math:`X_i \in A` is coupled with that given :math:`X_i \in B` at costs

.. math:: \sum_{j=i-a}^{i+b} c_j(u_j,v_j) + B_{i-a}(u_{i-a},v_{i-a}) + F_{i+b}(u_{i+b},v_{i+b}),

by the same proof: given U, the entries before and after the window are independent, and what they
reveal is bounded by B and F at its ends. With the whole chain in the window this is the linear
program itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._rounding import UNIT, up
from takifugu.numeric import Floats, Integers
from takifugu.translation.chain.chain_losses import HeldLaw
from takifugu.translation.chain.entry_laws import FAINT, row_slack
from takifugu.translation.chain.group_step import SecretSides
from takifugu.translation.chain.transport_steps import LARGE, bound, closed, improve

STATES = 256  # of a window

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
        cost, law = self.cost, laws
        ahead = behind = np.arange(laws.shape[1])  # of a state of the window, its last and first
        for rows, charged in self.ahead:
            law, cost = _longer(law, rows[ahead]), _dearer(cost, charged)
            ahead, behind = _last(ahead, len(rows)), np.repeat(behind, len(rows))
        for rows, charged in self.behind:
            law, cost = _longer(law, rows[behind]), _dearer(cost, charged)
            ahead, behind = np.repeat(ahead, len(rows)), _last(behind, len(rows))
        cost = cost + self.forward[np.ix_(ahead, ahead)] + self.backward[np.ix_(behind, behind)]
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
        proven: Floats = bound(law, law, cost, couplings) + slack + 4 * len(kept) * UNIT
        return proven


def window_reach(states: int, after: int | None, before: int | None) -> tuple[int, int]:
    """How many entries after and before one make a window; None if there is no end of them."""
    length = 0
    while states > 1 and states ** (length + 2) <= STATES:
        length += 1
    most_after, most_before = (length if n is None else min(length, n) for n in (after, before))
    ahead = min(most_after, max((length + 1) // 2, length - most_before))
    return ahead, min(most_before, length - ahead)


def _longer(law: Floats, rows: Floats) -> Floats:
    """``[side, U]``: the law of one more entry together with those before it."""
    return (law[:, :, None] * rows[None]).reshape(len(law), -1)


def _dearer(cost: Floats, charged: Floats) -> Floats:
    """``[U, V]``: the cost of one more entry on top."""
    wide = np.repeat(np.repeat(cost, len(charged), axis=0), len(charged), axis=1)
    return wide + np.tile(charged, cost.shape)


def _last(ends: Integers, size: int) -> Integers:
    """``[U]``: the state of the entry that was added last."""
    return np.tile(np.arange(size), len(ends))
