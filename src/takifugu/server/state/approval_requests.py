"""Releases that wait for an owner: asked by one person, decided by another.

What was decided is an event of the ledger, which a charge refers to; here is what waits, and the
query to release once it may be.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, get_args

from takifugu.errors import one_of
from takifugu.ledger.canonical_text import check_name, folded
from takifugu.ledger.storage.statement import Connection, Statement, insert
from takifugu.server.state.state_errors import InvalidApproval, StateConflict
from takifugu.server.state.state_store import (
    StateStore,
    json_text,
    moment_if_any,
    moment_of,
    stamp,
)
from takifugu.server.state.state_tables import APPROVALS

ApprovalState = Literal["pending", "approved", "refused", "withdrawn", "released", "failed"]
STATES: tuple[ApprovalState, ...] = get_args(ApprovalState)
NEXT: dict[ApprovalState, tuple[ApprovalState, ...]] = {
    "pending": ("approved", "refused", "withdrawn"),
    "approved": ("released", "failed"),  # both by the server
}
MOST_AT_ONCE = 1000  # of a page
MOST_PENDING = 100  # requests of one analyst that wait


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
    """A request, and what became of it.

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
        charge: The ledger's event of the release.
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
    charge: int | None = None
    problem: Mapping[str, Any] | None = None


