"""How a CSV file is written, and the file for DuckDB to read as a declaration says.

Encoding, separator and header are found from the bytes of the file, and nothing but the structure
is told: no message repeats a line. A first line that may be a row of data is no header, since its
names would be values. Where two readings are possible the file is refused, or the point is left
open.

DuckDB's own guess depends on the first rows. It may also take days for months: a file of 3/4/2012
is read one way, and the other way once it has a row of 4/13/2012. So a declaration can say how a
file is written, and one that does not say it is refused where both would do.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

from takifugu.declarations.columns import SEPARATORS, Amount, Category
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import DatabaseFailed, InvalidDeclaration
from takifugu.errors import TakifuguError
from takifugu.tables.backends.backend import declared_kinds, quoted
from takifugu.tables.backends.opened_files import compression
from takifugu.visible import visible

CHUNK = 2**20
MAX_SNIFFED_ROWS = 1_000  # rows that a separator is judged by
MAX_LISTED_COLUMNS = 10  # columns that a message lists
MAX_FIELD_SIZE = 2**20
_CONTROL = bytes(range(0x80, 0xA0))  # control characters in latin-1; letters in windows-1252
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)*|[.,]\d+)([eE][+-]?\d+)?%?")
_CLOCK = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}(:\d{2}.*)?")
_IDENTITY = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
SEPARATOR_NAMES = {"\t": "tab"}
NUMBERED = r"^\s*(\d{1,2})[-/. ](\d{1,2})[-/. ]\d"  # a time that begins with a day or a month
Run = Callable[[str], list[tuple[Any, ...]]]
STRICT = (
    "quote='\"', escape='\"', header=true, skip=0, comment='', strict_mode=true,"
    " null_padding=false, hive_partitioning=false"
)


@dataclass(frozen=True)
class CsvStructure:
    """How a CSV file is written.

    Attributes:
        encoding: ``utf-8`` or ``latin-1``.
        separator: What stands between the fields.
        header: The names of the columns.
    """

    encoding: str
    separator: str
    header: tuple[str, ...]


def csv_structure(
    path: Path, *, separator: str | None = None, encoding: str | None = None
) -> CsvStructure:
    """How the file at ``path`` is written, as far as it is not given."""
    encoding = encoding or found_encoding(path)
    try:
        with _text(path, encoding) as stream:
            lines = list(islice(_lines(stream), MAX_SNIFFED_ROWS))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None
    if not lines:
        raise _refused(path, "is empty", "have a line of column names and rows", "empty")
    separator = separator or _separator(path, lines)
    rows = _rows(lines, separator)
    if rows is None or len(rows[0]) < 2:
        raise _refused(
            path,
            f"has no columns with the separator {shown_separator(separator)}",
            "have two at least: name the separator (--separator)",
            "separator",
        )
    header, *others = rows
    _refuse_missing_header(path, header, others)
    return CsvStructure(encoding, separator, tuple(header))


def header_of(path: Path, encoding: str, separator: str) -> tuple[str, ...]:
    """The first line of a file, as names of columns."""
    try:
        with _text(path, encoding) as stream:
            return tuple(next(_reader(_lines(stream), separator), ()))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise _unreadable(path, error) from None


def shown_separator(separator: str) -> str:
    """A separator as people read it."""
    return SEPARATOR_NAMES.get(separator, f"'{separator}'")


def has_utf8_letters(path: Path) -> bool:
    """Whether a file is UTF-8 and has letters that are other ones in latin-1."""
    return found_encoding(path) == "utf-8" and any(not part.isascii() for part in _chunks(path))


def found_encoding(path: Path) -> str:
    """UTF-8 if every byte of the file is, else latin-1; what DuckDB cannot read is refused."""
    head = next(_chunks(path), b"")
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in head[:1000]:
        raise _convert(path, "UTF-16")
    try:
        for _ in codecs.iterdecode(_chunks(path), "utf-8"):
            pass
    except UnicodeDecodeError:
        if any(len(part.translate(None, _CONTROL)) < len(part) for part in _chunks(path)):
            raise _convert(path, "WINDOWS-1252") from None
        return "latin-1"
    return "utf-8"


def _chunks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked, some at a time."""
    try:
        with _opened(path) as stream:
            while chunk := stream.read(CHUNK):
                yield chunk
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def _text(path: Path, encoding: str) -> IO[str]:
    name = "utf-8-sig" if encoding == "utf-8" else encoding
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=name, newline="")
    return path.open(encoding=name, newline="")


