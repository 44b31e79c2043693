"""Whether the data fits its declaration, and by what the same rows can be recognised.

No protected value is revealed. Hashes of files are over protected bytes: all of them are compared
under a key, and neither kept nor shown as they are.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu._core.atomic import real_path
from takifugu.declarations.columns import Amount, FittedLabels
from takifugu.declarations.table_errors import DatabaseFailed, InvalidDeclaration, run_isolated
from takifugu.errors import TakifuguError
from takifugu.tables.backends.backend import COUNT, DATA, DataFingerprint, Kind
from takifugu.tables.backends.csv_reading import has_utf8_letters
from takifugu.tables.backends.opened_files import file_hash
from takifugu.tables.engine import Engine
from takifugu.tables.sql_writer import DIALECTS, Dialect
from takifugu.visible import visible


@dataclass(frozen=True)
class DataCheck:
    """The public facts of a table that fits its declaration.

    Attributes:
        rows: How many rows there are.
        entities: How many entities they belong to.
        longest: The number of rows of the entity with most of them.
        first: The first place in the order; None if there are no rows, or no order.
        last: The last one.
        keys: For each column of labels, how many keys it has.
        data: The identity of the data that was checked.
    """

    rows: int
    entities: int
    longest: int
    first: datetime | float | None
    last: datetime | float | None
    keys: dict[str, int]
    data: DataFingerprint


def check(engine: Engine) -> DataCheck:
    """Read the whole table, and raise the first thing in it that the declaration rules out.

    That is: rows without an entity or a place, ties in the order, and values outside a list, or
    missing, where they are to be refused. Counts of protected values are looked at for nothing
    else and go nowhere.
    """
    declaration = engine.declaration
    _refuse_misread(engine)
    engine.refuse_disorder()
    run_isolated(lambda: _refuse_strays(engine), _broke(engine), stop=engine.interrupt)
    lengths = engine.lengths()
    ordered = lengths.rows and not declaration.order.absent
    first, last = engine.span() if ordered else (None, None)
    described = (*declaration.protected, *declaration.public)
    labels = [c for c in described if not isinstance(c, Amount | FittedLabels)]
    return DataCheck(
        rows=lengths.rows,
        entities=int(lengths.entities.sum()),
        longest=lengths.longest,
        first=first,
        last=last,
        keys={column.column: len(engine.keys(column.column)) for column in labels},
        data=engine.fingerprint(),
    )


def _refuse_misread(engine: Engine) -> None:
    """Raise if a file is not written as declared: of times, with how many rows that are."""
    source, order = engine.declaration.source, engine.declaration.order
    if source.encoding == "latin-1" and any(map(has_utf8_letters, engine.files)):
        raise InvalidDeclaration(
            "source, encoding",
            given="is 'latin-1', and a file is UTF-8: its letters would be read as others",
            needed="be 'utf-8'",
            reason="encoding",
        )
    engine.refuse_cut_rows()
    if order.format is None:
        return
    unparsed = engine.unparsed_times()
    if unparsed:
        rows = "1 row" if unparsed == 1 else f"{unparsed:,} rows"
        raise InvalidDeclaration(
            "order, format",
            given=f"is {order.format!r}, and {rows} of `{visible(order.column)}` are written"
            " otherwise",
            needed="be that of all rows: mend those rows, or the format",
            reason="unparsed",
        )


def _refuse_strays(engine: Engine) -> None:
    declaration = engine.declaration
    for column in (*declaration.protected, *declaration.public):
        if isinstance(column, Amount):
            if column.missing == "refuse":
                engine.sums(column.column)
        elif column.outside == "refuse":
            engine.histogram([column.column])


def _broke(engine: Engine) -> Callable[[str], TakifuguError]:
    return lambda kind: DatabaseFailed(
        visible(engine.declaration.source.place),
        doing="checked",
        trouble=kind,
        advice="check it again, or report it",
    )


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
