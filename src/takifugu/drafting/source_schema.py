"""The columns of a table that nobody has declared yet: their names and types, and no value.

A draft of a declaration is made from these. What is public by every declaration may be read once it
is known which column it is: how many rows there are, and the columns of the entity and of the
order. Categories count as labels only where they are part of a type: an enum of DuckDB or of
Polars, or booleans. Those of a pandas categorical or of an Arrow dictionary may be whatever occurs
in the data.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from takifugu.declarations.columns import SourceKind
from takifugu.declarations.table_errors import InvalidDeclaration, driver, without_values
from takifugu.tables.backends.backend import Kind, quoted
from takifugu.tables.backends.csv_reading import (
    STRICT,
    Run,
    csv_structure,
    dialect,
    literal,
    refuse_cut_rows,
)
from takifugu.tables.backends.duckdb_backend import BOOLEAN, CLOSED_SETTINGS, kind_of
from takifugu.tables.backends.frames import Frame, is_frame
from takifugu.tables.backends.opened_files import compression, duckdb_name, found_files
from takifugu.visible import visible

SUFFIXES: dict[str, SourceKind] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".csv.gz": "csv", ".tsv": "csv",
    ".tsv.gz": "csv", ".txt": "csv", ".txt.gz": "csv", ".duckdb": "duckdb", ".ddb": "duckdb",
}  # fmt: skip
DECIMAL = r"^[+-]?\d*,(\d{1,2}|\d{4,})$|^[+-]?0,"  # a comma that marks no thousands
DATA = "columns_to_declare"
TRUTHS = ("false", "true")  # the labels of a column of booleans, as a database writes them
ENUMS = (b"_PL_ENUM_VALUES2", b"_PL_ENUM_VALUES")  # where Polars writes an enum in an Arrow schema


@dataclass(frozen=True)
class SchemaColumn:
    """A column by its name and type.

    Attributes:
        name: Its name.
        kind: What it holds, as an engine reads it.
        type: The type, as the file or the frame has it.
        categories: The labels of an enum type, or of booleans; None for any other.
        derived: Whether the type has categories that may come from the data.
    """

    name: str
    kind: Kind
    type: str
    categories: tuple[str, ...] | None = None
    derived: bool = False


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a table, and where it is.

    Attributes:
        kind: The kind of its source.
        columns: The columns.
        path: The file or pattern, as it was given; None for a frame.
        table: Of a DuckDB file: the table.
        reading: Of a CSV file: how it is written, with "?" for what two readings are possible of.
        note: What to know of how it is written; empty if nothing.
    """

    kind: SourceKind
    columns: tuple[SchemaColumn, ...]
    path: str | None = None
    table: str | None = None
    reading: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    _files: tuple[Path, ...] = ()
    _frame: Frame | None = field(default=None, repr=False)

    def column(self, name: str) -> SchemaColumn:
        """The column called ``name``."""
        for column in self.columns:
            if column.name == name:
                return column
        raise InvalidDeclaration(
            visible(name),
            given="is not a column of it",
            needed=f"be one of {', '.join(visible(column.name) for column in self.columns)}",
            reason="unknown column",
        )

    @property
    def place(self) -> str:
        """The table, for messages."""
        return visible(self.path or "the table in memory")

    @contextmanager
    def public(self, columns: Sequence[str]) -> Iterator[Run]:
        """SQL about ``columns`` of `DATA`, which are those of the entity and of the order."""
        chosen = list(dict.fromkeys(columns))
        with _database() as connection:
            if self._frame is not None:
                connection.register(
                    "frame", _arrow_columns(self._frame, chosen or [self.columns[0].name])
                )
                source = "frame"
            else:
                source = _source(connection, self.kind, self._files, self.table, self.reading)
            listed = ", ".join(map(quoted, chosen)) or "1 AS one"
            connection.execute(f"CREATE VIEW {DATA} AS SELECT {listed} FROM {source}")  # noqa: S608 - quoted

            def run(sql: str) -> list[tuple[Any, ...]]:
                found: list[tuple[Any, ...]] = without_values(
                    lambda: connection.execute(sql).fetchall(),
                    self.place,
                    doing="read",
                    advice="see that it is a whole file, each row with as many fields as the first",
                )
                return found

            yield run


