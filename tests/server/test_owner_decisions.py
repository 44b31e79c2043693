"""What owners decide over HTTP, as plain functions of a project and its ledger."""

import json
import os
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import InvalidQuery
from takifugu.errors import LedgerConflict, LedgerDamaged
from takifugu.fitting.fit_options import FitRequest
from takifugu.ledger.event_documents import (
    event_document,
    export_part,
    verification_document,
)
from takifugu.priors import read_prior, write_prior
from takifugu.project.policy import InvalidProject
from takifugu.project.project import Project, open_project
from takifugu.server.work import owner_tasks as owner
from takifugu.server.work.owner_tasks import fit_prior_of, inside, report_file
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
    "pipe.toml",
    "file:///etc/passwd",
    "https://evil.example/x.toml",
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
    os.mkfifo(folder / "pipe.toml")
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


def test_options_of_another_kind_are_refused() -> None:
    with raises(InvalidQuery, reason="not-of-this-kind"):
        FitRequest.from_document({"first_days": 10, "kernel": "ar1"})


# --- changes to accept ---


def other_prior(project: Project) -> Project:
    matrix = CHAIN.transition.copy()
    matrix[0] = [0.5, 0.4, 0.1]
    write_prior(replace(CHAIN, transition=matrix), project.folder / "chain.json")
    return replace(open_project(project.file), actor=project.actor)


@pytest.mark.nightly
def test_a_change_after_it_was_shown_is_not_accepted(project: Project) -> None:
    release(project)
    changed = other_prior(project)
    shown = owner.review_change(changed, "stays")["policy"]["shown"]
    project.set_budget("stays", "9")
    before = last_event(project)
    with raises(LedgerConflict, reason="review", dataset="stays"):
        owner.accept_change(changed, "stays", "policy", shown)
    assert last_event(project) == before


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
def test_a_pdf_is_signed_as_it_was_downloaded_though_fonts_are_subset_otherwise_by_then(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    fonts = weasyprint_or_skip().pdf.fonts
    downloaded = report_file(project, "report.pdf", ())
    monkeypatch.setattr(fonts, "harfbuzz_subset", None)
    assert report_file(project, "report.pdf", ()) == downloaded
    release(project)
    assert report_file(project, "report.pdf", ())["sha256"] != downloaded["sha256"]
