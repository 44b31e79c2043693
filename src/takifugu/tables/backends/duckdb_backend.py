"""DuckDB, inside this process: CSV and Parquet files, and tables of DuckDB files.

Once it is open the database is shut: it reads the declared files and no others, writes to its
spill folder only, loads no extensions, and takes no further settings.
"""

import contextlib
import os
import shutil
import stat
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from takifugu.declarations.columns import NO_ORDER, Order
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import (
    DatabaseFailed,
    InvalidDeclaration,
    driver,
    without_values,
)
from takifugu.tables.backends.backend import (
    DATA,
    Backend,
    CachedFact,
    DataFingerprint,
    Kind,
    declared_kinds,
    quoted,
)
from takifugu.tables.backends.csv_reading import csv_cut_rows, csv_source, literal
from takifugu.tables.backends.opened_files import (
    PATTERN,
    OpenedFiles,
    duckdb_name,
    misread,
    same_file,
    source_files,
)
from takifugu.tables.sql_writer import DIALECTS
from takifugu.visible import visible

WHOLE_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
WIDE_TYPES = ("UBIGINT", "HUGEINT", "UHUGEINT")
BOOLEAN = "BOOLEAN"  # read as the texts true and false
CLOSED_SETTINGS = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,  # a variable of the caller is not a table
    "python_scan_all_frames": False,
}
TYPES = DIALECTS["duckdb"].types