def schema_of(
    source: str | Path | Frame,
    *,
    table: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    folder: Path | None = None,
) -> Schema:
    """The columns of a file, a pattern of files, a table of a DuckDB file, or a frame."""
    if is_frame(source):
        return Schema("memory", _frame_columns(source), _frame=source)  # type: ignore[arg-type]
    if not isinstance(source, str | Path):
        raise InvalidDeclaration(
            "source",
            given=f"is a {type(source).__module__.split('.')[0]} {type(source).__name__}",
            needed="be a path, a pandas or Polars DataFrame, or a PyArrow Table",
        )
    path = os.fspath(source)
    kind = source_kind(path)
    if (kind == "duckdb") != (table is not None):
        raise InvalidDeclaration(
            "source, table",
            given="is missing" if table is None else "is given",
            needed="name a table of the DuckDB file" if table is None else "be left out",
        )
    files = found_files(folder or Path.cwd(), path)
    reading: dict[str, str] = {}
    note = ""
    if kind == "csv":
        structures = [csv_structure(file, separator=separator, encoding=encoding) for file in files]
        if len(set(structures)) > 1:
            raise InvalidDeclaration(
                "source, path",
                given="names files that are written differently, or have other columns",
                needed="name files that begin with the same line",
                reason="header",
            )
        reading = {"separator": structures[0].separator, "encoding": structures[0].encoding}
        if structures[0].encoding != "utf-8":
            note = "not UTF-8: read as latin-1 (Western European); see that its letters are right"
        columns, decimal = _csv_columns(path, files, reading, structures[0].header)
        reading |= {"decimal": decimal} if decimal is not None else {}
    else:
        with _database() as connection:
            columns = without_values(
                lambda: _described(connection, _source(connection, kind, files, table, {})),
                visible(path),
                doing="opened",
                advice="see that it is a whole file of that kind",
            )
        if kind == "parquet":
            columns = _with_enums(columns, files[0])
    return Schema(kind, columns, path, table, reading, note, files)


def source_kind(path: str) -> SourceKind:
    """The kind of a file, by its name."""
    for end, kind in SUFFIXES.items():
        if path.lower().endswith(end):
            return kind
    raise InvalidDeclaration(
        "source",
        given=f"is {path!r:.120}",
        needed=f"end in {', '.join(SUFFIXES)}; save any other table as Parquet or CSV first",
        reason="kind",
    )


def is_data_file(path: str | Path) -> bool:
    """Whether a path names rows, by its name: not a declaration."""
    return any(str(path).lower().endswith(end) for end in SUFFIXES)


@contextmanager
def _database() -> Iterator[Any]:
    with driver("duckdb", purpose="a draft"):
        import duckdb
    connection = duckdb.connect(":memory:", config=dict[str, Any](CLOSED_SETTINGS))
    try:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection
    finally:
        connection.close()


def _source(
    connection: Any,
    kind: str,
    files: tuple[Path, ...],
    table: str | None,
    reading: Mapping[str, str],
) -> str:
    """The table as it stands in FROM; every column of a CSV file as text."""
    names = ", ".join(literal(duckdb_name(file)) for file in files)
    if kind == "csv":
        return f"read_csv([{names}], {_options(files, reading)}, all_varchar=true)"
    if kind == "parquet":
        return f"read_parquet([{names}], hive_partitioning=false)"
    connection.execute(f"ATTACH {literal(str(files[0]))} AS source (TYPE duckdb, READ_ONLY)")
    schema, _, name = str(table).rpartition(".")
    return f"source.{quoted(schema or 'main')}.{quoted(name)}"


def _options(files: tuple[Path, ...], reading: Mapping[str, str]) -> str:
    settled = {key: value for key, value in reading.items() if value != "?"}
    return f"{dialect(settled)}, {STRICT}, compression={literal(compression(files))}"


def _described(connection: Any, source: str) -> tuple[SchemaColumn, ...]:
    described = connection.execute(f"DESCRIBE FROM {source}").fetchall()
    columns = []
    for name, type_, *_ in described:
        categories = None
        if str(type_).startswith("ENUM("):
            listed = connection.execute(
                f"SELECT enum_range(NULL::{type_})"  # a type as DuckDB wrote it
            ).fetchall()
            categories = tuple(listed[0][0])
        elif str(type_) == BOOLEAN:
            categories = TRUTHS
        columns.append(SchemaColumn(str(name), kind_of(str(type_)), str(type_)[:40], categories))
    return tuple(columns)


