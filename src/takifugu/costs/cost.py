r"""What a release tells about one entry, value by value: cost matrices, exact.

A release has cost c on an entry if its likelihoods satisfy :math:`g(D) \le e^{c(u,v)} g(D')`
whenever D and D′ differ in that entry alone, u there and v here: metric DP (Chatzikokolakis et al.,
2013), entry by entry. Per-entry ε-DP is the cost ε·[u≠v]. Costs of releases add up, also if a query
depends on earlier results; what a sum of costs means is a matter of the prior
(`takifugu.translation`). Never add what costs translate to.

A `Cost` is a sum of a few *shapes* with rational coefficients:

* `AnyValue`: [u≠v], every mechanism's cost at worst.
* `Membership`: |[u∈A] − [v∈A]|, what the noisy count of a set A of labels tells.
* `Distance`: |u − v| of numbers clamped to bounds, as a share of their width: noisy sums, means.
* `Steps`: the same of numbers that are rounded to steps before they are added.
* `Column`: a shape applied to one column of a joint state.
* `Jointly`: [u≠v] of some columns of a joint state: cross-tabulations.
* `Matrix`: written out, for randomised response; its shortest-path closure is taken once.

Every shape is a pseudometric on values (`Matrix` need not be symmetric), and so is a sum of them:
the closure is taken shape by shape, before anything is added.

A cost in words, for people: which change of value tells how much.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations, pairwise
from math import fsum
from typing import Any

import numpy as np

from takifugu._core.exact import Number, exactly
from takifugu._core.numeric import Floats, distinct, frozen
from takifugu._core.rounding import UNIT, float_up
from takifugu.costs.shapes import (
    ANY,
    AnyValue,
    Column,
    Distance,
    Jointly,
    Matrix,
    Membership,
    Shape,
    Steps,
    Value,
    column_and_shape,
    one_column,
    shape_of,
    shape_text,
)
from takifugu.errors import UnsoundRequest
from takifugu.visible import four_digits

__all__ = [
    "ANY",
    "NOTHING",
    "AnyValue",
    "Column",
    "Cost",
    "Distance",
    "Jointly",
    "Matrix",
    "Membership",
    "Shape",
    "Steps",
    "Value",
    "largest_matrix",
    "shape_of",
    "shape_text",
]

KEPT = 32  # matrices that are cached
FEW = 3  # terms that each add to the room for rounding; more of them need no more
TINY = 2.0**-1022  # a smaller product may be rounded down to 0


@dataclass(frozen=True)
class Cost:
    """A sum of shapes, each with a rational coefficient above 0, in one order.

    >>> count = Cost.of({Membership({"home"}): "0.1"})
    >>> (count + count + Cost.any("0.5")).scalar
    Fraction(7, 10)
    """

    terms: tuple[tuple[Shape, Fraction], ...] = ()

    def __post_init__(self) -> None:
        texts = [shape.text for shape, _ in self.terms]
        in_order = all(one < other for one, other in pairwise(texts))
        if not in_order or any(
            not isinstance(value, Fraction) or value <= 0 for _, value in self.terms
        ):
            raise UnsoundRequest(
                "the terms of a cost are shapes in one order, each with a fraction above 0;"
                " make it by `Cost.of`",
                field="terms",
            )

    @classmethod
    def of(cls, terms: Mapping[Shape, Number]) -> "Cost":
        """From coefficients by shape; those of 0 are left out."""
        if not all(isinstance(shape, Shape) for shape in terms):
            raise UnsoundRequest(
                "a cost is a sum of shapes: AnyValue, Membership, Distance, Steps, Column, Jointly,"
                " Matrix",
                field="shape",
            )
        exact = {shape: exactly(value, "coefficient") for shape, value in terms.items()}
        if any(value < 0 for value in exact.values()):
            raise UnsoundRequest("a coefficient of a cost is negative", field="coefficient")
        nonzero = [(shape, value) for shape, value in exact.items() if value]
        return cls(tuple(sorted(nonzero, key=lambda term: term[0].text)))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.terms)

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
        """An ε with cost ≤ ε·[u≠v], whatever values there are; rounded up if sets overlap.

        Two values differ by at most the two largest of disjoint sets. Columns of a joint state may
        all differ at once, so they add.
        """
        sets: dict[str | None, list[tuple[frozenset[str | int], Fraction]]] = {}
        total = Fraction(0)
        for shape, value in self.terms:
            column, inner = column_and_shape(shape)
            if isinstance(inner, Membership):
                sets.setdefault(column, []).append((inner.labels, value))
            else:
                total += value * inner.diameter
        return sum((_widest(counted) for counted in sets.values()), total)

    @cached_property
    def text(self) -> str:
        """The document as canonical text."""
        terms = ",".join(f'["{value}",{shape.text}]' for shape, value in self.terms)
        return f"[{terms}]"

    @cached_property
    def sizes(self) -> Mapping[Shape, float]:
        """The largest cost of any change of value by each shape alone, to the nearest float."""
        return {shape: float(value * shape.diameter) for shape, value in self.terms}

    @cached_property
    def size(self) -> float:
        """The sum of `sizes`, rounded once: to compare costs by, whatever the order of shapes."""
        return fsum(self.sizes.values())

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
            column, inner = column_and_shape(shape)
            listed: Iterable[Value] = ()
            if isinstance(inner, Membership):
                listed = inner.labels
            elif isinstance(inner, Matrix):
                listed = inner.values
            named |= {(column, label) for label in listed}
        return frozenset(named)

    def on_column(self, column: str) -> "Cost":
        """What a change of this column alone costs, as a cost on its own values."""
        coefficients: dict[Shape, Fraction] = {}
        for shape, value in self.terms:
            named, inner = column_and_shape(shape)
            if isinstance(inner, Jointly):
                if column not in inner.columns:
                    continue
                inner = ANY
            elif named is None and inner != ANY:
                raise UnsoundRequest(
                    f"a cost names no column, and column {column!r} is one of several; say which"
                    " column it is about",
                    field="columns",
                )
            elif named not in (None, column):
                continue
            coefficients[inner] = coefficients.get(inner, Fraction(0)) + value
        return Cost.of(coefficients)

    def of_column(self, column: str) -> "Cost":
        """The same on one column of joint states: each shape names it."""
        coefficients: dict[Shape, Fraction] = {}
        for shape, value in self.terms:
            if isinstance(shape, Column | Jointly):
                raise UnsoundRequest(
                    "a cost is about columns already; it cannot become that of one column",
                    field="columns",
                )
            coefficients[Column(column, shape)] = value
        return Cost.of(coefficients)

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
def _written_out(shape: Shape, values: tuple[Value, ...], columns: tuple[str, ...] | None) -> Any:
    """``[u, v]``: a shape with costs between 0 and its diameter, rounded up."""
    if isinstance(shape, Distance | Steps):
        one_column(columns, values)
        shares = [shape.share(value) for value in values]
        known: dict[Fraction, float] = {}
        matrix = np.ones((len(values), len(values)))
        for u, one in enumerate(shares):
            for v, other in enumerate(shares[:u]):
                if one is not None and other is not None:
                    gap = shape.apart(one, other)
                    if gap not in known:
                        known[gap] = float_up(gap)
                    matrix[u, v] = matrix[v, u] = known[gap]
        np.fill_diagonal(matrix, 0.0)
        return matrix
    return np.array([[float_up(shape.between(u, v, columns)) for v in values] for u in values])


def _shape_matrix(shape: Shape, values: tuple[Value, ...], columns: tuple[str, ...] | None) -> Any:
    """``[u, v]``: the shape between these values, rounded up."""
    match shape:
        case AnyValue():
            return np.where(np.eye(len(values)) > 0, 0.0, 1.0)
        case Membership(labels=labels):
            one_column(columns, values)
            inside = np.array([value in labels for value in values])
            return (inside[:, None] != inside[None]).astype(np.float64)
        case _:
            return _written_out(shape, values, columns)


@lru_cache(maxsize=KEPT)
def _matrix(cost: Cost, values: tuple[Value, ...], columns: tuple[str, ...] | None) -> Floats:
    size = len(values)
    total, left_out = np.zeros((size, size)), np.zeros((size, size))
    with np.errstate(over="ignore", invalid="ignore"):  # to infinity
        for shape, value in cost.terms:
            part = _shape_matrix(shape, values, columns)
            term = np.where(part > 0, np.maximum(float_up(value) * part, TINY), 0.0)
            added = total + term
            grown = added - total
            left_out += (total - (added - grown)) + (term - grown)  # by rounding, exactly
            total = added
        total = np.where(total < np.inf, total + left_out, np.inf)
    # Each term is off by a few units of roundoff, and the sum of all of them by one more, however
    # many there are: what a lower bound takes back is enough. So is each step of a path through the
    # values: no such sum shall be below the exact cost either.
    total *= 1 + 4 * (min(len(cost.terms), FEW) + size + 1) * UNIT
    return frozen(total)


def _widest(sets: Sequence[tuple[frozenset[str | int], Fraction]]) -> Fraction:
    """The largest sum of the coefficients of sets that tell two values apart, rounded up."""
    by_size = sorted((value for _, value in sets), reverse=True)
    if all(not one & other for (one, _), (other, _) in combinations(sets, 2)):
        return sum(by_size[:2], Fraction(0))
    labels = sorted({label for members, _ in sets for label in members}, key=repr)
    inside = np.array([[label in members for members, _ in sets] for label in labels])
    patterns = distinct(np.vstack([inside, np.zeros((1, len(sets)), dtype=bool)]), axis=0)
    weights = np.array([float_up(value / by_size[0]) for _, value in sets])
    best = max(float(((patterns != one) * weights).sum(axis=1).max()) for one in patterns)
    return by_size[0] * Fraction(best * (1 + 4 * (len(sets) + 2) * UNIT))


MAX_LABELS = 6  # of a set that are named
MAX_TERMS = 4  # of a cost that are named


def shape_words(shape: Shape) -> str:
    """What a release of this shape counts or measures.

    >>> shape_words(Steps(40, 240, "0.5"))
    'distance from 40 to 240 in steps of 0.5'
    >>> shape_words(Membership({"work", "home"})), shape_words(Column("age", Distance(0, 120)))
    ('count of home, work', 'distance from 0 to 120 in column age')
    """
    match shape:
        case AnyValue():
            return "any value"
        case Membership():
            names = sorted(map(str, shape.labels))
            more = len(names) - MAX_LABELS
            rest = f" and {more} more" if more > 0 else ""
            return f"count of {', '.join(names[:MAX_LABELS])}{rest}"
        case Distance(low=low, high=high):
            return f"distance from {four_digits(low)} to {four_digits(high)}"
        case Steps(low=low, high=high, step=step):
            bounds = f"{four_digits(low)} to {four_digits(high)}"
            return f"distance from {bounds} in steps of {four_digits(step)}"
        case Matrix():
            return f"matrix of {len(shape.values)} values"
        case Column(column=column, shape=inner):
            return f"{shape_words(inner)} in column {column}"
        case Jointly(columns=columns):
            return f"any value of columns {', '.join(columns)} together"


def cost_words(cost: Cost) -> str:
    """The coefficient of each shape, rounded up; the largest few of many.

    >>> cost_words(Cost.of({Membership({"home"}): "1/3", AnyValue(): "0.1"}))
    '0.3334 by count of home, 0.1 by any value'
    """
    terms = sorted(cost.terms, key=lambda term: (-term[1], shape_words(term[0])))
    named = [f"{four_digits(v, 'up')} by {shape_words(shape)}" for shape, v in terms[:MAX_TERMS]]
    more = len(terms) - MAX_TERMS
    return ", ".join(named) + (f" and {more} more shapes" if more > 0 else "") or "nothing"
