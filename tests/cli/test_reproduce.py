"""``takifugu reproduce`` from a folder of data to a page; mistakes are one line."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from takifugu.cli import main, program
from takifugu.cli.commands.reproduce_command import (
    MAX_ROWS,
    MIN_ROWS,
    ROWS_HELP,
)
from takifugu.errors import TakifuguError, UnsoundRequest
from takifugu.papers.composition.data.simulated import PAPER_ROWS
from takifugu.papers.composition.reproduction import ReproductionRequest, reproduce
from takifugu.synthetic import check_in_counts
from tests.raising import raises

pytestmark = pytest.mark.nightly

STAGES, PEOPLE, EPOCHS = 5, 10, 60


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sleep of 20 people in two groups, made up here: files in the shape of real ones."""
    rng = np.random.default_rng(5)
    folder = tmp_path_factory.mktemp("nights")
    lines = ["dataset,scorer,recording,stages_30s"]
    for group in ("dodh", "dodo"):
        for person in range(PEOPLE):
            stages = [0]
            for _ in range(EPOCHS - 1):
                stay = rng.random() < 0.6
                stages.append(
                    stages[-1] if stay else int(rng.choice(STAGES, p=[0.1, 0.1, 0.4, 0.2, 0.2]))
                )
            lines.append(f"{group},scorer_1,{group}-{person},{' '.join(map(str, stages))}")
    with gzip.open(folder / "sleep_hypnograms.csv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    return folder


def command(*arguments: object) -> str:
    result = CliRunner().invoke(program(), ["reproduce", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def made(nights: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("out")
    said = command("capture24", "--data", nights, "--out", out, "--repetitions", 20, "--json")
    facts: dict[str, Any] = json.loads(said)
    return facts, out


def test_every_cell_is_filled(made: tuple[dict[str, Any], Path]) -> None:
    facts, out = made
    (data,) = facts["datasets"]
    assert (data["key"], data["origin"], data["groups"], data["labels"]) == ("sleep", "real", 2, 5)
    assert data["beside_print"] == []  # real data that is not the paper's
    assert data["cells"] == 6 * 2 * 6  # mechanisms and Majority, with and without, each ε
    results = json.loads((out / "results.json").read_text())
    assert len(results["cells"]) == data["cells"] and len(results["shifted"]) == 5 * 6
    assert str(Path(facts["page"]).parent) == str(out)


def test_what_is_written_is_there_and_listed(made: tuple[dict[str, Any], Path]) -> None:
    facts, out = made
    listed = {Path(path).relative_to(out).as_posix() for path in facts["files"]}
    assert {"index.html", "manifest.json", "results.json", "tables/all.tex"} <= listed
    assert {f"tables/sleep-accuracy.{end}" for end in ("md", "csv", "tex")} <= listed
    assert {f"tables/baselines-fitted.{end}" for end in ("md", "csv", "tex")} <= listed
    assert "fitted-baselines.json" in listed
    assert {f"figures/sleep-{name}.svg" for name in ("accuracy", "noise", "shift")} <= listed
    assert all((out / path).stat().st_size > 0 for path in listed)
    assert not list(out.rglob("*.part"))
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["files"]) == listed - {"manifest.json"}
    assert manifest["datasets"][0]["fingerprint"] and manifest["seeds"]["mechanisms"] == 2025
    assert manifest["packages"]["numpy"] == np.__version__


def test_the_page_has_all_of_it(made: tuple[dict[str, Any], Path]) -> None:
    facts, out = made
    page = (out / "index.html").read_text()
    assert page.count("<svg ") == 4  # three figures, and the shift of what is printed
    assert "Real data, but not the paper&#x27;s" in page and "Table 2" in page
    for finding in facts["findings"]:
        assert finding["claim"] in page.replace("&#x27;", "'")
    assert len(facts["findings"]) == 5
    shift = facts["findings"][-1]
    assert (
        shift["holds"] and shift["tied"] == 30 and not shift["shown"] and not shift["contradicted"]
    )


def test_the_paper_s_files_that_are_missing_are_named(made: tuple[dict[str, Any], Path]) -> None:
    facts, _ = made
    said = "\n".join(facts["notices"])
    assert "metadata.csv" in said and "annotation-label-dictionary.csv" in said
    assert "https://ora.ox.ac.uk" in said and "columns" in said


def test_a_run_that_was_stopped_goes_on_and_ends_the_same(
    made: tuple[dict[str, Any], Path], nights: Path
) -> None:
    _, out = made
    before = (out / "results.json").read_text()
    cells = out / "work" / "cells-sleep.jsonl"
    kept = cells.read_text().splitlines(keepends=True)
    cells.write_text("".join(kept[:50]) + kept[50][:30])  # stopped in the middle of a line
    shown = command("capture24", "--data", nights, "--out", out, "--repetitions", 20)
    assert (out / "results.json").read_text() == before
    assert cells.read_text().splitlines(keepends=True)[:50] == kept[:50]
    assert len(cells.read_text().splitlines()) == len(kept) + 1  # only what was missing, anew
    assert "Sleep stages" in shown and "the page is" in shown


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("tables",), "WHAT"),
        (("all", "--repetitions", "1"), "--repetitions"),
        (("all", "--seed", "-1"), "--seed"),
        (("foursquare", "--rows", "9999"), "--rows"),
        (("all", "--rows", "1000000001"), "--rows"),
        (("capture24", "--rows", "20000"), "--rows"),
        (("figures", "--rows", "20000"), "--rows"),
        (("foursquare", "--rows", "20000", "--data", "."), "--rows"),
        (("all", "--data", "nowhere"), None),
        (("foursquare", "--data", "."), None),
    ],
)
def test_a_slip_is_refused(
    arguments: tuple[str, ...], field: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TakifuguError) as refused:
        command(*arguments)
    assert field is None or refused.value.field == field, refused.value.field
    assert not list(tmp_path.iterdir())


