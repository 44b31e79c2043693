r"""The shapes of a cost: what one release may tell about a value, up to a coefficient.

Each is a pseudometric on values (`Matrix` need not be symmetric): 0 from a value to itself, and a
detour never costs less than the direct change. `takifugu.costs.cost` adds them up.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import floor, lcm
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from takifugu._core.exact import Number, exactly, shown
from takifugu.errors import UnsoundRequest

Value = Hashable  # a label, a number, or for a joint state the tuple of its columns' values
MAX_MATRIX_VALUES = 1024  # of an explicit matrix
MAX_LABEL_DIGITS = 1024  # of a whole number that is a label
MAX_DENOMINATOR_BITS = 4096  # of a common denominator; costs that need more are added as fractions
CLEARLY = 1e-9  # a relative difference that floats cannot be wrong about
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class _Written(ABC):
    """What can be written as JSON, and be sorted by that text."""

    @abstractmethod
    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""

    @property
    def diameter(self) -> Fraction:
        """The largest cost between two values."""
        return Fraction(1)

    @cached_property
    def text(self) -> str:
        """The document as canonical text."""
        return json.dumps(self.document(), ensure_ascii=True, separators=(",", ":"))


def _labels(given: Iterable[str | int], field: str) -> tuple[str | int, ...]:
    """Labels as they were given, each of them text or a whole number."""
    known = () if isinstance(given, str | bytes) else tuple(given)
    if not known or any(
        isinstance(label, bool)
        or not isinstance(label, str | int)
        or (isinstance(label, int) and label.bit_length() > 3 * MAX_LABEL_DIGITS)
        for label in known
    ):
        raise UnsoundRequest(
            f"{field} of a cost must be a list of one or more labels, text or whole numbers",
            field=field,
        )
    return known


def _in_order(labels: Iterable[str | int]) -> list[str | int]:
    return sorted(labels, key=lambda label: (str(label), repr(label)))


@dataclass(frozen=True)
class AnyValue(_Written):
    """[u≠v]: a change of value costs the same, whichever it is."""

    word: ClassVar[str] = "any"

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:  # noqa: ARG002
        """The cost of the change from u to v."""
        return Fraction(int(u != v))

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word]


ANY = AnyValue()


@dataclass(frozen=True)
class Membership(_Written):
    """``|[u∈A] − [v∈A]|``: only whether a value is one of ``labels`` matters."""

    word: ClassVar[str] = "member"

    labels: frozenset[str | int]

    def __init__(self, labels: Iterable[str | int]) -> None:
        object.__setattr__(self, "labels", frozenset(_labels(labels, "labels")))

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from u to v."""
        one_column(columns, (u, v))
        return Fraction(int((u in self.labels) != (v in self.labels)))

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, _in_order(self.labels)]