class DuckDBBackend(Backend):
    """One database in memory, which is shut once its rows are there.

    Each query has a cursor of its own.
    """

    dialect = "duckdb"
    finds_for_each_row = True  # of a column with a dictionary, DuckDB looks up its words only
    _unparsed: str | None = None  # SQL that counts the rows whose time is not in the format

    def __init__(
        self, declaration: Declaration, *, threads: int | None = None, memory: str | None = None
    ) -> None:
        with driver("duckdb", purpose=f"a {declaration.source.kind} source"):
            import duckdb  # noqa: F401 - found missing here, and said so
        self._running = set[Any]()
        self._place = visible(declaration.source.place)
        spill = Spill()
        self._forget = weakref.finalize(self, spill.remove)
        own = {"secret_directory", "extension_directory", "home_directory"}  # not the user's
        config: dict[str, Any] = {"temp_directory": spill.path, **CLOSED_SETTINGS}
        config |= {name: f"{spill.path}/{name}" for name in own}
        config |= {} if threads is None else {"threads": threads}
        config |= {} if memory is None else {"memory_limit": memory}
        advice = "see that it is a whole file of the declared kind"
        without_values(
            lambda: self._open(declaration, config), self._place, doing="opened", advice=advice
        )

    def _open(self, declaration: Declaration, config: dict[str, Any]) -> None:
        import duckdb

        self._connection = duckdb.connect(":memory:", config=config)
        try:
            self._run("SET GLOBAL TimeZone = 'UTC'")
            self._load(declaration)
        except BaseException:
            self.close()
            raise

    @abstractmethod
    def _load(self, declaration: Declaration) -> None:
        """Make the one relation that queries read, say its `kinds`, and shut the database."""

    def _shut(self, within_reach: Sequence[str]) -> None:
        """Leave these paths within reach, and nothing else; for good."""
        reach = dict.fromkeys(within_reach)
        self._run(f"SET allowed_paths = [{', '.join(map(literal, reach))}]")
        self._run("SET enable_external_access = false")
        self._run("SET lock_configuration = true")

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            self._running.add(cursor)
            try:
                return cursor.execute(sql).fetchall()
            finally:
                self._running.discard(cursor)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query that returns aggregates."""
        advice = "see that every value of a declared column is of its kind"
        return without_values(lambda: self._run(sql), self._place, doing="queried", advice=advice)

    def unparsed_times(self) -> int:
        """How many rows have a time that is not in the declared format."""
        if self._unparsed is None:
            return 0
        ((found,),) = self.rows(self._unparsed)
        return int(found)

    def interrupt(self) -> None:
        """Give up the queries that are running now."""
        for cursor in tuple(self._running):
            cursor.interrupt()

    def close(self) -> None:
        """Close the database and remove what it may have spilled."""
        self._connection.close()
        self._forget()


class FileBackend(DuckDBBackend):
    """A view of files, or of one table of a DuckDB file."""

    def __init__(
        self, declaration: Declaration, *, threads: int | None = None, memory: str | None = None
    ) -> None:
        self._declaration = declaration
        paths = source_files(declaration)
        logs = _logs(paths) if declaration.source.kind == "duckdb" else ()
        self._files = OpenedFiles.of(paths, absent=logs)
        self.files = self._files.paths
        super().__init__(declaration, threads=threads, memory=memory)

    def _load(self, declaration: Declaration) -> None:
        by_path = declaration.source.kind != "duckdb"
        names = self._names() if by_path else []
        if not by_path:
            (path,) = self._files.paths
            self._run(f"ATTACH {literal(str(path))} AS source (TYPE duckdb, READ_ONLY)")
        self._shut([*names, *map(str, self._files.paths)] if names else [])
        source = self._source(declaration, names)
        columns_of_source = found_kinds(self._run(f"DESCRIBE FROM {source}"), declaration.order)
        self.kinds = declared_kinds(
            declaration, {name: column.kind for name, column in columns_of_source.items()}
        )
        columns = selected(columns_of_source, self.kinds)
        self._run(f"CREATE VIEW {DATA} AS SELECT {columns} FROM {source}")  # noqa: S608 - quoted
        self._unparsed = unparsed_sql(declaration.order, source)

    def _names(self) -> list[str]:
        """The files, each by a name that DuckDB expands to that file and no other."""
        names = [duckdb_name(path) for path in self._files.paths]
        for name, path in zip(names, self._files.paths, strict=True):
            if any(mark in name for mark in PATTERN):
                matched = [file for (file,) in self._run(f"SELECT file FROM glob({literal(name)})")]  # noqa: S608
                if not same_file(matched, path):
                    raise misread(path)
        return names

    def _source(self, declaration: Declaration, names: Sequence[str]) -> str:
        """The source as it stands in FROM. The folders of a file say nothing about its rows."""
        match declaration.source.kind:
            case "csv":
                return csv_source(declaration, names, self._files.paths, self._run)
            case "parquet":
                files = ", ".join(map(literal, names))
                return f"read_parquet([{files}], hive_partitioning=false)"
            case _:
                return self._table(str(declaration.source.table))

    def _table(self, given: str) -> str:
        """A table whose rows lie in the file: no view, no macro, no generated columns."""
        schema, _, name = given.rpartition(".")
        schema = schema or "main"
        at = f"lower(schema_name) = lower({literal(schema)}) AND database_name = 'source'"
        views = f"SELECT 1 FROM duckdb_views() WHERE {at} AND lower(view_name)"  # noqa: S608
        tables = f"SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE {at}"  # noqa: S608
        if self._run(f"{views} = lower({literal(name)})"):
            raise _unfit(given, "is a view, which may read other files", "be a table", "view")
        spellings = self._run(f"{tables} AND lower(table_name) = lower({literal(name)})")
        if len(spellings) != 1:
            raise _unfit(
                given,
                "is not a table of that file",
                "be one, as 'stays' or 'schema.stays'",
                "missing",
            )
        ((schema, name, made),) = spellings
        if "GENERATED ALWAYS AS" in str(made):
            raise _unfit(
                given,
                "has generated columns",
                "hold stored values only: copy it",
                "generated columns",
            )
        return f"source.{quoted(schema)}.{quoted(name)}"

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query that returns aggregates; refused once a file has changed."""
        self.refuse_change()
        return super().rows(sql)

    def refuse_cut_rows(self) -> None:
        """Raise if rows of a CSV file have too many or too few fields: with how many they are."""
        if self._declaration.source.kind != "csv":
            return
        csv_cut_rows(self._declaration, self._names(), self._files.paths, super().rows)

    def refuse_change(self) -> None:
        """Raise if a file is not as it was when it was opened."""
        self._files.refuse_change()

    def fingerprint(self) -> DataFingerprint:
        """Every byte of the files."""
        return self._files.fingerprint()

    def note(self, *what: str | None) -> CachedFact | None:
        """Kept for large files."""
        return self._files.note(*what)


@dataclass(frozen=True)
class FoundColumn:
    """A column of a source.

    Attributes:
        found: Its type in DuckDB.
        kind: The kind that it is read as.
        format: Of an order that is stored as text: how its times are written.
    """

    found: str
    kind: Kind
    format: str | None = None


def found_kinds(described: Iterable[Sequence[Any]], order: Order) -> dict[str, FoundColumn]:
    """The type of every column that DuckDB describes, and the kind that it is read as."""
    columns = {str(name): str(found) for name, found, *_ in described}
    read = {name: FoundColumn(found, kind_of(found)) for name, found in columns.items()}
    if order.format is None or order.column not in read:
        return read
    if read[order.column].kind != "text" or read[order.column].found == BOOLEAN:
        raise InvalidDeclaration(
            "order, format",
            given=f"is given, and `{visible(order.column)}` does not hold text",
            needed="be left out: it says how times are written that are stored as text",
            reason="superfluous",
        )
    zoned = "%z" in order.format.lower()
    return read | {order.column: FoundColumn("VARCHAR", "zoned" if zoned else "time", order.format)}


def selected(found: Mapping[str, FoundColumn], names: Iterable[str]) -> str:
    """The columns called ``names``, as queries see them."""
    return ", ".join(_column(n, None if n == NO_ORDER else found[n]) for n in names)


