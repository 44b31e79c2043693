"""Ledgers in a file: SQLite with a write-ahead log, synchronous on every commit."""

import sqlite3
from pathlib import Path
from time import monotonic, sleep

from takifugu.errors import InvalidFile, LedgerUnavailable, LedgerUnwritable, NotALedger
from takifugu.ledger.storage.connections import Connections

SMALLEST = 512  # bytes of a database; SQLite takes a smaller file for an empty one and fills it
AGAIN = 0.005  # seconds until what does not wait by itself is tried again


def open_sqlite(path: Path, *, read_only: bool, wait: float) -> Connections:
    """The connections to the ledger in a file; `InvalidFile` if it cannot be one."""
    _check_place(path)
    mode = "ro" if read_only else "rwc"
    address = f"{path.absolute().as_uri()}?mode={mode}"

    def connect() -> sqlite3.Connection:
        raw = sqlite3.connect(
            address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False
        )
        try:
            prepare(raw)
        except BaseException:
            raw.close()
            raise
        return raw

    def prepare(raw: sqlite3.Connection) -> None:
        if not read_only:
            mode = _write_ahead(raw, wait)
            if mode != "wal":
                raise LedgerUnwritable(
                    f"ledger {str(path)!r}: SQLite offers journal mode {mode!r} here and a"
                    " charge needs a write-ahead log; use a local disk",
                    reason="journal",
                )
        raw.execute("PRAGMA synchronous=FULL")
        raw.execute("PRAGMA cache_size=-32000")

    begin = ("BEGIN", "BEGIN IMMEDIATE")
    errors = (sqlite3.Error, UnicodeDecodeError)  # of text in a damaged file
    return Connections(connect, sqlite=True, errors=errors, begin=begin, wait=max(wait, 30))


def _write_ahead(raw: sqlite3.Connection, wait: float) -> str:
    """Use a write-ahead log; the journal mode that SQLite offers.

    SQLite waits for others in every statement but this one: while somebody begins to write without
    a log, as another process that has just made the file does, it gives up at once.
    """
    until = monotonic() + wait
    while True:
        try:
            return str(raw.execute("PRAGMA journal_mode=WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not busy or monotonic() > until:
                raise
            sleep(AGAIN)


def _check_place(path: Path) -> None:
    try:
        if not path.parent.is_dir():
            raise InvalidFile(
                "ledger",
                given=f"would lie in {path.parent}",
                needed="lie in an existing folder",
                reason="folder",
            )
        if path.is_dir():
            raise _not_a_file(f"{path} is a folder")
        if path.exists() and not path.is_file():  # it would get the mode of a ledger, or block
            raise _not_a_file(f"{path} is a device or a pipe")
        if path.is_file() and 0 < path.stat().st_size < SMALLEST:
            raise NotALedger(
                f"ledger {str(path)!r}: file is not a database; name the file of a ledger",
                reason="foreign",
            )
    except PermissionError as error:
        raise LedgerUnavailable(
            f"the folder of ledger {str(path)!r} cannot be read; give this user the right",
            reason="permission",
        ) from error
    except OSError as error:
        reason = (error.strerror or "cannot be used").lower()
        raise InvalidFile("ledger", given=f"{path}: {reason}", needed="be a file") from error


def _not_a_file(given: str) -> InvalidFile:
    return InvalidFile("ledger", given=given, needed="be a file", reason="special file")