class _BetweenNumbers(_Written):
    """A cost between two numbers that are clamped to bounds; of what is no number, all of it."""

    @abstractmethod
    def share(self, value: Value) -> Fraction | None:
        """How far from ``low`` to ``high`` a number is, clamped; None of what is no number."""

    @abstractmethod
    def apart(self, first: Fraction, second: Fraction) -> Fraction:
        """The cost between two numbers of which the shares are given."""

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from u to v."""
        one_column(columns, (u, v))
        first, second = self.share(u), self.share(v)
        if u == v:
            return Fraction(0)
        return Fraction(1) if first is None or second is None else self.apart(first, second)


@dataclass(frozen=True)
class Distance(_BetweenNumbers):
    """``|u − v| / (high − low)``, both clamped to [low, high].

    Values are numbers, or text that is a decimal number. What is neither may be anywhere within
    the bounds: it costs as much as the whole width.
    """

    word: ClassVar[str] = "distance"

    low: Fraction
    high: Fraction

    def __init__(self, low: Number, high: Number) -> None:
        object.__setattr__(self, "low", exactly(low, "low"))
        object.__setattr__(self, "high", exactly(high, "high"))
        if not self.low < self.high:
            raise UnsoundRequest(
                f"low is {shown(self.low)} and high {shown(self.high)}; low must be below high",
                field="low",
            )

    def apart(self, first: Fraction, second: Fraction) -> Fraction:
        """The cost between two numbers of which the shares are given."""
        return abs(first - second)

    def share(self, value: Value) -> Fraction | None:
        """How far from ``low`` to ``high`` a number is, clamped; None of what is no number."""
        if isinstance(value, Integral):
            value = int(value)
        elif isinstance(value, str):
            value = value.strip()
            if not _DECIMAL.fullmatch(value):
                return None
        elif not isinstance(value, Real | Decimal):
            return None
        try:
            number = exactly(value, "value")
        except UnsoundRequest:
            return None
        return (min(max(number, self.low), self.high) - self.low) / (self.high - self.low)

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, str(self.low), str(self.high)]


@dataclass(frozen=True)
class Steps(_BetweenNumbers):
    """How many steps two numbers are apart, clamped and then rounded, as a share of all steps.

    Of numbers that are whole steps that is their `Distance`. Others may be rounded apart, whichever
    way halves go: those at a distance of d steps by at most ⌊d⌋ + 1.
    """

    word: ClassVar[str] = "steps"

    low: Fraction
    high: Fraction
    step: Fraction

    def __init__(self, low: Number, high: Number, step: Number) -> None:
        bounds = Distance(low, high)
        for name, value in (("low", bounds.low), ("high", bounds.high)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "step", exactly(step, "step"))
        if not self.step > 0 or any(end % self.step for end in (self.low, self.high)):
            raise UnsoundRequest(
                f"step is {shown(self.step)}; it must be positive, and the bounds whole multiples"
                " of it",
                field="step",
            )

    @cached_property
    def count(self) -> int:
        """How many steps there are from ``low`` to ``high``."""
        return int((self.high - self.low) / self.step)

    @cached_property
    def distance(self) -> Distance:
        """The same without rounding."""
        return Distance(self.low, self.high)

    def share(self, value: Value) -> Fraction | None:
        """How far from ``low`` to ``high`` a number is, clamped; None of what is no number."""
        return self.distance.share(value)

    def apart(self, first: Fraction, second: Fraction) -> Fraction:
        """The cost between two numbers of which the shares are given."""
        gap = abs(first - second)
        if not gap or not any((share * self.count).denominator > 1 for share in (first, second)):
            return gap
        return Fraction(min(floor(gap * self.count) + 1, self.count), self.count)

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, str(self.low), str(self.high), str(self.step)]


@dataclass(frozen=True)
class Matrix(_Written):
    """A cost for each ordered pair of listed values: that of a channel, say.

    The shortest-path closure is taken when it is made. A change from or to a value that is not
    listed costs as much as the dearest change.
    """

    word: ClassVar[str] = "matrix"

    values: tuple[str | int, ...]
    costs: tuple[tuple[Fraction, ...], ...]

    def __init__(self, values: Iterable[str | int], costs: Iterable[Iterable[Number]]) -> None:
        names = _labels(values, "values")
        rows = _exact_rows(costs, len(names))
        if not 2 <= len(names) <= MAX_MATRIX_VALUES or len(set(names)) < len(names):
            raise UnsoundRequest(
                f"a matrix of costs lists {len(names)} values; it must list 2 to"
                f" {MAX_MATRIX_VALUES}, each once",
                field="values",
                given=len(names),
            )
        if any(cost < 0 for row in rows for cost in row) or any(
            rows[k][k] != 0 for k in range(len(names))
        ):
            raise UnsoundRequest(
                "costs must be 0 or more, and 0 from a value to itself", field="costs"
            )
        rows = _shortest_paths(rows)
        place = {name: k for k, name in enumerate(names)}
        order = [place[name] for name in _in_order(names)]
        object.__setattr__(self, "values", tuple(names[k] for k in order))
        object.__setattr__(self, "costs", tuple(tuple(rows[i][j] for j in order) for i in order))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.values, self.costs))

    @cached_property
    def diameter(self) -> Fraction:
        """The largest cost between two values."""
        return max(cost for row in self.costs for cost in row)

    @cached_property
    def _place(self) -> Mapping[Value, int]:
        return {value: k for k, value in enumerate(self.values)}

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from u to v."""
        one_column(columns, (u, v))
        if u == v:
            return Fraction(0)
        first, second = self._place.get(u), self._place.get(v)
        return self.diameter if first is None or second is None else self.costs[first][second]

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, list(self.values), [list(map(str, row)) for row in self.costs]]


