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

The data of a dataset has states, numbered as they are seen: contents that differ from those seen
last are the next state, also if they equal an earlier one. An answer belongs to its state. If
contents alone identified it, the price of a plan, which is free, would tell an analyst whether
protected cells are what they were on an earlier day. That they are what they were when somebody
last looked is seen: the same query is then free.

Costs by value are about names of values as well: which raw cells are called ``other``, or counted
as 2. The list and the map of labels are parts of what names cells; bounds, steps, and whether the
priors know values by name are recorded beside them (`Cells.values`), and matter once something was
charged by value. If the owner accepts a change of either, all earlier costs count as their scalar
(`frontier.regardless_of_values` proves why that is enough). Parts that say where a row is,
and nothing of what its protected cells hold, leave costs by value as they are. Until the owner
decides, nothing is charged: all charges by value since the last such decision have one reading,
that of the last event.

Versions that recorded no `Cells.values` went on counting costs by value through a change of labels.
Where an event of theirs renamed values, the owner has to accept once more.

Two datasets with the same rows have two budgets, and a row then loses both. So the first charge on
each state of the data stores marks of where its rows are and what they hold (see `keys`), and a
dataset that shares a mark with another one is refused until its owner decides to count them
separately. So is one whose marks cannot be compared, because they were made with two keys. Edited
copies and parts of a table are not recognised. Other ledgers of the same user are, by the state
folder: `takifugu.ledger.witnesses.state_folder`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from takifugu.errors import NoBudget, SameRows, UnsoundRequest
from takifugu.ledger.account import AS_SCALARS, AS_SUMS, BY_VALUE, WHOLE, on_every_entry
from takifugu.ledger.canonical_text import encode_json, sha256
from takifugu.ledger.charge_values import Cells
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.events.replay import replayed
from takifugu.ledger.frontier import Frontier
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection, Statement
from takifugu.ledger.storage.digest_tree import edited
from takifugu.ledger.storage.schema import EVENTS, OPTIONAL_NUMBER, last_event

MAX_LISTED_KEYS = 5  # keys of a list that differ, in a message
MAX_SIDE_LETTERS = 80  # letters of one side of a difference
EVERYWHERE, UNCHANGED = "everywhere", "unchanged"
PARTS_THAT_MAY_MOVE = (
    "source",
)  # parts that may change while every row keeps its cell, if the owner confirms
PROTECTED = "protected"
KEEP_VALUES = ("entity", "order", "public")  # parts that say nothing of what a cell holds

