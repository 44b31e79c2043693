"""Tables in memory, of pandas, Polars or PyArrow, read by DuckDB.

The declared columns are copied when the table is declared, and into DuckDB when it is opened: a
frame that is changed later changes no answer, and a prior is fitted on the rows that a session
knows. Undeclared columns are never read. Nothing is written to disk, unless DuckDB
runs out of memory and spills to a folder of its own (see `spill`).
"""

import sys
from collections.abc import Collection
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from takifugu._core.fingerprint import fingerprint
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration, driver
from takifugu.tables.backends.backend import DATA, DataFingerprint, declared_kinds, quoted
from takifugu.tables.backends.duckdb_backend import (
    DuckDBBackend,
    found_kinds,
    selected,
    unparsed_sql,
)

FRAMES = (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table"))
COPIED = "frame"  # what DuckDB calls the frame while it copies it
DIGITS = 15  # hexadecimal digits of a hash that are added up: 60 bits, so that no sum overflows


@runtime_checkable
class Frame(Protocol):
    """A table in memory: a pandas or Polars ``DataFrame``, or a PyArrow ``Table``."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, as Arrow passes them on."""


def is_frame(source: object) -> bool:
    """Whether ``source`` is a table in memory that can be read again and again.

    Streams, which Arrow's interface also describes, would be empty the second time.
    """
    loaded = [(sys.modules.get(package), name) for package, name in FRAMES]
    return any(
        isinstance(source, getattr(package, name))
        for package, name in loaded
        if package is not None
    )


def own_copy(frame: Any, columns: Collection[str]) -> Frame:
    """The declared columns of a frame, which nobody else can change.

    Arrow tables are immutable, but the memory of one made from numpy arrays is theirs.
    """
    if hasattr(frame, "clone"):  # Polars copies what is written to
        own: Frame = frame.clone()
    elif hasattr(frame, "column_names"):
        import pyarrow

        chosen = frame.select([k for k, name in enumerate(frame.column_names) if name in columns])
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, chosen.schema) as stream:
            stream.write_table(chosen)
        own = pyarrow.ipc.open_stream(sink.getvalue()).read_all()
    else:
        own = frame.loc[:, [name in columns for name in frame.columns]].copy(deep=True)
    return own


class FrameBackend(DuckDBBackend):
    """A copy of the declared columns of a frame, in a database in memory."""

    def __init__(
        self,
        declaration: Declaration,
        frame: Frame,
        *,
        threads: int | None = None,
        memory: str | None = None,
    ) -> None:
        self._frame: Frame | None = frame
        super().__init__(declaration, threads=threads, memory=memory)

    def _load(self, declaration: Declaration) -> None:
        frame, self._frame = self._frame, None  # the caller's frame is not kept alive
        self._connection.register(COPIED, _arrow(frame, declaration))
        columns_of_frame = found_kinds(
            self._connection.execute(f"DESCRIBE FROM {COPIED}").fetchall(), declaration.order
        )
        self.kinds = declared_kinds(
            declaration, {name: column.kind for name, column in columns_of_frame.items()}
        )
        columns = selected(columns_of_frame, self.kinds)
        unparsed = unparsed_sql(declaration.order, COPIED)
        if unparsed is not None and self._connection.execute(unparsed).fetchall() != [(0,)]:
            raise InvalidDeclaration(
                "order, format",
                given="is not how all times are written",
                needed="be that of all rows: mend them, or the format",
                reason="unparsed",
            )
        self._connection.execute(f"CREATE TABLE {DATA} AS SELECT {columns} FROM {COPIED}")  # noqa: S608 - quoted
        self._connection.unregister(COPIED)
        self._shut([])

    def fingerprint(self) -> DataFingerprint:
        """Every value of the declared columns: the same rows in any order, of any kind of frame.

        Each row is hashed with SHA-256; what is compared is the sum of the parts of these hashes.
        The copy never changes, so they are computed once.
        """
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> DataFingerprint:
        text = " || ".join(_part(name) for name in self.kinds)
        hashed = f"SELECT sha256({text}) AS h FROM {DATA}"  # noqa: S608 - quoted
        sums = ", ".join(
            f"CAST(sum(CAST('0x' || substr(h, {start}, {DIGITS}) AS bigint)) AS varchar)"
            for start in range(1, 61, DIGITS)
        )
        ((count, *totals),) = self.rows(f"SELECT count(*), {sums} FROM ({hashed})")  # noqa: S608
        return DataFingerprint(
            fingerprint(("rows", dict(self.kinds), int(count), [str(total) for total in totals])),
            "a SHA-256 hash of every row, so every value of the declared columns, in any order",
        )


def _part(column: str) -> str:
    """A value with its length before it, so that two rows never make the same text."""
    text = f"CAST({quoted(column)} AS varchar)"
    return f"coalesce(strlen({text}) || ':' || {text}, '-')"


def _arrow(frame: Any, declaration: Declaration) -> Any:
    """The declared columns as an Arrow table, which has one type for each column.

    DuckDB would take a pandas column of both 1 and '1' for text; PyArrow refuses it.
    """
    with driver("pyarrow", purpose="a table in memory", extra="tables"):
        import pyarrow
    arrow = isinstance(frame, pyarrow.Table)
    names = list(frame.column_names if arrow else frame.columns)
    for column in declaration.columns:
        if names.count(column) > 1:
            raise InvalidDeclaration(
                column, given="is the name of several columns", needed="be the name of one"
            )
        if column not in names and column in getattr(getattr(frame, "index", None), "names", ()):
            raise InvalidDeclaration(
                column,
                given="is the index of the frame, and no column of it",
                needed="be a column: give `frame.reset_index()`",
                reason="index",
            )
    chosen = [column for column in declaration.columns if column in names]
    if arrow:
        return frame.select(chosen)
    if hasattr(frame, "to_arrow"):
        return frame.select(chosen).to_arrow()
    return pyarrow.Table.from_pandas(frame[chosen], preserve_index=False)
