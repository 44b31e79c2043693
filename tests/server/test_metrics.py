"""Metrics: what is counted, for whom, and that no name and no data is in it."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from takifugu.server.app import routes
from takifugu.server.operation.health import ServerMetrics
from tests.server.running import RunningServer, running_server

QUERY = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}
PATH = "/api/v1/datasets/stays"


def values(text: bytes) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def read(server: RunningServer, token: str) -> bytes:
    answer = server.get("/metrics", token=token)
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    return answer.body


@pytest.mark.nightly
def test_requests_refusals_and_workers_are_counted(study: Path) -> None:
    with running_server(study) as server:
        analyst, auditor = server.token("analyst", "xenia"), server.token("auditor", "udo")
        for _ in range(3):
            assert server.post(f"{PATH}/plans", {"query": QUERY}, token=analyst).status == 200
        too_much = QUERY | {"epsilon": "100"}
        headers = {"Idempotency-Key": "k", "Prefer": "wait=60"}
        refused = server.post(
            f"{PATH}/releases", {"query": too_much}, token=analyst, headers=headers
        )
        assert refused.status == 409
        kind = refused.json()["type"].rpartition(":")[2]
        assert server.get("/api/v1/me").status == 401
        assert server.get("/no-such-page-of-somebody").status == 404
        server.get("/api/v1/datasets/somebody-private", token=analyst)
        server.ask("BREW", "/api/v1/me", token=analyst)
        text = read(server, auditor)
    found = values(text)
    template = "/api/v1/datasets/{dataset}"
    assert found["takifugu_requests_total", ("POST", "analyst", f"{template}/plans", "200")] == 3
    assert found["takifugu_requests_total", ("GET", "nobody", "/api/v1/me", "401")] == 1
    assert found["takifugu_requests_total", ("GET", "nobody", "other", "404")] == 1
    assert found["takifugu_request_seconds_count", ("analyst", f"{template}/plans")] == 3
    assert found["takifugu_refusals_total", (kind,)] == 1
    assert found["takifugu_workers", ("idle",)] + found["takifugu_workers", ("busy",)] >= 1
    assert found["takifugu_jobs", ("running",)] == found["takifugu_tasks", ("waiting",)] == 0
    assert found["takifugu_connections", ("open",)] >= 1
    assert found["process_resident_memory_bytes", ()] > 0
    _has_words_of_the_code_alone(text.decode())


def _has_words_of_the_code_alone(text: str) -> None:
    """No dataset, no person, no address is a label, whatever is asked for."""
    for name in ("stays", "xenia", "udo", "zone", "north", "home", "somebody", "BREW", "a study"):
        assert not re.search(rf'"{name}|{name}"', text), name
    known = {route.path for route in routes()} | {"other"}
    labels = set(re.findall(r'route="([^"]*)"', text))
    assert labels and labels <= known


def test_two_servers_in_one_process_count_apart() -> None:
    one, other = ServerMetrics(), ServerMetrics()
    one.refused("x")
    assert b'kind="x"' in one.text() and b'kind="x"' not in other.text()
