"""Who calls."""

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from takifugu.server.access_rules import API
from takifugu.server.api.problem_responses import json_response
from takifugu.server.roles import Role
from takifugu.server.services import actor_of

router = APIRouter(tags=["me"])


class Me(BaseModel):
    """Who calls, as their token says."""

    name: str = Field(
        description="The name that events of the ledger carry, and that a budget has.",
        examples=["ana"],
    )
    role: Role = Field(description="What the holder may do.", examples=["analyst"])
    token: str = Field(
        description="The public identity of the token, which is not the token.",
        examples=["k3v9x2"],
    )


@router.get(f"{API}/me", response_model=Me)
async def me(request: Request) -> Response:
    """The name and the role of the token that calls."""
    actor = actor_of(request)
    return json_response({"name": actor.name, "role": actor.role, "token": actor.token})
