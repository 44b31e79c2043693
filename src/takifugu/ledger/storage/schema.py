"""The tables, and the named migrations that made them. Events are never rewritten.

Events and their head are the truth. Accounts, segments and cells, and the digests of all these, are
derived from them, kept up to date in the same transaction, and can be rebuilt at any time.
"""

from collections.abc import Callable
from dataclasses import dataclass
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

COLUMNS = {
    MIGRATIONS: {"place": "INTEGER NOT NULL", "name": "VARCHAR(100) NOT NULL"},
    # the row with id 1 is the one that is locked; `at` is the latest time any event has seen
    HEAD: {
        "id": "INTEGER NOT NULL",
        "seq": "BIGINT NOT NULL",
        "hash": "VARCHAR(64) NOT NULL",
        "at": "VARCHAR(40) NOT NULL",
    },
    # from `kind` on: copies of fields of the body, to find it by; `verify` compares them. `charge`
    # is, of an answer or a reuse, the event that was paid for.
    EVENTS: {
        "seq": "{number} NOT NULL",
        "hash": "VARCHAR(64) NOT NULL",
        "body": "TEXT NOT NULL",
        "kind": "VARCHAR(20) NOT NULL",
        "dataset": "TEXT",
        "analyst": "TEXT",
        "key": "TEXT",
        "question": "VARCHAR(64)",
        "charge": "BIGINT",
    },
    # analyst "" is the whole dataset; epsilon: the budget, none yet if null; lost, of the whole:
    # what any analyst may have learnt in a lost part
    ACCOUNTS: {
        "id": "INTEGER NOT NULL",
        "dataset": "TEXT NOT NULL",
        "analyst": "TEXT NOT NULL",
        "epsilon": "TEXT",
        "delta": "TEXT",
        "unit": "TEXT",
        "partition": "TEXT",
        "always": "TEXT NOT NULL",
        "worst": "TEXT NOT NULL",
        "lost": "TEXT",
    },
    # cells: the root of the digests of its cells
    SEGMENTS: {
        "account": "INTEGER NOT NULL",
        "start": "BIGINT NOT NULL",
        "end": "BIGINT NOT NULL",
        "base": "TEXT NOT NULL",
        "peak": "TEXT NOT NULL",
        "cells": "VARCHAR(64) NOT NULL",
    },
    CELLS: {
        "account": "INTEGER NOT NULL",
        "start": "BIGINT NOT NULL",
        "cell": "TEXT NOT NULL",
        "own": "TEXT NOT NULL",
    },
    # account 0: of all accounts
    DIGESTS: {
        "account": "INTEGER NOT NULL",
        "start": "BIGINT NOT NULL",
        "path": "VARCHAR(32) NOT NULL",
        "content": "{bytes} NOT NULL",
    },
    WITNESSES: {
        "ledger": "VARCHAR(32) NOT NULL",
        "seq": "BIGINT NOT NULL",
        "hash": "VARCHAR(64) NOT NULL",
    },
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
TYPES = {  # by whether it is SQLite, where an integer key is the row's own
    True: {"number": "INTEGER", "bytes": "BLOB"},
    False: {"number": "BIGINT", "bytes": "BYTEA"},
}

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

_PYTHON_TYPES = {"INTEGER": int, "BIGINT": int, "{number}": int, "{bytes}": bytes}


def column_types(table: str) -> dict[str, tuple[type, ...]]:
    """The types of the values that each column of a table can have, as Python reads them."""
    return {
        name: (_PYTHON_TYPES.get(kind.partition(" ")[0], str),)
        + (() if kind.endswith(" NOT NULL") else (NoneType,))
        for name, kind in COLUMNS[table].items()
    }


_COLUMN_TYPES = {table: column_types(table) for table in COLUMNS}
OPTIONAL_NUMBER = (int, NoneType)  # of a column that is computed: of no rows it is nothing


def select(table: str, *columns: str, where: str = "", lock: bool = False) -> Statement:
    """A statement that reads these columns; ``where`` has the condition, and the order if any."""
    names, then = ", ".join(map(quoted, columns)), f" WHERE {where}" if where else ""
    return Statement(f"SELECT {names} FROM {table}{then}", lock=lock, types=_COLUMN_TYPES[table])


def last_event(where: str) -> Statement:
    """A statement that reads the number of the last event for which a condition holds, or null."""
    text = f"SELECT max(seq) AS seq FROM {EVENTS} WHERE {where}"
    return Statement(text, types={"seq": OPTIONAL_NUMBER})


@dataclass(frozen=True)
class Migration:
    """One named step. It may add tables and fill derived ones; it never touches an event."""

    name: str
    apply: Callable[[Connection], None]


def create_table(connection: Connection, table: str, *, if_needed: bool = False) -> None:
    """Make a table, with all of its indexes."""
    lines = [f"{_name(name)} {kind}" for name, kind in COLUMNS[table].items()]
    columns = ",".join(f"\n        {line}" for line in (*lines, KEYS[table]))
    columns = columns.format(**TYPES[connection.sqlite])
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


def _create(*tables: str) -> Callable[[Connection], None]:
    def apply(connection: Connection) -> None:
        for table in tables:
            create_table(connection, table)

    return apply


TRUTH = Migration("0001 events in a chain", _create(HEAD, EVENTS))
TOTALS = _create(ACCOUNTS, SEGMENTS, CELLS)


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
