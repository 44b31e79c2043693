"""Every route and every role: allowed or 403, from the one table; and the table is the app's.

The app is the real one, on a real project, with real tokens and real workers. Bodies are empty and
things that are named may not exist: what is tested is who gets as far as to be told so.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from takifugu.server.access_rules import ROLES, RULES, Role, Rule
from tests.server.api.serving import Served, served
from tests.server.projects import small_project

NAMED = {"dataset": "stays", "charge": "1", "request": "1", "job": "none", "token": "beef"}
NAMED |= {"name": "report.html", "ledger": "0" * 32}
# Written out once more, and by hand: the table itself cannot be its own oracle.
NOBODY = {"/healthz", "/readyz", "/openapi.json", "/static/{name}", "/favicon.ico", "/sign-in"}
FORBIDDEN: dict[Role, set[str]] = {
    "analyst": {
        *("GET /metrics", "GET /tokens", "POST /tokens", "POST /tokens/{token}/revoke"),
        *("GET /ledger", "POST /ledger", "GET /reports", "POST /approvals/{request}"),
        *("POST /datasets/{dataset}/budget", "POST /datasets/{dataset}/policy-change"),
        *("POST /api/v1/datasets", "POST /api/v1/datasets/{dataset}/prior-fits"),
        *("PUT /api/v1/datasets/{dataset}/budget", "GET /api/v1/datasets/{dataset}/policy"),
        "GET /api/v1/datasets/{dataset}/policy-change",
        "POST /api/v1/datasets/{dataset}/policy-change",
        "POST /api/v1/approvals/{request}/decision",
        *("GET /api/v1/tokens", "POST /api/v1/tokens", "DELETE /api/v1/tokens/{token}"),
        *("GET /api/v1/ledger", "GET /api/v1/ledger/events", "GET /api/v1/ledger/export"),
        *("POST /api/v1/ledger/verification", "GET /api/v1/reports/{name}"),
        *("GET /api/v1/witness/{ledger}", "PUT /api/v1/witness/{ledger}"),
    },
    "owner": {  # who can raise the budget does not ask
        "POST /api/v1/datasets/{dataset}/releases",
        *("DELETE /api/v1/approvals/{request}", "POST /datasets/{dataset}/ask"),
        "POST /approvals/{request}/withdrawal",
        *("GET /api/v1/witness/{ledger}", "PUT /api/v1/witness/{ledger}"),
    },
    "auditor": {
        *("GET /tokens", "POST /tokens", "POST /tokens/{token}/revoke"),
        *("POST /approvals/{request}", "GET /datasets/{dataset}/ask"),
        "POST /approvals/{request}/withdrawal",
        *("POST /datasets/{dataset}/ask", "POST /datasets/{dataset}/budget"),
        *("POST /datasets/{dataset}/policy-change", "POST /api/v1/datasets"),
        "POST /api/v1/datasets/{dataset}/plans",
        "POST /api/v1/datasets/{dataset}/releases",
        "POST /api/v1/datasets/{dataset}/prior-fits",
        "DELETE /api/v1/approvals/{request}",
        *("PUT /api/v1/datasets/{dataset}/budget", "GET /api/v1/datasets/{dataset}/policy"),
        "GET /api/v1/datasets/{dataset}/policy-change",
        "POST /api/v1/datasets/{dataset}/policy-change",
        "POST /api/v1/approvals/{request}/decision",
        *("GET /api/v1/tokens", "POST /api/v1/tokens", "DELETE /api/v1/tokens/{token}"),
        *("GET /api/v1/witness/{ledger}", "PUT /api/v1/witness/{ledger}"),
    },
    "witness": {
        f"{rule.method} {rule.path}"
        for rule in RULES
        if rule.path not in NOBODY and not rule.path.startswith("/api/v1/witness/")
    },
}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(small_project(tmp_path_factory.mktemp("rules") / "study")) as made:
        made.client.follow_redirects = False
        yield made


@pytest.fixture(scope="module")
def app(running: Served) -> FastAPI:
    app: FastAPI = running.client.app  # type: ignore[assignment]
    return app


@pytest.fixture(scope="module")
def tokens(running: Served) -> dict[Role, str]:
    state = running.services.state
    return {role: state.create_token(f"a {role}", role, None, "root").secret for role in ROLES}


def path_of(rule: Rule) -> str:
    path = rule.path
    for name, value in NAMED.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path
    return path


def routes(found: list[Any]) -> Iterator[tuple[str, str]]:
    """The method and path of every route, also of those in routers that were included."""
    for route in found:
        inner = getattr(route, "effective_route_contexts", None)
        for one in inner() if inner is not None else (route,):
            assert getattr(one, "methods", None), f"{one} is not a route that rules can be about"
            for method in one.methods:
                yield method, one.path


@pytest.mark.nightly
def test_every_route_has_a_rule_and_every_rule_a_route(app: FastAPI) -> None:
    found = list(routes(app.routes))
    assert len(found) == len(set(found)), "a route stands twice"
    assert set(found) == {(rule.method, rule.path) for rule in RULES}
    assert len(RULES) == len({(rule.method, rule.path) for rule in RULES})


def test_the_table_is_the_one_that_was_meant() -> None:
    for role, forbidden in FORBIDDEN.items():
        denied = {
            f"{rule.method} {rule.path}"
            for rule in RULES
            if not rule.anybody and role not in rule.roles
        }
        assert denied == forbidden, role
    assert {rule.path for rule in RULES if rule.anybody} == NOBODY


@pytest.mark.nightly
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.method} {rule.path}")
def test_every_route_in_every_role_and_in_none(
    running: Served, tokens: dict[Role, str], rule: Rule
) -> None:
    name = f"{rule.method} {rule.path}"
    for role in ROLES:
        got = running.client.request(
            rule.method, path_of(rule), headers={"Authorization": f"Bearer {tokens[role]}"}
        )
        forbidden = got.status_code == 403 and '"urn:takifugu:problem:forbidden"' in got.text
        assert forbidden == (name in FORBIDDEN[role]), (name, role, got.status_code, got.text[:200])
        if not forbidden and not rule.anybody:
            assert got.status_code not in (401, 403, 429, 500), (name, role, got.text[:300])
    nobody = running.client.request(rule.method, path_of(rule))
    if rule.anybody:
        assert nobody.status_code not in (303, 401, 500) or rule.path == "/sign-in"
    elif rule.path.startswith("/api/") or rule.path == "/metrics":
        assert nobody.status_code == 401, (name, nobody.text[:200])
    else:
        assert nobody.status_code == 303, name
        assert nobody.headers["location"].partition("?")[0] == "/sign-in", name


@pytest.mark.nightly
@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "X" * 50])
def test_other_methods_answer_nothing(
    running: Served, tokens: dict[Role, str], method: str
) -> None:
    for rule in RULES:
        got = running.client.request(
            method, path_of(rule), headers={"Authorization": f"Bearer {tokens['owner']}"}
        )
        assert got.status_code in (404, 405), (method, rule.path)
