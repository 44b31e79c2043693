"""Connections to PostgreSQL that look names up in its own catalogue and nowhere else.

Whoever may create objects in a schema of the search path can define a function or an operator that
fits a statement better than PostgreSQL's own, and it then runs with the rights of whoever sent the
statement. So every connection begins with the path `SEARCH_PATH`, which no setting of a role or a
database overrides, and tables are named with their schema. The schema is found once, by the path
that the address, the role and the database configure.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from takifugu.errors import InvalidFile

if TYPE_CHECKING:
    from psycopg import Connection

SEARCH_PATH = "pg_catalog,pg_temp"  # unless it is listed, pg_temp comes first, for tables and types

_SCHEMAS_WITH = """
    SELECT nspname FROM pg_namespace JOIN pg_class ON relnamespace = pg_namespace.oid
    WHERE nspname = ANY(%s) AND relname LIKE %s AND relkind = ANY('{r,p,v,m,f}')
    GROUP BY nspname ORDER BY nspname"""
_ANYBODY_CREATES = "SELECT has_schema_privilege('public', %s, 'CREATE')"
_FOREIGN_CODE = """
    WITH own AS (
      SELECT oid, relname, relkind, relrowsecurity FROM pg_class
      WHERE relnamespace = %s::regnamespace AND relname LIKE %s AND relkind = ANY('{r,p,v,m,f}'))
    SELECT CASE relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
      WHEN 'f' THEN 'foreign table' ELSE 'partitioned table' END AS kind, relname::text AS name,
      relname::text AS "table" FROM own WHERE relkind <> 'r'
    UNION ALL SELECT 'row security', relname::text, relname::text FROM own WHERE relrowsecurity
    UNION ALL SELECT 'rule', rulename::text, relname::text
      FROM pg_rewrite JOIN own ON ev_class = own.oid WHERE relkind = 'r'
    UNION ALL SELECT 'trigger', tgname::text, relname::text
      FROM pg_trigger JOIN own ON tgrelid = own.oid WHERE NOT tgisinternal
    ORDER BY 1, 2, 3"""


def connect_pinned(
    connect: "Callable[..., Connection[Any]]", address: str, *, options: str, **settings: Any
) -> "Connection[Any]":
    """A connection whose search path is `SEARCH_PATH`; an error if something in between drops it.

    Connection poolers may ignore the options of a client. The path is only ever set when a
    connection begins: a pooler may run the next statement on another one.
    """
    pinned = f"{options} -c search_path={SEARCH_PATH}".strip()
    connection = connect(address, autocommit=True, options=pinned, **settings)
    try:
        ((path,),) = connection.execute("SHOW search_path").fetchall()
        if path != SEARCH_PATH:
            raise InvalidFile(
                "search_path",
                given="is not the one that was asked for: a connection pooler ignores `options`",
                needed=f"be {SEARCH_PATH}: connect past the pooler, or set it there for this user"
                f" (ALTER ROLE … SET search_path = {SEARCH_PATH})",
                reason="search_path",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def configured_schemas(
    connect: "Callable[..., Connection[Any]]", address: str, *, options: str, **settings: Any
) -> list[str]:
    """The schemas of the path that the address, the role and the database configure."""
    with connect(address, autocommit=True, options=options, **settings) as connection:
        ((names,),) = connection.execute("SELECT pg_catalog.current_schemas(false)").fetchall()
    return [name for name in names if not name.startswith("pg_")]


def schemas_with(
    connection: "Connection[Any]", table: str, schemas: Sequence[str], *, prefix: bool = False
) -> list[str]:
    """Those of the ``schemas`` that have a table of this name, or with this ``prefix``."""
    rows = connection.execute(_SCHEMAS_WITH, (list(schemas), _pattern(table, prefix))).fetchall()
    return [name for (name,) in rows]


def anybody_creates(connection: "Connection[Any]", schema: str) -> bool:
    """Whether every role of the database may create objects in a schema."""
    ((allowed,),) = connection.execute(_ANYBODY_CREATES, (schema,)).fetchall()
    return bool(allowed)


def foreign_code(
    connection: "Connection[Any]", schema: str, prefix: str
) -> list[tuple[str, str, str]]:
    """Triggers, rules, row security and what is no plain table: kind, name, and of which table.

    They run with the rights of whoever uses the table, or hide rows from them.
    """
    values = (quoted_name(schema), _pattern(prefix, True))
    return connection.execute(_FOREIGN_CODE, values).fetchall()


def quoted_name(name: str) -> str:
    """A name as SQL takes it, whatever it holds."""
    return '"' + name.replace('"', '""') + '"'


def _pattern(name: str, prefix: bool) -> str:
    """A pattern of LIKE that a name fits, or names that begin with it."""
    escaped = name.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    return escaped + "%" * prefix
