"""``takifugu report``: files whole or not at all, and a clear line where there is none."""

import sqlite3
import sys
from pathlib import Path

import pytest

from takifugu.cli import exit_status
from takifugu.errors import InvalidFile
from takifugu.project.policy import InvalidProject
from takifugu.reports.pdf_file import PdfUnavailable
from takifugu.reports.report_sentences import GLOSSARY
from tests.cli.running import Call
from tests.pdf_needs import weasyprint_or_skip
from tests.project.studies import three_places
from tests.reports.reading import Outline


@pytest.fixture(scope="session")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    project = three_places(folder)
    with project.session("stays") as session:
        session.release(session.plan.histogram(epsilon=1), accept_noise=True)
    return folder


@pytest.mark.nightly
def test_a_page_is_written_and_said(study: Path, do: Call) -> None:
    ran = do("report")
    assert ran.status == 0 and ran.out == "" and "report.html" in ran.err
    page = Outline((study / "report.html").read_text(encoding="utf-8"))
    assert not page.open and len(page.lists["Summary"]) == 5
    assert all(word in page.said for word in GLOSSARY)


@pytest.mark.nightly
def test_json_has_what_budget_show_has(study: Path, do: Call) -> None:
    facts = do("report stays --out new.html --json").json()
    (shown,) = do("budget show stays --json").json()["budgets"]
    (dataset,) = facts["datasets"]
    assert dataset["name"] == "stays" and dataset["releases"] == 1
    assert (dataset["budget"], dataset["spent"], dataset["left"]) == (
        shown["epsilon"], shown["spent"], shown["left"],
    )  # fmt: skip
    head = do("ledger verify --json").json()["head"]
    assert facts["head"] == head and facts["sound"] is True
    assert facts["out"] == "new.html" and (study / "new.html").exists()


@pytest.mark.nightly
def test_a_file_that_is_there_is_left_alone_unless_it_may_be_replaced(
    study: Path, do: Call
) -> None:
    (study / "report.html").write_text("mine")
    ran = do("report")
    assert isinstance(ran.error, InvalidFile) and ran.error.field == "--out"
    assert (study / "report.html").read_text() == "mine"
    assert do("report --replace").status == 0
    assert (study / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("out", ["report.txt", "report", "nowhere/report.html", "."])
def test_a_file_that_cannot_be_written_is_refused_first(study: Path, do: Call, out: str) -> None:
    before = sorted(path.name for path in study.iterdir())
    ran = do(f"report --out {out}")
    assert isinstance(ran.error, InvalidFile) and ran.error.field == "--out"
    assert ran.status == exit_status.MISTAKE
    assert sorted(path.name for path in study.iterdir()) == before


def test_an_unknown_dataset_is_named(study: Path, do: Call) -> None:
    ran = do("report stains")
    assert isinstance(ran.error, InvalidProject) and ran.error.reason == "unknown"
    assert not list(study.glob("*.html")) and not list(study.glob(".takifugu-*"))


@pytest.mark.nightly
def test_a_pdf(study: Path, do: Call) -> None:
    weasyprint_or_skip()
    assert do("report --out report.pdf").status == 0
    assert (study / "report.pdf").read_bytes().startswith(b"%PDF-")


def test_without_weasyprint_the_extra_is_named(
    study: Path, do: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    ran = do("report --out report.pdf")
    assert isinstance(ran.error, PdfUnavailable) and ran.error.extra == "reports"
    assert ran.status == exit_status.STORAGE and "takifugu[reports]" in ran.err
    assert "Pango" in ran.err and not list(study.glob("*.pdf"))


def test_a_ledger_that_is_not_sound_gives_a_report_and_a_status(study: Path, do: Call) -> None:
    with sqlite3.connect(study / "takifugu.ledger") as connection:
        connection.execute("UPDATE takifugu_head SET at = '2000-01-01T00:00:00+00:00', seq = 1")
    connection.close()
    ran = do("report")
    assert ran.status == exit_status.FAILED
    assert "NOT sound" in (study / "report.html").read_text(encoding="utf-8")


def test_a_dataset_without_a_prior_says_that_nothing_is_guaranteed(study: Path, do: Call) -> None:
    text = (study / "stays.toml").read_text(encoding="utf-8")
    known = 'values = ["home", "ward", "clinic"]\noutside = "refuse"'
    assert known in text
    fitted = text.replace(known, 'values = "from the fitted rows"')
    (study / "other.toml").write_text(fitted, encoding="utf-8")
    with (study / "takifugu.toml").open("a", encoding="utf-8") as policy:
        policy.write('[dataset.other]\ndeclaration = "other.toml"\n')
    assert do("report other").status == 0
    said = Outline((study / "report.html").read_text(encoding="utf-8")).said
    assert "no prior yet" in said and "Nothing was published from the dataset other" in said
    assert "No lifetime budget is set" in said
    assert "those of the rows that a prior is fitted on" in said


def test_a_project_without_releases_or_budget_has_a_report(study: Path, do: Call) -> None:
    (study / "more").mkdir()
    assert do("init more").status == 0
    assert do("report --project more --out empty.html").status == 0
    text = (study / "empty.html").read_text(encoding="utf-8")
    assert "no datasets" in Outline(text).said
