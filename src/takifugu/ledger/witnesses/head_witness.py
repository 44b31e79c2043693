"""A witness of the head: the last event, recorded durably in a second place.

A chain of hashes shows every change but one: an older copy that is put back is a sound chain, and
the budget that was spent since would be available again. So the number and hash of the last event
are kept in a second place: by default a file in the user's state folder, or a file, database or
server that the owner names. The ledger is compared with that record when it is opened, whenever it
is read for a plan, and before anything is written.

The order is always: commit, record, acknowledge. A crash in between leaves the record behind the
ledger. That does no harm, since the recorded event is still there, and the record is brought
forward later: at the latest before somebody is shown an answer, or given a receipt, that another
process wrote and did not record. Otherwise the answer could be lost with an older copy that nobody
notices, and drawn again under its charge. This holds for single answers, for the events of a
history and for an export, also where the ledger was opened read-only. If the event cannot be
recorded, the answer is not shown.

A ledger that is only inspected brings its record forward likewise, but makes none: one that has no
record, that lacks what was recorded or that is damaged is shown as it is. Since a record may be
removed, a ledger also states that it has one: if the record is missing then, nothing is released
until the owner begins a new one, which is an event. A backup is a ledger, not an answer that is
shown. Of several processes that record, a late one finds a later event, checks that its own ledger
has it, and leaves it.

Whoever can write both places can set both back; keep the witness where the ledger's backups do not
reach, and on a server where those who write the ledger cannot set it back.
"""

import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from takifugu.errors import LedgerDamaged, LedgerSetBack
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.storage.database import (
    Connection,
    Store,
    insert,
    update,
)
from takifugu.ledger.storage.schema import EVENTS, WITNESSES, create_table, select

IDENTITY = re.compile(r"[0-9a-f]{32}")


class LostWitness(UserWarning):
    """A ledger with a history never had a witness, as far as it records; it gets one now."""


class HeadWitness(Protocol):
    """A second place that remembers the head of ledgers: `FileWitness` or `DatabaseWitness`."""

    name: str

    def read(self, ledger: str, /) -> Anchor | None:
        """The event that was recorded last; None if none was."""

    def record(self, ledger: str, event: Anchor, seen: Anchor | None, /) -> Anchor | None:
        """Record ``event``, durably, if the record still is what was ``seen``.

        Returns:
            What is recorded now: ``event``, or what others have recorded since it was ``seen``.
        """

    def close(self) -> None:
        """Release the connections, if there are any."""


_HASH_AT = select(EVENTS, "hash", where="seq = :which")
_LOSSES = select(EVENTS, "seq", where="kind = 'loss'")


class Guard:
    """Compares a ledger with its witness.

    Attributes:
        witness: None if the owner chose to have none: every event then says so.
        lenient: Whether a ledger that was set back may be inspected; nothing is written to it then.
    """

    def __init__(
        self, witness: HeadWitness | None, name: str, *, writes: bool, lenient: bool
    ) -> None:
        self.witness, self.lenient = witness, lenient
        self._name, self._writes = name, writes
        self.ledger = ""
        self._warned = False

    def recorded(self) -> Anchor | None:
        """What is recorded now. Read it before the ledger: it never runs ahead of it."""
        if self.witness is None or not self.ledger:
            return None
        return self.witness.read(self.ledger)

    def begin(self, connection: Connection) -> None:
        """Before anything is written: lock the chain and compare."""
        connection.unwitnessed = self.witness is None
        if self.ledger and self.witness is not None:
            chain.head(connection, lock=True)
            recorded = self.recorded()
            self.compare(connection, recorded)
            connection.witnessed = recorded

    def compare(self, connection: Connection, recorded: Anchor | None) -> None:
        """Refuse a ledger that lacks the event that was ``recorded``."""
        if self.lenient or self.witness is None:
            return
        if recorded is None:
            self._refuse_missing_record(connection)
        elif not holds(connection, recorded):
            raise self.refusal(connection, recorded)

    def unrecorded(self, connection: Connection) -> Anchor | None:
        """The head, if an event is to be shown that could be lost unnoticed; None otherwise."""
        shown, recorded = connection.shown, connection.witnessed
        if not shown or self.witness is None:
            return None
        if self.lenient and not _follows(connection, recorded):
            return None
        if recorded is not None and recorded.seq >= shown and _has(connection, recorded):
            return None
        return chain.head(connection).anchor

    def refusal(self, connection: Connection, recorded: Anchor) -> LedgerSetBack:
        """The error for a ledger that lacks the event that was ``recorded``."""
        last = chain.head(connection)
        older = last.seq < recorded.seq
        state = (
            f"ends at event {last.seq} but its witness has seen event {recorded.seq}: it is an"
            " older copy"
            if older
            else f"has another event {recorded.seq} than its witness has seen: it is another"
            " history"
        )
        where = self.witness.name if self.witness else ""
        return LedgerSetBack(
            f"ledger {self._name!r} {state} (witness: {where}); nothing was released. Restore the"
            " newer copy; if it is lost, the owner may run `takifugu ledger accept-loss`, which"
            " counts the budget as spent",
            reason="older" if older else "another history",
            event=recorded.seq,
        )

    def _refuse_missing_record(self, connection: Connection) -> None:
        last = chain.head(connection)
        if last.seq < 2 or self.witness is None:  # just made, and maybe not recorded yet
            return
        if chain.is_witnessed(connection):
            if self.recorded() is None:  # nor did another process record it just now
                raise self._missing()
        elif not self._warned:
            self._warned = True
            later = "the next charge, or the next answer that is shown, makes a new one"
            done = "a new one is made" if self._writes else later
            warnings.warn(
                f"ledger {self._name!r} has {last.seq} events but no witness in"
                f" {self.witness.name}: {done}. If this user has opened the ledger before, make"
                " sure that it is not an older copy",
                LostWitness,
                stacklevel=2,
            )

    def _missing(self) -> LedgerSetBack:
        where = self.witness.name if self.witness else ""
        return LedgerSetBack(
            f"ledger {self._name!r} records that it has a witness, and there is no record of it in"
            f" {where}; nothing was released. Put that place back (in a container: a volume for the"
            " state folder, $XDG_STATE_HOME). If it is lost, or the witness is a new one, make sure"
            " that the ledger is not an older copy; then the owner may run `takifugu ledger"
            " begin-witness`",
            reason="witness missing",
        )

    def advance(
        self,
        event: Anchor,
        seen: Anchor | None,
        reading: Callable[[], AbstractContextManager[Connection]],
    ) -> None:
        """After a commit: record ``event``, or check that a later one of this ledger is there."""
        if self.witness is None or not self.ledger:
            return
        while True:
            now = self.witness.record(self.ledger, event, seen)
            if now == event:
                return
            if now is not None:
                with reading() as connection:
                    if not holds(connection, now):
                        raise self.refusal(connection, now)
                if now.seq > event.seq:
                    return
            seen = now


