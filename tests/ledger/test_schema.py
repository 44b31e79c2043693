"""Tables, statements and addresses: what each database is told, and what it answers."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import InvalidFile, NewerLedger, NotALedger
from takifugu.ledger import open_ledger
from takifugu.ledger.storage import schema
from takifugu.ledger.storage.addresses import Address, address_of
from takifugu.ledger.storage.applied_steps import applied_steps
from takifugu.ledger.storage.schema import (
    BY_KEY_ALONE,
    COLUMNS,
    DIGESTS,
    EVENTS,
    INDEXES,
    UNIQUE,
    create_index,
    create_table,
    recreate,
    table_names,
)
from takifugu.ledger.storage.statement import (
    FEW,
    Connection,
    Statement,
    TransactionState,
    transaction_state,
)
from tests.raising import raises


class Told:
    """In place of a driver: it notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.cursors: list[Any] = []
        self.rows: list[tuple[Any, ...]] = []

    def cursor(self, **options: Any) -> Any:
        """A cursor that answers with all rows."""
        cursor = SimpleNamespace(
            options=options,
            closed=False,
            execute=lambda *given: self.told.append(given),
            executemany=lambda *given: self.told.append(("many", *given)),
            fetchone=lambda: self.rows[0] if self.rows else None,
            fetchall=lambda: self.rows,
            description=[("first", "type"), ("second", "type")],
        )
        made = Cursor(cursor, self.rows)
        self.cursors.append(made)
        return made


class Cursor:
    """A cursor of `Told`."""

    def __init__(self, inner: Any, rows: list[tuple[Any, ...]]) -> None:
        self.__dict__.update(vars(inner))
        self._rows = rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self._rows)

    def close(self) -> None:
        """Once."""
        self.closed = True


def connected(sqlite: bool) -> tuple[Told, Connection]:
    raw = Told()
    return raw, Connection(raw, sqlite)


# --- tables ---


@pytest.mark.parametrize("sqlite", [True, False])
@pytest.mark.parametrize("if_needed", [True, False])
@pytest.mark.parametrize("table", COLUMNS)
def test_a_table_is_made_with_its_indexes(sqlite: bool, if_needed: bool, table: str) -> None:
    raw, connection = connected(sqlite)
    create_table(connection, table, if_needed=if_needed)
    (first, values), *others = raw.told
    word = "IF NOT EXISTS " if if_needed else ""
    assert first.startswith(f"CREATE TABLE {word}{table} (") and values == {}
    alone = sqlite and table in ("takifugu_segments", "takifugu_cells", "takifugu_digests")
    assert first.endswith("\n) WITHOUT ROWID" if alone else "\n)")
    if table == EVENTS:
        assert ("seq INTEGER NOT NULL" if sqlite else "seq BIGINT NOT NULL") in first
    if table == DIGESTS:
        assert ("content BLOB NOT NULL" if sqlite else "content BYTEA NOT NULL") in first
    assert "{" not in first
    due = [name for name, what in INDEXES.items() if what.partition(" ")[0] == table]
    assert [text for text, _ in others] == [
        f"CREATE {'UNIQUE ' * (name in UNIQUE)}INDEX IF NOT EXISTS {name} ON {INDEXES[name]}"
        for name in due
    ]
    create_table(connection, table)
    assert raw.told[-1 - len(others)][0].startswith(f"CREATE TABLE {table} (")
    assert all(cursor.closed for cursor in raw.cursors)


def test_tables_that_can_be_rebuilt_are_replaced_by_empty_ones() -> None:
    raw, connection = connected(True)
    recreate(connection)
    derived = [f"takifugu_{name}" for name in ("accounts", "segments", "cells", "digests")]
    texts = [text for text, _ in raw.told]
    assert texts[:4] == [f"DROP TABLE IF EXISTS {name}" for name in derived]
    made = [text.split()[2] for text in texts if text.startswith("CREATE TABLE")]
    assert made == derived and set(BY_KEY_ALONE) < set(derived)


@pytest.mark.parametrize("name", INDEXES)
def test_an_index_is_made_once(name: str) -> None:
    raw = sqlite3.connect(":memory:", isolation_level=None)
    connection = Connection(raw, True)
    for table in (schema.EVENTS, schema.ACCOUNTS):
        create_table(connection, table)
    raw.execute(f"DROP INDEX {name}")
    for _ in range(2):
        create_index(connection, name)
    found = raw.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)).fetchall()
    assert len(found) == 1 and ("UNIQUE" in found[0][0]) is (name in UNIQUE)
    raw.close()


