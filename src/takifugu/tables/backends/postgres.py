"""PostgreSQL, through psycopg: one table, read in read-only transactions.

Names in a query are looked up in PostgreSQL's own catalogue alone; see `takifugu._core.postgresql`.
"""

from typing import Any

from takifugu._core.postgresql import (
    anybody_creates,
    configured_schemas,
    connect_pinned,
    schemas_with,
)
from takifugu.declarations.columns import NO_ORDER, Category
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration, driver, without_values
from takifugu.tables.backends.backend import (
    COUNT,
    DATA,
    Backend,
    DataFingerprint,
    Kind,
    declared_kinds,
    quoted,
    quoted_table,
    table_fingerprint,
)
from takifugu.tables.sql_writer import DIALECTS

KINDS: dict[str, Kind] = {
    **dict.fromkeys(("int2", "int4", "int8"), "whole"),
    **dict.fromkeys(("float4", "float8", "numeric"), "real"),
    **dict.fromkeys(("text", "varchar", "bpchar", "uuid", "name"), "text"),
    **dict.fromkeys(("timestamp", "date"), "time"),
    "timestamptz": "zoned",
}
TYPES = DIALECTS["postgres"].types


class PostgresBackend(Backend):
    """One connection; a query sees the declared columns as a common table expression.

    Attributes:
        schema: The schema that has the table.
    """

    dialect = "postgres"
    may_change = True

    def __init__(self, declaration: Declaration) -> None:
        with driver("psycopg", purpose="a postgres source", extra="postgres"):
            import psycopg  # noqa: F401 - found missing here, and said so
        self._declaration = declaration
        self._place = declaration.source.place
        advice = "see that the server, the table and the right to read it are there"
        without_values(lambda: self._open(declaration), self._place, doing="opened", advice=advice)
        columns = ", ".join(_column(name, kind) for name, kind in self.kinds.items())
        self._data = f"SELECT {columns} FROM {self._table}"  # noqa: S608 - every name is quoted

    def _open(self, declaration: Declaration) -> None:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        url = str(declaration.source.url)
        settings = "-c default_transaction_read_only=on -c TimeZone=UTC"
        how = {
            "options": f"{conninfo_to_dict(url).get('options') or ''} {settings}".strip(),
            "client_encoding": "UTF8",  # that of the text of queries, whatever the server keeps
        }
        self._connection = connect_pinned(psycopg.connect, url, **how)
        try:
            name = str(declaration.source.table)
            if "." not in name:
                schemas = configured_schemas(psycopg.connect, url, **how)
                name = f"{self._schema_of(name, schemas)}.{name}"
            self.schema = name.partition(".")[0]
            self._table = quoted_table(name)
            self.kinds = declared_kinds(declaration, self._column_kinds())
            self._refuse_letters(declaration)
        except BaseException:
            self.close()
            raise

    def _schema_of(self, table: str, schemas: list[str]) -> str:
        """The one schema of the configured search path that has the table."""
        having = schemas_with(self._connection, table, schemas)
        if len(having) == 1:
            return having[0]
        listed = ", ".join(having or schemas) or "no schema"
        raise InvalidDeclaration(
            "source, table",
            given=f"is {table!r}, which {'several schemas have' if having else 'is in none'}"
            f" of the search path: {listed}",
            needed=f"be written with its schema, as {(having or ['public'])[0]}.{table}",
            reason="ambiguous" if having else "missing",
        )

    def _column_kinds(self) -> dict[str, Kind]:
        """Every column that the table has, and its kind."""
        rows = self._connection.execute(
            "SELECT attname, typname, typnamespace = 'pg_catalog'::regnamespace"
            " FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid"
            " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
            (self._table,),
        ).fetchall()
        return {name: KINDS.get(kind, "unknown") if own else "unknown" for name, kind, own in rows}

    def anybody_creates(self) -> bool:
        """Whether every role of the database may create objects beside the table."""
        return anybody_creates(self._connection, self.schema)

    def _refuse_letters(self, declaration: Declaration) -> None:
        """Raise if a label has letters that the database cannot hold: each query would fail."""
        import psycopg

        for column in (*declaration.protected, *declaration.public):
            listed = isinstance(column, Category) and column.values is not None
            labels = "".join(map(str, column.codes())) if listed else ""  # type: ignore[union-attr]
            try:
                self._connection.execute("SELECT %s::text", (labels.replace("\0", ""),))
            except psycopg.errors.UntranslatableCharacter:
                raise InvalidDeclaration(
                    column.column,
                    given="has labels with letters that the database has no code for",
                    needed="have labels in the encoding of the database",
                    reason="encoding",
                ) from None

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query that returns aggregates."""
        whole = f"WITH {DATA} AS NOT MATERIALIZED ({self._data}) SELECT * FROM ({sql}) AS answer"  # noqa: S608 - Ibis wrote it
        advice = "see that the server is up and that every value is of its column's kind"
        return without_values(
            lambda: self._connection.execute(whole.encode()).fetchall(),
            self._place,
            doing="queried",
            advice=advice,
        )

    def fingerprint(self) -> DataFingerprint:
        """The number of rows and the kinds of the columns."""
        ((count,),) = self.rows(COUNT)
        return table_fingerprint(self._declaration, self.kinds, count)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _column(name: str, kind: Kind) -> str:
    """A column as queries see it. Texts are equal if all their letters are, and ordered so.

    A collation that is not deterministic says otherwise. A group of texts then goes by the name of
    any one of them: one replaced cell could rename it, and move all of its rows.
    """
    if name == NO_ORDER:
        return f"CAST(0 AS bigint) AS {quoted(name)}"
    if kind == "unknown":
        return quoted(name)
    letters = f" COLLATE {quoted('C')}" if kind == "text" else ""
    return f"CAST({quoted(name)} AS {TYPES[kind]}){letters} AS {quoted(name)}"