@dataclass(frozen=True)
class Column(_Written):
    """A shape applied to one column of a joint state: the other columns do not matter."""

    word: ClassVar[str] = "column"

    column: str
    shape: "AnyValue | Membership | Distance | Steps | Matrix"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not isinstance(
            self.shape, AnyValue | Membership | Distance | Steps | Matrix
        ):
            raise UnsoundRequest(
                "the cost of a column names a column, as text, and one of the other shapes",
                field="column",
            )

    @property
    def diameter(self) -> Fraction:
        """The largest cost between two values."""
        return self.shape.diameter

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from the joint state u to v."""
        if columns is None or self.column not in columns:
            raise UnsoundRequest(
                f"a cost is about column {self.column!r}, and the values are"
                f" {'of one column' if columns is None else 'of ' + ', '.join(columns)}",
                field="columns",
                given=columns,
                needed=self.column,
            )
        if any(not isinstance(state, tuple) or len(state) != len(columns) for state in (u, v)):
            raise UnsoundRequest(
                f"a joint state is a tuple of the values of its {len(columns)} columns",
                field="values",
                needed=len(columns),
            )
        place = columns.index(self.column)
        return self.shape.between(u[place], v[place])  # type: ignore[index]

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, self.column, self.shape.document()]


@dataclass(frozen=True)
class Jointly(_Written):
    """[u≠v] of some columns of a joint state together: what a cross-tabulation of them tells.

    A change of one of them costs as much as a change of all.
    """

    word: ClassVar[str] = "jointly"

    columns: tuple[str, ...]

    def __init__(self, columns: Iterable[str]) -> None:
        names = () if isinstance(columns, str) else tuple(columns)
        if len(set(names)) < 2 or not all(isinstance(name, str) for name in names):
            raise UnsoundRequest(
                "a joint cost names two columns or more; that of one column is a `Column`",
                field="columns",
            )
        object.__setattr__(self, "columns", tuple(sorted(set(names))))

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from the joint state u to v."""
        return max(Column(name, ANY).between(u, v, columns) for name in self.columns)

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, list(self.columns)]


def one_column(columns: tuple[str, ...] | None, values: Iterable[Value]) -> None:
    """Refuse joint states where a shape names no column."""
    if columns is not None:
        raise UnsoundRequest(
            f"a cost names no column, and the values are joint states of {', '.join(columns)};"
            " say which column it is about",
            field="columns",
            given=columns,
        )
    if any(isinstance(value, tuple) for value in values):
        raise UnsoundRequest(
            "a cost names no column, and the values are joint states; say which columns they have",
            field="columns",
        )


def _exact_rows(costs: Iterable[Iterable[Number]], size: int) -> list[list[Fraction]]:
    try:
        given = [[] if isinstance(row, str | bytes) else list(row) for row in costs]
    except TypeError:
        given = []
    if len(given) != size or any(len(row) != size for row in given):
        raise UnsoundRequest(
            f"a matrix of costs must have {size} rows and columns, one for each value",
            field="costs",
            needed=size,
        )
    return [[exactly(cost, "costs") for cost in row] for row in given]


def _shortest_paths(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    """The least cost from each value to each other, through any values between.

    If every detour is clearly dearer than the direct change, which floats can tell, it is the
    matrix itself. Otherwise whole numbers over one denominator are added: they are quicker.
    """
    size = len(rows)
    top = max((cost for row in rows for cost in row), default=Fraction(0))
    near = np.array([[float(cost / top) if top else 0.0 for cost in row] for row in rows])
    apart = near + np.where(np.eye(size) > 0, np.inf, 0.0)
    if all(
        ((apart[u][:, None] + apart).min(axis=0) - near[u] > CLEARLY)[np.arange(size) != u].all()
        for u in range(size)
    ):
        return rows
    whole = lcm(*{cost.denominator for row in rows for cost in row})
    exact = whole.bit_length() <= MAX_DENOMINATOR_BITS
    table = np.array([[int(c * whole) if exact else c for c in row] for row in rows], dtype=object)
    for w in range(size):
        table = np.minimum(table, table[:, [w]] + table[[w], :])
    return [[Fraction(c, whole) if exact else c for c in row] for row in table.tolist()]


Shape = AnyValue | Membership | Distance | Steps | Column | Jointly | Matrix


def shape_text(shape: Shape) -> str:
    """A shape as canonical text, to sort and to store it by."""
    return shape.text


def shape_of(document: Any) -> Shape:
    """The shape that `document` wrote; `UnsoundRequest` if it is none."""
    match document:
        case ["any"]:
            return ANY
        case ["member", list(labels)]:
            return Membership(labels)
        case ["distance", str(low), str(high)]:
            return Distance(low, high)
        case ["steps", str(low), str(high), str(step)]:
            return Steps(low, high, step)
        case ["matrix", list(values), list(rows)]:
            return Matrix(values, rows)
        case ["column", str(column), [str(word), *_] as inner] if word not in (
            Column.word,
            Jointly.word,
        ):
            return Column(column, shape_of(inner))  # type: ignore[arg-type]
        case ["jointly", list(columns)]:
            return Jointly(columns)
    raise UnsoundRequest(
        "unknown shape of a cost; shapes: any, member, distance, steps, column, jointly, matrix",
        field="shape",
    )


def column_and_shape(
    shape: Shape,
) -> tuple[str | None, AnyValue | Membership | Distance | Steps | Jointly | Matrix]:
    """The column that a shape is about, if it names one, and the shape of that column."""
    return (shape.column, shape.shape) if isinstance(shape, Column) else (None, shape)
