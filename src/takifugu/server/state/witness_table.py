"""Heads of ledgers that are kept elsewhere: this server is their witness.

See `takifugu.ledger.witnesses.head_witness`: the last event of a ledger, recorded in a second
place, shows an older copy that was put back. Whoever first records a ledger here is the only one
who can go on doing so, and only to later events: the token lies beside the ledger, and whoever can
put back an older copy of that could otherwise put back its record, too. History that is lost for
good (`takifugu ledger accept-loss`) needs an owner of this server, who has it forget the head
(`takifugu witness forget`); what was forgotten, and by whom, is kept.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.statement import Statement, askable, insert, update
from takifugu.server.state.state_errors import StateConflict
from takifugu.server.state.state_store import StateStore, moment_of, stamp
from takifugu.server.state.state_tables import FORGOTTEN, HEADS


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
_DROP = Statement(f"DELETE FROM {HEADS} WHERE ledger = :whose")
_LAST = Statement(f"SELECT COALESCE(MAX(id), 0) AS last FROM {FORGOTTEN}")
_FORGET = insert(FORGOTTEN, "id", "ledger", "seq", "hash", "owner", "forgotten_by", "at")
_GONE = Statement(f"SELECT ledger, seq, hash, owner, forgotten_by, at FROM {FORGOTTEN} ORDER BY id")


@dataclass(frozen=True)
class ForgottenHead:
    """A head that an owner had this server forget.

    Attributes:
        ledger: The ledger's own name.
        event: The event that was recorded last.
        owner: The name of the token that had recorded it.
        by: Who had it forgotten.
        at: When.
    """

    ledger: str
    event: Anchor
    owner: str
    by: str
    at: datetime


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

        Raises:
            StateConflict: Somebody else records this ledger, or ``event`` is not a later one.
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
                    raise StateConflict(
                        f"event {event.seq} is not later than event {now.seq}, which is recorded:"
                        " the ledger was put back. If its history is lost for good, have an owner"
                        f" of this server run `takifugu witness forget {ledger}`",
                        field="event",
                        reason="earlier",
                    )
                _MOVE.run(connection, {"whose": ledger} | values)
        return event

    def forget_head(self, ledger: str, by: str) -> ForgottenHead:
        """Forget the head of a ledger, so that another history of it can be recorded from now on.

        Raises:
            StateConflict: None is recorded.
        """
        with self._alone() as connection:
            row = _LOCKED.one(connection, {"whose": ledger}) if askable(ledger) else None
            if row is None:
                raise StateConflict(
                    f"no head of ledger {ledger!r:.80} is recorded here; `takifugu witness list`"
                    " names those that are",
                    field="ledger",
                    reason="unknown",
                )
            known, at = _head(row), self.now()
            values = {"ledger": ledger, "seq": row.seq, "hash": row.hash, "owner": row.owner}
            number = _LAST.one(connection, {}).last + 1
            _FORGET.run(connection, values | {"id": number, "forgotten_by": by, "at": stamp(at)})
            _DROP.run(connection, {"whose": ledger})
        return ForgottenHead(ledger, known.event, known.owner, by, moment_of(stamp(at)))

    def forgotten_heads(self) -> list[ForgottenHead]:
        """Every head that was forgotten, in order."""
        with self._store.unguarded() as connection:
            return [
                ForgottenHead(
                    row.ledger,
                    Anchor(row.seq, row.hash),
                    row.owner,
                    row.forgotten_by,
                    moment_of(row.at),
                )
                for row in _GONE.all(connection, {})
            ]

    def witnessed_heads(self) -> list[WitnessedHead]:
        """Every ledger whose head is recorded here."""
        with self._store.unguarded() as connection:
            return [_head(row) for row in _ALL.all(connection, {})]


def _head(row: Any) -> WitnessedHead:
    return WitnessedHead(row.ledger, Anchor(row.seq, row.hash), row.owner, moment_of(row.at))


def _refuse_other(known: WitnessedHead, by: str) -> None:
    if known.owner != by:
        raise StateConflict(
            "the head of this ledger is recorded with the token of somebody else; use theirs",
            field="ledger",
            reason="another person",
        )
