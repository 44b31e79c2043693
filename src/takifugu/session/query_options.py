"""Everything that a query may be asked with, in one value.

A session, a project, a plan file and the command line all describe a query by its `QueryOptions`.
The form of each option is checked here, once; what an option means for a given table is decided
where the query is made (`takifugu.session.query`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from takifugu._core.exact import Number, exactly, shown
from takifugu.declarations import InvalidQuery
from takifugu.errors import one_of
from takifugu.priors import Name
from takifugu.session.cells import Bound

Kind = Literal[
    "histogram",
    "count",
    "counts",
    "top_k",
    "sum",
    "mean",
    "quantile",
    "proportions",
    "transitions",
    "marginals",
    "linear",
]
Counts = tuple[float, ...] | tuple[tuple[float, ...], ...]
ReferenceCounts = Sequence[float] | Sequence[Sequence[float]] | np.ndarray[Any, Any]
AMOUNTS = ("epsilon", "delta", "within", "level", "grid")  # exact numbers, whatever they come as
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 2**50), 2**64
EARLIER_NAMES = {"chance": "confidence"}  # in plan files of earlier versions


@dataclass(frozen=True)
class KindOptions:
    """The options of one kind of query, beside those that every kind has.

    Attributes:
        required: Options of its own that must be given.
        optional: Options of its own that may be given.
        without: Options that other kinds share and this one lacks, each with the reason.
    """

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    without: Mapping[str, str] = field(default_factory=dict)


KIND_OPTIONS: Mapping[Kind, KindOptions] = {
    "histogram": KindOptions(optional=("sum_to_one",)),
    "count": KindOptions(required=("values",)),
    "counts": KindOptions(required=("values",)),
    "top_k": KindOptions(
        required=("k",),
        optional=("reference", "gap", "leave_out"),
        without={
            "within": "a ranking has no distance to be within; give `confidence` with a `gap` or a"
            " `reference`"
        },
    ),
    "sum": KindOptions(),
    "mean": KindOptions(),
    "quantile": KindOptions(required=("level",), optional=("grid",)),
    "proportions": KindOptions(optional=("sum_to_one",)),
    "transitions": KindOptions(),
    "marginals": KindOptions(),
    "linear": KindOptions(
        required=("query",),
        without={"column": "the policy declares which column the query adds up"},
    ),
}  # registry: one line for each kind of query


@dataclass(frozen=True)
class QueryOptions:
    """What is asked, of which rows, and what it may cost or how good the answer must be.

    Either ``epsilon`` is given, or the error: ``within``, or ``confidence`` for a ranking.

    Attributes:
        kind: The kind of query.
        column: The protected column; by default the one that the prior is about. Some kinds count
            the labels of several columns: a list of them.
        by: Public columns whose groups are answered one by one, for one charge.
        window: Rows from the first bound to before the second; None leaves a side open. Without a
            start it begins with the first row that no prior was fitted on.
        where: For public columns, the keys to keep.
        epsilon: The Pufferfish ε that the release may cost alone.
        delta: The Pufferfish δ beside it, at most that of the budget: the noise is then of a kind
            whose losses add up as ρ, which is less for many releases on the same rows.
        within: Instead of ε: find the least ε that keeps every number within this distance of the
            exact one (for a quantile, in ranks) …
        confidence: … with this probability, 0.95 by default. For a ranking, the probability that
            its places are right.
        values: The labels that a count counts together, and counts count one by one.
        k: How many labels a ranking names.
        level: Which quantile, 0.5 for the median.
        grid: The distance between the numbers that a quantile is chosen from; by default a step.
        reference: Public or synthetic counts to plan a ranking for.
        gap: Instead of a reference, the lead of each place over the next.
        query: The name under which the policy declares a linear query.
        leave_out: Labels that a ranking leaves out, such as ``other``.
        sum_to_one: Whether shares are shown so that those of a group sum to 1, and counts so that
            they add up to its rows. It costs nothing and changes nothing that is stored.
    """

    kind: Kind
    column: str | tuple[str, ...] | None
    by: tuple[str, ...]
    window: tuple[Bound, Bound] | None
    where: Mapping[str, tuple[Name, ...]]
    epsilon: Number | None
    delta: Number | None
    within: Number | None
    confidence: float | None
    values: tuple[Name, ...]
    k: int | None
    level: Number | None
    grid: Number | None
    reference: Counts | None
    gap: float | None
    query: str | None
    leave_out: tuple[Name, ...]
    sum_to_one: bool

    def __init__(
        self,
        kind: Kind,
        column: str | Sequence[str] | None = None,
        *,
        by: str | Sequence[str] = (),
        window: tuple[Bound, Bound] | None = None,
        where: Mapping[str, Sequence[Name]] | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        within: Number | None = None,
        confidence: float | None = None,
        values: Name | Sequence[Name] = (),
        k: int | None = None,
        level: Number | None = None,
        grid: Number | None = None,
        reference: ReferenceCounts | None = None,
        gap: float | None = None,
        query: str | None = None,
        leave_out: Name | Sequence[Name] = (),
        sum_to_one: bool = False,
    ) -> None:
        if kind not in get_args(Kind):
            raise InvalidQuery(
                "kind",
                given=f"is {kind!r:.80}",
                needed=one_of(get_args(Kind), kind),
            )
        if not isinstance(query, str | None):
            raise InvalidQuery("query", given="is not text", needed="name a declared linear query")
        if not isinstance(sum_to_one, bool):
            raise InvalidQuery("sum_to_one", given="is something else", needed="be true or false")
        checked: dict[str, Any] = {
            "kind": kind,
            "column": _protected(column),
            "by": _columns(by),
            "window": _window(window),
            "where": _where(where),
            "epsilon": _epsilon(epsilon),
            "delta": _number(delta, "delta"),
            "within": _number(within, "within"),
            "confidence": _real(confidence, "confidence"),
            "values": _labels(values, "values"),
            "k": _whole(k, "k"),
            "level": _number(level, "level"),
            "grid": _number(grid, "grid"),
            "reference": _counts(reference),
            "gap": _real(gap, "gap"),
            "query": query,
            "leave_out": _labels(leave_out, "leave_out"),
            "sum_to_one": sum_to_one,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)  # the one write: lists in, tuples kept
        self._refuse_options_of_other_kinds()
        self._refuse_two_aims()

    def _refuse_options_of_other_kinds(self) -> None:
        given, mine = self.given(), KIND_OPTIONS[self.kind]
        for name, reason in mine.without.items():
            if name in given:
                raise InvalidQuery(
                    name, given="is given", needed=f"be left out for {self.kind}: {reason}"
                )
        for options in KIND_OPTIONS.values():
            for name in (*options.required, *options.optional):
                if name in given and name not in (*mine.required, *mine.optional):
                    kinds = [
                        k for k, o in KIND_OPTIONS.items() if name in (*o.required, *o.optional)
                    ]
                    raise InvalidQuery(
                        name,
                        given="is given",
                        needed=f"be left out: it is an option of {' and '.join(kinds)}",
                    )
        for name in mine.required:
            if name not in given:
                raise InvalidQuery(name, given="is missing", needed=f"be given for {self.kind}")

    def _refuse_two_aims(self) -> None:
        ranking = "within" in KIND_OPTIONS[self.kind].without
        if (self.epsilon is None) == (self.within is None and self.confidence is None):
            raise InvalidQuery(
                "epsilon",
                given="is missing" if self.epsilon is None else "is beside an error to keep to",
                needed="be given, or else how good the answer must be: `within`, or `confidence`"
                " for a ranking; exactly one of the two",
                reason="one-aim",
            )
        if self.epsilon is None and self.within is None and not ranking:
            raise InvalidQuery(
                "within",
                given="is missing beside `confidence`",
                needed=f"be given too: {self.kind} is not a ranking, and a confidence says how"
                " sure, not how near",
                reason="one-aim",
            )

    def given(self) -> dict[str, Any]:
        """The options that were given, beside the kind, by name."""
        found = {part.name: getattr(self, part.name) for part in fields(self)}
        del found["kind"]
        return {
            name: value
            for name, value in found.items()
            if value is not False and value not in (None, (), {})
        }

    def document(self) -> dict[str, Any]:
        """The kind and the options that were given, ready to be written as JSON."""
        return {"kind": self.kind} | {name: _json(value) for name, value in self.given().items()}

    def exact_document(self) -> dict[str, Any]:
        """The same with every float that is an amount as exact text, to be sent to a server.

        There a number of JSON is the decimal that was written, and a float here is its bits.
        """
        return {
            name: str(Fraction(value)) if name in AMOUNTS and isinstance(value, float) else value
            for name, value in self.document().items()
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "QueryOptions":
        """The options that a JSON object holds; those of an earlier version have earlier names."""
        if not isinstance(document, Mapping):
            raise InvalidQuery("query", given="is no object", needed="map options to values")
        names = [part.name for part in fields(cls)]
        found: dict[str, Any] = {}
        for key, value in document.items():
            name = EARLIER_NAMES.get(key, key)
            if name not in names:
                raise InvalidQuery(
                    str(key)[:80],
                    given="is not an option of a query",
                    needed=one_of(names, key),
                )
            if name in found:
                raise InvalidQuery(name, given="is given twice", needed="be given once")
            found[name] = value
        if "kind" not in found:
            raise InvalidQuery("kind", given="is missing", needed="be given")
        return cls(**found)


def checked(options: QueryOptions) -> QueryOptions:
    """The same options, checked again: nothing that was changed behind their back is kept."""
    return QueryOptions(**{part.name: getattr(options, part.name) for part in fields(QueryOptions)})


def _protected(column: Any) -> str | tuple[str, ...] | None:
    """One column by its name, and several as a tuple; a list of one is that column."""
    if column is None or isinstance(column, str):
        return column
    if not isinstance(column, Sequence) or not all(isinstance(name, str) for name in column):
        raise InvalidQuery(
            "column", given="is not text", needed="be the name of a column, or a list of names"
        )
    if not column or len(set(column)) < len(column):
        raise InvalidQuery(
            "column",
            given="repeats a column" if column else "is an empty list",
            needed="name each column once",
        )
    return column[0] if len(column) == 1 else tuple(column)


def _columns(by: Any) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else by
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidQuery("by", given="is something else", needed="list columns")
    return tuple(names)


def _window(window: Any) -> tuple[Bound, Bound] | None:
    if window is None:
        return None
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise InvalidQuery(
            "window", given="is not a pair", needed="be (start, end), None for an open side"
        )
    for end in window:
        if isinstance(end, bool) or not isinstance(end, datetime | date | str | int | None):
            raise InvalidQuery(
                "window",
                given="has an end that is something else",
                needed="hold days, times or whole numbers, None for an open side",
            )
    return window[0], window[1]


def _where(where: Any) -> dict[str, tuple[Name, ...]]:
    """The keys as they are now, and nothing that equals one: True and 1.0 equal 1.

    The engine would read the rows of 1 for either, and the ledger would charge another cell.
    """
    if not isinstance(where, Mapping | None):
        raise InvalidQuery(
            "where", given="is something else", needed="map columns to lists of keys"
        )
    found = {}
    for column, keys in (where or {}).items():
        if not isinstance(column, str):
            raise InvalidQuery("where", given="is something else", needed="map columns to keys")
        if isinstance(keys, str) or not isinstance(keys, Sequence) or not keys:
            raise InvalidQuery(
                f"where, {column}", given="is not a list of keys", needed="list at least one key"
            )
        if not all(type(key) in (str, int) for key in keys):
            raise InvalidQuery(
                f"where, {column}",
                given="has a key that is neither text nor a whole number",
                needed="hold declared keys only",
            )
        found[column] = tuple(keys)
    return found


def _labels(values: Any, name: str) -> tuple[Name, ...]:
    labels = (values,) if isinstance(values, str | int) else values
    if not isinstance(labels, Sequence) or any(
        isinstance(label, bool) or not isinstance(label, str | int) for label in labels
    ):
        raise InvalidQuery(name, given="is something else", needed="list labels")
    return tuple(labels)


def _number(value: Any, name: str) -> Number | None:
    """A number that is exact as it is given: a text by its digits, a float bit by bit."""
    if value is None:
        return None
    if isinstance(value, bool):
        raise InvalidQuery(name, given="is true or false", needed="be a number")
    exactly(value, name)
    if isinstance(value, Decimal):
        return str(value)
    return value if isinstance(value, int | Fraction | str) else float(value)


def _epsilon(value: Any) -> Number | None:
    """An ε that a mechanism can keep to and a ledger can hold."""
    number = _number(value, "epsilon")
    if number is not None:
        epsilon = exactly(number, "epsilon")
        if 0 < epsilon < LEAST_EPSILON or epsilon > LARGEST_EPSILON:
            needed = (
                "be from 2^-50, below which noise does not fit int64, to 2^64, the most of a ledger"
            )
            raise InvalidQuery("epsilon", given=f"is {shown(epsilon)}", needed=needed)
    return number


def _real(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InvalidQuery(name, given="is something else", needed="be a number, as 0.9")
    return float(value)


def _whole(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidQuery(name, given="is something else", needed="be a whole number")
    return int(value)


def _counts(reference: Any) -> Counts | None:
    if reference is None:
        return None
    try:
        table = np.asarray(reference, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        table = np.empty((0, 0, 0))
    if table.ndim not in (1, 2):
        raise InvalidQuery(
            "reference",
            given="is not a table of numbers",
            needed="hold the counts of one group, or of each group",
        )
    return tuple(tuple(row) if table.ndim == 2 else row for row in table.tolist())


def _json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _json(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return [_json(part) for part in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, Fraction) else value
