"""Open a declared table with a database that can read it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from takifugu.declarations.columns import SourceKind
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.declaration_files import read_declaration
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.tables.backends.backend import Backend
from takifugu.tables.engine import Engine

if TYPE_CHECKING:
    from takifugu.tables.backends.frames import Frame

BackendName = Literal["duckdb", "postgres", "spark"]


def open_engine(
    declaration: Declaration | str | Path,
    *,
    backend: BackendName | None = None,
    session: Any = None,
    threads: int | None = None,
    memory: str | None = None,
    frame: "Frame | None" = None,
) -> Engine:
    """Open a declared table, to be used in a ``with`` statement.

    Args:
        declaration: The declaration, or the file that holds it.
        backend: What reads it. Files and frames are read by DuckDB, Parquet files also by
            ``"spark"``; tables are read by the database that has them.
        session: A Spark session to work beside; one is started if none is given.
        threads: How many threads DuckDB may use; by default as many as there are cores.
        memory: How much memory DuckDB may use, as ``"2GB"``, before it spills to a temporary
            folder of its own.
        frame: The rows of a source of kind ``memory``; see `takifugu.drafting.table`.
    """
    if not isinstance(declaration, Declaration):
        declaration = read_declaration(declaration)
    kind = declaration.source.kind
    readers = {name: read for (read_kind, name), read in READERS.items() if read_kind == kind}
    chosen = backend or next(iter(readers))
    if chosen not in readers:
        raise InvalidQuery(
            "backend",
            given=f"is {chosen!r}",
            needed=f"be {' or '.join(readers)} for a {kind} source",
        )
    if (kind == "memory") != (frame is not None):
        rows = f"the rows of {declaration.source.table!r} are in a program"
        raise InvalidDeclaration(
            "source, kind",
            given=f"is 'memory': {rows}" if frame is None else f"is {kind!r}",
            needed="be 'memory' for a frame, and opened there: takifugu.table(frame, …).open()",
        )
    opened = readers[chosen](declaration, OpenOptions(session, threads, memory, frame))
    try:
        return Engine(declaration, opened)
    except BaseException:
        opened.close()
        raise


@dataclass(frozen=True)
class OpenOptions:
    """The options of `open_engine`, for those databases that have them."""

    session: Any
    threads: int | None
    memory: str | None
    frame: Any


def _files(declaration: Declaration, options: OpenOptions) -> Backend:
    from takifugu.tables.backends.duckdb_backend import FileBackend

    return FileBackend(declaration, threads=options.threads, memory=options.memory)


def _frame(declaration: Declaration, options: OpenOptions) -> Backend:
    from takifugu.tables.backends.frames import FrameBackend

    return FrameBackend(declaration, options.frame, threads=options.threads, memory=options.memory)


def _postgres(declaration: Declaration, options: OpenOptions) -> Backend:  # noqa: ARG001
    from takifugu.tables.backends.postgres import PostgresBackend

    return PostgresBackend(declaration)


def _spark(declaration: Declaration, options: OpenOptions) -> Backend:
    from takifugu.tables.backends.spark import SparkBackend

    return SparkBackend(declaration, session=options.session)


Reader = Callable[[Declaration, OpenOptions], Backend]
READERS: dict[tuple[SourceKind, BackendName], Reader] = {  # the first of a kind is its default
    ("csv", "duckdb"): _files,
    ("parquet", "duckdb"): _files,
    ("parquet", "spark"): _spark,
    ("duckdb", "duckdb"): _files,
    ("memory", "duckdb"): _frame,
    ("postgres", "postgres"): _postgres,
    ("spark", "spark"): _spark,
}
