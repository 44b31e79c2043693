"""The app itself: unknown addresses, methods, parameters, and errors that nobody expected."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request
from fastapi.testclient import TestClient

from takifugu.server.app import create_app
from takifugu.server.roles import Actor
from takifugu.server.services import Services
from takifugu.server.settings import ServerSettings
from tests.server.projects import small_project

CANARY = "canary-in-a-message"


async def let_in(request: Request) -> None:
    request.state.actor = Actor("ana", "analyst", "t1")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    file = small_project(tmp_path_factory.mktemp("project"))
    nothing: Any = None
    services = Services(Path(file), ServerSettings(), nothing, nothing, nothing)
    app = create_app(services, guard=let_in)
    broken = APIRouter()

    @broken.get("/broken", include_in_schema=False)
    async def broken_route() -> None:
        raise RuntimeError(CANARY)

    app.include_router(broken)
    return app


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


def problem(response: Any, status: int, kind: str) -> dict[str, Any]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    found: dict[str, Any] = response.json()
    assert found["status"] == status and found["type"] == f"urn:takifugu:problem:{kind}"
    return found


def test_me(client: TestClient) -> None:
    assert client.get("/api/v1/me").json() == {"name": "ana", "role": "analyst", "token": "t1"}


def test_datasets(client: TestClient) -> None:
    found = client.get("/api/v1/datasets").json()
    assert found == {
        "items": [{"name": "stays", "budget": {"epsilon": "8", "delta": "0"}, "own_budget": None}],
        "next": None,
    }


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/api/v1/me/", "/docs", "/%2e"])
def test_unknown_addresses(client: TestClient, path: str) -> None:
    problem(client.get(path), 404, "not-found")


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST", "PUT", "PATCH", "TRACE", "BREW"])
def test_unknown_methods(client: TestClient, method: str) -> None:
    response = client.request(method, "/api/v1/me")
    assert response.status_code == 405 and response.headers["allow"] == "GET"
    if method != "HEAD":
        problem(response, 405, "method")


@pytest.mark.parametrize("name", ["STAYS", "stays ", "st%61ys2", "..", "%2e%2e", "stays%00"])
def test_names_are_exact(client: TestClient, name: str) -> None:
    response = client.get(f"/api/v1/datasets/{name}")
    assert response.status_code == 404
    assert name not in response.text


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=NaN", "cursor=x", "limit=1e9"])
def test_parameters_are_not_echoed(client: TestClient, query: str) -> None:
    name, _, value = query.partition("=")
    found = problem(client.get(f"/api/v1/datasets?{query}"), 422, "invalid-parameter")
    assert found["field"] == name and "input" not in found
    assert value in ("0", "x") or value not in str(found)


def test_an_error_that_nobody_expected(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    response = client.get("/broken")
    found = problem(response, 500, "server")
    assert CANARY not in response.text and CANARY not in caplog.text
    assert found["reference"] in caplog.text and "broken_route" in caplog.text


def test_the_project_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = small_project(tmp_path)
    nothing: Any = None
    services = Services(file, ServerSettings(), nothing, nothing, nothing)
    first = services.project()
    assert services.project() is first
    file.write_text(file.read_text() + "\n# a remark\n")
    assert services.project() is not first


def test_the_openapi_document_is_served(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "/api/v1/me" in document["paths"]