_NAMING = "dataset = :named AND (kind = 'charge' OR kind = 'reuse' OR kind = 'cells')"
_LATEST = last_event(_NAMING)
_WRITTEN_DOWN = chain.events_where(f"{_NAMING} AND body LIKE :naming", "ORDER BY seq DESC")
_DECISIONS = chain.events_where("dataset = :named AND kind = 'cells'", "ORDER BY seq DESC")
_BY_VALUE = Statement(
    f"SELECT min(seq) AS first, max(seq) AS last FROM {EVENTS} WHERE dataset = :named"
    " AND (kind = 'charge' OR kind = 'reuse') AND body LIKE :metric",
    types={"first": OPTIONAL_NUMBER, "last": OPTIONAL_NUMBER},
)
METRIC = '%"currency":"metric"%'  # in the loss of a charge by value


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
    Names of values count where something was charged by value.
    """
    last = latest(connection, dataset)
    if last is None:
        return True, None
    if last.body.get("cells") is None:
        return False, ()
    return False, tuple(map(str, _changes(connection, last, cells))) or None


def _changes(connection: Connection, last: Event, cells: Cells) -> list[Difference]:
    """How ``cells`` differ from those of the last event that names them."""
    dataset, known, values = last.body["dataset"], last.body["cells"], last.body.get("values", {})
    changes: list[Difference] = []
    if known != cells.fingerprint:
        changes += differences(named(connection, dataset, known) or {}, cells.parts)
    if values != cells.value_parts and has_costs(connection, dataset):
        changes += differences({PROTECTED: values}, {PROTECTED: cells.value_parts})
    renamed = _renamed_under_costs(connection, dataset)
    if renamed is not None:
        was = f"renamed by event {renamed}, which left costs by value as they were,"
        changes.append(Difference(PROTECTED, was, "to be accepted once more"))
    return changes


def has_costs(connection: Connection, dataset: str) -> bool:
    """Whether something was charged by value since costs were last counted as scalars."""
    charged = _BY_VALUE.one(connection, {"named": dataset, "metric": METRIC})
    if charged.last is None:
        return False
    for row in _DECISIONS.all(connection, {"named": dataset}):
        if chain.read(row).body.get("costs") in (AS_SCALARS, AS_SUMS):
            return bool(row.seq < charged.last)
    return True


def _renamed_under_costs(connection: Connection, dataset: str) -> int | None:
    """The event by which an earlier version renamed values and counted costs by value as before."""
    for row in _DECISIONS.all(connection, {"named": dataset}):
        body = chain.read(row).body
        if body["how"] != EVERYWHERE or body.get("costs") == BY_VALUE:
            continue
        if "costs" in body:
            return None  # what came before it counts as scalars
        before = None if body["before"] is None else named(connection, dataset, body["before"])
        if before is None or any(map(_of_values, differences(before, body["naming"]))):
            charged = _BY_VALUE.one(connection, {"named": dataset, "metric": METRIC})
            if charged.first is not None and charged.first < row.seq:
                return int(row.seq)
    return None


def _of_values(difference: Difference) -> bool:
    """Whether a label or a number may stand for other raw cells than before."""
    return difference.part.split(" ")[0] not in KEEP_VALUES


def costs_once_accepted(connection: Connection, dataset: str, cells: Cells) -> str:
    """What becomes of costs by value if the owner accepts ``cells``."""
    last = _last_naming(connection, dataset)
    if last is None:
        return AS_SCALARS
    if _renamed_under_costs(connection, dataset) is not None:
        return AS_SUMS
    changes = _changes(connection, last, cells)
    return AS_SCALARS if any(map(_of_values, changes)) else BY_VALUE


def renames_values(connection: Connection, dataset: str, cells: Cells) -> bool:
    """Whether ``cells`` name protected values otherwise than what was charged by value.

    Other parts of ``cells`` are not compared, so that no table need be open.
    """
    last = _last_naming(connection, dataset)
    changes = () if last is None else _changes(connection, last, cells)
    renamed = any(change.part.startswith(PROTECTED) for change in changes)
    return renamed and has_costs(connection, dataset)


def _last_naming(connection: Connection, dataset: str) -> Event | None:
    """The last event, if it says what names the cells: early charges did not."""
    last = latest(connection, dataset)
    return None if last is None or last.body.get("cells") is None else last


def as_read(
    connection: Connection, dataset: str, totals: Frontier, cells: Cells | None
) -> Frontier:
    """``totals`` under the names that ``cells`` give to protected values, accepted or not."""
    if cells is None or not renames_values(connection, dataset, cells):
        return totals
    return (on_every_entry(totals, costs_once_accepted(connection, dataset, cells)),)


def named(connection: Connection, dataset: str, fingerprint: str) -> Mapping[str, Any] | None:
    """The parts that were written down with ``fingerprint``."""
    for row in _WRITTEN_DOWN.stream(connection, {"named": dataset, "naming": '%"naming":{%'}):
        body = chain.read(row).body
        if body.get("cells") == fingerprint and "naming" in body:
            parts: Mapping[str, Any] = body["naming"]
            return parts
    return None


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Part by part what differs, both sides in words."""
    old, new = dict(_flat(before, "")), dict(_flat(now, ""))
    for part in old | new:
        known, given = old.get(part, _UNDECLARED), new.get(part, _UNDECLARED)
        if _text(known) != _text(given):
            yield Difference(part, *_sides(known, given))


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


def _sides(before: Any, now: Any) -> tuple[str, str]:
    both_lists = isinstance(before, list) and isinstance(now, list)
    if both_lists and len(_text(before + now)) > MAX_SIDE_LETTERS:
        return _without(before, now), _without(now, before)
    return _short(_text(before)), _short(_text(now))


def _without(entries: list[Any], others: list[Any]) -> str:
    """A long list by what it has and ``others`` has not."""
    there = set(map(_text, others))
    only = [text for text in map(_text, entries) if text not in there]
    listed = ", ".join(map(_short, only[:MAX_LISTED_KEYS]))
    more = f" and {len(only) - MAX_LISTED_KEYS} more" if len(only) > MAX_LISTED_KEYS else ""
    return f"{len(entries)} entries" + (f" with {listed}{more}" if only else "")


def _short(text: str) -> str:
    return text if len(text) <= MAX_SIDE_LETTERS else f"{text[: MAX_SIDE_LETTERS - 1]}…"


def accept_cells(connection: Connection, dataset: str, cells: Cells, how: str) -> dict[str, Any]:
    """Change the accounts as the owner decided; the content of the event."""
    books = [book for book in tables.every(connection) if book.dataset == dataset]
    if not any(book.analyst == WHOLE for book in books):
        raise NoBudget(dataset)
    last = latest(connection, dataset)
    known = None if last is None else last.body.get("cells")
    content = {
        "dataset": dataset,
        "cells": cells.fingerprint,
        "naming": cells.parts,
        "how": how,
        "before": known,
    }
    if cells.value_parts:
        content["values"] = cells.value_parts
    if how == UNCHANGED:
        _refuse_changed(connection, dataset, last, cells)
        return content
    costs = costs_once_accepted(connection, dataset, cells)
    _count_everywhere(connection, dataset, costs)
    return content | {"costs": costs}


