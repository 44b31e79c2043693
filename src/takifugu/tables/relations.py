"""Queries as values: relations and their columns, which `sql_writer` writes as SQL.

A query has one source, the declared columns, and no joins: each step selects columns of the step
before it, keeps some of its rows, groups them, or puts them in order. A column knows the step that
it belongs to, and is refused in any other where its name might mean something else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from takifugu.priors import Name
from takifugu.tables.backends.backend import Kind

DataType = Literal["text", "whole", "real", "time", "zoned", "unknown", "truth"]
Value = str | int | float | datetime


class Column:
    """A value for each row; Python's operators and the methods make further ones.

    Implementers: `Reference`, `Constant`, `Nothing`, `Call`, `Cast`, `Cases`, `AnyOf`,
    `PlaceInList`, `Windowed`. The writer, and the oracle of its tests, know each of them.
    """

    type: DataType

    @property
    def parts(self) -> "Iterator[Column]":
        """The columns that it is made of."""
        for value in vars(self).values():
            yield from _columns_in(value)

    def __add__(self, other: Any) -> "Column":
        return _number("+", self, other)

    def __radd__(self, other: Any) -> "Column":
        return _number("+", other, self)

    def __sub__(self, other: Any) -> "Column":
        return _number("-", self, other)

    def __mul__(self, other: Any) -> "Column":
        return _number("*", self, other)

    def __rmul__(self, other: Any) -> "Column":
        return _number("*", other, self)

    def __mod__(self, other: Any) -> "Column":
        """The remainder; below 0 for a number below 0."""
        return _number("%", self, other)

    def __floordiv__(self, other: Any) -> "Column":
        """How often one whole number goes into another; towards 0, so give none below 0."""
        return _number("//", self, other)

    def __truediv__(self, other: Any) -> "Column":
        """The quotient of two numbers of which the first is real."""
        if self.type != "real":
            raise TypeError("`/` divides real numbers: cast to 'real', or use `//`")
        return _number("/", self, other)

    def __eq__(self, other: object) -> "Column":  # type: ignore[override]
        return _truth("=", self, other)

    def __ne__(self, other: object) -> "Column":  # type: ignore[override]
        return _truth("<>", self, other)

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> "Column":
        return _truth("<", self, other)

    def __gt__(self, other: Any) -> "Column":
        return _truth(">", self, other)

    def __ge__(self, other: Any) -> "Column":
        return _truth(">=", self, other)

    def __and__(self, other: "Column") -> "Column":
        return _truth("and", self, other)

    def __or__(self, other: "Column") -> "Column":
        return _truth("or", self, other)

    def __invert__(self) -> "Column":
        return _truth("not", self)

    def __bool__(self) -> bool:
        raise TypeError("a column is not true or false; combine conditions with & and |")

    def isnull(self) -> "Column":
        """Whether there is no value."""
        return _truth("is null", self)

    def notnull(self) -> "Column":
        """Whether there is a value."""
        return _truth("is not null", self)

    def isnan(self) -> "Column":
        """Whether a real number is none."""
        return _truth("is nan", self)

    def isin(self, names: Sequence[Name]) -> "Column":
        """Whether the value is one of ``names``."""
        return AnyOf(self, tuple(names))

    def cast(self, type: DataType) -> "Column":
        """The value as another type."""
        return self if type == self.type else Cast(self, type)

    def floor(self) -> "Column":
        """The largest whole number that is not above a real number; cast it to have it whole."""
        return Call("floor", (self,), "real")

    def epoch_seconds(self) -> "Column":
        """A time as seconds since 1970; local times by their own clocks."""
        return Call("seconds", (self,), "real")

    def lag(self, rows: int = 1) -> "Column":
        """The value so many rows before; give a window with `over`."""
        return Call("lag", (self, literal(rows)), self.type)

    def over(self, window: "Window") -> "Column":
        """An aggregate, or a value of another row, within a window."""
        return Windowed(self, window)

    def count(self) -> "Column":
        """How many rows have a value."""
        return Call("count", (self,), "whole")

    def sum(self) -> "Column":
        """The sum of the values."""
        return Call("sum", (self,), self.type)

    def min(self) -> "Column":
        """The least value."""
        return Call("min", (self,), self.type)

    def max(self) -> "Column":
        """The largest value."""
        return Call("max", (self,), self.type)


@dataclass(frozen=True, eq=False)
class Reference(Column):
    """A column of a relation, by its name."""

    name: str
    type: DataType
    source: "Relation"


@dataclass(frozen=True, eq=False)
class Constant(Column):
    """One value for every row; ``wide`` if it must have the type of 64 bits."""

    value: Value
    type: DataType
    wide: bool = False


@dataclass(frozen=True, eq=False)
class Nothing(Column):
    """No value, of a type."""

    type: DataType


@dataclass(frozen=True, eq=False)
class Call(Column):
    """An operator or a function; the writer has a way to write each."""

    operation: str
    of: tuple[Column, ...]
    type: DataType


@dataclass(frozen=True, eq=False)
class Cast(Column):
    """A value as another type."""

    value: Column
    type: DataType


@dataclass(frozen=True, eq=False)
class Cases(Column):
    """The value of the first condition that holds."""

    branches: tuple[tuple[Column, Column], ...]
    otherwise: Column

    @property
    def type(self) -> DataType:  # type: ignore[override]
        """That of the values."""
        return self.branches[0][1].type


@dataclass(frozen=True, eq=False)
class AnyOf(Column):
    """Whether a value is one of some names; false for none of them, even if it is missing."""

    value: Column
    names: tuple[Name, ...]
    type: DataType = "truth"


@dataclass(frozen=True, eq=False)
class PlaceInList(Column):
    """Where a value stands in a list, from 0 on; −1 or missing if it does not."""

    value: Column
    names: tuple[Name, ...]
    type: DataType = "whole"


@dataclass(frozen=True, eq=False)
class Window:
    """The rows with the same value of ``group``, in order."""

    group: Column
    order: tuple[Column, ...] = ()


@dataclass(frozen=True, eq=False)
class Windowed(Column):
    """What a function tells of the rows of a window."""

    function: Column
    window: Window

    @property
    def type(self) -> DataType:  # type: ignore[override]
        """That of the function."""
        return self.function.type


class Relation:
    """Rows of named columns.

    Implementers: `DataTable`, `Selection`, `Filtered`, `Grouped`, `Sorted`, `Distinct`.
    """

    types: Mapping[str, DataType]

    def __getitem__(self, name: str) -> Reference:
        return Reference(name, self.types[name], self)

    def __getattr__(self, name: str) -> Reference:
        if name.startswith("_") or name == "types" or name not in self.types:
            raise AttributeError(name)
        return self[name]

    def select(self, *names: str, **columns: Column) -> "Relation":
        """Columns by name, and further ones that are called as the keyword says."""
        _refuse_twice([*names, *columns])
        return Selection(self, {name: self[name] for name in names} | self._own(columns))

    def mutate(self, **columns: Column) -> "Relation":
        """All columns, some of them new."""
        return Selection(self, {name: self[name] for name in self.types} | self._own(columns))

    def filter(self, condition: Column) -> "Relation":
        """The rows for which ``condition`` holds."""
        self._own({"condition": condition})
        if isinstance(self, Filtered):
            return Filtered(self.source, (*self.conditions, condition))
        return Filtered(self, (condition,))

    def aggregate(self, **measures: Column) -> "Relation":
        """One row about all rows."""
        return Grouped(self, (), self._own(measures))

    def group_by(self, names: str | Sequence[str]) -> "Groups":
        """The groups of rows that have the same values; `Groups.aggregate` tells about them."""
        return Groups(self, (names,) if isinstance(names, str) else tuple(names))

    def distinct(self) -> "Relation":
        """Each row once."""
        return Distinct(self)

    def first(self, many: int, by: Sequence[str]) -> "Relation":
        """The first rows by some columns, in order."""
        return Sorted(self, tuple(by), many)

    def count(self) -> Column:
        """How many rows there are."""
        return Call("count rows", (), "whole")

    def _own(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """The columns, if they are of this relation, or of one with more or fewer of its rows."""
        own, waiting = _unfiltered(self), list(columns.values())
        while waiting:
            column = waiting.pop()
            waiting.extend(column.parts)
            if isinstance(column, Reference) and _unfiltered(column.source) is not own:
                raise ValueError(f"`{column.name}` is a column of another relation")
        return dict(columns)


@dataclass(frozen=True, eq=False)
class DataTable(Relation):
    """The one relation of a database that queries may read."""

    name: str
    types: Mapping[str, DataType]


@dataclass(frozen=True, eq=False)
class Selection(Relation):
    """Other columns of the same rows."""

    source: Relation
    columns: Mapping[str, Column]
    types: Mapping[str, DataType] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", {name: c.type for name, c in self.columns.items()})


@dataclass(frozen=True, eq=False)
class SameColumns(Relation):
    """The columns of another relation, of fewer rows or in another order."""

    source: Relation

    @property
    def types(self) -> Mapping[str, DataType]:  # type: ignore[override]
        """Those of the source."""
        return self.source.types


@dataclass(frozen=True, eq=False)
class Filtered(SameColumns):
    """Some of the rows: those for which every condition holds."""

    conditions: tuple[Column, ...]


@dataclass(frozen=True, eq=False)
class Grouped(Relation):
    """One row for each group: its values, and what is told about it.

    With ``sets`` there are groups by each set of the columns, and the columns that are not in a
    set have no value in its groups.
    """

    source: Relation
    by: tuple[str, ...]
    measures: Mapping[str, Column]
    sets: tuple[tuple[str, ...], ...] = ()
    types: Mapping[str, DataType] = field(init=False)

    def __post_init__(self) -> None:
        _refuse_twice([*self.by, *self.measures])
        keys = {name: self.source.types[name] for name in self.by}
        told = {name: column.type for name, column in self.measures.items()}
        object.__setattr__(self, "types", keys | told)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows about which nothing is told yet."""

    source: Relation
    by: tuple[str, ...]

    def aggregate(self, **measures: Column) -> Relation:
        """One row for each group."""
        return Grouped(self.source, self.by, self.source._own(measures))

    def by_sets(self, sets: Sequence[Sequence[str]], **measures: Column) -> Relation:
        """One row for each group by each of some sets of the columns, in one pass."""
        own = self.source._own(measures)
        return Grouped(self.source, self.by, own, tuple(map(tuple, sets)))


