"""Releases that wait for an owner, by the client: pending, waited for, approved, refused."""

import json
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import takifugu as tf
from takifugu.client import ApprovalDeclined, ApprovalPending, RemoteDataset
from takifugu.errors import UnsoundRequest
from takifugu.project.project import open_project
from takifugu.session import QueryOptions
from tests.client.listening import Listening, listening
from tests.raising import raises
from tests.server.projects import small_project


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server whose releases above ε = 0.5 wait for an owner."""
    file: Path = small_project(tmp_path_factory.mktemp("approvals") / "a study", budget="50")
    text = file.read_text(encoding="utf-8")
    file.write_text(f'{text}\n[dataset.stays.approval]\nabove = "0.5"\n', encoding="utf-8")
    with listening(file) as running:
        yield running


@pytest.fixture
def stays(server: Listening) -> Iterator[RemoteDataset]:
    with tf.connect(server.url, server.tokens["ana"]) as connection:
        yield connection.dataset("stays")


def decide(server: Listening, request: int, decision: str, note: str = "") -> Any:
    """What an owner does."""
    found = urlsplit(server.url)
    connection = HTTPConnection(str(found.hostname), found.port, timeout=60)
    headers = {"Authorization": f"Bearer {server.tokens['olga']}"}
    headers["Content-Type"] = "application/json"
    body = json.dumps({"decision": decision, "note": note})
    connection.request("POST", f"/api/v1/approvals/{request}/decision", body, headers)
    response = connection.getresponse()
    told = json.loads(response.read())
    connection.close()
    assert response.status < 300, told
    return told


@pytest.mark.nightly
def test_a_release_waits_and_is_given_when_it_is_approved(
    server: Listening, stays: RemoteDataset
) -> None:
    plan = stays.plan.histogram(by="zone", epsilon=1)
    why = stays.approval_needed(plan)
    with open_project(server.project).session("stays", "ana") as session:
        assert why == session.approval_needed(
            session.plan(QueryOptions("histogram", by="zone", epsilon=1))
        )
    assert why and stays.approval_needed(stays.plan.histogram(epsilon="0.3")) is None
    with raises(ApprovalPending, dataset="stays", why=why) as caught:
        stays.release(plan)
    request = caught.value.request
    assert stays.spent() == 0
    with raises(ApprovalPending, request=request):  # the same plan is the same request
        stays.release(plan)
    with raises(ApprovalPending, request=request):
        stays.wait_for(request, timeout=0.1)
    owner = threading.Timer(0.5, decide, (server, request, "approved"))
    owner.start()
    result = stays.wait_for(request)
    owner.join()
    assert result.cost.alone <= 1 and stays.spent() == result.cost.after
    assert stays.release(plan).rows == result.rows and len(stays.history()) == 1


@pytest.mark.nightly
def test_what_the_owner_refuses_says_why(server: Listening, stays: RemoteDataset) -> None:
    plan = stays.plan.histogram(epsilon=2)
    before = stays.spent()
    with pytest.raises(ApprovalPending) as caught:
        stays.release(plan)
    request = caught.value.request
    decide(server, request, "refused", "ask for less")
    told = {"request": request, "dataset": "stays", "state": "refused", "note": "ask for less"}
    with raises(ApprovalDeclined, **told):
        stays.wait_for(request)
    with raises(ApprovalDeclined, **told):
        stays.release(plan)
    assert stays.spent() == before


@pytest.mark.parametrize("request_number", [0, -1, True, "1", 1.0])
def test_a_request_is_a_number(stays: RemoteDataset, request_number: Any) -> None:
    with raises(UnsoundRequest, field="request"):
        stays.wait_for(request_number)
    with raises(UnsoundRequest, field="charge"):
        stays.result(request_number)
