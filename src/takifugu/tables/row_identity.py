"""Where the rows of a table are and what they hold, so that the same rows can be recognised.

Hashes of files are over protected bytes: all of it is compared under a key, and neither kept nor
shown as it is.
"""

from collections.abc import Iterator
from typing import Any

from takifugu._core.atomic import real_path
from takifugu.tables.backends.backend import COUNT, DATA, Kind
from takifugu.tables.backends.opened_files import file_hash
from takifugu.tables.engine import Engine
from takifugu.tables.sql_writer import DIALECTS, Dialect

MAX_COMPARED_FILES = 10_000  # of a pattern that are compared one by one, by where they are
MAX_HASHED_FILES = 256  # of these that are compared by what they hold
MAX_COMPARED_ROWS = 20_000_000  # of files and servers that are compared by content


def identities(engine: Engine, columns: tuple[str, ...]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Pairs of a kind of identity and its content: of paths, of bytes, of tables, of rows.

    ``columns`` are the protected columns that matter, each with identities of its own: two datasets
    may be about two columns of one file, but not about one of them twice. Rows are compared by
    entity and order, which are public, in any order and file format: no protected value is looked
    at before it is paid for.
    """
    source = engine.declaration.source
    identities_of_data: list[tuple[str, tuple[Any, ...]]] = []
    if source.table is not None:
        identities_of_data.append(("table", (source.url, source.path, source.table)))
    for place, path in enumerate(engine.files[:MAX_COMPARED_FILES]):
        whole = real_path(path)
        identities_of_data.append(("path", (str(whole), source.table)))
        if place < MAX_HASHED_FILES and source.table is None and whole.stat().st_size:
            identities_of_data.append(("bytes", (file_hash(whole),)))
    content = _content(engine)
    if content is not None:
        identities_of_data.append(("content", content))
    for column in columns:
        yield from ((kind, (*what, column)) for kind, what in identities_of_data)


def _content(engine: Engine) -> tuple[Any, ...] | None:
    """The number of rows and the sum of a hash of each; None where that is out of reach.

    Alike in every database, so that a table is recognised by whatever address, name or kind of
    source it is read. Equal sums for other rows are as unlikely as equal parts of MD5 for rows that
    nobody chose for that.
    """
    backend = engine._backend
    ((count,),) = backend.rows(COUNT)  # of all rows, whichever of them may be released from
    declaration, sql = engine.declaration, DIALECTS[backend.dialect]
    most = count if declaration.source.kind == "memory" else MAX_COMPARED_ROWS
    if not 0 < count <= most:
        return None
    columns = (declaration.entity, declaration.order.column)
    parts = " || chr(31) || ".join(_text(name, backend.kinds[name], sql) for name in columns)
    number = sql.number_of_digits.format(f"substr(md5({parts}), 1, 15)")  # 60 bits, never below 0
    exact = f"CAST({number} AS decimal(30, 0))"  # of 60 bits, so that their sum is exact too
    total = f"CAST(sum({exact}) AS {sql.types['text']})"
    found = backend.rows(f"SELECT {total} AS total FROM {DATA}")  # noqa: S608 - quoted
    return int(count), str(found[0][0])


def _text(column: str, kind: Kind, sql: Dialect) -> str:
    """A value as text, alike whatever its type is said to be: 1 and 1.0, a day and midnight."""
    name, text = sql.name(column), sql.types["text"]
    if kind in ("time", "zoned"):
        name = sql.microseconds.format(name)
    shown = f"CAST({name} AS {text})"
    if kind == "real":
        whole = f"{name} = floor({name}) AND abs({name}) < 1e15"
        shown = f"CASE WHEN {whole} THEN CAST(CAST({name} AS bigint) AS {text}) ELSE {shown} END"
    return f"coalesce({shown}, chr(30))"
