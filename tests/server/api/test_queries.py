"""Plans and releases over HTTP: the same as in a local session, and never charged twice."""

import json
from typing import Any

import pytest

from takifugu.project.project import open_project
from takifugu.server.api import query_routes
from takifugu.session.plan_documents import plan_to_document, public_form
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_result import result_from_document
from tests.server.api.serving import HISTOGRAM, Served
from tests.server.api.test_app import problem


def charges(server: Served) -> list[Any]:
    with server.services.project().ledger(read_only=True) as ledger:
        return [event for event in ledger.history("stays") if event.kind == "charge"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    "query",
    [
        HISTOGRAM,
        {"kind": "top_k", "k": 2, "epsilon": 0.5, "by": "zone"},
        {"kind": "count", "values": "ward", "within": 40},
        {"kind": "histogram", "epsilon": "1/3", "window": ["2026-01-02", "2026-01-20"]},
        {"kind": "proportions", "epsilon": 1, "where": {"zone": ["north"]}, "sum_to_one": True},
        {"kind": "transitions", "epsilon": "100"},
    ],
)
def test_a_plan_is_that_of_a_local_session(server: Served, query: dict[str, Any]) -> None:
    found = server.plan("ana", query)
    assert found.status_code == 200, found.text
    with open_project(server.services.project_file).session("stays", "ana") as session:
        exact = QueryOptions.from_document(query_routes.decimal_amounts(query))
        local = session.plan(session.resolved(exact))
        assert found.json()["plan"] == json.loads(json.dumps(plan_to_document(public_form(local))))


@pytest.mark.nightly
def test_a_plan_spends_nothing(server: Served) -> None:
    before = charges(server)
    assert server.plan("ana", HISTOGRAM).status_code == 200
    assert charges(server) == before


def test_a_release_is_charged_once_for_a_key(server: Served) -> None:
    query = HISTOGRAM | {"epsilon": "0.5"}
    before = len(charges(server))
    first = server.release("ana", query, "the-key")
    assert first.status_code == 201
    charge = first.json()["charge"]
    assert first.headers["location"] == f"/api/v1/releases/{charge}"
    again = server.release("ana", query, "the-key")
    assert again.status_code == 201 and again.json()["charge"] == charge
    assert again.json()["result"]["rows"] == first.json()["result"]["rows"]
    assert len(charges(server)) == before + 1
    local = result_from_document(first.json()["result"])
    assert json.loads(local.to_json()) == first.json()["result"]


@pytest.mark.parametrize("spelt", ["0.1", 0.1, "1/10", "0.10"])
def test_equal_amounts_are_one_query(server: Served, spelt: Any) -> None:
    query = HISTOGRAM | {"epsilon": "0.1"}
    plans = [server.plan("ana", one).json()["plan"] for one in (query, query | {"epsilon": spelt})]
    assert plans[0]["digest"] == plans[1]["digest"]
    first = server.release("ana", query, accept_noise=True).json()
    before = len(charges(server))
    again = server.release("ana", query | {"epsilon": spelt}, accept_noise=True).json()
    assert again["charge"] == first["charge"] and again["result"]["free"]
    assert len(charges(server)) == before


def test_other_numbers_are_left_alone() -> None:
    query = {"kind": "top_k", "confidence": 0.9, "gap": 0.1, "reference": [0.1], "epsilon": 2}
    assert query_routes.decimal_amounts(query) == query


def test_the_same_key_again_shows_what_it_cost_then(server: Served) -> None:
    query = HISTOGRAM | {"epsilon": "0.21"}
    first = server.release("bo", query, "then").json()
    cost = first["result"]["cost"]
    assert cost["marginal"] > 0 and not first["result"]["free"]
    assert server.release("bo", HISTOGRAM | {"epsilon": "0.22"}, "since").status_code == 201
    again = server.release("bo", query, "then")
    assert again.status_code == 201 and again.json() == first
    other = server.release("bo", query, "another").json()["result"]
    assert other["free"] and other["cost"]["marginal"] == 0.0
    assert server.release("bo", query, "then").json() == first
    rounded = server.release("bo", query | {"sum_to_one": True}, "then").json()["result"]
    assert rounded["cost"] == cost and rounded["shown"] != first["result"]["shown"]


def test_the_same_key_of_two_people_is_two_requests(server: Served) -> None:
    one = server.release("ana", HISTOGRAM | {"epsilon": "0.25"}, "same")
    two = server.release("bo", HISTOGRAM | {"epsilon": "0.125"}, "same")
    assert one.status_code == two.status_code == 201
    assert one.json()["charge"] != two.json()["charge"]


