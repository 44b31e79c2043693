"""Releases that wait for an owner: from the request to the result, whatever crashes in between.

An analyst asks for a release that the policy wants a second person for. The request is stored under
the analyst's idempotency key: `pending`. An owner decides: the request is claimed, an event of the
ledger is written, then the request is `approved` or `refused`. An approved one is released at once,
under the original key and the analyst's name, and its charge names the event: `released`, or
`failed` with the problem.

Each step is durable before the next begins, and each can be done again:

* before the request is stored nothing has happened; afterwards the same key finds it;
* a claim (who decides, what, their note) keeps every other owner, on whichever server, and a
  withdrawal away: they are told so, and write nothing;
* after the claim and before the event, `adopt_decisions` drops the claim: the request waits again;
* after the event and before the request is marked, `adopt_decisions` finds the event by the
  request that it names, never by its query alone, and marks the request: no second event is
  written;
* after that and before the charge, or before its answer is recorded, the same release is done
  again under the same key: the ledger charges a key once and records one answer for it;
* after the answer and before the request is marked `released`, the same.

A claim may be dropped while its maker is only slow. So both look at the other side under the lock
of the ledger: an event is written if the claim is still there and nothing was decided, and a claim
is dropped if there is no event. One of the two comes first, and the other one sees it.

What an approval is about is the query as the ledger identifies it: rows, mechanism, loss and the
state of the data. If any of these changed, the approval is void, and the request fails saying so.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from takifugu.errors import ApprovalRefused, TakifuguError, UnsoundRequest
from takifugu.ledger.canonical_text import folded
from takifugu.ledger.events.event_chain import Anchor
from takifugu.server.access_rules import API
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.state.approval_requests import Approval, ApprovalRequest
from takifugu.server.state.server_state import ServerState, charge_of
from takifugu.server.state.state_store import StateConflict
from takifugu.session.release_errors import ApprovalNeeded

if TYPE_CHECKING:
    from takifugu.ledger import Event, Ledger
    from takifugu.session.release_plan import Plan
    from takifugu.session.session import Session

Decision = Literal["approved", "refused"]
TRY_AGAIN = 503  # the status of what may pass: a ledger that is locked, a database that is down
CLAIM_TIMEOUT = timedelta(minutes=1)  # until a claim of somebody else is looked into


@dataclass(frozen=True)
class AskedRelease:
    """A release as an analyst asks for it.

    Attributes:
        dataset: The dataset.
        analyst: Who asks.
        key: The idempotency key of the request, of this analyst.
        options: Everything that the request holds, as JSON: ``query``, ``accept_noise``, ``key``,
            and ``plan``, the digest of the plan that was seen, if one was.
    """

    dataset: str
    analyst: str
    key: str
    options: Mapping[str, Any]

    @property
    def accept_noise(self) -> bool:
        """Whether an answer that is mostly noise is wanted all the same."""
        return bool(self.options.get("accept_noise", False))


def release_or_ask(
    state: ServerState,
    session: "Session",
    asked: AskedRelease,
    plan: Callable[[], "Plan"],
    shown: Callable[["Plan"], Mapping[str, Any]],
) -> dict[str, Any]:
    """Release, if no owner has to decide or one has; store a request otherwise.

    Args:
        state: The state of the server.
        session: The session of the analyst who asks.
        asked: What they ask for.
        plan: Makes its plan.
        shown: The plan as the analyst sees it.

    Returns:
        ``charge`` and ``result``; or ``approval``, the request and its outcome.
    """
    from takifugu.session.plan_documents import digest
    from takifugu.session.release_errors import StalePlan

    known = state.approval_asked(asked.analyst, asked.key)
    if known is None:
        planned = plan()
        if asked.options.get("plan") not in (None, digest(planned)):
            raise StalePlan(("plan",))
        try:
            return _released(session, asked, planned, None)
        except ApprovalNeeded as needed:
            if not asked.accept_noise:
                session.refuse_noise(planned)  # no owner is asked for what would be refused then
            request = _request(asked, planned, needed.why, shown(planned))
        return waiting_document(state.ask_approval(request))
    if (known.request.dataset, dict(known.request.options)) != (asked.dataset, dict(asked.options)):
        raise StateConflict(
            f"key {asked.key!r:.80} was used for another request; use a new one",
            field="key",
            reason="key",
        )
    if known.state == "approved":
        return _finished(state, session, asked, plan, known)
    if known.problem is not None:
        raise Problem.from_document(known.problem)
    if known.state in ("refused", "withdrawn"):
        raise _declined(known)
    if known.state == "released" and known.charge is not None:
        paid = session.event(known.charge)
        if paid is not None and known.paid_by(paid):
            stored = state.result(paid, asked.analyst)
        else:
            stored = None  # history was lost
        if stored is not None and stored.document["provenance"]["asked"] == known.request.words:
            document = dict(stored.document)
            return {"charge": known.charge, "result": document}
    return waiting_document(known)


def _declined(known: Approval) -> Problem:
    """What an analyst is told who asks again for what came to nothing."""
    note = f": {known.note}" if known.note else ""
    who = "the owner refused it" if known.state == "refused" else "it was withdrawn"
    return Problem(
        *(409, "ApprovalDeclined"),
        f"request {known.id} came to nothing, {who}{note}; nothing was charged. Ask again with a"
        " new idempotency key",
        title="The release was not approved",
        field="approval",
        reason=known.state,
        extra={
            "request": known.id,
            "dataset": known.request.dataset,
            "state": known.state,
            "note": known.note,
        },
    )


def _request(
    asked: AskedRelease, planned: "Plan", why: str, shown: Mapping[str, Any]
) -> ApprovalRequest:
    from takifugu.ledger.event_documents import asked_words
    from takifugu.ledger.events.decisions import decimal_up
    from takifugu.session.release_plan import query_body

    epsilon = decimal_up(planned.cost.alone)
    if epsilon is None or epsilon == "infinity":
        raise UnsoundRequest(
            "under the prior this release has an infinite epsilon, which no budget admits; ask for"
            " less",
            field="epsilon",
        )
    return ApprovalRequest(
        dataset=asked.dataset,
        analyst=asked.analyst,
        key=asked.key,
        question=planned.charge.body()["question"],
        words=asked_words(query_body(planned.charge)),
        epsilon=epsilon,
        why=why,
        options=dict(asked.options),
        plan=dict(shown),
    )


def _released(
    session: "Session", asked: AskedRelease, planned: "Plan", approved: Approval | None
) -> dict[str, Any]:
    result = session.release(
        planned,
        accept_noise=asked.accept_noise,
        key=asked.key,
        approval=None if approved is None else approved.event,
        request=None if approved is None else approved.identity,
    )
    document = result.document()
    return {"charge": document["provenance"]["charge"]["event"], "result": document}


def _finished(
    state: ServerState,
    session: "Session",
    asked: AskedRelease,
    plan: Callable[[], "Plan"],
    known: Approval,
) -> dict[str, Any]:
    """Release what was approved, and mark the request; also what an earlier attempt has begun."""
    try:
        _refuse_lost(session, known)
        released = _released(session, asked, plan(), known)
    except TakifuguError as error:
        problem = problem_of(error, "analyst", key=asked.key)
        if problem["status"] == TRY_AGAIN:
            raise
        state.finish_approval(known.id, problem=problem)
        raise Problem.from_document(problem) from error
    paid = charge_of(released["result"])
    state.keep_result(paid, asked.dataset, asked.analyst, released["result"])
    state.finish_approval(known.id, charge=paid)
    return released


def _refuse_lost(session: "Session", known: Approval) -> None:
    """Raise if the ledger has another event under the number of the approval, or none.

    Its history was lost then, and what is there now was not decided about this request.
    """
    now = None if known.event is None else session.event(known.event)
    if now is None or not known.decided_in(now):
        raise ApprovalRefused(known.event, "lost", dataset=known.request.dataset)


# --- the owner decides ---


def decide(
    state: ServerState, ledger: "Ledger", number: int, decision: Decision, by: str, note: str = ""
) -> Approval:
    """Approve or refuse a request that waits: an event of the ledger, then the request.

    Raises:
        StateConflict: There is none, somebody has decided or is deciding, or who asks would decide.
            The ledger then has no event of this decision.
    """
    known = state.approval(number)
    if known is not None and known.claim is not None:
        late = state.now() - known.claim.at > CLAIM_TIMEOUT
        if late or folded(known.claim.by) == folded(by):  # whose attempt before this one was lost
            now = _settled(state, ledger, known)
            if _decided_so(now, decision, by):
                return now
    claimed = state.claim_decision(number, decision, by, note)
    try:
        event = _written(state, ledger, claimed, by, decision)
    except Exception as error:  # also of an event that is there: its answer may have been lost
        try:
            now = _settled(state, ledger, claimed)
        except TakifuguError:
            raise error from None  # the claim stays, until it is looked into
        if _decided_so(now, decision, by):
            return now
        raise
    return _marked(state, claimed, event)


def _decided_so(now: Approval, decision: Decision, by: str) -> bool:
    """Whether the ledger has this decision of this owner."""
    same = (now.state == "refused") == (decision == "refused")
    return now.event is not None and now.decided_by == by and same


def _written(
    state: ServerState, ledger: "Ledger", claimed: Approval, by: str, decision: Decision
) -> "Event":
    """Write the event of a claimed decision, unless the claim was dropped or there is one."""
    request = claimed.request

    def check(last: "Event | None") -> None:
        now = state.approval(claimed.id)
        if last is not None or now is None or now.claim != claimed.claim:
            raise StateConflict(
                f"request {claimed.id} was decided, or taken back to those that wait, by another"
                " server; nothing was changed. Look at it again",
                field="request",
                reason="decided",
            )

    owner = ledger.acting(by)
    write = owner.approve if decision == "approved" else owner.refuse_request
    return write(
        dataset=request.dataset,
        analyst=request.analyst,
        question=request.question,
        words=request.words,
        epsilon=request.epsilon,
        request=claimed.identity,
        check=check,
    )


def _settled(state: ServerState, ledger: "Ledger", known: Approval) -> Approval:
    """A request as the ledger has it: decided if it has the event, without the claim if not."""
    with ledger.decision_on(known.request.question, known.identity) as event:
        if event is None:
            return known if known.claim is None else state.drop_claim(known.id, known.claim.id)
        now = state.approval(known.id) or known
        return _marked(state, now, event) if now.state == "pending" else now


def _marked(state: ServerState, known: Approval, event: "Event") -> Approval:
    """Mark a request that waits with the decision that the ledger has."""
    claim, decision, by = known.claim, event.body["decision"], event.body["actor"]
    own = claim is not None and (claim.decision, claim.by) == (decision, by)
    try:
        return state.decide(
            *(known.id, decision, by),
            event=Anchor(event.seq, event.hash),
            note=claim.note if claim is not None and own else "",
            claim=None if claim is None else claim.id,
            at=event.at,
        )
    except StateConflict:
        now = state.approval(known.id)
        if now is None or not now.decided_in(Anchor(event.seq, event.hash)):
            raise
        return now  # another server was quicker to find the event


def adopt_decisions(state: ServerState, ledger: "Ledger") -> list[Approval]:
    """Settle what a crash has left: requests whose decision is in the ledger and not here.

    A request that somebody had begun to decide, and whose decision the ledger does not have, waits
    again.

    Returns:
        The requests that are decided now.
    """
    settled = (_settled(state, ledger, known) for known in _every(state, "pending"))
    return [now for now in settled if now.state != "pending"]


def to_resume(state: ServerState) -> list[Approval]:
    """Requests that are approved and not released: to be released now."""
    return _every(state, "approved")


def _every(state: ServerState, which: Literal["pending", "approved"]) -> list[Approval]:
    approvals: list[Approval] = []
    while page := state.approvals(which, after=approvals[-1].id if approvals else 0):
        approvals += page
    return approvals


# --- what people see ---


def waiting_document(approval: Approval) -> dict[str, Any]:
    """What a release is answered with that waits for an owner."""
    return {"kind": "approval", "approval": approval_document(approval)}


def approval_document(approval: Approval) -> dict[str, Any]:
    """A request and its outcome, as the analyst and the owners see it.

    The identity of the query stays on the server: it holds a mark of the data.
    """
    request = approval.request
    plan = dict(request.plan)
    return {
        "id": approval.id,
        "state": approval.state,
        "dataset": request.dataset,
        "analyst": request.analyst,
        "words": request.words,
        "epsilon": request.epsilon,
        "why": request.why,
        "query": request.options.get("query"),
        "accept_noise": bool(request.options.get("accept_noise", False)),
        "plan": plan,
        "asked": approval.asked.isoformat(),
        "decided": None if approval.decided is None else approval.decided.isoformat(),
        "decided_by": approval.decided_by,
        "note": approval.note,
        "event": approval.event,
        "charge": approval.charge,
        "result": None if approval.charge is None else f"{API}/releases/{approval.charge}/result",
        "problem": None if approval.problem is None else dict(approval.problem),
    }
