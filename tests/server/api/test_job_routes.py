"""Jobs over HTTP: 202, progress as server-sent events, cancelling; when a release is told."""

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.server.api.job_routes import WAIT
from takifugu.server.services import Services
from takifugu.session.time_steps import until_step
from tests.server.api.serving import HISTOGRAM, Served
from tests.server.api.test_app import problem

NOW = {"Prefer": "wait=0"}


def started(server: Served, query: dict[str, Any], **how: Any) -> Any:
    response = server.release("ana", query, headers=NOW, **how)
    assert response.status_code == 202, response.text
    found = response.json()
    assert response.headers["location"] == f"/api/v1/jobs/{found['id']}"
    assert found["kind"] == "job" and found["state"] in ("waiting", "running")
    return found


def events(text: str) -> list[tuple[str, Any]]:
    """What a stream of server-sent events says, read as the standard has it."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        fields = dict(line.split(": ", 1) for line in lines)
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


@pytest.mark.nightly
def test_a_job_ends_with_what_the_request_would_have_got(server: Served) -> None:
    query = HISTOGRAM | {"epsilon": "0.4"}
    job = started(server, query, key="later")
    stream = server.get("ana", f"/jobs/{job['id']}/events")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert stream.headers["cache-control"] == "no-store"
    found = events(stream.text)
    kind, end = found[-1]
    assert kind == "end" and end["state"] == "done"
    assert {kind for kind, _ in found[:-1]} <= {"progress"}
    assert end == server.get("ana", f"/jobs/{job['id']}").json()
    again = server.release("ana", query, key="later")
    assert again.status_code == 201 and again.json()["charge"] == end["result"]["charge"]


@pytest.mark.nightly
def test_a_plan_that_takes_longer_is_the_same_document(server: Served) -> None:
    response = server.plan("ana", HISTOGRAM, headers=NOW)
    assert response.status_code == 202, response.text
    stream = server.get("ana", f"/jobs/{response.json()['id']}/events")
    kind, end = events(stream.text)[-1]
    assert kind == "end" and end["state"] == "done"
    assert end["result"] == server.plan("ana", HISTOGRAM).json()


@pytest.mark.nightly
def test_a_refused_release_ends_as_a_problem(server: Served) -> None:
    job = started(server, HISTOGRAM | {"epsilon": "20"})
    found = events(server.get("ana", f"/jobs/{job['id']}/events").text)[-1][1]
    assert found["state"] == "failed" and found["result"] is None
    assert found["problem"]["type"].endswith("OverBudget") and found["problem"]["most"]


def test_a_job_is_its_owners(server: Served) -> None:
    job = started(server, HISTOGRAM | {"epsilon": "0.3"})
    for who in ("bo", "olga", "udo"):
        for end in ("", "/events"):
            problem(server.get(who, f"/jobs/{job['id']}{end}"), 404, "no-job")
        problem(server.ask(who, "DELETE", f"/api/v1/jobs/{job['id']}"), 404, "no-job")
    problem(server.get("ana", "/jobs/nothing"), 404, "no-job")
    assert events(server.get("ana", f"/jobs/{job['id']}/events").text)[-1][1]["state"] == "done"


def test_cancelling_keeps_what_has_ended(server: Served) -> None:
    job = started(server, HISTOGRAM | {"epsilon": "0.35"})
    server.get("ana", f"/jobs/{job['id']}/events")
    done = server.get("ana", f"/jobs/{job['id']}").json()
    assert server.ask("ana", "DELETE", f"/api/v1/jobs/{job['id']}").json() == done
    assert done["state"] == "done"


@pytest.mark.nightly
def test_cancelling_at_once_ends_it(server: Served) -> None:
    job = started(server, HISTOGRAM | {"epsilon": "0.36"}, key="cancelled")
    path = f"/jobs/{job['id']}"
    server.ask("ana", "DELETE", f"/api/v1{path}")
    end = events(server.get("ana", f"{path}/events").text)[-1][1]
    assert end["state"] in ("cancelled", "done")  # it may have been faster
    again = server.release("ana", HISTOGRAM | {"epsilon": "0.36"}, key="cancelled")
    assert again.status_code == 201


@given(took=st.floats(0, 1000), step=st.sampled_from([0.0, 0.05, 0.1, 1.0]))
def test_a_release_is_told_at_a_multiple_of_the_step(took: float, step: float) -> None:
    left = until_step(took, step)
    assert 0 <= left <= step
    if step:
        steps = (took + left) / step
        assert abs(steps - round(steps)) < 1e-6


class Gate:
    """Holds what a worker has done, before anybody is told of it."""

    def __init__(self, services: Services, patch: pytest.MonkeyPatch) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        run = services.pool.run

        async def held(*given: Any, **options: Any) -> Any:
            result = await run(*given, **options)
            self.reached.set()
            assert await asyncio.to_thread(self.open.wait, 120)
            return result

        patch.setattr(services.pool, "run", held)


def test_a_release_has_ended_when_its_result_can_be_fetched(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job and its events say "running" until then."""
    gate = Gate(server.services, monkeypatch)
    identity = started(server, HISTOGRAM | {"epsilon": "0.45"})["id"]
    assert gate.reached.wait(120)
    job = server.get("ana", f"/jobs/{identity}").json()
    assert (job["state"], job["result"], job["problem"]) == ("running", None, None)
    kept = server.get("ana", "/releases").json()["items"][0]
    assert kept["result"] and kept["answered"]
    gate.open.set()
    end = events(server.get("ana", f"/jobs/{identity}/events").text)[-1][1]
    assert end["state"] == "done" and end["result"]["charge"] == kept["charge"]
    fetched = server.get("ana", f"/releases/{kept['charge']}/result").json()
    assert fetched == end["result"]["result"]


