"""Signing in and out, and the tokens of everybody, for owners."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import ValidationError

from takifugu.errors import TakifuguError
from takifugu.server.access.authentication import keep_session, sign_in, sign_out
from takifugu.server.access.headers import AccessRefused
from takifugu.server.api import owner_routes as api
from takifugu.server.api.problems import Problem
from takifugu.server.api.requests import form_fields, validated
from takifugu.server.pages.page_rendering import (
    STORED_BY_NOBODY,
    document_of,
    moved,
    page,
    refused,
    sentence,
    shown,
)
from takifugu.server.services import actor_of, services_of

router = APIRouter(include_in_schema=False)
WRONG = {401: "That token is not valid", 403: "That token is not for pages", 429: "Too often"}
ROLES = (
    ("analyst", "plans and releases, and sees their own history"),
    ("auditor", "reads the ledger, verifies it and reads reports; asks nothing"),
    ("owner", "decides on datasets, priors, budgets, tokens and approvals; asks nothing"),
    ("witness", "another server, which records the head of its ledger here"),
)
BLANK = {"name": "", "role": "analyst", "expires": "90d"}


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """The form for a token."""
    query = request.query_params
    return _form(query.get("next", "/"), left=query.get("left") == "yes")


@router.post("/sign-in")
async def sign_in_form(request: Request) -> Response:
    """Begin a session with the token in the form, and go where the person wanted to."""
    form = await form_fields(request)
    following = local_path(form.get("next", "/"))
    try:
        session = await sign_in(request, form.get("token", ""))
    except AccessRefused as refused:
        wrong = {
            "title": WRONG.get(refused.status, "That did not work"),
            "detail": sentence(refused.detail),
        }
        return _form(following, wrong=wrong, status=refused.status, headers=dict(refused.headers))
    response = moved(following)
    keep_session(request, response, session)
    return response


@router.post("/sign-out")
async def sign_out_form(request: Request) -> Response:
    """End the session; browsers forget what they kept of it."""
    response = moved("/sign-in", left="yes")
    response.headers["Clear-Site-Data"] = '"cache"'
    await sign_out(request, response)
    return response


def _form(
    following: str,
    *,
    left: bool = False,
    wrong: dict[str, str] | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    values = {"next": local_path(following), "left": left, "wrong": wrong}
    text = page("sign_in.html", None, "/sign-in", values)
    passed_on = {name: value for name, value in (headers or {}).items() if name == "Retry-After"}
    return HTMLResponse(text, status, {**STORED_BY_NOBODY, **passed_on})


def local_path(address: str) -> str:
    r"""An address of this server, to go to after signing in; the first page for any other.

    >>> local_path("/releases?dataset=stays"), local_path("//elsewhere"), local_path("/\\elsewhere")
    ('/releases?dataset=stays', '/', '/')
    >>> local_path("//[")
    '/'
    """
    try:
        parts = urlsplit(address)
    except ValueError:  # half of an address in brackets
        return "/"
    odd = parts.scheme or parts.netloc or "\\" in address or not address.isprintable()
    fine = address.startswith("/") and not address.startswith("//") and not odd
    return address if fine and not address.startswith(("/sign-", "/api/")) else "/"


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
        token = document_of(await api.create_token(request, body))
    except (Problem, TakifuguError, ValidationError) as error:
        return await _show(request, given=given, error=error)
    return await _show(request, made=token)


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
    actor, state = actor_of(request), services_of(request).state
    records = await asyncio.to_thread(state.tokens)
    newest_first = [record.document(state.now()) for record in reversed(records)]
    status, trouble = refused(request, error)
    return await shown(
        *(request, "tokens.html", "/tokens"),
        status=status,
        tokens=[{**token, "mine": token["id"] == actor.token} for token in newest_first],
        made=made,
        given=given,
        trouble=trouble,
        done=done,
        roles=ROLES,
    )
