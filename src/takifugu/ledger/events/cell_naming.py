r"""What names the cells and the rows of a dataset: a name must keep its meaning.

Losses are added by cell. A charge names the cells that it reads: a stretch of time, keys of public
columns. Which rows those are depends on the declaration: the source, the entity, the order with its
zone, the lists and rules of the public columns. Under another declaration the same rows are other
cells, and two losses of one row would be counted on two. So every charge records the fingerprint of
what names its cells, and the ledger refuses one that differs from the charge before it, under its
lock.

An owner may accept a change. It is then unknown which row lost what, so every row counts as having
lost what the worst of them has: with :math:`W` the worst totals of the account,

.. math:: \mathrm{total}(\text{row}) \le \max_{\text{cells}} \mathrm{total} \le W,

so that `always` becomes the componentwise maximum of :math:`W`, and new cells start from there.

Two datasets with the same rows have two budgets, and a row then loses both. So the first charge on
each state of the data stores marks of where its rows are and what they hold (see `keys`), and a
dataset that shares a mark with another one is refused until its owner decides to count them
separately. So is one whose marks cannot be compared, because they were made with two keys. Edited
copies and parts of a table are not recognised. Other ledgers of the same user are, by the state
folder: `takifugu.ledger.witnesses.known_rows`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from takifugu.errors import NoBudget, SameRows, UnsoundRequest
from takifugu.ledger.accounts.account import WHOLE
from takifugu.ledger.canonical_text import encode_json, sha256
from takifugu.ledger.charge_values import Cells
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.events.replay import replayed
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.digest_tree import edited
from takifugu.ledger.storage.schema import EVENTS
from takifugu.ledger.storage.statement import Connection, Statement

MOST_SHOWN = 5  # keys of a list that differ, in a message
WIDEST = 80  # letters of one side of a difference
EVERYWHERE, UNCHANGED = "everywhere", "unchanged"
MOVED = ("source",)  # parts that may change while every row keeps its cell, if the owner confirms

_NAMING = "dataset = :named AND (kind = 'charge' OR kind = 'cells')"
_LATEST = Statement(f"SELECT max(seq) AS seq FROM {EVENTS} WHERE {_NAMING}")
_LATEST_FIRST = chain.events_where(_NAMING, "ORDER BY seq DESC")


@dataclass(frozen=True)
class Difference:
    """One part of what names a cell, as the ledger knows it and as it is declared now."""

    part: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.part} was {self.before} and is now {self.now}"


def latest(connection: Connection, dataset: str) -> Event | None:
    """The last event that records what names the cells of a dataset, checked against its chain."""
    row = _LATEST.one(connection, {"named": dataset})
    return None if row.seq is None else chain.one(connection, row.seq)


def compare(
    connection: Connection, dataset: str, cells: Cells
) -> tuple[bool, tuple[str, ...] | None]:
    """Whether ``cells`` are the first of the dataset, and how they differ from those before.

    None if they do not differ; empty if the earlier charges do not record what names their cells.
    """
    last = latest(connection, dataset)
    if last is None:
        return True, None
    known = last.body.get("cells")
    if known == cells.fingerprint:
        return False, None
    if known is None:
        return False, ()
    before = named(connection, dataset, known)
    return False, tuple(map(str, differences(before or {}, cells.parts)))


def named(connection: Connection, dataset: str, fingerprint: str) -> Mapping[str, Any] | None:
    """The parts that were written down with ``fingerprint``."""
    for row in _LATEST_FIRST.stream(connection, {"named": dataset}):
        body = chain.read(row).body
        if body.get("cells") == fingerprint and "naming" in body:
            parts: Mapping[str, Any] = body["naming"]
            return parts
    return None


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Part by part what differs, both sides in words."""
    old, new = dict(_flat(before, "")), dict(_flat(now, ""))
    for part in [*old, *(part for part in new if part not in old)]:
        one, other = old.get(part, _UNDECLARED), new.get(part, _UNDECLARED)
        if _text(one) != _text(other):
            yield Difference(part, *_sides(one, other))


_UNDECLARED = object()  # stands for a part that is not declared; null is one that is


