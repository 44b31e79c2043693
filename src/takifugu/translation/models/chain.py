r"""A Markov chain of finite length whose entries have costs, and what flows prove about it.

Let :math:`F_i(x,y)` bound :math:`\log E[h|X_i=x]/E[h|X_i=y]` over all h of the entries after i
that a mechanism with the costs :math:`c_j` allows, :math:`h \le e^{c_j(u,v)} h'` if entry j alone
changes, and :math:`B_i` the same for the entries before i. Past and future are independent given
X_i, so the pair (x, y) at entry i loses at most

.. math:: c_i(x,y) + F_i(x,y) + B_i(x,y), \qquad F_i = T(P_i;\ c_{i+1} + F_{i+1}),\quad F_{T}=0,

where T is the transport between rows x and y (`takifugu.translation.certify.flow`), and B runs the
other way with the rows P(X_{i−1} | X_i), or over a hull of laws where the start is unknown
(`takifugu.translation.certify.hulls`). *Proof.* φ(u) = E[h | X_{i+1} = u] obeys
:math:`φ(u) \le e^{c_{i+1}(u,v) + F_{i+1}(u,v)} φ(v)`: change entry i + 1 first, then the law of the
entries after it. E[h | X_i = x] is the mean of φ over row x. ∎ A scalar loss is the cost
:math:`c_i = ε_i[u≠v]`. Entries may carry different costs; 0 means that one was not queried.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Booleans, Floats, Integers, distribution, frozen
from takifugu.errors import InvalidPrior
from takifugu.translation.certify.flow import (
    Flows,
    Stretch,
    StretchOfSide,
    off_diagonal,
    pair_losses,
    upper_tables,
)
from takifugu.translation.certify.hulls import HullLine, HullStretch, StartHull
from takifugu.translation.certify.laws import (
    HeldLaw,
    Law,
    LawWalk,
    backward_rows,
    law_slack,
    recurrent_law,
    row_slack,
    transition_rows,
)
from takifugu.translation.entry_costs import CostLevels

Tables = tuple[tuple[Floats, ...], Integers]  # the different ones, and which one follows each step


@dataclass(frozen=True, eq=False)
class ChainLosses:
    """Upper bounds on the Pufferfish loss of every pair (X_i = x, X_i = y) of a finite chain.

    Attributes:
        charged: What a change of each entry costs.
        forward: The different tables ``[x, y]`` of what the entries after one reveal.
        forward_at: ``[i]``: which of them holds at entry i.
        backward: The same for the entries before.
        backward_at: ``[i]``: which of them holds at entry i.
        possible: The different sets ``[x]`` of states that can happen.
        possible_at: ``[i]``: which of them holds at entry i.
        laws: The different laws of an entry, each with its rounding; none of an unknown start.
        law_at: ``[i]``: which of them, or of the hulls, holds at entry i.
        by_entry: ``[i]``: the largest loss at entry i, over pairs of possible states.
        hulls: The different hulls of laws, if the start is unknown.
    """

    charged: CostLevels
    forward: tuple[Floats, ...]
    forward_at: Integers
    backward: tuple[Floats, ...]
    backward_at: Integers
    possible: tuple[Booleans, ...]
    possible_at: Integers
    laws: tuple[HeldLaw, ...]
    law_at: Integers
    by_entry: Floats
    hulls: tuple[StartHull, ...] = ()

    def at(self, entry: int) -> Floats:
        """``[x, y]``: the loss of each pair at ``entry``; −∞ for a pair that cannot happen."""
        return pair_losses(
            self.charged.cost(entry),
            self.forward[self.forward_at[entry]],
            self.backward[self.backward_at[entry]],
            self.possible[self.possible_at[entry]],
        )

    @property
    def loss(self) -> float:
        """The largest loss of all."""
        return float(self.by_entry.max())

    @property
    def worst(self) -> tuple[int, int, int]:
        """The entry i and the states x, y with the largest loss."""
        entry = int(np.argmax(self.by_entry))
        table = self.at(entry)
        x, y = np.unravel_index(int(np.argmax(table)), table.shape)
        return entry, int(x), int(y)


@dataclass(frozen=True, eq=False)
class Chain:
    """A finite chain with costs.

    Attributes:
        matrices: ``[step]``: the rows of each step; equal ones are the same object.
        charged: What a change of each entry costs.
        start: The law of the first entry; None if the chain is stationary, with one matrix;
            "unknown" if it may be any law.
    """

    matrices: Sequence[Floats]
    charged: CostLevels
    start: Floats | Literal["unknown"] | None = None

    @classmethod
    def from_priors(
        cls,
        transitions: ArrayLike | Sequence[ArrayLike],
        charged: ArrayLike | CostLevels,
        start: ArrayLike | Literal["unknown"] | None = None,
    ) -> "Chain":
        """One matrix, or one for each step; an ε or a cost for each entry."""
        entries = len(charged) if isinstance(charged, CostLevels) else np.size(charged)
        matrices = _matrices(transitions, entries - 1)
        size = len(matrices[0])
        spent = (
            charged
            if isinstance(charged, CostLevels)
            else CostLevels.of_losses(charged, off_diagonal(size))
        )
        if start is None:
            if any(matrix is not matrices[0] for matrix in matrices):
                raise InvalidPrior(
                    "start",
                    given="is missing",
                    needed="be the law of the first entry: rows change",
                    reason="missing",
                )
            return cls(matrices, spent)
        if isinstance(start, str):
            return cls(matrices, spent, "unknown")
        law = distribution(start, "start", InvalidPrior)
        if law.shape != (size,):
            raise InvalidPrior(
                "start",
                given=f"has shape {law.shape}",
                needed=f"have one entry for {size} states",
                reason="shape",
            )
        return cls(matrices, spent, law)

    @property
    def size(self) -> int:
        """How many states there are."""
        return len(self.matrices[0])

    @cached_property
    def ahead(self) -> list[Stretch]:
        """The steps towards the end, from the last entry on."""
        spent = self.charged
        return [
            Stretch(matrix, spent.matrices[level], row_slack(self.size), count)
            for matrix, level, count in _runs(self.matrices[::-1], spent.at[:0:-1])
        ]

    @property
    def behind(self) -> Sequence[StretchOfSide]:
        """The steps towards the beginning, from the first entry on."""
        return self._behind_hulls if self._line is not None else self._backward[0]

    @cached_property
    def _line(self) -> HullLine | None:
        """The hulls of laws, if the start is unknown."""
        return HullLine(self.matrices) if isinstance(self.start, str) else None

    @cached_property
    def _behind_hulls(self) -> list[HullStretch]:
        """The steps over hulls; of one matrix these shrink, so that equal costs are a stretch."""
        line, spent = self._line, self.charged
        assert line is not None  # noqa: S101 - the start is unknown
        turned = {id(m): np.ascontiguousarray(m.T) for m in self.matrices}
        stretches, entry, alike = [], 0, len(turned) == 1
        for matrix, level, count in _runs(self.matrices, spent.at[:-1]):
            for taken in [count] if alike else [1] * count:
                weights, cost = turned[id(matrix)], spent.matrices[level]
                stretches.append(HullStretch(line, entry, weights, cost, taken))
                entry += taken
        return stretches

    @cached_property
    def _backward(
        self,
    ) -> tuple[list[Stretch], tuple[Booleans, ...], Integers, tuple[HeldLaw, ...], Integers]:
        """The backward stretches; which states can happen at each entry, and its law."""
        matrices, spent, steps = self.matrices, self.charged, len(self.charged) - 1
        if self.start is None:
            law, slack = recurrent_law(matrices[0]), law_slack(self.size)
            back, possible = backward_rows(matrices[0], law)
            stretches = [
                Stretch(back, spent.matrices[level], slack, count)
                for _, level, count in _runs(matrices, spent.at[:-1])
            ]
            alike = np.zeros(steps + 1, dtype=np.int64)
            return stretches, (possible,), alike, (HeldLaw(Law.from_floats(law), slack),), alike
        assert not isinstance(self.start, str)  # noqa: S101 - hulls are walked by themselves
        walk = LawWalk(Law.from_floats(self.start), float(spent.dearest.sum()))
        for matrix, level, count in _runs(matrices, spent.at[:-1]):
            walk.along(matrix, spent.matrices[level], count)
        set_at = np.repeat(np.arange(len(walk.sets)), walk.lasts)
        law_at = np.repeat(np.arange(len(walk.laws)), walk.law_lasts)
        return walk.stretches, tuple(walk.sets), set_at, tuple(walk.laws), law_at

    def losses(self, ahead: Tables, behind: Tables) -> ChainLosses:
        """The losses of all entries, from certified tables of both sides."""
        spent, (forward, from_end), (backward, backward_at) = self.charged, ahead, behind
        hulls: tuple[StartHull, ...] = ()
        laws: tuple[HeldLaw, ...] = ()
        if self._line is not None:
            law_at = set_at = np.array([self._line.known(i) for i in range(len(spent))])
            hulls = tuple(self._line.hulls)
            sets = tuple(hull.possible for hull in hulls)
        else:
            _, sets, set_at, laws, law_at = self._backward
        forward_at = from_end[::-1].copy()
        shape = (len(forward), len(backward), len(sets), len(spent.matrices))
        codes = np.ravel_multi_index((forward_at, backward_at, set_at, spent.at), shape)
        kinds, kind_at = np.unique(codes, return_inverse=True)
        worst = [
            pair_losses(spent.matrices[c], forward[f], backward[b], sets[s]).max(initial=0.0)
            for f, b, s, c in zip(*np.unravel_index(kinds, shape), strict=True)
        ]
        return ChainLosses(
            *(spent, forward, forward_at, backward, backward_at, sets, set_at, laws, law_at),
            by_entry=frozen(np.array(worst)[kind_at]),
            hulls=hulls,
        )


def upper(chain: Chain, ahead: Flows, behind: Flows) -> ChainLosses:
    """What the flows of both sides prove; infinite where they prove nothing."""
    tables = (
        upper_tables(chain.ahead, chain.size, ahead),
        upper_tables(chain.behind, chain.size, behind),
    )
    return chain.losses(*tables)


def _matrices(transitions: ArrayLike | Sequence[ArrayLike], steps: int) -> list[Floats]:
    """One matrix for each step; equal ones are the same object."""
    given = transitions if isinstance(transitions, list | tuple) else np.asarray(transitions)
    single = np.ndim(given[0]) <= 1 if len(given) else True
    if single:
        return [transition_rows(np.asarray(given))] * max(steps, 1)
    if len(given) != steps:
        raise InvalidPrior(
            "transitions",
            given=f"has {len(given)} matrices for {steps + 1} entries",
            needed="have one matrix fewer than entries, or be a single matrix",
            reason="count",
        )
    known: dict[bytes, Floats] = {}
    matrices = []
    for matrix in given:
        rows = transition_rows(np.asarray(matrix), "transitions")
        matrices.append(known.setdefault(rows.tobytes(), rows))
    if len({rows.shape for rows in matrices}) > 1:
        raise InvalidPrior("transitions", given="differ in size", needed="share their states")
    return matrices


def _runs(matrices: Sequence[Floats], levels: Integers) -> Iterator[tuple[Floats, int, int]]:
    """Stretches of the same matrix and the same cost."""
    changed = levels[1:] != levels[:-1]
    if len({id(matrix) for matrix in matrices}) > 1:
        changed |= np.array([a is not b for a, b in pairwise(matrices)], dtype=np.bool_)
    cuts = (np.flatnonzero(changed) + 1).tolist()
    for begin, end in pairwise([0, *cuts, len(levels)]):
        if end > begin:
            yield matrices[begin], int(levels[begin]), end - begin