@dataclass(frozen=True, eq=False)
class Sorted(SameColumns):
    """The first rows in an order, from the least on; those without a value last."""

    by: tuple[str, ...]
    most: int


@dataclass(frozen=True, eq=False)
class Distinct(SameColumns):
    """Each row once."""


def table(name: str, kinds: Mapping[str, Kind]) -> Relation:
    """The declared columns."""
    return DataTable(name, dict(kinds))


def literal(value: Value, type: DataType | None = None) -> Constant:
    """One value for every row; with a type it has all 64 bits of it."""
    found: DataType
    match value:
        case bool():
            raise TypeError("true and false are conditions, not values")
        case str():
            found = "text"
        case int():
            found = "whole"
        case float():
            found = "real"
        case datetime():
            found = "time" if value.tzinfo is None else "zoned"
    if type not in (None, found):
        raise TypeError(f"{type} is not the type of {value!r:.40}")
    return Constant(value, found, wide=type is not None)


def null(type: DataType) -> Nothing:
    """No value."""
    return Nothing(type)


def ifelse(condition: Column, then: Any, otherwise: Any) -> Column:
    """One of two values; the second also where the condition is neither true nor false."""
    return cases((condition, then), otherwise=otherwise)


def cases(*branches: tuple[Column, Any], otherwise: Any) -> Column:
    """The value of the first condition that holds."""
    return Cases(tuple((when, _column(then)) for when, then in branches), _column(otherwise))