def test_the_tables_of_a_database_are_known_by_name() -> None:
    raw = sqlite3.connect(":memory:", isolation_level=None)
    connection = Connection(raw, True)
    assert table_names(connection) == set()
    raw.execute("CREATE TABLE one (x INTEGER PRIMARY KEY AUTOINCREMENT)")  # and sqlite_sequence
    raw.execute("CREATE INDEX no_table ON one (x)")
    raw.execute("CREATE TABLE sqlitelike (x)")
    assert table_names(connection) == {"one", "sqlitelike"}
    raw.close()


# --- steps that were applied ---


@pytest.fixture
def steps() -> Iterator[sqlite3.Connection]:
    raw = sqlite3.connect(":memory:", isolation_level=None)
    raw.execute("CREATE TABLE steps (place INTEGER, name TEXT)")
    yield raw
    raw.close()


def applied(raw: sqlite3.Connection, *names: str, table: str = "steps", sqlite: bool = True) -> int:
    raw.execute("DELETE FROM steps")
    for place, name in reversed(list(enumerate(names))):
        raw.execute("INSERT INTO steps VALUES (?, ?)", (place, name))
    store: Any = SimpleNamespace(sqlite=sqlite, name="some.ledger")
    return applied_steps(Connection(raw, True), store, table, ["one", "two", "three"])


def test_steps_are_counted_in_their_order(steps: sqlite3.Connection) -> None:
    for many in range(4):
        assert applied(steps, *("one", "two", "three")[:many]) == many
    for wrong in (("two",), ("one", "three"), ("two", "one"), ("one", "one")):
        with raises(NotALedger, reason="order") as told:
            applied(steps, *wrong)
        assert "'some.ledger'" in str(told.value)
    for later in (("one", "two", "three", "four"), ("four", "one"), ("one", "five", "four")):
        first = next(name for name in later if name in ("four", "five"))
        with raises(NewerLedger, field=first) as newer:
            applied(steps, *later)
        assert f"it has {first!r}" in str(newer.value)


def test_a_file_of_something_else_is_refused_and_a_server_may_have_other_tables(
    steps: sqlite3.Connection,
) -> None:
    with raises(NotALedger, reason="foreign"):
        applied(steps, table="none")
    assert applied(steps, table="none", sqlite=False) == 0
    empty = sqlite3.connect(":memory:")
    store: Any = SimpleNamespace(sqlite=True, name="some.ledger")
    assert applied_steps(Connection(empty, True), store, "none", ["one"]) == 0
    empty.close()


# --- statements ---


@pytest.mark.parametrize("sqlite", [True, False])
def test_rows_have_the_names_of_their_columns(sqlite: bool) -> None:
    raw, connection = connected(sqlite)
    statement, values = Statement("SELECT :a"), {"a": 5}
    text = "SELECT :a" if sqlite else "SELECT %(a)s"
    assert statement.one(connection, values) is None
    assert statement.all(connection, values) == [] == list(statement.stream(connection, values))
    raw.rows += [(1, 2), (3, 4)]
    one = statement.one(connection, values)
    assert (one.first, one.second) == (1, 2)
    assert type(one) is type(statement.one(connection, values))  # made once for a statement
    assert [row._asdict() for row in statement.all(connection, values)] == [
        {"first": 1, "second": 2},
        {"first": 3, "second": 4},
    ]
    assert [row.second for row in statement.stream(connection, values)] == [2, 4]
    assert raw.told == [(text, values)] * 7
    assert all(cursor.closed for cursor in raw.cursors) and len(raw.cursors) == 7


def test_rows_of_a_server_come_a_few_at_a_time() -> None:
    raw, connection = connected(False)
    raw.rows += [(1, 2), (3, 4)]
    statement = Statement("SELECT 1")
    streams = [statement.stream(connection, {}) for _ in range(2)]
    assert [next(one).first for one in streams] == [1, 1]
    names = [cursor.options["name"] for cursor in raw.cursors]
    assert len(set(names)) == 2 and all(name.startswith("takifugu_rows_") for name in names)
    assert [cursor.itersize for cursor in raw.cursors] == [FEW, FEW]
    assert not any(cursor.closed for cursor in raw.cursors)
    for one in streams:
        one.close()
    assert all(cursor.closed for cursor in raw.cursors)
    raw, connection = connected(True)
    list(statement.stream(connection, {}))
    assert raw.cursors[0].options == {} and not hasattr(raw.cursors[0], "itersize")


