"""Every operation of the OpenAPI document, called with what it allows and with what it does not.

Schemathesis makes the requests from the document that the running server gives, in all three roles
and without a token: the server never fails, answers with a status and a media type that the
document has for the operation, and with a body that fits its schema. NaN, which it does not try, is
sent as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, checks

from takifugu.server.access_rules import API
from tests.server.projects import small_project
from tests.server.running import RunningServer, new_token, running_server

pytestmark = pytest.mark.nightly

checks.load_all_checks()
CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
EXAMPLES = 4  # of each operation, role and mode
ROLES: dict[str, Any] = {"ana": "analyst", "olga": "owner", "udo": "auditor"}
HISTOGRAM = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}


@dataclass(frozen=True)
class Documented:
    """A running server, its document, its tokens, and names of things that it has."""

    server: RunningServer
    schema: Any
    tokens: Mapping[str, str]
    names: Mapping[str, Any]


@pytest.fixture(scope="module")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Documented]:
    file: Path = small_project(tmp_path_factory.mktemp("served") / "study", budget="50")
    tokens = {name: new_token(file, role, name) for name, role in ROLES.items()}
    with running_server(file, rate=1_000_000, burst=100_000, time_step=0.0) as server:
        released = server.post(
            f"{API}/datasets/stays/releases",
            {"query": HISTOGRAM},
            token=tokens["ana"],
            headers={"Idempotency-Key": "first"},
        )
        assert released.status == 201, released.body
        later = server.post(
            f"{API}/datasets/stays/plans",
            {"query": HISTOGRAM},
            token=tokens["ana"],
            headers={"Prefer": "wait=0"},
        )
        job = later.json()["id"] if later.status == 202 else "none"
        names = {"dataset": "stays", "charge": released.json()["charge"], "job": job}
        schema = schemathesis.openapi.from_dict(server.get("/openapi.json").json())
        yield Documented(server, schema, tokens, names)


def operations() -> list[tuple[str, str]]:
    """The operations of the document: every route for programs."""
    from takifugu.server.app import routes

    return sorted(
        (method, route.path)
        for route in routes()
        if route.include_in_schema
        for method in route.methods or ()
    )


@pytest.mark.nightly
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("method", "path"), operations())
def test_an_operation_is_as_documented(
    documented: Documented, method: str, path: str, mode: GenerationMode
) -> None:
    operation = documented.schema[path][method]
    known = {name: value for name, value in documented.names.items() if f"{{{name}}}" in path}
    made = [operation.as_strategy(generation_mode=mode)]
    if known:
        made.append(operation.as_strategy(generation_mode=mode, path_parameters=known))
    calls = [tried(documented, strategy, who) for strategy in made for who in (*ROLES, None)]
    assert mode is GenerationMode.NEGATIVE or all(calls)


def tried(documented: Documented, strategy: Any, who: str | None) -> int:
    """How many requests of a strategy were made and answered as documented."""
    headers = {} if who is None else {"Authorization": f"Bearer {documented.tokens[who]}"}
    answered = []

    @given(case=strategy)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def holds(case: Any) -> None:
        base = documented.server.url
        answered.append(case.call_and_validate(base_url=base, headers=headers, checks=CHECKS))

    try:
        holds()
    except Unsatisfiable:  # an operation without parameters cannot be called wrongly
        assert not answered
    return len(answered)


GOOD: tuple[tuple[str, str, dict[str, Any], int], ...] = (
    ("GET", "/me", {}, 200),
    ("GET", "/datasets", {"query": {"limit": 1}}, 200),
    ("GET", "/datasets/{dataset}", {}, 200),
    ("GET", "/datasets/{dataset}/guarantee", {}, 200),
    ("GET", "/datasets/{dataset}/budget", {}, 200),
    ("POST", "/datasets/{dataset}/plans", {"body": {"query": HISTOGRAM}}, 200),
    (
        *("POST", "/datasets/{dataset}/plans"),
        {"body": {"query": HISTOGRAM}, "headers": {"Prefer": "wait=0"}},
        202,
    ),
    (
        *("POST", "/datasets/{dataset}/releases"),
        {"body": {"query": HISTOGRAM}, "headers": {"Idempotency-Key": "first"}},
        201,
    ),
    (
        *("POST", "/datasets/{dataset}/releases"),
        {"body": {"query": HISTOGRAM | {"epsilon": 90}}, "headers": {"Idempotency-Key": "much"}},
        409,
    ),
    ("GET", "/releases", {}, 200),
    ("GET", "/releases/{charge}", {}, 200),
    *(
        ("GET", "/releases/{charge}/result", {"query": {"format": form}}, 200)
        for form in ("json", "csv", "csv-metadata", "parquet", "arrow", "xlsx")
    ),
    ("GET", "/releases/{charge}/result", {"headers": {"If-None-Match": "*"}}, 304),
    ("GET", "/releases/{charge}/result", {"headers": {"Accept": "text/html"}}, 406),
    ("GET", "/releases/{charge}/figure", {"query": {"format": "png"}}, 200),
    ("GET", "/jobs/{job}", {}, 200),
    ("GET", "/jobs/{job}/events", {}, 200),
)


@pytest.mark.parametrize(("method", "end", "given_with", "status"), GOOD)
def test_good_requests_are_answered_as_documented(
    documented: Documented, method: str, end: str, given_with: dict[str, Any], status: int
) -> None:
    path = f"{API}{end}"
    known = {name: value for name, value in documented.names.items() if f"{{{name}}}" in path}
    sent = dict(given_with)
    headers = sent.pop("headers", {}) | {"Authorization": f"Bearer {documented.tokens['ana']}"}
    media = {"media_type": "application/json"} if "body" in sent else {}
    case = documented.schema[path][method].Case(path_parameters=known, **sent, **media)
    answer = case.call_and_validate(base_url=documented.server.url, headers=headers, checks=CHECKS)
    assert answer.status_code == status, answer.content
