"""What owners decide over HTTP, as plain functions of a project and its ledger."""

import base64
import hashlib
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import InvalidQuery
from takifugu.errors import InvalidCharge, LedgerConflict, LedgerDamaged, UnsoundRequest
from takifugu.fitting.fit_options import FitRequest
from takifugu.ledger.event_documents import (
    event_document,
    export_part,
    ledger_document,
    verification_document,
)
from takifugu.priors import read_prior, write_prior
from takifugu.project.policy import InvalidProject
from takifugu.project.project import Project, open_project
from takifugu.server.work import owner_decisions as owner
from takifugu.server.work.owner_decisions import inside
from takifugu.server.work.owner_tasks import fit_prior_of, page_policy, report_file
from tests.pdf_needs import weasyprint_or_skip
from tests.raising import raises
from tests.server.projects import CHAIN, DECLARATION, small_project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return open_project(small_project(tmp_path / "study")).acting("olga")


def last_event(project: Project) -> Any:
    with project.ledger(read_only=True) as ledger:
        return list(ledger.history())[-1]


def release(project: Project, epsilon: str = "0.5") -> None:
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon=epsilon))


# --- budgets ---


def test_a_budget_is_set_in_the_owners_name(project: Project) -> None:
    found = owner.set_budget(project, "stays", "17/2", delta="1e-6")
    assert found == {
        "dataset": "stays",
        "analyst": None,
        "epsilon": "17/2",
        "delta": "1/1000000",
        "before": "8",
        "event": last_event(project).seq,
        "actor": "olga",
    }
    assert last_event(project).body["actor"] == "olga"
    assert project.budget("stays") == 17 / 2
    own = owner.set_budget(project, "stays", "1", analyst="ana")
    assert (own["analyst"], own["before"]) == ("ana", None)


def test_a_budget_that_is_no_number_is_refused(project: Project) -> None:
    before = last_event(project)
    for epsilon in ("much", "nan", "", "1e999", "-1"):
        with raises((UnsoundRequest, InvalidCharge)):
            owner.set_budget(project, "stays", epsilon)
    assert last_event(project) == before
    with raises(InvalidProject, field="dataset", reason="unknown"):
        owner.set_budget(project, "visits", "1")


# --- what is where: for owners ---


def test_an_owner_sees_the_files_of_a_policy(project: Project) -> None:
    found = owner.policy_document(project, "stays")
    assert found["declaration"] == "stays.toml"
    assert found["priors"] == ["chain.json"]
    assert found["project"] == str(project.file)
    assert not found["needs_acceptance"]
    json.dumps(found)


# --- datasets ---


OTHER = DECLARATION.replace("stays.csv", "other.csv")


def other_table(project: Project, place: str = "other.toml") -> str:
    rows = (project.folder / "stays.csv").read_text().splitlines()
    (project.folder / "other.csv").write_text("\n".join(rows[:1] + rows[1:301]) + "\n")
    target = project.folder / place
    target.parent.mkdir(parents=True, exist_ok=True)
    up = "../" * place.count("/")
    target.write_text(OTHER.replace("other.csv", f"{up}other.csv"))
    return place


@pytest.mark.nightly
@pytest.mark.parametrize("place", ["other.toml", "tables/more/other.toml"])
def test_a_dataset_is_added_from_a_declaration_in_the_folder(project: Project, place: str) -> None:
    given = {"declaration": other_table(project, place), "priors": ["chain.json"]}
    found = owner.add_dataset(project, "other", given)
    assert (found["rows"], found["entities"]) == (300, 10)
    now = open_project(project.file)
    assert now.dataset("other").declaration == place
    assert last_event(project).body["actor"] == "olga"
    json.dumps(found)


def test_a_name_that_is_taken_is_refused_and_nothing_is_replaced(project: Project) -> None:
    before = project.file.read_bytes()
    with raises(InvalidProject, field="dataset", reason="taken"):
        owner.add_dataset(project, "stays", {"declaration": other_table(project)})
    assert project.file.read_bytes() == before


HOSTILE = [
    "/etc/passwd",
    "../outside.toml",
    "sub/../../outside.toml",
    "..",
    ".",
    "",
    "other.csv",
    "missing.toml",
    "folder.toml",
    "link.toml",
    "linked/outside.toml",
    "chained.toml",
    "loop.toml",
    "a\\..\\outside.toml",
    "other.toml\x00",
    "other.toml\n",
    "x" * 5000 + ".toml",
    "takifugu.ledger",
]


def test_a_declaration_outside_the_folder_is_refused(project: Project) -> None:
    folder = project.folder
    other_table(project)
    (folder.parent / "outside.toml").write_text(OTHER)
    (folder / "folder.toml").mkdir()
    (folder / "sub").mkdir()
    (folder / "link.toml").symlink_to(folder.parent / "outside.toml")
    (folder / "linked").symlink_to(folder.parent, target_is_directory=True)
    (folder / "chained.toml").symlink_to(folder / "link.toml")
    (folder / "loop.toml").symlink_to(folder / "loop.toml")
    before = project.file.read_bytes()
    for given in HOSTILE:
        with raises(InvalidProject, field="declaration", reason="outside"):
            owner.add_dataset(project, "other", {"declaration": given})
        assert project.file.read_bytes() == before


