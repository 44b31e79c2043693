"""Open the engine that a declaration asks for, or another one that can read the same source."""

from pathlib import Path
from typing import Any, Literal

from takifugu.engines.backends.backend import Backend
from takifugu.engines.backends.duckdb_backend import FileBackend
from takifugu.engines.backends.frames import Frame, FrameBackend
from takifugu.engines.backends.postgres import PostgresBackend
from takifugu.engines.backends.spark import SparkBackend
from takifugu.engines.declarations.declaration import Declaration
from takifugu.engines.declarations.declaration_files import read_declaration
from takifugu.engines.engine import Engine
from takifugu.engines.engine_errors import InvalidDeclaration, InvalidQuery

BackendName = Literal["duckdb", "postgres", "spark"]


def open_engine(
    declaration: Declaration | str | Path,
    *,
    backend: BackendName | None = None,
    session: Any = None,
    threads: int | None = None,
    memory: str | None = None,
    frame: Frame | None = None,
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
        frame: The rows of a source of kind ``memory``; see `takifugu.engines.table`.
    """
    if not isinstance(declaration, Declaration):
        declaration = read_declaration(declaration)
    kind = declaration.source.kind
    usual: BackendName = kind if kind in ("postgres", "spark") else "duckdb"
    able = {"parquet": ("duckdb", "spark")}.get(kind, (usual,))
    chosen = backend or usual
    if chosen not in able:
        raise InvalidQuery(
            "backend", given=f"is {chosen!r}", needed=f"be {' or '.join(able)} for a {kind} source"
        )
    if (kind == "memory") != (frame is not None):
        rows = f"the rows of {declaration.source.table!r} are in a program"
        raise InvalidDeclaration(
            "source, kind",
            given=f"is 'memory': {rows}" if frame is None else f"is {kind!r}",
            needed="be 'memory' for a frame, and opened there: takifugu.table(frame, …).open()",
        )
    opened = _backend(declaration, chosen, session, threads, memory, frame)
    try:
        return Engine(declaration, opened)
    except BaseException:
        opened.close()
        raise


def _backend(
    declaration: Declaration,
    chosen: BackendName,
    session: Any,
    threads: int | None,
    memory: str | None,
    frame: Frame | None,
) -> Backend:
    if chosen == "postgres":
        return PostgresBackend(declaration)
    if chosen == "spark":
        return SparkBackend(declaration, session=session)
    if frame is not None:
        return FrameBackend(declaration, frame, threads=threads, memory=memory)
    return FileBackend(declaration, threads=threads, memory=memory)
