"""Who calls, and the tokens of everybody, for owners."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from takifugu.server.access.tokens import DEFAULT_EXPIRY, end_token, expiry_of, make_token
from takifugu.server.access_rules import API, Role
from takifugu.server.api.problems import Problem
from takifugu.server.api.requests import RequestBody, body_of
from takifugu.server.api.responses import Page, PageOption, json_response, slice_response
from takifugu.server.services import actor_of, services_of
from takifugu.server.state.access_tokens import MAX_NAME_LENGTH, NewToken, TokenRecord

router = APIRouter()
TokenId = Annotated[
    str, Path(description="The public identity of a token.", examples=["26bcc3a76961e9eb"])
]


class Me(BaseModel):
    """Who calls, as their token says."""

    name: str = Field(
        description="The name that events of the ledger carry, and that a budget has.",
        examples=["ana"],
    )
    role: Role = Field(description="What the holder may do.", examples=["analyst"])
    token: str = Field(
        description="The public identity of the token, which is not the token.", examples=["k3v9x2"]
    )


@router.get(f"{API}/me", tags=["me"], response_model=Me)
async def me(request: Request) -> Response:
    """The name and the role of the token that calls."""
    actor = actor_of(request)
    return json_response({"name": actor.name, "role": actor.role, "token": actor.token})


class TokenRequest(RequestBody):
    """A token to make."""

    name: str = Field(
        min_length=1,
        max_length=MAX_NAME_LENGTH,
        description="Whose it is: the analyst of charges, and the actor of events. One name has"
        " one role.",
        examples=["ana"],
    )
    role: Role = Field(description="What the holder may do.", examples=["analyst"])
    expires: str = Field(
        default=DEFAULT_EXPIRY,
        max_length=40,
        description="When it ends: `90d`, `12h`, `2027-06-30` (the day it no longer works, in UTC),"
        " a time with its zone, or `never`.",
        examples=["90d"],
    )


class TokenView(BaseModel):
    """What is known of a token: everything but the token."""

    id: str = Field(description="Its public identity.", examples=["26bcc3a76961e9eb"])
    name: str = Field(description="Whose it is.", examples=["ana"])
    role: Role = Field(description="What the holder may do.", examples=["analyst"])
    state: str = Field(description="`live`, `expired` or `revoked`.", examples=["live"])
    made: str = Field(description="When it was made.", examples=["2026-11-16T09:00:00+00:00"])
    made_by: str = Field(description="By whom.", examples=["olga"])
    expires: str | None = Field(description="When it ends by itself; null for never.")
    revoked: str | None = Field(description="When it was revoked; null if it was not.")
    revoked_by: str | None = Field(description="By whom.")
    used: str | None = Field(description="When it was last used, to a minute; null if never.")


class MadeToken(TokenView):
    """A token that was just made."""

    secret: str = Field(
        description="The token. It is sent this once, and only its hash is stored.",
        examples=["tf_…"],
    )


@router.get(f"{API}/tokens", tags=["tokens"], response_model=Page[TokenView])
async def tokens(request: Request, paging: PageOption) -> Response:
    """Every token that was ever made, the oldest first."""
    services = services_of(request)
    records = await asyncio.to_thread(services.state.tokens)
    now = services.state.now()
    return slice_response("tokens", records, paging, lambda record: record.document(now))


@router.post(f"{API}/tokens", tags=["tokens"], response_model=MadeToken, status_code=201)
async def create_token(
    request: Request, body: Annotated[TokenRequest, body_of(TokenRequest)]
) -> Response:
    """Make a token. The answer has it this once; the ledger has an event that it was made."""
    services, actor = services_of(request), actor_of(request)

    def make() -> NewToken:
        state = services.state
        ends = expiry_of(body.expires, state.now())
        project = services.project()
        return make_token(project, state, body.name, body.role, ends, by=actor.name)

    token = await asyncio.to_thread(make)
    document = token.record.document(services.state.now()) | {"secret": token.secret}
    return json_response(document, 201)


@router.delete(f"{API}/tokens/{{token}}", tags=["tokens"], response_model=TokenView)
async def revoke_token(request: Request, token: TokenId) -> Response:
    """Revoke a token: it is refused from now on, and so are browsers that signed in with it."""
    services, actor = services_of(request), actor_of(request)

    def end() -> TokenRecord:
        if services.state.token(token) is None:
            raise Problem(404, "no-token", "there is no such token here", field="token")
        return end_token(services.project(), services.state, token, by=actor.name)

    ended = await asyncio.to_thread(end)
    return json_response(ended.document(services.state.now()))