def _refuse_changed(connection: Connection, dataset: str, last: Event | None, cells: Cells) -> None:
    """Raise if the declaration visibly changed in more than where its rows are."""
    if last is None:
        raise UnsoundRequest(
            f"nothing was ever charged to dataset {dataset!r}; there is nothing to accept",
            field="dataset",
            reason="never charged",
        )
    if last.body.get("cells") is None:
        return
    known_parts = named(connection, dataset, last.body["cells"]) is not None
    changes = [
        difference
        for difference in _changes(connection, last, cells)
        if not known_parts or difference.part.split(" ")[0] not in PARTS_THAT_MAY_MOVE
    ]
    if changes:
        raise UnsoundRequest(
            f"the declaration of {dataset!r} is not unchanged: {'; '.join(map(str, changes))}. Put"
            " it back, or accept that all earlier releases count on every row",
            field="dataset",
            reason="changed",
            given=tuple(difference.part for difference in changes),
        )


def _count_everywhere(connection: Connection, dataset: str, costs: str) -> None:
    """Merge the cells of a dataset's accounts; all accounts are rewritten, with their digests."""
    books = replayed(connection)
    if tables.root_of(books.books.values()) != chain.totals(connection).root:
        raise edited()
    for book in books.books.values():
        if book.dataset == dataset:
            book.everywhere(costs)
    tables.rebuild(connection, books)


SAME_ROWS_WORDS = {
    "path": "the same file",
    "bytes": "a file with the same bytes",
    "table": "the same table",
}
SAME_ROWS_WORDS |= {"content": "rows of the same entities at the same places in the order"}

_BY_STATE = last_event("question = :state AND kind = 'source'")
_STATES = Statement(
    f"SELECT count(*) AS many FROM {EVENTS} WHERE dataset = :named AND kind = 'state'",
    types={"many": (int,)},
)
_OTHERS = chain.events_where("kind = 'source'")
_SEPARATED = chain.events_where("kind = 'separate'")


def filed_under(dataset: str, data: str) -> str:
    """What one state of the data of a dataset is filed under."""
    return sha256(encode_json(["source", dataset, data]))


@dataclass(frozen=True)
class DataState:
    """One state of the data of a dataset.

    Attributes:
        data: What charges on it record: ``MARK#NUMBER``. In ledgers that were written before states
            had numbers the last one is known by its mark alone.
        number: Its number, if it is the next one; 0 if it is in the ledger.
    """

    data: str
    number: int = 0

    @property
    def is_current(self) -> bool:
        """Whether it is the last one seen, and not the next."""
        return not self.number


def state_of(connection: Connection, dataset: str, mark: str) -> DataState:
    """The state of data with this mark: the last one seen, or the next."""
    events = [chain.last_of(connection, kind, dataset) for kind in ("charge", "reuse", "state")]
    last = max(filter(None, events), key=lambda event: event.seq, default=None)
    if last is not None and str(last.body["data"]).partition("#")[0] == mark:
        return DataState(str(last.body["data"]))
    number = _STATES.one(connection, {"named": dataset}).many + 1
    return DataState(f"{mark}#{number}", number)


def is_known(connection: Connection, dataset: str, data: str) -> bool:
    """Whether this state of the data was compared with all others before.

    Marks name the columns that a dataset is about. Where its cells were named anew since, these may
    be others, and it is compared again.
    """
    filed = _BY_STATE.one(connection, {"state": filed_under(dataset, data)}).seq
    renamed = chain.last_of(connection, "cells", dataset)
    return filed is not None and (renamed is None or renamed.seq < filed)


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
            kinds = [
                kind for kind in SAME_ROWS_WORDS if any(m.startswith(f"{kind} ") for m in shared)
            ]
            raise SameRows(
                dataset, row.dataset, SAME_ROWS_WORDS[kinds[0]] if kinds else "the same rows"
            )
        if keys.isdisjoint(map(_key, theirs)):
            unknown = unknown or row.dataset
    if unknown is not None:
        raise SameRows(dataset, unknown, None)


def _key(mark: str) -> str:
    """The id of the key that a mark was made with."""
    return mark.rpartition(" ")[2].rpartition(":")[0]


def separated(connection: Connection, dataset: str) -> set[str]:
    """The datasets that an owner decided to count separately from this one."""
    decisions = (chain.read(row).body for row in _SEPARATED.all(connection, {}))
    pairs = [{body["dataset"], body["other"]} for body in decisions]
    return {name for pair in pairs if dataset in pair for name in pair - {dataset}}


def marks_body(dataset: str, data: str, marks: Iterable[str]) -> Mapping[str, Any]:
    """The event that files the marks of one state of the data."""
    return {
        "dataset": dataset,
        "analyst": None,
        "question": filed_under(dataset, data),
        "marks": sorted(marks),
    }
