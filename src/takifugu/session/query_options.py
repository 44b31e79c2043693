"""The options of a query, each declared once: a line of `QueryOptions`.

A session, a project, a plan file and the command line all describe a query by its `QueryOptions`.
From the lines of that class follow the methods of ``session.plan``, the flags of the command line,
the model of the REST API, the form of a server's page and the keys of files. The form of each
option is checked here, once; what an option means for a given table is decided where the query is
made (`takifugu.session.query`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Annotated, Any, Literal, get_type_hints

from takifugu._core.exact import Number, exactly, shown
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import one_of
from takifugu.session.query_kinds import KINDS

Name = str | int  # a label or a key
Bound = datetime | date | str | int | None
Counts = tuple[float, ...] | tuple[tuple[float, ...], ...]
LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 2**50), 2**64
EARLIER_NAMES = {"chance": "confidence"}  # in plan files of earlier versions
OptionType = Literal[
    "column",
    "columns",
    "window",
    "keys",
    "amount",
    "real",
    "whole",
    "labels",
    "counts",
    "text",
    "flag",
]


@dataclass(frozen=True)
class Option:
    """One option of a query, for whoever reads, shows or asks for it.

    Attributes:
        type: How its values are read: a key of `READERS`. A new type needs a line there and in the
            tables by type of whoever reads or shows options: `takifugu.session.planner_stub`,
            `takifugu.cli.declared_flags`, `takifugu.server.api.query_routes` and
            `takifugu.server.pages.ask_pages`.
        help: What it does, in a sentence.
        required: The kinds of query that need it.
        optional: The kinds that may have it. An option that neither lists belongs to all kinds.
        label: What a form calls it, where only some kinds have it.
        hint: What a form says beside it, if anything else than ``help``.
        example: A value for the description of the API.
        name: Its name, filled in from the line that declares it.
    """

    type: OptionType
    help: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    label: str = ""
    hint: str = ""
    example: Any = None
    name: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of query that have it as an option of their own, in the order of `KINDS`."""
        return tuple(kind for kind in KINDS if kind in (*self.required, *self.optional))


