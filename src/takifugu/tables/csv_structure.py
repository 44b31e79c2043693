"""How a CSV file is written: its encoding, separator, header and decimal mark.

All of it is found from the bytes of the file, and nothing but the structure is told: no message
repeats a line. A first line that may be a row of data is no header, since its names would be
values. Where two readings are possible the file is refused, or the point is left open.
"""

import codecs
import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import IO

from takifugu.declarations.columns import SEPARATORS
from takifugu.declarations.table_errors import DatabaseFailed, InvalidDeclaration
from takifugu.visible import visible

CHUNK = 2**20
LINES = 1_000  # rows that a separator is judged by
MOST_PLACES = 10  # columns that a message lists
LONGEST_FIELD = 2**20
_CONTROL = bytes(range(0x80, 0xA0))  # control characters in latin-1; letters in windows-1252
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)*|[.,]\d+)([eE][+-]?\d+)?%?")
_CLOCK = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d{1,2}:\d{2}(:\d{2}.*)?")
_IDENTITY = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
SHOWN = {"\t": "tab"}


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
            lines = list(islice(_lines(stream), LINES))
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
    return SHOWN.get(separator, f"'{separator}'")


def has_utf8_letters(path: Path) -> bool:
    """Whether a file is UTF-8 and has letters that are other ones in latin-1."""
    try:
        if found_encoding(path) != "utf-8":
            return False
        with _opened(path) as stream:
            while chunk := stream.read(CHUNK):
                if not chunk.isascii():
                    return True
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    return False


def found_encoding(path: Path) -> str:
    """UTF-8 if every byte of the file is, else latin-1; what DuckDB cannot read is refused."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    utf8, control, first = True, False, True
    try:
        with _opened(path) as stream:
            while chunk := stream.read(CHUNK):
                if first and (chunk[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in chunk[:1000]):
                    raise _convert(path, "UTF-16")
                first = False
                control = control or len(chunk.translate(None, _CONTROL)) < len(chunk)
                utf8 = utf8 and _decodes(decoder, chunk)
        utf8 = utf8 and _decodes(decoder, b"", final=True)
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    if utf8:
        return "utf-8"
    if control:
        raise _convert(path, "WINDOWS-1252")
    return "latin-1"


def _decodes(decoder: codecs.IncrementalDecoder, chunk: bytes, *, final: bool = False) -> bool:
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError:
        return False
    return True


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")  # type: ignore[return-value]


def _text(path: Path, encoding: str) -> IO[str]:
    name = "utf-8-sig" if encoding == "utf-8" else encoding
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding=name, newline="")
    return path.open(encoding=name, newline="")


def _lines(stream: IO[str]) -> Iterator[str]:
    """The lines of a file, each with its end; one that is too long is the last."""
    while line := stream.readline(LONGEST_FIELD):
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
    found = " and ".join(map(shown_separator, most))
    raise _refused(
        path,
        f"could be separated by {found}" if most else "has rows of different numbers of fields",
        "have one separator, the same number of fields in each row; name it (--separator)",
        "separator",
    )


def _rows(lines: Sequence[str], separator: str) -> list[list[str]] | None:
    """The rows, if all of them have as many fields; a last one that is cut does not count."""
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in _reader(iter(lines), separator) if row)
    except csv.Error:
        if len(lines) < LINES:
            return None
    if len(lines) == LINES and len(rows) > 1 and len(rows[-1]) != len(rows[0]):
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
            f" (see column {', '.join(places[:MOST_PLACES])}{', …' * (len(places) > MOST_PLACES)})",
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