def _csv_columns(
    path: str, files: tuple[Path, ...], reading: Mapping[str, str], header: tuple[str, ...]
) -> tuple[tuple[SchemaColumn, ...], str | None]:
    """The columns of a CSV file, and its mark of decimals if that is not a point."""
    names = ", ".join(literal(duckdb_name(file)) for file in files)

    def described(decimal: str) -> dict[str, str]:
        options = _options(files, dict(reading) | {"decimal": decimal})
        found = connection.execute(f"DESCRIBE FROM read_csv([{names}], {options})").fetchall()
        return {str(name): str(type_) for name, type_, *_ in found}

    def work() -> tuple[dict[str, str], str | None]:
        with_point = described(".")
        if list(with_point) != list(header):
            raise InvalidDeclaration(
                "source, path",
                given=f"{visible(path)} has columns whose names differ in case alone",
                needed="have names that differ otherwise",
                reason="header",
            )
        if reading["separator"] == ",":
            return with_point, None
        with_comma = described(",")
        changed = [name for name in header if with_point[name] != with_comma[name]]
        commas = [name for name in changed if with_comma[name] == "DOUBLE"]
        if not commas:
            return with_point, None
        points = [name for name in changed if name not in commas and with_point[name] == "DOUBLE"]
        return with_comma, "?" if points or not _decimal(connection, names, commas) else ","

    def _decimal(connection: Any, names: str, columns: Sequence[str]) -> bool:
        """Whether commas cannot all be marks of thousands: 1,5 or 0,125 and not 1,250."""
        text = f"read_csv([{names}], {_options(files, reading)}, all_varchar=true)"
        sure = " AND ".join(
            f"bool_or(regexp_matches({quoted(name)}, {literal(DECIMAL)}))" for name in columns
        )
        found = connection.execute(f"SELECT {sure} FROM {text}").fetchall()  # noqa: S608 - quoted
        return bool(found == [(True,)])

    def known() -> tuple[dict[str, str], str | None]:
        columns = [f"column {place}" for place in range(len(header))]
        refuse_cut_rows(names, _options(files, reading), columns, run)
        return work()

    def run(sql: str) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = connection.execute(sql).fetchall()
        return found

    with _database() as connection:
        types, decimal = without_values(
            known,
            visible(path),
            doing="read",
            advice="see that every row has as many fields as the first line",
        )
    return tuple(_csv_column(name, types[name]) for name in header), decimal


def _csv_column(name: str, type_: str) -> SchemaColumn:
    """A column of a CSV file: text, where DuckDB takes its words for something else.

    Yes and no are read as they are written, not as booleans.
    """
    kind = kind_of(type_)
    return SchemaColumn(name, "text" if kind == "unknown" else kind, type_)


def _with_enums(columns: tuple[SchemaColumn, ...], file: Path) -> tuple[SchemaColumn, ...]:
    """Enums that Polars wrote into a Parquet file, where PyArrow is there to find them."""
    try:
        import pyarrow.parquet as parquet
    except ModuleNotFoundError:
        return columns
    with suppress(Exception):  # whatever it does not know has no enums
        schema = parquet.read_schema(file)
        return tuple(_arrow_column(schema.field(c.name), c) for c in columns)
    return columns


def _arrow_column(found: Any, column: SchemaColumn) -> SchemaColumn:
    metadata = found.metadata or {}
    for key in ENUMS:
        if key in metadata:
            labels = _polars_enum(metadata[key])
            return SchemaColumn(column.name, "text", "enum", labels)
    derived = str(found.type).startswith("dictionary")
    return SchemaColumn(column.name, column.kind, column.type, column.categories, derived)


def _polars_enum(value: bytes) -> tuple[str, ...]:
    """The labels of an enum: each with its length in letters before it, as ``4;home``."""
    text, labels = value.decode(), []
    while text:
        length, mark, rest = text.partition(";")
        if not mark or not length.isdigit():
            raise ValueError("not an enum of Polars")
        size = int(length)
        label = rest.encode()[:size].decode()
        labels.append(label)
        text = rest[len(label) :]
    return tuple(labels)


def _frame_columns(frame: Any) -> tuple[SchemaColumn, ...]:
    """The columns of a frame by their types alone."""
    package = type(frame).__module__.partition(".")[0]
    names = list(frame.column_names if package == "pyarrow" else frame.columns)
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise InvalidDeclaration(
            "source",
            given="has columns that share a name, or are called by something else than text",
            needed="have a name for each; in pandas, frame.columns = [str(c) for c in …]",
            reason="header",
        )
    if package == "pyarrow":
        pairs = [(str(f.name), str(f.type)) for f in frame.schema]
        return tuple(_arrow_column(f, _typed(*p)) for f, p in zip(frame.schema, pairs, strict=True))
    if package == "polars":
        return tuple(_polars_column(name, type_) for name, type_ in frame.schema.items())
    return tuple(_typed(str(name), str(type_)) for name, type_ in frame.dtypes.items())