_FIELDS = ("dataset", "analyst", "question", "words", "epsilon", "why")
_COLUMNS = (
    *("id", *_FIELDS, "asked_under", "options", "plan", "state"),
    *("asked", "decided", "decided_by", "note", "event", "charge", "problem"),
)
_APPROVAL = f"SELECT {', '.join(_COLUMNS)} FROM {APPROVALS}"
_ONE = Statement(f"{_APPROVAL} WHERE id = :id")
_LOCKED = Statement(f"{_APPROVAL} WHERE id = :id", lock=True)
_ASKED = Statement(f"{_APPROVAL} WHERE analyst = :analyst AND asked_under = :key")
_PENDING = Statement(
    f"SELECT COUNT(*) AS many FROM {APPROVALS} WHERE state = 'pending' AND analyst = :analyst"
)
_DECIDED = Statement(f"{_APPROVAL} WHERE event = :event")
_LAST = Statement(f"SELECT COALESCE(MAX(id), 0) AS last FROM {APPROVALS}")
_ADD = insert(APPROVALS, *_COLUMNS)
_MOVE = Statement(
    f"UPDATE {APPROVALS} SET state = :state, decided = :decided, decided_by = :decided_by,"
    " note = :note, event = :event, charge = :charge, problem = :problem WHERE id = :id"
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


class ApprovalTable(StateStore):
    """The requests of a server that wait, or waited, for an owner."""

    def ask_approval(self, request: ApprovalRequest) -> Approval:
        """Store a request; the same request under the same key is the one that was stored."""
        for part in ("dataset", "analyst", "key", "question"):
            check_name(getattr(request, part), part)
        with self._alone() as connection:
            found = _ASKED.one(connection, {"analyst": request.analyst, "key": request.key})
            if found is not None:
                known = _approval(found)
                if _asked(known.request) != _asked(request):
                    raise StateConflict(
                        f"key {request.key!r:.80} was used for another request; use a new one",
                        field="key",
                        reason="key",
                    )
                return known
            if _PENDING.one(connection, {"analyst": request.analyst}).many >= MOST_PENDING:
                raise StateConflict(
                    f"{MOST_PENDING} requests of {request.analyst!r:.80} wait already; withdraw"
                    " some, or wait for an owner",
                    field="analyst",
                    reason="many",
                )
            number = _LAST.one(connection, {}).last + 1
            made = Approval(number, request, "pending", self.now())
            _ADD.run(connection, _values(made))
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

    def approval_of_event(self, event: int) -> Approval | None:
        """The request that an event of the ledger decided."""
        with self._store.unguarded() as connection:
            row = _DECIDED.one(connection, {"event": event})
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
        values: dict[str, Any] = {"most": min(max(limit, 0), MOST_AT_ONCE)}
        values |= {"after": after} if before is None else {"before": before}
        if state is not None:
            values["state"] = state
        if analyst is not None:
            values["analyst"] = analyst
        statement = _PAGES[state is not None, analyst is not None, before is not None]
        with self._store.unguarded() as connection:
            return [_approval(row) for row in statement.all(connection, values)]

    def decide(
        self,
        number: int,
        state: Literal["approved", "refused", "withdrawn"],
        by: str,
        *,
        event: int | None = None,
        note: str = "",
    ) -> Approval:
        """Approve, refuse or withdraw a request that waits; the first who decides does.

        An approval or a refusal comes from another person than the one who asked; only that one
        withdraws.
        """
        check_name(by, "by")
        with self._store.writing() as connection:
            known = _waiting(connection, number, state)
            own = folded(by) == folded(known.request.analyst)
            if own != (state == "withdrawn"):
                raise StateConflict(
                    f"request {number} was asked by {known.request.analyst!r:.80}; "
                    + ("only they can withdraw it" if not own else "have another person decide"),
                    field="by",
                    reason="same person" if own else "another person",
                )
            made = replace(
                known, state=state, decided=self.now(), decided_by=by, note=note, event=event
            )
            _MOVE.run(connection, _values(made))
            return made

    def finish_approval(
        self, number: int, *, charge: int | None = None, problem: Mapping[str, Any] | None = None
    ) -> Approval:
        """What became of an approved request: released by a charge, or failed with a problem.

        To say the same charge twice changes nothing: a release is resumed after a crash.
        """
        if (charge is None) == (problem is None):
            raise InvalidApproval(
                "charge", given="comes with a problem, or without", needed="be one of the two"
            )
        state: ApprovalState = "failed" if charge is None else "released"
        with self._store.writing() as connection:
            known = _found(connection, number)
            if charge is not None and known.state == "released" and known.charge == charge:
                return known
            known = _waiting(connection, number, state)
            made = replace(known, state=state, charge=charge, problem=problem)
            _MOVE.run(connection, _values(made))
            return made


def _found(connection: Connection, number: int) -> Approval:
    row = _LOCKED.one(connection, {"id": number})
    if row is None:
        raise StateConflict(f"there is no request {number}", field="request", reason="unknown")
    return _approval(row)


def _waiting(connection: Connection, number: int, state: ApprovalState) -> Approval:
    """The request, if it can get to ``state`` from where it is."""
    known = _found(connection, number)
    if state not in NEXT.get(known.state, ()):
        raise StateConflict(
            f"request {number} is {known.state} and cannot be {state}; nothing was changed",
            field="request",
            reason="decided",
        )
    return known


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
    request = approval.request
    return {
        **{name: getattr(request, name) for name in _FIELDS},
        "id": approval.id,
        "asked_under": request.key,
        "options": _options(request),
        "plan": _text(request.plan, "plan"),
        "state": approval.state,
        "asked": stamp(approval.asked),
        "decided": None if approval.decided is None else stamp(approval.decided),
        "decided_by": approval.decided_by,
        "note": approval.note,
        "event": approval.event,
        "charge": approval.charge,
        "problem": None if approval.problem is None else _text(approval.problem, "problem"),
    }


def _approval(row: Any) -> Approval:
    return Approval(
        row.id,
        ApprovalRequest(
            row.dataset,
            row.analyst,
            row.asked_under,
            row.question,
            row.words,
            row.epsilon,
            row.why,
            json.loads(row.options),
            json.loads(row.plan),
        ),
        row.state,
        moment_of(row.asked),
        moment_if_any(row.decided),
        row.decided_by,
        row.note,
        row.event,
        row.charge,
        None if row.problem is None else json.loads(row.problem),
    )
