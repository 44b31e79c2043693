"""The chain of events: each carries the SHA-256 of its own text and of all that came before.

An edit, a deletion, an insertion or a change of order breaks the chain where it happens. Each event
also carries the digest of the totals that it leaves behind (`storage.digest_tree`). Whoever can
write the storage can also put back an old copy, or write a new chain: only a head recorded
elsewhere shows that (a witness, see `witnesses`; an `Anchor`; every receipt is one).
"""

import json
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu.errors import LedgerDamaged
from takifugu.ledger.canonical_text import encode_json, sha256
from takifugu.ledger.storage.database import (
    Connection,
    Statement,
    askable,
    insert,
    update,
)
from takifugu.ledger.storage.digest_tree import EMPTY, Tree, edited
from takifugu.ledger.storage.schema import EVENTS, HEAD, last_event, select

VERSION = 1  # of the form of events
ANSWER = "answer"  # the kind of event whose loss would let a charge be answered twice
BEGUN = "begun"  # of the record of the head in a second place
ROOT = "0" * 64  # what the first event follows
KINDS = (
    *("created", "budget", "partition", "charge", "reuse", "answer", "totals", "loss"),
    *("policy", "accepted"),  # under which prior and secrets a dataset is charged
    *("cells", "source", "separate", "state"),  # what the cells and the rows of a dataset are
    *("access", "approval", "abandoned"),  # who may ask a server; what a second person allowed
    "witness",  # from here on the head is recorded in a second place
)
COPIED = ("kind", "dataset", "analyst", "key", "question", "charge")  # columns found in the body


@dataclass(frozen=True)
class Anchor:
    """The number and hash of one event: recorded elsewhere, it proves that nothing was undone."""

    seq: int
    hash: str


@dataclass(frozen=True)
class Event:
    """One thing that happened, as it was written."""

    seq: int
    kind: str
    at: datetime
    hash: str
    body: Mapping[str, Any]

    @property
    def anchor(self) -> Anchor:
        """What proves that it was written."""
        return Anchor(self.seq, self.hash)


@dataclass(frozen=True)
class Head:
    """The end of the chain: the last event, and the latest time any event has seen."""

    seq: int
    hash: str
    at: str

    @property
    def anchor(self) -> Anchor:
        """The last event."""
        return Anchor(self.seq, self.hash)


def link(previous: str, text: str) -> str:
    """The hash of an event whose canonical JSON is ``text`` and that follows ``previous``."""
    return sha256(f"{previous}\n{text}")


_LAST, _LOCKED = (
    select(HEAD, "seq", "hash", "at", where="id = 1", lock=lock) for lock in (False, True)
)
_BEGIN = insert(HEAD, "id", "seq", "hash", "at")
_MOVE = update(HEAD, "seq", "hash", "at", where="id = 1")
_EVENT = ("seq", "hash", "body", *COPIED)
_ADD = insert(EVENTS, *_EVENT)
_AND_BEFORE = select(EVENTS, *_EVENT, where="seq IN (:which, :before)")
_WITNESSED = last_event("dataset IS NULL AND kind = 'witness'")
_LAST_LOSS = last_event("kind = 'loss'")
_LAST_OF_KIND = {
    kind: last_event(f"dataset = :named AND kind = '{kind}'")
    for kind in ("accepted", "cells", "charge", "reuse", "state")
}


def events_where(condition: str, order: str = "ORDER BY seq") -> Statement:
    """A statement that reads the rows of events for which a condition holds."""
    return select(EVENTS, *_EVENT, where=f"{condition} {order}")


_EVERYTHING = events_where("TRUE")


def matching(
    kinds: Sequence[str] | None, after: int = 0, **columns: str | None
) -> tuple[str, dict[str, Any]]:
    """The condition of events after a number, of these kinds and columns; and its values."""
    values = {name: value for name, value in columns.items() if value is not None}
    conditions = ["seq > :after", *(f"{name} = :{name}" for name in values)]
    if kinds is not None:
        named = {f"kind_{number}": kind for number, kind in enumerate(kinds)}
        conditions.append(f"kind IN ({', '.join(f':{name}' for name in named) or 'NULL'})")
        values |= named
    if not all(map(askable, values.values())):
        return "seq > :after AND FALSE", {"after": after}  # no event has such a name
    return " AND ".join(conditions), {"after": after, **values}


def head(connection: Connection, *, lock: bool = False) -> Head:
    """The end of the chain; with ``lock`` nobody else can add to it until the transaction ends."""
    if connection.head is None or (lock and not connection.locked):
        row = (_LOCKED if lock else _LAST).one(connection, {})
        if row is None:
            raise LedgerDamaged("the ledger has lost its head; restore a copy", reason="head")
        connection.head, connection.locked = Head(row.seq, row.hash, row.at), lock
    return connection.head


def totals(connection: Connection) -> Tree:
    """The digests of all totals, checked against the last event."""
    if connection.tree is None:
        last = head(connection)
        connection.tree = Tree(root=_root(connection, last) if last.seq else EMPTY)
    return connection.tree


