"""Tables, statements and addresses: what each database is told, and what it answers."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidFile
from takifugu.ledger import open_ledger
from takifugu.ledger.storage.database import (
    Address,
    address_of,
)
from tests.raising import raises

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
