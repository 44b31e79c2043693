"""What a ledger stores of a release: the charge, and the entries that it touches.

An event, once written, keeps its meaning: a new meaning gets a new kind.
"""

import json
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

from takifugu.costs.cost import Cost
from takifugu.costs.losses import Approximate, Concentrated, Loss, Metric, Pure
from takifugu.errors import InvalidCharge
from takifugu.ledger.canonical_text import (
    canonical_json,
    check_json,
    check_name,
    encode_json,
    read_fraction,
    sha256,
    write_fraction,
)
from takifugu.ledger.events.event_chain import Anchor

BEGINNING, END = -(2**63), 2**63 - 1  # stand for a window without a start or an end
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Moment = int | date | datetime
GroupKey = tuple[str | int | bool | None, ...]


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
            raise _bad_window(f"mixes {'s and '.join(sorted(units))}s", "use one unit", "unit")
        start, end = self.ticks
        if not start < end:
            given = f"is [{self.start}, {self.end})"
            raise _bad_window(given, "start before it ends", "empty")

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


def _bad_window(given: str, needed: str, reason: str) -> InvalidCharge:
    return InvalidCharge("window", given=given, needed=needed, reason=reason)


def _unit(moment: Moment) -> str:
    match moment:
        case datetime():
            if moment.tzinfo is None:
                given = "has a time without a zone"
                raise _bad_window(given, "name the zone of its times", "zone")
            return "instant"
        case date():
            return "day"
        case int() if not isinstance(moment, bool):
            return "step"
    given = f"holds a {type(moment).__name__}"
    raise _bad_window(given, "hold steps, days or instants", "type")


def _tick(moment: Moment) -> int:
    match moment:
        case datetime():
            return (moment - EPOCH) // timedelta(microseconds=1)
        case date():
            return moment.toordinal()
    if not -(2**62) < moment < 2**62:
        raise _bad_window(f"holds {moment}", "stay within ±2^62", "range")
    return moment


@dataclass(frozen=True)
class Groups:
    """Entries whose public columns hold one of these keys; membership must be public."""

    columns: tuple[str, ...]
    keys: frozenset[GroupKey]

    def __init__(self, columns: Iterable[str], keys: Iterable[GroupKey]) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "keys", frozenset(map(tuple, keys)))
        for column in self.columns:
            check_name(column, "groups")
        if not self.columns or len(set(self.columns)) < len(self.columns):
            raise _bad_groups("names no column, or one twice", "name each column once", "columns")
        if not self.keys:
            raise _bad_groups("has no key", "have at least one", "empty")
        for key in self.keys:
            if len(key) != len(self.columns):
                needed = f"give one for each of the {len(self.columns)} columns"
                raise _bad_groups(f"has a key of {len(key)} values", needed, "size")
            if not all(v is None or isinstance(v, str | int) for v in key):
                given = "has a key that is not text or a whole number"
                raise _bad_groups(given, "have exact keys", "type")
            check_json(key, "groups")


def _bad_groups(given: str, needed: str, reason: str) -> InvalidCharge:
    return InvalidCharge("groups", given=given, needed=needed, reason=reason)


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


