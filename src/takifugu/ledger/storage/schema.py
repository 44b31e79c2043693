"""The tables: each column and index declared once. Events are never rewritten.

Events and their head are the truth. Accounts, segments and cells, and the digests of all these, are
derived from them, kept up to date in the same transaction, and can be rebuilt at any time.
"""

from dataclasses import dataclass, replace
from types import NoneType

from takifugu._core.postgresql import foreign_code
from takifugu.ledger.storage.database import Connection, Statement, quoted

MIGRATIONS = "takifugu_migrations"
HEAD = "takifugu_head"
EVENTS = "takifugu_events"
ACCOUNTS = "takifugu_accounts"
SEGMENTS = "takifugu_segments"
CELLS = "takifugu_cells"
DIGESTS = "takifugu_digests"
WITNESSES = "takifugu_witnesses"  # in another database than the ledger's


@dataclass(frozen=True)
class Column:
    """What a column holds: its type in both databases, and what Python reads."""

    sql: str
    reads: type
    postgresql: str = ""  # where it has another name there
    optional: bool = False

    @property
    def types(self) -> tuple[type, ...]:
        """The types of the values that it can have."""
        return (self.reads, NoneType) if self.optional else (self.reads,)


INTEGER, BIGINT, TEXT = Column("INTEGER", int), Column("BIGINT", int), Column("TEXT", str)
ROW_NUMBER = Column("INTEGER", int, "BIGINT")  # in SQLite an integer key is the row's own
BYTES = Column("BLOB", bytes, "BYTEA")
HASH, NAME = Column("VARCHAR(64)", str), Column("VARCHAR(100)", str)
UNKNOWN_TEXT, UNKNOWN_HASH = replace(TEXT, optional=True), replace(HASH, optional=True)

COLUMNS: dict[str, dict[str, Column]] = {
    MIGRATIONS: {"place": INTEGER, "name": NAME},
    # the row with id 1 is the one that is locked; `at` is the latest time any event has seen
    HEAD: {"id": INTEGER, "seq": BIGINT, "hash": HASH, "at": Column("VARCHAR(40)", str)},
    # from `kind` on: copies of fields of the body, to find it by; `verify` compares them. `charge`
    # is, of an answer or a reuse, the event that was paid for.
    EVENTS: {
        "seq": ROW_NUMBER,
        "hash": HASH,
        "body": TEXT,
        "kind": Column("VARCHAR(20)", str),
        **dict.fromkeys(("dataset", "analyst", "key"), UNKNOWN_TEXT),
        "question": UNKNOWN_HASH,
        "charge": replace(BIGINT, optional=True),
    },
    # analyst "" is the whole dataset; epsilon: the budget, none yet if null; lost, of the whole:
    # what any analyst may have learnt in a lost part
    ACCOUNTS: {
        "id": INTEGER,
        **dict.fromkeys(("dataset", "analyst"), TEXT),
        **dict.fromkeys(("epsilon", "delta", "unit", "partition"), UNKNOWN_TEXT),
        **dict.fromkeys(("always", "worst"), TEXT),
        "lost": UNKNOWN_TEXT,
    },
    # cells: the root of the digests of its cells
    SEGMENTS: {
        "account": INTEGER,
        **dict.fromkeys(("start", "end"), BIGINT),
        **dict.fromkeys(("base", "peak"), TEXT),
        "cells": HASH,
    },
    CELLS: {"account": INTEGER, "start": BIGINT, "cell": TEXT, "own": TEXT},
    # account 0: of all accounts
    DIGESTS: {
        "account": INTEGER,
        "start": BIGINT,
        "path": Column("VARCHAR(32)", str),
        "content": BYTES,
    },
    WITNESSES: {"ledger": Column("VARCHAR(32)", str), "seq": BIGINT, "hash": HASH},
}
KEYS = {
    MIGRATIONS: "PRIMARY KEY (place),\n        UNIQUE (name)",
    HEAD: "PRIMARY KEY (id)",
    EVENTS: "PRIMARY KEY (seq)",
    ACCOUNTS: "PRIMARY KEY (id)",
    SEGMENTS: "PRIMARY KEY (account, start)",
    CELLS: "PRIMARY KEY (account, start, cell)",
    DIGESTS: "PRIMARY KEY (account, start, path)",
    WITNESSES: "PRIMARY KEY (ledger)",
}
BY_KEY_ALONE = (SEGMENTS, CELLS, DIGESTS)  # in SQLite: kept in the order of their keys

