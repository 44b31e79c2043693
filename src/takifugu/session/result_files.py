"""Results as files: CSV with metadata beside it, JSON, Parquet, Excel, HTML.

A file is found to be writable before anything is charged, and appears complete or not at all. What
a number is about travels with it: in the file where its format has room for that, and for CSV in a
second file, named and laid out as the W3C's "Metadata Vocabulary for Tabular Data" asks, so that
programs that know it find the types of the columns there.

Results in a browser: a fragment for notebooks, and a page in one file to pass on.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from takifugu._core.atomic import PendingFile, unwritable
from takifugu._core.closing import Closing
from takifugu.declarations.table_errors import driver
from takifugu.errors import InvalidFile
from takifugu.reports.html_page import FactList, Page, PageTable, Part, Section, Verbatim
from takifugu.reports.plot_files import drawing
from takifugu.session.query_kinds import is_ranking
from takifugu.visible import FORMULA, csv_cell, four_digits, visible

if TYPE_CHECKING:
    from takifugu.session.release_result import Result

CSVW = "http://www.w3.org/ns/csvw"
METADATA_SUFFIX = "-metadata.json"  # at the end of the first file's name
MAX_CELL_LENGTH = 32_767  # letters that a cell of a spreadsheet may hold
MAX_SHEET_ROWS = 1_048_575  # below the names of the columns
KINDS: dict[str, str] = {"integer": "integer", "number": "number", "text": "string"}  # of CSVW
FORMULAS = (
    "Text that a spreadsheet would take for a formula (it begins with = + - @, a tab or a line"
    " break) has a ' in front."
)


class ResultFile(Closing):
    """A new file for a result, whose suffix says how it is written.

    Attributes:
        path: The file.
        beside: The metadata of a CSV file; None for others, which hold it themselves.
    """

    def __init__(self, path: Path, *, field: str = "path") -> None:
        self.path = path
        suffix = path.suffix.lower()
        if suffix not in WRITERS:
            raise InvalidFile(
                field,
                given=f"is {str(path)!r}",
                needed=f"end in {_or(tuple(WRITERS))}",
                reason="suffix",
            )
        if suffix in NEEDS:
            _modules(suffix)
        self._field = field
        self.beside = next(iter(files_of(path)[1:]), None)
        self._pending = PendingFile(path, field=field, refuse_existing=True)
        self._second: PendingFile | None = None
        if self.beside is not None:
            try:
                left = _left_behind(path, self.beside)
                self._second = PendingFile(self.beside, field=field, refuse_existing=not left)
            except BaseException:
                self._pending.discard()
                raise

    def write(self, result: "Result") -> None:
        """Write all of it, or raise an OSError and leave nothing."""
        content = WRITERS[self.path.suffix.lower()](result)
        self._pending.part.write_bytes(content)
        if self._second is None:
            self._pending.keep(fsync=True)
            return
        text = json.dumps(csv_metadata(result, self.path.name), ensure_ascii=False, indent=2)
        self._second.part.write_text(visible(text, keep="\n") + "\n", encoding="utf-8")
        self._second.keep(fsync=True)
        try:
            self._pending.keep(fsync=True)
        except BaseException:
            with suppress(OSError):
                self._second.path.unlink()
            raise

    def close(self) -> None:
        """Leave nothing of files that were not written."""
        self._pending.discard()
        if self._second is not None:
            self._second.discard()


def _left_behind(path: Path, beside: Path) -> bool:
    """Whether metadata are there without their table: a program was killed between the two."""
    if path.exists() or not beside.exists():
        return False
    try:
        about = json.loads(beside.read_text(encoding="utf-8"))
        return bool(about["url"] == path.name and about["@context"][0] == CSVW)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return False


def files_of(path: Path) -> tuple[Path, ...]:
    """The file of a result, and what is written beside it."""
    table = path.suffix.lower() == ".csv"
    return (path, path.with_name(path.name + METADATA_SUFFIX)) if table else (path,)


def write_result(result: "Result", path: Path, suffix: str) -> None:
    """Write a result to a new file that ends in ``suffix``."""
    if path.suffix.lower() != suffix:
        raise InvalidFile(
            "path", given=f"is {str(path)!r}", needed=f"end in {suffix}", reason="suffix"
        )
    with ResultFile(path) as target:
        try:
            target.write(result)
        except OSError as error:
            raise unwritable(path, error, field="path") from error


def column_kind(values: Sequence[Any]) -> str:
    """What a column holds: whole numbers, numbers or text; missing cells count as any."""
    known = [value for value in values if value is not None]
    if any(isinstance(value, str) for value in known):
        return "text"
    if any(isinstance(value, float) for value in known):
        return "number"
    return "integer" if known else "text"


def typed_columns(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """The columns of a table, each of one kind: text if it mixes text and numbers."""
    make: Mapping[str, Callable[[Any], Any]] = {
        "text": lambda value: value if isinstance(value, str) else _text(value),
        "number": float,
        "integer": lambda value: value,
    }
    found = {}
    for place, name in enumerate(columns):
        values = [row[place] for row in rows]
        one = make[column_kind(values)]
        found[name] = [None if value is None else one(value) for value in values]
    return found


def csv_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table as CSV: every column of one kind, and no text that is taken for a formula."""
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(map(csv_cell, columns))
    cells = zip(*typed_columns(columns, rows).values(), strict=True)
    lines.writerows(map(csv_cell, row) for row in cells)
    return written.getvalue()