def _lines(stream: IO[str]) -> Iterator[str]:
    """The lines of a file, each with its end; one that is too long is the last."""
    while line := stream.readline(MAX_FIELD_SIZE):
        yield line


def _reader(lines: Iterator[str], separator: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=separator, strict=True)


def _separator(path: Path, lines: Sequence[str]) -> str:
    """The one separator that gives every row the same number of fields, the most of them."""
    widths: dict[str, int] = {}
    for mark in SEPARATORS:
        rows = _rows(lines, mark)
        if rows is not None and len(rows[0]) > 1:
            widths[mark] = len(rows[0])
    most = [mark for mark, width in widths.items() if width == max(widths.values())]
    if len(most) == 1:
        return most[0]
    candidates = " and ".join(map(shown_separator, most))
    raise _refused(
        path,
        f"could be separated by {candidates}"
        if most
        else "has rows of different numbers of fields",
        "have one separator, the same number of fields in each row; name it (--separator)",
        "separator",
    )


def _rows(lines: Sequence[str], separator: str) -> list[list[str]] | None:
    """The rows, if all of them have as many fields; a last one that is cut does not count."""
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in _reader(iter(lines), separator) if row)
    except csv.Error:
        if len(lines) < MAX_SNIFFED_ROWS:
            return None
    if len(lines) == MAX_SNIFFED_ROWS and len(rows) > 1 and len(rows[-1]) != len(rows[0]):
        rows.pop()
    same = rows and all(len(row) == len(rows[0]) for row in rows)
    return rows if same else None


def _refuse_missing_header(path: Path, header: list[str], rows: list[list[str]]) -> None:
    """Raise if the first line may be a row: its fields would be taken for names, and shown."""
    below = [{row[place] for row in rows} for place in range(len(header))]
    looks = [
        not name.strip() or _is_value(name.strip()) or (name in below[place] and bool(rows))
        for place, name in enumerate(header)
    ]
    if looks[0] and not header[0].strip() and not any(looks[1:]):
        raise _refused(
            path,
            "has no name for column 1, as a file that pandas wrote with the index of a frame",
            "name every column: write the frame again with `to_csv(index=False)`, after"
            " `reset_index(drop=True)` if its index is none of the data; or give column 1 a name",
            "header",
        )
    repeated = [name in header[:place] for place, name in enumerate(header)]
    if any(looks) or any(repeated):
        places = [str(k) for k, bad in enumerate(zip(looks, repeated, strict=True), 1) if any(bad)]
        raise _refused(
            path,
            "has no line of column names, or one with an empty or a repeated name"
            f" (see column {', '.join(places[:MAX_LISTED_COLUMNS])}"
            f"{', …' * (len(places) > MAX_LISTED_COLUMNS)})",
            "begin with the names of its columns: write them as the first line, as 'user,at,place'",
            "header",
        )


def _is_value(name: str) -> bool:
    """Whether a text is a number, a time or an identifier, not the name of a column."""
    patterns = (_NUMBER, _CLOCK, _IDENTITY)
    if any(pattern.fullmatch(name) for pattern in patterns):
        return True
    try:
        datetime.fromisoformat(name)
    except ValueError:
        return False
    return True


def _convert(path: Path, encoding: str) -> InvalidDeclaration:
    return _refused(
        path,
        f"is not UTF-8 text, by its bytes {encoding}",
        f"be UTF-8 or latin-1: convert it, as `iconv -f {encoding} -t UTF-8 OLD.csv > NEW.csv`",
        "encoding",
    )


def _refused(path: Path, given: str, needed: str, reason: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        "source, path", given=f"{visible(path.name)} {given}", needed=needed, reason=reason
    )


def _unreadable(path: Path, error: Exception) -> DatabaseFailed | InvalidDeclaration:
    if isinstance(error, UnicodeDecodeError):
        return _refused(
            path,
            "is not text in the declared encoding",
            "be in it; `takifugu dataset new` finds out which it is",
            "encoding",
        )
    return DatabaseFailed(
        visible(str(path)),
        doing="read",
        trouble=(getattr(error, "strerror", None) or "it is not a complete file").lower(),
        advice="see that it is a whole file that you may read",
    )