def kind_of(kind: str) -> Kind:
    """What a type of DuckDB is read as."""
    if kind in WHOLE_TYPES or kind in WIDE_TYPES:
        return "whole"
    if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        return "real"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return "zoned"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return "time"
    if kind in ("VARCHAR", "UUID", BOOLEAN) or kind.startswith("ENUM"):
        return "text"
    return "unknown"


def _column(name: str, column: FoundColumn | None) -> str:
    """A column as queries see it. Texts are equal if all their letters are.

    A table may say otherwise (COLLATE NOCASE). A group of texts then goes by the name of any one of
    them: one replaced cell could rename it, and move all of its rows.
    """
    if column is None:
        return f"CAST(0 AS BIGINT) AS {quoted(name)}"
    found, kind = column.found, column.kind
    if column.format is not None:  # raises at a row that is not so
        return f"strptime({quoted(name)}, {literal(column.format)}) AS {quoted(name)}"
    as_is = kind in ("unknown", "zoned") or found in (*WHOLE_TYPES, TYPES[kind])
    value = quoted(name) if as_is else f"CAST({quoted(name)} AS {TYPES[kind]})"
    binary = f" COLLATE {quoted('binary')}" if kind == "text" else ""
    return f"{value}{binary} AS {quoted(name)}"


def unparsed_sql(order: Order, source: str) -> str | None:
    """SQL that counts the rows whose time is not in the declared format; None if none is."""
    if order.format is None:
        return None
    name = quoted(order.column)
    lost = f"{name} IS NOT NULL AND try_strptime({name}, {literal(order.format)}) IS NULL"
    return f"SELECT count(*) FROM {source} WHERE {lost}"  # noqa: S608 - quoted


def _logs(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Where DuckDB keeps changes that are not in a file yet: it would read them with the file."""
    logs = tuple(path.with_name(f"{path.name}.wal") for path in paths)
    if len(paths) != 1:
        raise InvalidDeclaration(
            "source, path", given=f"names {len(paths)} files", needed="name one database"
        )
    if any(os.path.lexists(log) for log in logs):
        raise InvalidDeclaration(
            "source, path",
            given="has changes beside it that are not in it yet (.wal)",
            needed="hold them all: open it with DuckDB, run CHECKPOINT, and close it",
            reason="write-ahead log",
        )
    return logs


def _unfit(table: str, given: str, needed: str, reason: str) -> InvalidDeclaration:
    return InvalidDeclaration(
        "source, table", given=f"{visible(table)} {given}", needed=needed, reason=reason
    )


try:
    import fcntl
except ImportError:  # not a Unix: folders are removed at the end, and not looked for
    fcntl = None  # type: ignore[assignment]

PREFIX = "takifugu-spill-"
MAX_TRIES = 10


class Spill:
    """Where the database may put rows that do not fit in memory: a folder of this user alone.

    It is removed when the engine is closed and when the process ends. A process that is killed
    leaves it behind, with plain rows in it; the next one that opens an engine removes it. Which
    folders are in use is shown by a lock on the folder itself, which the system releases however a
    process ends.
    """

    def __init__(self) -> None:
        remove_stale()
        for _ in range(MAX_TRIES):
            try:
                path = tempfile.mkdtemp(prefix=PREFIX)
                held = os.open(path, os.O_RDONLY)
            except FileNotFoundError:
                continue  # taken for a stale one before it was locked
            except OSError as error:
                raise _no_room(error) from None
            if _locked(held) is not False and _is_at(held, path):
                self.path, self._held, self._process = path, held, os.getpid()
                return
            os.close(held)
        raise _no_room(None)

    def remove(self) -> None:
        """Remove the folder with all that is in it; a second time, or in a fork, do nothing."""
        held, self._held = self._held, -1
        if held < 0 or os.getpid() != self._process:
            return
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(held)


def remove_stale() -> int:
    """Remove this user's folders whose process is gone; how many there were."""
    removed = 0
    if fcntl is None:
        return removed
    with contextlib.suppress(OSError):
        for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError):
                removed += _removed_if_stale(path)
    return removed


def _removed_if_stale(path: Path) -> bool:
    facts = path.lstat()
    ours = facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
    if not stat.S_ISDIR(facts.st_mode) or not ours:
        return False
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        if not _locked(held):
            return False  # in use, or not known
        shutil.rmtree(path, ignore_errors=True)
        return True
    finally:
        os.close(held)


def _locked(held: int) -> bool | None:
    """Lock a folder; False if another has, None where folders cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_at(held: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(held), os.stat(path))
    except OSError:
        return False


def _no_room(error: OSError | None) -> DatabaseFailed:
    reason = (error.strerror if error is not None else None) or "it could not be locked"
    return DatabaseFailed(
        "a temporary folder",
        doing="made",
        trouble=reason.lower(),
        advice="see that TMPDIR names a folder on a local disk that can be written to",
        reason="spill folder",
    )
