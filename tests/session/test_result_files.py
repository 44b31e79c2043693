"""Results as files: what they hold and are about; they appear whole or not at all."""

import csv
import io
import json
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import DriverMissing
from takifugu.documents.reading import InvalidDocument
from takifugu.errors import InvalidFile
from takifugu.ledger import Anchor
from takifugu.session import Result, result_files
from takifugu.session.release_result import PriorUsed, Provenance, result_from_document
from takifugu.session.result_files import (
    FORMULAS,
    ResultFile,
    arrow_stream,
    column_kind,
    csv_metadata,
    csv_text,
    files_of,
    typed_columns,
)
from tests.raising import raises
from tests.session.test_results import result
from tests.session.world import opened

FORMULA = '=HYPERLINK("http://x")'
LABELS = (
    FORMULA,
    "+1",
    "@a",
    "-b",
    "'quoted",
    "<script>alert(1)</script>",
    "\x1b[31m",
    "東京 🐡",
    "",
)

NAMES = ("state", "estimate", "low", "high")


def some(
    rows: Any = None, columns: tuple[str, ...] = ("state", "estimate", "low", "high")
) -> Result:
    found = rows or [(label, 3, 1, 5.5) for label in LABELS]
    made = result(columns, found)
    came = Provenance(
        dataset="visits",
        analyst=None,
        asked="histogram of state",
        priors=(PriorUsed("prior", "a Markov chain", "ab" * 32, ("Fitted on the first 3 days.",)),),
        translation="cd" * 32,
        charge=Anchor(3, "ef" * 32),
        answer=Anchor(4, "01" * 32),
        released=datetime(2020, 1, 1, tzinfo=UTC),
        software={"takifugu": "0.1", "opendp": "0.16"},
    )
    return replace(made, provenance=came)


def test_a_csv_file_has_what_it_is_about_beside_it(tmp_path: Path) -> None:
    path, beside = tmp_path / "shares.csv", tmp_path / "shares.csv-metadata.json"
    some().to_csv(path)
    with path.open(encoding="utf-8", newline="") as stream:
        head, *rows = csv.reader(stream)
    about = json.loads(beside.read_text(encoding="utf-8"))
    assert head == ["state", "estimate", "low", "high"] and rows[0] == [
        f"'{FORMULA}",
        "3",
        "1",
        "5.5",
    ]
    assert about["@context"][0] == "http://www.w3.org/ns/csvw" and about["url"] == "shares.csv"
    columns = about["tableSchema"]["columns"]
    assert [column["titles"] for column in columns] == head
    assert [column["datatype"] for column in columns] == ["string", "integer", "integer", "number"]
    (note,) = about["notes"]
    assert note["provenance"]["charge"] == {"event": 3, "hash": "ef" * 32}
    assert "rows" not in note and note["cost"]["alone"] == 0.25
    assert sorted(file.name for file in tmp_path.iterdir()) == [path.name, beside.name]