# --- the file as a declaration says that it is written ---


def csv_source(
    declaration: Declaration, names: Sequence[str], paths: tuple[Path, ...], run: Run
) -> str:
    """The files as they stand in FROM; ``names`` are what DuckDB calls them."""
    files = ", ".join(map(literal, names))
    packed = f"compression={literal(compression(paths))}"
    if not declaration.source.reading and declaration.order.format is None:
        return _as_duckdb_finds_it(declaration, files, packed, run)
    options = f"{dialect(declaration.source.reading)}, {packed}, {STRICT}"
    columns = _named(declaration, _header(declaration, paths))
    try:
        return _as_declared(declaration, files, options, columns, run)
    except TakifuguError:
        raise
    except Exception:  # noqa: BLE001, S110 - its message may hold values; it is raised again below
        pass
    refuse_cut_rows(files, options, columns, run)
    return _as_declared(declaration, files, options, columns, run)


def _as_declared(
    declaration: Declaration, files: str, options: str, columns: Sequence[str], run: Run
) -> str:
    """As the declaration says that it is written."""
    kinds = dict.fromkeys(columns, "VARCHAR") | _pinned(declaration)
    exactly = f"read_csv([{files}], {options}, auto_detect=false, columns="
    _refuse_two_readings(declaration, f"{exactly}{_struct(kinds)})", run, said=True)
    free = _free(declaration)
    if free:  # numbers, and times as ISO writes them: what DuckDB takes them for
        listed = ", ".join(map(literal, columns))
        settled = _struct({name: kind for name, kind in kinds.items() if name not in free})
        described = run(
            f"DESCRIBE FROM read_csv([{files}], {options}, names=[{listed}], types={settled})"
        )
        kinds |= {str(name): str(kind) for name, kind, *_ in described if name in free}
    return f"{exactly}{_struct(kinds)})"


def csv_cut_rows(
    declaration: Declaration, names: Sequence[str], paths: tuple[Path, ...], run: Run
) -> None:
    """Raise if rows have too many or too few fields, where it is said how the file is written."""
    reading = declaration.source.reading
    if not reading and declaration.order.format is None:
        return
    options = f"{dialect(reading)}, compression={literal(compression(paths))}, {STRICT}"
    columns = _named(declaration, _header(declaration, paths))
    refuse_cut_rows(", ".join(map(literal, names)), options, columns, run)


def refuse_cut_rows(files: str, options: str, columns: Sequence[str], run: Run) -> None:
    """Raise if rows have too many or too few fields: how many, and the line of the first."""
    texts = _struct(dict.fromkeys(columns, "VARCHAR"))
    read = f"read_csv([{files}], {options}, auto_detect=false, columns={texts}, store_rejects=true)"
    ((rows, line),) = run(
        f"SELECT count(COLUMNS(*)) FROM {read};"  # noqa: S608 - quoted
        " SELECT count(DISTINCT (file_id, line)), min(line) FROM reject_errors"
    )
    if rows:
        many = "1 row" if rows == 1 else f"{rows:,} rows, the first"
        raise InvalidDeclaration(
            "source, path",
            given=f"has {many} on line {line}, with other fields than the first line has",
            needed="have as many in each row, those with a separator or a quote in them in double"
            " quotes; mend those rows, or name the separator",
            reason="fields",
        )


def _struct(kinds: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{literal(name)}: {literal(kind)}' for name, kind in kinds.items())}}}"


def dialect(reading: Mapping[str, str]) -> str:
    """How a file is written, as options of ``read_csv``."""
    separator, encoding = reading.get("separator", ","), reading.get("encoding", "utf-8")
    decimal = reading.get("decimal", ".")
    return (
        f"delim={literal(separator)}, encoding={literal(encoding)},"
        f" decimal_separator={literal(decimal)}"
    )


def literal(value: str) -> str:
    """A text as SQL takes it."""
    return "'" + value.replace("'", "''") + "'"


def _as_duckdb_finds_it(declaration: Declaration, files: str, packed: str, run: Run) -> str:
    """As DuckDB finds it, of a declaration that says nothing."""
    texts = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in texts_of(declaration))
    how = f"header=true, hive_partitioning=false, {packed}"
    header = run(f"DESCRIBE FROM read_csv([{files}], {how}, all_varchar=true)")
    declared_kinds(declaration, {str(name): "text" for name, *_ in header})
    text = f"read_csv([{files}], {how}, all_varchar=true)"
    _refuse_two_readings(declaration, text, run, said=False)
    return f"read_csv([{files}], {how}, types={{{texts}}})"


