"""What an analyst may see: every route is called, and nothing of the server is in any response.

Canaries are planted in the names of folders and files, taken from the ledger, or computed from the
data; each would be a find for somebody who is curious.
"""

import getpass
import hashlib
import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from takifugu.server.access_rules import API, BY_ROUTE
from takifugu.server.app import routes
from tests.server.api.serving import HISTOGRAM, Served, served
from tests.server.projects import small_project, stays

MARKS = ("data", "cells", "declared", "question", "key", "sources")
VALUES = {"dataset": "stays", "ledger": "0" * 64, "name": "app.css", "token": "0" * 16}
BODIES: dict[str, Any] = {"plans": {"query": HISTOGRAM}, "releases": {"query": HISTOGRAM}}
WRONG_BODIES: tuple[Any, ...] = (
    {"query": HISTOGRAM | {"by": ["person"]}},
    {"query": HISTOGRAM | {"epsilon": 1000}},
    {"query": HISTOGRAM | {"epsilon": "0.0001"}},
    {"query": HISTOGRAM | {"window": ["1900-01-01", "1900-01-02"]}},
    {"query": HISTOGRAM | {"where": {"zone": ["nowhere"]}}},
    {"query": {"kind": "linear", "query": "../stays.csv", "epsilon": 1}},
    {"query": {"kind": "count", "values": ["nothing"], "epsilon": 1}},
    {},
)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = small_project(tmp_path_factory.mktemp("home") / "canary-folder")
    with served(file) as running:
        yield running


def canaries(server: Served) -> dict[str, str]:
    """What must not be seen, by what it is."""
    file = server.services.project_file
    found = {
        "folder": "canary-folder",
        "path": str(file.parent),
        "file of the data": "stays.csv",
        "file of the project": file.name,
        "file of the ledger": "takifugu.ledger",
        "file of the prior": "chain.json",
        "file of the state": "takifugu.server",
        "bytes of the data": hashlib.sha256((file.parent / "stays.csv").read_bytes()).hexdigest(),
        "a traceback": "Traceback",
        "a line of code": 'File "',
        "a module": "site-packages",
        "user": pwd.getpwuid(os.geteuid()).pw_name,
        "login": getpass.getuser(),
        "home": str(Path.home()),
    }
    for person, day, *_ in stays()[::30]:
        found[f"an entity {person}"] = person
        assert day
    with server.services.project().ledger(read_only=True) as ledger:
        for event in ledger.history():
            for name in MARKS:
                value = event.body.get(name)
                if isinstance(value, str) and len(value) > 8:
                    found[f"{name} of event {event.seq}"] = value
    for secret in server.tokens.values():
        found[f"a token {secret[-4:]}"] = secret
    return found


def seen(response: Any) -> str:
    """All of a response that travels, in one text."""
    headers = "\n".join(f"{name}: {value}" for name, value in response.headers.items())
    return f"{headers}\n{response.content.decode('utf-8', 'replace')}"


def calls(charge: int) -> Iterator[tuple[str, str, Any]]:
    """Every route with plausible values, and with values that are none."""
    for route in routes():
        for method in sorted(route.methods or ()):
            for path in paths(route, charge):
                if method in ("GET", "DELETE"):
                    yield method, path, None
                    continue
                last = route.path.rpartition("/")[2]
                for body in (BODIES.get(last, {}), *WRONG_BODIES):
                    yield method, path, body
    for path in ("/", "/nothing", f"{API}/datasets/..%2f..%2fetc%2fpasswd"):
        yield "GET", path, None


def paths(route: APIRoute, charge: int) -> Iterator[str]:
    numbers = {"charge": str(charge), "request": "1", "job": "nothing"}
    yield fill(route.path, VALUES | numbers)
    yield fill(route.path, dict.fromkeys((*VALUES, *numbers), "999"))
    yield fill(route.path, dict.fromkeys((*VALUES, *numbers), "..%2f..%2fstays.csv"))


def fill(path: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, path
    return path


@pytest.mark.nightly
def test_an_analyst_sees_nothing_of_the_server(planted: Served) -> None:
    released = planted.release("ana", HISTOGRAM)
    assert released.status_code == 201
    charge = released.json()["charge"]
    found = canaries(planted)
    looked = 0
    for who in ("ana", "bo", None):
        for method, path, body in calls(charge):
            how: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}, "follow_redirects": False}
            if body is not None:
                how["json"] = body
            response = planted.ask(who, method, path, **how)
            assert response.status_code < 500, (who, method, path, response.text)
            text = seen(response).replace(":root", "")  # of a style sheet, not a user
            text = text.replace("nobody has signed in", "")  # nor is this, if nobody runs the test
            sent = f"{path} {json.dumps(body)}"
            for what, canary in found.items():
                assert canary not in text or canary in sent, (what, who, method, path)
            looked += 1
    assert looked > 3 * len(BY_ROUTE) / 2


@pytest.mark.nightly
def test_the_search_would_find_what_it_looks_for(planted: Served) -> None:
    """An owner sees some of them: the ledger's events, the policy."""
    planted.release("ana", HISTOGRAM)
    found = canaries(planted)
    assert len(found) > 50
    with planted.services.project().ledger(read_only=True) as ledger:
        bodies = "".join(json.dumps(dict(event.body)) for event in ledger.history())
    assert sum(value in bodies for value in found.values()) > 5
