"""A store: its transactions and what they ask of the witness, its file, its log, its process."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import (
    LedgerDamaged,
    LedgerUnavailable,
    LedgerUnwritable,
)
from takifugu.ledger import open_ledger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage import store as stores
from takifugu.ledger.storage.statement import Connection, Statement, transaction_state
from takifugu.ledger.storage.store import ADVISORY_LOCK, Store
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class Noting:
    """In place of a guard: it notes what it is asked, in order, and answers as it is told."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.recorded: Anchor | None = Anchor(2, "recorded")
        self.shown: Anchor | None = None
        self.witness: Any = SimpleNamespace(close=lambda: self.asked.append(("close",)))

    def noted(self) -> Anchor | None:
        """What is recorded."""
        self.asked.append(("noted",))
        return self.recorded

    def begin(self, connection: Connection) -> None:
        """Before anything is written."""
        self.asked.append(("begin", chain.head(connection).seq))
        transaction_state(connection).seen = self.recorded

    def compare(self, connection: Connection, noted: Anchor | None) -> None:
        """Before anything is read."""
        self.asked.append(("compare", chain.head(connection).seq, noted))

    def unknown(self, connection: Connection, noted: Anchor | None) -> Anchor | None:
        """What is to be recorded before it is shown."""
        self.asked.append(("unknown", chain.head(connection).seq, noted))
        return self.shown

    def advance(self, event: Anchor, seen: Anchor | None, reading: Callable[[], Any]) -> None:
        """After a commit, by a transaction of its own."""
        with reading() as connection:
            self.asked.append(("advance", event, seen, chain.head(connection).seq))


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


def guarded(store: Store) -> Noting:
    guard: Any = Noting()
    store.guard = guard
    noting: Noting = guard
    return noting


def head_of(store: Store) -> Anchor:
    with store.unguarded() as connection:
        last = chain.head(connection)
    return Anchor(last.seq, last.hash)


# --- transactions and the witness ---


def test_what_is_written_is_compared_before_and_recorded_after(store: Store) -> None:
    guard, before = guarded(store), head_of(store)
    with store.writing() as connection:
        last = chain.head(connection, lock=True)
        chain.append(connection, last, "policy", {"dataset": "ward"}, MOMENT)
        assert guard.asked == [("begin", before.seq)]
    after = head_of(store)
    assert after.seq == before.seq + 1
    assert guard.asked[1:] == [("advance", after, Anchor(2, "recorded"), after.seq)]


def test_an_event_that_others_wrote_is_recorded_by_who_finds_it(store: Store) -> None:
    """Also where nothing is written, as the receipt of a repeated charge acknowledges it."""
    guard, before = guarded(store), head_of(store)
    with store.writing() as connection:
        chain.head(connection, lock=True)
    assert guard.asked[1:] == [("advance", before, Anchor(2, "recorded"), before.seq)]
    guard.asked.clear()
    guard.recorded = before
    with store.writing() as connection:
        chain.head(connection, lock=True)
    assert guard.asked == [("begin", before.seq)]  # it is recorded already
    guard.asked.clear()
    guard.recorded = None
    with store.writing() as connection:
        transaction_state(connection).head = None  # of a ledger that has no event yet
    assert guard.asked == [("begin", before.seq)]


def test_nothing_is_recorded_of_what_was_undone(store: Store) -> None:
    guard, before = guarded(store), head_of(store)

    def half() -> None:
        with store.writing() as connection:
            last = chain.head(connection, lock=True)
            chain.append(connection, last, "policy", {"dataset": "ward"}, MOMENT)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half()
    assert guard.asked == [("begin", before.seq)] and head_of(store) == before


def test_totals_are_not_changed_without_an_event(store: Store) -> None:
    guard, before = guarded(store), head_of(store)
    with raises(LedgerDamaged, reason="totals"), store.writing() as connection:
        chain.totals(connection).put(connection, {b"p" * 16: b"m" * 32})
    assert guard.asked == [("begin", before.seq)] and head_of(store) == before
    store.guard = None
    with store.writing() as connection:
        assert not chain.totals(connection).unsaved  # read, and left as they were


