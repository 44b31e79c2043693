"""An app with the real access rules, whose routes only say who calls."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.testclient import TestClient

from takifugu.project.server_section import ServerSettings
from takifugu.server.access.authentication import (
    add_access,
    authorize,
    keep_session,
    sign_in,
    sign_out,
)
from takifugu.server.access.rate_limits import Limiter
from takifugu.server.access_rules import RULES, Role
from takifugu.server.api.requests import form_fields
from takifugu.server.state.server_state import NewToken, ServerState, state_at
from tests.contracts.server_state import Clock
from tests.ledger.conftest import folder

__all__ = ["folder"]
ORIGIN = "http://testserver"


@dataclass
class Seconds:
    """A monotonic clock that the test moves."""

    time: float = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.time


@dataclass
class Running:
    """An app, its state and its clocks."""

    state: ServerState
    clock: Clock
    seconds: Seconds
    settings: ServerSettings = field(default_factory=ServerSettings)

    def __post_init__(self) -> None:
        self.limiter = Limiter.from_rate(
            self.settings.rate, self.settings.burst, clock=self.seconds
        )
        self.app = FastAPI(dependencies=[Depends(authorize)], openapi_url=None)
        self.app.state.services = self
        self.app.include_router(_routes())
        add_access(self.app, self.settings)

    def client(self, token: str | None = None) -> TestClient:
        """A client that sends a token, or nothing."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        scheme = "https" if self.settings.secure else "http"
        return TestClient(
            self.app, base_url=f"{scheme}://testserver", headers=headers, follow_redirects=False
        )

    def token(self, role: Role = "analyst", name: str | None = None) -> NewToken:
        """A token that does not end."""
        return self.state.create_token(name or f"an {role}", role, None, "root")

    def browser(self, role: Role = "analyst") -> TestClient:
        """A browser that has signed in; its header has the token of its forms."""
        client = self.client()
        origin = str(client.base_url).rstrip("/")
        made = self.token(role)
        done = client.post("/sign-in", data={"token": made.secret}, headers={"Origin": origin})
        assert done.status_code == 303, done.text
        client.headers["X-CSRF-Token"] = done.headers["csrf"]
        client.headers["Origin"] = origin
        return client


def _routes() -> APIRouter:
    router = APIRouter()

    async def who(request: Request) -> dict[str, str | None]:
        actor = request.state.actor
        return {"name": actor and actor.name, "role": actor and actor.role}

    async def enter(request: Request) -> Response:
        form = await form_fields(request)
        session = await sign_in(request, form.get("token", ""))
        response = Response(status_code=303, headers={"Location": "/", "csrf": session.csrf})
        keep_session(request, response, session)
        return response

    async def leave(request: Request) -> Response:
        response = Response(status_code=303, headers={"Location": "/sign-in"})
        await sign_out(request, response)
        return response

    special = {("POST", "/sign-in"): enter, ("POST", "/sign-out"): leave}
    for rule in RULES:
        endpoint = special.get((rule.method, rule.path), who)
        router.add_api_route(rule.path, endpoint, methods=[rule.method], response_model=None)
    router.add_api_route("/unruled", who, methods=["GET"], response_model=None)
    return router


@pytest.fixture
def running(folder: Path) -> Iterator[Running]:
    clock = Clock()
    with state_at(folder / "takifugu.server", clock=clock) as state:
        yield Running(state, clock, Seconds())


@pytest.fixture
def secure(folder: Path) -> Iterator[Running]:
    """The same behind TLS."""
    clock = Clock()
    settings = ServerSettings(origin="https://testserver")
    with state_at(folder / "takifugu.server", clock=clock) as state:
        yield Running(state, clock, Seconds(), settings)
