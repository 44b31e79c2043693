"""What is written in a ledger: charges, the entries they touch, and canonical JSON.

Once written an event keeps its meaning for ever, so these forms only ever grow new kinds.
"""

import hashlib
import json
import unicodedata
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from takifugu.errors import InvalidCharge
from takifugu.losses import Approximate, Concentrated, Loss, Pure

BEGINNING, END = -(2**63), 2**63 - 1  # stand for a window without a start or an end
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOST_BITS = 1100  # of the denominator of a loss: every float64 fits, and a check stays cheap
MOST_LOSS = 2**64

Moment = int | date | datetime
Key = tuple[str | int | bool | None, ...]


def canonical(value: Any, name: str) -> str:
    """The one JSON text of ``value``: sorted keys, no spaces, ASCII, no NaN, no lookalikes."""
    _check_json(value, name)
    return written(value)


_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
)


def written(value: Any) -> str:
    """`canonical` for what is known to be JSON."""
    return _ENCODER.encode(value)


def _check_json(value: Any, name: str) -> None:
    if type(value) is str and value.isascii():  # nearly always
        return
    match value:
        case None | bool() | int():
            return
        case str():
            try:
                value.encode()
            except UnicodeEncodeError as error:
                raise InvalidCharge(
                    name, given="holds half a character", needed="be Unicode text", reason="text"
                ) from error
        case float():
            if value - value != 0:
                raise InvalidCharge(
                    name, given=f"holds {value}", needed="hold finite numbers", reason="infinite"
                )
        case list() | tuple():
            for part in value:
                _check_json(part, name)
        case dict():
            for key, part in value.items():
                if not isinstance(key, str):
                    raise InvalidCharge(
                        name,
                        given=f"has a key that is a {type(key).__name__}",
                        needed="be JSON",
                        reason="type",
                    )
                _check_json(key, name)
                _check_json(part, name)
        case _:
            raise InvalidCharge(
                name, given=f"holds a {type(value).__name__}", needed="be JSON", reason="type"
            )


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def ratio(value: Fraction, name: str) -> str:
    """A rational as text, numerator/denominator; refused if it has no end of digits."""
    if value.denominator.bit_length() > MOST_BITS or value > MOST_LOSS:
        raise InvalidCharge(
            name,
            given="has too many digits",
            needed=f"be at most 2^64, with a denominator of at most {MOST_BITS} bits; round it",
            reason="digits",
        )
    return f"{value.numerator}/{value.denominator}"


def rational(text: str) -> Fraction:
    """The rational that is written so; what is below 0 was never written here."""
    if text == "0":
        return _NOTHING
    above, _, below = text.partition("/")
    numerator, denominator = int(above), int(below) if below else 1
    if numerator < 0 or denominator < 1:
        raise ValueError("a number below 0")
    return Fraction(numerator, denominator)


_NOTHING = Fraction(0)


def named(value: object, name: str) -> None:
    """Refuse what cannot be a name: no text, none at all, or far too much."""
    if not isinstance(value, str) or not value or len(value) > 500 or "\0" in value:
        raise InvalidCharge(
            name, given=f"is {value!r:.80}", needed="be a text of 1 to 500 letters", reason="name"
        )
    _check_json(value, name)


@dataclass(frozen=True)
class Window:
    """Entries whose time lies in [start, end); None leaves that side open.

    Times are whole steps, days or instants (datetimes with a time zone). One dataset keeps to one
    of the three: windows in different units could overlap unseen.
    """

    start: Moment | None = None
    end: Moment | None = None

    def __post_init__(self) -> None:
        units = {_unit(moment) for moment in (self.start, self.end) if moment is not None}
        if len(units) > 1:
            raise InvalidCharge(
                "window",
                given=f"mixes {'s and '.join(sorted(units))}s",
                needed="use one unit",
                reason="unit",
            )
        start, end = self.ticks
        if not start < end:
            raise InvalidCharge(
                "window",
                given=f"is [{self.start}, {self.end})",
                needed="start before it ends",
                reason="empty",
            )

    @property
    def unit(self) -> str | None:
        """Steps, days or instants, in the singular; None for all of time."""
        known = self.start if self.start is not None else self.end
        return None if known is None else _unit(known)

    @property
    def ticks(self) -> tuple[int, int]:
        """Start and end as integers: steps, day numbers, microseconds since 1970."""
        return (
            BEGINNING if self.start is None else _tick(self.start),
            END if self.end is None else _tick(self.end),
        )


