"""Results and their files at the edges: every part that is drawn, laid out, or kept on disk."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu.documents.reading import InvalidDocument
from takifugu.errors import InvalidFile
from takifugu.session import result_files
from takifugu.session.release_result import MOST_LINES, result_from_document
from takifugu.session.result_files import (
    LONGEST_CELL,
    MOST_SHEET_ROWS,
    ResultFile,
    csv_text,
    write_result,
)
from tests.raising import raises
from tests.session.test_result_files import NAMES, some
from tests.session.test_results import result

pytestmark = pytest.mark.nightly


# --- files ---


def test_a_table_that_cannot_be_named_takes_its_metadata_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trouble that is shown is the first one, also if more follows."""
    path, unlink = tmp_path / "a.csv", Path.unlink

    def stuck(self: Path, missing_ok: bool = False) -> None:
        if self.name.endswith("-metadata.json"):
            raise PermissionError(13, "not allowed")
        unlink(self, missing_ok=missing_ok)

    with ResultFile(path) as target:
        path.write_text("mine")
        monkeypatch.setattr(Path, "unlink", stuck)
        with pytest.raises(FileExistsError):
            target.write(some())


def test_what_is_not_written_leaves_nothing(tmp_path: Path) -> None:
    for name in ("a.csv", "a.json"):
        target = ResultFile(tmp_path / name)
        assert len(list(tmp_path.iterdir())) == (2 if name == "a.csv" else 1)
        assert (target.beside is None) == (name == "a.json")
        target.close()
        assert not list(tmp_path.iterdir())


def test_errors_name_the_option_that_named_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    (tmp_path / "b.csv-metadata.json").write_text("mine")
    for name in ("a.csv", "b.csv", "c.txt"):
        with raises(InvalidFile, field="--out"):
            ResultFile(tmp_path / name, field="--out")


def test_a_suffix_is_that_of_the_method(tmp_path: Path) -> None:
    with raises(InvalidFile, field="path", reason="suffix"):
        write_result(some(), tmp_path / "a.csv", ".html")
    write_result(some(), tmp_path / "a.HTML", ".html")
    assert [file.name for file in tmp_path.iterdir()] == ["a.HTML"]


def test_metadata_are_text_that_people_read(tmp_path: Path) -> None:
    some([("東京\u202e", 3, 1, 5.5)], columns=("東\u202e京", *NAMES[1:])).to_csv(tmp_path / "a.csv")
    text = (tmp_path / "a.csv-metadata.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "@context"') and text.endswith("}\n") and not text.endswith("\n\n")
    assert "東\\u202e京" in text and "\u202e" not in text
    about = json.loads(text)
    assert about["@context"][1] == {"@language": "en"} and about["dc:date"].startswith("2020-01-01")


def test_a_table_as_csv_has_a_row_a_line() -> None:
    rows = [("=a", 1, None, 2), ("b", 2, 1.5, "x")]
    assert csv_text(("+k", "n", "x", "m"), rows) == "'+k,n,x,m\n'=a,1,,2\nb,2,1.5,x\n"


# --- sheets ---


def book_of(*rows: tuple[Any, ...], columns: tuple[str, ...] = NAMES) -> Any:
    openpyxl = pytest.importorskip("openpyxl", reason="an extra: install takifugu[tables]")
    made = replace(some(list(rows), columns), at=datetime(2021, 5, 6, 7, 8, 9, 123, tzinfo=UTC))
    return openpyxl.load_workbook(io.BytesIO(result_files._excel(made)))


def test_text_of_a_sheet_is_text_whatever_it_looks_like() -> None:
    marks = ("#N/A", "=1+1", "two\nlines", "tab\there", "'=x")
    sheet = book_of(*((mark, 3, 1, 5.5) for mark in marks), columns=("=k", *NAMES[1:]))["result"]
    cells = [sheet.cell(line, 1) for line in range(1, 7)]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.value for cell in cells[1:]] == [
        "#N/A", "=1+1", "two\nlines", "tab\\u0009here", "'=x"
    ]  # fmt: skip
    assert [cell.quotePrefix for cell in cells] == [True, False, True, False, False, True]
    assert [sheet.cell(2, place).value for place in (2, 3, 4)] == [3, 1, 5.5]


def test_a_sheet_has_the_size_that_spreadsheets_have() -> None:
    assert (LONGEST_CELL, MOST_SHEET_ROWS) == (2**15 - 1, 2**20 - 1)  # one row holds the names


# --- figures and tables ---


@pytest.mark.parametrize("more", [0, 1])
def test_a_table_shows_its_first_rows_and_counts_the_rest(more: int) -> None:
    rows: list[tuple[Any, ...]] = [("x", i, 0, 0) for i in range(MOST_LINES + more)]
    rows[-1] = (rows[-1][0], "text" if more else rows[-1][1], 0, 0)
    lines = str(result(NAMES, rows)).splitlines()
    assert [line for line in lines if line.startswith("…")] == (
        ["… 1 more of 61 rows; to_json, or to_pandas, has them all"] if more else []
    )
    assert lines[1 + MOST_LINES].startswith("…") == bool(more)
    assert lines[1] == "x             0    0     0"  # what is not shown moves nothing


@pytest.mark.parametrize(
    "changes",
    [
        {"before": None},  # infinite, and less after it
        {"after": None},
        {"budget": "-1"},
        {"budget_delta": "5"},
        {"by_column": {}},
    ],
)
def test_a_result_whose_numbers_contradict_one_another_is_refused(changes: dict[str, Any]) -> None:
    """Each is well formed by itself, and the result could not be printed."""
    document = {**json.loads(some().to_json()), "window": None, "groups": None}
    assert result_from_document(document).document() == document
    with raises(InvalidDocument, field="document"):
        result_from_document({**document, "cost": document["cost"] | changes})
