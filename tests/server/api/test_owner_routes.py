"""Routes of owners, auditors and witnesses, with real workers and a real ledger."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu.reports.report_signature import (
    make_key,
    public_file,
    read_public_key,
    verify_report,
)
from tests.pdf_needs import weasyprint_or_skip
from tests.server.api.serving import HISTOGRAM, Served, served
from tests.server.projects import DECLARATION, small_project

PATHS = ("takifugu.ledger", "takifugu.toml", "stays.csv", "chain.json", "/study")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("owner") / "study"
    key = folder.parent / "key.pem"
    make_key(key)
    with served(small_project(folder), signing_key=key) as running:
        yield running


def call(site: Served, who: str, method: str, path: str, status: int = 200, **how: Any) -> Any:
    response = site.ask(who, method, f"/api/v1{path}", **how)
    assert response.status_code == status, response.text
    return response


def problem(site: Served, who: str, method: str, path: str, status: int, **how: Any) -> Any:
    response = call(site, who, method, path, status, **how)
    assert response.headers["content-type"] == "application/problem+json"
    return response.json()


def events(site: Served, **query: Any) -> list[dict[str, Any]]:
    return site.items("olga", "/ledger/events", limit=200, **query)


# --- budgets ---


@pytest.mark.nightly
def test_an_owner_sets_a_budget(site: Served) -> None:
    done = call(
        site, "olga", "PUT", "/datasets/stays/budget", json={"epsilon": "9", "delta": "1e-9"}
    ).json()
    assert (done["epsilon"], done["actor"]) == ("9", "olga")
    assert (done["delta"], done["before"], done["analyst"]) == ("1/1000000000", "8", None)
    last = events(site, kind="budget")[-1]
    assert (last["seq"], last["actor"]) == (done["event"], "olga")
    assert "olga" in last["words"]
    problem(site, "olga", "PUT", "/datasets/visits/budget", 404, json={"epsilon": "1"})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "epsilon"),
        ({"epsilon": 2}, "epsilon"),
        ({"epsilon": "2", "delta": 0}, "delta"),
        ({"epsilon": "much"}, "epsilon"),
        ({"epsilon": "-1"}, "budget"),
        ({"epsilon": "1" * 101}, "epsilon"),
        ({"epsilon": "2", "budget": "3"}, "budget"),
    ],
)
def test_a_budget_without_meaning_changes_nothing(
    site: Served, body: dict[str, Any], field: str
) -> None:
    before = events(site)
    assert problem(site, "olga", "PUT", "/datasets/stays/budget", 422, json=body)["field"] == field
    assert events(site) == before


# --- datasets, priors, policies ---


@pytest.mark.nightly
def test_a_dataset_is_added_fitted_and_reviewed(site: Served) -> None:
    folder = site.services.project().folder
    rows = (folder / "stays.csv").read_text().splitlines()
    (folder / "wing.csv").write_text("\n".join(rows[:1] + rows[1801:]) + "\n")
    (folder / "tables").mkdir()
    place = folder / "tables" / "wing.toml"
    place.write_text(DECLARATION.replace("stays.csv", "../wing.csv"))
    given = {"name": "wing", "declaration": "tables/wing.toml", "analysts": ["ana"]}
    assert call(site, "olga", "POST", "/datasets", json=given).json()["rows"] == 1800
    assert problem(site, "olga", "POST", "/datasets", 409, json=given)["reason"] == "taken"
    fitted = call(
        *(site, "olga", "POST", "/datasets/wing/prior-fits"),
        json={"first_days": 10, "advice": False},
    ).json()
    assert (fitted["fitted"], fitted["needs_acceptance"]) == ("first-days", False)
    assert [e["actor"] for e in events(site, kind="policy", dataset="wing")] == ["olga"]
    policy = call(site, "olga", "GET", "/datasets/wing/policy").json()
    assert policy["priors"] == [fitted["file"]] and policy["declaration"] == "tables/wing.toml"
    assert policy["analysts"] == ["ana"] and not policy["needs_acceptance"]
    fit = {"first_days": 10}  # and neither to replace nor to add
    again = problem(site, "olga", "POST", "/datasets/wing/prior-fits", 409, json=fit)
    assert again["reason"] == "exists"
    change = call(site, "olga", "GET", "/datasets/wing/policy-change").json()
    assert not change["policy"]["needed"]
    accept = {"accept": "policy", "shown": change["policy"]["shown"]}
    refused = problem(site, "olga", "POST", "/datasets/wing/policy-change", 409, json=accept)
    assert refused["reason"] == "nothing"
    # for bo the dataset does not exist
    problem(site, "bo", "GET", "/datasets/wing", 404)


@pytest.mark.nightly
def test_a_declaration_elsewhere_is_refused(site: Served) -> None:
    before = site.services.project_file.read_bytes()
    for declaration in ("/etc/passwd", "../other.toml", "missing.toml"):
        given = {"name": "elsewhere", "declaration": declaration}
        found = problem(site, "olga", "POST", "/datasets", 422, json=given)
        assert (found["field"], found["reason"]) == ("declaration", "outside")
    assert site.services.project_file.read_bytes() == before


def test_options_of_a_fit_are_not_dropped(site: Served) -> None:
    for body, field in (
        ({"first_days": 5, "plot": "x.pdf"}, "plot"),
        ({"first_days": 5, "out": "/tmp/x"}, "out"),  # noqa: S108
        ({"replace": True}, "first_days"),
        ({"all_rows": False}, "first_days"),
        ({"share": "2"}, "share"),
        ({"first_days": 5, "share": "1/5"}, "first_days"),
        ({"first_steps": 5, "replace": True}, "first_steps"),
    ):
        found = problem(site, "olga", "POST", "/datasets/stays/prior-fits", 422, json=body)
        assert found["field"] == field


# --- the ledger ---


@pytest.mark.nightly
def test_events_come_in_pages_from_either_end(site: Served) -> None:
    site.release("ana", HISTOGRAM)
    found = {
        order: site.items("udo", "/ledger/events", limit=2, order=order)
        for order in ("oldest", "newest")
    }
    numbers = [one["seq"] for one in found["oldest"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert found["newest"] == found["oldest"][::-1]
    charges = events(site, kind="charge", dataset="stays", analyst="ana")
    assert [one["kind"] for one in charges] == ["charge"]
    assert charges[0]["actor"] == "ana"
    text = json.dumps(found)
    assert '"data"' not in text
    assert '"question"' not in text
    problem(site, "udo", "GET", "/ledger/events?cursor=x", 422)


def test_the_head_and_the_accounts(site: Served) -> None:
    for who, sees in (("olga", True), ("udo", False)):
        response = call(site, who, "GET", "/ledger")
        found = response.json()
        assert found["head"]["seq"] == events(site)[-1]["seq"]
        assert ("place" in found) == sees
        assert sees or not any(path in response.text for path in PATHS)
    assert {one["dataset"] for one in found["accounts"]} >= {"stays"}


def test_the_export_is_what_the_command_writes(site: Served, tmp_path: Path) -> None:
    response = call(site, "udo", "GET", "/ledger/export")
    assert response.headers["content-type"].startswith("application/x-ndjson")
    with site.services.project().ledger(inspect=True) as ledger:
        ledger.export(tmp_path / "export.jsonl")
    assert response.content == (tmp_path / "export.jsonl").read_bytes()


def test_a_verification_says_what_it_found(site: Served) -> None:
    for who in ("olga", "udo"):
        response = call(site, who, "POST", "/ledger/verification")
        found = response.json()
        assert found["sound"]
        assert found["problems"] == []
        assert found["witness"]["noted"] == found["head"]
    assert not any(path in response.text for path in PATHS)


# --- reports ---


@pytest.mark.nightly
def test_a_report_is_shown_under_its_own_policy(site: Served) -> None:
    response = call(site, "udo", "GET", "/reports/report.html")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert "'sha256-" in policy[0]
    assert "script-src" not in policy[0]
    assert "'unsafe-inline'" not in policy[0].replace("style-src-attr 'unsafe-inline'", "")
    assert response.headers["x-content-type-options"] == "nosniff"
    head = events(site)[-1]
    assert head["hash"] in response.text
    tag = response.headers["etag"]
    assert tag.startswith(f'"{head["seq"]}-{head["hash"][:16]}-')
    again = call(site, "udo", "GET", "/reports/report.html", 304, headers={"If-None-Match": tag})
    assert again.content == b""
    other = call(site, "olga", "GET", "/reports/report.html", params={"dataset": "stays"})
    assert other.headers["etag"] != tag or other.content == response.content


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["report.html", "report.pdf"])
def test_a_report_is_signed_as_it_was_downloaded(site: Served, name: str) -> None:
    if name == "report.pdf":
        weasyprint_or_skip()
    public = site.services.settings.signing_key
    assert public is not None
    key = read_public_key(public_file(public).read_bytes())
    report = call(site, "udo", "GET", f"/reports/{name}", params={"download": "true"})
    assert report.headers["content-disposition"].startswith("attachment")
    headers = {"If-Match": report.headers["etag"]}
    signed = call(site, "udo", "GET", f"/reports/{name}.sig", headers=headers)
    statement = verify_report(report.content, signed.content, key)
    assert "udo" in statement.signer
    assert statement.signed <= datetime.now(UTC)
    call(site, "olga", "PUT", "/datasets/stays/budget", json={"epsilon": "10"})
    found = problem(site, "udo", "GET", f"/reports/{name}.sig", 412, headers=headers)
    assert found["field"] == "If-Match"


@pytest.mark.parametrize("name", ["report.txt", "report", "report.html.asc", "..%2freport.html"])
def test_there_are_no_other_reports(site: Served, name: str) -> None:
    problem(site, "udo", "GET", f"/reports/{name}", 404)


def test_a_report_on_a_dataset_that_is_not_there(site: Served) -> None:
    problem(site, "udo", "GET", "/reports/report.html?dataset=stay", 404)


@pytest.mark.nightly
def test_without_a_key_nothing_is_signed(tmp_path: Path) -> None:
    with served(small_project(tmp_path / "study")) as site:
        found = problem(site, "udo", "GET", "/reports/report.html.sig", 404)
        assert found["reason"] == "signing_key"


# --- the head of another ledger ---


def test_a_witness_remembers_the_head_of_another_ledger(site: Served) -> None:
    state = site.services.state
    tokens = {
        name: state.create_token(name, "witness", None, "test").secret for name in ("far", "near")
    }
    ledger, path = "ab" * 16, f"/api/v1/witness/{'ab' * 16}"

    def ask(who: str, method: str, status: int = 200, **how: Any) -> Any:
        headers = {"Authorization": f"Bearer {tokens[who]}"}
        response = site.client.request(method, path, headers=headers, **how)
        assert response.status_code == status, response.text
        return response.json()

    first, second = ({"seq": n, "hash": str(n) * 64} for n in (1, 2))
    assert ask("far", "GET") == {"event": None}
    assert ask("far", "PUT", json={"event": first, "seen": None}) == {"event": first}
    assert ask("far", "PUT", json={"event": second, "seen": None}) == {"event": first}
    assert ask("far", "PUT", json={"event": second, "seen": first}) == {"event": second}
    assert ask("far", "GET") == {"event": second}
    ask("near", "GET", 403)
    ask("near", "PUT", 403, json={"event": first, "seen": second})
    for body in (
        {},
        {"event": {"seq": 0, "hash": "0" * 64}},
        {"event": {"seq": 2**63, "hash": "0" * 64}},
        {"event": {"seq": 3, "hash": "x" * 64}},
        {"event": {"seq": "3", "hash": "0" * 64}},
    ):
        ask("far", "PUT", 422, json=body)
    assert ask("far", "GET") == {"event": second}
    ask("far", "PUT", 409, json={"event": first, "seen": second})  # it never goes back
    assert ask("far", "GET") == {"event": second}
    for who in ("olga", "ana", "udo"):
        problem(site, who, "GET", f"/witness/{ledger}", 403)
    headers = {"Authorization": f"Bearer {tokens['far']}"}
    for wrong in ("AB" * 16, "ab" * 15, "..%2f" + "ab" * 14):
        found = site.client.get(f"/api/v1/witness/{wrong}", headers=headers)
        assert found.status_code in (404, 422)
    assert site.client.get("/api/v1/ledger", headers=headers).status_code == 403
