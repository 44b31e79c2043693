"""DuckDB, inside this process: CSV and Parquet files, and tables of DuckDB files."""

import shutil
import tempfile
import weakref
from typing import Any

from takifugu.engines.backend import (
    DATA,
    Backend,
    DataFingerprint,
    Dialect,
    Kind,
    declared_kinds,
    quoted,
    quoted_table,
    source_files,
)
from takifugu.engines.columns import Category
from takifugu.engines.declaration import Declaration
from takifugu.engines.files import Files
from takifugu.engines.notes import Note
from takifugu.engines.problems import driver, without_values

WHOLE = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
WIDE = ("UBIGINT", "HUGEINT", "UHUGEINT")
CASTS = {"text": "VARCHAR", "whole": "BIGINT", "real": "DOUBLE", "time": "TIMESTAMP"}


class DuckBackend(Backend):
    """One database in memory, with a view of the source; each query has a cursor of its own."""

    dialect: Dialect = "duckdb"

    def __init__(
        self, declaration: Declaration, *, threads: int | None = None, memory: str | None = None
    ) -> None:
        with driver("duckdb", purpose=f"a {declaration.source.kind} source"):
            import duckdb  # noqa: F401 - found missing here, and said so
        self._place = declaration.source.place
        self._files = Files.of(source_files(declaration))
        self.files = self._files.paths
        spill = tempfile.mkdtemp(prefix="takifugu-")  # rows may spill here: ours alone, mode 0700
        self._forget = weakref.finalize(self, shutil.rmtree, spill, ignore_errors=True)
        config: dict[str, Any] = {"temp_directory": spill}
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
            self._view(declaration)
        except BaseException:
            self.close()
            raise

    def _view(self, declaration: Declaration) -> None:
        """Make the one view that queries read."""
        self._run("SET GLOBAL TimeZone = 'UTC'")
        source = self._source(declaration)
        found = {
            str(name): (str(kind), _kind(str(kind)))
            for name, kind, *_ in self._run(f"DESCRIBE FROM {source}")
        }
        kinds = {name: kind for name, (_, kind) in found.items()}
        self.kinds = declared_kinds(declaration, kinds)
        columns = ", ".join(_column(name, *found[name]) for name in self.kinds)
        self._run(f"CREATE VIEW {DATA} AS SELECT {columns} FROM {source}")  # noqa: S608 - quoted

    def _source(self, declaration: Declaration) -> str:
        """The source as it stands in FROM."""
        files = ", ".join(_text(str(path)) for path in self._files.paths)
        match declaration.source.kind:
            case "csv":
                texts = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in _texts(declaration))
                header = self._run(
                    f"DESCRIBE FROM read_csv([{files}], header=true, all_varchar=true)"
                )
                declared_kinds(declaration, {str(name): "text" for name, *_ in header})
                return f"read_csv([{files}], header=true, types={{{texts}}})"
            case "parquet":
                return f"read_parquet([{files}])"
            case _:
                self._run(f"ATTACH {files} AS source (READ_ONLY)")
                return f"source.{quoted_table(str(declaration.source.table))}"

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            return cursor.execute(sql).fetchall()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query that returns aggregates."""
        self._files.refuse_change()
        advice = "see that every value of a declared column is of its kind"
        return without_values(lambda: self._run(sql), self._place, doing="queried", advice=advice)

    def fingerprint(self) -> DataFingerprint:
        """Every byte of the files."""
        return self._files.fingerprint()

    def note(self, *what: str | None) -> Note | None:
        """Kept for large files."""
        return self._files.note(*what)

    def close(self) -> None:
        """Close the database and remove what it may have spilled."""
        self._connection.close()
        self._forget()


def _texts(declaration: Declaration) -> list[str]:
    """The columns of a CSV file that are text whatever they look like."""
    described = (*declaration.protected, *declaration.public)
    labels = [column for column in described if isinstance(column, Category)]
    return [declaration.entity] + [
        c.column
        for c in labels
        if c.values is None or any(isinstance(raw, str) for raw in c.codes())
    ]


def _kind(kind: str) -> Kind:
    if kind in WHOLE or kind in WIDE:
        return "whole"
    if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        return "real"
    if kind == "TIMESTAMP WITH TIME ZONE":
        return "zoned"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return "time"
    if kind in ("VARCHAR", "UUID") or kind.startswith("ENUM"):
        return "text"
    return "unknown"


def _column(name: str, found: str, kind: Kind) -> str:
    as_is = kind in ("unknown", "zoned") or found in (*WHOLE, CASTS[kind])
    return quoted(name) if as_is else f"CAST({quoted(name)} AS {CASTS[kind]}) AS {quoted(name)}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
