"""The page of approvals: what waits for an owner, and what was decided."""

import asyncio
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from takifugu.errors import TakifuguError
from takifugu.server.api import approval_routes as api
from takifugu.server.api.approval_models import NewDecision
from takifugu.server.api.bodies import form_fields, validated
from takifugu.server.api.pagination import Paging
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.pages.page_responses import (
    document_of,
    moved,
    sentence,
    shown,
    trouble_of,
)
from takifugu.server.services import actor_of

router = APIRouter(include_in_schema=False)
A_PAGE = 50
MOST_WAITING = 20  # requests that a page shows at once; the oldest come first
TONES = {"released": "good", "approved": "warn", "withdrawn": ""}
DONE = {
    "approved": "Approved: it is being released under the analyst’s name.",
    "refused": "Refused: nothing was charged.",
    "withdrawn": "Withdrawn: nothing was charged.",
    "asked": "Your release waits for an owner. Nothing was charged yet.",
}


@router.get("/approvals")
async def approvals_page(request: Request) -> Response:
    """The requests that the viewer may see."""
    return await _show(request)


@router.post("/approvals/{request}")
async def decide_form(http: Request, request: str) -> Response:
    """Approve or refuse a request."""
    form = await form_fields(http)
    number = int(request) if request.isdecimal() and len(request) < 16 else 0
    given = {"decision": form.get("decision", ""), "note": form.get("note", "").strip()}
    try:
        await api.decide_approval(http, number, validated(NewDecision, given))
    except (Problem, TakifuguError) as error:
        return await _show(http, error=error)
    return moved("/approvals", done=given["decision"])


@router.post("/approvals/{request}/withdrawal")
async def withdraw_form(http: Request, request: str) -> Response:
    """Withdraw a request of one's own."""
    await form_fields(http)
    number = int(request) if request.isdecimal() and len(request) < 16 else 0
    try:
        await api.withdraw_approval(http, number)
    except (Problem, TakifuguError) as error:
        return await _show(http, error=error)
    return moved("/approvals", done="withdrawn")


async def _show(http: Request, error: Exception | None = None) -> Response:
    actor, query = actor_of(http), http.query_params
    cursor = query.get("cursor") or None
    problem = None if error is None else problem_of(error, actor.role)
    paging = Paging(limit=200, cursor=None)
    pending = document_of(await api.list_approvals(http, paging, "pending"))["items"][::-1]
    found = document_of(await api.list_approvals(http, Paging(limit=A_PAGE, cursor=cursor)))
    if actor.role == "owner":
        details = (api.show_approval(http, one["id"]) for one in pending[:MOST_WAITING])
        pending = [document_of(answer) for answer in await asyncio.gather(*details)]
    return await shown(
        *(http, "approvals.html", "/approvals"),
        status=200 if problem is None else problem["status"],
        waiting=[_waiting(one) for one in pending[:MOST_WAITING]],
        decided=[_decided(one) for one in found["items"] if one["state"] != "pending"],
        moving=bool(pending) or any(one["state"] == "approved" for one in found["items"]),
        trouble=trouble_of(problem),
        done=DONE.get(query.get("done", "")),
        first="/approvals" if cursor else None,
        after=f"/approvals?cursor={found['next']}" if found["next"] else None,
    )


def _waiting(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request that waits, with what it would cost now where that is known."""
    now = request.get("now") or {}
    plan = now.get("plan") or request["plan"] or {}
    warning = ""
    if now.get("problem"):
        warning = f"It cannot be released now: {sentence(now['problem']['detail'])}"
    elif now.get("same") is False:
        warning = "The data or the policy changed since it was asked: an approval would be void."
    return {
        **request,
        "why": sentence(request["why"]),
        "price": plan.get("price"),
        "useful": (plan.get("usefulness") or {}).get("words"),
        "warning": warning,
    }


def _decided(request: Mapping[str, Any]) -> dict[str, Any]:
    problem = request["problem"]
    note = request["note"] if problem is None else sentence(problem["detail"])
    return {**request, "note": note, "tone": TONES.get(request["state"], "bad")}
