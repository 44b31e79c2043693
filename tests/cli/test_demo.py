"""``takifugu demo``: what it prints and writes is what the ledger and the session hold."""

import json
import re
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from takifugu.cli import program
from takifugu.cli.demo import demo_steps
from takifugu.cli.demo.demo_command import LEAD, NewFolder
from takifugu.cli.demo.demo_steps import DemoRecord
from takifugu.errors import InvalidFile, Malformed
from takifugu.ledger import open_ledger
from takifugu.project import open_project
from takifugu.project.project_report import project_report
from takifugu.reports.report_page import report_page
from takifugu.translation.accounting.tables import TranslationTable
from takifugu.visible import four_digits
from tests.reports.reading import Reader

pytestmark = pytest.mark.nightly

ROWS = "20000"
FILES = [
    ".takifugu", "check-ins.parquet", "check-ins.toml", "page.html", "takifugu.key",
    "takifugu.ledger", "takifugu.toml",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "one"


@pytest.fixture(scope="module")
def run(folder: Path) -> tuple[str, DemoRecord]:
    """One run: what it printed, and what happened."""
    records: list[DemoRecord] = []
    steps = demo_steps.run_steps

    def noted(work: Path, *, record: DemoRecord, **options: Any) -> None:
        steps(work, record=record, **options)
        records.append(record)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_steps, "run_steps", noted)
        done = CliRunner().invoke(
            program(), ["demo", "--rows", ROWS, "--out", str(folder)], catch_exceptions=False
        )
    assert done.exit_code == 0
    (record,) = records
    return done.stdout, record


