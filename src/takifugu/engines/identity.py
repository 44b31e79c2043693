"""Where the rows of a table are and what they hold, so that the same rows can be recognised.

Hashes of files are over protected bytes: all of it is compared under a key, and neither kept nor
shown as it is.
"""

from collections.abc import Iterator
from typing import Any

from takifugu.engines.backend import COUNT, DATA, Kind, quoted
from takifugu.engines.engine import Engine
from takifugu.engines.hashes import file_hash
from takifugu.whole import real_path

MOST_FILES = 256  # of a pattern that are compared one by one
MOST_ROWS = 20_000_000  # that are compared by content; beyond it only their files are


def identities(engine: Engine, about: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Pairs of a kind of identity and its content: of paths, of bytes, of tables, of rows.

    ``about`` is the protected column that matters: two datasets may be about two columns of one
    file. Rows are compared by entity and order, which are public, in any order and file format: no
    protected value is looked at before it is paid for.
    """
    source = engine.declaration.source
    if source.table is not None:
        yield "table", (source.url, source.path, source.table, about)
    for path in engine.files[:MOST_FILES]:
        whole = real_path(path)
        yield "path", (str(whole), source.table, about)
        if source.table is None and whole.stat().st_size:
            yield "bytes", (file_hash(whole), about)
    content = _content(engine, about)
    if content is not None:
        yield "content", content


def _content(engine: Engine, about: str) -> tuple[Any, ...] | None:
    """The number of rows and the sum of a hash of each; None where that is out of reach.

    Only DuckDB has the function that this needs; equal sums for other rows are as unlikely as
    equal halves of MD5 for rows that nobody chose for that.
    """
    backend = engine._backend
    if backend.dialect != "duckdb":
        return None
    ((count,),) = backend.rows(COUNT)  # of all rows, whichever of them may be released from
    if not 0 < count <= MOST_ROWS:
        return None
    declaration = engine.declaration
    columns = (declaration.entity, declaration.order.column)
    parts = " || chr(31) || ".join(_text(name, backend.kinds[name]) for name in columns)
    found = backend.rows(f"SELECT sum(md5_number_lower({parts})) FROM {DATA}")  # noqa: S608 - quoted
    return int(count), str(found[0][0]), about


def _text(column: str, kind: Kind) -> str:
    """A value as text, alike whatever the file says of its type: 1 and 1.0, a day and midnight."""
    name = quoted(column)
    if kind in ("whole", "real"):
        name = f"CAST({name} AS DOUBLE)"
    elif kind in ("time", "zoned"):
        name = f"epoch_us(CAST({name} AS TIMESTAMP))"
    return f"coalesce(CAST({name} AS VARCHAR), chr(0))"
