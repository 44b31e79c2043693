"""What a query is: the rows it reads, how far one cell moves the answer, and the exact answer.

`Query.exact` is the only place where a session reads protected values. All else here is public.
`NumberQuery` is what most kinds share: integer noise on each number, and an interval around it.

A new kind of query is one module here, with a class that implements `Query` (most implement
`NumberQuery`, whose answers are numbers with integer noise), and one line in
`takifugu.session.query_kinds.KINDS`. A new option is one line in
`takifugu.session.query_options.QueryOptions`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fractions import Fraction
from itertools import product
from math import floor, prod
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from takifugu._core.exact import Number, exactly, shown
from takifugu._core.numeric import Floats, Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import Cost, Jointly
from takifugu.costs.losses import Concentrated, Pure
from takifugu.declarations import Amount, Category, Declaration, InvalidQuery
from takifugu.declarations.table_errors import run_isolated
from takifugu.errors import TooLarge, UnsoundRequest, one_of
from takifugu.mechanisms import (
    Choice,
    Error,
    IntegerGaussian,
    IntegerLaplace,
    Mechanism,
    Sensitivity,
    plan_histogram,
)
from takifugu.mechanisms.planner import name as mechanism_name
from takifugu.mechanisms.planner import once, price
from takifugu.priors import Name
from takifugu.session.cells import Rows
from takifugu.session.possible_answers import (
    CUT,
    SUM_TO_ONE,
    AnswerTable,
    Units,
    adding_up,
    in_counting_order,
    possible,
)
from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import Counts, QueryOptions
from takifugu.session.release_errors import ReleaseFailed
from takifugu.tables import Engine
from takifugu.tables.engine import MOST_CELLS

Axes = tuple[tuple[str, tuple[Name, ...]], ...]  # the name of each axis and the keys along it
DeclaredKeys = Callable[[str], Sequence[Name] | None]
P = TypeVar("P", Category, Amount)
RANGE_PARTS = 4  # numbers are to be told to this part of their range
DROWNING_NOISE = 5  # times the size of a count or a share: an error that leaves nothing of it
CONFIDENCE = 0.95
NOTHING_PREDICTED: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Aim:
    """What an answer may lose, or how good it must be: one of the two.

    Attributes:
        allowed: The per-entry loss that is allowed, in ε or in ρ; None if the error decides.
        delta: The Pufferfish δ that a ρ is read at; None for a loss in ε.
        within: Every number is to be within this of the exact one (a quantile: in ranks) …
        confidence: … with this probability. For a ranking: that its places are right.
        reference: For a ranking: public or synthetic counts to predict for.
        gap: For a ranking: instead of a reference, the lead of each place over the next.
    """

    allowed: Pure | Concentrated | None = None
    delta: float | None = None
    within: Number | None = None
    confidence: float | None = None
    reference: Counts | None = None
    gap: float | None = None

    @property
    def probability(self) -> float:
        """The probability that a number is within reach: 0.95 by default."""
        return CONFIDENCE if self.confidence is None else self.confidence


@dataclass(frozen=True)
class ChosenMechanism:
    """A mechanism for a query.

    Attributes:
        mechanism: It protects the exact answer.
        error: What is predicted of it, as JSON.
        reason: Why this one, in words.
    """

    mechanism: Mechanism
    error: Mapping[str, Any]
    reason: str


@dataclass(frozen=True)
class Query(ABC):
    """A query about protected columns, for each combination of public keys.

    Implemented by the classes that `takifugu.session.query_kinds.KINDS` names, one for each kind.

    Attributes:
        column: The protected column; the first, if it reads several.
        by: Public columns; their groups have disjoint rows, so that one charge pays for all.
        rows: Which rows it reads.
        beside: The other protected columns that it reads, of a kind that reads several.
    """

    kind: ClassVar[str]
    several: ClassVar[bool] = False  # whether it may read several protected columns
    all_labels: ClassVar[bool] = False  # whether it is about all columns of labels by default
    needs_order: ClassVar[bool] = False  # whether it is about how rows follow one another
    by_distance: ClassVar[bool] = False  # whether it tells two numbers apart by their distance
    counts_rows: ClassVar[bool] = False  # whether it counts rows, of which an entity may have many
    between: ClassVar[str] = " × "  # the names of its columns
    summary: ClassVar[str] = ""  # the query in a few words, by its keys in the ledger
    question: ClassVar[str] = ""  # the same as a question; without either the ledger's words stand
    stored_as: ClassVar[str] = "estimate"  # what its stored numbers are, as they were drawn

    column: str
    by: tuple[str, ...]
    rows: Rows
    beside: tuple[str, ...] = field(default=(), kw_only=True)

    @classmethod
    def of(
        cls,
        options: QueryOptions,
        declaration: Declaration,  # noqa: ARG003
        columns: tuple[str, ...],
        rows: Rows,
    ) -> Self:
        """The query that the options describe, about ``columns``; more than one if `several`.

        A field of the class that is called as an option is filled with it.
        """
        given = options.given()
        own = {part.name: given[part.name] for part in fields(cls) if part.name in given}
        own |= {"column": columns[0], "by": options.by, "beside": columns[1:]}
        return cls(rows=rows, **own)

    @property
    def columns(self) -> tuple[str, ...]:
        """The protected columns that it reads."""
        return (self.column, *self.beside)

    @property
    def title(self) -> str:
        """What it is about, for people."""
        return self.between.join(self.columns)

    @abstractmethod
    def check(self, declaration: Declaration) -> None:
        """Refuse what cannot be asked, before anything is charged."""

    @abstractmethod
    def sensitivity(self, declaration: Declaration) -> Sensitivity:
        """How far one replaced row moves the exact answer; its public columns stay."""

    def whole_cost(self, values: Values) -> Cost:
        """What an answer with a per-entry loss of ε = 1 may tell at worst: all about its columns.

        If it reads several, a change of any of them costs as much as a change of all: what moves
        the answer by its sensitivity, whichever columns of the row are replaced.
        """
        if not self.beside:
            return values[self.column].wholly
        return Cost.of({Jointly(values[name].column or name for name in self.columns): 1})

    def unit_cost(self, values: Values) -> Cost:
        """What an answer with a per-entry loss of ε = 1 tells, value by value; ε times it for ε.

        [u≠v], everything, unless a kind proves that some changes of value cost less.
        """
        return self.whole_cost(values)

    @abstractmethod
    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
        """What its answers may be: fields of `takifugu.session.usefulness.AnswerScales`.

        ``rows`` are the sizes of the groups that have any, and ``filled`` the places of these.
        """

    @classmethod
    def stored_axes(
        cls,
        query: Mapping[str, Any],  # noqa: ARG003
        keys: DeclaredKeys,  # noqa: ARG003
    ) -> list[tuple[str, Sequence[Name] | None]] | None:
        """The axes, after the groups, of an answer that the ledger has as a list of numbers.

        ``query`` is the body in the ledger, and ``keys`` gives the labels of a column if the
        declaration lists them. None if the declaration alone does not say what each number is.
        """
        return None

    @abstractmethod
    def exact(self, engine: Engine) -> Integers:
        """The exact answer. It reads protected values: call it only when it is paid for."""

    @abstractmethod
    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """The best mechanism for an aim; reads nothing that is protected."""

    def chosen_earlier(self, engine: Engine, aim: Aim) -> tuple[ChosenMechanism, ...]:  # noqa: ARG002
        """What an earlier version would have chosen; an answer that is stored under it is used."""
        return ()

    @abstractmethod
    def tabulated(
        self, mechanism: Mechanism, answer: list[Any], engine: Engine, error: Mapping[str, Any]
    ) -> AnswerTable:
        """The table of a result, groups in the order of their keys: see `table`."""

    def table(
        self,
        mechanism: Mechanism,
        answer: list[Any],
        engine: Engine,
        error: Mapping[str, Any] = NOTHING_PREDICTED,
    ) -> AnswerTable:
        """The table of a result, from what was drawn, what is public and what was predicted.

        Its numbers are possible ones: see `takifugu.session.possible_answers`. Its groups are in
        the order in which people count: see `takifugu.session.possible_answers`.
        """
        found = self.tabulated(mechanism, answer, engine, error)
        keys = [keys for _, keys in self.groups(engine)]
        read = [engine.declaration.category(name).values is None for name in self.by]
        return in_counting_order(found, keys, read)

    def check_order(self, engine: Engine) -> None:  # noqa: B027 - most kinds have nothing to check
        """Refuse a table whose order cannot answer the query; most need none."""

    def draw(self, mechanism: Mechanism, engine: Engine) -> list[Any]:
        """The protected answer as a list of JSON numbers. It is drawn here, once."""
        exact = np.atleast_1d(self.exact(engine))
        answer: list[Any] = np.ravel(mechanism.release(exact)).tolist()
        return answer

    def axes(self, engine: Engine) -> Axes:
        """The axes of the exact answer."""
        return self.groups(engine)

    def cells_of_a_group(self, engine: Engine) -> int:
        """How many numbers the engine counts in each group, to answer it."""
        return prod(len(keys) for _, keys in self.axes(engine)[len(self.by) :])

    def groups(self, engine: Engine) -> Axes:
        """The public groups: the keys of ``by``, only those that the rows may hold."""
        return tuple((name, self._keys(engine, name)) for name in self.by)

    def body(self) -> dict[str, Any]:
        """The query as JSON, without its rows."""
        about = list(self.columns) if self.beside else self.column
        return {"name": self.kind, "column": about, "by": list(self.by)}

    def _keys(self, engine: Engine, name: str) -> tuple[Name, ...]:
        keys = engine.keys(name)
        if name not in self.rows.scope.where:
            return keys
        chosen = frozenset(self.rows.scope.where[name])
        return tuple(key for key in keys if key in chosen)

    def _in_scope(self, engine: Engine, table: Integers) -> Integers:
        """``table[by, ...]`` without the keys that ``where`` leaves out."""
        for axis, name in enumerate(self.by):
            if name in self.rows.scope.where:
                chosen = frozenset(self.rows.scope.where[name])
                kept = [key in chosen for key in engine.keys(name)]
                table = np.compress(kept, table, axis=axis)
        return table

    def public_rows(self, engine: Engine) -> Integers:
        """How many rows each group has: public, by declaration."""
        if not self.by:
            return np.array(engine.count(self.rows.scope))
        return self._in_scope(engine, engine.histogram(self.by, self.rows.scope).counts)


def labels_of(declaration: Declaration, kind: str, column: str) -> Category:
    """The protected column of labels that a query counts; if it is none, what to ask instead."""
    return _column_of(declaration, kind, column, Category)


def numbers_of(declaration: Declaration, kind: str, column: str) -> Amount:
    """The protected column of numbers that a query reads; if it is none, what to ask instead."""
    return _column_of(declaration, kind, column, Amount)


def _column_of(declaration: Declaration, kind: str, column: str, wanted: type[P]) -> P:
    labels = wanted is Category
    known = [c.column for c in declaration.protected if isinstance(c, wanted)]
    found = next((c for c in declaration.protected if c.column == column), None)
    if isinstance(found, wanted):
        return found
    if found is None:
        how = f"be declared with {'labels' if labels else 'bounds'}"
        raise InvalidQuery(
            column,
            given=f"is not a protected column of {'labels' if labels else 'numbers'}",
            needed=one_of(known, column) if known else how,
        )
    holds, reads = ("numbers", "counts labels") if labels else ("labels", "is about numbers")
    *most, last = [
        name
        for name, declared in KINDS.items()
        if declared.of_numbers == labels and "column" not in declared.without
    ]
    kinds = f"{', '.join(most)} or {last}"
    others = f", or {kind} of {' or '.join(known)}" if known else ""
    raise InvalidQuery(
        column,
        given=f"holds {holds}, and {kind} {reads}",
        needed=f"be asked for by {kinds}{others}",
        reason=holds,
    )


def own_columns(declared: tuple[str, ...], *ours: str) -> tuple[str, ...]:
    """Names for our own columns of a result that no declared column has."""
    return tuple(f"{name} (answer)" if name in declared else name for name in ours)


def draw(query: Query, mechanism: Mechanism, engine: Engine) -> list[Any]:
    """The protected answer as a list of JSON numbers. It is drawn here, once: pay first.

    An error or an interrupt says nothing of what was read: exact counts live and end in a thread
    of their own.
    """
    return run_isolated(lambda: query.draw(mechanism, engine), ReleaseFailed, stop=engine.interrupt)


C = TypeVar("C", bound=Choice[Any, Any])
Noise = IntegerLaplace | IntegerGaussian


Ranges = tuple[list[int], list[int]]  # the least and the most that each number can be


class NumberQuery(Query):
    """A query that is answered by integer noise on each of its numbers."""

    answer: ClassVar[str] = "an answer"  # one of its numbers

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """Numbers of which only the range is known: of each group, the least and the most."""
        units, groups = self.units(engine), prod(len(keys) for _, keys in self.groups(engine))
        ends = [[units.shown(at, end) for at, end in enumerate(s)] for s in self.ranges(engine)]
        low, high = np.array(ends, dtype=np.float64).reshape(2, groups, -1)[:, filled]
        low, high = low.min(axis=1), high.max(axis=1)
        return {"one": self.answer, "low": low, "high": high, "size": (high - low) / RANGE_PARTS}

    @property
    def adds_up(self) -> bool:
        """Whether the numbers of each group are shown so that they add up to all of its rows."""
        return False

    def unit(self, engine: Engine) -> Fraction:  # noqa: ARG002
        """By how much one unit of noise moves the answer, in the group that it moves most."""
        return Fraction(1)

    def with_noise(self, noise: Noise, engine: Engine) -> Mechanism:  # noqa: ARG002
        """Noise as the mechanism of this query."""
        return noise

    def noise(self, mechanism: Any) -> Noise:
        """The noise of a mechanism that `with_noise` made."""
        found: Noise = mechanism
        return found

    def drawn(self, answer: list[Any], engine: Engine) -> list[int | None]:  # noqa: ARG002
        """``[number]``: what was drawn, in whole units; None where nothing was."""
        return answer

    def units(self, engine: Engine) -> Units:  # noqa: ARG002
        """What one unit of noise is in each number that is shown: 1, of counts."""
        return Units()

    def ranges(self, engine: Engine) -> Ranges:
        """``[number]``: the least and the most that it can be, in whole units: public.

        A count is of rows of its group.
        """
        most = self._of_group(self.public_rows(engine), engine)
        return [0] * len(most), most

    def _of_group(self, groups: Integers, engine: Engine) -> list[int]:
        """``[number]``: what its group has in ``groups[by]``."""
        many = prod(len(keys) for _, keys in self.axes(engine)[len(self.by) :])
        found: list[int] = np.repeat(np.ravel(groups), many).tolist()
        return found

    def choose(self, engine: Engine, aim: Aim) -> ChosenMechanism:
        """Integer noise on every number, counted in the unit of the answer."""
        size, groups = shape(self, engine)
        moves, unit = self.sensitivity(engine.declaration), self.unit(engine)
        if aim.allowed is not None:
            found = plan_histogram(size, groups, loss=aim.allowed, sensitivity=moves)
            goal = ""
        else:
            near = exactly(aim.within or 0, "within")
            steps = floor(near / unit)  # rounded down: nearer, if anything
            if steps < 1:
                raise UnsoundRequest(
                    f"within is {shown(near)}, less than the unit of the answer, {shown(unit)};"
                    " give that or more",
                    field="within",
                    given=near,
                    needed=unit,
                )
            found = plan_histogram(
                size,
                groups,
                within=steps,
                confidence=aim.probability,
                sensitivity=moves,
                delta=aim.delta,
            )
            goal = (
                f", which keeps each within ±{float(near):.4g} with probability"
                f" {aim.probability:.3g}"
            )
        return self._chosen(in_currency(found.choices, aim).mechanism, goal, engine)

    def chosen_before(self, scale: float, engine: Engine) -> ChosenMechanism:
        """The mechanism of an earlier release with Laplace noise of this scale."""
        noise = IntegerLaplace(scale, self.sensitivity(engine.declaration))
        return self._chosen(noise, ", as it was released before", engine)

    def _chosen(self, noise: Noise, goal: str, engine: Engine) -> ChosenMechanism:
        (_, groups), unit = shape(self, engine), self.unit(engine)
        found = noise.error()
        error = Error(found.deviation * float(unit), found.interval * float(unit))
        each = "number" if unit == 1 else f"number (one unit of noise is {float(unit):.4g})"
        reason = (
            f"mechanism: {mechanism_name(noise)} with a standard deviation of"
            f" {error.deviation:.4g} on each {each}{goal}; a per-entry DP loss of"
            f" {price(noise.loss)}{once(groups)}"
        )
        return ChosenMechanism(self.with_noise(noise, engine), asdict(error), reason)

    def tabulated(
        self,
        mechanism: Mechanism,
        answer: list[Any],
        engine: Engine,
        error: Mapping[str, Any],  # noqa: ARG002
    ) -> AnswerTable:
        """The keys, the number and both ends of its interval, all of them possible."""
        axes = self.axes(engine)
        names = tuple(name for name, _ in axes)
        keys = list(product(*(keys for _, keys in axes)))
        half = int(self.noise(mechanism).error().interval)
        drawn, units = self.drawn(answer, engine), self.units(engine)
        found, raw = possible(drawn, half, self.ranges(engine), units)
        notes: tuple[str, ...] = (CUT,)
        if self.adds_up:
            sizes = np.ravel(self.public_rows(engine)).tolist()
            found, notes = adding_up(drawn, found, sizes, units), (CUT, SUM_TO_ONE)
        return AnswerTable(
            (*names, *own_columns(names, "estimate", "low", "high")),
            tuple((*key, *number.cells) for key, number in zip(keys, found, strict=True)),
            tuple((*key, *number.cells) for key, number in zip(keys, raw, strict=True)),
            notes,
        )


def count_scales(rows: Floats, share: float, *, guessed: bool = False) -> dict[str, Any]:
    """The scales of counts that would each have this share of the rows if all had the same."""
    size = rows * share
    return {
        "one": "a count",
        "many": "counts",
        "low": np.zeros(len(rows)),
        "high": rows,
        "size": size,
        "noise": np.minimum(DROWNING_NOISE * size, rows),
        "guessed": guessed,
    }


def shape(query: Query, engine: Engine) -> tuple[int, int]:
    """How many numbers each group has, and how many groups there are; refused if too many.

    What the engine would refuse to count is refused here, before it is paid for.
    """
    lengths = [len(keys) for _, keys in query.axes(engine)]
    groups = prod(lengths[: len(query.by)])
    if groups == 0:
        raise InvalidQuery("by", given="has no keys", needed="have at least one group")
    # rows that `where` leaves out are not read, but their keys have cells in what is counted
    every = prod(len(engine.keys(name)) for name in query.by)
    cells = every * query.cells_of_a_group(engine)
    if cells > MOST_CELLS:
        raise TooLarge(
            f"{query.kind} needs {cells:,} numbers, and at most {MOST_CELLS:,} are counted at once;"
            " name fewer columns, or give a coarser grid",
            field="by" if query.by else "column",
            size=cells,
            limit=MOST_CELLS,
        )
    return prod(lengths) // groups, groups


def in_currency(choices: tuple[C, ...], aim: Aim) -> C:
    """The best choice whose own loss is in ε, or in ρ if a δ was given."""
    kind = Pure if aim.delta is None else Concentrated
    return next(choice for choice in choices if isinstance(choice.mechanism.loss, kind))


def filled_groups(query: Query, engine: Engine) -> list[int]:
    """The sizes of the groups that have rows: public."""
    sizes = [int(n) for n in np.ravel(query.public_rows(engine)) if n > 0]
    if not sizes:
        raise InvalidQuery(
            "window", given="holds no rows", needed="hold at least one", reason="no-rows"
        )
    return sizes


def draw_filled(query: Query, mechanism: Mechanism, exact: Any, engine: Engine) -> list[Any]:
    """``exact[group, ...]`` with noise; None for a group without rows, which has no answer."""
    filled = np.ravel(query.public_rows(engine)) > 0
    drawn = iter(np.ravel(mechanism.release(exact[filled])).tolist())
    return [next(drawn) if has_rows else None for has_rows in filled.tolist()]
