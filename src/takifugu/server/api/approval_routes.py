"""Releases that wait for an owner: asked for by one person, decided by another."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from takifugu.server.access_rules import API
from takifugu.server.api.approval_models import STATES, ApprovalNow, ApprovalView, NewDecision
from takifugu.server.api.bodies import body_of, takes
from takifugu.server.api.pagination import Page, PageOption, cursor_after
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.api.running import new_task
from takifugu.server.approvals import approval_document
from takifugu.server.roles import Actor
from takifugu.server.services import Services, actor_of, services_of
from takifugu.server.state.approval_requests import Approval
from takifugu.server.state.state_errors import StateConflict

if TYPE_CHECKING:
    from takifugu.server.approval_desk import ApprovalDesk

router = APIRouter(tags=["approvals"])
LAST = 2**53  # above every request
RequestNumber = Annotated[
    int, Path(ge=1, le=LAST, description="The number of the request.", examples=[3])
]
STATUS = {"unknown": 404, "decided": 409, "key": 409, "same person": 403, "another person": 403}


def _desk(request: Request) -> "ApprovalDesk":
    found: ApprovalDesk = request.app.state.approvals
    return found


async def _found(services: Services, actor: Actor, number: int) -> Approval:
    """A request that the caller may see: analysts see their own."""
    found: Approval | None = await asyncio.to_thread(services.state.approval, number)
    if found is None or (actor.role == "analyst" and found.request.analyst != actor.name):
        raise Problem(404, "no-request", "there is no such request here", field="request")
    return found


def _refused(error: StateConflict) -> Problem:
    status = STATUS.get(error.reason, 409)
    kind = "no-request" if status == 404 else "StateConflict"
    return Problem(status, kind, str(error), field=error.field, reason=error.reason)


@router.get(f"{API}/approvals", response_model=Page[ApprovalView])
async def list_approvals(
    request: Request,
    paging: PageOption,
    state: Annotated[STATES | None, Query(description="Only those in this state.")] = None,
) -> Response:
    """Requests for approval, the latest first: analysts see their own."""
    services, actor = services_of(request), actor_of(request)
    before = paging.after("approvals", LAST)
    own = actor.name if actor.role == "analyst" else None
    found: list[Approval] = await asyncio.to_thread(
        services.state.approvals, state, own, before=before, limit=paging.limit + 1
    )
    page = found[: paging.limit]
    more = cursor_after("approvals", page[-1].id) if len(found) > paging.limit else None
    return json_response({"items": [approval_document(one) for one in page], "next": more})


@router.get(f"{API}/approvals/{{request}}", response_model=ApprovalNow)
async def show_approval(http: Request, request: RequestNumber) -> Response:
    """A request; for an owner also what it would cost now, and under which guarantee."""
    services, actor = services_of(http), actor_of(http)
    found = await _found(services, actor, request)
    now = None
    if actor.role == "owner" and found.state == "pending":
        now = await _now(http, services, found)
    return json_response(approval_document(found) | {"now": now})


async def _now(http: Request, services: Services, found: Approval) -> dict[str, Any]:
    from takifugu.server.work.work_errors import WorkFailed

    asked = found.request
    task = new_task(
        *(http, "review-request", asked.dataset),
        query=asked.options.get("query"),
        analyst=asked.analyst,
        question=asked.question,
    )
    try:
        document: dict[str, Any] = await services.pool.run(task)
    except WorkFailed as error:
        return {"plan": None, "same": None, "guarantee": None, "problem": error.problem}
    return document | {"problem": None}


@router.delete(
    f"{API}/approvals/{{request}}",
    response_model=ApprovalView,
    responses={409: {"description": "It was decided already."}},
)
async def withdraw_approval(http: Request, request: RequestNumber) -> Response:
    """Withdraw a request of one's own that waits."""
    services, actor = services_of(http), actor_of(http)
    await _found(services, actor, request)
    try:
        done = await asyncio.to_thread(services.state.decide, request, "withdrawn", actor.name)
    except StateConflict as error:
        raise _refused(error) from None
    return json_response(approval_document(done))


@router.post(
    f"{API}/approvals/{{request}}/decision", response_model=ApprovalView, **takes(NewDecision)
)
async def decide_approval(
    http: Request, request: RequestNumber, body: Annotated[NewDecision, body_of(NewDecision)]
) -> Response:
    """Approve or refuse a request of somebody else: an event of the ledger.

    What is approved is released at once, under the name of the analyst and the key of their
    request.
    """
    services, actor = services_of(http), actor_of(http)
    await _found(services, actor, request)
    try:
        done = await _desk(http).decide(actor, request, body.decision, body.note)
    except StateConflict as error:
        raise _refused(error) from None
    return json_response(approval_document(done))
