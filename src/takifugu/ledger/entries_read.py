"""The entries that a charge reads: a window of time, and groups by public columns."""

import json
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from takifugu.errors import InvalidCharge
from takifugu.ledger.canonical_text import check_json, check_name

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
    keys: frozenset[GroupKey]

    def __init__(self, columns: Iterable[str], keys: Iterable[GroupKey]) -> None:
        object.__setattr__(self, "columns", tuple(columns))
        object.__setattr__(self, "keys", frozenset(map(tuple, keys)))
        for column in self.columns:
            check_name(column, "groups")
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
            check_json(key, "groups")


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