def test_the_same_key_for_another_query_is_refused(server: Served) -> None:
    assert server.release("ana", HISTOGRAM | {"epsilon": "0.3"}, "used").status_code == 201
    before = len(charges(server))
    found = problem(
        server.release("ana", HISTOGRAM | {"epsilon": "0.31"}, "used"), 409, "LedgerConflict"
    )
    assert found["reason"] == "key" and len(charges(server)) == before


@pytest.mark.parametrize("key", [None, "", " ", "a b", "é", "x" * 129, "a\tb"])
def test_a_release_needs_a_key(server: Served, key: str | None) -> None:
    headers = {} if key is None else {"Idempotency-Key": key.encode("utf-8")}
    response = server.ask(
        *("ana", "POST", "/api/v1/datasets/stays/releases"),
        json={"query": HISTOGRAM},
        headers=headers,
    )
    assert problem(response, 422, "idempotency-key")["field"] == "Idempotency-Key"


def test_over_budget(server: Served) -> None:
    before = len(charges(server))
    found = problem(server.release("ana", HISTOGRAM | {"epsilon": 9}), 409, "OverBudget")
    assert found["dataset"] == "stays" and float(found["most"]) < 8
    assert len(charges(server)) == before


def test_mostly_noise_needs_a_yes(server: Served) -> None:
    query = HISTOGRAM | {"epsilon": "0.001"}
    found = problem(server.release("ana", query), 409, "MostlyNoise")
    assert found["field"] == "accept_noise" and found["words"]
    assert server.release("ana", query, accept_noise=True).status_code == 201


WRONG: tuple[tuple[Any, int, str], ...] = (
    ({"query": HISTOGRAM, "accept": True}, 422, "invalid-body"),
    ({"query": HISTOGRAM | {"epsilom": 1}}, 422, "InvalidQuery"),
    ({"query": HISTOGRAM | {"kind": "histgram"}}, 422, "InvalidQuery"),
    ({"query": HISTOGRAM | {"epsilon": "NaN"}}, 422, "UnsoundRequest"),
    ({"query": HISTOGRAM | {"epsilon": True}}, 422, "InvalidQuery"),
    ({"query": HISTOGRAM | {"by": ["nothing"]}}, 422, "InvalidQuery"),
    ({"query": []}, 422, "invalid-body"),
    ({}, 422, "invalid-body"),
    ([], 422, "invalid-body"),
)


@pytest.mark.parametrize(("body", "status", "kind"), WRONG)
def test_bodies_that_have_no_meaning(server: Served, body: Any, status: int, kind: str) -> None:
    for path in ("plans", "releases"):
        response = server.ask(
            *("ana", "POST", f"/api/v1/datasets/stays/{path}"),
            json=body,
            headers={"Idempotency-Key": "wrong"},
        )
        problem(response, status, kind)


def test_an_unknown_key_is_told_the_nearest(server: Served) -> None:
    body = {"query": HISTOGRAM, "accept_nose": True}
    response = server.ask(
        *("ana", "POST", "/api/v1/datasets/stays/releases"),
        json=body,
        headers={"Idempotency-Key": "wrong"},
    )
    assert "accept_noise" in problem(response, 422, "invalid-body")["detail"]
    query = {"kind": "histogram", "epsilom": 1}
    assert "epsilon" in problem(server.plan("ana", query), 422, "InvalidQuery")["needed"]


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_a_body_says_that_it_is_json(server: Served, kind: str) -> None:
    response = server.ask(
        *("ana", "POST", "/api/v1/datasets/stays/plans"),
        content=b'{"query": {}}',
        headers={"Content-Type": kind},
    )
    assert problem(response, 415, "media-type")["field"] == "Content-Type"


@pytest.mark.parametrize("end", ["plans", "releases"])
@pytest.mark.parametrize("body", [b"{", b'{"query": NaN}', b"[]", b""])
def test_nobody_learns_what_is_wrong_with_a_body_before_they_may_call(
    server: Served, end: str, body: bytes
) -> None:
    kind = {"Content-Type": "application/json"}
    statuses = {"ana": (400, 422), "udo": (403,), None: (401,)}
    for who, expected in statuses.items():
        path = f"/api/v1/datasets/stays/{end}"
        response = server.ask(who, "POST", path, content=body, headers=kind)
        assert response.status_code in expected


@pytest.mark.nightly
def test_analysts_plan_in_their_own_name(server: Served) -> None:
    body = {"query": HISTOGRAM, "analyst": "bo"}
    path = "/api/v1/datasets/stays/plans"
    problem(server.ask("ana", "POST", path, json=body), 403, "forbidden")
    assert server.ask("bo", "POST", path, json=body).status_code == 200
    assert server.ask("olga", "POST", path, json=body).json()["plan"]["analyst"] == "bo"