def texts_of(declaration: Declaration) -> list[str]:
    """The columns of a CSV file that are text whatever they look like."""
    described = (*declaration.protected, *declaration.public)
    labels = [column for column in described if isinstance(column, Category)]
    return [declaration.entity] + [
        c.column
        for c in labels
        if c.values is None or any(isinstance(raw, str) for raw in c.codes())
    ]


def _pinned(declaration: Declaration) -> dict[str, str]:
    """The type of every column that a declaration settles."""
    described = (*declaration.protected, *declaration.public)
    types = {c.column: "DOUBLE" if isinstance(c, Amount) else "BIGINT" for c in described}
    return types | dict.fromkeys(texts_of(declaration), "VARCHAR")


def _free(declaration: Declaration) -> list[str]:
    """The columns whose type is found: the order, unless its format is said, and ties."""
    order = declaration.order
    first = [] if order.format is not None else [order.column]
    settled = _pinned(declaration)
    return [name for name in (*first, *order.ties) if name not in settled]


def _header(declaration: Declaration, paths: tuple[Path, ...]) -> tuple[str, ...]:
    """The columns of the files, which must be alike: DuckDB would match them by position."""
    reading = declaration.source.reading
    separator, encoding = reading.get("separator", ","), reading.get("encoding", "utf-8")
    header, *others = (header_of(path, encoding, separator) for path in paths)
    if any(other != header for other in others):
        raise InvalidDeclaration(
            "source, path",
            given="names files with different columns, or in another order",
            needed="name files that begin with the same line",
            reason="header",
        )
    if len(header) < 2:
        raise InvalidDeclaration(
            "source, separator",
            given=f"is {shown_separator(separator)}, which no first line has",
            needed="be what stands between the columns: one of ',', ';', '|' and '\\t'",
            reason="separator",
        )
    declared_kinds(declaration, dict.fromkeys(header, "text"))
    for name in declaration.columns:
        if header.count(name) > 1:
            raise InvalidDeclaration(
                name, given="is the name of several columns", needed="be the name of one"
            )
    return header


def _named(declaration: Declaration, header: tuple[str, ...]) -> list[str]:
    """Names for the columns: the declared ones their own, the others any, since none is read."""
    taken = {name.lower() for name in declaration.columns}
    names = []
    for place, name in enumerate(header):
        other = f"undeclared {place}"
        while other in taken:
            other += " "
        names.append(name if name in declaration.columns else other)
    return names


def _refuse_two_readings(declaration: Declaration, text: str, run: Run, *, said: bool) -> None:
    """Raise if times begin with a day or a month and nothing settles which.

    ``text`` is the file with every column as text. Where the declaration says how the file is
    written (``said``), it has to say this too.
    """
    order = declaration.order
    if order.kind != "time" or order.format is not None:
        return
    name = quoted(order.column)
    numbers = f"regexp_extract({name}, {literal(NUMBERED)}"
    first, second = (f"TRY_CAST({numbers}, {k}) AS int)" for k in (1, 2))
    begins = f"SELECT {first} IS NOT NULL FROM {text} WHERE {name} IS NOT NULL LIMIT 1"  # noqa: S608 - quoted
    if run(begins) != [(True,)]:
        return
    if not said:
        ((settled,),) = run(f"SELECT bool_or({first} > 12 OR {second} > 12) FROM {text}")  # noqa: S608
        if settled:
            return
    raise InvalidDeclaration(
        "order, format",
        given=f"is missing, and the times of `{visible(order.column)}` begin with a day or a month",
        needed="say which, as format = '%d/%m/%Y %H:%M' or '%m/%d/%Y %H:%M'",
        reason="ambiguous",
    )
