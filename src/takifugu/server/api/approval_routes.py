"""Releases that wait for an owner: asked for by one person, decided by another."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from takifugu.errors import TakifuguError
from takifugu.server import approvals
from takifugu.server.access_rules import API, Actor
from takifugu.server.api.job_routes import new_task
from takifugu.server.api.problems import Problem, WorkFailed
from takifugu.server.api.requests import RequestBody, body_of
from takifugu.server.api.responses import Page, PageOption, json_response, page_response
from takifugu.server.approvals import approval_document
from takifugu.server.services import Services, actor_of, services_of
from takifugu.server.state.approval_requests import Approval, Decision
from takifugu.server.state.state_store import StateConflict
from takifugu.server.work.tasks import Task

if TYPE_CHECKING:
    from takifugu.ledger import Ledger

log = logging.getLogger("takifugu.server.approvals")
RETRY_DELAYS = (
    1.0,
    5.0,
    30.0,
    300.0,
)  # seconds to the next attempt; the last is repeated
LOOK_SECONDS = 3600.0  # seconds that one look at a job waits
Value = TypeVar("Value")
STATES = Literal["pending", "approved", "refused", "withdrawn", "released", "failed"]
router = APIRouter(tags=["approvals"])
AFTER_EVERY_REQUEST = 2**53  # above every request
RequestNumber = Annotated[
    int, Path(ge=1, le=AFTER_EVERY_REQUEST, description="The number of the request.", examples=[3])
]
STATUS = {"unknown": 404, "decided": 409, "key": 409, "same person": 403, "another person": 403}


class ApprovalDesk:
    """Decides requests, and sees to it that what was approved is released.

    A release that fails for reasons that may pass (a worker that is lost, a ledger that cannot be
    reached) is tried again; when the server starts, what was approved before is taken up again.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._following: dict[int, asyncio.Task[None]] = {}
        self._starting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Take up what was decided before the server stopped, however it did."""
        self._starting = asyncio.ensure_future(self._resume())

    async def _resume(self) -> None:
        for delay in _delays():
            try:
                await self._write_ledger(
                    lambda ledger: approvals.adopt_decisions(self._services.state, ledger)
                )
                waiting = await asyncio.to_thread(approvals.to_resume, self._services.state)
                break
            except TakifuguError as error:
                log.error("requests that were approved are not resumed yet: %s", error)
                await asyncio.sleep(delay)
        for approval in waiting:
            log.info("request %d was approved and is released now", approval.id)
            self.follow(approval)

    async def decide(
        self, actor: Actor, number: int, decision: Decision, note: str = ""
    ) -> Approval:
        """Decide a request in the name of ``actor``; an approved one is released at once.

        Nothing is approved for somebody whose tokens have all ended: nobody could read it.
        """
        state = self._services.state
        if decision == "approved":
            await asyncio.to_thread(self._refuse_gone, number, actor)
        try:
            decided = await self._write_ledger(
                lambda ledger: approvals.decide(state, ledger, number, decision, actor.name, note)
            )
        except StateConflict:
            known = await asyncio.to_thread(state.approval, number)
            if known is not None and known.state == "approved":
                self.follow(known)  # a decision that a crash had left is found by the next one
            raise
        if decided.state == "approved":
            self.follow(decided)
        return decided

    def _refuse_gone(self, number: int, by: Actor) -> None:
        state = self._services.state
        known, now = state.approval(number), state.now()
        if known is None or known.state != "pending" or by.name == known.request.analyst:
            return  # which is refused in its own words
        who = known.request.analyst
        live = (token for token in state.tokens() if token.role == "analyst" and token.live(now))
        if not any(token.name == who for token in live):
            raise StateConflict(
                f"{who!r:.80}, who asked, has no token that works any more; make one first, or"
                " refuse the request",
                field="analyst",
                reason="no token",
            )

    async def _write_ledger(self, work: "Callable[[Ledger], Value]") -> Value:
        def write() -> Value:
            with self._services.project().ledger() as ledger:
                return work(ledger)

        # a decision is not cut short when the client goes: what was begun is done
        return await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(write)))

    def follow(self, approval: Approval) -> None:
        """Release an approved request, in the background, until it is released or has failed."""
        if approval.id not in self._following:
            task = asyncio.ensure_future(self._release(approval))
            self._following[approval.id] = task
            task.add_done_callback(lambda _: self._following.pop(approval.id, None))

    async def _release(self, approval: Approval) -> None:
        request, state = approval.request, self._services.state
        analyst = Actor(request.analyst, "analyst", f"approval {approval.id}")
        task = Task("release", request.dataset, analyst, dict(request.options))
        for delay in _delays():
            problem = await self._attempt(analyst, task)
            now = await asyncio.to_thread(state.approval, approval.id)
            if now is None or now.state != "approved" or problem.get("reason") == "cancelled":
                return  # cancelled: the same request of the analyst, or the next start, resumes it
            if problem.get("status") not in (approvals.TRY_AGAIN, 429):
                await asyncio.to_thread(state.finish_approval, approval.id, problem=problem)
                return
            log.warning("request %d is not released yet: %s", approval.id, problem.get("detail"))
            await asyncio.sleep(delay)

    async def _attempt(self, analyst: Actor, task: Any) -> dict[str, Any]:
        """Try a release: the problem, or nothing of one."""
        try:
            job = self._services.board.start(analyst, task)
        except WorkFailed as error:  # too many jobs of this analyst, or one with the same key
            return error.document()
        while not await job.wait(LOOK_SECONDS):
            pass
        return dict(job.problem or {})

    async def close(self) -> None:
        """Follow nothing any more; the next start resumes what is left."""
        tasks = [*self._following.values(), *([self._starting] if self._starting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _delays() -> Any:
    """Seconds to wait before the next attempts; the last delay is repeated."""
    yield from RETRY_DELAYS
    while True:
        yield RETRY_DELAYS[-1]


class ApprovalView(BaseModel):
    """A request for approval, and its outcome."""

    id: int = Field(description="Its number.", examples=[3])
    state: STATES = Field(
        description="`pending`; then `approved`, `refused` or `withdrawn`; an approved one becomes"
        " `released` or `failed` by itself."
    )
    dataset: str = Field(description="The dataset.", examples=["stays"])
    analyst: str = Field(description="Who asks.", examples=["ana"])
    words: str = Field(description="The query in words.", examples=["histogram of state by zone"])
    epsilon: str = Field(
        description="The Pufferfish ε that it costs alone, rounded up.", examples=["0.5"]
    )
    why: str = Field(description="Why it needs an owner.")
    query: dict[str, Any] | None = Field(description="The query, as it was asked.")
    accept_noise: bool = Field(description="Whether an answer that is mostly noise is wanted.")
    plan: dict[str, Any] = Field(
        description="Cost, expected error and budget, as the analyst saw them when they asked."
    )
    asked: str = Field(description="When it was asked.", examples=["2026-11-16T10:00:00+00:00"])
    decided: str | None = Field(description="When it was decided or withdrawn.")
    decided_by: str | None = Field(description="By whom.", examples=["olga"])
    note: str = Field(description="What they wrote about it.")
    event: int | None = Field(description="The event of the ledger with the decision.")
    charge: int | None = Field(description="The event of the ledger that paid for the release.")
    result: str | None = Field(description="Where its result is, once it is released.")
    problem: dict[str, Any] | None = Field(
        description="Why the approved release failed: a problem document."
    )


class ApprovalNow(ApprovalView):
    """A request with what it would cost now, for the owner who decides."""

    now: dict[str, Any] | None = Field(
        default=None,
        description="For an owner, while it is pending: the `plan` as it is now, `same` (whether"
        " the request is still about the same rows and data; otherwise an approval would be void),"
        " and the `guarantee`; or the `problem` that makes it impossible.",
    )


class NewDecision(RequestBody):
    """A decision on a request."""

    decision: Literal["approved", "refused"] = Field(description="What is decided.")
    note: str = Field(
        default="",
        max_length=2000,
        description="For the analyst to read.",
        examples=["agreed with the ward"],
    )


class WaitingRelease(BaseModel):
    """A release that waits for an owner, or was approved and is released now."""

    kind: Literal["approval"] = "approval"
    approval: ApprovalView


async def _visible_request(services: Services, actor: Actor, number: int) -> Approval:
    """A request that the caller may see: analysts see their own."""
    approval: Approval | None = await asyncio.to_thread(services.state.approval, number)
    if approval is None or (actor.role == "analyst" and approval.request.analyst != actor.name):
        raise Problem(404, "no-request", "there is no such request here", field="request")
    return approval


@router.get(f"{API}/approvals", response_model=Page[ApprovalView])
async def list_approvals(
    request: Request,
    paging: PageOption,
    state: Annotated[STATES | None, Query(description="Only those in this state.")] = None,
) -> Response:
    """Requests for approval, the latest first: analysts see their own."""
    services, actor = services_of(request), actor_of(request)
    before = paging.after("approvals", AFTER_EVERY_REQUEST)
    own = actor.name if actor.role == "analyst" else None
    approvals: list[Approval] = await asyncio.to_thread(
        services.state.approvals, state, own, before=before, limit=paging.limit + 1
    )
    items = [approval_document(approval) for approval in approvals]
    return page_response("approvals", items, paging, lambda item: item["id"])


@router.get(f"{API}/approvals/{{request}}", response_model=ApprovalNow)
async def show_approval(http: Request, request: RequestNumber) -> Response:
    """A request; for an owner also what it would cost now, and under which guarantee."""
    services, actor = services_of(http), actor_of(http)
    approval = await _visible_request(services, actor, request)
    now = None
    if actor.role == "owner" and approval.state == "pending":
        now = await _now(http, services, approval)
    return json_response(approval_document(approval) | {"now": now})


async def _now(http: Request, services: Services, approval: Approval) -> dict[str, Any]:
    asked = approval.request
    task = new_task(
        *(http, "review-request", asked.dataset),
        query=asked.options.get("query"),
        analyst=asked.analyst,
        question=asked.question,
    )
    try:
        document: dict[str, Any] = await services.pool.run(task)
    except WorkFailed as error:
        return {"plan": None, "same": None, "guarantee": None, "problem": error.document()}
    return document | {"problem": None}


@router.delete(
    f"{API}/approvals/{{request}}",
    response_model=ApprovalView,
    responses={409: {"description": "It was decided already."}},
)
async def withdraw_approval(http: Request, request: RequestNumber) -> Response:
    """Withdraw a request of one's own that waits: an event of the ledger."""
    return await _decide(http, request, "withdrawn")


@router.post(f"{API}/approvals/{{request}}/decision", response_model=ApprovalView)
async def decide_approval(
    http: Request, request: RequestNumber, body: Annotated[NewDecision, body_of(NewDecision)]
) -> Response:
    """Approve or refuse a request of somebody else: an event of the ledger.

    What is approved is released at once, under the name of the analyst and the key of their
    request.
    """
    return await _decide(http, request, body.decision, body.note)


async def _decide(http: Request, number: int, decision: Decision, note: str = "") -> Response:
    actor, desk = actor_of(http), http.app.state.approvals
    await _visible_request(services_of(http), actor, number)
    try:
        done: Approval = await desk.decide(actor, number, decision, note)
    except StateConflict as error:
        status = STATUS.get(error.reason, 409)
        kind = "no-request" if status == 404 else "StateConflict"
        raise Problem(status, kind, str(error), field=error.field, reason=error.reason) from None
    return json_response(approval_document(done))