def test_a_reader_compares_what_was_recorded_before_it_reads(store: Store) -> None:
    guard, last = guarded(store), head_of(store)
    with store.reading() as connection:
        assert guard.asked == [("noted",), ("compare", last.seq, guard.recorded)]
        assert transaction_state(connection).seen == guard.recorded
    assert guard.asked[2:] == [("unknown", last.seq, guard.recorded)]
    guard.asked.clear()
    guard.shown = Anchor(7, "shown")
    with store.reading():
        pass
    assert guard.asked[2:] == [
        ("unknown", last.seq, guard.recorded),
        ("advance", guard.shown, guard.recorded, last.seq),
    ]


def test_what_is_shown_meanwhile_is_recorded_at_once_and_only_once(store: Store) -> None:
    guard, last = guarded(store), head_of(store)
    with store.reading() as connection:
        guard.asked.clear()
        store.note(connection)
        assert guard.asked == [("unknown", last.seq, guard.recorded)]
        assert transaction_state(connection).seen == guard.recorded
        guard.asked.clear()
        guard.shown = Anchor(7, "shown")
        store.note(connection)
        assert guard.asked == [
            ("unknown", last.seq, guard.recorded),
            ("advance", guard.shown, guard.recorded, last.seq),
        ]
        assert transaction_state(connection).seen == guard.shown
        guard.asked.clear()
        guard.shown = None
    assert guard.asked == [("unknown", last.seq, Anchor(7, "shown"))]


def test_without_a_witness_nothing_is_asked(store: Store) -> None:
    with store.reading() as connection:
        store.note(connection)
        assert transaction_state(connection).seen is None
    with store.writing() as connection:
        chain.head(connection, lock=True)


