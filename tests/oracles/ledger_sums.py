"""What a ledger's events add up to, cell by cell: read by plain SQL, added by plain Python.

It shares no code with the ledger: the events are taken from their table as text, and a cell is a
span between two bounds of windows, in one key of one public column. It is for losses in ε whose
charges name no groups, or groups of that one column, and raises for anything else.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

BEGINNING, END = -(2**63), 2**63 - 1
READ = "SELECT seq, hash, kind, body FROM takifugu_events ORDER BY seq"


@dataclass(frozen=True)
class PlainEvent:
    """An event as its table has it."""

    seq: int
    hash: str
    kind: str
    body: dict[str, Any]


def events_of(address: str) -> list[PlainEvent]:
    """Every event of a ledger: of a file, or of a PostgreSQL database."""
    if address.startswith("postgresql"):
        import psycopg

        with psycopg.connect(address) as connection:
            rows: Iterable[Any] = connection.execute(READ).fetchall()
    else:
        file = sqlite3.connect(f"file:{address}?mode=ro", uri=True)
        try:
            rows = file.execute(READ).fetchall()
        finally:
            file.close()
    return [PlainEvent(seq, hash_, kind, json.loads(body)) for seq, hash_, kind, body in rows]


def largest_sum(
    events: Sequence[PlainEvent], dataset: str, column: str, keys: Sequence[str]
) -> Fraction:
    """The largest sum of per-entry ε on any cell of a dataset."""
    charges = [
        (*_span(event.body["window"]), _keys(event.body["groups"], column, keys), _loss(event.body))
        for event in events
        if event.kind == "charge" and event.body["dataset"] == dataset
    ]
    bounds = sorted({bound for start, end, _, _ in charges for bound in (start, end)})
    largest = Fraction(0)
    for place in bounds:
        for key in keys:
            here = sum(
                (
                    loss
                    for start, end, named, loss in charges
                    if start <= place < end and key in named
                ),
                Fraction(0),
            )
            largest = max(largest, here)
    return largest


def _span(window: Any) -> tuple[int, int]:
    if window is None:
        return BEGINNING, END
    start, end = window["start"], window["end"]
    return BEGINNING if start is None else start, END if end is None else end


def _keys(groups: Any, column: str, keys: Sequence[str]) -> frozenset[str]:
    if groups is None:
        return frozenset(keys)
    if groups["columns"] != [column]:
        raise ValueError("groups of another column")
    return frozenset(key for (key,) in groups["keys"])


def _loss(body: dict[str, Any]) -> Fraction:
    if body["loss"]["currency"] != "pure":
        raise ValueError("a loss that is not in ε")
    above, _, below = body["loss"]["epsilon"].partition("/")
    return Fraction(int(above), int(below or 1))
