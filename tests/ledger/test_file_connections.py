"""Connections to a ledger in a file: how each is made ready, and which files are refused."""

import errno
import os
import sqlite3
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from takifugu.errors import InvalidFile, LedgerUnavailable, NotALedger
from takifugu.ledger.storage.database import MIN_FILE_BYTES, Statement, _check_place, open_sqlite
from tests.raising import raises

pytestmark = pytest.mark.nightly


def pragma(raw: sqlite3.Connection, name: str) -> Any:
    return raw.execute(f"PRAGMA {name}").fetchone()[0]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_connection_writes_a_log_and_waits_for_the_disk(
    folder: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    """Whatever SQLite was built to do where nobody says it."""
    path, connect = folder / "a b.db", sqlite3.connect

    def careless(*where: Any, **how: Any) -> sqlite3.Connection:
        raw: sqlite3.Connection = connect(*where, **how)
        raw.execute("PRAGMA synchronous=OFF")
        return raw

    monkeypatch.setattr(sqlite3, "connect", careless)
    found = open_sqlite(path, read_only=read_only, wait=2.5)
    if read_only:
        with pytest.raises(sqlite3.OperationalError):  # it makes no file
            found._idle_or_new()
        path.touch()
    raw = found._idle_or_new()
    assert path.exists() and found._sqlite is True
    assert pragma(raw, "journal_mode") == ("delete" if read_only else "wal")
    assert pragma(raw, "synchronous") == 2  # a commit is on disk when it returns
    assert pragma(raw, "cache_size") == -32000  # KiB
    assert pragma(raw, "busy_timeout") == 2500
    assert raw.isolation_level is None
    raw.close()


def test_who_only_reads_cannot_write(folder: Path) -> None:
    with open_sqlite(folder / "a.db", read_only=False, wait=1).transaction(reading=False) as one:
        one.raw.execute("CREATE TABLE t (x)")
    reader = open_sqlite(folder / "a.db", read_only=True, wait=1)
    with (
        pytest.raises(sqlite3.OperationalError, match="readonly"),
        reader.transaction(reading=False) as one,
    ):
        one.raw.execute("INSERT INTO t VALUES (1)")
    reader.close()


def test_who_reads_sees_one_moment_and_who_writes_holds_the_right_from_the_beginning(
    folder: Path,
) -> None:
    found = open_sqlite(folder / "a.db", read_only=False, wait=0)
    with found.transaction(reading=False) as one:
        one.raw.execute("CREATE TABLE t (x)")
    many = Statement("SELECT count(*) AS many FROM t")
    with found.transaction(reading=True) as reader:
        assert many.one(reader, {}).many == 0
        with found.transaction(reading=False) as writer:
            writer.raw.execute("INSERT INTO t VALUES (1)")
        assert many.one(reader, {}).many == 0
    with (
        found.transaction(reading=False),  # it has written nothing yet
        pytest.raises(sqlite3.OperationalError, match="locked"),
        found.transaction(reading=False),
    ):
        pass
    assert found.one(many, {}).many == 1
    found.close()


def test_a_connection_serves_whatever_thread_comes_next(folder: Path) -> None:
    found, seen = open_sqlite(folder / "a.db", read_only=False, wait=1), list[int]()
    one = Statement("SELECT 7 AS seven")
    found.one(one, {})
    other = Thread(target=lambda: seen.append(found.one(one, {}).seven))
    other.start()
    other.join()
    assert seen == [7]
    found.close()


# --- places ---


@pytest.mark.parametrize(
    ("size", "fine"),
    [
        (None, True),
        (0, True),
        (1, False),
        (MIN_FILE_BYTES - 1, False),
        (MIN_FILE_BYTES, True),
        (9999, True),
    ],
)
def test_a_file_that_is_too_small_for_a_database_is_none(
    folder: Path, size: int | None, fine: bool
) -> None:
    assert MIN_FILE_BYTES == 512
    path = folder / "a.db"
    if size is not None:
        path.write_bytes(bytes(size))
    if fine:
        _check_place(path)
        return
    with raises(NotALedger, reason="foreign") as told:
        _check_place(path)
    assert repr(str(path)) in str(told.value)


def test_a_ledger_is_a_file_in_a_folder(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "file").touch()
    for path, reason, words in (
        (folder, "special file", f"{folder} is a folder"),
        (folder / "pipe", "special file", f"{folder / 'pipe'} is a device or a pipe"),
        (folder / "none" / "a.db", "folder", f"would lie in {folder / 'none'}"),
        (folder / "file" / "a.db", "folder", f"would lie in {folder / 'file'}"),
    ):
        with raises(InvalidFile, field="ledger", reason=reason) as told:
            _check_place(path)
        assert words in str(told.value)
    _check_place(folder / "new.db")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), LedgerUnavailable, "cannot be read"),
        (OSError(errno.EIO, "Input/output error"), InvalidFile, "a.db: input/output error"),
        (OSError("Unheard Of"), InvalidFile, "a.db: cannot be used"),
    ],
)
def test_a_place_that_cannot_be_looked_at_is_told(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    kind: type[Exception],
    words: str,
) -> None:
    def fails(_: Path) -> bool:
        raise error

    monkeypatch.setattr(Path, "is_dir", fails)
    with pytest.raises(kind) as told:
        open_sqlite(folder / "a.db", read_only=False, wait=1)
    assert words in str(told.value) and told.value.__cause__ is error
    if kind is LedgerUnavailable:
        assert getattr(told.value, "reason", None) == "permission"