_ROOTS: dict[str, str] = {}  # by the hash of an event, which no other event has


def _root(connection: Connection, last: Head) -> str:
    """The digest of all totals in the last event."""
    known = _ROOTS.get(last.hash)
    if known is None:
        event = one(connection, last.seq)
        if event.hash != last.hash:
            raise LedgerDamaged(
                f"event {last.seq} is not the head; restore a copy", reason="head", event=last.seq
            )
        known = str(event.body.get("totals"))
        if len(known) != len(EMPTY):
            raise edited()
    return known


def append(
    connection: Connection,
    kind: str,
    content: Mapping[str, Any],
    now: datetime,
    *,
    dated_back: bool = False,
) -> Event:
    """Write one event after the last one and move the head, under its lock.

    ``content`` is known to be JSON. Totals that the event changes are changed before.

    Events are in the order of the chain, whatever the clock shows. Where the clock went backwards,
    the event records by how much; unless it is ``dated_back``, which has the time of an earlier
    event on purpose.
    """
    last = head(connection, lock=True)
    seq = last.seq + 1
    body: dict[str, Any] = {
        "v": VERSION,
        "seq": seq,
        "kind": kind,
        "at": now.isoformat(),
        **content,
        "totals": totals(connection).save(connection),
    }
    if connection.unwitnessed:
        body["witness"] = "off"
    latest = datetime.fromisoformat(last.at) if last.at else now
    if latest > now and not dated_back:
        body["clock_behind"] = str(latest - now)
    text = encode_json(body)
    hash_ = link(last.hash, text)
    if len(_ROOTS) > 1000:
        _ROOTS.clear()
    _ROOTS[hash_] = body["totals"]
    row = {name: body.get(name) for name in COPIED}
    if kind == "charge":
        row["charge"] = seq
    _ADD.run(connection, {"seq": seq, "hash": hash_, "body": text, **row})
    at = max(latest, now).isoformat()
    _MOVE.run(connection, {"seq": seq, "hash": hash_, "at": at})
    connection.head = Head(seq, hash_, at)
    return Event(seq, kind, now, hash_, body)


def start(connection: Connection) -> None:
    """Begin a chain without events."""
    _BEGIN.run(connection, {"id": 1, "seq": 0, "hash": ROOT, "at": ""})


def one(connection: Connection, seq: int) -> Event:
    """One event, checked against the hash of the one before it; read once in a transaction."""
    if seq in connection.events:
        return connection.events[seq]
    rows = {row.seq: row for row in _AND_BEFORE.all(connection, {"which": seq, "before": seq - 1})}
    row, before = rows.get(seq), rows.get(seq - 1)
    if row is None or (before is None and seq > 1):
        raise LedgerDamaged(
            f"event {seq} or the one before it is missing; restore a copy",
            reason="missing",
            event=seq,
        )
    if row.hash != link(ROOT if before is None else before.hash, row.body):
        raise LedgerDamaged(
            f"event {seq} was changed after it was written; restore a copy",
            reason="edited",
            event=seq,
        )
    event = connection.events[seq] = read(row)
    return event


def show(connection: Connection, seq: int) -> None:
    """Somebody is told of an event once the transaction ends: its witness must know it by then."""
    connection.shown = max(connection.shown, seq)


def show_answers(connection: Connection, events: Iterable[Any]) -> None:
    """`show` the answers among events, or rows of them."""
    for event in events:
        if event.kind == ANSWER:
            show(connection, event.seq)


def read(row: Any) -> Event:
    """An event from its row."""
    try:
        body = json.loads(row.body)
        return Event(row.seq, body["kind"], datetime.fromisoformat(body["at"]), row.hash, body)
    except (ValueError, KeyError, TypeError) as error:
        raise unreadable(row.seq) from error


def unreadable(seq: int) -> LedgerDamaged:
    """The error for an event whose text has no meaning."""
    return LedgerDamaged(
        f"event {seq} cannot be read; restore a copy", reason="unreadable", event=seq
    )


def last_of(connection: Connection, kind: str, dataset: str) -> Event | None:
    """The last event of a kind on ``dataset``, checked; None if there is none."""
    seq = _LAST_OF_KIND[kind].one(connection, {"named": dataset}).seq
    return None if seq is None else one(connection, seq)


def last_loss(connection: Connection) -> int:
    """The last event by which an owner accepted that history was lost; 0 if there is none."""
    return _LAST_LOSS.one(connection, {}).seq or 0


def is_witnessed(connection: Connection) -> bool:
    """Whether the ledger records that its head is kept in a second place."""
    if one(connection, 1).body.get("witness") == BEGUN:
        return True
    return _WITNESSED.one(connection, {}).seq is not None


def rows(connection: Connection) -> Generator[Any]:
    """Every row, in the order of the chain, a few at a time."""
    return _EVERYTHING.stream(connection, {})


def events(connection: Connection) -> Iterator[Event]:
    """Every event, in order."""
    with closing(rows(connection)) as stream:
        yield from map(read, stream)
