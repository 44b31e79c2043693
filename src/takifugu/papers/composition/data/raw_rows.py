"""How files are read by DuckDB, and which column is to blame when they cannot be."""

import csv
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from takifugu.errors import InvalidFile
from takifugu.papers.composition.data.source_files import (
    Column,
    ReadFile,
    RequiredFile,
    inspect_file,
)

if TYPE_CHECKING:
    import duckdb

CHECK_IN = "'%a %b %d %H:%M:%S +0000 %Y'"
WORDS = {
    "text": "text in every row",
    "whole": "whole numbers",
    "number": "numbers",
    "time": "times, as 2016-11-13 02:18:00.01",
    "check-in time": "times, as Tue Apr 03 18:00:06 +0000 2012",
}
LONGEST_LINE = 2**24  # bytes; a night of sleep stages is one field


def typed(needed: RequiredFile, seen: Sequence[ReadFile]) -> str:
    """SQL for the rows of files: the columns that are read, each of its kind, and ``line``."""
    for one in seen:
        _header(needed, one)
    columns = [
        f"{_value(column)} AS {quoted(column.name)}" for column in needed.columns if column.kind
    ]
    return f"SELECT row_number() OVER () AS line, {', '.join(columns)} FROM {_raw(needed, seen)}"  # noqa: S608 - quoted


def read_rows(needed: RequiredFile, paths: Sequence[Path]) -> list[tuple[Any, ...]]:
    """The rows of small files: the columns that are read, in the order of ``needed``."""
    import duckdb

    seen = [inspect_file(needed, path) for path in paths]
    names = ", ".join(quoted(column.name) for column in needed.columns if column.kind)
    try:
        with duckdb.connect(":memory:") as connection:
            sql = f"SELECT {names} FROM ({typed(needed, seen)}) ORDER BY line"  # noqa: S608 - quoted
            return connection.execute(sql).fetchall()
    except duckdb.Error as error:
        refuse_misfits([(needed, seen)], error)


def refuse_misfits(
    files: Sequence[tuple[RequiredFile, Sequence[ReadFile]]], error: "duckdb.Error"
) -> NoReturn:
    """Raise an error that names the column and file that do not fit; it shows no value."""
    names = ", ".join(one.path.name for _, several in files for one in several)
    ours = re.search(r"takifugu: `(.*?)` (.*?); it must (.*)", str(error))
    if ours:
        raise InvalidFile(f"{names}, column {ours[1]}", given=ours[2], needed=ours[3]) from None
    for needed, several in files:
        for one in several:
            for column in (column for column in needed.columns if column.kind):
                _refuse_misfit(needed, one, column)
    raise InvalidFile(
        names,
        given=f"could not be made into a table ({type(error).__name__})",
        needed="be whole, and the folder for tables have room",
    ) from None


def _refuse_misfit(needed: RequiredFile, one: ReadFile, column: Column) -> None:
    import duckdb

    sql = f"SELECT count(*) FROM {_raw(needed, [one])} WHERE {_misfit(column)}"  # noqa: S608 - quoted
    try:
        with duckdb.connect(":memory:") as connection:
            ((count,),) = connection.execute(sql).fetchall()
    except duckdb.Error as trouble:
        line = re.search(r"Line: (\d+)", str(trouble))
        raise InvalidFile(
            str(one.path),
            given=f"cannot be read at line {line[1]}" if line else "cannot be read",
            needed=f"hold the columns {needed.shape} in every line",
        ) from None
    if count:
        raise InvalidFile(
            f"{one.path}, column {column.name}",
            given=f"holds something else, or nothing, in {count:,} rows",
            needed=f"hold {WORDS[str(column.kind)]}",
        )


def _header(needed: RequiredFile, one: ReadFile) -> list[str]:
    """The names of the columns of a file; an error if one that is needed is not there."""
    opened = gzip.open if one.path.suffix == ".gz" else open
    with opened(one.path, "rt", encoding=one.encoding, newline="") as stream:
        first = stream.readline(LONGEST_LINE)
    if needed.layout == "tab":
        given = len(first.rstrip("\r\n").split("\t"))
        if given != len(needed.columns):
            raise InvalidFile(
                str(one.path),
                given=f"has {given} columns",
                needed=f"have {len(needed.columns)}: {needed.shape}",
            )
        return [column.name for column in needed.columns]
    names = next(csv.reader([first]), [])
    names[:1] = [name.removeprefix("\ufeff") for name in names[:1]]
    for column in needed.columns:
        if column.name not in names:
            raise InvalidFile(
                f"{one.path}, column {column.name}",
                given="is missing",
                needed=f"be there: the columns are {needed.shape}",
            )
    return names


def _raw(needed: RequiredFile, seen: Sequence[ReadFile]) -> str:
    """SQL for the rows of files as they stand there, every column as text."""
    paths = ", ".join(text(str(one.path)) for one in seen)
    names = ", ".join(f"{text(name)}: 'VARCHAR'" for name in _header(needed, seen[0]))
    marks = (
        "header=false, delim='\t', quote='', escape=''"
        if needed.layout == "tab"
        else "header=true, delim=',', quote='\"', escape='\"'"
    )
    return (
        f"read_csv([{paths}], auto_detect=false, {marks}, encoding={text(seen[0].encoding)},"
        f" max_line_size={LONGEST_LINE}, columns={{{names}}})"
    )


def _value(column: Column) -> str:
    """The value of a column, of its kind; a row without one is an error, except for labels."""
    name = quoted(column.name)
    if column.kind == "label":
        return name
    return f"CASE WHEN {name} IS NULL THEN error('missing') ELSE {_cast(column)} END"


def _misfit(column: Column) -> str:
    """A condition on rows whose value is not of the kind that the column must hold."""
    if column.kind == "label":
        return "false"
    return f"{_cast(column, lenient=True)} IS NULL"


def _cast(column: Column, *, lenient: bool = False) -> str:
    name = quoted(column.name)
    if column.kind == "text":
        return name
    if column.kind == "check-in time":
        return f"{'try_' if lenient else ''}strptime({name}, {CHECK_IN})"
    kinds = {"whole": "BIGINT", "number": "DOUBLE", "time": "TIMESTAMP"}
    return f"{'TRY_' if lenient else ''}CAST({name} AS {kinds[str(column.kind)]})"


def quoted(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL takes it."""
    return "'" + value.replace("'", "''") + "'"
