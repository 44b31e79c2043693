"""Releases that wait for an owner: asked by one person, decided by another.

What is kept here is the query to release once it may be, and a copy of its decision to list it by.
The decision itself is an event of the ledger, which a charge refers to: the first one that names
the request decides it (`takifugu.server.approvals`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from takifugu.errors import one_of
from takifugu.ledger.canonical_text import canonical_json, check_name, folded, sha256
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.storage.database import Connection, Statement, insert
from takifugu.server.state.state_store import (
    APPROVALS,
    InvalidApproval,
    StateConflict,
    StateStore,
    json_text,
    moment_if_any,
    moment_of,
    stamp,
)

ApprovalState = Literal["pending", "approved", "refused", "withdrawn", "released", "failed"]
Decision = Literal["approved", "refused", "withdrawn"]
STATES: tuple[ApprovalState, ...] = get_args(ApprovalState)
MAX_PAGE = 1000  # of a page
MAX_PENDING = 100  # requests of one analyst that wait
_FIELDS = ("dataset", "analyst", "question", "words", "epsilon", "why")
_STORED_AS_IS = (
    *("id", "state", "decided_by", "note"),
    *("event", "event_hash", "charge", "charge_hash"),
)
_CHANGING = (
    *("state", "decided", "decided_by", "note", "event", "event_hash", "charge", "charge_hash"),
    "problem",
)
_COLUMNS = ("id", *_FIELDS, "asked_under", "options", "plan", "asked", *_CHANGING)
_APPROVAL = f"SELECT {', '.join(_COLUMNS)} FROM {APPROVALS}"
_ONE = Statement(f"{_APPROVAL} WHERE id = :id")
_LOCKED = Statement(f"{_APPROVAL} WHERE id = :id", lock=True)
_ASKED = Statement(f"{_APPROVAL} WHERE analyst = :analyst AND asked_under = :key")
_PENDING = Statement(
    f"SELECT COUNT(*) AS many FROM {APPROVALS} WHERE state = 'pending' AND analyst = :analyst"
)
_LAST = Statement(f"SELECT COALESCE(MAX(id), 0) AS last FROM {APPROVALS}")
_ADD = insert(APPROVALS, *_COLUMNS)
_MOVE = Statement(
    f"UPDATE {APPROVALS} SET {', '.join(f'{name} = :{name}' for name in _CHANGING)} WHERE id = :id"
)
_PAGES = {
    (by_state, by_analyst, latest): Statement(
        f"{_APPROVAL} WHERE "
        + ("id < :before" if latest else "id > :after")
        + (" AND state = :state" if by_state else "")
        + (" AND analyst = :analyst" if by_analyst else "")
        + (" ORDER BY id DESC LIMIT :most" if latest else " ORDER BY id LIMIT :most")
    )
    for by_state in (False, True)
    for by_analyst in (False, True)
    for latest in (False, True)
}


@dataclass(frozen=True)
class ApprovalRequest:
    """What an analyst asks an owner for.

    Attributes:
        dataset: The dataset.
        analyst: Who asks.
        key: The idempotency key that the release will be charged under.
        question: The identity of the query, as the ledger has it.
        words: The query in words, for the owner to read.
        epsilon: The Pufferfish ε that it would cost, as exact text.
        why: Why it needs an owner, in words.
        options: What to release: the options of the query, and what else the release was asked
            with.
        plan: What the analyst was shown when they asked, for the owner to read: it does not make
            another request of it.
    """

    dataset: str
    analyst: str
    key: str
    question: str
    words: str
    epsilon: str
    why: str
    options: Mapping[str, Any]
    plan: Mapping[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Approval:
    """A request, and its outcome.

    Attributes:
        id: Its number.
        request: What was asked.
        state: ``pending``; ``approved``, ``refused`` or ``withdrawn``; once approved, ``released``
            or ``failed``.
        asked: When it was asked.
        decided: When it was decided or withdrawn.
        decided_by: By whom.
        note: What they wrote about it.
        event: The ledger's event of the decision.
        event_hash: Its hash: numbers are used again after history was lost. None for what earlier
            versions stored.
        charge: The ledger's event of the release.
        charge_hash: Its hash.
        problem: Why the release failed: a problem document, as the analyst may see it.
    """

    id: int
    request: ApprovalRequest
    state: ApprovalState
    asked: datetime
    decided: datetime | None = None
    decided_by: str | None = None
    note: str = ""
    event: int | None = None
    event_hash: str | None = None
    charge: int | None = None
    charge_hash: str | None = None
    problem: Mapping[str, Any] | None = None

    def decided_in(self, event: Anchor) -> bool:
        """Whether the decision is this event of the ledger."""
        return self.event == event.seq and self.event_hash in (None, event.hash)

    def paid_by(self, charge: Anchor) -> bool:
        """Whether the release was paid for by this event of the ledger."""
        return self.charge == charge.seq and self.charge_hash in (None, charge.hash)

    @property
    def identity(self) -> str:
        """What no other request ever has: the ledger's event of the decision names it.

        Numbers do not do: an old copy of the state that is put back counts from there again.
        """
        request = self.request
        parts = [request.dataset, request.analyst, request.key, request.question, stamp(self.asked)]
        return sha256(canonical_json(parts, "request"))


class ApprovalTable(StateStore):
    """The requests of a server that wait, or waited, for an owner."""

    def ask_approval(self, request: ApprovalRequest) -> Approval:
        """Store a request; the same request under the same key is the one that was stored."""
        for part in ("dataset", "analyst", "key", "question"):
            check_name(getattr(request, part), part)
        with self._alone() as connection:
            row = _ASKED.one(connection, {"analyst": request.analyst, "key": request.key})
            if row is not None:
                known = _approval(row)
                if _asked(known.request) != _asked(request):
                    raise StateConflict(
                        f"key {request.key!r:.80} was used for another request; use a new one",
                        field="key",
                        reason="key",
                    )
                return known
            if _PENDING.one(connection, {"analyst": request.analyst}).many >= MAX_PENDING:
                raise StateConflict(
                    f"{MAX_PENDING} requests of {request.analyst!r:.80} wait already; withdraw"
                    " some, or wait for an owner",
                    field="analyst",
                    reason="many",
                )
            number = _LAST.one(connection, {}).last + 1
            approval = Approval(number, request, "pending", self.now())
            _ADD.run(connection, _values(approval))
            return _approval(_ONE.one(connection, {"id": number}))

    def approval(self, number: int) -> Approval | None:
        """The request of this number."""
        with self._store.unguarded() as connection:
            row = _ONE.one(connection, {"id": number})
        return None if row is None else _approval(row)

    def approval_asked(self, analyst: str, key: str) -> Approval | None:
        """The request that an analyst made under a key."""
        with self._store.unguarded() as connection:
            row = _ASKED.one(connection, {"analyst": analyst, "key": key})
        return None if row is None else _approval(row)

    def approvals(
        self,
        state: ApprovalState | None = None,
        analyst: str | None = None,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[Approval]:
        """Requests in the order in which they were asked, from the one after number ``after``.

        With ``before``, those before that number, the latest first.
        """
        if state is not None and state not in STATES:
            raise InvalidApproval("state", given=f"is {state!r:.80}", needed=one_of(STATES, state))
        values: dict[str, Any] = {"most": min(max(limit, 0), MAX_PAGE)}
        values |= {"after": after} if before is None else {"before": before}
        if state is not None:
            values["state"] = state
        if analyst is not None:
            values["analyst"] = analyst
        statement = _PAGES[state is not None, analyst is not None, before is not None]
        with self._store.unguarded() as connection:
            return [_approval(row) for row in statement.all(connection, values)]

    def undecided(self, number: int, decision: Decision, by: str) -> Approval:
        """The request of this number, which waits and which ``by`` may decide so.

        An approval or a refusal comes from another person than the one who asked; only that one
        withdraws.
        """
        check_name(by, "by")
        with self._store.unguarded() as connection:
            known = _request(_ONE, connection, number)
        own = folded(by) == folded(known.request.analyst)
        if known.state != "pending":
            raise _decided(known, decision)
        if own != (decision == "withdrawn"):
            raise StateConflict(
                f"request {known.id} was asked by {known.request.analyst!r:.80}; "
                + ("have another person decide" if own else "only they can withdraw it"),
                field="by",
                reason="same person" if own else "another person",
            )
        return known

    def copy_decision(self, number: int, event: Event) -> Approval:
        """The request as an event of the ledger decided it, for good; copied once.

        Who asked withdraws the request by refusing it.
        """
        by, decision = event.body["actor"], event.body["decision"]
        with self._store.writing() as connection:
            known = _request(_LOCKED, connection, number)
            own = folded(by) == folded(known.request.analyst)
            if known.state != "pending":
                if known.decided_in(event.anchor):
                    return known  # by another server, or by an earlier attempt
                raise _decided(known, decision)
            decided = replace(
                known,
                state="withdrawn" if own else decision,
                decided=event.at,
                decided_by=by,
                note=event.body.get("note", ""),
                event=event.seq,
                event_hash=event.hash,
            )
            _MOVE.run(connection, _values(decided))
            return decided

    def finish_approval(
        self, number: int, *, charge: Anchor | None = None, problem: Mapping[str, Any] | None = None
    ) -> Approval:
        """The outcome of an approved request: released by a charge, or failed with a problem.

        To say the same charge twice changes nothing: a release is resumed after a crash.
        """
        if (charge is None) == (problem is None):
            raise InvalidApproval(
                "charge", given="comes with a problem, or without", needed="be one of the two"
            )
        state: ApprovalState = "failed" if charge is None else "released"
        with self._store.writing() as connection:
            known = _request(_LOCKED, connection, number)
            if charge is not None and known.state == "released" and known.paid_by(charge):
                return known
            if known.state != "approved":
                raise _decided(known, state)
            finished = replace(
                known,
                state=state,
                charge=None if charge is None else charge.seq,
                charge_hash=None if charge is None else charge.hash,
                problem=problem,
            )
            _MOVE.run(connection, _values(finished))
            return finished


def _request(statement: Statement, connection: Connection, number: int) -> Approval:
    row = statement.one(connection, {"id": number})
    if row is None:
        raise StateConflict(f"there is no request {number}", field="request", reason="unknown")
    return _approval(row)


def _decided(known: Approval, state: ApprovalState) -> StateConflict:
    return StateConflict(
        f"request {known.id} is {known.state} and cannot be {state}; nothing was changed",
        field="request",
        reason="decided",
    )


def _asked(request: ApprovalRequest) -> tuple[Any, ...]:
    """What makes two requests the same: words and reasons may be put another way."""
    return request.dataset, request.analyst, request.question, json.loads(_options(request))


def _options(request: ApprovalRequest) -> str:
    return _text(request.options, "options")


def _text(document: Mapping[str, Any], field: str) -> str:
    try:
        return json_text(document)
    except (TypeError, ValueError):
        raise InvalidApproval(
            field, given="cannot be written as JSON", needed="be a JSON object", reason="type"
        ) from None


def _values(approval: Approval) -> dict[str, Any]:
    values = {**vars(approval.request), **vars(approval), "asked_under": approval.request.key}
    for name in ("options", "plan", "problem"):
        values[name] = None if values[name] is None else _text(values[name], name)
    for name in ("asked", "decided"):
        values[name] = None if values[name] is None else stamp(values[name])
    return values


def _approval(row: Any) -> Approval:
    request = ApprovalRequest(
        **{name: getattr(row, name) for name in _FIELDS},
        key=row.asked_under,
        options=json.loads(row.options),
        plan=json.loads(row.plan),
    )
    return Approval(
        **{name: getattr(row, name) for name in _STORED_AS_IS},
        request=request,
        asked=moment_of(row.asked),
        decided=moment_if_any(row.decided),
        problem=None if row.problem is None else json.loads(row.problem),
    )
