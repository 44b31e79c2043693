"""A server that is killed while a release waits, is approved or is released: nothing is doubled."""

import http.client
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from takifugu.project.project import open_project
from tests.server.projects import small_project
from tests.server.running import (
    PATIENCE,
    RunningServer,
    new_token,
    running_server,
    workers_of,
)
from tests.server.test_approvals import with_rule

pytestmark = pytest.mark.nightly

QUERY = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}
LOST = (OSError, http.client.HTTPException)


def ask(server: RunningServer, token: str, key: str) -> Any:
    """POST of a release that waits for an owner."""
    return server.post(
        "/api/v1/datasets/stays/releases",
        {"query": QUERY | {"epsilon": f"1.{len(key)}"}},
        token=token,
        headers={"Idempotency-Key": key},
    )


def settled(server: RunningServer, token: str, number: int) -> Any:
    """A request once the server has done with it."""
    for _ in range(PATIENCE * 10):
        found = server.get(f"/api/v1/approvals/{number}", token=token).json()
        if found["state"] not in ("pending", "approved"):
            return found
        sleep(0.1)
    raise AssertionError("the request was not released")


def counted(project: Path) -> dict[str, int]:
    """How many events of each kind there are, of a ledger that is sound."""
    with open_project(project).ledger(inspect=True) as ledger:
        assert ledger.verify().sound
        kinds = [event.kind for event in ledger.events(limit=10_000)]
    return {kind: kinds.count(kind) for kind in ("approval", "charge", "answer")}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_killed_after_the_decision_and_before_the_release(project: Path) -> None:
    with_rule(project)
    ana, olga = new_token(project, "analyst", "ana"), new_token(project, "owner", "olga")
    with running_server(project) as server:
        answer = ask(server, ana, "k")
        assert answer.status == 202, answer.body
        number = answer.json()["approval"]["id"]
        stopped = workers_of(server.process.pid)
        assert stopped
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        decision = {"decision": "approved", "note": "yes"}
        path = f"/api/v1/approvals/{number}/decision"
        done = server.post(path, decision, token=olga)
        assert (done.status, done.json()["state"]) == (200, "approved")
        server.kill()
    assert counted(project) == {"approval": 1, "charge": 0, "answer": 0}
    with running_server(project) as server:
        found = settled(server, ana, number)
        assert (found["state"], found["note"]) == ("released", "yes")
        again = ask(server, ana, "k")
        assert again.status == 201
        result = server.get(found["result"], token=ana)
        assert again.json()["result"] == result.json()
    assert counted(project) == {"approval": 1, "charge": 1, "answer": 1}


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_worker_that_is_killed_is_followed_by_another(project: Path) -> None:
    with_rule(project)
    ana, olga = new_token(project, "analyst", "ana"), new_token(project, "owner", "olga")
    with running_server(project) as server:
        number = ask(server, ana, "k").json()["approval"]["id"]
        stopped = workers_of(server.process.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        path = f"/api/v1/approvals/{number}/decision"
        assert server.post(path, {"decision": "approved"}, token=olga).status == 200
        for pid in stopped:
            os.kill(pid, signal.SIGKILL)
        assert settled(server, ana, number)["state"] == "released"
        assert ask(server, ana, "k").status == 201
    assert counted(project) == {"approval": 1, "charge": 1, "answer": 1}


@pytest.mark.nightly
def test_killed_at_many_moments(tmp_path: Path) -> None:
    project = with_rule(small_project(tmp_path / "study", budget="40"))
    ana, olga = new_token(project, "analyst", "ana"), new_token(project, "owner", "olga")
    keys = ["k" * place for place in range(1, 9)]
    numbers: list[int] = []
    for key, delay in zip(keys, (0.0, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64), strict=True):
        with running_server(project) as server:
            answer = ask(server, ana, key)
            assert answer.status == 202, answer.body
            numbers.append(answer.json()["approval"]["id"])
            acknowledged: list[int] = []

            def approve(server: RunningServer = server, said: list[int] = acknowledged) -> None:
                with suppress(*LOST):
                    path = f"/api/v1/approvals/{numbers[-1]}/decision"
                    said.append(server.post(path, {"decision": "approved"}, token=olga).status)

            owner = threading.Thread(target=approve)
            owner.start()
            sleep(delay)
            server.kill()
            owner.join()
    with running_server(project) as server:
        for number in numbers:
            found = server.get(f"/api/v1/approvals/{number}", token=olga).json()
            if found["state"] == "pending":  # killed before the event: nobody was told anything
                path = f"/api/v1/approvals/{number}/decision"
                assert server.post(path, {"decision": "approved"}, token=olga).status in (200, 409)
            assert settled(server, ana, number)["state"] == "released"
        results = [ask(server, ana, key) for key in keys]
        assert [answer.status for answer in results] == [201] * len(keys)
        paid = [answer.json()["charge"] for answer in results]
        assert len(set(paid)) == len(keys)
    many = len(keys)
    assert counted(project) == {"approval": many, "charge": many, "answer": many}
