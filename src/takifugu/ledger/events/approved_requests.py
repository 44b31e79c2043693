"""Approvals: one query of one analyst, allowed or refused by a second person.

A policy may make releases wait for an owner (`takifugu.project.approval_rule`). The owner's
decision is an event of kind ``approval``, and the charge of the release names it. The ledger writes
such a charge only if the approval

* allows the same query (`charge_values.query_identity`: the rows, the data, the mechanism and its
  loss) of the same dataset to the same analyst;
* was made by another person than the one who charges and the one who asks, however their names are
  spelt;
* was not given for another request: one that names a request (a server's) serves that one alone,
  and the charge names it too;
* was made under the terms and the rules that are still in force: what the owner saw is its price;
* was not refused afterwards (a refusal that names a request withdraws approvals of that request
  alone), and is named by no other charge, also not by one that was lost: where
  an owner accepted that history is lost, no approval before that counts.

All of this is read under the ledger's lock, through the index on queries, so that no two charges
use the same approval. `ApprovedRequests` checks the same when a chain is verified.
"""

from collections.abc import Mapping
from typing import Any

from takifugu.errors import ApprovalRefused
from takifugu.ledger.canonical_text import folded
from takifugu.ledger.events import accepted_terms
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage.schema import EVENTS
from takifugu.ledger.storage.statement import Connection, Statement

APPROVED, REFUSED = "approved", "refused"
BOUND = "bound"  # of a decision on a request: charges name it too, which earlier versions did not
_SINCE = Statement(
    f"SELECT seq FROM {EVENTS} WHERE question = :question AND seq > :number"
    " AND kind IN ('approval', 'charge', 'reuse') ORDER BY seq"
)
_DECISIONS = Statement(
    f"SELECT seq FROM {EVENTS} WHERE question = :question AND kind = 'approval' ORDER BY seq DESC"
)


def decision_on(connection: Connection, question: str, request: str) -> chain.Event | None:
    """The last decision on a request of a query; None if there is none."""
    for row in _DECISIONS.all(connection, {"question": question}):
        event = chain.one(connection, row.seq)
        if event.body.get("request") == request:
            return event
    return None


def under(connection: Connection, dataset: str) -> int | None:
    """The acceptance that is in force on ``dataset``; None if nothing was ever accepted."""
    event = accepted_terms.last_event(connection, "accepted", dataset)
    return None if event is None else event.seq


def same_person(one: str | None, other: str | None) -> bool:
    """Whether two names may be of one person: eyes overlook case, width and spaces."""
    return one is not None and other is not None and folded(one) == folded(other)


def refuse_unfit(connection: Connection, body: Mapping[str, Any]) -> None:
    """Raise if the approval that a charge names does not allow it. The caller holds the lock."""
    number = body.get("approval")
    if number is None:
        return
    found = _approval(connection, number)
    reason = misfit(found, body, under(connection, body["dataset"]))
    if reason is None and number < chain.last_loss(connection):
        reason = "lost"
    if reason is None and found is not None and _of_other_request(found, body):
        reason = "request"
    if reason is None:
        rows = _SINCE.all(connection, {"question": body["question"], "number": number})
        for row in rows:
            later = chain.one(connection, row.seq).body
            if later.get("approval") == number:
                raise ApprovalRefused(number, "used", dataset=body["dataset"])
            if found is not None and withdraws(later, found):
                raise ApprovalRefused(number, "withdrawn", dataset=body["dataset"])
    else:
        raise ApprovalRefused(number, reason, dataset=body["dataset"])


def _approval(connection: Connection, number: int) -> Mapping[str, Any] | None:
    if not 0 < number <= chain.head(connection).seq:
        return None
    event = chain.one(connection, number)
    return event.body if event.kind == "approval" else None


def misfit(
    approval: Mapping[str, Any] | None, charge: Mapping[str, Any], accepted: int | None
) -> str | None:
    """Why an approval, by itself, does not allow a charge; None if it does."""
    if approval is None:
        return "missing"
    if approval["decision"] != APPROVED:
        return "refused"
    for part in ("dataset", "analyst", "question"):
        if approval[part] != charge[part]:
            return part
    people = charge.get("actor"), charge["analyst"]
    if any(same_person(approval["actor"], person) for person in people):
        return "person"
    return None if approval["under"] == accepted else "terms"


def _of_other_request(approval: Mapping[str, Any], charge: Mapping[str, Any]) -> bool:
    """Whether an approval was given for a request that the charge does not name."""
    return approval.get("request") not in (None, charge.get("request"))


def withdraws(later: Mapping[str, Any], approval: Mapping[str, Any]) -> bool:
    """Whether an event after an approval refuses it after all.

    One that names no request is about the query, whoever asked for it and however often.
    """
    return (
        later["kind"] == "approval"
        and later["decision"] == REFUSED
        and all(later[part] == approval[part] for part in ("dataset", "analyst", "question"))
        and later.get("request") in (None, approval.get("request"))
    )


class ApprovedRequests:
    """The approvals of a chain, read from its beginning: which charges they allow."""

    def __init__(self) -> None:
        self._approvals: dict[int, Mapping[str, Any]] = {}
        self._open: set[int] = set()  # neither used nor refused since
        self._accepted: dict[str, int] = {}
        self._loss = 0

    def misfit(self, body: Mapping[str, Any]) -> str | None:
        """Why the approval that one more event names does not allow it; None if it does."""
        match body["kind"]:
            case "loss":
                self._loss = body["seq"]
            case "accepted":
                self._accepted[body["dataset"]] = body["seq"]
            case "approval" if body["decision"] == REFUSED:
                self._open -= {n for n in self._open if withdraws(body, self._approvals[n])}
            case "approval":
                self._approvals[body["seq"]] = body
                self._open.add(body["seq"])
            case "charge" | "reuse" if body.get("approval") is not None:
                number = body["approval"]
                accepted = self._accepted.get(body["dataset"])
                found = self._approvals.get(number)
                reason = misfit(found, body, accepted)
                if reason is None and found is not None and found.get(BOUND):
                    reason = "request" if _of_other_request(found, body) else None
                if reason is None and number not in self._open:
                    reason = "used"
                if reason is None and number < self._loss:
                    reason = "lost"
                self._open.discard(number)
                return reason
        return None