BY_DATASET = "takifugu_events_of"
BY_ANALYST = "takifugu_of_analyst"
INDEXES = {
    BY_DATASET: f"{EVENTS} (dataset, kind, seq)",
    "takifugu_of_dataset": f"{EVENTS} (dataset, seq)",  # finds what its cells are
    "takifugu_one_answer_per_charge": f"{EVENTS} (charge) WHERE kind = 'answer'",
    "takifugu_one_event_per_key": f'{EVENTS} ("key") WHERE "key" IS NOT NULL',
    "takifugu_questions": f"{EVENTS} (question) WHERE question IS NOT NULL",
    "takifugu_sources": f"{EVENTS} (seq) WHERE kind = 'source'",
    BY_ANALYST: f"{EVENTS} (analyst, seq) WHERE analyst IS NOT NULL",  # of their own history
    "takifugu_abandoned_once": f"{EVENTS} (charge) WHERE kind = 'abandoned'",
    "takifugu_account_names": f"{ACCOUNTS} (dataset, analyst)",
}
UNIQUE = (
    "takifugu_one_answer_per_charge",
    "takifugu_one_event_per_key",
    "takifugu_account_names",
    "takifugu_abandoned_once",
)
PEOPLE_INDEXES = (BY_ANALYST, "takifugu_abandoned_once")
LATER_INDEXES = ("takifugu_of_dataset", "takifugu_sources")  # that the first ledgers did not have

_COLUMN_TYPES = {
    table: {name: column.types for name, column in columns.items()}
    for table, columns in COLUMNS.items()
}
OPTIONAL_NUMBER = (int, NoneType)  # of a column that is computed: of no rows it is nothing


def select(table: str, *columns: str, where: str = "", lock: bool = False) -> Statement:
    """A statement that reads these columns; ``where`` has the condition, and the order if any."""
    names, then = ", ".join(map(quoted, columns)), f" WHERE {where}" if where else ""
    return Statement(f"SELECT {names} FROM {table}{then}", lock=lock, types=_COLUMN_TYPES[table])


def last_event(where: str) -> Statement:
    """A statement that reads the number of the last event for which a condition holds, or null."""
    text = f"SELECT max(seq) AS seq FROM {EVENTS} WHERE {where}"
    return Statement(text, types={"seq": OPTIONAL_NUMBER})


def create_table(connection: Connection, table: str, *, if_needed: bool = False) -> None:
    """Make a table, with all of its indexes."""
    lines = [KEYS[table]]
    for name, column in reversed(COLUMNS[table].items()):
        kind = column.sql if connection.sqlite else column.postgresql or column.sql
        lines.insert(0, f"{_name(name)} {kind}{'' if column.optional else ' NOT NULL'}")
    columns = ",".join(f"\n        {line}" for line in lines)
    keyed = " WITHOUT ROWID" if connection.sqlite and table in BY_KEY_ALONE else ""
    word = "IF NOT EXISTS " if if_needed else ""
    Statement(f"CREATE TABLE {word}{table} ({columns}\n){keyed}").run(connection, {})
    for name, what in INDEXES.items():
        if what.startswith(f"{table} "):
            create_index(connection, name)


def _name(column: str) -> str:
    return quoted(column) if column in ("key", "partition", "end") else column


def create_index(connection: Connection, name: str) -> None:
    """Make an index, unless it is there."""
    kind = "UNIQUE INDEX" if name in UNIQUE else "INDEX"
    Statement(f"CREATE {kind} IF NOT EXISTS {name} ON {INDEXES[name]}").run(connection, {})


def recreate(connection: Connection) -> None:
    """Replace every derived table by an empty one: their contents follow from the events."""
    derived = (ACCOUNTS, SEGMENTS, CELLS, DIGESTS)
    for table in derived:
        Statement(f"DROP TABLE IF EXISTS {table}").run(connection, {})
    for table in derived:
        create_table(connection, table)


def table_names(connection: Connection) -> set[str]:
    """The tables of the database; of one on a server, those in the schema of the ledger."""
    if connection.sqlite:
        return {row.name for row in _SQLITE_TABLES.all(connection, {})}
    return {row.name for row in _POSTGRESQL_TABLES.all(connection, {"schema": connection.schema})}


def foreign_objects(connection: Connection) -> list[tuple[str, str]]:
    """What lies in the database of a ledger that no ledger makes: kind and name, in order.

    A trigger may change what is written, and a view what is read, while every hash agrees. In a
    file nothing else may lie beside; on a server others may have tables of their own.
    """
    if not connection.sqlite:
        code = foreign_code(connection.raw, connection.schema, "takifugu_")
        return [(kind, name) for kind, name, _ in code]
    known = {("table", name) for name in COLUMNS} | {("index", name) for name in INDEXES}
    rows = _SQLITE_OBJECTS.all(connection, {})
    return [(row.kind, row.name) for row in rows if (row.kind, row.name) not in known]


_SQLITE_OBJECTS = Statement(
    "SELECT type AS kind, name AS name FROM sqlite_master WHERE substr(name, 1, 7) <> 'sqlite_'"
    " ORDER BY type DESC, name"
)
_SQLITE_TABLES = Statement(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'"
)
_POSTGRESQL_TABLES = Statement(
    "SELECT relname AS name FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace"
    " ON relnamespace = pg_namespace.oid WHERE relkind IN ('r', 'p') AND nspname = :schema"
)
