"""``takifugu demo``: what it prints and writes is what the ledger and the session hold."""

import json
import re
import shutil
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from takifugu.cli import app, demo_steps
from takifugu.cli.demo import _as_expected, _folder
from takifugu.cli.demo_page import page as made_page
from takifugu.cli.demo_steps import play
from takifugu.cli.demo_story import Story
from takifugu.engines import Scope, open_engine
from takifugu.errors import InvalidFile, Malformed
from takifugu.ledger import open_ledger
from takifugu.reports.html_page import shown
from tests.reports.reading import Reader

ROWS = "20000"
FILES = ["check-ins.key", "check-ins.ledger", "check-ins.parquet", "check-ins.toml", "page.html"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "one"


@pytest.fixture(scope="module")
def run(folder: Path) -> tuple[str, Story]:
    """One run: what it printed, and what happened."""
    stories: list[Story] = []

    def noted(*args: Any, **options: Any) -> Story:
        stories.append(play(*args, **options))
        return stories[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_steps, "play", noted)
        done = CliRunner().invoke(
            app, ["demo", "--rows", ROWS, "--out", str(folder)], catch_exceptions=False
        )
    assert done.exit_code == 0
    (story,) = stories
    return done.stdout, story


@pytest.fixture(scope="module")
def told(
    run: tuple[str, Story], folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """What `--json` prints of the same run, played back."""
    again = tmp_path_factory.mktemp("again") / "one"

    def back(work: Path, **_: Any) -> Story:
        shutil.copytree(folder, work, dirs_exist_ok=True)
        return run[1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo_steps, "play", back)
        done = CliRunner().invoke(
            app, ["demo", "--rows", ROWS, "--out", str(again), "--json"], catch_exceptions=False
        )
    assert done.exit_code == 0
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


@pytest.fixture(scope="module")
def drawn(told: dict[str, Any]) -> list[list[int]]:
    """The answers as the ledger has them."""
    with open_ledger(told["ledger"], create=False, read_only=True) as ledger:
        return [event.body["answer"]["drawn"] for event in ledger.history(kind="answer")]


@pytest.fixture(scope="module")
def page(told: dict[str, Any]) -> str:
    return Path(told["page"]).read_text(encoding="utf-8")


def cells(page: str) -> list[list[str]]:
    """The rows of all tables."""
    rows = re.findall(r"<tr>(.*?)</tr>", page)
    return [[Reader(cell).said for cell in re.findall(r"<t[dh].*?</t[dh]>", row)] for row in rows]


def terms(page: str) -> dict[str, list[str]]:
    """What stands beside each term, in order."""
    found: dict[str, list[str]] = {}
    for term, value in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page):
        found.setdefault(Reader(term).said, []).append(Reader(value).said)
    return found


@pytest.mark.usefixtures("run")
def test_the_folder_holds_everything(folder: Path, told: dict[str, Any]) -> None:
    for made in (folder, Path(told["folder"])):
        assert sorted(path.name for path in made.iterdir()) == FILES
        assert [path.name for path in made.parent.iterdir()] == ["one"]  # nothing half done
    assert told["page"] == str(Path(told["folder"]) / "page.html")
    assert (told["seed"], told["world"]["rows"], told["prior"]["states"]) == (1, 20_000, 78)


def test_the_ledger_was_charged_twice_and_is_sound(told: dict[str, Any]) -> None:
    with open_ledger(told["ledger"], create=False, read_only=True) as ledger:
        assert ledger.verify().sound
        assert [event.kind for event in ledger.history()] == [
            "created", "budget", "source", "charge", "answer", "charge", "answer",
        ]  # fmt: skip
        assert vars(ledger.head()) == told["head"]
        charged = [
            Fraction(event.body["loss"]["epsilon"]) for event in ledger.history(kind="charge")
        ]
        (position,) = ledger.positions()
    assert position.epsilon == told["budget"] == 1
    assert [Fraction(r["cost"]["per_entry"]) for r in told["releases"]] == charged
    (worst,) = position.worst
    assert worst.epsilon == sum(charged)  # the second query read rows of the first


def test_losses_are_read_off_the_table(told: dict[str, Any]) -> None:
    grid, losses = told["translation"]["per_entry"], told["translation"]["exact"]
    spent = Fraction(0)
    for release in told["releases"]:
        own = Fraction(release["cost"]["per_entry"])
        spent += own
        assert release["cost"]["alone"] == losses[bisect_left(grid, own)]
        assert release["cost"]["after"] == losses[bisect_left(grid, spent)]
    assert told["spent"] == told["releases"][-1]["cost"]["after"] <= 1
    assert losses == sorted(losses) and 0.85 < losses[-1] <= 1  # the table ends at the budget
    assert 0.8 * losses[-1] < told["translation"]["leak"] <= losses[-1]
    for exact, curve, group in zip(
        losses, told["translation"]["curve"], told["translation"]["group"], strict=True
    ):
        assert exact <= curve <= group


def test_the_third_query_is_refused_in_its_own_words(told: dict[str, Any], page: str) -> None:
    refused = told["refused"]
    assert "nothing was released" in refused["message"] and told["again_free"]
    assert Fraction(refused["most"]) < Fraction(refused["alone"])
    assert f'<pre class="alarm">{refused["message"]}</pre>'.replace("'", "&#x27;") in page


def test_the_rankings_of_the_page_are_those_of_the_ledger(
    told: dict[str, Any], drawn: list[list[int]], page: str
) -> None:
    with open_engine(told["declaration"]) as engine:
        countries, labels = engine.keys("country"), engine.keys("place")
    rows = cells(page)
    for place, country in enumerate(countries):
        named = [labels[k] for k in drawn[0][3 * place : 3 * place + 3]]
        assert [str(country), *named] in rows
    assert [row[2] for row in told["releases"][0]["rows"]] == [labels[k] for k in drawn[0]]


def test_the_shares_of_the_page_are_those_of_the_ledger(
    told: dict[str, Any], drawn: list[list[int]], page: str
) -> None:
    with open_engine(told["declaration"]) as engine:
        labels = engine.keys("place")
        scope = Scope(start="2013-05-08", where={"country": ["TR"]})
        size = engine.count(scope)
        exact = engine.histogram(["place"], scope).counts / size
    half = told["releases"][1]["error"]["interval"]
    rows = cells(page)
    best = sorted(range(78), key=lambda k: -drawn[1][k])[:20]
    for k in best:
        share = drawn[1][k] / size
        numbers = (share, share - half, share + half, float(exact[k]))
        assert [labels[k], *map(shown, numbers)] in rows


def test_every_other_number_of_the_page_is_a_stored_one(told: dict[str, Any], page: str) -> None:
    found, translation = terms(page), told["translation"]
    for name, key in (
        ("Pufferfish ε alone", "alone"),
        ("on top of what was spent before", "marginal"),
        ("left after it", "left"),
    ):
        assert found[name] == [shown(release["cost"][key]) for release in told["releases"]]
    assert found["DP ε per row"] == [
        shown(float(Fraction(release["cost"]["per_entry"]))) for release in told["releases"]
    ]
    assert found["spent"] == [shown(told["spent"])]
    assert found["head"] == [f"{told['head']['seq']}:{told['head']['hash']}"]
    assert found["and some mechanism leaks"] == [shown(translation["leak"])]
    lists = [translation[key] for key in ("per_entry", "exact", "curve", "group")]
    for row in zip(*lists, strict=True):
        assert list(map(shown, row)) in cells(page)
    with open_ledger(told["ledger"], create=False, read_only=True) as ledger:
        for event in ledger.history():
            assert any(row[-1] == f"{event.hash[:24]}…" for row in cells(page))
            for name in ("cells", "prior", "secrets", "translation"):
                if event.kind == "charge":
                    assert found[name] == [event.body[name]]


def test_the_page_says_what_is_not_protected_and_that_it_is_made_up(page: str) -> None:
    read = Reader(page)
    assert not read.open
    assert "that a row exists, and how many rows there are" in read.said
    assert "Nobody is behind these rows" in read.said
    assert read.tags.count("svg") == 4
    assert "script" not in read.tags
    assert "http:" not in re.sub(r'xmlns[^"]*"[^"]*"', "", page) and "https:" not in page


def test_how_many_places_are_right_is_counted_from_the_rows(told: dict[str, Any]) -> None:
    with open_engine(told["declaration"]) as engine:
        counts = engine.histogram(["country", "place"], Scope(start="2013-05-08")).counts
        countries, labels = engine.keys("country"), engine.keys("place")
    right = [0, 0, 0]
    for country, place, label in told["releases"][0]["rows"]:
        row = counts[countries.index(country)].tolist()
        right[place - 1] += row[labels.index(label)] == sorted(row, reverse=True)[place - 1]
    assert told["right"] == right


@pytest.mark.usefixtures("run")
def test_a_folder_in_use_is_refused_and_left_alone(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    again = CliRunner().invoke(app, ["demo", "--rows", ROWS, "--out", str(folder)])
    assert isinstance(again.exception, InvalidFile)
    assert "exists and is not empty" in str(again.exception)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_it_is_told_step_by_step(run: tuple[str, Story], folder: Path) -> None:
    text, story = run
    headings = re.findall(r"^(\d+)  \S", text, re.MULTILINE)
    assert headings == [str(number) for number in range(1, 11)]
    assert "nobody is behind these rows" in text
    assert f"   {story.refused}\n" in text
    assert "the same answer, for free" in text
    assert "7 events, each with the hash of all before it: sound" in text
    assert f"Spent: ε = {story.spent:.6g} of" in text
    assert f"really leaks {story.translated.leak:.4g}" in " ".join(text.split())
    assert text.rstrip().splitlines()[-1] == str(folder / "page.html")


def test_anything_but_a_refusal_is_not_what_was_expected(run: tuple[str, Story]) -> None:
    _, story = run
    assert _as_expected(story)
    answered = replace(story, refused=None, readings=[*story.readings, story.readings[-1]])
    assert not _as_expected(answered)
    assert "Third query: answered" in made_page(answered).html()
    assert not _as_expected(replace(story, report=replace(story.report, problems=("broken",))))
    assert not _as_expected(replace(story, again=replace(story.again, free=False)))


def test_without_a_name_each_run_gets_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("demo", "demo-2", "demo-3"):
        with _folder(None) as (work, claim):
            (work / "file").write_text(name)
            assert claim() == Path("out") / name
    found = sorted(Path("out").iterdir())
    assert [path.name for path in found] == ["demo", "demo-2", "demo-3"]
    assert [(path / "file").read_text() for path in found] == ["demo", "demo-2", "demo-3"]


def _fail(out: Path | None) -> None:
    with _folder(out) as (work, _):
        (work / "half").write_text("done")
        raise OSError("the disk is full")


def test_nothing_is_left_of_a_run_that_fails(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"):
        _fail(tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with _folder(tmp_path / "new") as (_, claim):
        (tmp_path / "new").mkdir()
        (tmp_path / "new" / "theirs").write_text("kept")
        with pytest.raises(InvalidFile, match="not empty"):
            claim()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["theirs"]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    with _folder(tmp_path / "new") as (work, claim):
        (tmp_path / "new").mkdir()
        (work / "file").write_text("x")
        assert claim() == tmp_path / "new"
    assert (tmp_path / "new" / "file").exists()


@pytest.mark.parametrize("given", [["--rows", "19999"], ["--rows", "100000001"], ["--seed", "-1"]])
def test_numbers_out_of_range_are_refused(given: list[str], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", *given, "--out", str(tmp_path / "new")])
    assert isinstance(done.exception, Malformed)
    assert not list(tmp_path.iterdir())