def holds(connection: Connection, recorded: Anchor) -> bool:
    """Whether the chain has the event that was ``recorded``, or accepted its loss."""
    return _has(connection, recorded) or _accepted(connection, recorded)


def _follows(connection: Connection, recorded: Anchor | None) -> bool:
    """Whether a ledger, which may be damaged, goes on from what was ``recorded``."""
    try:
        return recorded is not None and holds(connection, recorded)
    except LedgerDamaged:
        return False


def _has(connection: Connection, recorded: Anchor) -> bool:
    """Whether the chain has the event that was ``recorded``."""
    last = chain.head(connection)
    if last.anchor == recorded:
        return True
    if last.seq > recorded.seq:
        row = _HASH_AT.one(connection, {"which": recorded.seq})
        if row is not None and row.hash == recorded.hash:
            return chain.one(connection, recorded.seq).hash == recorded.hash
    return False


def _accepted(connection: Connection, recorded: Anchor) -> bool:
    """Whether a later decision of the owner gave up the history that was ``recorded``."""
    lost = {"seq": recorded.seq, "hash": recorded.hash}
    decisions = (chain.one(connection, row.seq) for row in _LOSSES.all(connection, {}))
    return any(event.body.get("lost") == lost for event in decisions)


def identity_in(first: Event) -> str:
    """The name that a ledger was given when it was made, in its first event; copies have it too."""
    name = first.body.get("ledger")
    if not isinstance(name, str) or not IDENTITY.fullmatch(name):
        raise LedgerDamaged(
            "the first event does not name the ledger; restore a copy", reason="unreadable", event=1
        )
    return name


_READ, _LOCKED = (
    select(WITNESSES, "seq", "hash", where="ledger = :whose", lock=lock) for lock in (False, True)
)
_BEGIN = insert(WITNESSES, "ledger", "seq", "hash")
_MOVE = update(WITNESSES, "seq", "hash", where="ledger = :whose")


class DatabaseWitness:
    """A row for each ledger in a database of its own."""

    def __init__(self, store: Store) -> None:
        self._store, self.name, self._ready = store, store.name, False

    def read(self, ledger: str) -> Anchor | None:
        """The event that was recorded last."""
        self._make()
        with self._store.reading() as connection:
            row = _READ.one(connection, {"whose": ledger})
        return None if row is None else Anchor(row.seq, row.hash)

    def record(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Record ``event`` unless others have recorded something since."""
        self._make()
        with self._store.writing() as connection:
            row = _LOCKED.one(connection, {"whose": ledger})
            now = None if row is None else Anchor(row.seq, row.hash)
            if now == event or now != seen:
                return now
            if now is None:
                _BEGIN.run(connection, {"ledger": ledger, "seq": event.seq, "hash": event.hash})
            else:
                _MOVE.run(connection, {"whose": ledger, "seq": event.seq, "hash": event.hash})
        return event

    def close(self) -> None:
        """Release the connections."""
        self._store.close()

    def _make(self) -> None:
        if not self._ready:
            with self._store.writing() as connection:
                self._store.only_one(connection)
                create_table(connection, WITNESSES, if_needed=True)
            self._ready = True
