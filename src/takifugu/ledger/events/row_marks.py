"""The same rows under two names, recognised within a ledger by keyed marks.

Two datasets with the same rows have two budgets, and a row then loses both. So the first charge on
each state of the data stores marks of where its rows are and what they hold (see `keys`), and a
dataset that shares a mark with another one is refused until its owner decides to count them
separately. So is one whose marks cannot be compared, because they were made with two keys. Edited
copies, parts of a table and other ledgers are not recognised.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, literal_column, select

from takifugu.errors import SameRows
from takifugu.ledger.canonical_text import encode_json, sha256
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage.schema import EVENTS
from takifugu.ledger.storage.statement import Statement

SAME = {"path": "the same file", "bytes": "a file with the same bytes", "table": "the same table"}
SAME |= {"content": "rows of the same entities at the same places in the order"}

_BY_STATE = Statement(
    select(EVENTS.c.seq).where(
        EVENTS.c.question == bindparam("state"), EVENTS.c.kind == literal_column("'source'")
    )
)
_OTHERS = select(EVENTS).where(EVENTS.c.kind == literal_column("'source'")).order_by(EVENTS.c.seq)


def state(dataset: str, data: str) -> str:
    """What one state of the data of a dataset is filed under."""
    return sha256(encode_json(["source", dataset, data]))


def is_known(connection: Connection, dataset: str, data: str) -> bool:
    """Whether this state of the data was compared with all others before."""
    return _BY_STATE.one(connection, {"state": state(dataset, data)}) is not None


def refuse_twins(connection: Connection, dataset: str, marks: Iterable[str]) -> None:
    """Raise if another dataset has one of ``marks`` and the owner has not accepted that."""
    mine = set(marks)
    if not mine:
        return
    keys, apart = {_key(mark) for mark in mine}, separated(connection, dataset)
    unknown: str | None = None
    for row in connection.execute(_OTHERS):
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
    decided = select(EVENTS).where(EVENTS.c.kind == literal_column("'separate'"))
    pairs = [chain.read(row).body for row in connection.execute(decided)]
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
