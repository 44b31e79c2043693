r"""What one side of an entry reveals to somebody who knows other entries exactly.

**Only the nearest known entry matters.** Let X_i be secret, X_r = b with r > i be the nearest known
entry after it. Given both, the entries between i and r are a Markov chain with the rows

.. math:: K_{d,b}(u,v) = P(u,v)\,P^{d-1}(v,b)/P^{d}(u,b)

at distance d from r, and the entries from r on do not depend on X_i. So both sides of a secret pair
are coupled by leaving all entries from r on as they are: they cost nothing, *nor does the known
entry itself*, whatever was asked of it, for its value is the same on both sides. Hence

.. math:: F_{1,b} = 0,\qquad F_{d,b} = T(K_{d,b};\ c + F_{d-1,b}),

and F(x, y) is the largest over d, b, and over "none is known", for which it is the plain recursion.
A value b that excludes x or y is skipped: then there is no such pair. States v that exclude b carry
no mass; they are left out, so that no closure of costs leads through them. The entries before i are
a case of the same with the rows :math:`P^{d-1}(a,u)P(u,x)/P^{d}(a,x)`: no law of the first entry is
needed. Given X_i, both sides are independent, so that the largest of each may be added.

**Far away.** As d grows, K_{d,b} tends to P. If column b of :math:`P^{D-1}` varies by a factor of
:math:`e^{δ}` at most, every later one does (each is a mixture of the last), and the rows of
:math:`K_{d,b}`, d ≥ D, are within :math:`e^{±δ}` of P: the robust step bounds all of them at once,
:math:`W_j = \max(\max_b F_{D,b},\ T_{\text{box}}(c + W_{j+1}))`. Before i, the laws
:math:`P^{d-1}(a,·)` lie in the hull of the rows of :math:`P^{D-1}`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from takifugu._core.numeric import LEAST, Booleans, Floats, Integers, frozen
from takifugu._core.rounding import UNIT
from takifugu.translation.certify.boxes import robust_rows
from takifugu.translation.certify.flow import (
    Couplings,
    RepeatedStep,
    Rows,
    Step,
    closed,
    off_diagonal,
)
from takifugu.translation.certify.hulls import LEAST_PROBABILITY, StartHull, hull_boxes
from takifugu.translation.certify.laws import Law, row_slack

NARROW = 1e-6  # δ at which all known entries further away are bounded at once
WIDE = 0.5  # δ at which that is tried, beyond the furthest
MAX_DISTANCE = 2_000  # of a known entry of an unbounded chain that is looked at by itself


class Solve(Protocol):
    """Proposes flows for a step. Nothing that it returns is trusted."""

    def __call__(
        self, step: Step, /, *, guess: Floats, known: Couplings | None = None
    ) -> Couplings | None:
        """The flows; ``guess`` and ``known`` ones are where a search may start."""


class SettleAbove(Protocol):
    """Proposes a table above another that no further step raises, and flows that show it."""

    def __call__(self, step: RepeatedStep, least: Floats, /) -> tuple[Floats, Couplings | None]:
        """The table and its flows. Nothing of them is trusted."""


@dataclass(frozen=True, eq=False)
class SideTables:
    """What the entries on one side of each entry reveal of it.

    Attributes:
        tables: The different tables ``[x, y]``.
        at: ``[entry]``: which of them holds there.
    """

    tables: tuple[Floats, ...]
    at: Integers

    def table(self, entry: int) -> Floats:
        """``[x, y]``: what is revealed of ``entry``."""
        return self.tables[int(self.at[entry])]


@dataclass(eq=False)
class _Known:
    """Entries known at one distance, whichever value they have.

    Attributes:
        laws: ``[b]``: how likely value b there goes together with each value here, up to a factor;
            None if with none. Products of many rows: they may be smaller than any float.
        tables: ``[b, x, y]``: what lies between reveals; −∞ where b excludes x or y.
        distance: From here to the known entry.
        solve: Proposes flows.
    """

    laws: tuple[Law | None, ...]
    tables: Floats
    distance: int
    solve: Solve
    _couplings: dict[int, tuple[bytes, Couplings]] = field(default_factory=dict)
    _next: dict[tuple[int, int], "_Known"] = field(default_factory=dict)

    @classmethod
    def next_to(cls, kernel: Floats, solve: Solve) -> "_Known":
        """The known entry is the next one: nothing lies between."""
        weights = np.ascontiguousarray(kernel.T)  # [b, u]
        able = weights > 0
        both = able[:, :, None] & able[:, None, :]
        laws = tuple(Law.from_floats(row) if row.any() else None for row in weights)
        return cls(laws, np.where(both, 0.0, -np.inf), 1, solve)

    @cached_property
    def best(self) -> Floats:
        """``[x, y]``: the largest of all values."""
        top: Floats = np.maximum(self.tables.max(axis=0), 0.0)
        return top

    @property
    def slack(self) -> float:
        """What rounding can do to a log-ratio of expectations: as `laws.Law.slack`."""
        return 8.0 * (len(self.tables[0]) + 4) * (self.distance + 2) * UNIT

    @cached_property
    def weights(self) -> tuple[Floats, Booleans]:
        """``[b, u]``: the laws of the values b that can happen, as floats, and which u can."""
        laws = [law for law in self.laws if law is not None]
        able = np.array([law.possible for law in laws])
        return np.array([law.given(law.possible) for law in laws]), able

    def further(self, kernel: Floats, charged: Floats) -> "_Known":
        """One step further away from the known entry; the entry stepped over costs ``charged``."""
        key = id(kernel), id(charged)
        if key not in self._next:
            self._next[key] = self._moved(kernel, charged)
        return self._next[key]

    def _moved(self, kernel: Floats, charged: Floats) -> "_Known":
        laws = list(self.laws)
        tables = np.full((len(laws), len(kernel), len(kernel)), -np.inf)
        further = _Known((), tables, self.distance + 1, self.solve)
        for b, law in enumerate(self.laws):
            if law is None:
                continue
            back, after = law.back(kernel.T)
            laws[b] = after if after.possible.any() else None
            here, there = np.flatnonzero(after.possible), np.flatnonzero(law.possible)
            if not len(here):
                continue
            cost = closed((charged + self.tables[b])[np.ix_(there, there)])
            dearest = float(cost.max(initial=0.0))  # every coupling costs at most its dearest move
            table = off_diagonal(len(here), dearest)
            if len(here) > 1:
                rows = np.ascontiguousarray(back[np.ix_(here, there)])
                mark = after.possible.tobytes() + law.possible.tobytes()
                before = self._couplings.get(b)
                known = before[1] if before is not None and before[0] == mark else None
                step = Step(rows, rows, cost, further.slack)
                couplings = self.solve(step, guess=table / 2, known=known)
                table = step.upper(couplings)
                if couplings is not None:
                    further._couplings[b] = mark, couplings
            tables[b][np.ix_(here, here)] = table
        further.laws = tuple(laws)
        return further


@dataclass(frozen=True, eq=False)
class KnownSide:
    """One side of a chain: the steps from its far end to its near end.

    Attributes:
        kernels: ``[x, u]`` for each step: how likely x at the near end and u at the far end go
            together. Equal ones are the same object, and so are equal costs.
        charged: What a change of the entry at the far end of each step costs.
        ahead: Whether the far end is the end of the chain, or its beginning.
        solve: Proposes flows.
    """

    kernels: Sequence[Floats]
    charged: Sequence[Floats]
    ahead: bool
    solve: Solve

    @classmethod
    def after(
        cls, kernels: Sequence[Floats], charged: Sequence[Floats], solve: Solve
    ) -> "KnownSide":
        """The entries after each one; ``kernels[i]`` leads from entry i to i + 1."""
        return cls(kernels[::-1], charged[:0:-1], True, solve)

    @classmethod
    def before(
        cls, kernels: Sequence[Floats], charged: Sequence[Floats], solve: Solve
    ) -> "KnownSide":
        """The entries before each one."""
        turned: dict[int, Floats] = {}
        for kernel in kernels:
            turned.setdefault(id(kernel), np.ascontiguousarray(kernel.T))
        return cls([turned[id(kernel)] for kernel in kernels], charged[:-1], False, solve)

    def tables(self) -> SideTables:
        """What is revealed of each entry if some entry may be known; in the order of entries.

        At least 0. That none is known is not covered.
        """
        alike = all(kernel is self.kernels[0] for kernel in self.kernels)
        size = len(self.charged[0]) if len(self.charged) else 1
        tables, at = [frozen(np.zeros((size, size)))], [0]
        roots: dict[int, _Known] = {}
        alive: list[_Known] = []  # entries that may be known, nearest first
        far: Floats | None = None  # what those further away reveal
        boxes: Rows | None = None
        limit, couplings = len(self.kernels) + 1, None
        largest: dict[tuple[int, ...], Floats] = {}
        for kernel, cost in zip(self.kernels, self.charged, strict=True):
            if id(kernel) not in roots:
                roots[id(kernel)] = _Known.next_to(kernel, self.solve)
            gone = [known.best for known in alive if known.distance == limit]
            if gone or far is not None:
                together = np.max([*gone, *([] if far is None else [far])], axis=0)
                assert boxes is not None  # noqa: S101 - there is a limit
                far, couplings = self._robust(boxes, cost + together, couplings)
            moved = [known.further(kernel, cost) for known in alive if known.distance < limit]
            alive = list({id(known): known for known in (roots[id(kernel)], *moved)}.values())
            if boxes is None and alike and moved:
                boxes = self._boxes(alive[-1], NARROW)
                limit = limit if boxes is None else alive[-1].distance
            marks = tuple(map(id, alive))
            if marks not in largest:
                nearer = largest.get(marks[:-1])
                parts = (
                    [known.best for known in alive] if nearer is None else [nearer, alive[-1].best]
                )
                largest[marks] = np.max(parts, axis=0)
            value = largest[marks] if far is None else np.maximum(largest[marks], far)
            if not np.array_equal(value, tables[-1]):
                tables.append(frozen(value))
            at.append(len(tables) - 1)
        places = np.array(at[::-1] if self.ahead else at, dtype=np.int64)
        return SideTables(tuple(tables), places)

    def unbounded(self, settle: SettleAbove) -> Floats:
        """``[x, y]``: what is revealed of any entry, however many there are and whichever is known.

        For one kernel and one cost. Infinite if known entries far away are never alike.
        """
        (kernel,), (cost,) = self.kernels, self.charged
        known = _Known.next_to(kernel, self.solve)
        best = known.best
        while known.distance < MAX_DISTANCE:
            known = known.further(kernel, cost)
            best = np.maximum(best, known.best)
            boxes = self._boxes(known, NARROW)
            if boxes is not None:
                break
        boxes = self._boxes(known, WIDE)
        never = off_diagonal(len(cost), np.inf)
        if boxes is None:
            return never
        step = RepeatedStep(boxes, cost, 2 * known.slack)
        later, couplings = settle(step, known.best)
        if couplings is None:  # nothing is proposed: nothing is proven unless nothing is charged
            return never if cost.any() or known.best.any() else best
        proven = later.shape == cost.shape and step.proves(
            later, step.upper(later, couplings), known.best
        )
        return np.maximum(best, later) if proven else never

    def _boxes(self, known: _Known, narrow: float) -> Rows | None:
        """The robust rows for all entries known further away, if that is ``narrow`` enough."""
        weights, able = known.weights
        if not able.all() or weights.min() < LEAST_PROBABILITY:
            return None
        kernel = self.kernels[0]
        if not self.ahead:
            hull = StartHull(weights, able)
            return hull_boxes(hull, kernel) if hull.width <= narrow else None
        delta = -float(np.log(weights / weights.max(axis=1, keepdims=True)).min()) + known.slack
        if delta > narrow:
            return None
        low, high = kernel * np.exp(-delta), np.minimum(kernel * np.exp(delta), 1.0)
        return robust_rows(np.where(low < LEAST, 0.0, low), high)

    def _robust(
        self, boxes: Rows, charged: Floats, known: Couplings | None
    ) -> tuple[Floats, Couplings | None]:
        """One step for all rows in boxes."""
        cost = closed(charged)
        step = Step(*boxes(cost), cost, 2 * row_slack(len(cost)))
        couplings = self.solve(step, guess=off_diagonal(len(cost), step.dearest / 2), known=known)
        return step.upper(couplings), couplings or known