@pytest.mark.parametrize("taken", ["a.csv", "a.csv-metadata.json"])
def test_neither_file_is_written_if_one_is_there(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("mine")
    with raises(InvalidFile, field="path", reason="exists"):
        some().to_csv(tmp_path / "a.csv")
    assert [file.name for file in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "mine"


def test_neither_file_is_written_if_one_appears_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with ResultFile(path) as target:
        path.write_text("mine")
        with pytest.raises(FileExistsError):
            target.write(some())
    assert [file.name for file in tmp_path.iterdir()] == ["a.csv"] and path.read_text() == "mine"


def test_metadata_that_a_killed_program_left_are_replaced(tmp_path: Path) -> None:
    some().to_csv(tmp_path / "a.csv")
    (tmp_path / "a.csv").unlink()
    some([("home", 1, 2, 3)]).to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().count("\n") == 2


def test_a_column_is_of_one_kind() -> None:
    rows = [("a", 470, 464.0, 1), (None, 3, None, "x")]
    table = typed_columns(("label", "estimate", "low", "mixed"), rows)
    assert table == {
        "label": ["a", None],
        "estimate": [470, 3],
        "low": [464.0, None],
        "mixed": ["1", "x"],
    }
    assert [column_kind(values) for values in ([1, None], [1, 2.5], [None], ["a", 1])] == [
        "integer", "number", "text", "text"
    ]  # fmt: skip


def test_a_spreadsheet_holds_text_as_text_and_what_it_is_about(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="an extra: install takifugu[tables]")
    path = tmp_path / "shares.xlsx"
    some([*((label, 3, 1.25, None) for label in LABELS), ("x" * 40_000, 1, 2.0, 3)]).to_excel(path)
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["result", "about"]
    sheet = book["result"]
    assert [cell.value for cell in sheet[1]] == list(NAMES)
    assert sheet["A2"].value == FORMULA and sheet["A2"].data_type == "s" and sheet["A2"].quotePrefix
    assert not any(cell.data_type == "f" for row in sheet.iter_rows() for cell in row)
    assert sheet["B2"].value == 3 and sheet["C2"].value == 1.25 and sheet["D2"].value is None
    assert len(sheet.cell(len(LABELS) + 2, 1).value) == 32_767
    facts = {row[0].value: row[1].value for row in book["about"].iter_rows()}
    assert (
        facts["charge"] == f"event 3, {'ef' * 32}"
        and facts["software"] == "takifugu 0.1, opendp 0.16"
    )
    assert facts["prior, fitted"] == "Fitted on the first 3 days."


def test_a_spreadsheet_of_a_column_with_an_odd_name_can_be_opened(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="an extra: install takifugu[tables]")
    odd = "pl\x02ace\x1b]]>"
    made = some(columns=(odd, *NAMES[1:]))
    asked = {**made.query, "query": {**made.query["query"], "column": odd}}
    replace(made, query=asked).to_excel(tmp_path / "a.xlsx")
    book = openpyxl.load_workbook(tmp_path / "a.xlsx")
    assert "pl\\u0002ace" in book.properties.title
    assert book["result"]["A1"].value == "pl\\u0002ace\\u001b]]>"


def test_parquet_holds_what_it_is_about(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="an extra: install takifugu[tables]")
    path = tmp_path / "shares.parquet"
    with ResultFile(path) as target:
        target.write(some())
    found = parquet.read_table(path)
    about = json.loads(found.schema.metadata[b"takifugu"])
    assert about["provenance"]["asked"] == "histogram of state"
    assert found.to_pydict()["state"] == list(LABELS)


@pytest.mark.parametrize(("name", "suffix"), [("a.parquet", "pyarrow"), ("a.xlsx", "openpyxl")])
def test_what_is_missing_is_found_before_anything_is_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, suffix: str
) -> None:
    monkeypatch.setitem(sys.modules, suffix, None)
    with raises(DriverMissing, package=suffix, extra="tables"):
        ResultFile(tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.txt", "a", "a.csv.gz"])
def test_a_suffix_says_how_it_is_written(tmp_path: Path, name: str) -> None:
    with raises(InvalidFile, field="path", reason="suffix"):
        ResultFile(tmp_path / name)
    with raises(InvalidFile, field="path", reason="suffix"):
        some().to_excel(tmp_path / name)


def test_a_page_and_a_fragment_escape_every_label(tmp_path: Path) -> None:
    made = some()
    page = made.to_html(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    for text in (page, made._repr_html_()):
        assert "<script>" not in text and "&lt;script&gt;" in text and "\x1b" not in text
        assert "ef" * 32 in text and "東京" in text
    assert page == made.to_html()  # the same result, the same bytes
    assert len(re.findall("<h1>", page)) == 1 and 'role="img"' in page


def test_a_released_result_says_where_it_came_from(tmp_path: Path) -> None:
    with opened(tmp_path) as (session, ledger, _):
        plan = session.plan.histogram(by="zone", epsilon=1)
        first, again = (
            session.release(plan, accept_noise=True),
            session.release(plan, accept_noise=True),
        )
        events = list(ledger.history())
    came = first.provenance
    assert came is not None and again.provenance == came
    charge = next(event for event in events if event.kind == "charge")
    answer = next(event for event in events if event.kind == "answer")
    assert came.charge == Anchor(charge.seq, charge.hash)
    assert came.answer == Anchor(answer.seq, answer.hash) and came.released == answer.at
    assert set(came.software) == {"takifugu", "opendp", "duckdb", "python"}
    assert answer.body["answer"]["software"] == dict(came.software)
    assert charge.body["data"] not in first.to_json()  # the mark of the data is the owner's
    assert str(tmp_path) not in first.to_json() + first.to_html()
    assert came.line in str(first)
    assert json.loads(first.to_json())["provenance"]["priors"][0]["fingerprint"]


def test_json_is_readable_by_people_and_programs(tmp_path: Path) -> None:
    made = some()
    with ResultFile(tmp_path / "a.JSON") as target:
        target.write(made)
    text = (tmp_path / "a.JSON").read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(made.to_json())
    assert text.startswith('{\n  "') and text.endswith("}\n")  # a key a line, two blanks in
    assert "東京 🐡" in text and "\x1b" not in text


def test_a_number_that_json_has_not_is_not_written(tmp_path: Path) -> None:
    with ResultFile(tmp_path / "a.json") as target, pytest.raises(ValueError, match="JSON"):
        target.write(some([("home", 3, 1, float("nan"))]))
    assert not list(tmp_path.iterdir())


def test_a_stream_of_arrow_holds_what_a_parquet_file_does() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="an extra: install takifugu[tables]")
    with pyarrow.ipc.open_stream(arrow_stream(some())) as stream:
        found = stream.read_all()
    assert found.to_pydict()["state"] == list(LABELS) and found.num_columns == 4
    assert json.loads(found.schema.metadata[b"takifugu"])["cost"]["alone"] == 0.25


def test_a_file_that_cannot_be_written_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    for name in ("a.csv", "a.html"):
        with raises(InvalidFile, field="path"):
            some().to_csv(tmp_path / name) if name == "a.csv" else some().to_html(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_metadata_that_others_wrote_are_kept(tmp_path: Path) -> None:
    """Only what this program left behind for this very table is replaced."""
    path, beside = tmp_path / "a.csv", tmp_path / "a.csv-metadata.json"
    some().to_csv(path)
    about = json.loads(beside.read_text(encoding="utf-8"))
    path.unlink()
    others: tuple[Any, ...] = (
        {**about, "url": "b.csv"},
        {**about, "@context": ["http://example.org"]},
        {**about, "@context": []},
        {"url": "a.csv"},
        [],
        3,
    )
    for wrong in others:
        beside.write_text(json.dumps(wrong), encoding="utf-8")
        with raises(InvalidFile, field="path", reason="exists"):
            some().to_csv(path)
        assert json.loads(beside.read_text(encoding="utf-8")) == wrong and not path.exists()
    beside.write_text("no JSON", encoding="utf-8")
    with raises(InvalidFile, field="path", reason="exists"):
        some().to_csv(path)


def test_columns_of_text_say_that_formulas_are_marked(tmp_path: Path) -> None:
    made = some([("=1", 3, 1, 5.5)], columns=("=state", "estimate", "low", "high"))
    found = csv_metadata(made, "a.csv")["tableSchema"]["columns"]
    assert [FORMULAS in column["dc:description"] for column in found] == [True, False, False, False]
    assert found[0]["titles"] == "'=state" and all(one["dc:description"] for one in found)
    assert files_of(tmp_path / "A.CSV") == (tmp_path / "A.CSV", tmp_path / "A.CSV-metadata.json")
    assert files_of(tmp_path / "a.json") == (tmp_path / "a.json",)


def test_a_sheet_may_be_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openpyxl", reason="an extra: install takifugu[tables]")
    monkeypatch.setattr("takifugu.session.result_files.MAX_SHEET_ROWS", len(LABELS))
    some().to_excel(tmp_path / "a.xlsx")
    monkeypatch.setattr("takifugu.session.result_files.MAX_SHEET_ROWS", len(LABELS) - 1)
    with raises(InvalidFile, field="path", reason="rows"):
        some().to_excel(tmp_path / "b.xlsx")


# --- at the edges ---


# --- files ---


@pytest.mark.nightly
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


@pytest.mark.nightly
def test_what_is_not_written_leaves_nothing(tmp_path: Path) -> None:
    for name in ("a.csv", "a.json"):
        target = ResultFile(tmp_path / name)
        assert len(list(tmp_path.iterdir())) == (2 if name == "a.csv" else 1)
        assert (target.beside is None) == (name == "a.json")
        target.close()
        assert not list(tmp_path.iterdir())


@pytest.mark.nightly
def test_errors_name_the_option_that_named_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("mine")
    (tmp_path / "b.csv-metadata.json").write_text("mine")
    for name in ("a.csv", "b.csv", "c.txt"):
        with raises(InvalidFile, field="--out"):
            ResultFile(tmp_path / name, field="--out")


@pytest.mark.nightly
def test_metadata_are_text_that_people_read(tmp_path: Path) -> None:
    some([("東京\u202e", 3, 1, 5.5)], columns=("東\u202e京", *NAMES[1:])).to_csv(tmp_path / "a.csv")
    text = (tmp_path / "a.csv-metadata.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "@context"') and text.endswith("}\n") and not text.endswith("\n\n")
    assert "東\\u202e京" in text and "\u202e" not in text
    about = json.loads(text)
    assert about["@context"][1] == {"@language": "en"} and about["dc:date"].startswith("2020-01-01")


@pytest.mark.nightly
def test_a_table_as_csv_has_a_row_a_line() -> None:
    rows = [("=a", 1, None, 2), ("b", 2, 1.5, "x")]
    assert csv_text(("+k", "n", "x", "m"), rows) == "'+k,n,x,m\n'=a,1,,2\nb,2,1.5,x\n"


# --- sheets ---


def book_of(*rows: tuple[Any, ...], columns: tuple[str, ...] = NAMES) -> Any:
    openpyxl = pytest.importorskip("openpyxl", reason="an extra: install takifugu[tables]")
    made = replace(some(list(rows), columns), at=datetime(2021, 5, 6, 7, 8, 9, 123, tzinfo=UTC))
    return openpyxl.load_workbook(io.BytesIO(result_files._excel(made)))


@pytest.mark.nightly
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


# --- figures and tables ---


@pytest.mark.nightly
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
