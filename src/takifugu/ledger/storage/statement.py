"""Statements, and the state of the transaction that they run in.

A statement is SQL that SQLite and PostgreSQL both read, with its values by name (``:which``). The
driver runs it: a charge is a handful of tiny statements under a lock that everybody waits for.
"""

import itertools
import re
import sqlite3
from collections import namedtuple
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from takifugu._postgresql import quoted_name

if TYPE_CHECKING:
    from takifugu.ledger.storage.digest_tree import Tree

Values = Mapping[str, Any]
FEW = 1000  # rows that a server sends at a time
_NUMBERS = itertools.count(1)
_HALF = re.compile("[\ud800-\udfff]")
_VALUE = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_TABLE = re.compile(  # a new index is where its table is
    r"\b((?:FROM|INTO|UPDATE|JOIN|ON|DROP INDEX|TABLE(?: IF(?: NOT)? EXISTS)?) )(takifugu_)"
)


@dataclass
class TransactionState:
    """Kept beside a connection from the beginning of a transaction to its end.

    Attributes:
        head: The end of the chain, once it was read.
        locked: Whether nobody else can add to it.
        tree: The digests of accounts and segments, once they were checked against the last event.
        seen: What the witness had recorded when the transaction began.
        unwitnessed: Whether there is no witness: events then record that.
        shown: The latest event that was read to be shown to somebody; 0 if none was.
        events: The events that were read and checked, by number.
    """

    head: Any = None
    locked: bool = False
    tree: "Tree | None" = None
    seen: Any = None
    unwitnessed: bool = False
    shown: int = 0
    events: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Connection:
    """A connection of a driver during one transaction.

    Attributes:
        raw: What the driver made.
        sqlite: Whether it is one of SQLite, and not of PostgreSQL.
        schema: The schema of PostgreSQL that has the tables; they are not looked for in others.
        state: The state of the transaction.
    """

    raw: Any
    sqlite: bool
    schema: str = ""
    state: TransactionState = field(default_factory=TransactionState, repr=False)


class NotAsDeclared(sqlite3.DatabaseError):
    """A row has a value that its table cannot hold: SQLite checks no types of what it reads."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def askable(text: str) -> bool:
    """Whether a database can look for a text: none takes zero bytes, or half a character."""
    return "\0" not in text and not _HALF.search(text)


class Statement:
    """One statement, for both databases.

    Args:
        text: The SQL, with values as ``:name``.
        lock: Whether the rows that it reads stay locked until the transaction ends. A transaction
            of SQLite that writes holds all of them from its beginning.
    """

    def __init__(self, text: str, *, lock: bool = False) -> None:
        self._sqlite = text
        self._postgresql = _VALUE.sub(r"%(\1)s", text.replace("%", "%%"))
        if lock:
            self._postgresql += " FOR UPDATE"
        self._qualified: dict[str, str] = {}  # by schema
        self._row: Any = None
        self._types: tuple[tuple[type, ...], ...] = ()  # that a column of the result can have

    def one(self, connection: Connection, values: Values) -> Any:
        """The first row of the result, or None."""
        with closing(self._execute(connection, values)) as cursor:
            found = cursor.fetchone()
            return None if found is None else self._made(connection, cursor, found)

    def all(self, connection: Connection, values: Values) -> list[Any]:
        """Every row of the result."""
        with closing(self._execute(connection, values)) as cursor:
            return [self._made(connection, cursor, row) for row in cursor.fetchall()]

    def stream(self, connection: Connection, values: Values) -> Generator[Any]:
        """The rows of the result, a few at a time."""
        if connection.sqlite:
            cursor = connection.raw.cursor()
        else:  # of the server: that of the client reads everything first
            cursor = connection.raw.cursor(name=f"takifugu_rows_{next(_NUMBERS)}")
            cursor.itersize = FEW
        with closing(cursor):
            cursor.execute(self.text(connection), values)
            for row in cursor:
                yield self._made(connection, cursor, row)

    def run(self, connection: Connection, values: Values | Sequence[Values]) -> None:
        """Write once, or once for each of many."""
        if isinstance(values, Mapping):
            self._execute(connection, values).close()
        elif values:
            with closing(connection.raw.cursor()) as cursor:
                cursor.executemany(self.text(connection), values)

    def text(self, connection: Connection) -> str:
        """The SQL as the database of ``connection`` reads it."""
        if connection.sqlite:
            return self._sqlite
        schema = connection.schema
        if schema not in self._qualified:
            prefix = f"{quoted_name(schema)}.".replace("%", "%%") if schema else ""
            self._qualified[schema] = _TABLE.sub(
                lambda match: f"{match[1]}{prefix}{match[2]}", self._postgresql
            )
        return self._qualified[schema]

    def _execute(self, connection: Connection, values: Values) -> Any:
        cursor = connection.raw.cursor()
        cursor.execute(self.text(connection), values)
        return cursor

    def _made(self, connection: Connection, cursor: Any, row: Any) -> Any:
        if self._row is None:
            names = [column[0] for column in cursor.description]
            self._types = tuple(self._able(name) for name in names)
            self._row = _row_of(names)
        if connection.sqlite and not all(map(isinstance, row, self._types)):
            raise NotAsDeclared("a row has a value that cannot have been written there")
        return self._row._make(row)

    def _able(self, column: str) -> tuple[type, ...]:
        """The types of a column of the result; any, if no table of a ledger has it."""
        from takifugu.ledger.storage.schema import COLUMNS, held

        tables = [held(table) for table in COLUMNS if re.search(rf"\b{table}\b", self._sqlite)]
        found = {kind for table in tables for kind in table.get(column, ())}
        if not found:
            return (object,)
        if re.search(rf'\bAS "?{column}\b', self._sqlite):  # computed: of no rows it is nothing
            found.add(type(None))
        return tuple(found)


def _row_of(names: Sequence[str]) -> Any:
    return namedtuple("Row", names)


def insert(table: str, *columns: str) -> Statement:
    """A statement that adds a row with these columns."""
    names, values = ", ".join(map(quoted, columns)), ", ".join(f":{name}" for name in columns)
    return Statement(f"INSERT INTO {table} ({names}) VALUES ({values})")


def update(table: str, *columns: str, where: str) -> Statement:
    """A statement that gives these columns new values where a condition holds."""
    sets = ", ".join(f"{quoted(name)} = :{name}" for name in columns)
    return Statement(f"UPDATE {table} SET {sets} WHERE {where}")


def quoted(column: str) -> str:
    """The name of a column, which may be a word of SQL."""
    return f'"{column}"'


def transaction_state(connection: Connection) -> TransactionState:
    """The state of the transaction that ``connection`` is in."""
    return connection.state
