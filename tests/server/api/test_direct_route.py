"""Routes that are called without FastAPI's machinery: who calls is known before they read."""

from typing import Annotated, Any

import pytest
from fastapi import APIRouter, Request, Response

from takifugu.server.access_rules import allowed, rule_of
from takifugu.server.api.query_routes import DirectRoute, PlanRequest
from takifugu.server.api.requests import body_of
from takifugu.server.app import routes
from tests.server.api.serving import HISTOGRAM, PEOPLE, Served

DIRECT = [route for route in routes() if isinstance(route, DirectRoute)]


@pytest.mark.parametrize("route", DIRECT, ids=lambda route: route.name)
def test_it_takes_what_it_declares_and_nothing_else(route: DirectRoute) -> None:
    declared = route.dependant
    assert not declared.query_params and not declared.cookie_params and not declared.body_params
    assert {one.name for one in declared.path_params} == set(route.param_convertors)
    assert all(one.alias.lower() == one.name.replace("_", "-") for one in declared.header_params)


@pytest.mark.parametrize("route", DIRECT, ids=lambda route: route.name)
@pytest.mark.parametrize("body", [b"{", b'{"query": NaN}', b"[]", b""])
def test_nobody_learns_what_is_wrong_with_a_body_before_they_may_call(
    server: Served, route: DirectRoute, body: bytes
) -> None:
    [method] = list(route.methods or [])
    rule = rule_of(method, route.path)
    path, how = route.path.replace("{dataset}", "stays"), {"content": body}
    kind = {"Content-Type": "application/json"}
    assert server.ask(None, method, path, headers=kind, **how).status_code == 401
    unknown = kind | {"Authorization": "Bearer tf_" + 43 * "a"}
    assert server.ask(None, method, path, headers=unknown, **how).status_code == 401
    for name, role in PEOPLE.items():
        found = server.ask(name, method, path, headers=kind, **how).status_code
        assert found in (400, 422) if allowed(rule, role) else found == 403  # type: ignore[arg-type]


@pytest.mark.nightly
def test_a_token_that_is_revoked_is_refused_at_once(server: Served) -> None:
    state = server.services.state
    made = state.create_token("eve", "analyst", None, "test")
    headers = {"Authorization": f"Bearer {made.secret}"}
    path, body = "/api/v1/datasets/stays/plans", {"query": HISTOGRAM}
    assert server.ask(None, "POST", path, headers=headers, json=body).status_code == 200
    state.revoke_token(made.record.id, "test")
    assert server.ask(None, "POST", path, headers=headers, json=body).status_code == 401


@pytest.mark.nightly
def test_a_function_that_it_cannot_call_is_no_direct_route() -> None:
    router = APIRouter(route_class=DirectRoute)

    async def without_part(
        request: Request, body: Annotated[PlanRequest, body_of(PlanRequest)]
    ) -> Response:
        return Response(f"{request.url.path}: {body}")

    async def other_body(request: Request, body: Annotated[dict[str, Any], "any"]) -> Response:
        return Response(f"{request.url.path}: {body}")

    with pytest.raises(TypeError, match="cannot be called directly"):
        router.post("/things/{part}")(without_part)
    with pytest.raises(TypeError):
        router.post("/things")(other_body)
