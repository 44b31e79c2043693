"""What a server remembers beside the ledger: tokens, browser sessions, approvals, results.

A file ``takifugu.server`` beside the project file, readable by its owner alone; or, where the
ledger is in PostgreSQL, tables beside the ledger's. Any number of processes and threads may use it
at once: what one of them revokes, none of the others accepts.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu.errors import InvalidFile
from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.database import (
    LOCK_WAIT_SECONDS,
    Statement,
    Store,
    address_of,
    askable,
    insert,
    update,
)
from takifugu.server.state.access_tokens import AccessTable, BrowserSession, NewToken, TokenRecord
from takifugu.server.state.approval_requests import Approval, ApprovalRequest, ApprovalTable
from takifugu.server.state.state_store import (
    FORGOTTEN,
    HEADS,
    RESULTS,
    InvalidResult,
    StateConflict,
    StateStore,
    json_text,
    moment_of,
    prepare_tables,
    stamp,
)

if TYPE_CHECKING:
    from takifugu.project.project import Project

_ADD = insert(RESULTS, "charge", "hash", "dataset", "analyst", "document", "kept")
_KEPT = (
    f"SELECT charge, hash, dataset, analyst, document, kept FROM {RESULTS}"
    " WHERE charge = :charge AND hash = :hash"
)
_FIRST = Statement(f"{_KEPT} ORDER BY kept, analyst")
_OF = Statement(f"{_KEPT} AND analyst = :analyst")
_WHOSE = f"SELECT charge, hash, analyst FROM {RESULTS}"  # the documents are not read
_NOBODY = ""  # in place of an analyst
_HEAD = f"SELECT ledger, seq, hash, owner, at FROM {HEADS} WHERE ledger = :whose"
_READ, _LOCKED = Statement(_HEAD), Statement(_HEAD, lock=True)
_ALL = Statement(f"SELECT ledger, seq, hash, owner, at FROM {HEADS} ORDER BY ledger")
_BEGIN = insert(HEADS, "ledger", "seq", "hash", "owner", "at")
_MOVE = update(HEADS, "seq", "hash", "at", where="ledger = :whose")
_DROP = Statement(f"DELETE FROM {HEADS} WHERE ledger = :whose")
_LAST = Statement(f"SELECT COALESCE(MAX(id), 0) AS last FROM {FORGOTTEN}")
_FORGET = insert(FORGOTTEN, "id", "ledger", "seq", "hash", "owner", "forgotten_by", "at")
_GONE = Statement(f"SELECT ledger, seq, hash, owner, forgotten_by, at FROM {FORGOTTEN} ORDER BY id")
STATE = "takifugu.server"


@dataclass(frozen=True)
class KeptResult:
    """A result that was released.

    Attributes:
        charge: The ledger's event that paid for it.
        dataset: The dataset.
        analyst: Whose it is; None if nobody was named.
        document: The result.
        kept: When it was stored.
    """

    charge: Anchor
    dataset: str
    analyst: str | None
    document: Mapping[str, Any]
    kept: datetime


class ResultTable(StateStore):
    """The results of a server."""

    def keep_result(
        self, charge: Anchor, dataset: str, analyst: str | None, document: Mapping[str, Any]
    ) -> KeptResult:
        """Store what an analyst was given of a charge; if there is something already, it stays."""
        try:
            text = json_text(document)
        except (TypeError, ValueError):
            raise InvalidResult(
                "document", given="cannot be written as JSON", needed="be a JSON object"
            ) from None
        values = {"charge": charge.seq, "hash": charge.hash, "analyst": analyst or _NOBODY}
        with self._alone() as connection:
            row = _OF.one(connection, values)
            if row is None:
                more = {"dataset": dataset, "document": text, "kept": stamp(self.now())}
                _ADD.run(connection, values | more)
                row = _OF.one(connection, values)
        return _result(row)

    def kept_charges(
        self, wanted: Sequence[tuple[Anchor, str | None]]
    ) -> set[tuple[Anchor, str | None]]:
        """Of these charges and analysts, those that something is kept of; no document is read.

        As for `result`, an analyst of None stands for whoever has something.
        """
        if not wanted:
            return set()
        values = {f"c{n}": seq for n, seq in enumerate({charge.seq for charge, _ in wanted})}
        among = Statement(f"{_WHOSE} WHERE charge IN ({', '.join(f':{name}' for name in values)})")
        with self._store.unguarded() as connection:
            rows = among.all(connection, values)
        charges = set[tuple[Anchor, str | None]]()
        for row in rows:
            charge = Anchor(row.charge, row.hash)
            charges |= {(charge, row.analyst), (charge, None)}
        return charges.intersection(wanted)

    def result(self, charge: Anchor, analyst: str | None = None) -> KeptResult | None:
        """What ``analyst`` was given of a charge, or whoever was first; None for nothing."""
        values = {"charge": charge.seq, "hash": charge.hash}
        with self._store.unguarded() as connection:
            if analyst is None:
                row = _FIRST.one(connection, values)
            else:
                row = _OF.one(connection, values | {"analyst": analyst})
        return None if row is None else _result(row)


def charge_of(document: Mapping[str, Any]) -> Anchor:
    """The charge that paid for a result, by its document."""
    charge: Mapping[str, Any] = document["provenance"]["charge"]
    return Anchor(charge["event"], charge["hash"])


def _result(row: Any) -> KeptResult:
    document = json.loads(row.document)
    charge = Anchor(row.charge, row.hash)
    return KeptResult(charge, row.dataset, row.analyst or None, document, moment_of(row.kept))


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


@dataclass(frozen=True)
class ForgottenHead(WitnessedHead):
    """A head that an owner had this server forget, ``at`` a time.

    Attributes:
        by: Who had it forgotten.
    """

    by: str


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
            head = replace(_head(row), at=self.now())
            values = {"ledger": ledger, "seq": row.seq, "hash": row.hash, "owner": row.owner}
            values |= {"id": _LAST.one(connection, {}).last + 1, "at": stamp(head.at)}
            _FORGET.run(connection, values | {"forgotten_by": by})
            _DROP.run(connection, {"whose": ledger})
        return ForgottenHead(**vars(head), by=by)

    def forgotten_heads(self) -> list[ForgottenHead]:
        """Every head that was forgotten, in order."""
        with self._store.unguarded() as connection:
            rows = _GONE.all(connection, {})
        return [ForgottenHead(**vars(_head(row)), by=row.forgotten_by) for row in rows]

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


__all__ = [
    "Approval",
    "ApprovalRequest",
    "BrowserSession",
    "KeptResult",
    "NewToken",
    "ServerState",
    "TokenRecord",
    "open_state",
    "state_at",
]


class ServerState(AccessTable, ApprovalTable, ResultTable, WitnessTable):
    """The state of a server. Every method is one transaction."""


def _clock() -> datetime:
    return datetime.now(UTC)


def open_state(
    project: "Project", *, create: bool = True, clock: Callable[[], datetime] = _clock
) -> ServerState:
    """The state of the server of a project, made where there is none unless not to ``create``."""
    address = project.ledger_place
    if address_of(address).sqlite:
        address = project.folder / STATE
    return state_at(address, create=create, clock=clock)


def state_at(
    address: str | Path, *, create: bool = True, clock: Callable[[], datetime] = _clock
) -> ServerState:
    """The state in a file, or in the tables of a PostgreSQL database."""
    store = Store(address, read_only=False, wait=LOCK_WAIT_SECONDS)
    try:
        if not prepare_tables(store, create=create):
            raise InvalidFile(
                "server",
                given=f"has no state at {store.name}",
                needed="have one: make a token with `takifugu token create`",
                reason="missing",
            )
    except BaseException:
        store.close()
        raise
    return ServerState(store, clock)