def csv_metadata(result: "Result", name: str) -> dict[str, Any]:
    """What a CSV file holds, as the W3C's vocabulary for tabular data has it."""
    about = result.about()
    return {
        "@context": [CSVW, {"@language": "en"}],
        "url": name,
        "dc:title": result.title,
        "dc:description": about["guarantee"],
        "dc:date": about["at"],
        "tableSchema": {
            "columns": [
                {
                    "titles": csv_cell(column),
                    "datatype": KINDS[column_kind(result.column(column))],
                    "dc:description": _described(column, result),
                }
                for column in result.columns
            ]
        },
        "notes": [about],
    }


def _described(column: str, result: "Result") -> str:
    text = any(isinstance(value, str) for value in result.column(column))
    meaning = result.meaning(column)
    return f"{meaning} {FORMULAS}" if text else meaning


def _csv(result: "Result") -> bytes:
    return csv_text(result.columns, result.rows).encode()


def _json(result: "Result") -> bytes:
    text = json.dumps(result.document(), ensure_ascii=False, allow_nan=False, indent=2)
    return (visible(text, keep="\n") + "\n").encode()


def _html(result: "Result") -> bytes:
    return result.to_html().encode()


def _parquet(result: "Result") -> bytes:
    pyarrow, parquet = _modules(".parquet")
    written = io.BytesIO()
    parquet.write_table(_arrow_table(result, pyarrow), written)
    return written.getvalue()


def arrow_stream(result: "Result") -> bytes:
    """A result as a stream of Arrow's own format; its metadata are those of a Parquet file."""
    pyarrow, _ = _modules(".parquet")
    table, written = _arrow_table(result, pyarrow), io.BytesIO()
    with pyarrow.ipc.new_stream(written, table.schema) as stream:
        stream.write_table(table)
    return written.getvalue()


def _arrow_table(result: "Result", pyarrow: Any) -> Any:
    table = pyarrow.table(typed_columns(result.columns, result.rows))
    about = json.dumps(result.about(), ensure_ascii=False)
    return table.replace_schema_metadata({"takifugu": visible(about)})


def _excel(result: "Result") -> bytes:
    """Two sheets: the table, and what it is about. Text is text, whatever it begins with."""
    if len(result.rows) > MAX_SHEET_ROWS:
        raise InvalidFile(
            "path",
            given=f"would hold {len(result.rows):,} rows",
            needed=f"hold at most {MAX_SHEET_ROWS:,}, as spreadsheets do; write CSV or Parquet",
            reason="rows",
        )
    (openpyxl,) = _modules(".xlsx")
    book = openpyxl.Workbook()
    book.properties.title, book.properties.creator = visible(result.title), "takifugu"
    book.properties.created = _naive(result.at)  # when it was changed is written as it is saved
    sheet = book.active
    sheet.title = "result"
    table = typed_columns(result.columns, result.rows)
    _put(sheet, 1, result.columns, bold=True)
    for line, row in enumerate(zip(*table.values(), strict=True), 2):
        _put(sheet, line, row)
    sheet.freeze_panes = "A2"
    for place, values in enumerate(table.values()):
        shown = [result.columns[place], *map(_text, values[:200])]
        sheet.column_dimensions[openpyxl.utils.get_column_letter(place + 1)].width = min(
            max(map(len, shown)) + 2, 48
        )
    about = book.create_sheet("about")
    for line, pair in enumerate(result.facts().items(), 1):
        _put(about, line, pair)
        about.cell(line, 1).font = openpyxl.styles.Font(bold=True)
        about.cell(line, 2).alignment = openpyxl.styles.Alignment(wrap_text=True, vertical="top")
    about.column_dimensions["A"].width, about.column_dimensions["B"].width = 24, 100
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