@dataclass(frozen=True, init=False)
class QueryOptions:
    """What is asked, of which rows, and what it may cost or how good the answer must be.

    Either ``epsilon`` is given, or the error: ``within``, or ``confidence`` for a ranking.
    """

    kind: str
    column: Annotated[
        str | tuple[str, ...] | None,
        Option(
            "column",
            "The protected column; by default the one that the prior is about. Some kinds count the"
            " labels of several columns together: a list.",
            example="state",
        ),
    ]
    by: Annotated[
        tuple[str, ...],
        Option(
            "columns",
            "Public columns whose groups are answered one by one, for one charge.",
            example=["zone"],
        ),
    ]
    window: Annotated[
        tuple[Bound, Bound] | None,
        Option(
            "window",
            "Rows from the first bound to before the second: days, times or whole numbers, either"
            " side open. Without a start it begins with the first row that no prior was fitted on.",
            example=["2026-01-01", "2026-02-01"],
        ),
    ]
    where: Annotated[
        Mapping[str, tuple[Name, ...]],
        Option(
            "keys",
            "For public columns, the keys to keep.",
            example={"zone": ["north"]},
        ),
    ]
    epsilon: Annotated[
        Number | None,
        Option(
            "amount",
            "The Pufferfish ε that the release may cost alone.",
            example="0.5",
        ),
    ]
    delta: Annotated[
        Number | None,
        Option(
            "amount",
            "The Pufferfish δ beside ε, at most the budget's; for Gaussian noise, whose losses add"
            " up to less over many releases.",
            example="0",
        ),
    ]
    within: Annotated[
        Number | None,
        Option(
            "amount",
            "Instead of ε: the least ε that keeps every number within this distance of the exact"
            " one is used; for a quantile, in ranks.",
            example=100,
        ),
    ]
    confidence: Annotated[
        float | None,
        Option(
            "real",
            "The probability of being within it, 0.95 by default; for a ranking, that its places"
            " are right.",
            example=0.95,
        ),
    ]
    values: Annotated[
        tuple[Name, ...],
        Option(
            "labels",
            "The labels that a count counts together, and counts one by one.",
            required=("count", "counts"),
            label="Labels to count",
            hint="At least one.",
            example=["ward"],
        ),
    ]
    k: Annotated[
        int | None,
        Option(
            "whole",
            "How many labels a ranking names.",
            required=("top_k",),
            label="Places",
            example=3,
        ),
    ]
    level: Annotated[
        Number | None,
        Option(
            "amount",
            "Which quantile: 0.5 for the median.",
            required=("quantile",),
            label="Level",
            hint="Between 0 and 1: 0.5 for the median.",
            example=0.5,
        ),
    ]
    grid: Annotated[
        Number | None,
        Option(
            "amount",
            "The distance between the numbers that a quantile is chosen from; by default a step.",
            optional=("quantile",),
            label="Grid",
            example=1,
        ),
    ]
    reference: Annotated[
        Counts | None,
        Option(
            "counts",
            "Public or synthetic counts to plan a ranking for, of one group or of each.",
            optional=("top_k",),
            label="Reference counts",
            hint="Public or synthetic counts to plan the ranking for, one for each label, separated"
            " by blanks; a line for each group.",
            example=[[40, 20, 10]],
        ),
    ]
    gap: Annotated[
        float | None,
        Option(
            "real",
            "Instead of a reference, the lead of each place of a ranking over the next.",
            optional=("top_k",),
            label="Lead",
            example=10,
        ),
    ]
    query: Annotated[
        str | None,
        Option(
            "text",
            "The linear query, by the name that the policy gives it.",
            required=("linear",),
            label="Declared query",
            hint="Weights and column are those of the policy.",
            example="cost",
        ),
    ]
    leave_out: Annotated[
        tuple[Name, ...],
        Option(
            "labels",
            "Labels that a ranking leaves out, such as other.",
            optional=("top_k",),
            label="Labels to leave out",
            hint="Such as “other”.",
            example=["other"],
        ),
    ]
    sum_to_one: Annotated[
        bool,
        Option(
            "flag",
            "Show shares that sum to 1, or counts that add up to the rows. It costs nothing and"
            " changes nothing that is stored.",
            optional=("histogram", "proportions"),
            label="Numbers add up",
            hint="Show them so that those of a group add up to its rows. It costs nothing.",
        ),
    ]

    def __init__(self, kind: str, column: str | Sequence[str] | None = None, **given: Any) -> None:
        if not isinstance(kind, str) or kind not in KINDS:
            raise InvalidQuery("kind", given=f"is {kind!r:.80}", needed=one_of(KINDS, kind))
        given["column"] = column
        if unknown := [name for name in given if name not in OPTIONS]:
            raise TypeError(f"{unknown[0]!r:.80} is not an option of a query")
        object.__setattr__(self, "kind", kind)
        for name, declared in OPTIONS.items():
            read, default = READERS[declared.type]
            value = read(given.get(name, default), name)
            object.__setattr__(self, name, value)  # the one write: lists in, tuples kept
        self._refuse_options_of_other_kinds()
        self._refuse_two_aims()

    def _refuse_options_of_other_kinds(self) -> None:
        given = self.given()
        for name, reason in KINDS[self.kind].without.items():
            if name in given:
                raise InvalidQuery(
                    name, given="is given", needed=f"be left out for {self.kind}: {reason}"
                )
        for name in given:
            kinds = OPTIONS[name].kinds
            if kinds and self.kind not in kinds:
                raise InvalidQuery(
                    name,
                    given="is given",
                    needed=f"be left out: it is an option of {' and '.join(kinds)}",
                )
        for name in KIND_OPTIONS[self.kind].required:
            if name not in given:
                raise InvalidQuery(name, given="is missing", needed=f"be given for {self.kind}")

    def _refuse_two_aims(self) -> None:
        epsilon = None if self.epsilon is None else exactly(self.epsilon, "epsilon")
        if epsilon is not None and (0 < epsilon < LEAST_EPSILON or epsilon > LARGEST_EPSILON):
            raise InvalidQuery(
                "epsilon",
                given=f"is {shown(epsilon)}",
                needed="be from 2^-50, below which noise does not fit int64, to 2^64, the most of a"
                " ledger",
            )
        ranking = KINDS[self.kind].ranks
        if (self.epsilon is None) == (self.within is None and self.confidence is None):
            raise InvalidQuery(
                "epsilon",
                given="is missing" if self.epsilon is None else "stands beside an aim",
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
        values = {name: getattr(self, name) for name in OPTIONS}
        return {
            name: value
            for name, value in values.items()
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
        names = ["kind", *OPTIONS]
        read: dict[str, Any] = {}
        for key, value in document.items():
            name = EARLIER_NAMES.get(key, key)
            if name not in names:
                raise InvalidQuery(
                    str(key)[:80],
                    given="is not an option of a query",
                    needed=one_of(names, key),
                )
            if name in read:
                raise InvalidQuery(name, given="is given twice", needed="be given once")
            read[name] = value
        if "kind" not in read:
            raise InvalidQuery("kind", given="is missing", needed="be given")
        return cls(**read)


OPTIONS: Mapping[str, Option] = {
    name: replace(hint.__metadata__[0], name=name)
    for name, hint in get_type_hints(QueryOptions, include_extras=True).items()
    if hasattr(hint, "__metadata__")
}
AMOUNTS = tuple(name for name, declared in OPTIONS.items() if declared.type == "amount")
SHARED_OPTIONS = tuple(name for name, declared in OPTIONS.items() if not declared.kinds)


@dataclass(frozen=True)
class KindOptions:
    """The options of one kind of query: its own, and those that it shares with all kinds."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    shared: tuple[str, ...]


KIND_OPTIONS: Mapping[str, KindOptions] = {
    kind: KindOptions(
        tuple(name for name, declared in OPTIONS.items() if kind in declared.required),
        tuple(name for name, declared in OPTIONS.items() if kind in declared.optional),
        tuple(name for name in SHARED_OPTIONS if name not in declared_kind.without),
    )
    for kind, declared_kind in KINDS.items()
}


def checked(options: QueryOptions) -> QueryOptions:
    """The same options, checked again: nothing that was changed behind their back is kept."""
    return QueryOptions(options.kind, **{name: getattr(options, name) for name in OPTIONS})


def _column(column: Any, _: str) -> str | tuple[str, ...] | None:
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


def _columns(by: Any, name: str) -> tuple[str, ...]:
    columns = (by,) if isinstance(by, str) else by
    if not isinstance(columns, Sequence) or not all(isinstance(part, str) for part in columns):
        raise InvalidQuery(name, given="is something else", needed="list columns")
    return tuple(columns)


def _window(window: Any, _: str) -> tuple[Bound, Bound] | None:
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


def _keys(where: Any, _: str) -> dict[str, tuple[Name, ...]]:
    """The keys as they are now, and nothing that equals one: True and 1.0 equal 1.

    The engine would read the rows of 1 for either, and the ledger would charge another cell.
    """
    if not isinstance(where, Mapping | None):
        raise InvalidQuery(
            "where", given="is something else", needed="map columns to lists of keys"
        )
    kept = {}
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
        kept[column] = tuple(keys)
    return kept


def _labels(values: Any, name: str) -> tuple[Name, ...]:
    labels = (values,) if isinstance(values, str | int) else values
    if not isinstance(labels, Sequence) or any(
        isinstance(label, bool) or not isinstance(label, str | int) for label in labels
    ):
        raise InvalidQuery(name, given="is something else", needed="list labels")
    return tuple(labels)


def _amount(value: Any, name: str) -> Number | None:
    """A number that is exact as it is given: a text by its digits, a float bit by bit."""
    if value is None:
        return None
    if isinstance(value, bool):
        raise InvalidQuery(name, given="is true or false", needed="be a number")
    exactly(value, name)
    if isinstance(value, Decimal):
        return str(value)
    return value if isinstance(value, int | Fraction | str) else float(value)


def _real(value: Any, name: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Real) or isinstance(value, Fraction):
        raise InvalidQuery(name, given="is something else", needed="be a number, as 0.9")
    try:
        return float(value)
    except OverflowError:  # a whole number that no float holds
        raise InvalidQuery(name, given="is beyond ±1.8e308", needed="be a number, as 0.9") from None


def _whole(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidQuery(name, given="is something else", needed="be a whole number")
    return int(value)


def _counts(reference: Any, _: str) -> Counts | None:
    if reference is None:
        return None
    import numpy as np

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


def _text(value: Any, name: str) -> str | None:
    if not isinstance(value, str | None):
        raise InvalidQuery(name, given="is not text", needed="name a declared linear query")
    return value


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidQuery(name, given="is something else", needed="be true or false")
    return value


READERS: Mapping[OptionType, tuple[Callable[[Any, str], Any], Any]] = {
    "column": (_column, None),
    "columns": (_columns, ()),
    "window": (_window, None),
    "keys": (_keys, None),
    "amount": (_amount, None),
    "real": (_real, None),
    "whole": (_whole, None),
    "labels": (_labels, ()),
    "counts": (_counts, None),
    "text": (_text, None),
    "flag": (_flag, False),
}  # how values of each type are read, and what stands for an option that is not given