@dataclass(frozen=True)
class Cells:
    """What names the cells of a dataset, and the values in them.

    Which rows a charge reads, and which raw cells a label or a number stands for: costs by value
    are about the latter.

    Attributes:
        text: The parts as canonical JSON: same parts, same text; 1 and "1" are not the same.
        values: What else the values of protected columns depend on, by column, as canonical JSON.
            It matters only where something was charged by value.
    """

    text: str
    values: str = "{}"

    @classmethod
    def of(cls, parts: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> "Cells":
        """From parts that are JSON, and public: they are shown when they change."""
        return cls(
            canonical_json(dict(parts), "cells"), canonical_json(dict(values or {}), "cells")
        )

    @property
    def parts(self) -> dict[str, Any]:
        """The parts, readable."""
        return dict(json.loads(self.text))

    @property
    def value_parts(self) -> dict[str, Any]:
        """What else the values of protected columns depend on, readable."""
        return dict(json.loads(self.values))

    @property
    def fingerprint(self) -> str:
        """What a charge records of its parts."""
        return sha256(self.text)


@dataclass(frozen=True)
class Charge:
    """One release, before it happens: the query, the mechanism, and the loss of each entry read.

    Attributes:
        dataset: The name of its budget.
        query: The query, as JSON.
        mechanism: The mechanism, as JSON.
        loss: The DP loss of one entry, proven by the code that built the mechanism.
        data: The state of the data that is read: see `Ledger.data_state`.
        prior: Fingerprint of the prior that the budget protects against.
        secrets: Fingerprint of the secrets that it protects.
        translation: Fingerprint of the translation from per-entry to Pufferfish losses.
        cells: What names the cells that are read; the ledger refuses a change.
        window: The times of the entries that are read; None for all.
        groups: The public groups that are read; None for all.
        analyst: Who runs the query; None if no analyst is named.
        declared: Fingerprint of how the data is read; an answer under another is another answer.
        rules: What else the owner accepted: which rows are released from, what their entries are,
            as JSON; None if the caller has no policy.
        sources: Keyed marks of where the rows are and what they hold; empty if known already.
        elsewhere: The same under the key of this user's state folder, which other ledgers share.
        key: Identifies a retry of the same call; new for every charge.
        approval: The number of the event that allows it, where a policy wants a second person.
        request: What identifies the request that the approval was given for; None for one that was
            given for the query alone.
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
    elsewhere: tuple[str, ...] = field(default=(), compare=False, repr=False)
    key: str = field(default_factory=lambda: uuid.uuid4().hex, compare=False)
    approval: int | None = None
    request: str | None = None

    def __post_init__(self) -> None:
        for name in ("dataset", "data", "prior", "secrets", "translation", "key"):
            check_name(getattr(self, name), name)
        for name in ("analyst", "request"):
            if getattr(self, name) is not None:
                check_name(getattr(self, name), name)
        number: object = self.approval
        if number is not None and (type(number) is not int or not 0 < number < 2**63):
            raise InvalidCharge(
                "approval", given=f"is {number!r:.40}", needed="be the number of an event"
            )
        if not isinstance(self.cells, Cells):
            raise InvalidCharge(
                "cells", given=f"is a {type(self.cells).__name__}", needed="be made by Cells.of"
            )
        loss_body(self.loss)

    def body(self) -> dict[str, Any]:
        """The JSON object of its event, without its time and number."""
        query = canonical_json(dict(self.query), "query")
        body = {name: getattr(self, name) for name in _WRITTEN_AS_IT_IS} | {
            "query": json.loads(query),
            "query_fingerprint": sha256(query),
            "mechanism": json.loads(canonical_json(dict(self.mechanism), "mechanism")),
            "loss": loss_body(self.loss),
            "window": window_body(self.window),
            "groups": groups_body(self.groups),
            "cells": self.cells.fingerprint,
        }
        if self.cells.value_parts:
            body["values"] = self.cells.value_parts
        body["question"] = query_identity(body)
        if self.rules is not None:
            body["rules"] = json.loads(canonical_json(dict(self.rules), "rules"))
        if self.approval is not None:
            body["approval"] = self.approval
            if self.request is not None:
                body["request"] = self.request
        return body


_WRITTEN_AS_IT_IS = (
    *("dataset", "analyst", "data", "declared", "key"),
    *("prior", "secrets", "translation"),
)


@dataclass(frozen=True)
class Receipt:
    """Proof that a charge is written and durable: the right to draw noise, once.

    Attributes:
        anchor: The event of the charge; recorded elsewhere, it shows if the ledger is set back.
        may_release: False if an earlier call with the same key may already have had a receipt:
            noise may have been drawn under it, and a second draw would be a second release. Charge
            again with a new key.
        resumable: Whether several calls may have a receipt of the same charge; then only what
            `Ledger.record_answer` returns may be shown: see
            `takifugu.ledger.events.stored_answers`.
    """

    anchor: Anchor
    key: str
    dataset: str
    analyst: str | None
    at: datetime
    may_release: bool
    resumable: bool = False


def query_identity(body: Mapping[str, Any]) -> str:
    """What makes two charges the same query: everything that decides the law of the answer."""
    same = ("dataset", "query_fingerprint", "data", "mechanism", "loss", "window", "groups")
    read = ("cells", "declared")  # the numbers of an answer stand in the order of a declaration
    return sha256(encode_json({name: body[name] for name in (*same, *read)}))


_CURRENCIES: dict[str, tuple[type[Pure | Approximate | Concentrated], tuple[str, ...]]] = {
    "pure": (Pure, ("epsilon",)),
    "approximate": (Approximate, ("epsilon", "delta")),
    "concentrated": (Concentrated, ("rho",)),
}  # their classes, and the amounts of each


def loss_body(loss: Loss) -> dict[str, Any]:
    """A loss as JSON: its currency and exact rationals; of a cost, its shapes by name of value."""
    if isinstance(loss, Metric) and isinstance(loss.cost, Cost):
        return {"currency": "metric", "cost": _cost_document(loss.cost)}
    for currency, (kind, amounts) in _CURRENCIES.items():
        if isinstance(loss, kind):
            written = {name: write_fraction(getattr(loss, name), "loss") for name in amounts}
            return {"currency": currency, **written}
    raise InvalidCharge(
        "loss", given=f"is a {type(loss).__name__}", needed="be a Loss", reason="type"
    )


def _cost_document(cost: Cost) -> list[list[Any]]:
    """A cost as JSON, if a ledger can store it: numbers of few digits, labels that are text."""
    for number in _numbers(cost.terms):
        write_fraction(abs(number), "loss")  # refuses what could not be stored
    document = cost.document()
    check_json(document, "loss")
    return document


def _numbers(part: Any) -> Iterator[Fraction]:
    """Every rational in a shape, or in a tuple of shapes and rationals."""
    if isinstance(part, Fraction):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from _numbers(inner)
    elif is_dataclass(part):
        for field_ in fields(part):
            yield from _numbers(getattr(part, field_.name))


def loss_of(body: Mapping[str, Any]) -> Loss:
    """The loss that `loss_body` wrote; a `KeyError` or `ValueError` if it is none."""
    if body["currency"] == "metric":
        return Metric(cost_of(body["cost"]))
    kind, amounts = _CURRENCIES[body["currency"]]
    return kind(*(read_fraction(body[name]) for name in amounts))


def cost_of(document: Any) -> Cost:
    """The cost with this document; a `ValueError` if a ledger has never written it."""
    cost = Cost.of_document(document)
    if cost.document() != document:
        raise ValueError("a cost that is written in another way than a ledger writes")
    return cost
