"""Statements, and the state of the transaction that they run in.

SQLAlchemy writes a statement once for each database; then the driver runs it.

A charge is a handful of tiny statements under a lock that everybody waits for. Running them through
SQLAlchemy takes longer than SQLite itself does; writing them by hand would tie us to one database.
"""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.sql import ClauseElement, Select

if TYPE_CHECKING:
    from takifugu.ledger.storage.digest_tree import Tree

Values = Mapping[str, Any]


def _row_of(names: Sequence[str]) -> Any:
    return namedtuple("Row", names)


class Statement:
    """One statement; ``sets`` are the columns that an insert or update gives a value."""

    def __init__(self, clause: ClauseElement, *sets: str) -> None:
        self._clause, self._sets = clause, sets
        self._written: dict[str, tuple[str, list[str] | None]] = {}
        names = clause.selected_columns.keys() if isinstance(clause, Select) else []
        self._row = _row_of(names)

    def one(self, connection: Connection, values: Values) -> Any:
        """The first row of the result, or None."""
        found = self._execute(connection, values).fetchone()
        return None if found is None else self._row._make(found)

    def all(self, connection: Connection, values: Values) -> list[Any]:
        """Every row of the result."""
        return list(map(self._row._make, self._execute(connection, values).fetchall()))

    def run(self, connection: Connection, values: Values | Sequence[Values]) -> None:
        """Write once, or once for each of many."""
        if isinstance(values, Mapping):
            self._execute(connection, values)
        elif values:
            text, order = self._text(connection)
            given = [self._given(order, one) for one in values]
            connection.connection.cursor().executemany(text, given)

    def _execute(self, connection: Connection, values: Values) -> Any:
        text, order = self._text(connection)
        cursor = connection.connection.cursor()
        cursor.execute(text, self._given(order, values))
        return cursor

    def _given(self, order: list[str] | None, values: Values) -> Any:
        return values if order is None else [values[name] for name in order]

    def _text(self, connection: Connection) -> tuple[str, list[str] | None]:
        dialect = connection.dialect
        known = self._written.get(dialect.name)
        if known is None:
            sets = list(self._sets) or None
            compiled: Any = self._clause.compile(dialect=dialect, column_keys=sets)
            order = list(compiled.positiontup) if compiled.positional else None
            known = self._written[dialect.name] = (compiled.string, order)
        return known


_OPTION = "takifugu_work"


@dataclass
class TransactionState:
    """Kept beside a connection from the beginning of a transaction to its end.

    Attributes:
        head: The end of the chain, once it was read.
        locked: Whether nobody else can add to it.
        tree: The digests of accounts and segments, once they were checked against the last event.
        appended: Whether an event was written.
        seen: What the witness had recorded when the transaction began.
        unwitnessed: Whether there is no witness: events then record that.
        events: The events that were read and checked, by number.
    """

    head: Any = None
    locked: bool = False
    tree: "Tree | None" = None
    appended: bool = False
    seen: Any = None
    unwitnessed: bool = False
    events: dict[int, Any] = field(default_factory=dict)


def transaction_state(connection: Connection) -> TransactionState:
    """The state of the transaction that ``connection`` is in."""
    found: TransactionState | None = connection.get_execution_options().get(_OPTION)
    if found is None:
        found = TransactionState()
        connection.execution_options(**{_OPTION: found})
    return found
