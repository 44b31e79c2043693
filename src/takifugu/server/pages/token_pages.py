"""The page of tokens: owners make, list and revoke them."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from takifugu.errors import TakifuguError
from takifugu.server.api import token_routes as api
from takifugu.server.api.bodies import form_fields, validated
from takifugu.server.api.pagination import MOST, Paging
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.pages.page_responses import (
    document_of,
    moved,
    shown,
    trouble_of,
)
from takifugu.server.services import actor_of

router = APIRouter(include_in_schema=False)
ROLES = (
    ("analyst", "plans and releases, and sees their own history"),
    ("auditor", "reads the ledger, verifies it and reads reports; asks nothing"),
    ("owner", "decides on datasets, priors, budgets, tokens and approvals; asks nothing"),
    ("witness", "another server, which records the head of its ledger here"),
)
BLANK = {"name": "", "role": "analyst", "expires": "90d"}


@router.get("/tokens")
async def tokens_page(request: Request) -> Response:
    """Every token, and the form for a new one."""
    done = "The token is revoked." if request.query_params.get("revoked") == "yes" else None
    return await _show(request, done=done)


@router.post("/tokens")
async def make_token_form(request: Request) -> Response:
    """Make a token, and show it this once."""
    form = await form_fields(request)
    given = {name: form.get(name, "").strip() for name in BLANK}
    try:
        body = validated(api.TokenRequest, given)
        made = document_of(await api.create_token(request, body))
    except (Problem, TakifuguError, ValidationError) as error:
        return await _show(request, given=given, error=error)
    return await _show(request, made=made)


@router.post("/tokens/{token}/revoke")
async def revoke_token_form(request: Request, token: str) -> Response:
    """Revoke a token."""
    try:
        await api.revoke_token(request, token)
    except (Problem, TakifuguError) as error:
        return await _show(request, error=error)
    return moved("/tokens", revoked="yes")


async def _show(
    request: Request,
    *,
    made: Mapping[str, Any] | None = None,
    given: Mapping[str, str] = BLANK,
    error: Exception | None = None,
    done: str | None = None,
) -> Response:
    actor = actor_of(request)
    problem = None if error is None else problem_of(error, actor.role)
    return await shown(
        *(request, "tokens.html", "/tokens"),
        status=200 if problem is None else problem["status"],
        tokens=[{**one, "mine": one["id"] == actor.token} for one in await _all(request)],
        made=made,
        given=given,
        trouble=trouble_of(problem),
        done=done,
        roles=ROLES,
    )


async def _all(request: Request) -> list[dict[str, Any]]:
    """Every token, the newest first: there is one for each person."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = document_of(await api.tokens(request, Paging(limit=MOST, cursor=cursor)))
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            return found[::-1]
