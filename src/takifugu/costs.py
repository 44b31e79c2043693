r"""What a release tells about one entry, value by value: cost matrices, exact.

A release has cost c on an entry if its likelihoods satisfy :math:`g(D) \le e^{c(u,v)} g(D′)`
whenever D and D′ differ in that entry alone, u there and v here: metric DP (Chatzikokolakis et al.,
2013), entry by entry. Per-entry ε-DP is the cost ε·[u≠v]. Costs of releases add up, also if a query
depends on earlier results; what a sum of costs means is a matter of the prior
(`takifugu.translation`). Never add what costs translate to.

A `Cost` is a sum of a few *shapes* with rational coefficients:

* `AnyValue`: [u≠v], every mechanism's cost at worst.
* `Membership`: |[u∈A] − [v∈A]|, what the noisy count of a set A of labels tells.
* `Distance`: |u − v| of numbers clamped to bounds, as a share of their width: noisy sums, means.
* `Column`: a shape applied to one column of a joint state.
* `Matrix`: written out, for randomised response; its shortest-path closure is taken once.

Every shape is a pseudometric on values (`Matrix` need not be symmetric), and so is a sum of them:
the closure is taken shape by shape, before anything is added.
"""

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from takifugu._exact import Number, exactly
from takifugu._rounding import UNIT, float_up
from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats, frozen

Value = Hashable  # a label, a number, or for a joint state the tuple of its columns' values
MOST_VALUES = 1024  # of an explicit matrix
KEPT = 256  # matrices that are cached
TINY = 2.0**-1022  # a smaller product may be rounded down to 0


@dataclass(frozen=True)
class AnyValue:
    """[u≠v]: a change of value costs the same, whichever it is."""

    word: ClassVar[str] = "any"

    @property
    def diameter(self) -> Fraction:
        """The largest cost between two values."""
        return Fraction(1)

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:  # noqa: ARG002
        """The cost of the change from u to v."""
        return Fraction(int(u != v))

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word]


@dataclass(frozen=True)
class Membership:
    """|[u∈A] − [v∈A]|: only whether a value is one of ``labels`` matters."""

    word: ClassVar[str] = "member"

    labels: frozenset[str | int]

    def __init__(self, labels: Iterable[str | int]) -> None:
        object.__setattr__(self, "labels", frozenset(labels))
        if not self.labels or any(
            isinstance(label, bool) or not isinstance(label, str | int) for label in self.labels
        ):
            raise UnsoundRequest(
                "the labels of a cost are empty or hold something else than text and whole numbers",
                field="labels",
            )

    @property
    def diameter(self) -> Fraction:
        """The largest cost between two values."""
        return Fraction(1)

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from u to v."""
        _one_column(columns)
        return Fraction(int((u in self.labels) != (v in self.labels)))

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, sorted(self.labels, key=lambda label: (str(label), repr(label)))]


@dataclass(frozen=True)
class Distance:
    """|u − v| / (high − low), both clamped to [low, high].

    Values are numbers, or text that is one. What is neither may be anywhere within the bounds: it
    costs as much as the whole width.
    """

    word: ClassVar[str] = "distance"

    low: Fraction
    high: Fraction

    def __init__(self, low: Number, high: Number) -> None:
        object.__setattr__(self, "low", exactly(low, "low"))
        object.__setattr__(self, "high", exactly(high, "high"))
        if not self.low < self.high:
            raise UnsoundRequest(
                f"low is {float(self.low):g} and high {float(self.high):g}; low must be below high",
                field="low",
            )

    @property
    def diameter(self) -> Fraction:
        """The largest cost between two values."""
        return Fraction(1)

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from u to v."""
        _one_column(columns)
        if u == v:
            return Fraction(0)
        one, other = self._clamped(u), self._clamped(v)
        if one is None or other is None:
            return Fraction(1)
        return abs(one - other) / (self.high - self.low)

    def _clamped(self, value: Value) -> Fraction | None:
        if isinstance(value, bool) or not isinstance(value, str | int | float | Fraction):
            return None
        try:
            return min(max(exactly(value, "value"), self.low), self.high)
        except UnsoundRequest:
            return None

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, str(self.low), str(self.high)]


