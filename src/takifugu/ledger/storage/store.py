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

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
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
from takifugu.ledger.storage.transaction import transaction_state
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
            self._engine = self._open_sqlite(wait)
        else:
            self._engine = self._open_postgresql(wait)
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
        with self._named(), self._engine.begin() as connection:
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
        with self._named(), self._reader.begin() as connection:
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
        """Let go of every connection, and leave nothing in the log beside the file."""
        self._engine.dispose()
        if os.getpid() == self._process:
            self.empty_log()
        if self.guard is not None and self.guard.witness is not None:
            self.guard.witness.close()

    def make_file(self) -> None:
        """Make the file of a new ledger: for its owner's eyes only, whatever the umask."""
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

    def _open_sqlite(self, wait: float) -> Engine:
        path = Path(self._url.database or "")
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
        except PermissionError as error:
            raise LedgerUnavailable(
                f"the folder of ledger {self.name!r} cannot be read; give this user the right",
                reason="permission",
            ) from error
        except OSError as error:
            reason = (error.strerror or "cannot be used").lower()
            raise InvalidFile("ledger", given=f"{path}: {reason}", needed="be a file") from error
        mode = "ro" if self.read_only else "rwc"
        address = f"{path.absolute().as_uri()}?mode={mode}"

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(
                address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False
            )

        engine = create_engine("sqlite://", creator=connect, poolclass=_pool())

        @event.listens_for(engine, "connect")
        def prepare(raw: Any, _record: Any) -> None:
            if not self.read_only:
                mode = raw.execute("PRAGMA journal_mode=WAL").fetchone()[0]
                if mode != "wal":
                    raise LedgerUnwritable(
                        f"ledger {self.name!r}: SQLite offers journal mode {mode!r} here and a"
                        " charge needs a write-ahead log; use a local disk",
                        reason="journal",
                    )
            raw.execute("PRAGMA synchronous=FULL")
            raw.execute("PRAGMA cache_size=-32000")

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            reading = connection.get_execution_options().get("reading")
            connection.connection.cursor().execute("BEGIN" if reading else "BEGIN IMMEDIATE")

        return engine

    def _open_postgresql(self, wait: float) -> Engine:
        try:
            from takifugu.ledger.storage.server_timeouts import impatient, silence
        except ModuleNotFoundError:  # SQLAlchemy's own import reports it, with what to do
            return create_engine(self._url)
        most = silence(wait)
        limits = {"lock_timeout": wait, "statement_timeout": most}
        settings = "-c synchronous_commit=on" + "".join(
            f" -c {name}={max(1, round(seconds * 1000))}" for name, seconds in limits.items()
        )
        if self.read_only:
            settings += " -c default_transaction_read_only=on"
        given = self._url.query.get("options", "")
        options = f"{given if isinstance(given, str) else ' '.join(given)} {settings}".strip()
        network = {  # what a network swallows is noticed by the kernel; see `patience` for the rest
            "connect_timeout": max(2, round(wait)),
            "tcp_user_timeout": round(most * 1000),
            "keepalives": 1,
            "keepalives_idle": max(1, round(most / 2)),
            "keepalives_interval": max(1, round(most / 6)),
            "keepalives_count": 3,
        }
        network = {name: value for name, value in network.items() if name not in self._url.query}
        engine = create_engine(
            self._url,
            isolation_level="READ COMMITTED",
            pool_timeout=most,
            connect_args={"options": options, **network},
        )
        kind = impatient(most)

        @event.listens_for(engine, "do_connect")
        def connect(_dialect: Any, _record: Any, arguments: Any, parameters: Any) -> Any:
            return kind.connect(*arguments, **parameters)

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            if connection.get_execution_options().get("reading"):
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        return engine

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Give every failure of the database its name in takifugu's tree of errors."""
        try:
            yield
        except DBAPIError as error:
            raise self._error(error.orig or error) from error
        except self._engine.dialect.loaded_dbapi.Error as error:  # from the driver itself
            raise self._error(error) from error
        except TimeoutError as error:  # of the pool of connections
            raise LedgerUnavailable(
                f"ledger {self.name!r}: {_line(error)}", reason="timeout"
            ) from error

    def _error(self, cause: BaseException) -> LedgerError:
        kind, reason, advice = self._kind(cause)
        return kind(
            f"ledger {self.name!r}: {_line(cause)}; nothing was released. {advice}", reason=reason
        )

    def _kind(self, cause: BaseException) -> tuple[type[LedgerError], str, str]:
        if self.sqlite:
            code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
            if code in _SQLITE:
                return _SQLITE[code]
        else:
            state = getattr(cause, "sqlstate", None) or ""
            for prefix, found in _POSTGRESQL.items():
                if state.startswith(prefix):
                    return found
        return LedgerUnavailable, "unreachable", "See whether it can be reached, then try again."


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


def _line(cause: BaseException) -> str:
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # bytes of a name that are no text: half characters in Python
        return False
    return True


def _not_a_file(given: str) -> InvalidFile:
    return InvalidFile("ledger", given=given, needed="be a file", reason="special file")


def _pool() -> Any:
    from sqlalchemy.pool import QueuePool

    return QueuePool


def _address(where: str | Path) -> URL:
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