def least(*values: Any) -> Column:
    """The least of some values of a row."""
    columns = tuple(map(_column, values))
    return Call("least", columns, columns[0].type)


def greatest(*values: Any) -> Column:
    """The largest of some values of a row."""
    columns = tuple(map(_column, values))
    return Call("greatest", columns, columns[0].type)


def md5(*texts: Any) -> Column:
    """The hash of some texts, one after the other, as 32 digits."""
    joined = tuple(map(_column, texts))
    return Call("md5", (Call("join", joined, "text"),), "text")


def place_in(names: Sequence[Name], value: Column) -> Column:
    """Where a value stands in a list, from 0 on; −1 or missing if it does not."""
    return PlaceInList(value, tuple(names))


def left_out(column: Reference) -> Column:
    """1 in groups of a set that the column is not in, otherwise 0."""
    return Call("grouping", (column,), "whole")


def row_number() -> Column:
    """How many rows of the window come before this one."""
    return Call("row number", (), "whole")


def dense_rank() -> Column:
    """How many different places in the order of the window come before that of this row."""
    return Call("dense rank", (), "whole")


def _columns_in(value: Any) -> Iterator[Column]:
    """The columns in a part of a column: itself, or those of a tuple or a window.

    A list of names, which may be long, is known by the first of them.
    """
    if isinstance(value, Column):
        yield value
    elif isinstance(value, Window):
        yield from (value.group, *value.order)
    elif isinstance(value, tuple) and value and isinstance(value[0], Column | tuple):
        for part in value:
            yield from _columns_in(part)


def _unfiltered(relation: Relation) -> Relation:
    return relation.source if isinstance(relation, Filtered) else relation


def _refuse_twice(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"two columns would have one name: {', '.join(names)}")


def _column(value: Any) -> Column:
    return value if isinstance(value, Column) else literal(value)


def _number(operation: str, left: Any, right: Any) -> Column:
    parts = _column(left), _column(right)
    real = any(part.type == "real" for part in parts)
    return Call(operation, parts, "real" if real else "whole")


def _truth(operation: str, *parts: Any) -> Column:
    return Call(operation, tuple(map(_column, parts)), "truth")
