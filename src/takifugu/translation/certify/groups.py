r"""Secrets about groups of values, coupled together with the entries around them.

A step between the laws of the entry given each group (`mixture_step` in
`takifugu.translation.certify.flow`) bounds every pair of values by the mechanism that is worst for
that pair; one mechanism may not be worst for all at once. Two couplings lose less.

**A window.** With U the states of the entries i − a … i + b, the law of U given :math:`X_i \in A`
is coupled with that given :math:`X_i \in B` at costs

.. math:: \sum_{j=i-a}^{i+b} c_j(u_j,v_j) + B_{i-a}(u_{i-a},v_{i-a}) + F_{i+b}(u_{i+b},v_{i+b}),

by the same proof: given U, the entries before and after the window are independent, and what they
reveal is bounded by B and F at its ends. With the whole chain in the window this is the linear
program itself. *Classes.* Values of an inner entry between which nothing is charged need not be
told apart: g is the same for all of them, so that the law of their classes, and of the states at
both ends, is all that the expectation of g depends on. So is that of the classes at an end beyond
which nothing is.

**A conditioned chain.** Given :math:`X_i \in A` the entries of one side, from far away towards i,
are a Markov chain too (Doob's transform): its step from x, j entries away, to u, one nearer, has
the probability :math:`K_A(x,u) = μ_A(u) R(u,x)/\sum_w μ_A(w) R(w,x)`, with :math:`μ_A` the law of
the nearer entry given A and R the rows that lead away from i. So the secret is a first entry of a
chain that nobody reads. With :math:`G_0(u,v)` = own cost + what the other side reveals of (u, v),

.. math:: G_j(x,y) = c_j(x,y) + T\big(K_A(x,·), K_B(y,·);\ G_{j-1}\big)

bounds :math:`\log E[h|X_{i\pm j}=x, A]/E[h|X_{i\pm j}=y, B]` over admissible h of all entries from
there on, through i, to the end of the other side; in the end the laws of the furthest entry given A
and given B are coupled, at :math:`G_w` + what lies beyond. Here x on the left is not x on the
right: sources and sinks are states of their own. Between any two of them at all h varies by no more
than the sum of the dearest changes so far (group privacy), which completes the costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu._core.rounding import UNIT, up
from takifugu.translation.certify.flow import NEGLIGIBLE, Couplings, Step, closed
from takifugu.translation.certify.laws import HeldLaw, row_slack
from takifugu.translation.certify.stars import classes_of

SMALLEST_PRODUCT = 2.0**-900  # of probabilities: a smaller one is left to other bounds

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

    def step(self, sides: Sequence[Booleans]) -> Step:
        """The transport between the laws of the window given that the entry is in each side."""
        laws = np.array([self.held.law.given(side) for side in sides])
        law, cost = self._joint(laws)
        law = np.where(law < NEGLIGIBLE, 0.0, law)  # see `takifugu.translation.certify.laws`
        used = np.flatnonzero(law.any(axis=0))
        law = np.ascontiguousarray(law[:, used])
        law /= law.sum(axis=1, keepdims=True)
        steps = len(self.ahead) + len(self.behind)
        slack = self.held.slack + row_slack(laws.shape[1]) + 2 * steps * self.slack
        terms = (steps + 1) * laws.shape[1] + len(used)  # of sums and products
        return Step(law, law, closed(up(cost[np.ix_(used, used)])), slack + 4 * terms * UNIT)

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


class ConditionedWalk:
    """Walks one side of a secret entry inwards out, given each of two groups of its values.

    Like `takifugu.translation.certify.flow.FlowWalk`: a search looks at the next step and proposes
    couplings for it. After any number of steps it may be closed: see `loss`.

    Attributes:
        usable: Whether all probabilities are far from underflow.
    """

    def __init__(
        self,
        held: HeldLaw,
        groups: tuple[Booleans, Booleans],
        own: Floats,
        steps: Steps,
        slack: float,
    ) -> None:
        self._steps, self._taken = steps, 0
        size = len(own)
        laws = [held.law.given(group) for group in groups]
        self._laws, self._kernels = [list(laws)], list[list[Floats]]()
        self.usable = True
        for rows, _ in steps:
            pair = []
            for k, law in enumerate(laws):
                joint = law[:, None] * rows  # [u, x]
                positive = law[law > 0].min() * rows[rows > 0].min()
                self.usable = self.usable and bool(positive >= SMALLEST_PRODUCT)
                total = joint.sum(axis=0)
                share = joint / np.where(total > 0, total, 1.0)
                inward = np.where(total[:, None] > 0, share.T, law)
                pair.append(np.where(inward < NEGLIGIBLE, 0.0, inward))
                laws[k] = total / total.sum()
            self._kernels.append(pair)
            self._laws.append(list(laws))
        able = held.law.possible
        self._most = float(own[np.ix_(able, able)].max(initial=0.0))
        self._table = np.where(np.isfinite(own), np.maximum(own, 0.0), self._most)
        self._first = held.slack + row_slack(size)
        self._each = slack + 4 * (size + 4) * UNIT

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self._taken == len(self._steps)

    def step(self) -> Step:
        """The next step: from each state on the left to each state on the right."""
        left, right = self._kernels[self._taken]
        return self._crossed(left, right, self._table, self._most)

    def take(self, couplings: Couplings | None) -> None:
        """Certify a step; without couplings it is as dear as its dearest move."""
        table = self.step().upper(couplings)
        cost = self._steps[self._taken][1]
        self._most = float(up(self._most + cost.max(initial=0.0)))
        self._table = up(cost + table)
        self._taken += 1

    def closing(self, end: Floats) -> Step:
        """The transport between the laws of the last entry; ``end`` bounds what lies beyond it."""
        left, right = (law[None, :] for law in self._laws[self._taken])
        most = float(up(self._most + end.max(initial=0.0)))
        return self._crossed(left, right, up(self._table + end), most)

    def loss(self, end: Floats, couplings: Couplings | None) -> float:
        """At least the loss of the groups; ``couplings`` are those of `closing`."""
        return float(self.closing(end).upper(couplings)[0, 0]) if self.usable else np.inf

    def _crossed(self, left: Floats, right: Floats, table: Floats, most: float) -> Step:
        size = len(table)
        cost = np.full((2 * size, 2 * size), most)
        cost[:size, size:] = np.minimum(table, most)
        np.fill_diagonal(cost, 0.0)
        nothing = np.zeros_like(left)
        return Step(
            np.hstack([left, nothing]),
            np.hstack([nothing, right]),
            cost,
            4 * (self._first + (self._taken + 1) * self._each),
            crossed=True,
        )
