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

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, TimeoutError

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
from takifugu.ledger.storage.sqlite_engine import open_sqlite
from takifugu.ledger.storage.statement import transaction_state
from takifugu.ledger.witnesses.head_witness import Guard

ADVISORY_LOCK = 7_472_696_667  # of PostgreSQL: one process at a time creates or migrates
WAIT = 10.0  # seconds that a locked ledger is waited for


class Store:
    """A database that holds one ledger, and its two kinds of transactions."""

    def __init__(self, where: str | Path, *, read_only: bool, wait: float) -> None:
        self._url = _address(where)
        self.name = self._url.render_as_string(hide_password=True)
        self.sqlite = self._url.get_backend_name() == "sqlite"
        self.read_only, self._process = read_only, os.getpid()
        if self.sqlite:
            self.name = self._url.database or ""
        self._engine = _engine(self._url, read_only=read_only, wait=wait)
        self._reader = self._engine.execution_options(reading=True)
        self.guard: Guard | None = None  # none while a ledger is made, or inspected from outside
        self.identity = ""  # of the ledger, once it was opened

    @property
    def is_new(self) -> bool:
        """Whether there is nothing yet where the ledger is to be."""
        path = Path(self._url.database or "")
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
        with named_failures(self._engine, self.name), self._engine.begin() as connection:
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
        """A transaction that sees one moment of the ledger and blocks nobody."""
        noted = None if self.guard is None else self.guard.noted()  # before what is seen
        with self.unguarded() as connection:
            if self.guard is not None:
                self.guard.compare(connection, noted)
            yield connection

    @contextlib.contextmanager
    def unguarded(self) -> Iterator[Connection]:
        """The same, without a comparison with the witness."""
        self._check_process()
        with named_failures(self._engine, self.name), self._reader.begin() as connection:
            yield connection

    def only_one(self, connection: Connection) -> None:
        """Keep others from making or migrating tables until the transaction ends."""
        if not self.sqlite:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")

    def _check_process(self) -> None:
        if os.getpid() != self._process:  # a connection must not be used from both sides of a fork
            raise LedgerUnavailable(
                f"ledger {self.name!r} was opened by another process; open it again in this one",
                reason="process",
            )

    def close(self) -> None:
        """Close every connection, and leave nothing in the log beside the file."""
        self._engine.dispose()
        if os.getpid() == self._process:
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


def _engine(url: URL, *, read_only: bool, wait: float) -> Engine:
    if url.get_backend_name() == "sqlite":
        return open_sqlite(Path(url.database or ""), read_only=read_only, wait=wait)
    try:
        from takifugu.ledger.storage.postgresql_engine import open_postgresql
    except ModuleNotFoundError:  # SQLAlchemy's own import reports it, with what to do
        return create_engine(url)
    return open_postgresql(url, read_only=read_only, wait=wait)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes of a name that are no text: half characters in Python
        return False
    return True


def _address(where: str | Path) -> URL:
    if not isinstance(where, str | Path):  # None would be a file of that name
        raise InvalidFile(
            "ledger",
            given=f"is a {type(where).__name__}",
            needed="be a path or a URL",
            reason="address",
        )
    text = str(where)
    if isinstance(where, Path) or "://" not in text:
        if not text or text == ":memory:":
            raise InvalidFile(
                "ledger", given=f"is {text!r}", needed="be kept in a file", reason="memory"
            )
        if not _is_text(text):
            raise InvalidFile(
                "ledger", given=f"is {text!r}", needed="have a name in UTF-8", reason="text"
            )
        return URL.create("sqlite", database=text)
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise InvalidFile(
            "ledger", given="is not an address", needed="be a path or a URL", reason="address"
        ) from error
    backend = url.get_backend_name()
    if backend == "sqlite" and url.database and url.database != ":memory:":
        return URL.create("sqlite", database=url.database)
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    raise InvalidFile(
        "ledger",
        given=f"is kept by {backend}",
        needed="be a file, sqlite:///PATH or postgresql://…",
        reason="backend",
    )


_BUSY = (LedgerUnavailable, "locked", "Others hold it locked; try again.")
_FULL = (LedgerUnwritable, "full", "Make room, then try again.")
_READ_ONLY = (LedgerUnwritable, "read-only", "Give this user the right to write it.")
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


@contextlib.contextmanager
def named_failures(engine: Engine, ledger: str) -> Iterator[None]:
    """Give every failure of the database of ``ledger`` its name."""
    try:
        yield
    except DBAPIError as error:
        raise _named(ledger, error.orig or error) from error
    except engine.dialect.loaded_dbapi.Error as error:  # from the driver itself
        raise _named(ledger, error) from error
    except TimeoutError as error:  # of the pool of connections
        raise LedgerUnavailable(f"ledger {ledger!r}: {_line(error)}", reason="timeout") from error


def _named(ledger: str, cause: BaseException) -> LedgerError:
    kind, reason, advice = _kind(cause)
    message = f"ledger {ledger!r}: {_line(cause)}; nothing was released. {advice}"
    return kind(message, reason=reason)


def _kind(cause: BaseException) -> tuple[type[LedgerError], str, str]:
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    if code in _SQLITE:
        return _SQLITE[code]
    state = getattr(cause, "sqlstate", None) or ""
    for prefix, found in _POSTGRESQL.items():
        if state.startswith(prefix):
            return found
    return LedgerUnavailable, "unreachable", "See whether it can be reached, then try again."


def _line(cause: BaseException) -> str:
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