def test_documents_do_not_say_how_long_a_release_took(server: Served) -> None:
    """The ledger's view of a release, its result and its metadata all have the charge's time."""
    made = server.release("ana", HISTOGRAM | {"epsilon": "0.47"}).json()
    place = f"/releases/{made['charge']}"
    charged = server.get("ana", place).json()["at"]
    results = [made["result"], server.get("ana", f"{place}/result").json()]
    for result in results:
        assert result["at"] == result["provenance"]["released"] == charged
    beside = server.get("ana", f"{place}/result?format=csv-metadata").text
    times = set(re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)?", beside))
    assert times <= {charged}
    with server.services.project().ledger(read_only=True) as ledger:
        events = [e for e in ledger.history() if e.kind == "answer"]
        assert {e.at.isoformat() for e in events if e.body["charge"] == made["charge"]} == {charged}


@pytest.mark.nightly
def test_who_is_revoked_while_listening_hears_no_end(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream may outlive its token: then nothing more is told, not even the result."""
    state, limiter = server.services.state, server.services.limiter
    for revoked in (False, True):
        with monkeypatch.context() as patch:
            gate = Gate(server.services, patch)
            made = state.create_token("eve", "analyst", None, "test")
            hers = {"Authorization": f"Bearer {made.secret}"}
            job = server.ask(
                *(None, "POST", "/api/v1/datasets/stays/releases"),
                json={"query": HISTOGRAM | {"epsilon": f"0.2{int(revoked)}"}},
                headers={**hers, **NOW, "Idempotency-Key": f"eve {revoked}".replace(" ", "-")},
            ).json()["id"]
            assert gate.reached.wait(120)  # the worker has ended, and nobody was told yet
            with ThreadPoolExecutor(1) as pool:
                listening = pool.submit(server.get, None, f"/jobs/{job}/events", headers=hers)
                while not limiter.at_once.running(made.record.id):
                    server.get("ana", "/me")
                if revoked:
                    state.revoke_token(made.record.id, "test")
                gate.open.set()
                kinds = [kind for kind, _ in events(listening.result().text)]
            assert ("end" in kinds) == (not revoked)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=5", "5"),
        ("respond-async, wait=0", "0"),
        ('wait="7"', "7"),
        ("handling=lenient; x=1, wait = 12", "12"),
        ("wait=-1", None),
        ("wait=1e9", None),
        ("await=3", None),
        ("", None),
    ],
)
def test_how_long_a_caller_waits(header: str, seconds: str | None) -> None:
    found = WAIT.search(header)
    assert (found and found[1]) == seconds
