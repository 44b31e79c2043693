"""Results and their files at the edges: every part that is drawn, laid out, or kept on disk."""

import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu._atomic import PendingFile
from takifugu.errors import InvalidFile
from takifugu.session import result_files
from takifugu.session.document_reading import InvalidDocument
from takifugu.session.release_result import MEANINGS, MOST_LINES, WIDEST
from takifugu.session.result_documents import result_from_document
from takifugu.session.result_files import (
    LONGEST_CELL,
    MOST_SHEET_ROWS,
    ResultFile,
    column_kind,
    csv_text,
    write_result,
)
from tests.raising import raises
from tests.session.test_result_files import NAMES, some
from tests.session.test_results import COST, result

pytestmark = pytest.mark.nightly

ROW = ("home", 3, 1, 5.5)


# --- files ---


@pytest.mark.parametrize("name", ["a.csv", "a.html"])
def test_every_file_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    kept: list[tuple[str, bool]] = []
    keep = PendingFile.keep

    def noted(self: PendingFile, *, fsync: bool = False) -> None:
        kept.append((self.path.name, fsync))
        keep(self, fsync=fsync)

    monkeypatch.setattr(PendingFile, "keep", noted)
    with ResultFile(tmp_path / name) as target:
        target.write(some())
    beside = [("a.csv-metadata.json", True)] if name == "a.csv" else []
    assert kept == [*beside, (name, True)]  # the table last: with it there is what it is about


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


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "text"),
        ([None, None], "text"),
        ([1, 2], "integer"),
        ([1.0, None], "number"),
        ([1, 2.5], "number"),
        (["a", 2.5], "text"),
    ],
)
def test_a_column_is_of_the_widest_kind_in_it(values: list[Any], kind: str) -> None:
    assert column_kind(values) == kind


# --- sheets ---


def book_of(*rows: tuple[Any, ...], columns: tuple[str, ...] = NAMES) -> Any:
    openpyxl = pytest.importorskip("openpyxl", reason="an extra: install takifugu[tables]")
    made = replace(some(list(rows), columns), at=datetime(2021, 5, 6, 7, 8, 9, 123, tzinfo=UTC))
    return openpyxl.load_workbook(io.BytesIO(result_files._excel(made)))


def test_the_sheet_about_a_table_is_wide_enough_to_read() -> None:
    book = book_of(ROW)
    widths = [book["about"].column_dimensions[letter].width for letter in "AB"]
    assert widths == [24, 100]
    assert book.properties.title == "histogram of state"
    assert book.properties.created == datetime(2021, 5, 6, 7, 8, 9)
    facts = list(some([ROW]).facts())
    lines = list(book["about"].iter_rows())
    assert [row[0].value for row in lines] == facts
    assert all(row[0].font.bold and row[1].alignment.wrap_text for row in lines)
    assert all(row[1].alignment.vertical == "top" and len(row) == 2 for row in lines)


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


@pytest.mark.parametrize("titled", [True, False])
@pytest.mark.parametrize(("name", "ranked"), [("top_k", True), ("histogram", False)])
@pytest.mark.parametrize("free", [True, False])
def test_a_figure_is_given_all_of_a_result(
    monkeypatch: pytest.MonkeyPatch, titled: bool, name: str, ranked: bool, free: bool
) -> None:
    given: list[tuple[Any, ...]] = []
    monkeypatch.setattr(
        "takifugu.reports.result_figure.result_figure", lambda *a, **k: given.append((a, k))
    )
    made = replace(result(NAMES, [ROW], name=name, by=["zone"]), free=free)
    made.figure(titled=titled)
    note = "epsilon = 0.25 alone" + (", answered before" if free else "")
    parts = {"title": made.title if titled else "", "note": note if titled else ""}
    assert given == [((NAMES, (ROW,)), {"by": ("zone",), "ranked": ranked, **parts})]
    made.figure()
    assert given[-1][1]["title"] == made.title != ""


def test_a_title_names_the_kind_and_the_columns() -> None:
    assert result(NAMES, [], name="top_k").title == "top k of state"
    assert result(NAMES, [], column=["state", "job"]).title == "histogram of state × job"
    assert result(NAMES, [], name="linear", query="load").title == "linear of load"


def test_the_price_of_a_result_in_words() -> None:
    made = result(NAMES, [ROW])
    later = replace(COST, before=0.5, after=0.625)
    for given, words in (
        ({}, "cost epsilon = 0.25 alone, 0.25 on top of what was spent before"),
        ({"cost": later}, "cost epsilon = 0.25 alone, 0.125 on top of what was spent before"),
        ({"cost": replace(COST, after=None)}, "cost epsilon = 0.25 alone"),
        ({"cost": replace(COST, reuse=True)}, "cost epsilon = 0.25"),
        ({"free": True}, "free: answered before"),
        ({"free": True, "cost": replace(COST, reuse=True)}, "free: answered before"),
    ):
        assert replace(made, **given).price == words


def test_what_a_result_is_about_is_complete() -> None:
    made = result(NAMES, [ROW])
    assert made.rows_read is None and made.rows_there is None
    assert made.facts()["rows read"] == "unknown" == made.facts()["expected error"]
    assert list(made.facts())[:2] == ["query", "rows read"] and made.facts()["query"] == made.title
    told = made.facts()["for one entry"]
    assert told.startswith("someone who") and made.cost.odds_words == f"for one entry: {told}"
    document = made.document()
    assert document["reads"] is document["raw"] is document["saving"] is None
    assert document["provenance"] is None and document["rows"] == [list(ROW)]
    assert set(document) - set(made.about()) == {"columns", "rows", "raw"}
    drawn = replace(made, raw=(("home", 2, 1, 5.5),), shown=("rounded",))
    assert drawn.document()["raw"] == [["home", 2, 1, 5.5]] and drawn.document()["shown"] == [
        "rounded"
    ]
    assert made.to_json().startswith('{\n  "dataset"')


def test_a_column_means_the_same_if_a_declared_one_has_its_name() -> None:
    made = result(NAMES, [ROW])
    assert made.meaning("low") == made.meaning("low (answer)") == MEANINGS["low"]
    assert made.meaning("state") == "A value of state."


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
    ("value", "shown"),
    [
        (None, "-"),
        (999.96, "1000"),
        (1000.4, "1000"),
        (-12345.6, "-12346"),
        (999.9, "999.9"),
        (1 / 3, "0.3333"),
        (12345, "12345"),
        ("a" * WIDEST, "a" * WIDEST),
        ("a" * (WIDEST + 1), "a" * (WIDEST - 1) + "…"),
    ],
)
def test_a_cell_is_short(value: Any, shown: str) -> None:
    lines = str(result(("estimate",), [(value,)])).splitlines()
    assert lines[1].strip() == shown


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
