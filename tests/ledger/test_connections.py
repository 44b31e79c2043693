"""Connections of a ledger: how many are kept, which are used again, what a server is told."""

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import LedgerUnavailable
from takifugu.ledger.storage.connections import KEPT, MOST, Connections
from takifugu.ledger.storage.sqlite_connections import open_sqlite
from takifugu.ledger.storage.statement import Statement, insert
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


def test_a_connection_serves_again_after_it_served(kept: Opened) -> None:
    for value in range(3):
        with kept.all.transaction(reading=False) as connection:
            connection.raw.execute("INSERT INTO t VALUES (?)", (value,))
    assert rows(kept) == [0, 1, 2] and len(kept.made) == 1
    assert kept.all.one(Statement("SELECT max(x) AS x FROM t"), {}).x == 2 and len(kept.made) == 1


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
    for _ in range(MOST):
        entered.append(kept.all.transaction(reading=True))
        entered[-1].__enter__()
    assert kept.alive() == MOST
    with raises(LedgerUnavailable, reason="timeout"), kept.all.transaction(reading=True):
        pass
    with raises(LedgerUnavailable, reason="timeout"):
        kept.all.one(Statement("SELECT 1 AS x"), {})
    for one in entered:
        one.__exit__(None, None, None)
    assert kept.alive() == KEPT and rows(kept) == []
    kept.all.close()
    assert kept.alive() == 0


def test_one_in_use_is_closed_when_its_transaction_ends(kept: Opened) -> None:
    with kept.all.transaction(reading=False) as connection:
        connection.raw.execute("INSERT INTO t VALUES (7)")
        kept.all.close()
        assert kept.alive() == 1
    assert kept.alive() == 0
    assert Opened(kept.path).all.one(Statement("SELECT x FROM t"), {}).x == 7


def test_a_transaction_to_read_does_not_keep_others_from_writing(kept: Opened) -> None:
    with kept.all.transaction(reading=True), kept.all.transaction(reading=False) as connection:
        connection.raw.execute("INSERT INTO t VALUES (1)")
    with (
        kept.all.transaction(reading=False),
        pytest.raises(sqlite3.OperationalError),
        kept.all.transaction(reading=False),
    ):
        pass


def test_what_went_wrong_first_is_what_is_told(kept: Opened) -> None:
    """Also where nothing can be undone any more, or the connection cannot even be closed."""

    def closed_meanwhile() -> None:
        with kept.all.transaction(reading=True) as connection:
            connection.raw.close()
            raise KeyError("first")

    with pytest.raises(KeyError, match="first"):
        closed_meanwhile()
    assert rows(kept) == []

    def close() -> None:
        raise sqlite3.OperationalError("second")

    stuck = SimpleNamespace(execute=lambda _: None, close=close)
    begin = ("BEGIN", "BEGIN IMMEDIATE")
    found = Connections(lambda: stuck, sqlite=True, errors=(sqlite3.Error,), begin=begin, wait=0.01)
    with found.transaction(reading=True) as connection:
        assert connection.raw is stuck
    found.close()


def test_connections_are_taken_and_put_back_under_a_lock(kept: Opened) -> None:
    """Threads share them: no two may find the same one."""
    held = list[str]()

    class Lock:
        def __enter__(self) -> None:
            held.append("held")

        def __exit__(self, *_: object) -> None:
            held.append("free")

    class Idle(list[Any]):
        def pop(self, *place: Any) -> Any:
            held.append("taken")
            return super().pop(*place)

        def append(self, raw: Any) -> None:
            held.append("put back")
            super().append(raw)

    lock: Any = Lock()
    kept.all._lock, kept.all._idle = lock, Idle(kept.all._idle)
    assert rows(kept) == []
    assert held == ["held", "taken", "free", "held", "put back", "free"]
    held.clear()
    kept.all.close()
    assert held == ["held", "free"] and kept.alive() == 0


def test_a_row_is_added_by_the_names_of_its_columns(kept: Opened) -> None:
    """Also of those that are words of SQL."""
    with kept.all.transaction(reading=False) as connection:
        connection.raw.execute('CREATE TABLE u (a, "key", "order")')
        added = insert("u", "order", "key")
        added.run(connection, {"order": 1, "key": "k", "a": "left out"})
        row = Statement('SELECT a, "key" AS k, "order" AS o FROM u').one(connection, {})
    assert tuple(row) == (None, "k", 1)


@pytest.mark.parametrize(("wait", "seconds"), [(0.0, 30), (30.0, 30), (45.0, 45)])
def test_who_waits_for_a_connection_to_a_file_waits_half_a_minute_or_longer(
    folder: Path, wait: float, seconds: float
) -> None:
    """However short the wait for another writer is: threads of this process take turns."""
    found = open_sqlite(folder / "some.db", read_only=False, wait=wait)
    assert found._wait == seconds