def _polars_column(name: str, type_: Any) -> SchemaColumn:
    text = str(type_)
    if text.startswith("Enum"):
        return SchemaColumn(name, "text", "enum", tuple(type_.categories))
    return _typed(name, text)


def _typed(name: str, type_: str) -> SchemaColumn:
    """A column of a frame, by the name of its type in pandas, Polars or Arrow."""
    low = type_.lower()
    kind: Kind = "unknown"
    if low.startswith(("int", "uint")):
        kind = "whole"
    elif low.startswith(("float", "double", "decimal", "halffloat")):
        kind = "real"
    elif low.startswith(("datetime", "timestamp", "date")):
        zoned = "tz=" in low or "time_zone='" in low or ("64[" in low and "," in low)
        kind = "zoned" if zoned else "time"
    elif low.startswith(("str", "string", "large_string", "object", "utf8", "category", "cat")):
        kind = "text"
    elif low.startswith("dictionary"):
        kind = "text" if "string" in low or "utf8" in low else "unknown"
    elif low.startswith("bool"):
        return SchemaColumn(name, "text", BOOLEAN, TRUTHS)
    derived = low.startswith(("cat", "dictionary"))
    return SchemaColumn(name, kind, type_[:40], derived=derived)


def _arrow_columns(frame: Any, columns: Sequence[str]) -> Any:
    with driver("pyarrow", purpose="a table in memory", extra="tables"):
        import pyarrow
    if isinstance(frame, pyarrow.Table):
        return frame.select(columns)
    if hasattr(frame, "to_arrow"):
        return frame.select(columns).to_arrow()
    return pyarrow.Table.from_pandas(frame[list(columns)], preserve_index=False)


# --- how times are written that are stored as text ---
#
# ``3/4/2012`` is a day in April or in March. A day above 12 somewhere in the column of the order,
# which is public, settles it; if there is none both are possible, and somebody has to say which.

DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y", "%d-%m-%Y",
    "%m-%d-%Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%m.%d.%y", "%d-%m-%y", "%m-%d-%y", "%Y%m%d",
    "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%y",
)  # fmt: skip
CLOCKS = (
    "", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", "T%H:%M", "T%H:%M:%S", "T%H:%M:%S.%f", " %I:%M %p",
    " %I:%M:%S %p", ", %H:%M", ", %H:%M:%S", " %H:%M:%S%z", " %H:%M:%S %z", "T%H:%M:%S%z",
    "T%H:%M:%S.%f%z", " %H:%M%z",
)  # fmt: skip
WHOLE_FORMATS = ("%a %b %d %H:%M:%S %z %Y", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z")
FORMATS = (*(date + clock for date in DATES for clock in CLOCKS), *WHOLE_FORMATS)
ISO = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?([+-]\d{2}(:?\d{2})?|Z)?$"


def is_iso(run: Run, table: str, column: str) -> bool:
    """Whether every time of a text column is written as ISO 8601 does."""
    name = quoted(column)
    counted = run(
        f"SELECT count({name}) = count(*) FILTER (regexp_matches({name}, {literal(ISO)}))"  # noqa: S608 - quoted
        f" AND count({name}) > 0 FROM {table}"
    )
    return counted == [(True,)]


def possible_formats(run: Run, table: str, column: str) -> tuple[str, ...]:
    """The formats that every value of a text column is written in; most often one, or none.

    The first value rules most of them out. A year has four digits where the format says so, which
    DuckDB does not insist on.
    """
    name = quoted(column)
    first = f"(SELECT {name} FROM {table} WHERE {name} IS NOT NULL LIMIT 1)"  # noqa: S608 - quoted
    likely = _kept(run, first, name, FORMATS)
    return _kept(run, table, name, likely) if likely else ()


def _kept(run: Run, table: str, name: str, formats: tuple[str, ...]) -> tuple[str, ...]:
    parts = []
    for form in formats:
        time = f"try_strptime({name}, {literal(form)})"
        # a year of four digits, no more letters than the format writes: no other reading
        parts.append(f"count(*) FILTER (year({time}) BETWEEN 1000 AND 9999)")
    ((there, *counts),) = run(f"SELECT count({name}), {', '.join(parts)} FROM {table}")  # noqa: S608
    return tuple(
        form for form, count in zip(formats, counts, strict=True) if there and count == there
    )