def _flat(value: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    for key in value:
        part = f"{place} {key}".strip()
        if isinstance(value[key], dict):
            yield from _flat(value[key], part)
        else:
            yield part, value[key]


def _text(value: Any) -> str:
    return "not declared" if value is _UNDECLARED else json.dumps(value, ensure_ascii=True)


def _sides(one: Any, other: Any) -> tuple[str, str]:
    if isinstance(one, list) and isinstance(other, list) and len(_text(one + other)) > WIDEST:
        return _without(one, other), _without(other, one)
    return _short(_text(one)), _short(_text(other))


def _without(one: list[Any], other: list[Any]) -> str:
    there = set(map(_text, other))
    only = [text for text in map(_text, one) if text not in there]
    if not only:
        return f"{len(one)} entries"
    more = f" and {len(only) - MOST_SHOWN} more" if len(only) > MOST_SHOWN else ""
    return f"{len(one)} entries with {', '.join(map(_short, only[:MOST_SHOWN]))}{more}"


def _short(text: str) -> str:
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def accept_cells(connection: Connection, dataset: str, cells: Cells, how: str) -> dict[str, Any]:
    """Change the accounts as the owner decided; the content of the event."""
    books = [book for book in tables.every(connection) if book.dataset == dataset]
    if not any(book.analyst == WHOLE for book in books):
        raise NoBudget(dataset)
    last = latest(connection, dataset)
    known = None if last is None else last.body.get("cells")
    if how == UNCHANGED:
        _refuse_changed(connection, dataset, known, cells, any_charge=last is not None)
    else:
        _count_everywhere(connection, dataset)
    return {
        "dataset": dataset,
        "analyst": None,
        "cells": cells.fingerprint,
        "naming": cells.parts,
        "how": how,
        "before": known,
    }


def _refuse_changed(
    connection: Connection, dataset: str, known: str | None, cells: Cells, *, any_charge: bool
) -> None:
    """Raise if the declaration visibly changed in more than where its rows are."""
    if known is None:
        if any_charge:
            return
        raise UnsoundRequest(
            f"nothing was ever charged to dataset {dataset!r}; there is nothing to accept",
            field="dataset",
            reason="never charged",
        )
    before = named(connection, dataset, known)
    found = [
        difference
        for difference in differences(before or {}, cells.parts)
        if before is None or difference.part.split(" ")[0] not in MOVED
    ]
    if found:
        raise UnsoundRequest(
            f"the declaration of {dataset!r} is not unchanged: {'; '.join(map(str, found))}. Put it"
            " back, or accept that all earlier releases count on every row",
            field="dataset",
            reason="changed",
            given=tuple(difference.part for difference in found),
        )


def _count_everywhere(connection: Connection, dataset: str) -> None:
    """Merge the cells of a dataset's accounts; all accounts are rewritten, with their digests."""
    books = replayed(connection)
    if tables.root_of(books.books.values()) != chain.totals(connection).root:
        raise edited()
    for book in books.books.values():
        if book.dataset == dataset:
            book.everywhere()
    tables.rebuild(connection, books)


SAME = {"path": "the same file", "bytes": "a file with the same bytes", "table": "the same table"}
SAME |= {"content": "rows of the same entities at the same places in the order"}

_BY_STATE = Statement(
    f"SELECT max(seq) AS seq FROM {EVENTS} WHERE question = :state AND kind = 'source'"
)
_RENAMED = Statement(
    f"SELECT max(seq) AS seq FROM {EVENTS} WHERE dataset = :named AND kind = 'cells'"
)
_OTHERS = chain.events_where("kind = 'source'")
_SEPARATED = chain.events_where("kind = 'separate'")


def state(dataset: str, data: str) -> str:
    """What one state of the data of a dataset is filed under."""
    return sha256(encode_json(["source", dataset, data]))


def is_known(connection: Connection, dataset: str, data: str) -> bool:
    """Whether this state of the data was compared with all others before.

    Marks name the columns that a dataset is about. Where its cells were named anew since, these may
    be others, and it is compared again.
    """
    filed = _BY_STATE.one(connection, {"state": state(dataset, data)}).seq
    renamed = _RENAMED.one(connection, {"named": dataset}).seq
    return filed is not None and (renamed is None or renamed < filed)


def refuse_twins(connection: Connection, dataset: str, marks: Iterable[str]) -> None:
    """Raise if another dataset has one of ``marks`` and the owner has not accepted that."""
    mine = set(marks)
    if not mine:
        return
    keys, apart = {_key(mark) for mark in mine}, separated(connection, dataset)
    unknown: str | None = None
    for row in _OTHERS.stream(connection, {}):
        if row.dataset == dataset or row.dataset in apart:
            continue
        theirs = chain.read(row).body["marks"]
        shared = mine.intersection(theirs)
        if shared:
            kinds = [kind for kind in SAME if any(m.startswith(f"{kind} ") for m in shared)]
            raise SameRows(dataset, row.dataset, SAME[kinds[0]] if kinds else "the same rows")
        if keys.isdisjoint(map(_key, theirs)):
            unknown = unknown or row.dataset
    if unknown is not None:
        raise SameRows(dataset, unknown, None)


def _key(mark: str) -> str:
    """The id of the key that a mark was made with."""
    return mark.rpartition(" ")[2].rpartition(":")[0]


def separated(connection: Connection, dataset: str) -> set[str]:
    """The datasets that an owner decided to count separately from this one."""
    pairs = [chain.read(row).body for row in _SEPARATED.all(connection, {})]
    return {
        other
        for pair in pairs
        for one, other in ((pair["dataset"], pair["other"]), (pair["other"], pair["dataset"]))
        if one == dataset
    }


def marks_body(dataset: str, data: str, marks: Iterable[str]) -> Mapping[str, Any]:
    """The event that files the marks of one state of the data."""
    return {
        "dataset": dataset,
        "analyst": None,
        "question": state(dataset, data),
        "marks": sorted(marks),
    }
