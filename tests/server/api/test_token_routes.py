"""Tokens over HTTP, with the real app, its real access rules and a real project."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from takifugu.project.project import open_project
from takifugu.server.app import create_app
from takifugu.server.roles import Role
from takifugu.server.services import Services
from takifugu.server.settings import ServerSettings
from takifugu.server.state.server_state import ServerState, open_state
from tests.server.projects import small_project

TOKENS = "/api/v1/tokens"


@dataclass
class Served:
    """An app and its state."""

    file: Path
    state: ServerState
    app: Any

    def client(self, role: Role, name: str) -> TestClient:
        """A client with a token."""
        secret = self.state.create_token(name, role, None, "root").secret
        return TestClient(self.app, headers={"Authorization": f"Bearer {secret}"})

    def events(self) -> list[tuple[str, str, str]]:
        """What the ledger says about tokens: how, whose, by whom."""
        with open_project(self.file).ledger(read_only=True) as ledger:
            found = [event.body for event in ledger.history(kind="access")]
        return [(body["how"], body["name"], body["actor"]) for body in found]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    file = small_project(tmp_path / "study")
    nothing: Any = None
    with open_state(open_project(file)) as state:
        services = Services(file, ServerSettings(), state, nothing, nothing)
        yield Served(file, state, create_app(services))


def test_an_owner_makes_lists_and_revokes_tokens(served: Served) -> None:
    owner = served.client("owner", "olga")
    made = owner.post(TOKENS, json={"name": "ana", "role": "analyst"})
    assert made.status_code == 201 and made.headers["cache-control"] == "no-store"
    secret, identity = made.json()["secret"], made.json()["id"]
    ana = TestClient(served.app, headers={"Authorization": f"Bearer {secret}"})
    assert ana.get("/api/v1/me").json() == {"name": "ana", "role": "analyst", "token": identity}
    listed = owner.get(TOKENS)
    assert [item["name"] for item in listed.json()["items"]] == ["olga", "ana"]
    assert secret not in listed.text and "hash" not in listed.text
    assert listed.json()["items"][1]["used"] is not None
    gone = owner.delete(f"{TOKENS}/{identity}")
    assert gone.status_code == 200 and gone.json()["state"] == "revoked"
    assert gone.json()["revoked_by"] == "olga"
    assert ana.get("/api/v1/me").status_code == 401
    assert served.events() == [("made", "ana", "olga"), ("revoked", "ana", "olga")]


def test_pages_of_tokens(served: Served) -> None:
    owner = served.client("owner", "olga")
    for number in range(4):
        owner.post(TOKENS, json={"name": f"a{number}", "role": "analyst"})
    names, cursor = [], None
    while True:
        page = owner.get(TOKENS, params={"limit": 2} | ({"cursor": cursor} if cursor else {}))
        names += [item["name"] for item in page.json()["items"]]
        cursor = page.json()["next"]
        if cursor is None:
            break
    assert names == ["olga", "a0", "a1", "a2", "a3"]


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        ({"name": "olga", "role": "analyst"}, "role", "two roles"),
        ({"name": "OLGA", "role": "owner"}, "name", "spelling"),
        ({"name": "a\r\nX: y", "role": "analyst"}, "name", "name"),
        ({"name": "ana", "role": "analyst", "expires": "soon"}, "expires", "expires"),
        ({"name": "ana", "role": "admin"}, "role", "literal_error"),
        ({"name": "", "role": "analyst"}, "name", "string_too_short"),
        ({"role": "analyst"}, "name", "missing"),
    ],
)
def test_a_token_that_cannot_be_made_is_a_problem(
    served: Served, body: dict[str, str], field: str, reason: str
) -> None:
    got = served.client("owner", "olga").post(TOKENS, json=body)
    found = got.json()
    assert (got.status_code, found["field"], found["reason"]) == (422, field, reason)
    assert served.events() == []


@pytest.mark.parametrize("identity", ["beef", "..", "%00", "a%2Fb", "x" * 300])
def test_an_unknown_token_is_not_there(served: Served, identity: str) -> None:
    got = served.client("owner", "olga").delete(f"{TOKENS}/{identity}")
    assert got.status_code in (404, 405)


@pytest.mark.parametrize("role", ["analyst", "auditor", "witness"])
def test_nobody_else_sees_or_changes_them(served: Served, role: Role) -> None:
    client = served.client(role, "ana")
    identity = served.state.tokens()[0].id
    assert client.get(TOKENS).status_code == 403
    assert client.post(TOKENS, json={"name": "x", "role": "owner"}).status_code == 403
    assert client.delete(f"{TOKENS}/{identity}").status_code == 403
    assert len(served.state.tokens()) == 1 and served.events() == []