def test_a_closed_store_closes_its_connections_and_empties_its_log(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, order = Store(path, read_only=False, wait=5), list[str]()
    monkeypatch.setattr(store, "empty_log", lambda: order.append("log"))
    monkeypatch.setattr(store._connections, "close", lambda: order.append("closed"))
    store.close()
    assert order == ["closed", "log"]


def test_a_closed_store_closes_its_witness(path: Path) -> None:
    store = Store(path, read_only=True, wait=5)
    guard = guarded(store)
    store.close()
    assert guard.asked == [("close",)]
    guard.witness = None
    store.close()
    assert guard.asked == [("close",)]


# --- who may write, and from where ---


def test_a_store_that_only_reads_writes_nothing(path: Path) -> None:
    store = Store(path, read_only=True, wait=5)
    guard = guarded(store)
    with raises(LedgerUnwritable, reason="read-only") as told, store.writing():
        pass
    assert repr(str(path)) in str(told.value) and guard.asked == []
    store.guard = None
    store.close()


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
        closed = list[str]()
        patch.setattr(store, "empty_log", lambda: closed.append("log"))
        patch.setattr(store._connections, "close", lambda: closed.append("connections"))
        store.close()
        assert closed == []  # the parent goes on with them
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
    guard = guarded(store)
    with raises(LedgerUnavailable, reason="replaced"), store.writing() as connection:
        chain.head(connection, lock=True)
        path.rename(path.with_name("away"))
    assert [what for what, *_ in guard.asked] == ["begin"]  # and nothing is recorded
    path.with_name("away").rename(path)
    store.guard = None
    with raises(LedgerUnavailable, reason="replaced"), store.writing():
        path.rename(path.with_name("away"))
    path.with_name("away").rename(path)
    with store.unguarded():
        path.rename(path.with_name("away"))  # who reads has seen one moment of it
    path.with_name("away").rename(path)


def test_a_server_has_no_file_that_could_be_replaced() -> None:
    named: Any = SimpleNamespace(sqlite=False, name="postgresql://ann@host/ledger", _file=(1, 2))
    Store._refuse_replaced(named)
    assert named._file == (1, 2)


@pytest.mark.parametrize(
    ("content", "sqlite", "new"),
    [(None, True, True), (b"", True, True), (b"x", True, False), (None, False, False)],
)
def test_a_ledger_is_new_where_there_is_no_file_or_an_empty_one(
    tmp_path: Path, content: bytes | None, sqlite: bool, new: bool
) -> None:
    path = tmp_path / "a.ledger"
    if content is not None:
        path.write_bytes(content)
    named: Any = SimpleNamespace(sqlite=sqlite, name=str(path))
    found: Any = Store.is_new
    assert found.fget(named) is new


@pytest.mark.parametrize("sqlite", [False, True])
def test_one_process_at_a_time_makes_the_tables_of_a_server(sqlite: bool) -> None:
    asked = list[tuple[str, Any]]()
    cursor = SimpleNamespace(
        execute=lambda text, values: asked.append((text, values)), close=lambda: None
    )
    named: Any = SimpleNamespace(sqlite=sqlite)
    raw = SimpleNamespace(cursor=lambda: cursor)
    Store.only_one(named, Connection(raw, sqlite))
    assert ADVISORY_LOCK == 7_472_696_667  # what other versions lock
    assert asked == ([] if sqlite else [("SELECT pg_advisory_xact_lock(7472696667)", {})])


# --- the log beside a file ---


@pytest.mark.parametrize(
    ("size", "read_only", "sqlite", "emptied"),
    [
        (9, False, True, True),
        (0, False, True, False),
        (9, True, True, False),
        (9, False, False, False),
        (None, False, True, False),
    ],
)
def test_a_log_is_emptied_at_once_or_left(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int | None,
    read_only: bool,
    sqlite: bool,
    emptied: bool,
) -> None:
    """Nobody waits for others that read it: who comes later empties it."""
    path, asked = folder / "a b.ledger", list[Any]()
    if size is not None:
        Path(f"{path}-wal").write_bytes(bytes(size))

    def connect(address: str, **options: Any) -> Any:
        asked.append((address, options))
        return SimpleNamespace(execute=asked.append, close=lambda: asked.append("closed"))

    monkeypatch.setattr(sqlite3, "connect", connect)
    named: Any = SimpleNamespace(sqlite=sqlite, name=str(path), read_only=read_only)
    Store.empty_log(named)
    told = [
        (f"{path.as_uri()}?mode=rw", {"uri": True, "timeout": 0}),
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "closed",
    ]
    assert asked == (told if emptied else [])


def test_a_log_that_cannot_be_emptied_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.ledger-wal").write_bytes(b"x")

    def locked(*_: Any, **__: Any) -> Any:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(sqlite3, "connect", locked)
    named: Any = SimpleNamespace(sqlite=True, name=str(folder / "a.ledger"), read_only=False)
    Store.empty_log(named)


# --- the database of a ledger ---


def test_a_store_is_opened_as_it_was_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
    from takifugu.ledger.storage import postgresql_connections as server

    asked = list[Any]()

    def opened(*where: Any, **how: Any) -> Any:
        asked.append((*where, how))

    monkeypatch.setattr(stores, "open_sqlite", opened)
    monkeypatch.setattr(server, "open_postgresql", opened)
    address = "postgresql://ann:secret@host/ledger"
    for where in (folder / "a.ledger", address):
        for read_only, wait in ((True, 3.5), (False, 4.5)):
            made = Store(where, read_only=read_only, wait=wait)
            place = where if isinstance(where, Path) else address
            assert asked.pop() == (place, {"read_only": read_only, "wait": wait})
            assert (made.read_only, made.sqlite) == (read_only, where != address)
            assert made.name == str(where).replace("secret", "***")
            assert (made.guard, made.identity, made._file) == (None, "", None)


def test_a_charge_after_a_failure_is_made_by_a_sound_connection(path: Path) -> None:
    with open_ledger(path) as ledger:
        with raises(LedgerUnavailable, reason="unreachable"), ledger._store.writing() as connection:
            connection.raw.execute("SELECT nothing FROM nowhere")
        with raises(LedgerUnavailable, reason="unreachable"):
            ledger._store.one(Statement("SELECT nothing FROM nowhere"), {})
        ledger.charge(charge("0.25"), DOUBLING)
        assert ledger.verify().sound
