"""A store: its transactions, its connections, its file, its log, and its process."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import (
    LedgerDamaged,
    LedgerUnavailable,
)
from takifugu.ledger import open_ledger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.database import (
    MAX_CONNECTIONS,
    MAX_IDLE_CONNECTIONS,
    Connections,
    Statement,
    Store,
    open_sqlite,
)
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a budget, closed."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
    return folder / "ward.ledger"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store(path, read_only=False, wait=5)
    yield opened
    opened.guard = None
    opened.close()


def head_of(store: Store) -> Anchor:
    with store.unguarded() as connection:
        last = chain.head(connection)
    return Anchor(last.seq, last.hash)


# --- transactions and the witness ---


def test_totals_are_not_changed_without_an_event(store: Store) -> None:
    before = head_of(store)
    with raises(LedgerDamaged, reason="totals"), store.writing() as connection:
        chain.totals(connection).put(connection, {b"p" * 16: b"m" * 32})
    assert head_of(store) == before
    with store.writing() as connection:
        assert not chain.totals(connection).unsaved  # read, and left as they were


# --- who may write, and from where ---


def test_who_writes_holds_the_only_right_to_from_the_beginning(store: Store, path: Path) -> None:
    other = Store(path, read_only=False, wait=0)
    with store.writing():
        with raises(LedgerUnavailable, reason="locked"), other.writing():
            pass
        assert head_of(other).seq == 2  # and blocks nobody who reads
    with other.writing(), store.reading():
        pass
    other.close()


def test_another_process_is_told_to_open_its_own(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    statement = Statement("SELECT 1 AS one")
    assert store.one(statement, {}).one == 1
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -5)
        for how in (store.writing, store.unguarded, store.reading):
            with raises(LedgerUnavailable, reason="process"), how():
                pass
        with raises(LedgerUnavailable, reason="process"):
            store.one(statement, {})
        store.close()  # the parent goes on with its connections
    assert store.one(statement, {}).one == 1


def test_a_file_that_takes_the_place_of_another_is_refused_for_one_row_too(
    store: Store, path: Path
) -> None:
    statement = Statement("SELECT max(seq) AS last FROM takifugu_events")
    assert store.one(statement, {}).last == 2
    path.rename(path.with_name("away"))
    for replaced in (False, True):
        if replaced:
            path.write_bytes(path.with_name("away").read_bytes())
        for ask in (lambda: store.one(statement, {}), lambda: head_of(store)):
            with raises(LedgerUnavailable, reason="replaced"):
                ask()
    path.with_name("away").replace(path)
    assert store.one(statement, {}).last == 2


def test_what_is_written_to_a_file_without_a_name_is_not_acknowledged(
    store: Store, path: Path
) -> None:
    with raises(LedgerUnavailable, reason="replaced"), store.writing():
        path.rename(path.with_name("away"))
    path.with_name("away").rename(path)
    with store.unguarded():
        path.rename(path.with_name("away"))  # who reads has seen one moment of it
    path.with_name("away").rename(path)


# --- the database of a ledger ---


def test_a_charge_after_a_failure_is_made_by_a_sound_connection(path: Path) -> None:
    with open_ledger(path) as ledger:
        with raises(LedgerUnavailable, reason="unreachable"), ledger._store.writing() as connection:
            connection.raw.execute("SELECT nothing FROM nowhere")
        with raises(LedgerUnavailable, reason="unreachable"):
            ledger._store.one(Statement("SELECT nothing FROM nowhere"), {})
        ledger.charge(charge("0.25"), DOUBLING)
        assert ledger.verify().sound


def test_a_commit_is_on_disk_when_it_returns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever SQLite was built to do where nobody asks for it."""
    connect = sqlite3.connect

    def careless(*where: Any, **how: Any) -> sqlite3.Connection:
        raw: sqlite3.Connection = connect(*where, **how)
        raw.execute("PRAGMA synchronous=OFF")
        return raw

    monkeypatch.setattr(sqlite3, "connect", careless)
    opened = open_sqlite(folder / "a b.db", read_only=False, wait=2.5)
    with opened.transaction(reading=True) as one:
        named = {"journal_mode": "wal", "synchronous": 2, "busy_timeout": 2500}
        for name, value in named.items():
            assert one.raw.execute(f"PRAGMA {name}").fetchone()[0] == value
    opened.close()


@pytest.mark.parametrize("umask", [0, 0o022, 0o377])
def test_the_file_of_a_new_ledger_is_its_owners_alone(folder: Path, umask: int) -> None:
    (folder / "empty.ledger").touch()
    (folder / "empty.ledger").chmod(0o644)
    before = os.umask(umask)
    try:
        for name in ("new.ledger", "empty.ledger"):
            open_ledger(folder / name, witness=False).close()
            assert (folder / name).stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


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
