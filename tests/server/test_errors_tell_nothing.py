"""What the real server gives away by errors, reports and names: nothing of its folder or of others.

What must not get out is in `tests.server.attacked`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from takifugu.server.access_rules import RULES
from tests.server.attacked import PLANS, Attacked, attacked, tells_nothing
from tests.server.running import Answer


def problem(answer: Answer) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = json.loads(answer.body)
    return found


QUERY = {"query": {"kind": "histogram", "by": ["zone"], "epsilon": "1"}}


BROKEN = {  # by what is broken: the file, and what it holds then; None if it is gone
    "no data": ("stays.csv", None),
    "other columns": ("stays.csv", "canary,secret\n1,canary-value\n"),
    "no policy": ("takifugu.toml", "canary = [broken"),
    "no declaration": ("stays.toml", "canary = [broken"),
    "no prior": ("chain.json", "{canary"),
    "no ledger": ("takifugu.ledger", None),
}
NAMED = ("takifugu.toml", "stays.toml", "chain.json")  # which the owner is told


@pytest.mark.nightly
def test_a_broken_project_tells_an_analyst_nothing_and_the_owner_enough(tmp_path: Path) -> None:
    with attacked(tmp_path) as made:
        for broken, (name, content) in BROKEN.items():
            file = made.server.project.parent / name
            file.rename(tmp_path / "away")
            if content is not None:
                file.write_text(content)
            _ask_of_broken(made, broken, name)
            (tmp_path / "away").replace(file)
        log = made.server.log_text()
        assert "canary-value" not in log and "Traceback" not in log
        assert made.server.post(PLANS, QUERY, token=made.tokens["ana"]).status == 200


def _ask_of_broken(made: Attacked, broken: str, name: str) -> None:
    asked = [("POST", PLANS), ("GET", "/api/v1/datasets/stays"), ("GET", "/api/v1/datasets")]
    for method, path in [*asked, ("GET", "/api/v1/releases"), ("GET", "/readyz")]:
        for who in ("ana", "olga"):
            document = QUERY if method == "POST" else None
            answer = made.server.ask(method, path, token=made.tokens[who], document=document)
            if answer.status >= 400:
                assert path == "/readyz" or problem(answer)["status"] == answer.status
            if who == "ana":
                tells_nothing(answer.body)
            elif path == PLANS and name in NAMED:
                assert name in problem(answer)["detail"], broken
    released = made.server.post(
        "/api/v1/datasets/stays/releases",
        QUERY,
        token=made.tokens["ana"],
        headers={"Idempotency-Key": broken.replace(" ", "-")},
    )
    assert released.status >= 400, (broken, released.body)
    tells_nothing(released.body)
    reference = problem(released).get("reference")
    assert reference is None or reference in made.server.log_text()
    assert made.server.get("/healthz").status == 200


@pytest.mark.nightly
def test_an_analyst_sees_nothing_of_another(tmp_path: Path) -> None:
    """Neither the name, nor releases, nor results, nor requests, nor jobs, nor budgets."""
    other, word = "zoe-of-the-other-team", b"zoe-of"
    with attacked(tmp_path, {"ana": "2", other: "3"}) as made:
        server = made.server
        released = server.post(
            "/api/v1/datasets/stays/releases",
            QUERY,
            token=made.tokens[other],
            headers={"Idempotency-Key": "theirs"},
        )
        assert released.status == 201, released.body
        charge = released.json()["charge"]
        started = server.post(PLANS, QUERY, token=made.tokens[other], headers={"Prefer": "wait=0"})
        job = started.json().get("id", "none")
        named = {"dataset": "stays", "charge": str(charge), "request": "1", "job": job}
        named |= {"token": "beef", "name": "report.html", "ledger": "0" * 32}
        for rule in RULES:
            if rule.method != "GET" or ("analyst" not in rule.roles and not rule.anybody):
                continue
            path = rule.path
            for name, value in named.items():
                path = path.replace(f"{{{name}}}", value)
            for headers in ({}, {"Accept": "text/html"}):
                answer = server.get(path, token=made.tokens["ana"], headers=headers)
                assert word not in answer.body, path
                assert word.decode() not in str(answer.headers), path
                if "{charge}" in rule.path or "{job}" in rule.path:
                    assert answer.status == 404, path
        mine = server.get("/api/v1/releases", token=made.tokens["ana"]).json()
        assert mine["items"] == []
        assert server.delete(f"/api/v1/jobs/{job}", token=made.tokens["ana"]).status == 404
        plan = server.post(PLANS, QUERY | {"analyst": other}, token=made.tokens["ana"])
        assert plan.status == 403 and word not in plan.body


@pytest.mark.nightly
def test_names_of_datasets_are_names(target: Attacked) -> None:
    for name in ("../x", "a/b", "a b", "A\r\nB", "", ".", "[x]", "x" * 300, "__proto__.x", "é"):
        body = {"name": name, "declaration": "stays.toml"}
        answer = target.server.post("/api/v1/datasets", body, token=target.tokens["olga"])
        assert answer.status in (409, 422), (name, answer.body)