def _unit(moment: Moment) -> str:
    match moment:
        case datetime():
            if moment.tzinfo is None:
                raise InvalidCharge(
                    "window",
                    given="has a time without a zone",
                    needed="name the zone of its times",
                    reason="zone",
                )
            return "instant"
        case date():
            return "day"
        case int() if not isinstance(moment, bool):
            return "step"
    raise InvalidCharge(
        "window",
        given=f"holds a {type(moment).__name__}",
        needed="hold steps, days or instants",
        reason="type",
    )


def _tick(moment: Moment) -> int:
    match moment:
        case datetime():
            return (moment - EPOCH) // timedelta(microseconds=1)
        case date():
            return moment.toordinal()
    if not -(2**62) < moment < 2**62:
        raise InvalidCharge(
            "window", given=f"holds {moment}", needed="stay within ±2^62", reason="range"
        )
    return moment


@dataclass(frozen=True)
class Groups:
    """Entries whose public columns hold one of these keys; membership must be public."""

    columns: tuple[str, ...]
    keys: frozenset[Key]

    def __init__(self, columns: Iterable[str], keys: Iterable[Key]) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "keys", frozenset(map(tuple, keys)))
        for column in self.columns:
            named(column, "groups")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise InvalidCharge(
                "groups",
                given="names no column, or one twice",
                needed="name each column once",
                reason="columns",
            )
        if not self.keys:
            raise InvalidCharge(
                "groups", given="has no key", needed="have at least one", reason="empty"
            )
        for key in self.keys:
            if len(key) != len(self.columns):
                raise InvalidCharge(
                    "groups",
                    given=f"has a key of {len(key)} values",
                    needed=f"give one for each of the {len(self.columns)} columns",
                    reason="size",
                )
            if not all(v is None or isinstance(v, str | int) for v in key):
                raise InvalidCharge(
                    "groups",
                    given="has a key that is not text or a whole number",
                    needed="have exact keys",
                    reason="type",
                )
            _check_json(key, "groups")