def test_something_is_written_once_or_for_each_or_not_at_all() -> None:
    raw, connection = connected(True)
    statement = Statement("INSERT INTO t VALUES (:a)")
    statement.run(connection, {"a": 1})
    statement.run(connection, [])
    statement.run(connection, [{"a": 2}, {"a": 3}])
    statement.run(connection, {})
    text = statement.text(connection)
    assert raw.told == [
        (text, {"a": 1}),
        ("many", text, [{"a": 2}, {"a": 3}]),
        (text, {}),
    ]
    assert len(raw.cursors) == 3 and all(cursor.closed for cursor in raw.cursors)


def test_a_colon_is_a_value_only_before_a_name() -> None:
    server = Connection(None, False)
    text = "SELECT x::text, ':1', y:z FROM t WHERE a = :a_1 AND b IN (:b,:c)"
    expected = "SELECT x::text, ':1', y:z FROM t WHERE a = %(a_1)s AND b IN (%(b)s,%(c)s)"
    assert Statement(text).text(server) == expected


def test_a_transaction_begins_with_nothing_known() -> None:
    one, two = TransactionState(), TransactionState()
    assert vars(one) == {
        "head": None,
        "locked": False,
        "tree": None,
        "seen": None,
        "unwitnessed": False,
        "shown": 0,
        "events": {},
    }
    assert one.events is not two.events
    connection = Connection("raw", True)
    assert transaction_state(connection) is connection.state == one
    assert connection.state is not Connection("raw", True).state
    assert repr(connection) == "Connection(raw='raw', sqlite=True, schema='')"
    assert connection != Connection("raw", True)


# --- addresses ---

SERVER = "postgresql://ann:s3cret@host:5432/ledger?sslmode=require"


@pytest.mark.parametrize(
    ("where", "address"),
    [
        ("ward.ledger", Address("ward.ledger")),
        (Path("a/ward.ledger"), Address("a/ward.ledger")),
        (Path("sqlite:///x"), Address("sqlite:/x")),
        ("sqlite:///ward.ledger", Address("ward.ledger")),
        ("sqlite:////srv/ward.ledger?mode=ro", Address("/srv/ward.ledger")),
        ("SQLite+pysqlite:///ward.ledger", Address("ward.ledger")),
        (SERVER, Address(SERVER.replace("s3cret", "***"), SERVER)),
        ("postgres://ann@host/l", Address("postgresql://ann@host/l", "postgresql://ann@host/l")),
        (
            "PostgreSQL+psycopg://h/l?Password=a&user=b",
            Address("postgresql://h/l?Password=***&user=b", "postgresql://h/l?Password=a&user=b"),
        ),
        (
            "postgresql://ann:p@ss@h/l?x=1&password=q",
            Address(
                "postgresql://ann:***@h/l?x=1&password=***",
                "postgresql://ann:p@ss@h/l?x=1&password=q",
            ),
        ),
    ],
)
def test_where_a_ledger_is(where: str | Path, address: Address) -> None:
    found = address_of(where)
    assert found == address and found.sqlite is (address.url == "")


@pytest.mark.parametrize(
    ("where", "reason", "words"),
    [
        (None, "address", "is a NoneType"),
        (7, "address", "is a int"),
        ("", "memory", "is ''"),
        (":memory:", "memory", "is ':memory:'"),
        ("sqlite://", "backend", "is kept by sqlite"),
        ("sqlite:///", "backend", "is kept by sqlite"),
        ("sqlite:///?x", "backend", "is kept by sqlite"),
        ("sqlite:///:memory:", "backend", "is kept by sqlite"),
        ("sqlite://host/x", "backend", "is kept by sqlite"),
        ("mysql+driver://host/x", "backend", "is kept by mysql"),
        ("7up://host/x", "address", "is not an address"),
        ("a\udcff", "text", "UTF-8"),
    ],
)
def test_where_no_ledger_can_be(where: Any, reason: str, words: str) -> None:
    with raises(InvalidFile, field="ledger", reason=reason) as told:
        address_of(where)
    assert words in str(told.value)


def test_tables_of_a_new_ledger_are_kept_as_they_are_read(folder: Path) -> None:
    open_ledger(folder / "ward.ledger").close()
    with sqlite3.connect(folder / "ward.ledger") as raw:
        found = dict(raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'"))
    raw.close()
    alone = {name for name, text in found.items() if "WITHOUT ROWID" in text}
    assert alone == {"takifugu_segments", "takifugu_cells", "takifugu_digests"}
    assert len(found) == 7
