"""Open a declared table with a database that can read it."""

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
BACKENDS: dict[SourceKind, tuple[BackendName, ...]] = {  # the first is the default
    "csv": ("duckdb",),
    "parquet": ("duckdb", "spark"),
    "duckdb": ("duckdb",),
    "memory": ("duckdb",),
    "postgres": ("postgres",),
    "spark": ("spark",),
}


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
    readers = BACKENDS[kind]
    chosen = backend or readers[0]
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
    opened: Backend
    if chosen == "postgres":
        from takifugu.tables.backends.postgres import PostgresBackend

        opened = PostgresBackend(declaration)
    elif chosen == "spark":
        from takifugu.tables.backends.spark import SparkBackend

        opened = SparkBackend(declaration, session=session)
    elif frame is not None:
        from takifugu.tables.backends.frames import FrameBackend

        opened = FrameBackend(declaration, frame, threads=threads, memory=memory)
    else:
        from takifugu.tables.backends.duckdb_backend import FileBackend

        opened = FileBackend(declaration, threads=threads, memory=memory)
    try:
        return Engine(declaration, opened)
    except BaseException:
        opened.close()
        raise
