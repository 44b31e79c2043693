"""Connections of a ledger: how many are kept, which are used again, what a server is told."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerUnavailable
from takifugu.ledger.storage.database import (
    MAX_CONNECTIONS,
    MAX_IDLE_CONNECTIONS,
    Connections,
    Statement,
)
from tests.raising import raises

pytestmark = pytest.mark.nightly


class Opened:
    """Connections to one file, which are counted."""

    def __init__(self, path: Path, wait: float = 0.01) -> None:
        self.path, self.made = path, list[sqlite3.Connection]()
        begin = ("BEGIN", "BEGIN IMMEDIATE")
        self.all = Connections(
            self.connect, sqlite=True, errors=(sqlite3.Error,), begin=begin, wait=wait
        )

    def connect(self) -> sqlite3.Connection:
        """One more."""
        raw = sqlite3.connect(self.path, isolation_level=None, timeout=0)
        self.made.append(raw)
        return raw

    def alive(self) -> int:
        """How many are open."""
        found = 0
        for raw in self.made:
            try:
                raw.execute("SELECT 1")
                found += 1
            except sqlite3.ProgrammingError:
                pass
        return found


@pytest.fixture
def kept(folder: Path) -> Opened:
    found = Opened(folder / "some.db")
    with found.all.transaction(reading=False) as connection:
        connection.raw.execute("CREATE TABLE t (x)")
    return found


def rows(kept: Opened) -> list[int]:
    with kept.all.transaction(reading=True) as connection:
        return [row.x for row in Statement("SELECT x FROM t ORDER BY x").all(connection, {})]


def test_what_an_error_leaves_is_undone_and_the_connection_is_sound(kept: Opened) -> None:
    def half() -> None:
        with kept.all.transaction(reading=False) as connection:
            connection.raw.execute("INSERT INTO t VALUES (1)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert rows(kept) == [] and len(kept.made) == 1 and kept.alive() == 1


def test_one_that_failed_is_closed_and_with_it_all_that_wait(kept: Opened) -> None:
    with kept.all.transaction(reading=True), kept.all.transaction(reading=True):
        pass
    assert len(kept.made) == 2 == kept.alive()  # two wait
    with pytest.raises(sqlite3.Error):
        kept.all.one(Statement("SELECT x FROM nowhere"), {})
    assert kept.alive() == 0
    with (
        pytest.raises(sqlite3.Error),
        kept.all.transaction(reading=True) as connection,
    ):
        connection.raw.close()  # neither committed nor undone
    assert rows(kept) == [] and kept.alive() == 1


def test_some_are_kept_and_no_more_are_open_than_there_may_be(kept: Opened) -> None:
    entered: list[Any] = []
    for _ in range(MAX_CONNECTIONS):
        entered.append(kept.all.transaction(reading=True))
        entered[-1].__enter__()
    assert kept.alive() == MAX_CONNECTIONS
    with raises(LedgerUnavailable, reason="timeout"), kept.all.transaction(reading=True):
        pass
    with raises(LedgerUnavailable, reason="timeout"):
        kept.all.one(Statement("SELECT 1 AS x"), {})
    for one in entered:
        one.__exit__(None, None, None)
    assert kept.alive() == MAX_IDLE_CONNECTIONS and rows(kept) == []
    kept.all.close()
    assert kept.alive() == 0
