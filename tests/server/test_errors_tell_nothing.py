"""What the real server gives away by errors, reports and names: nothing of its folder or of others.

What must not get out is in `tests.server.attacked`.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from takifugu.server.access_rules import RULES
from tests.server.attacked import PLANS, Attacked, attacked, tells_nothing
from tests.server.raw_requests import status_of
from tests.server.running import Answer


def problem(answer: Answer) -> dict[str, Any]:
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = json.loads(answer.body)
    return found


QUERY = {"query": {"kind": "histogram", "by": ["zone"], "epsilon": "1"}}


@pytest.mark.nightly
@pytest.mark.parametrize(
    "broken", ["no data", "other columns", "no policy", "no declaration", "no prior", "no ledger"]
)
def test_a_broken_project_tells_an_analyst_nothing_and_the_owner_enough(
    tmp_path: Path, broken: str
) -> None:
    with attacked(tmp_path) as made:
        folder = made.server.project.parent
        if broken == "no data":
            (folder / "stays.csv").unlink()
        elif broken == "other columns":
            (folder / "stays.csv").write_text("canary,secret\n1,canary-value\n")
        elif broken == "no policy":
            made.server.project.write_text("canary = [broken")
        elif broken == "no declaration":
            (folder / "stays.toml").write_text("canary = [broken")
        elif broken == "no prior":
            (folder / "chain.json").write_text("{canary")
        else:
            for file in folder.glob("takifugu.ledger*"):
                file.unlink()
        headers = {"Idempotency-Key": "one"}
        asked = [("POST", PLANS), ("GET", "/api/v1/datasets/stays"), ("GET", "/api/v1/datasets")]
        for method, path in [*asked, ("GET", "/api/v1/releases"), ("GET", "/readyz")]:
            for who in ("ana", "olga"):
                document = QUERY if method == "POST" else None
                token = made.tokens[who]
                answer = made.server.ask(method, path, token=token, document=document)
                if answer.status >= 400:
                    assert path == "/readyz" or problem(answer)["status"] == answer.status
                if who == "ana":
                    tells_nothing(answer.body)
        released = made.server.post(
            "/api/v1/datasets/stays/releases", QUERY, token=made.tokens["ana"], headers=headers
        )
        assert released.status >= 400, released.body
        tells_nothing(released.body)
        log = made.server.log_text()
        assert "canary-value" not in log and "Traceback" not in log
        reference = problem(released).get("reference")
        assert reference is None or reference in log
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


OUTSIDE = [
    *(
        "../outside.toml",
        "../../outside.toml",
        "/etc/passwd",
        "./../outside.toml",
        "..\\outside.toml",
    ),
    *("link.toml", "folder/../../outside.toml", "pipe.toml", "folder", "", ".", "missing.toml"),
    *("stays.csv", "takifugu.ledger", "stays.toml\x00.toml", "file:///etc/passwd", "~/x.toml"),
    *("https://evil.example/x.toml", "postgresql://evil.example/x.toml", "x" * 400 + ".toml"),
]


@pytest.mark.nightly
def test_a_file_that_an_owner_names_lies_in_the_project(tmp_path: Path) -> None:
    """A declaration or a prior from elsewhere, or by a link, is refused in the same words."""
    with attacked(tmp_path) as made:
        folder = made.server.project.parent
        (tmp_path / "outside.toml").write_text((folder / "stays.toml").read_text())
        (tmp_path / "outside.json").write_text((folder / "chain.json").read_text())
        (folder / "link.toml").symlink_to(tmp_path / "outside.toml")
        (folder / "link.json").symlink_to(tmp_path / "outside.json")
        (folder / "folder").mkdir()
        os.mkfifo(folder / "pipe.toml")
        before = made.server.project.read_text()
        told = set()
        for given in OUTSIDE:
            body: dict[str, Any] = {"name": "more", "declaration": given}
            answer = made.server.post("/api/v1/datasets", body, token=made.tokens["olga"])
            assert answer.status in (409, 422), (given, answer.body)
            assert b"canary" not in answer.body
            if given:
                found = problem(answer)
                told.add((answer.status, *(found[key] for key in ("field", "reason", "needed"))))
            prior = given.replace(".toml", ".json") or "."
            priors = {"name": "more", "declaration": "stays.toml", "priors": [prior]}
            answer = made.server.post("/api/v1/datasets", priors, token=made.tokens["olga"])
            assert answer.status in (409, 422), (given, answer.body)
        assert len(told) == 1, told  # nor is it told whether a file is there
        assert made.server.project.read_text() == before


@pytest.mark.nightly
def test_names_of_datasets_are_names(target: Attacked) -> None:
    for name in ("../x", "a/b", "a b", "A\r\nB", "", ".", "[x]", "x" * 300, "__proto__.x", "é"):
        body = {"name": name, "declaration": "stays.toml"}
        answer = target.server.post("/api/v1/datasets", body, token=target.tokens["olga"])
        assert answer.status in (409, 422), (name, answer.body)


@pytest.mark.nightly
def test_reports_have_four_names_and_no_others(target: Attacked) -> None:
    for name in ("takifugu.toml", "report.html/", "report.html%00", "report.htm", "REPORT.HTML"):
        for who in ("olga", "udo"):
            assert status_of(target.get_raw(f"/api/v1/reports/{name}", who)) == 404, name


@pytest.mark.nightly
def test_a_report_cannot_run_or_fetch_anything(target: Attacked) -> None:
    answer = target.server.get("/api/v1/reports/report.html", token=target.tokens["udo"])
    assert answer.status == 200 and b"<style" in answer.body
    policy = answer.headers["content-security-policy"]
    assert "sandbox" in policy and "default-src 'none'" in policy
    assert "script-src" not in policy and "connect-src" not in policy
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.nightly
def test_a_witness_remembers_only_what_is_a_head(target: Attacked) -> None:
    place = f"/api/v1/witness/{'a' * 32}"
    for body in (
        {"event": {"seq": 0, "hash": "0" * 64}},
        {"event": {"seq": 2**70, "hash": "0" * 64}},
        {"event": {"seq": 1, "hash": "x" * 64}},
        {"event": {"seq": 1, "hash": "0" * 64, "more": 1}},
        {"event": None},
        {},
    ):
        answer = target.server.put(place, body, token=target.tokens["wim"])
        assert answer.status == 422, body
    for ledger in ("..", "A" * 32, "a" * 31, "a" * 33, "%2e%2e", "a" * 31 + "%00"):
        raw = target.get_raw(f"/api/v1/witness/{ledger}", "wim")
        assert status_of(raw) in (404, 405, 422), ledger
    assert target.server.get(place, token=target.tokens["wim"]).json() == {"event": None}
