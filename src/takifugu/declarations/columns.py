"""The parts of a declaration: the source, the order, and columns of labels and of numbers."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from takifugu._core.exact import shown
from takifugu.declarations.table_errors import InvalidDeclaration
from takifugu.priors import Name

SourceKind = Literal["csv", "parquet", "duckdb", "postgres", "spark", "memory"]
SOURCES: dict[SourceKind, tuple[str, ...]] = {  # the keys of each kind of source
    "csv": ("path",),
    "parquet": ("path",),
    "duckdb": ("path", "table"),
    "postgres": ("url", "table"),
    "spark": ("table",),
    "memory": ("table",),
}
SEPARATORS = (",", ";", "\t", "|")
READING = {  # keys of a CSV source: how the file is written
    "separator": SEPARATORS,
    "encoding": ("utf-8", "latin-1"),
    "decimal": (".", ","),
}
OrderKind = Literal["time", "unix", "number"]
NO_ORDER = "(no order)"  # stands for the column, if each entity has one row: it is 0 in all of them
Outside = Literal["other", "drop", "refuse"]

MAX_STEPS = 2**31  # so that the sum of four billion clamped values still fits in 64 bits
MAX_BOUND = 2**52  # so that float64 holds every clamped value


@dataclass(frozen=True)
class Source:
    """Where the rows are.

    Attributes:
        kind: ``csv``, ``parquet``, ``duckdb``, ``postgres``, ``spark`` or ``memory``.
        path: The file, or a glob of files, of the first three kinds.
        table: The table, or ``schema.table``, of the other kinds and of ``duckdb``; for ``memory``
            the name that a program gives the table.
        url: The PostgreSQL server, ``postgresql://user@host/database``, without a password.
        separator: Of a CSV file: what stands between fields, one of `SEPARATORS`.
        encoding: Of a CSV file: ``utf-8`` or ``latin-1``.
        decimal: Of a CSV file: the mark of decimals, a point or a comma.

    A CSV file of which one of the last three is said is read exactly so, the others being a comma,
    UTF-8 and a point. If none is, DuckDB finds out how the file is written.
    """

    kind: SourceKind
    path: str | None = None
    table: str | None = None
    url: str | None = None
    separator: str | None = field(default=None, metadata={"unless_default": True})
    encoding: str | None = field(default=None, metadata={"unless_default": True})
    decimal: str | None = field(default=None, metadata={"unless_default": True})

    def __post_init__(self) -> None:
        if self.kind not in SOURCES:
            raise InvalidDeclaration(
                "source, kind", given=f"is {self.kind!r}", needed=f"be one of {', '.join(SOURCES)}"
            )
        needed = SOURCES[self.kind]
        for key in ("path", "table", "url", *READING):
            value = getattr(self, key)
            if key in needed and not value:
                raise InvalidDeclaration(
                    f"source, {key}", given="is missing", needed=f"be given for {self.kind}"
                )
            fits = key in needed or (key in READING and self.kind == "csv")
            if value is not None and not fits:
                raise InvalidDeclaration(
                    f"source, {key}", given="is given", needed=f"be left out for {self.kind}"
                )
            if value is not None and key in READING and value not in READING[key]:
                raise InvalidDeclaration(
                    f"source, {key}",
                    given=f"is {value!r:.40}",
                    needed=f"be one of {', '.join(map(repr, READING[key]))}",
                )
        if self.decimal == "," and self.separator in (None, ","):
            raise InvalidDeclaration(
                "source, decimal",
                given="is ',', as the separator is",
                needed="differ from it: name the separator, as ';'",
            )
        if self.url is not None and _has_password(self.url):
            raise InvalidDeclaration(
                "source, url",
                given="holds a password",
                needed="leave it out; PGPASSWORD or a password file supplies it",
            )

    @property
    def reading(self) -> dict[str, str]:
        """How a CSV file is said to be written; empty if DuckDB is to find out."""
        given = {key: getattr(self, key) for key in READING}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def place(self) -> str:
        """Where the source is, for messages."""
        if self.kind in ("csv", "parquet"):
            return str(self.path)
        within = self.path or self.kind
        return f"table {self.table} of {within}"


@dataclass(frozen=True)
class Order:
    """The column that puts the rows of an entity in order.

    Attributes:
        column: Its name.
        kind: ``time`` for timestamps or dates, ``unix`` for seconds since 1970 as a number,
            ``number`` for any other number.
        zone: For times, the zone of timestamps that carry none and of windows.
        ties: Columns that settle ties in order; rows that still tie are refused.
        format: Of times that are stored as text: how they are written, as ``%d/%m/%Y %H:%M``.

    A table with one row for each entity needs no order: it then has that of `Order.none`, the
    number 0 in every row, so that two rows of one entity tie, and are refused.
    """

    column: str
    kind: OrderKind
    zone: str | None = None
    ties: tuple[str, ...] = ()
    format: str | None = field(default=None, metadata={"unless_default": True})

    @classmethod
    def none(cls) -> "Order":
        """The order of a table that has one row for each entity."""
        return cls(NO_ORDER, "number")

    @property
    def absent(self) -> bool:
        """Whether each entity is said to have one row."""
        return self.column == NO_ORDER

    def __post_init__(self) -> None:
        if self.absent and (self.kind, self.zone, self.ties, self.format) != (
            ("number", None, (), None)
        ):
            raise InvalidDeclaration(
                "order, column",
                given=f"is {NO_ORDER!r}",
                needed="name a column; leave [order] out if each entity has one row",
            )
        if self.kind not in get_args(OrderKind):
            raise InvalidDeclaration(
                "order, kind",
                given=f"is {self.kind!r}",
                needed=f"be one of {', '.join(get_args(OrderKind))}",
            )
        if self.format is not None:
            if self.kind != "time":
                raise InvalidDeclaration(
                    "order, format", given="is given", needed="be left out unless order is a time"
                )
            refuse_format(self.format)
        if self.kind == "number":
            if self.zone is not None:
                raise InvalidDeclaration(
                    "order, zone", given="is given", needed="be left out when order is a number"
                )
            return
        if self.zone is None:
            raise InvalidDeclaration(
                "order, zone", given="is missing", needed="name a time zone, as 'Asia/Jakarta'"
            )
        try:
            ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise InvalidDeclaration(
                "order, zone", given=f"is {self.zone!r}", needed="be a name such as 'Asia/Jakarta'"
            ) from None


@dataclass(frozen=True)
class Category:
    """A column of labels from a finite, public list.

    Attributes:
        column: Its name.
        values: The declared list; None, for a public column only, to read it from the data.
        outside: What becomes of a row whose value is not in the list, or missing: counted as
            ``other``, left out (``drop``), or an error (``refuse``).
        other: The label that values outside the list become.
        labels: Pairs of raw value and label. A raw value that is not among them stands for
            itself.
    """

    column: str
    values: tuple[Name, ...] | None
    outside: Outside
    other: Name = "other"
    labels: tuple[tuple[Name, Name], ...] = ()

    def __post_init__(self) -> None:
        if self.outside not in get_args(Outside):
            raise InvalidDeclaration(
                f"{self.column}, outside",
                given=f"is {self.outside!r}",
                needed=f"be one of {', '.join(get_args(Outside))}",
            )
        if self.values is None:
            if self.labels or self.outside == "other":
                raise InvalidDeclaration(
                    f"{self.column}, values",
                    given="are read from the data",
                    needed="be listed to have labels or an 'other'",
                )
            return
        _one_kind(self.values, f"{self.column}, values")
        refuse_half_characters(
            self.column,
            (*self.values, self.other, *(name for pair in self.labels for name in pair)),
        )
        if len(set(self.values)) != len(self.values):
            raise InvalidDeclaration(
                f"{self.column}, values", given="repeat a value", needed="name each one once"
            )
        raw = [given for given, _ in self.labels]
        if len(set(raw)) != len(raw):
            raise InvalidDeclaration(
                f"{self.column}, labels", given="name a raw value twice", needed="name it once"
            )
        known = frozenset(self.keys)
        unknown = sum(label not in known for _, label in self.labels)
        if unknown:
            raise InvalidDeclaration(
                f"{self.column}, labels",
                given=f"lead to {unknown} labels that are not among its values",
                needed="lead to declared values only",
            )

    @property
    def keys(self) -> tuple[Name, ...]:
        """Every label that an answer may hold: the values, and ``other`` if values fold into it."""
        values = self.values or ()
        folds = self.outside == "other" and self.other not in values
        return (*values, self.other) if folds else values

    def codes(self) -> dict[Name, int]:
        """The place among `keys` of each raw value that has one."""
        place = {key: code for code, key in enumerate(self.keys)}
        mapped = {raw: place[label] for raw, label in self.labels}
        return {value: place[value] for value in self.values or ()} | mapped


@dataclass(frozen=True)
class Amount:
    """A column of protected numbers that is clamped to declared bounds.

    Sums are sums of whole numbers: a value is clamped to ``[low, high]`` and rounded to the
    nearest multiple of ``step`` before anything is added, so that a sum does not depend on the
    order of the rows and one cell moves it by a known whole number of steps at most. Sums of
    floating point numbers guarantee neither (Casacuberta, Shoemate, Vadhan & Wagaman, CCS 2022).

    Attributes:
        column: Its name.
        low: The lower bound, a multiple of ``step``.
        high: The upper bound, a multiple of ``step``.
        step: The unit of the sums.
        missing: What a missing value counts as: a number, nothing (``drop``), or an error
            (``refuse``).
    """

    column: str
    low: Fraction
    high: Fraction
    step: Fraction
    missing: Fraction | Literal["drop", "refuse"]

    def __post_init__(self) -> None:
        place = f"{self.column}, bounds"
        if not self.low < self.high:
            raise InvalidDeclaration(
                place, given="are empty", needed="be [low, high] with low below high"
            )
        if not self.step > 0:
            raise InvalidDeclaration(
                f"{self.column}, step", given=f"is {shown(self.step)}", needed="be positive"
            )
        furthest = max(abs(self.low), abs(self.high))
        fits = furthest <= MAX_BOUND and furthest <= MAX_STEPS * self.step
        ends = [self.low, self.high]
        if isinstance(self.missing, Fraction):
            ends.append(self.missing)
            if not self.low <= self.missing <= self.high:
                raise InvalidDeclaration(
                    f"{self.column}, missing", given="is out of bounds", needed="be within them"
                )
        if not fits or any((end / self.step).denominator != 1 for end in ends):
            raise InvalidDeclaration(
                place,
                given=f"are [{shown(self.low)}, {shown(self.high)}] in steps of {shown(self.step)}",
                needed=f"be whole multiples of the step, at most {MAX_STEPS} steps from 0",
            )

    @property
    def width(self) -> int:
        """How many steps one cell can move a sum by, at most, when its value is replaced."""
        return int((self.high - self.low) / self.step)

    def cells(self, every: int = 1) -> int:
        """How many cells a grid has whose cells are ``every`` steps wide."""
        return self.width // every + 1

    def grid(self, every: int = 1) -> tuple[Fraction, ...]:
        """The least number of each cell of that grid."""
        return tuple(self.low + i * every * self.step for i in range(self.cells(every)))


_YEAR, _MONTH, _DAY = frozenset("Yy"), frozenset("mbB"), frozenset("d")
_SPECIFIERS = _YEAR | _MONTH | _DAY | frozenset("aAHIpMSfgzZj%")
_SPECIFIER = re.compile(r"%(-?)(.?)", re.DOTALL)


def refuse_format(format: str) -> None:
    """Raise unless a format says which year, month and day a time is of, in ways that are read."""
    letters = [letter for _, letter in _SPECIFIER.findall(format)]
    strange = [letter for letter in letters if letter not in _SPECIFIERS]
    parts = frozenset(letters)
    whole = parts & _YEAR and (parts & {"j"} or (parts & _MONTH and parts & _DAY))
    if strange or not whole or not format.isprintable() or len(format) > 100:
        raise InvalidDeclaration(
            "order, format",
            given=f"is {format!r:.60}",
            needed="say where year, month and day are, as '%d/%m/%Y %H:%M' or '%Y-%m-%d'; hours"
            " are %H (or %I and %p), minutes %M, seconds %S, parts of them %f, zones %z",
            reason="format",
        )


def _one_kind(values: tuple[Name, ...], place: str) -> None:
    if not values:
        raise InvalidDeclaration(place, given="are empty", needed="list at least one value")
    if {type(value) for value in values} not in ({str}, {int}):
        raise InvalidDeclaration(
            place, given="are of several kinds", needed="be all text or all whole numbers"
        )


def refuse_half_characters(column: str, names: tuple[Name, ...]) -> None:
    """Refuse half a character, which JSON can write down and no file or database can hold."""
    try:
        "".join(str(name) for name in names).encode()
    except UnicodeEncodeError:
        raise InvalidDeclaration(
            f"{column}, values",
            given="hold half a character (a lone surrogate)",
            needed="be whole text",
        ) from None


def _has_password(url: str) -> bool:
    server = url.partition("://")[2].partition("/")[0]
    login = server.rpartition("@")[0]
    return ":" in login or "password=" in url.lower()


FROM_THE_FITTED_ROWS = "from the fitted rows"


@dataclass(frozen=True)
class FittedLabels(Category):
    """A column whose labels are those of the rows that its prior is fitted on.

    A fitted prior is published with the policy, and so are its states: a list of labels that is
    found on the same rows reveals nothing about any others. The states of the prior are the one
    place where the list is kept. No list is ever read from rows that are released from.

    Until a prior is there, nothing can be asked about the column. `with_labels` makes a `Category`
    of it, which is then like any other: the ledger pins its labels.
    """

    values: tuple[Name, ...] | None = None
    outside: Outside = "other"

    def __post_init__(self) -> None:
        if self.outside != "other":
            raise InvalidDeclaration(
                f"{self.column}, outside",
                given=f"is {self.outside!r:.40}, and its values are {FROM_THE_FITTED_ROWS}",
                needed="be 'other': rows that are released may hold labels that those do not have",
            )
        if self.values is not None or self.labels:
            raise InvalidDeclaration(
                f"{self.column}, labels",
                given=f"are given, and its values are {FROM_THE_FITTED_ROWS}",
                needed="be left out; or list the values in a codebook with `raw`",
            )
        refuse_half_characters(self.column, (self.other,))

    @property
    def keys(self) -> tuple[Name, ...]:
        """There are none yet."""
        raise labels_missing(self.column)

    def codes(self) -> dict[Name, int]:
        """There are none yet."""
        raise labels_missing(self.column)

    def with_labels(self, labels: Iterable[Name]) -> Category:
        """The column with these labels; ``other``, which may be among them, stands for the rest."""
        values = tuple(label for label in labels if label != self.other)
        return Category(self.column, values, "other", self.other)


def labels_missing(column: str) -> InvalidDeclaration:
    """The error for a column whose labels are not known yet."""
    return InvalidDeclaration(
        f"{column}, values",
        given=f"are {FROM_THE_FITTED_ROWS}, and no prior is fitted yet",
        needed="be found first: `takifugu prior fit NAME --share 1/5` (or --first-days N) finds"
        " them, and a session needs the fitted prior",
        reason="labels-not-fitted",
    )