@dataclass(frozen=True)
class Matrix:
    """A cost for each ordered pair of listed values: that of a channel, say.

    The shortest-path closure is taken when it is made. A change from or to a value that is not
    listed costs as much as the dearest change.
    """

    word: ClassVar[str] = "matrix"

    values: tuple[str | int, ...]
    costs: tuple[tuple[Fraction, ...], ...]

    def __init__(self, values: Iterable[str | int], costs: Iterable[Iterable[Number]]) -> None:
        names = tuple(values)
        rows = [[exactly(cost, "costs") for cost in row] for row in costs]
        if (
            not 2 <= len(names) <= MOST_VALUES
            or len(set(names)) < len(names)
            or any(isinstance(name, bool) or not isinstance(name, str | int) for name in names)
        ):
            raise UnsoundRequest(
                f"a matrix of costs lists {len(names)} values; it must list 2 to {MOST_VALUES},"
                " text or whole numbers, each once",
                field="values",
            )
        if len(rows) != len(names) or any(len(row) != len(names) for row in rows):
            raise UnsoundRequest(
                f"a matrix of costs must have {len(names)} rows and columns, one for each value",
                field="costs",
            )
        if any(cost < 0 for row in rows for cost in row) or any(
            rows[k][k] != 0 for k in range(len(names))
        ):
            raise UnsoundRequest(
                "costs must be 0 or more, and 0 from a value to itself", field="costs"
            )
        for w in range(len(names)):
            through = rows[w]
            for row in rows:
                first = row[w]
                for v, rest in enumerate(through):
                    if first + rest < row[v]:
                        row[v] = first + rest
        order = sorted(range(len(names)), key=lambda k: (str(names[k]), repr(names[k])))
        object.__setattr__(self, "values", tuple(names[k] for k in order))
        object.__setattr__(self, "costs", tuple(tuple(rows[i][j] for j in order) for i in order))

    @cached_property
    def diameter(self) -> Fraction:
        """The largest cost between two values."""
        return max(cost for row in self.costs for cost in row)

    @cached_property
    def _place(self) -> Mapping[Value, int]:
        return {value: k for k, value in enumerate(self.values)}

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from u to v."""
        _one_column(columns)
        if u == v:
            return Fraction(0)
        one, other = self._place.get(u), self._place.get(v)
        return self.diameter if one is None or other is None else self.costs[one][other]

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, list(self.values), [list(map(str, row)) for row in self.costs]]


@dataclass(frozen=True)
class Column:
    """A shape applied to one column of a joint state: the other columns do not matter."""

    word: ClassVar[str] = "column"

    column: str
    shape: "AnyValue | Membership | Distance | Matrix"

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
        if not isinstance(u, tuple) or not isinstance(v, tuple):
            raise UnsoundRequest("a joint state is a tuple of its columns' values", field="values")
        place = columns.index(self.column)
        return self.shape.between(u[place], v[place])

    def document(self) -> list[Any]:
        """As JSON: the same shape, the same document."""
        return [self.word, self.column, self.shape.document()]


def _one_column(columns: tuple[str, ...] | None) -> None:
    if columns is not None:
        raise UnsoundRequest(
            f"a cost names no column, and the values are joint states of {', '.join(columns)};"
            " say which column it is about",
            field="columns",
            given=columns,
        )


Shape = AnyValue | Membership | Distance | Column | Matrix
ANY = AnyValue()


def shape_text(shape: Shape) -> str:
    """A shape as canonical text, to sort and to store it by."""
    return json.dumps(shape.document(), ensure_ascii=True, separators=(",", ":"))


def shape_of(document: Any) -> Shape:
    """The shape that `document` wrote; `UnsoundRequest` if it is none."""
    match document:
        case ["any"]:
            return ANY
        case ["member", list(labels)]:
            return Membership(labels)
        case ["distance", str(low), str(high)]:
            return Distance(low, high)
        case ["matrix", list(values), list(rows)]:
            return Matrix(values, rows)
        case ["column", str(column), list(inner)]:
            shape = shape_of(inner)
            if not isinstance(shape, Column):
                return Column(column, shape)
    raise UnsoundRequest(
        "unknown shape of a cost; shapes: any, member, distance, column, matrix", field="shape"
    )


@dataclass(frozen=True)
class Cost:
    """A sum of shapes, each with a rational coefficient above 0, in one order.

    >>> count = Cost.of({Membership({"home"}): "0.1"})
    >>> (count + count + Cost.any("0.5")).scalar
    Fraction(7, 10)
    """

    terms: tuple[tuple[Shape, Fraction], ...] = ()

    @classmethod
    def of(cls, terms: Mapping[Shape, Number]) -> "Cost":
        """From coefficients by shape; those of 0 are left out."""
        exact = {shape: exactly(value, "coefficient") for shape, value in terms.items()}
        if any(value < 0 for value in exact.values()):
            raise UnsoundRequest("a coefficient of a cost is negative", field="coefficient")
        kept = [(shape, value) for shape, value in exact.items() if value]
        return cls(tuple(sorted(kept, key=lambda term: shape_text(term[0]))))

    @classmethod
    def any(cls, epsilon: Number) -> "Cost":
        """Per-entry ε-DP: ε·[u≠v]."""
        return cls.of({ANY: epsilon})

    @property
    def coefficients(self) -> dict[Shape, Fraction]:
        """The coefficient of each shape."""
        return dict(self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __add__(self, other: "Cost") -> "Cost":
        """Both releases on the same entry."""
        if not self or not other:
            return self or other
        total = self.coefficients
        for shape, value in other.terms:
            total[shape] = total.get(shape, Fraction(0)) + value
        return Cost.of(total)

    def __mul__(self, factor: Number) -> "Cost":
        """Each coefficient times a factor of 0 or more."""
        times = exactly(factor, "factor")
        return Cost.of({shape: value * times for shape, value in self.terms})

    __rmul__ = __mul__

    def dominates(self, other: "Cost") -> bool:
        """Whether no coefficient is smaller: then no change of value costs less."""
        mine = self.coefficients
        return all(mine.get(shape, Fraction(0)) >= value for shape, value in other.terms)

    def joined(self, other: "Cost") -> "Cost":
        """The larger coefficient of each shape: at least both costs, for every change of value."""
        total = self.coefficients
        for shape, value in other.terms:
            total[shape] = max(total.get(shape, Fraction(0)), value)
        return Cost.of(total)

    @cached_property
    def scalar(self) -> Fraction:
        """An ε with cost ≤ ε·[u≠v], whatever values there are; rounded up if sets overlap."""
        sets = [(s.labels, value) for s, value in self.terms if isinstance(s, Membership)]
        rest = sum(
            (value * s.diameter for s, value in self.terms if not isinstance(s, Membership)),
            Fraction(0),
        )
        if all(not one & other for (one, _), (other, _) in combinations(sets, 2)):
            return rest + sum(sorted((value for _, value in sets), reverse=True)[:2], Fraction(0))
        return rest + Fraction(_widest(sets))

    @property
    def is_scalar(self) -> bool:
        """Whether it is ε·[u≠v] and nothing else."""
        return all(shape == ANY for shape, _ in self.terms)

    def between(self, u: Value, v: Value, columns: tuple[str, ...] | None = None) -> Fraction:
        """The cost of the change from u to v, exactly."""
        return sum(
            (value * shape.between(u, v, columns) for shape, value in self.terms), Fraction(0)
        )

    def matrix(self, values: Sequence[Value], columns: tuple[str, ...] | None = None) -> Floats:
        """``[u, v]``: the cost between these values, rounded up; 0 on the diagonal.

        With ``columns`` a value is a joint state: the tuple of the columns' values.
        """
        return _matrix(self, tuple(values), columns)

    def labels(self) -> frozenset[tuple[str | None, Value]]:
        """The labels that it names, each with its column; None where it names no column."""
        named = set()
        for shape, _ in self.terms:
            column = shape.column if isinstance(shape, Column) else None
            inner = shape.shape if isinstance(shape, Column) else shape
            listed: Iterable[Value] = ()
            if isinstance(inner, Membership):
                listed = inner.labels
            elif isinstance(inner, Matrix):
                listed = inner.values
            named |= {(column, label) for label in listed}
        return frozenset(named)

    def document(self) -> list[list[Any]]:
        """As JSON: pairs of an exact coefficient and a shape, in one order."""
        return [[str(value), shape.document()] for shape, value in self.terms]

    @classmethod
    def of_document(cls, document: Any) -> "Cost":
        """The cost that `document` wrote; `UnsoundRequest` if it is none."""
        terms: dict[Shape, Fraction] = {}
        if not isinstance(document, list):
            raise UnsoundRequest("a cost must be a list of [coefficient, shape]", field="cost")
        for term in document:
            match term:
                case [str(value), list(shape)]:
                    known = shape_of(shape)
                    terms[known] = terms.get(known, Fraction(0)) + exactly(value, "coefficient")
                case _:
                    raise UnsoundRequest(
                        "a cost must be a list of [coefficient, shape]", field="cost"
                    )
        return cls.of(terms)


NOTHING = Cost()


def largest_matrix(
    costs: Iterable[Cost], values: Sequence[Value], columns: tuple[str, ...] | None = None
) -> Floats:
    """``[u, v]``: the entrywise maximum, rounded up: at least what any entry has lost.

    The maximum of matrices that obey the triangle inequality obeys it too.
    """
    matrices = [cost.matrix(values, columns) for cost in costs]
    if not matrices:
        return frozen(np.zeros((len(values), len(values))))
    return frozen(np.max(matrices, axis=0))


@lru_cache(maxsize=KEPT)
def _shape_matrix(shape: Shape, values: tuple[Value, ...], columns: tuple[str, ...] | None) -> Any:
    """``[u, v]``: the shape between these values, rounded up."""
    size = len(values)
    match shape:
        case AnyValue():
            return np.where(np.eye(size) > 0, 0.0, 1.0)
        case Membership(labels=labels):
            _one_column(columns)
            inside = np.array([value in labels for value in values])
            return (inside[:, None] != inside[None]).astype(np.float64)
        case _:
            exact = [[shape.between(u, v, columns) for v in values] for u in values]
            return np.array([[float_up(cost) for cost in row] for row in exact])


@lru_cache(maxsize=KEPT)
def _matrix(cost: Cost, values: tuple[Value, ...], columns: tuple[str, ...] | None) -> Floats:
    size = len(values)
    total = np.zeros((size, size))
    for shape, value in cost.terms:
        part = _shape_matrix(shape, values, columns)
        total = total + np.where(part > 0, np.maximum(float_up(value) * part, TINY), 0.0)
    # each term is off by a unit of roundoff, and so is each sum: none of them is negative
    total *= 1 + 4 * (len(cost.terms) + 1) * UNIT
    return frozen(total)


def _widest(sets: Sequence[tuple[frozenset[str | int], Fraction]]) -> float:
    """The largest sum of the coefficients of sets that tell two values apart, rounded up."""
    labels = sorted({label for members, _ in sets for label in members}, key=repr)
    inside = np.array([[label in members for members, _ in sets] for label in labels])
    patterns = np.unique(np.vstack([inside, np.zeros((1, len(sets)), dtype=bool)]), axis=0)
    weights = np.array([float_up(value) for _, value in sets])
    best = max(float(((patterns != one) * weights).sum(axis=1).max()) for one in patterns)
    return best * (1 + 4 * (len(sets) + 2) * UNIT)
