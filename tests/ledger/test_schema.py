"""Tables, statements and addresses: what each database is told, and what it answers."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import InvalidFile, NewerLedger, NotALedger
from takifugu.ledger import open_ledger
from takifugu.ledger.storage.database import (
    Address,
    Connection,
    address_of,
)
from takifugu.ledger.storage.migrations import applied_steps
from takifugu.ledger.storage.schema import (
    table_names,
)
from tests.raising import raises

# --- tables ---


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