def _put(sheet: Any, line: int, values: Sequence[Any], *, bold: bool = False) -> None:
    """A row of a sheet; text goes in as text, also if it looks like a formula or an error."""
    from openpyxl.styles import Font

    for place, value in enumerate(values, 1):
        cell = sheet.cell(line, place)
        if isinstance(value, str):
            text = visible(value, keep="\n")
            cell.value = text if len(text) <= MAX_CELL_LENGTH else f"{text[: MAX_CELL_LENGTH - 1]}…"
            cell.data_type = "s"
            cell.quotePrefix = bool(FORMULA.match(text))
        else:
            cell.value = value
        if bold:
            cell.font = Font(bold=True)


def _naive(at: datetime) -> datetime:
    """A time as a workbook has it: in UTC, without saying so."""
    return at.replace(tzinfo=None, microsecond=0)


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _or(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _modules(suffix: str) -> tuple[Any, ...]:
    """What writing such a file needs; an error that names the extra, before anything is paid."""
    package, *modules = NEEDS[suffix]
    with driver(package, purpose=f"a {suffix} file", extra="tables"):
        return tuple(import_module(module) for module in modules)


NEEDS = {
    ".parquet": ("pyarrow", "pyarrow", "pyarrow.parquet"),
    ".xlsx": ("openpyxl", "openpyxl"),
}
WRITERS: dict[str, Callable[["Result"], bytes]] = {
    ".csv": _csv,
    ".json": _json,
    ".parquet": _parquet,
    ".xlsx": _excel,
    ".html": _html,
}


INTERVAL = "a 95 % interval for the exact number"
SCROLLS = "max-width:100%;overflow-x:auto"  # a notebook has no style sheet of ours


def result_fragment(
    cells: Sequence[Sequence[str]], lines: Sequence[str], facts: Mapping[str, str]
) -> str:
    """A table of text below its names, lines under it, and facts that unfold."""
    names, *rows = cells
    head = "".join(f'<th scope="col">{_escaped(name)}</th>' for name in names)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    below = "<br>\n".join(map(_escaped, lines))
    terms = "\n".join(
        f"<dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd>" for name, value in facts.items()
    )
    return (
        f'<div style="{SCROLLS}"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>'
        f"</table></div>\n<p>{below}</p>\n<details><summary>guarantee and provenance</summary>"
        f"<dl>\n{terms}\n</dl></details>"
    )


def result_page(result: "Result") -> Page:
    """A page: the figure and the table, what the guarantee is, where the result came from."""
    facts = result.facts()
    guarantee, title = facts.pop("guarantee"), _capital(facts["query"])
    table = PageTable(
        result.columns,
        [[_shown(value) for value in row] for row in result.rows],
        caption=f"{len(result.rows):,} rows",
    )
    parts: list[Part] = [table]
    if not is_ranking(result.query["query"]["name"]):  # a ranking is drawn as the table that it is
        kind = "the levels it lies between" if "low level" in result.columns else INTERVAL
        caption = f"Each point is an estimate, with {kind}."
        figure = result.figure(titled=False)
        parts = [drawing(figure, name="result", caption=caption, alt=_alternative(result)), table]
    lead = (
        f"Released {result.at:%Y-%m-%d %H:%M} UTC, with noise that protects the people in the"
        f" data.\n\n{_capital(result.price)}.\n\n{_capital(result.cost.odds_words)}."
    )
    return Page(
        title,
        lead,
        [
            Section("Result", parts),
            Section("What is guaranteed", [Verbatim(guarantee)]),
            Section("Where it came from", [FactList(facts)]),
        ],
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _alternative(result: "Result") -> str:
    """What the figure shows, for those who cannot see it."""
    known = [row for row in result.rows if row]
    if not known:
        return f"{result.title}: no rows."
    first = ", ".join(
        f"{name} {_shown(value)}" for name, value in zip(result.columns, known[0], strict=True)
    )
    return (
        f"{result.title}: {len(known):,} rows, all of them in the table below; the first: {first}."
    )


def _shown(value: object) -> str | int | float | None:
    if value is None or isinstance(value, str | int):
        return value
    return float(value) if isinstance(value, float) else four_digits(float(str(value)))


def _escaped(text: str) -> str:
    return escape(visible(text, keep="\n"))
