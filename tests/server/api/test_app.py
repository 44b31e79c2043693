"""The app itself: unknown addresses, methods, parameters, and errors that nobody expected."""

import re
from pathlib import Path
from typing import Any

import pytest

from takifugu.server.services import open_services
from takifugu.server.work.jobs import JobBoard
from tests.server.api.serving import SETTINGS, Served
from tests.server.projects import small_project

CANARY = "canary-in-a-message"


def problem(response: Any, status: int, kind: str) -> dict[str, Any]:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    found: dict[str, Any] = response.json()
    assert found["status"] == status and found["type"] == f"urn:takifugu:problem:{kind}"
    return found


@pytest.mark.nightly
def test_me(server: Served) -> None:
    assert server.get("ana", "/me").json().items() >= {"name": "ana", "role": "analyst"}.items()


def test_datasets(server: Served) -> None:
    found = server.get("ana", "/datasets").json()
    assert found == {
        "items": [{"name": "stays", "budget": {"epsilon": "8", "delta": "0"}, "own_budget": None}],
        "next": None,
    }


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/nothing", "/api/v1/me/", "/docs", "/%2e"])
def test_unknown_addresses(server: Served, path: str) -> None:
    for who in (None, "ana"):
        problem(server.ask(who, "GET", path), 404, "not-found")


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "POST", "PUT", "PATCH", "TRACE", "BREW"])
def test_unknown_methods(server: Served, method: str) -> None:
    response = server.ask("ana", method, "/api/v1/me")
    assert response.status_code == 405 and response.headers["allow"] == "GET"
    if method != "HEAD":
        problem(response, 405, "method")


@pytest.mark.parametrize("name", ["STAYS", "stays ", "st%61ys2", "..", "%2e%2e", "stays%00"])
def test_names_are_exact(server: Served, name: str) -> None:
    response = server.get("ana", f"/datasets/{name}")
    assert response.status_code == 404
    assert name not in response.text


@pytest.mark.parametrize("query", ["limit=0", "limit=x", "limit=NaN", "cursor=x", "limit=1e9"])
def test_parameters_are_not_echoed(server: Served, query: str) -> None:
    name, _, value = query.partition("=")
    found = problem(server.get("ana", f"/datasets?{query}"), 422, "invalid-parameter")
    assert found["field"] == name and "input" not in found
    assert value in ("0", "x") or value not in str(found)


def test_an_error_that_nobody_expected(
    server: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(JobBoard, "start", broken)
    for who in ("ana", "olga"):
        response = server.get(who, "/datasets/stays")
        found = problem(response, 500, "server")
        assert CANARY not in response.text and CANARY not in caplog.text
        assert found["reference"] in caplog.text
        assert re.search(r"test_app:[0-9]+ broken", caplog.text)


def test_the_project_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = small_project(tmp_path)
    services = open_services(file, SETTINGS)
    first = services.project()
    assert services.project() is first
    file.write_text(file.read_text() + "\n# a remark\n")
    assert services.project() is not first
    services.state.close()


def test_the_openapi_document_is_served(server: Served) -> None:
    document = server.ask(None, "GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "/api/v1/me" in document["paths"]


def test_forms_have_one_encoding_which_is_read_quickly(server: Served) -> None:
    headers = {"Origin": "http://testserver"}

    def enter(**sent: Any) -> Any:
        return server.ask(None, "POST", "/sign-in", headers=headers, **sent)

    assert enter(data={"token": "tf_wrong"}).status_code == 401
    parts = {"token": (None, "tf_wrong"), "file": ("name", b"content")}
    assert problem(enter(files=parts), 415, "media-type")["field"] == "Content-Type"
    many = {f"field {n}": "" for n in range(2_000)}
    assert problem(enter(data=many), 422, "invalid-body")["reason"] == "fields"
