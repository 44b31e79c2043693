r"""What flows prove: one step of the recursion, and walks of many steps.

For rows p, q and costs c the step is :math:`T(p,q,c) = \log\max_g E_p[g]/E_q[g]` over g > 0 with
:math:`g(u) \le e^{c(u,v)} g(v)`. A *flow* x(u, v) ≥ 0 on arcs proves an upper bound,

.. math:: T \le \log\max_u \Big[p(u) + \sum_w x(w,u)\,e^{c(w,u)} - \sum_v x(u,v)\Big]\Big/ q(u),

because with t the maximum, :math:`E_p g \le t E_q g + \sum x(u,v)[g(u) - e^{c(u,v)}g(v)]` and the
last sum is not positive. It is the coupling of theory with γ(u, v) = x(u, v) off the diagonal, but
needs neither the triangle inequality nor row sums, so it remains a proof when c or p changes.
Without any flow the step is at most its dearest move.

**Chains of finite length.** What the entries ahead reveal obeys :math:`F_i = T(P_i;\ c_{i+1} +
F_{i+1})`, from 0 at the end. `FlowWalk` takes such steps, each with the flows that it is given. T
is monotone, and adding a constant s to F adds at most s to T(F); so if T(F) ≤ F + r then
:math:`T^n(F) \le F + n r`, which bounds n more equal steps (`FlowWalk.hold`).

**Chains of every length.** If F ≥ 0 and T(F) ≤ F, then F bounds the loss of chains of every length:
a chain with n entries ahead loses :math:`T^n(0) ≤ T^n(F) ≤ T^{n-1}(F) ≤ … ≤ F`. The same holds
with any value at most F in place of 0. For fixed flows x let :math:`T_x ≥ T` be the bound that they
prove: **T_x(F) ≤ F is enough**, for any flows (`RepeatedStep.proves`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from takifugu._core.compiled import share_range
from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu._core.rounding import UNIT, up

if TYPE_CHECKING:
    from takifugu.translation.certify.hulls import HullStep, HullStretch

NEGLIGIBLE = 2.0**-960  # a smaller probability counts as 0: see `takifugu.translation.certify.laws`
LARGE = 300.0  # a greater cost is not exponentiated: the step is then bounded by the cost itself

Rows = Callable[[Floats], tuple[Floats, Floats]]  # cost -> (numerator rows, denominator rows)
Edge = tuple[int, int]  # between two vertices of a hull of laws


@dataclass(frozen=True, eq=False)
class Couplings:
    """One sparse coupling for each ordered pair of rows: a tree of arcs with a mass on each.

    Attributes:
        parent: ``[x, y, v]``: the other end of v's arc; −1 at the root.
        leaves: ``[x, y, v]``: whether that arc goes from v to its parent, or the other way.
        order: ``[x, y, k]``: the states from the root down; no proof depends on it.
        mass: ``[x, y, v]``: how much moves along it.
    """

    parent: NDArray[np.int16]
    leaves: Booleans
    order: NDArray[np.int16]
    mass: Floats

    def fits(self, rows: int, states: int) -> bool:
        """Whether the arrays are those of so many rows and states."""
        arrays = (self.parent, self.leaves, self.mass)
        kinds = (np.int16, np.bool_, np.float64)
        return all(
            isinstance(array, np.ndarray)
            and array.shape == (rows, rows, states)
            and array.dtype == kind
            for array, kind in zip(arrays, kinds, strict=True)
        )

    def to_document(self) -> dict[str, Any]:
        """Plain lists, ready to be written as JSON."""
        return {
            "parent": self.parent.tolist(),
            "leaves": self.leaves.tolist(),
            "mass": self.mass.tolist(),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Couplings":
        """The couplings that `to_document` wrote."""
        parent = np.array(document["parent"], dtype=np.int16)
        leaves = np.array(document["leaves"], dtype=np.bool_)
        return cls(parent, leaves, parent, np.array(document["mass"], dtype=np.float64))


@dataclass(frozen=True, eq=False)
class HullProof:
    """Flows that prove a step over a hull; what is missing proves nothing.

    Attributes:
        boxes: The flows of the robust step.
        edges: For edges between two vertices: points (shares of the second), each with flows.
    """

    boxes: Couplings | None = None
    edges: Mapping[Edge, Sequence[tuple[float, Couplings]]] | None = None

    def to_document(self) -> dict[str, Any]:
        """Plain lists, ready to be written as JSON."""
        edges = [
            [a, b, [[share, flows.to_document()] for share, flows in points]]
            for (a, b), points in (self.edges or {}).items()
        ]
        boxes = None if self.boxes is None else self.boxes.to_document()
        return {"boxes": boxes, "edges": None if self.edges is None else edges}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "HullProof":
        """The proof that `to_document` wrote."""
        boxes, edges = document["boxes"], document["edges"]
        return cls(
            None if boxes is None else Couplings.from_document(boxes),
            None
            if edges is None
            else {
                (int(a), int(b)): [(float(s), Couplings.from_document(f)) for s, f in points]
                for a, b, points in edges
            },
        )


def off_diagonal(size: int, value: float = 1.0) -> Floats:
    """``value`` between different states, 0 between a state and itself."""
    return np.where(np.eye(size) > 0, 0.0, value)  # no product: value may be infinite


def entry_cost(given: float | Floats, size: int) -> Floats:
    """``[u, v]``: what a change of one entry costs: a matrix, or ε for any change."""
    return off_diagonal(size, float(given)) if np.ndim(given) == 0 else np.asarray(given)


def closed(cost: Floats) -> Floats:
    """The shortest-path closure: no detour is cheaper; rounded up."""
    best = cost.copy()
    for w in range(len(best)):
        np.minimum(best, best[:, w, None] + best[None, w], out=best)
    np.fill_diagonal(best, 0.0)
    return best * (1 + 2 * len(best) * UNIT)


def gains(cost: Floats) -> Floats:
    """e^cost, rounded up, with 1 on the diagonal."""
    value: Floats = np.exp(cost) * (1 + 8 * UNIT)
    np.fill_diagonal(value, 1.0)
    return value


def bound(
    numerator: Floats,
    denominator: Floats,
    cost: Floats,
    couplings: Couplings,
    *,
    crossed: bool = False,
) -> Floats:
    """``[x, y]``: the loss that the couplings prove under ``cost``: an upper bound, at least 0.

    Row x of ``numerator`` is coupled with row y of ``denominator``; row x is the same in both
    unless they are ``crossed``. Infinite if the couplings are those of another problem.
    """
    from takifugu.translation.certify import flow_kernel as kernel

    n, m = numerator.shape
    if not couplings.fits(n, m):
        return np.full((n, n), np.inf) if crossed else off_diagonal(n, np.inf)
    value, gain = np.zeros((n, n)), gains(cost)
    above, below = plain_floats(numerator), plain_floats(denominator)

    def work(begin: int, end: int) -> None:
        kernel.evaluate(
            *(above, below, gain, crossed, begin, end),
            *(couplings.parent, couplings.leaves, couplings.mass, value),
        )

    share_range(work, n, worthwhile=n * n * m >= 20_000)
    return value


def plain_floats(array: Floats) -> Floats:
    """One kind of array for the compiled loops: they are compiled anew for every other kind."""
    return np.require(array, dtype=np.float64, requirements=["C", "W"])


@dataclass(frozen=True, eq=False)
class Step:
    """One transport: row x of ``numerator`` against row y of ``denominator``, for all x, y.

    Attributes:
        numerator: ``[x, u]``: the laws on the left.
        denominator: ``[y, u]``: the laws on the right.
        cost: ``[u, v]``: the closed costs of moves, rounded up.
        slack: What the rounding of the rows can do to a log-ratio.
        crossed: Whether row x on the left is another law than row x on the right.
    """

    numerator: Floats
    denominator: Floats
    cost: Floats
    slack: float
    crossed: bool = False

    @property
    def dearest(self) -> float:
        """The dearest move: every coupling costs at most that; ∞ if some are no costs."""
        return float(self.cost.max(initial=0.0)) if (self.cost >= 0).all() else np.inf

    @property
    def needs_flows(self) -> bool:
        """Whether flows can prove more than the dearest move does."""
        return 0 < self.dearest < LARGE

    def upper(self, couplings: Couplings | HullProof | None) -> Floats:
        """``[x, y]``: at least the step; with flows, no more than they prove."""
        n = len(self.numerator)
        most = np.full((n, n), self.dearest)
        if not self.crossed:
            most = off_diagonal(n, self.dearest)
        if not isinstance(couplings, Couplings) or not self.needs_flows:
            return most
        found = bound(self.numerator, self.denominator, self.cost, couplings, crossed=self.crossed)
        least: Floats = np.minimum(found + self.slack, most)
        return least


@dataclass(frozen=True, eq=False)
class Stretch:
    """``count`` equal steps.

    Attributes:
        rows: ``[x, u]``: the law of the entry stepped to.
        cost: ``[u, v]``: what a change of that entry costs.
        slack: What the rounding of the rows can do to a log-ratio.
        count: How many steps there are.
    """

    rows: Floats
    cost: Floats
    slack: float
    count: int

    def step(self, after: Floats, walked: int = 0) -> Step:  # noqa: ARG002 - all are equal
        """One step onto an entry beyond which ``after`` [u, v] bounds the loss."""
        return Step(self.rows, self.rows, closed(self.cost + after), self.slack)

    def same_for(self, walked: int) -> int:
        """For how many steps the rows have been the same."""
        return walked


StepOfSide: TypeAlias = "Step | HullStep"
StretchOfSide: TypeAlias = "Stretch | HullStretch"  # no step gives more than the one before it


@dataclass(frozen=True, eq=False)
class RepeatedStep:
    """The step T of a chain without end; its rows may depend on the costs.

    Attributes:
        rows: For costs ``[u, v]``: the laws on the left and on the right that lose most.
        charged: ``[u, v]``: what a change of each entry costs.
        slack: What the rounding of the rows can do to a log-ratio.
    """

    rows: Rows
    charged: Floats
    slack: float

    def cost(self, value: Floats) -> Floats:
        """The closed costs of moves if ``value`` bounds the loss beyond an entry."""
        return closed(self.charged + value)

    def upper(self, value: Floats, couplings: Couplings) -> Floats:
        """T_x(value), rounded up; ∞ if some values are none of a loss."""
        cost = self.cost(value)
        if not ((cost >= 0) & (cost < LARGE)).all():
            return off_diagonal(len(cost), np.inf)
        return bound(*self.rows(cost), cost, couplings) + self.slack * off_diagonal(len(cost))

    def proves(self, value: Floats, shown: Floats, least: Floats | None = None) -> bool:
        """Whether ``value`` bounds all steps from ``least`` on; ``shown`` is T_x(value)."""
        if np.shape(value) != np.shape(shown):
            return False
        if not (value >= (0.0 if least is None else least)).all():
            return False
        return bool((shown <= value).all())


@dataclass(frozen=True, eq=False)
class Take:
    """One step, with flows; without them it is bounded by its dearest move."""

    couplings: Couplings | HullProof | None


@dataclass(frozen=True, eq=False)
class Hold:
    """So many steps that raise the table by no more than the last one did, in equal pieces."""

    count: int
    pieces: int = 1


@dataclass(frozen=True, eq=False)
class Settle:
    """The rest of a stretch below a table that no step raises."""

    table: Floats
    couplings: Couplings | HullProof | None


Move = Take | Hold | Settle


@dataclass(frozen=True, eq=False)
class Flows:
    """A proof of what one side of a finite chain reveals, move by move."""

    moves: tuple[Move, ...]

    def to_document(self) -> list[dict[str, Any]]:
        """Plain lists and numbers, ready to be written as JSON."""
        return [_move_document(move) for move in self.moves]

    @classmethod
    def from_document(cls, document: Sequence[Mapping[str, Any]]) -> "Flows":
        """The proof that `to_document` wrote."""
        return cls(tuple(_move_from(part) for part in document))


def _move_document(move: Move) -> dict[str, Any]:
    match move:
        case Take(couplings):
            return {"take": None if couplings is None else couplings.to_document()}
        case Hold(count, pieces):
            return {"hold": count, "pieces": pieces}
        case Settle(table, couplings):
            flows = None if couplings is None else couplings.to_document()
            return {"settle": table.tolist(), "flows": flows}


def _move_from(part: Mapping[str, Any]) -> Move:
    if "hold" in part:
        return Hold(int(part["hold"]), int(part["pieces"]))
    if "settle" in part:
        table = np.array(part["settle"], dtype=np.float64)
        return Settle(table, _flows_from(part["flows"]))
    return Take(_flows_from(part["take"]))


def _flows_from(document: Mapping[str, Any] | None) -> Couplings | HullProof | None:
    if document is None:
        return None
    kind = HullProof if "boxes" in document else Couplings
    return kind.from_document(document)


class FlowWalk:
    """Walks one side of a finite chain from its far end, and certifies what it reveals.

    A search looks at the next step, proposes a `Move`, and sees the table that this proves. It
    cannot choose rows, costs or how many steps there are: those are the chain's.

    Attributes:
        tables: The different tables ``[x, y]``, beginning with 0.
        at: ``[step]``: which of them holds after so many steps; step 0 is the far end.
        moves: What was proposed, if it is recorded.
        settled: Whether the last move proved that no number of further steps gives more.
    """

    def __init__(
        self, stretches: Sequence[StretchOfSide], size: int, *, recorded: bool = False
    ) -> None:
        self._stretches = stretches
        self._size = size
        self._number, self._walked, self._place = 0, 0, 0
        self._rise = np.inf  # of the last step, if the next one is equal to it
        self._next: StepOfSide | None = None
        self.settled = False
        self.tables: list[Floats] = [frozen(np.zeros((size, size)))]
        self.at: Integers = np.zeros(1 + sum(part.count for part in stretches), dtype=np.int64)
        self.moves: list[Move] | None = [] if recorded else None

    @property
    def done(self) -> bool:
        """Whether all steps are taken."""
        return self._number >= len(self._stretches)

    @property
    def stretch(self) -> StretchOfSide:
        """The stretch of the next step."""
        return self._stretches[self._number]

    @property
    def walked(self) -> int:
        """How many of its steps are taken."""
        return self._walked

    @property
    def left(self) -> int:
        """How many of its steps are left."""
        return self.stretch.count - self._walked

    @property
    def value(self) -> Floats:
        """The last table."""
        return self.tables[-1]

    @property
    def rise(self) -> float:
        """By how much the last step raised some pair: an equal step adds at most as much."""
        return self._rise

    def step(self) -> StepOfSide:
        """The next step."""
        if self._next is None:
            self._next = self.stretch.step(self.value, self._walked)
        return self._next

    def move(self, move: Move) -> None:
        """Certify a move; one that proves nothing has an infinite table."""
        if self.moves is not None:
            self.moves.append(move)
        match move:
            case Take(couplings):
                self._take(couplings)
            case Hold(count, pieces):
                self._hold(count, pieces)
            case Settle(table, couplings):
                self._settle(table, couplings)

    def _take(self, couplings: Couplings | HullProof | None) -> None:
        last = self.value
        value = self.step().upper(couplings)
        with np.errstate(invalid="ignore"):
            rise = float(np.max(value - last))
        self._rise = max(rise, 0.0) if rise < np.inf else np.inf
        self._advance([value], 1)

    def _hold(self, count: int, pieces: int) -> None:
        count = self._allowed(count)
        pieces = min(max(pieces, 1), count)
        unit = off_diagonal(self._size)
        tables = [off_diagonal(self._size, np.inf)]
        if self._rise < np.inf:
            ends = -(-count * np.arange(1, pieces + 1) // pieces)
            tables = [up(self.value + end * self._rise * unit) for end in ends]
        self._advance(tables, count)
        self._rise = np.inf

    def _settle(self, table: Floats, couplings: Couplings | HullProof | None) -> None:
        size, given = self._size, np.asarray(table, dtype=np.float64)
        proven = given.shape == (size, size) and bool((given >= self.value).all())
        if proven:
            shown = self.stretch.step(given, self._walked).upper(couplings)
            proven = bool((shown <= given).all())
        self._advance([given if proven else off_diagonal(size, np.inf)], self.left)
        self._rise, self.settled = np.inf, proven

    def _allowed(self, count: int) -> int:
        return min(max(int(count), 1), self.left)

    def _advance(self, tables: list[Floats], count: int) -> None:
        """``count`` more steps, below ``tables`` one after the other, in equal parts."""
        first, self._next, self.settled = len(self.tables), None, False
        self.tables.extend(frozen(table) for table in tables)
        parts = first + np.arange(count) * len(tables) // count
        self.at[self._place + 1 : self._place + count + 1] = parts
        self._place += count
        self._walked += count
        if self._walked >= self.stretch.count:
            self._number, self._walked, self._rise = self._number + 1, 0, np.inf


def upper_tables(
    stretches: Sequence[StretchOfSide], size: int, proof: Flows
) -> tuple[tuple[Floats, ...], Integers]:
    """The tables that a proof certifies, and which of them holds after so many steps.

    Moves that are missing are taken without flows; those that are too many are left out.
    """
    walk = FlowWalk(stretches, size)
    moves = iter(proof.moves)
    while not walk.done:
        walk.move(next(moves, Take(None)))
    return tuple(walk.tables), walk.at


def pair_losses(
    own: Floats, forward: Floats, backward: Floats, possible: Booleans | None = None
) -> Floats:
    """``[x, y]``: own + F + B, rounded up; −∞ where x or y cannot happen, 0 where they are one."""
    total = up(own + forward + backward)
    able = np.ones(len(own), dtype=np.bool_) if possible is None else possible
    total[~able, :] = -np.inf
    total[:, ~able] = -np.inf
    np.fill_diagonal(total, np.where(able, 0.0, -np.inf))
    return total


def block_step(
    rows: Sequence[Floats],
    spent: Sequence[float | Floats],
    after: Floats,
    *,
    slack: float,
) -> Step:
    r"""The next entries, whose rows and costs are given, nearest first, in one step.

    With :math:`U = (u_1 … u_k)` their states,

    .. math:: F_i(x,y) \le T\Big(P(U|x), P(V|y);\ \sum_j c_{i+j}(u_j,v_j) + F_{i+k}(u_k,v_k)\Big)

    by the same proof as for one entry, for every k and whatever bound :math:`F_{i+k}` (``after``)
    is. ``slack`` is the rounding of one step's rows.
    """
    size = len(after)
    law = np.ascontiguousarray(rows[0])  # [x, U]
    cost = entry_cost(spent[0], size)
    last = np.arange(size)
    for matrix, charged in zip(rows[1:], spent[1:], strict=True):
        law = (law[:, :, None] * matrix[last][None, :, :]).reshape(size, -1)
        law = np.where(law < NEGLIGIBLE, 0.0, law)  # see `takifugu.translation.certify.laws`
        cost = np.repeat(np.repeat(cost, size, axis=0), size, axis=1) + np.tile(
            entry_cost(charged, size), cost.shape
        )
        last = np.tile(np.arange(size), len(last))
    cost = closed(cost + after[np.ix_(last, last)])
    law = np.ascontiguousarray(law / law.sum(axis=1, keepdims=True))
    return Step(law, law, cost, 2 * len(rows) * slack + 4 * law.shape[1] * UNIT)


def mixture_step(laws: Floats, table: Floats, *, slack: float) -> Step:
    r"""Groups of values: the law of an entry given each group, under the losses of its pairs.

    Let s say that :math:`X_i \in A` and s′ that :math:`X_i \in B`, and let ``table`` [x, y] bound
    the loss of the pair (X_i = x, X_i = y). Then φ(x) = E[g | X_i = x] obeys
    :math:`φ(x) \le e^{c(x,y)} φ(y)`, and E[g|s] is the mean of φ under the law of X_i given A. So
    the loss of (A, B) is at most the transport with gains e^c between ``laws`` [group, x]. A table
    with a pair that cannot happen (−∞, see `pair_losses`) makes the step infinite.
    """
    return Step(laws, laws, closed(table), slack)