def test_a_refusal_tells_nothing_about_files_outside(project: Project) -> None:
    (project.folder.parent / "there.toml").write_text(OTHER)
    words = []
    for given in ("../there.toml", "../nowhere.toml"):
        with raises(InvalidProject, field="declaration") as caught:
            inside(project.folder, given, "declaration", suffixes=(".toml",))
        words.append(str(caught.value).replace(given, "…"))
    assert words[0] == words[1]


def test_a_link_inside_the_folder_is_followed(project: Project) -> None:
    other_table(project)
    (project.folder / "alias.toml").symlink_to("other.toml")
    found = inside(project.folder, "alias.toml", "declaration", suffixes=(".toml",))
    assert found == (project.folder / "other.toml").resolve()


def test_a_prior_outside_the_folder_is_refused(project: Project) -> None:
    write_prior(CHAIN, project.folder.parent / "chain.json")
    given = {"declaration": other_table(project), "priors": ["../chain.json"]}
    with raises(InvalidProject, field="priors", reason="outside"):
        owner.add_dataset(project, "other", given)


# --- fits ---


@pytest.mark.nightly
def test_a_prior_is_fitted_in_the_owners_name(project: Project) -> None:
    said: list[str] = []
    found = fit_prior_of(project, "stays", {"first_days": 10, "replace": True}, said.append)
    now = open_project(project.file)
    assert [prior.file for prior in now.dataset("stays").priors] == [found["file"]]
    assert read_prior(project.folder / found["file"]).fingerprint == found["fingerprint"]
    assert (found["fitted"], found["remaining"]) == ("first-days", 2400)
    assert found["advice"] is not None
    assert found["goodness"] is not None
    with project.ledger(read_only=True) as ledger:
        (policy,) = [
            e for e in ledger.history(kind="policy") if e.body["details"]["how"] == "fitted"
        ]
    assert policy.body["actor"] == "olga"
    assert said
    json.dumps(found)
    assert str(project.folder) not in json.dumps(found)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "first_days"),
        ({"first_days": 10, "share": "1/5"}, "first_days"),
        ({"all_rows": False}, "first_days"),
        ({"first_days": 10, "plot": "x.pdf"}, "plot"),
        ({"share": "2"}, "share"),
    ],
)
def test_options_of_a_fit_that_make_no_sense_are_refused(given: dict[str, Any], field: str) -> None:
    with raises(InvalidProject, field=field):
        FitRequest.from_document(given, error=InvalidProject)


def test_options_of_another_kind_are_refused() -> None:
    with raises(InvalidQuery, reason="not-of-this-kind"):
        FitRequest.from_document({"first_days": 10, "kernel": "ar1"})


def test_steps_are_not_days(project: Project) -> None:
    with raises(InvalidProject, field="first_steps", reason="order-is-a-time"):
        fit_prior_of(project, "stays", {"first_steps": 10, "replace": True})


def test_a_prior_that_exists_is_neither_replaced_nor_added_by_itself(project: Project) -> None:
    before = project.file.read_bytes()
    with raises(InvalidProject, reason="exists"):
        fit_prior_of(project, "stays", {"first_days": 10})
    assert project.file.read_bytes() == before


# --- changes to accept ---


def other_prior(project: Project) -> Project:
    matrix = CHAIN.transition.copy()
    matrix[0] = [0.5, 0.4, 0.1]
    write_prior(replace(CHAIN, transition=matrix), project.folder / "chain.json")
    return replace(open_project(project.file), actor=project.actor)


@pytest.mark.nightly
def test_what_was_shown_is_accepted_in_the_owners_name(project: Project) -> None:
    release(project)
    changed = other_prior(project)
    found = owner.review_change(changed, "stays")
    assert found["policy"]["needed"]
    assert not found["declaration"]["needed"]
    assert float(found["policy"]["spent_after"]) > 0
    done = owner.accept_change(changed, "stays", "policy", found["policy"]["shown"])
    assert (done["actor"], done["event"]) == ("olga", last_event(project).seq)
    assert not owner.review_change(changed, "stays")["policy"]["needed"]
    json.dumps(found)


@pytest.mark.nightly
def test_a_change_after_it_was_shown_is_not_accepted(project: Project) -> None:
    release(project)
    changed = other_prior(project)
    shown = owner.review_change(changed, "stays")["policy"]["shown"]
    owner.set_budget(project, "stays", "9")
    before = last_event(project)
    with raises(LedgerConflict, reason="review", dataset="stays"):
        owner.accept_change(changed, "stays", "policy", shown)
    assert last_event(project) == before


@pytest.mark.nightly
def test_there_is_nothing_to_accept(project: Project) -> None:
    release(project)
    found = owner.review_change(project, "stays")
    for part in ("policy", "declaration"):
        with raises(LedgerConflict, reason="nothing"):
            owner.accept_change(project, "stays", part, found[part]["shown"])