@pytest.fixture(scope="module")
def printed(
    run: tuple[str, DemoRecord], folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What `--json` prints of the same run, played back."""
    again = tmp_path_factory.mktemp("again") / "one"

    def played_back(work: Path, *, record: DemoRecord, **_: Any) -> None:
        shutil.copytree(folder, work, dirs_exist_ok=True)
        record.sections.extend(run[1].sections)
        record.facts |= run[1].facts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_steps, "run_steps", played_back)
        done = CliRunner().invoke(
            program(),
            ["demo", "--rows", ROWS, "--out", str(again), "--json"],
            catch_exceptions=False,
        )
    assert done.exit_code == 0
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.fixture(scope="module")
def page(printed: dict[str, Any]) -> str:
    return Path(printed["page"]).read_text(encoding="utf-8")


@pytest.mark.usefixtures("run")
def test_the_folder_holds_everything(folder: Path, printed: dict[str, Any]) -> None:
    for made in (folder, Path(printed["folder"])):
        names = sorted(path.name for path in made.iterdir())
        assert [name for name in names if not name.endswith(".prior.json")] == FILES
        assert len(names) == len(FILES) + 1
        assert [path.name for path in made.parent.iterdir()] == ["one"]  # nothing half done
    assert printed["page"] == str(Path(printed["folder"]) / "page.html")
    assert (printed["seed"], printed["world"]["rows"], printed["prior"]["states"]) == (
        1,
        20_000,
        78,
    )


def test_the_ledger_was_charged_twice_and_is_sound(printed: dict[str, Any]) -> None:
    with open_ledger(printed["ledger"], create=False, read_only=True) as ledger:
        assert ledger.verify().sound
        assert [event.kind for event in ledger.history()] == [
            "created", "policy", "accepted", "budget",
            "state", "source", "charge", "answer", "charge", "answer",
        ]  # fmt: skip
        assert vars(ledger.head()) == printed["head"]
        charged = [
            Fraction(event.body["loss"]["epsilon"]) for event in ledger.history(kind="charge")
        ]
        (position,) = ledger.positions()
    assert position.epsilon == printed["budget"] == 1
    assert [Fraction(r["cost"]["per_entry"]) for r in printed["releases"]] == charged
    (worst,) = position.worst
    assert worst.epsilon == sum(charged)  # the second query read rows of the first


def test_losses_are_read_off_the_table_of_the_project(printed: dict[str, Any]) -> None:
    project = open_project(printed["folder"])
    (file,) = (project.folder / ".takifugu").glob("*.table.json")
    table = TranslationTable.load(file, project.load("check-ins").entry_translation)
    spent = Fraction(0)
    for release in printed["releases"]:
        own = Fraction(release["cost"]["per_entry"])
        spent += own
        assert float(table.to_pufferfish(float(own))) <= release["cost"]["alone"]
        assert release["cost"]["after"] == float(table.to_pufferfish(float(spent)))
    assert printed["spent"] == printed["releases"][-1]["cost"]["after"] <= 1
    translation = printed["translation"]
    losses = translation["exact"]
    assert losses == [float(table.to_pufferfish(dp)) for dp in translation["per_entry"]]
    assert losses == sorted(losses) and 0.85 < losses[-1] <= 1  # as far as the budget goes
    assert 0.8 * losses[-1] < translation["leak"] <= losses[-1]
    for exact, curve, group in zip(losses, translation["curve"], translation["group"], strict=True):
        assert exact <= curve <= group


def test_the_third_query_is_refused(printed: dict[str, Any]) -> None:
    refused = printed["refused"]
    assert "nothing was released" in refused["message"] and printed["again_free"]
    assert Fraction(refused["most"]) < Fraction(refused["alone"])


def test_the_page_is_the_report_of_the_project(printed: dict[str, Any], page: str) -> None:
    report = project_report(open_project(printed["folder"]))
    assert report_page(report, title="Top places of 77 countries", lead=LEAD).html() == page


def test_the_page_says_what_is_not_protected_and_that_the_data_is_synthetic(page: str) -> None:
    read = Reader(page)
    assert not read.open
    assert "that a row exists, and how many rows there are" in read.said
    assert "Nobody is behind these rows" in read.said
    assert read.tags.count("svg") == 5  # transitions, law, influence, budget, shares
    assert "script" not in read.tags
    assert "http:" not in re.sub(r'xmlns[^"]*"[^"]*"', "", page) and "https:" not in page


def test_how_many_places_are_right_is_counted_from_the_rows(printed: dict[str, Any]) -> None:
    with open_project(printed["folder"]).engine("check-ins") as engine:
        counts = engine.histogram(["country", "place"]).counts  # of users who were not fitted on
        countries, labels = engine.keys("country"), engine.keys("place")
    right = [0, 0, 0]
    for country, place, label, *_ in printed["releases"][0]["rows"]:
        row = counts[countries.index(country)].tolist()
        right[place - 1] += row[labels.index(label)] == sorted(row, reverse=True)[place - 1]
    assert printed["right"] == right


@pytest.mark.usefixtures("run")
def test_a_folder_in_use_is_refused_and_left_alone(folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    again = CliRunner().invoke(program(), ["demo", "--rows", ROWS, "--out", str(folder)])
    assert isinstance(again.exception, InvalidFile)
    assert again.exception.field == "--out"
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_it_is_printed_step_by_step(run: tuple[str, DemoRecord], folder: Path) -> None:
    text, record = run
    headings = re.findall(r"^(\d+)  (\S.*)$", text, re.MULTILINE)
    assert headings == [(str(k), one.title) for k, one in enumerate(record.sections, 1)]
    assert len(headings) == 9
    assert "nobody is behind these rows" in text
    assert f"   {record.facts['refused']['message']}\n" in text
    assert "the same result, for free" in " ".join(text.split())
    assert re.search(r"ledger +10 events, sound", text)
    assert re.search(rf"spent +{re.escape(four_digits(record.facts['spent'], 'up'))}\n", text)
    leak = four_digits(record.facts["translation"]["leak"], "down")
    assert re.search(rf"some mechanism leaks +{re.escape(leak)}\n", text)
    assert text.rstrip().splitlines()[-1] == str(folder / "page.html")


def test_without_a_name_each_run_gets_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("demo", "demo-2", "demo-3"):
        with NewFolder(None) as new:
            (new.work / "file").write_text(name)
            assert new.publish() == Path("out") / name
    found = sorted(Path("out").iterdir())
    assert [path.name for path in found] == ["demo", "demo-2", "demo-3"]
    assert [(path / "file").read_text() for path in found] == ["demo", "demo-2", "demo-3"]


def _fail(out: Path | None) -> None:
    with NewFolder(out) as new:
        (new.work / "half").write_text("done")
        raise BlockingIOError


def test_nothing_is_left_of_a_run_that_fails(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError):
        _fail(tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with NewFolder(tmp_path / "new") as new:
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "theirs").write_text("kept")
        with pytest.raises(InvalidFile) as refused:
            new.publish()
    assert refused.value.field == "--out"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    with NewFolder(tmp_path / "new") as new:
        (tmp_path / "new").mkdir()
        (new.work / "file").write_text("x")
        assert new.publish() == tmp_path / "new"
    assert (tmp_path / "new" / "file").exists()


@pytest.mark.parametrize("given", [["--rows", "19999"], ["--rows", "100000001"], ["--seed", "-1"]])
def test_numbers_out_of_range_are_refused(given: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(program(), ["demo", *given, "--out", str(tmp_path / "new")])
    assert isinstance(done.exception, Malformed)
    assert not list(tmp_path.iterdir())
