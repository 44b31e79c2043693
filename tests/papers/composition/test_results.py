"""What a run stores is read back as it was, and nothing half-written is ever seen."""

import json
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from takifugu.errors import InvalidFile
from takifugu.papers.composition.data import read_prepared, write_prepared
from takifugu.papers.composition.experiments.measurements import (
    FORMAT,
    FinishedCells,
    PrintedColumn,
    Results,
    ShiftedCell,
    about,
    merged,
    read_results,
    shortened,
    write_results,
)
from takifugu.papers.composition.tables_and_figures.figure_writing import write_whole
from tests.papers.composition import synthetic_cells
from tests.papers.composition.small_datasets import prepared
from tests.raising import raises


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    made = synthetic_cells.results("one", "two")
    assert any(cell.noise == inf for cell in made.cells)
    write_results(made, tmp_path / "results.json")
    assert read_results(tmp_path / "results.json") == made
    assert json.loads((tmp_path / "results.json").read_text())["format"] == FORMAT
    assert len(made.of("one")) * 2 == len(made.cells)


def test_shortening_keeps_five_digits_and_the_settings() -> None:
    shift = ShiftedCell(
        "one", "Ours-Exp", 0.5, 0.0945349, False, True, synthetic_cells.cells()[0].measured
    )
    made = replace(synthetic_cells.results("one"), shifted=(shift,))
    short = shortened(made)
    assert short.shifted == (replace(shift, at=0.094535, plain={}),)
    assert short != made and shortened(short) == short and short.about == made.about
    for ours, full in zip(short.cells, made.cells, strict=True):
        assert (ours.mechanism, ours.epsilon) == (full.mechanism, full.epsilon)
        assert ours.noise == pytest.approx(full.noise, rel=5e-5)
        assert {k: v.repetitions for k, v in ours.exp_lead.items()} == {
            k: v.repetitions for k, v in full.exp_lead.items()
        }
        assert ours.measured["hit"].mean == pytest.approx(full.measured["hit"].mean, rel=5e-5)


def test_the_last_of_two_results_counts() -> None:
    old, new = synthetic_cells.results("one", "two"), synthetic_cells.results("two")
    new = Results((replace(new.about[0], repetitions=9),), new.cells[:5])
    both = merged([old, new])
    assert [one.key for one in both.about] == ["one", "two"]
    assert both.about[1].repetitions == 9 and both.of("two") == new.cells


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format": "3", "about": [], "cells": []}', '{"format": 3, "about": [{}]}'],
)
def test_another_file_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(content)
    with raises(InvalidFile, field="results"):
        read_results(path)


@pytest.mark.parametrize(("part", "other"), [("measured", "text"), ("lead", [1]), ("noise", [])])
def test_a_cell_of_another_shape_is_refused_or_passed_over(
    part: str, other: object, tmp_path: Path
) -> None:
    path, lines = tmp_path / "results.json", tmp_path / "cells.jsonl"
    write_results(synthetic_cells.results("one"), path)
    document = json.loads(path.read_text())
    document["cells"][0] |= {"identity": "a", part: other}
    path.write_text(json.dumps(document))
    with raises(InvalidFile, field="results"):
        read_results(path)
    lines.write_text(json.dumps(document["cells"][0]) + "\n")
    assert FinishedCells(lines).get("a") is None


def test_a_device_is_no_file_of_results(tmp_path: Path) -> None:
    for path, read in ((tmp_path / "results.json", read_results), (tmp_path / "c", FinishedCells)):
        path.symlink_to("/dev/zero")
        with pytest.raises(InvalidFile, match="ordinary file"):
            read(path)


@pytest.mark.parametrize("other", [1, 2, FORMAT + 1])
def test_results_of_another_format_are_refused_and_it_is_named(other: int, tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(synthetic_cells.results("one"), path)
    path.write_text(path.read_text().replace(f'"format": {FORMAT}', f'"format": {other}'))
    with raises(InvalidFile, field="results") as refused:
        read_results(path)
    assert f"format {other}" in str(refused.value) and f"format {FORMAT}" in str(refused.value)


def test_a_family_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    write_results(synthetic_cells.results("one"), path)
    path.write_text(path.read_text().replace('"foursquare"', '"fivesquare"'))
    with pytest.raises(InvalidFile):
        read_results(path)


CALIBRATED = (
    PrintedColumn("Ours-Exp", False, "acc@1"),
    PrintedColumn("MQM, split budget", True, "l1"),
)


def test_what_a_world_was_calibrated_to_goes_from_its_preparation_to_the_results(
    tmp_path: Path,
) -> None:
    assert about(prepared(), repetitions=2).calibrated == ()
    made = replace(prepared(), calibrated=CALIBRATED)
    write_prepared(made, tmp_path / "made.json")
    assert read_prepared(tmp_path / "made.json").calibrated == CALIBRATED
    summary = about(made, repetitions=2)
    write_results(Results((summary,), ()), tmp_path / "results.json")
    assert read_results(tmp_path / "results.json").about == (summary,)
    assert summary.calibrated == CALIBRATED


@pytest.mark.parametrize(
    ("given", "written"),
    [('"simulated"', '"real"'), (", false,", ", 0,"), (', "acc@1"', ""), ('"acc@1"', "1")],
)
def test_columns_of_real_data_or_malformed_ones_are_refused(
    given: str, written: str, tmp_path: Path
) -> None:
    path = tmp_path / "results.json"
    summary = replace(synthetic_cells.about(), calibrated=CALIBRATED)
    write_results(Results((summary,), ()), path)
    assert given in path.read_text()
    path.write_text(path.read_text().replace(given, written))
    with raises(InvalidFile, field="results"):
        read_results(path)


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with raises(InvalidFile, field=str(tmp_path / "taken" / "page.html"), reason="unwritable"):
        write_whole(tmp_path / "taken" / "page.html", "x")
    (tmp_path / "folder").mkdir()
    with raises(InvalidFile, field=str(tmp_path / "folder"), reason="unwritable"):
        write_whole(tmp_path / "folder", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "taken"]
