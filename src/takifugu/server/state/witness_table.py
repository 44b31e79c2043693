"""Heads of ledgers that are kept elsewhere: this server is their witness.

See `takifugu.ledger.witnesses.head_witness`: the last event of a ledger, recorded in a second
place, shows an older copy that was put back. Whoever first records a ledger here is the only one
who can go on doing so. That an earlier event takes the place of a later one is possible, because
history can be lost for good (`takifugu ledger accept-loss`); each time is kept, and counted.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.statement import Connection, Statement, insert, update
from takifugu.server.state.state_errors import StateConflict
from takifugu.server.state.state_store import StateStore, moment_of, stamp
from takifugu.server.state.state_tables import HEADS, RETURNS


@dataclass(frozen=True)
class WitnessedHead:
    """The head of a ledger, as it was recorded last.

    Attributes:
        ledger: The ledger's own name.
        event: The event that was recorded last.
        owner: The name of the token that records it.
        at: When it was recorded.
    """

    ledger: str
    event: Anchor
    owner: str
    at: datetime


_HEAD = f"SELECT ledger, seq, hash, owner, at FROM {HEADS} WHERE ledger = :whose"
_READ, _LOCKED = Statement(_HEAD), Statement(_HEAD, lock=True)
_ALL = Statement(f"SELECT ledger, seq, hash, owner, at FROM {HEADS} ORDER BY ledger")
_BEGIN = insert(HEADS, "ledger", "seq", "hash", "owner", "at")
_MOVE = update(HEADS, "seq", "hash", "at", where="ledger = :whose")
_LAST = Statement(f"SELECT COALESCE(MAX(id), 0) AS last FROM {RETURNS}")
_RETURNED = insert(RETURNS, "id", "ledger", "seq", "hash", "later_seq", "later_hash", "at")
_COUNT = Statement(f"SELECT COUNT(*) AS many FROM {RETURNS} WHERE ledger = :whose")


class WitnessTable(StateStore):
    """The heads of other ledgers."""

    def witnessed(self, ledger: str, by: str) -> Anchor | None:
        """The event of a ledger that was recorded last; None if none was."""
        with self._store.unguarded() as connection:
            row = _READ.one(connection, {"whose": ledger})
        if row is None:
            return None
        _refuse_other(_head(row), by)
        return Anchor(row.seq, row.hash)

    def record_head(
        self, ledger: str, event: Anchor, seen: Anchor | None, by: str
    ) -> Anchor | None:
        """Record ``event``, durably, if the record still is what was ``seen``.

        Returns:
            What is recorded now: ``event``, or what was recorded since.
        """
        with self._alone() as connection:
            row = _LOCKED.one(connection, {"whose": ledger})
            now = None if row is None else Anchor(row.seq, row.hash)
            if row is not None:
                _refuse_other(_head(row), by)
            if now == event or now != seen:
                return now
            values = {"seq": event.seq, "hash": event.hash, "at": stamp(self.now())}
            if now is None:
                _BEGIN.run(connection, {"ledger": ledger, "owner": by} | values)
            else:
                if event.seq <= now.seq:
                    self._note_return(connection, ledger, event, now)
                _MOVE.run(connection, {"whose": ledger} | values)
        return event

    def _note_return(
        self, connection: Connection, ledger: str, event: Anchor, later: Anchor
    ) -> None:
        _RETURNED.run(
            connection,
            {
                "id": _LAST.one(connection, {}).last + 1,
                "ledger": ledger,
                "seq": event.seq,
                "hash": event.hash,
                "later_seq": later.seq,
                "later_hash": later.hash,
                "at": stamp(self.now()),
            },
        )

    def witnessed_heads(self) -> list[WitnessedHead]:
        """Every ledger whose head is recorded here."""
        with self._store.unguarded() as connection:
            return [_head(row) for row in _ALL.all(connection, {})]

    def head_returns(self, ledger: str) -> int:
        """How often an earlier event took the place of a later one, or another of its number."""
        with self._store.unguarded() as connection:
            found: int = _COUNT.one(connection, {"whose": ledger}).many
        return found


def _head(row: Any) -> WitnessedHead:
    return WitnessedHead(row.ledger, Anchor(row.seq, row.hash), row.owner, moment_of(row.at))


def _refuse_other(known: WitnessedHead, by: str) -> None:
    if known.owner != by:
        raise StateConflict(
            "the head of this ledger is recorded with the token of somebody else; use theirs",
            field="ledger",
            reason="another person",
        )