def test_the_bounds_are_those_of_the_world() -> None:
    assert (MIN_ROWS, MAX_ROWS) == (check_in_counts.FEWEST, check_in_counts.MOST)
    assert f"{PAPER_ROWS:,}" in ROWS_HELP


def test_rows_are_those_of_the_simulated_check_ins(tmp_path: Path) -> None:
    said = command(
        *("foursquare", "--rows", 20_000, "--out", tmp_path, "--repetitions", 2, "--json")
    )
    facts: dict[str, Any] = json.loads(said)
    (data,) = facts["datasets"]
    assert (data["key"], data["origin"]) == ("simulated-checkins", "simulated")
    (about,) = json.loads((tmp_path / "results.json").read_text())["about"]
    assert about["facts"]["rows"] == 20_000
    assert about["calibrated"] == [["Ours-Exp", False, f"acc@{k}"] for k in (1, 2, 3)]
    assert not list(tmp_path.rglob("*.parquet"))  # no row exists


@pytest.mark.parametrize(("what", "data"), [("capture24", None), ("figures", None)])
def test_rows_of_a_request_without_simulated_check_ins_are_refused(
    what: Any, data: Path | None, tmp_path: Path
) -> None:
    request = ReproductionRequest(what, data, tmp_path / "out", 2, 0, rows=20_000)
    with raises(UnsoundRequest, field="rows"):
        reproduce(request, lambda *_: None, lambda _: None)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_written_is_one_line(
    nights: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "taken").write_text("")
    words = ["takifugu", "reproduce", "capture24", "--data", str(nights)]
    monkeypatch.setattr(sys, "argv", [*words, "--out", str(tmp_path / "taken")])
    with pytest.raises(SystemExit) as stopped:
        main()
    said = capsys.readouterr()
    assert stopped.value.code == 2 and not said.out
    last = said.err.splitlines()[-1]
    assert last.startswith("takifugu: ") and "taken" in last