def cell_names(
    columns: Iterable[str], keys: Iterable[Iterable[Any]], partition: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The cells of a ``partition`` that ``keys`` lie in; None if they may lie in all of them.

    A finer key lies in the cell of its coarser part. Keys that lack a column of the partition may
    lie anywhere. Values that some engine might take for one another (1 and "1", composed and
    decomposed letters) share a cell: sharing can only count more.
    """
    names = list(columns)
    if not set(partition) <= set(names):
        return None
    places = [names.index(column) for column in partition]
    cells = {tuple(_folded(list(key)[place]) for place in places) for key in keys}
    return tuple(sorted(json.dumps(cell, separators=(",", ":")) for cell in cells))


def _folded(value: object) -> str:
    plain = value if isinstance(value, str) else json.dumps(value)
    return unicodedata.normalize("NFC", plain)


@dataclass(frozen=True)
class Cells:
    """What names the cells of a dataset: everything that decides which rows a charge reads.

    Attributes:
        text: The parts as canonical JSON: same parts, same text; 1 and "1" are not the same.
    """

    text: str

    @classmethod
    def of(cls, parts: Mapping[str, Any]) -> "Cells":
        """From parts that are JSON, and public: they are shown when they change."""
        return cls(canonical(dict(parts), "cells"))

    @property
    def parts(self) -> dict[str, Any]:
        """The parts, readable."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    @property
    def fingerprint(self) -> str:
        """What a charge names."""
        return digest(self.text)


@dataclass(frozen=True)
class Charge:
    """One release, before it happens: what is asked, how, and what it costs each entry it touches.

    Attributes:
        dataset: The name its budget goes by.
        query: What is asked, as JSON.
        mechanism: How the answer is protected, as JSON.
        loss: What one entry loses, proven by whoever made the mechanism.
        data: Keyed mark of the data that is read: see `Ledger.mark`.
        prior: Fingerprint of the belief that the budget protects against.
        secrets: Fingerprint of the secrets it protects.
        translation: Fingerprint of what turns per-entry losses into Pufferfish losses.
        cells: What names the cells that are read; the ledger refuses others than before.
        window: The times of the entries that are read; None for all.
        groups: The public groups that are read; None for all.
        analyst: Who asks; None for nobody in particular.
        declared: Fingerprint of how the data is read; an answer under another is another answer.
        rules: What else the owner accepted: which rows are released from, what their entries are,
            as JSON; None if the caller has no say in it.
        sources: Keyed marks of where the rows are and what they hold; empty if known already.
        key: Makes a retry of this very call recognisable. Made anew for every charge.
    """

    dataset: str
    query: Mapping[str, Any]
    mechanism: Mapping[str, Any]
    loss: Loss
    data: str
    prior: str
    secrets: str
    translation: str
    cells: Cells
    window: Window | None = None
    groups: Groups | None = None
    analyst: str | None = None
    declared: str = ""
    rules: Mapping[str, Any] | None = None
    sources: tuple[str, ...] = field(default=(), compare=False, repr=False)
    key: str = field(default_factory=lambda: uuid.uuid4().hex, compare=False)

    def __post_init__(self) -> None:
        for name in ("dataset", "data", "prior", "secrets", "translation", "key"):
            named(getattr(self, name), name)
        if self.analyst is not None:
            named(self.analyst, "analyst")
        if not isinstance(self.cells, Cells):
            raise InvalidCharge(
                "cells", given=f"is a {type(self.cells).__name__}", needed="be made by Cells.of"
            )
        loss_body(self.loss)

    def body(self) -> dict[str, Any]:
        """Everything but when and in which place, as the JSON object of its event."""
        query = canonical(dict(self.query), "query")
        body = {
            "dataset": self.dataset,
            "analyst": self.analyst,
            "query": json.loads(query),
            "query_fingerprint": digest(query),
            "mechanism": json.loads(canonical(dict(self.mechanism), "mechanism")),
            "loss": loss_body(self.loss),
            "window": window_body(self.window),
            "groups": groups_body(self.groups),
            "data": self.data,
            "prior": self.prior,
            "secrets": self.secrets,
            "translation": self.translation,
            "cells": self.cells.fingerprint,
            "declared": self.declared,
            "key": self.key,
        }
        body["question"] = question(body)
        if self.rules is not None:
            body["rules"] = json.loads(canonical(dict(self.rules), "rules"))
        return body


def window_body(window: Window | None) -> dict[str, Any] | None:
    """A window as JSON, in ticks; null for all of time."""
    if window is None or window.unit is None:
        return None
    start, end = window.ticks
    return {
        "unit": window.unit,
        "start": None if window.start is None else start,
        "end": None if window.end is None else end,
    }


def groups_body(groups: Groups | None) -> dict[str, Any] | None:
    """Groups as JSON; null for all of them."""
    if groups is None:
        return None
    keys = sorted((list(key) for key in groups.keys), key=json.dumps)
    return {"columns": list(groups.columns), "keys": keys}


def question(body: Mapping[str, Any]) -> str:
    """What makes two charges the same question: all that decides the law of the answer."""
    same = ("dataset", "query_fingerprint", "data", "mechanism", "loss", "window", "groups")
    read = ("cells", "declared")  # the numbers of an answer stand in the order of a declaration
    return digest(written({name: body[name] for name in (*same, *read)}))


def loss_body(loss: Loss) -> dict[str, str]:
    """A loss as JSON: its currency and exact rationals."""
    match loss:
        case Pure(epsilon=epsilon):
            parts = {"currency": "pure", "epsilon": ratio(epsilon, "loss")}
        case Approximate(epsilon=epsilon, delta=delta):
            parts = {
                "currency": "approximate",
                "epsilon": ratio(epsilon, "loss"),
                "delta": ratio(delta, "loss"),
            }
        case Concentrated(rho=rho):
            parts = {"currency": "concentrated", "rho": ratio(rho, "loss")}
        case _:
            raise InvalidCharge(
                "loss", given=f"is a {type(loss).__name__}", needed="be a Loss", reason="type"
            )
    return parts


def loss_of(body: Mapping[str, str]) -> Loss:
    """The loss that `loss_body` wrote."""
    match body["currency"]:
        case "pure":
            return Pure(rational(body["epsilon"]))
        case "approximate":
            return Approximate(rational(body["epsilon"]), rational(body["delta"]))
        case "concentrated":
            return Concentrated(rational(body["rho"]))
    raise ValueError(f"no such currency: {body['currency']}")