@pytest.mark.nightly
def test_a_declaration_that_changed_is_accepted(project: Project) -> None:
    release(project)
    file = project.folder / "stays.toml"
    file.write_text(file.read_text().replace('zone = "UTC"', 'zone = "Europe/Vienna"'))
    found = owner.review_change(project, "stays")
    assert found["declaration"]["needed"]
    assert found["declaration"]["changes"]
    shown = found["declaration"]["shown"]
    done = owner.accept_change(project, "stays", "declaration", shown)
    assert (done["accepted"], done["actor"]) == ("declaration", "olga")
    assert last_event(project).kind == "cells"


# --- the ledger ---


@pytest.mark.nightly
def test_events_are_told_without_marks_of_the_data(project: Project) -> None:
    release(project)
    with project.ledger(read_only=True) as ledger:
        events = list(ledger.history())
        found = [event_document(event) for event in events]
        facts = ledger_document(ledger, places=False)
        own = ledger_document(ledger, places=True)
    marks = {e.body[name] for e in events for name in ("data", "question") if name in e.body}
    assert marks
    text = json.dumps([found, facts])
    assert not any(mark in text for mark in marks)
    assert str(project.folder) not in text
    assert str(project.folder) in own["place"]
    assert facts["head"] == {"seq": events[-1].seq, "hash": events[-1].hash}
    assert [one["seq"] for one in found] == [event.seq for event in events]


@pytest.mark.nightly
def test_auditors_see_files_without_their_folders(project: Project) -> None:
    other_table(project)
    write_prior(CHAIN, project.folder.parent / "elsewhere.json")
    project.add_dataset(
        "other", project.folder / "other.toml", priors=[project.folder.parent / "elsewhere.json"]
    )
    with project.ledger(read_only=True) as ledger:
        (event,) = list(ledger.history("other", kind="policy"))
    assert str(project.folder.parent) in json.dumps(event_document(event))
    told = json.dumps(event_document(event, places=False))
    assert str(project.folder.parent) not in told
    assert "elsewhere.json" in told


@pytest.mark.nightly
def test_an_export_is_what_the_command_writes(project: Project, tmp_path: Path) -> None:
    release(project)
    with project.ledger(inspect=True) as ledger:
        last = ledger.head().seq
        assert ledger.export(tmp_path / "export.jsonl") == last
        for most in (1, 2, 500):
            parts, after = [], 0
            while after < last:
                part, after = export_part(ledger, after, last, most)
                parts.append(part)
            assert b"".join(parts) == (tmp_path / "export.jsonl").read_bytes()
        with raises(LedgerDamaged, reason="missing", event=last + 1):
            export_part(ledger, last, last + 1, 10)


@pytest.mark.nightly
def test_a_verification_tells_what_is_wrong(project: Project) -> None:
    release(project)
    with project.ledger(inspect=True) as ledger:
        found = verification_document(ledger, places=False)
    assert found["sound"]
    assert found["witness"]["noted"] == found["head"]
    with sqlite3.connect(project.ledger_place) as raw:
        raw.execute(
            "UPDATE takifugu_events SET body = replace(body, 'stays', 'stay') WHERE seq = 2"
        )
    with project.ledger(inspect=True) as ledger:
        found = verification_document(ledger, places=False)
    assert not found["sound"]
    assert {one["event"] for one in found["problems"]} >= {2}
    assert str(project.folder) not in json.dumps(found)


# --- reports ---


@pytest.mark.nightly
def test_a_report_has_the_head_and_the_same_bytes(project: Project) -> None:
    release(project)
    head = last_event(project)
    first, again = (report_file(project, "report.html", ()) for _ in range(2))
    assert first == again
    assert first["head"] == {"seq": head.seq, "hash": head.hash}
    assert head.hash in first["content"].decode()
    assert first["sound"]


@pytest.mark.nightly
def test_a_report_as_a_pdf(project: Project) -> None:
    weasyprint_or_skip()
    pdf = report_file(project, "report.pdf", ["stays"])
    assert pdf["content"].startswith(b"%PDF")
    assert pdf["policy"] is None


@pytest.mark.nightly
def test_a_pdf_is_signed_as_it_was_downloaded_though_fonts_are_subset_otherwise_by_then(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    fonts = weasyprint_or_skip().pdf.fonts
    downloaded = report_file(project, "report.pdf", ())
    monkeypatch.setattr(fonts, "harfbuzz_subset", None)
    assert report_file(project, "report.pdf", ()) == downloaded
    release(project)
    assert report_file(project, "report.pdf", ())["sha256"] != downloaded["sha256"]


@pytest.mark.nightly
def test_a_report_on_an_unknown_dataset_is_refused(project: Project) -> None:
    with raises(InvalidProject, field="dataset", reason="unknown"):
        report_file(project, "report.html", ["visits"])


def test_the_policy_of_a_page_names_its_style_sheets_and_no_other() -> None:
    sheet = "body { color: red }"
    mark = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    found = page_policy(f"<style>{sheet}</style><svg><style>{sheet}</style></svg>".encode())
    assert found.count("'sha256-") == 1
    assert f"style-src-elem 'sha256-{mark}';" in found
    assert "default-src 'none'" in found
    assert "script" not in found
