"""Where a ledger is kept: SQLite by default, PostgreSQL by address. Every failure has a name.

A transaction that writes holds the only right to write from its first statement (SQLite: BEGIN
IMMEDIATE; PostgreSQL: the head row FOR UPDATE) and is on disk when it ends (SQLite: write-ahead
log with synchronous=FULL; PostgreSQL: synchronous_commit). So no two charges see the same total.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from takifugu._atomic import refuse_special
from takifugu.errors import (
    InvalidFile,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    LedgerUnwritable,
    NotALedger,
)
from takifugu.ledger.events.event_chain import Anchor
from takifugu.ledger.storage.addresses import Address, address_of
from takifugu.ledger.storage.connections import Connections
from takifugu.ledger.storage.sqlite_connections import open_sqlite
from takifugu.ledger.storage.statement import Connection, Statement, Values, transaction_state
from takifugu.ledger.witnesses.head_witness import Guard

ADVISORY_LOCK = 7_472_696_667  # of PostgreSQL: one process at a time creates or migrates
WAIT = 10.0  # seconds that a locked ledger is waited for


class Store:
    """A database that holds one ledger, and its two kinds of transactions."""

    def __init__(self, where: str | Path, *, read_only: bool, wait: float) -> None:
        address = address_of(where)
        self.name, self.sqlite = address.name, address.sqlite
        self.read_only, self._process = read_only, os.getpid()
        self._connections = _connections(address, read_only=read_only, wait=wait)
        self.guard: Guard | None = None  # none while a ledger is made, or inspected from outside
        self._file: tuple[int, int] | None = None  # device and number, of one in a file
        self.identity = ""  # of the ledger, once it was opened

    @property
    def is_new(self) -> bool:
        """Whether there is nothing yet where the ledger is to be."""
        path = Path(self.name)
        return self.sqlite and (not path.exists() or path.stat().st_size == 0)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that nobody else can write beside; durable once it is left."""
        self._check_process()
        if self.read_only:
            raise LedgerUnwritable(
                f"ledger {self.name!r} was opened read-only; nothing was written",
                reason="read-only",
            )
        guard = self.guard
        with self._transaction(reading=False) as connection:
            if guard is not None:
                guard.begin(connection)
            yield connection
            work = transaction_state(connection)
            if work.tree is not None and work.tree.unsaved:
                raise LedgerDamaged(
                    "totals were changed without an event; nothing was written", reason="totals"
                )
        if guard is not None and work.head is not None:  # also of an event that was there before
            event = Anchor(work.head.seq, work.head.hash)
            if event != work.seen:
                guard.advance(event, work.seen, self.unguarded)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the ledger and blocks nobody.

        Whoever wrote an event may have died before its witness knew it. One that is to be shown
        (`event_chain.show`) is recorded before this is left, or by `note` before that.
        """
        guard = self.guard
        noted = None if guard is None else guard.noted()  # before what is seen
        with self.unguarded() as connection:
            if guard is not None:
                guard.compare(connection, noted)
            work = transaction_state(connection)
            work.seen = noted
            yield connection
            event = None if guard is None else guard.unknown(connection, work.seen)
        if guard is not None and event is not None:
            guard.advance(event, work.seen, self.unguarded)

    def note(self, connection: Connection) -> None:
        """Record now what is to be shown while a transaction of `reading` goes on."""
        if self.guard is None:
            return
        work = transaction_state(connection)
        event = self.guard.unknown(connection, work.seen)
        if event is not None:
            self.guard.advance(event, work.seen, self.unguarded)
            work.seen = event

    @contextlib.contextmanager
    def unguarded(self) -> Iterator[Connection]:
        """The same, without a comparison with the witness."""
        self._check_process()
        with self._transaction(reading=True) as connection:
            yield connection

    def one(self, statement: Statement, values: Values) -> Any:
        """The first row that one statement reads, or None; without the witness, as `unguarded`."""
        self._check_process()
        self._refuse_replaced()
        try:
            return self._connections.one(statement, values)
        except self._connections.errors as error:
            raise _named(self.name, error) from error

    @contextlib.contextmanager
    def _transaction(self, *, reading: bool) -> Iterator[Connection]:
        """A transaction; every failure of the database gets its name.

        A file that was removed or replaced is refused, also right after what was written to it: an
        open connection goes on writing to the one that has no name any more, and what is written
        there is lost. So no receipt is given for it.
        """
        self._refuse_replaced()
        try:
            with self._connections.transaction(reading=reading) as connection:
                yield connection
        except self._connections.errors as error:
            raise _named(self.name, error) from error
        if not reading:
            self._refuse_replaced()

    def _refuse_replaced(self) -> None:
        """Raise if the file is not the one that was used first; of a server, never."""
        if not self.sqlite:
            return
        try:
            facts = os.stat(self.name)
        except OSError:
            facts = None
        now = None if facts is None else (facts.st_dev, facts.st_ino)
        if self._file is None:
            self._file = now
        elif now != self._file:
            raise LedgerUnavailable(
                f"ledger {self.name!r}: the file was replaced or removed since it was opened;"
                " nothing was released. Open it again",
                reason="replaced",
            )

    def only_one(self, connection: Connection) -> None:
        """Keep others from making or migrating tables until the transaction ends."""
        if not self.sqlite:
            Statement(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})").run(connection, {})

    def _check_process(self) -> None:
        if os.getpid() != self._process:  # a connection must not be used from both sides of a fork
            raise LedgerUnavailable(
                f"ledger {self.name!r} was opened by another process; open it again in this one",
                reason="process",
            )

    def close(self) -> None:
        """Close every connection, and leave nothing in the log beside the file."""
        if os.getpid() == self._process:  # a child of it would end them for its parent, too
            self._connections.close()
            self.empty_log()
        if self.guard is not None and self.guard.witness is not None:
            self.guard.witness.close()

    def make_file(self) -> None:
        """Make the file of a new ledger, readable by its owner alone, whatever the umask."""
        if not self.sqlite:
            return
        try:
            path = Path(self.name)
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                refuse_special(handle)
                if os.fstat(handle).st_size == 0:
                    os.fchmod(handle, 0o600)  # SQLite gives its log the same mode
            finally:
                os.close(handle)
        except OSError as error:
            raise LedgerUnwritable(
                f"ledger {self.name!r} cannot be made ({(error.strerror or 'failed').lower()});"
                " give this user the right",
                reason="read-only",
            ) from error

    def empty_log(self) -> None:
        """Move what a killed process left in the write-ahead log into the file, if nobody waits."""
        log = Path(f"{self.name}-wal")
        with contextlib.suppress(sqlite3.Error, OSError):
            if self.sqlite and not self.read_only and log.stat().st_size:
                address = f"{Path(self.name).absolute().as_uri()}?mode=rw"
                with contextlib.closing(sqlite3.connect(address, uri=True, timeout=0)) as raw:
                    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _connections(address: Address, *, read_only: bool, wait: float) -> Connections:
    if address.sqlite:
        return open_sqlite(Path(address.name), read_only=read_only, wait=wait)
    try:
        from takifugu.ledger.storage.postgresql_connections import open_postgresql
    except ModuleNotFoundError as error:
        raise InvalidFile(
            "ledger",
            given="is kept by PostgreSQL, and psycopg is not installed",
            needed="have its driver: pip install 'takifugu[postgres]'",
            reason="driver",
        ) from error
    return open_postgresql(address.url, read_only=read_only, wait=wait)


_BUSY = (LedgerUnavailable, "locked", "Others hold it locked; try again.")
_FULL = (LedgerUnwritable, "full", "Make room, then try again.")
_READ_ONLY = (LedgerUnwritable, "read-only", "Give this user the right to write it.")
_ENCODING = (LedgerUnwritable, "encoding", "Use a database whose encoding is UTF8.")
_BROKEN = (LedgerDamaged, "storage", "Run `takifugu ledger verify`, and restore a copy.")
_SQLITE = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR: (LedgerUnwritable, "disk", "Check the disk, then try again."),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_CORRUPT: _BROKEN,
    sqlite3.SQLITE_CONSTRAINT: _BROKEN,  # an event is already there: the head was set back
    sqlite3.SQLITE_NOTADB: (NotALedger, "foreign", "Name the file of a ledger."),
}
_POSTGRESQL = {
    "22P05": _ENCODING,
    "53": _FULL,
    "55P03": _BUSY,
    "57014": (LedgerUnavailable, "timeout", "It took too long; check the server, then try again."),
    "40": _BUSY,
    "25006": _READ_ONLY,
    "42501": _READ_ONLY,
    "42P01": (NotALedger, "foreign", "Name the database of a ledger."),
    "XX": _BROKEN,
    "23": _BROKEN,
}


def _named(ledger: str, cause: BaseException) -> LedgerError:
    kind, reason, advice = _READ_ONLY if _no_log_beside(ledger, cause) else _kind(cause)
    message = f"ledger {ledger!r}: {line_of(cause)}; nothing was released. {advice}"
    return kind(message, reason=reason)


def _no_log_beside(ledger: str, cause: BaseException) -> bool:
    """Whether SQLite cannot make its log, because the folder or the whole disk is read-only."""
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    path = Path(ledger)
    return code == sqlite3.SQLITE_CANTOPEN and path.exists() and not os.access(path.parent, os.W_OK)


def _kind(cause: BaseException) -> tuple[type[LedgerError], str, str]:
    if _no_text(cause):
        return _BROKEN
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _SQLITE:
        return _SQLITE[code]
    state = getattr(cause, "sqlstate", None) or ""
    for prefix, found in _POSTGRESQL.items():
        if state.startswith(prefix):
            return found
    return LedgerUnavailable, "unreachable", "See whether it can be reached, then try again."


def _no_text(cause: BaseException) -> bool:
    """Whether bytes were read that are no text; Python's own error of SQLite quotes them."""
    quoted = isinstance(cause, sqlite3.OperationalError) and "decode to UTF-8" in str(cause)
    return quoted or isinstance(cause, UnicodeDecodeError)


def line_of(cause: BaseException) -> str:
    """What a database said, in a line that quotes nothing that is stored."""
    if _no_text(cause):
        return "what should be text is not"
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
