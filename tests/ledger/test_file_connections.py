"""Connections to a ledger in a file: how each is made ready, and which files are refused."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidFile, LedgerUnavailable
from takifugu.ledger.storage.database import _check_place, open_sqlite
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


# --- places ---


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
