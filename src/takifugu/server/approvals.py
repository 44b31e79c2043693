"""Releases that wait for an owner: from the request to the result, whatever crashes in between.

An analyst asks for a release that the policy wants a second person for. The request is stored under
the analyst's idempotency key: `pending`. An event of the ledger decides it, the first one that
names it: `approved` or `refused` by an owner, or `withdrawn`, a refusal by who asked. An approved
one is released at once, under the original key and the analyst's name, and its charge names the
event: `released`, or `failed` with the problem.

Each step is durable before the next begins, and each can be done again:

* before the request is stored nothing has happened; afterwards the same key finds it;
* the event is written under the lock of the ledger, and only if none there names the request: of
  owners who decide at once, on whichever servers, and an analyst who withdraws, one is first, and
  the others are told so and have written nothing;
* after the event and before it is copied to the request, `adopt_decisions` or the next attempt to
  decide finds the event by the request that it names, never by its query alone;
* after that and before the charge, or before its answer is recorded, the same release is done
  again under the same key: the ledger charges a key once and records one answer for it;
* after the answer and before the request is marked `released`, the same.

What an approval is about is the query as the ledger identifies it: rows, mechanism, loss and the
state of the data. If any of these changed, the approval is void, and the request fails saying so.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from takifugu.errors import ApprovalRefused, TakifuguError, UnsoundRequest
from takifugu.server.access_rules import API
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.state.approval_requests import Approval, ApprovalRequest, Decision
from takifugu.server.state.server_state import ServerState, charge_of
from takifugu.server.state.state_store import StateConflict
from takifugu.server.work.tasks import Task
from takifugu.session.release_errors import ApprovalNeeded

if TYPE_CHECKING:
    from takifugu.ledger import Event, Ledger
    from takifugu.session.release_plan import Plan
    from takifugu.session.session import Session

log = logging.getLogger("takifugu.server.releases")
RECORDED = ("cost", "saving", "guarantee")  # of a result: what depends on when it was paid for
TRY_AGAIN = 503  # the status of what may pass: a ledger that is locked, a database that is down


def release_or_ask(
    state: ServerState,
    session: "Session",
    asked: Task,
    plan: Callable[[], "Plan"],
    shown: Callable[["Plan"], Mapping[str, Any]],
) -> dict[str, Any]:
    """Release, if no owner has to decide or one has; store a request otherwise.

    Args:
        state: The state of the server.
        session: The session of the analyst who asks.
        asked: What they ask for. Its options are everything that the request holds, as JSON:
            ``query``, ``accept_noise``, ``key``, and ``plan``, the digest of the plan that was
            seen, if one was.
        plan: Makes its plan.
        shown: The plan as the analyst sees it.

    Returns:
        ``charge`` and ``result``; or ``approval``, the request and its outcome.
    """
    from takifugu.session.plan_documents import digest
    from takifugu.session.release_errors import StalePlan

    if asked.key is None:
        raise UnsoundRequest("a release needs a key that names the request", field="key")
    known = state.approval_asked(asked.actor.name, asked.key)
    if known is None:
        planned = plan()
        if asked.options.get("plan") not in (None, digest(planned)):
            raise StalePlan(("plan",))
        try:
            return _released(state, session, asked, planned, None)
        except ApprovalNeeded as needed:
            if not asked.options.get("accept_noise"):
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
            stored = state.result(paid, asked.actor.name)
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


def _request(asked: Task, planned: "Plan", why: str, shown: Mapping[str, Any]) -> ApprovalRequest:
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
        dataset=str(asked.dataset),
        analyst=asked.actor.name,
        key=str(asked.key),
        question=planned.charge.body()["question"],
        words=asked_words(query_body(planned.charge)),
        epsilon=epsilon,
        why=why,
        options=dict(asked.options),
        plan=dict(shown),
    )


def _released(
    state: ServerState,
    session: "Session",
    asked: Task,
    planned: "Plan",
    approved: Approval | None,
) -> dict[str, Any]:
    """Release, and keep the result, so that it can be fetched again.

    A result that cannot be kept is in the ledger, and the same request keeps it again. One that was
    approved counts as released only when it is kept.
    """
    document = session.release(
        planned,
        accept_noise=bool(asked.options.get("accept_noise")),
        key=asked.key,
        approval=None if approved is None else approved.event,
        request=None if approved is None else approved.identity,
    ).document()
    paid = charge_of(document)
    try:
        stored = state.keep_result(paid, str(asked.dataset), asked.actor.name, document).document
    except TakifuguError as error:
        if approved is not None:
            raise
        log.error("the result of charge %d was not kept: %s", paid.seq, type(error).__name__)
    else:
        if not (document["free"] or stored["free"]):  # the price is that of when it was paid for
            document |= {name: stored[name] for name in RECORDED}
    return {"charge": paid.seq, "result": document}


def _finished(
    state: ServerState,
    session: "Session",
    asked: Task,
    plan: Callable[[], "Plan"],
    known: Approval,
) -> dict[str, Any]:
    """Release what was approved, and mark the request; also what an earlier attempt has begun."""
    try:
        _refuse_lost(session, known)
        released = _released(state, session, asked, plan(), known)
    except TakifuguError as error:
        problem = problem_of(error, "analyst", key=asked.key)
        if problem["status"] == TRY_AGAIN:
            raise
        state.finish_approval(known.id, problem=problem)
        raise Problem.from_document(problem) from error
    state.finish_approval(known.id, charge=charge_of(released["result"]))
    return released


def _refuse_lost(session: "Session", known: Approval) -> None:
    """Raise if the ledger has another event under the number of the approval, or none.

    Its history was lost then, and what is there now was not decided about this request.
    """
    now = None if known.event is None else session.event(known.event)
    if now is None or not known.decided_in(now):
        raise ApprovalRefused(known.event, "lost", dataset=known.request.dataset)


# --- the ledger decides ---


def decide(
    state: ServerState, ledger: "Ledger", number: int, decision: Decision, by: str, note: str = ""
) -> Approval:
    """Approve, refuse or withdraw a request that waits: an event of the ledger, then the request.

    Raises:
        StateConflict: There is none, it is decided already, or who asks would decide. The ledger
            then has no event of this decision.
    """
    known = state.undecided(number, decision, by)
    request, owner = known.request, ledger.acting(by)
    held_lock = False

    def refuse_second(first: "Event | None") -> None:
        nonlocal held_lock
        held_lock = True
        if first is not None:
            raise StateConflict(
                f"request {number} was decided already; nothing was changed. Look at it again",
                field="request",
                reason="decided",
            )

    write = owner.approve if decision == "approved" else owner.refuse_request
    try:
        event = write(
            dataset=request.dataset,
            analyst=request.analyst,
            question=request.question,
            words=request.words,
            epsilon=request.epsilon,
            request=known.identity,
            note=note,
            check=refuse_second,
        )
    except Exception as error:
        if not held_lock:  # nothing was written, and the lock need not be waited for again
            raise
        try:  # there may be an event all the same: its answer was lost
            now = _settled(state, ledger, known)
        except TakifuguError:
            raise error from None  # the next attempt or start finds it
        if (now.state, now.decided_by) == (decision, by):
            return now
        raise
    return state.copy_decision(number, event)


def _settled(state: ServerState, ledger: "Ledger", known: Approval) -> Approval:
    """A request as the ledger has it, once nobody is in the middle of deciding it."""
    with ledger.decision_on(known.request.question, known.identity) as event:
        pass
    return known if event is None else state.copy_decision(known.id, event)


def adopt_decisions(state: ServerState, ledger: "Ledger") -> list[Approval]:
    """Settle what a crash has left: requests whose decision is in the ledger and not here.

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
