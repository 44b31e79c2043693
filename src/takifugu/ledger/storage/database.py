"""Where a ledger is kept: SQLite by default, PostgreSQL by address. Every failure has a name.

A transaction that writes holds the only right to write from its first statement (SQLite: BEGIN
IMMEDIATE; PostgreSQL: the head row FOR UPDATE) and is on disk when it ends (SQLite: write-ahead
log with synchronous=FULL; PostgreSQL: synchronous_commit). So no two charges see the same total.

A statement is SQL that both databases read, with its values by name (``:which``). The driver
(sqlite3, psycopg) runs it: a charge is a handful of tiny statements under a lock that everybody
waits for. Connections are reused, since opening one takes longer than a charge does; each serves
one transaction at a time.
"""

import contextlib
import itertools
import os
import re
import sqlite3
import threading
from collections import namedtuple
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from takifugu._core.atomic import refuse_special
from takifugu._core.postgresql import quoted_name
from takifugu.errors import (
    InvalidFile,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    LedgerUnwritable,
    NotALedger,
)

if TYPE_CHECKING:
    from takifugu.ledger.events.event_chain import Anchor, Event, Head
    from takifugu.ledger.storage.digest_tree import Tree
    from takifugu.ledger.witnesses.head_witness import Guard

Values = Mapping[str, Any]
ADVISORY_LOCK = 7_472_696_667  # of PostgreSQL: one process at a time creates or migrates
LOCK_WAIT_SECONDS = 10.0  # seconds that a locked ledger is waited for
STREAMED_ROWS = 1000  # rows that a server sends at a time
MAX_IDLE_CONNECTIONS, MAX_CONNECTIONS = 5, 15
MIN_FILE_BYTES = 512  # SQLite takes a smaller file for an empty one and fills it
RETRY_SECONDS = 0.005  # until what does not wait by itself is tried again


# --- addresses ---

_SCHEME = re.compile(r"([A-Za-z][\w.+-]*)://(.*)", re.DOTALL)
_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):[^/?#]*@")  # up to the last @ before the path
_NAMED_PASSWORD = re.compile(r"(?<=[?&])(password=)[^&]*", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Address:
    """Where a ledger is: a path, ``sqlite:///PATH``, or ``postgresql://…``.

    Attributes:
        name: The path of the file; or the address, without any password.
        url: The address of a server, as its driver reads it; empty for a file.
    """

    name: str
    url: str = ""

    @property
    def sqlite(self) -> bool:
        """Whether the ledger is in a file."""
        return not self.url


def address_of(where: str | Path) -> Address:
    """The address that a path or a URL names."""
    if not isinstance(where, str | Path):  # None would be a file of that name
        raise _bad_address(f"is a {type(where).__name__}", "be a path or a URL", "address")
    text = str(where)
    if isinstance(where, Path) or "://" not in text:
        if not text or text == ":memory:":
            raise _bad_address(f"is {text!r}", "be kept in a file", "memory")
        if _SURROGATE.search(text):  # bytes of a name that are no text
            raise _bad_address(f"is {text!r}", "have a name in UTF-8", "text")
        return Address(text)
    match = _SCHEME.fullmatch(text)
    if match is None:
        raise not_an_address()
    backend, rest = match[1].lower().partition("+")[0], match[2]
    path = rest.partition("?")[0].removeprefix("/")
    if backend == "sqlite" and rest.startswith("/") and path not in ("", ":memory:"):
        return Address(path)
    if backend in ("postgresql", "postgres"):
        url = f"postgresql://{rest}"
        name = _PASSWORD.sub(r"\1:***@", url)
        return Address(_NAMED_PASSWORD.sub(r"\1***", name), url)
    needed = "be a file, sqlite:///PATH or postgresql://…"
    raise _bad_address(f"is kept by {backend}", needed, "backend")


def _bad_address(given: str, needed: str, reason: str) -> InvalidFile:
    return InvalidFile("ledger", given=given, needed=needed, reason=reason)


def not_an_address() -> InvalidFile:
    """The error for a text with :// that no driver can read."""
    return _bad_address("is not an address", "be a path or a URL", "address")


# --- statements, and the transaction that they run in ---

_VALUE = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_TABLE = re.compile(  # a new index is where its table is
    r"\b((?:FROM|INTO|UPDATE|JOIN|ON|DROP INDEX|TABLE(?: IF(?: NOT)? EXISTS)?) )(takifugu_)"
)
_CURSOR_NUMBERS = itertools.count(1)
ColumnTypes = Mapping[str, tuple[type, ...]]


@dataclass(eq=False)
class Connection:
    """A connection of a driver during one transaction, and what is known in that.

    Attributes:
        raw: The connection of the driver.
        sqlite: Whether it is one of SQLite, and not of PostgreSQL.
        schema: The schema of PostgreSQL that has the tables; they are not looked for in others.
        head: The end of the chain, once it was read.
        locked: Whether nobody else can add to it.
        tree: The digests of accounts and segments, once they were checked against the last event.
        witnessed: What the witness had recorded when the transaction began.
        unwitnessed: Whether there is no witness: events then record that.
        shown: The latest event that was read to be shown to somebody; 0 if none was.
        events: The events that were read and checked, by number.
    """

    raw: Any
    sqlite: bool
    schema: str = ""
    head: "Head | None" = None
    locked: bool = False
    tree: "Tree | None" = None
    witnessed: "Anchor | None" = None
    unwitnessed: bool = False
    shown: int = 0
    events: "dict[int, Event]" = field(default_factory=dict, repr=False)


class NotAsDeclared(sqlite3.DatabaseError):
    """A row has a value that its table cannot hold: SQLite checks no types of what it reads."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def askable(text: str) -> bool:
    """Whether a database can look for a text: none takes zero bytes, or half a character."""
    return "\0" not in text and not _SURROGATE.search(text)


class Statement:
    """One statement, for both databases.

    Args:
        text: The SQL, with values as ``:name``.
        lock: Whether the rows that it reads stay locked until the transaction ends. A transaction
            of SQLite that writes holds all of them from its beginning.
        types: The types that a column of the result can have; other columns are not checked.
    """

    def __init__(self, text: str, *, lock: bool = False, types: ColumnTypes | None = None) -> None:
        self._sqlite = text
        self._postgresql = _VALUE.sub(r"%(\1)s", text.replace("%", "%%"))
        if lock:
            self._postgresql += " FOR UPDATE"
        self._qualified: dict[str, str] = {}  # by schema
        self._declared = types or {}
        self._row: Any = None
        self._types: tuple[tuple[type, ...], ...] = ()

    def one(self, connection: Connection, values: Values) -> Any:
        """The first row of the result, or None."""
        with contextlib.closing(self._execute(connection, values)) as cursor:
            row = cursor.fetchone()
            return None if row is None else self._checked(connection, cursor, row)

    def all(self, connection: Connection, values: Values) -> list[Any]:
        """Every row of the result."""
        with contextlib.closing(self._execute(connection, values)) as cursor:
            return [self._checked(connection, cursor, row) for row in cursor.fetchall()]

    def stream(self, connection: Connection, values: Values) -> Generator[Any]:
        """The rows of the result, a few at a time."""
        if connection.sqlite:
            cursor = connection.raw.cursor()
        else:  # of the server: that of the client reads everything first
            cursor = connection.raw.cursor(name=f"takifugu_rows_{next(_CURSOR_NUMBERS)}")
            cursor.itersize = STREAMED_ROWS
        with contextlib.closing(cursor):
            cursor.execute(self.text(connection), values)
            for row in cursor:
                yield self._checked(connection, cursor, row)

    def run(self, connection: Connection, values: Values | Sequence[Values]) -> None:
        """Write once, or once for each of many."""
        if isinstance(values, Mapping):
            self._execute(connection, values).close()
        elif values:
            with contextlib.closing(connection.raw.cursor()) as cursor:
                cursor.executemany(self.text(connection), values)

    def text(self, connection: Connection) -> str:
        """The SQL as the database of ``connection`` reads it."""
        if connection.sqlite:
            return self._sqlite
        schema = connection.schema
        if schema not in self._qualified:
            prefix = f"{quoted_name(schema)}.".replace("%", "%%") if schema else ""
            self._qualified[schema] = _TABLE.sub(
                lambda match: f"{match[1]}{prefix}{match[2]}", self._postgresql
            )
        return self._qualified[schema]

    def _execute(self, connection: Connection, values: Values) -> Any:
        cursor = connection.raw.cursor()
        cursor.execute(self.text(connection), values)
        return cursor

    def _checked(self, connection: Connection, cursor: Any, row: Any) -> Any:
        if self._row is None:
            names = [column[0] for column in cursor.description]
            self._types = tuple(self._declared.get(name, (object,)) for name in names)
            self._row = namedtuple("Row", names)  # type: ignore[misc]
        if connection.sqlite and not all(map(isinstance, row, self._types)):
            raise NotAsDeclared("a row has a value that cannot have been written there")
        return self._row._make(row)


def insert(table: str, *columns: str) -> Statement:
    """A statement that adds a row with these columns."""
    names, values = ", ".join(map(quoted, columns)), ", ".join(f":{name}" for name in columns)
    return Statement(f"INSERT INTO {table} ({names}) VALUES ({values})")


def update(table: str, *columns: str, where: str) -> Statement:
    """A statement that gives these columns new values where a condition holds."""
    sets = ", ".join(f"{quoted(name)} = :{name}" for name in columns)
    return Statement(f"UPDATE {table} SET {sets} WHERE {where}")


def quoted(column: str) -> str:
    """The name of a column, which may be a word of SQL."""
    return f'"{column}"'


# --- connections ---


class Connections:
    """The connections to one database, for any number of threads.

    Attributes:
        errors: The classes of the errors of its driver.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        sqlite: bool,
        errors: tuple[type[Exception], ...],
        begin: tuple[str, str],
        wait: float,
    ) -> None:
        """``begin`` has the statements that begin a transaction to read and one to write."""
        self.errors = errors
        self._connect, self._sqlite, self._begin, self._wait = connect, sqlite, begin, wait
        self._idle: list[Any] = []
        self._lock, self._room = threading.Lock(), threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._closed = False

    def transaction(self, *, reading: bool) -> contextlib.AbstractContextManager[Connection]:
        """One transaction: committed when it is left, undone if an error leaves it."""
        return self._used(self._begin[0 if reading else 1])

    def one(self, statement: Statement, values: Values) -> Any:
        """The first row that a statement reads, or None: by itself it is a transaction.

        A server of PostgreSQL then answers once, and not also for a beginning and an end.
        """
        with self._used(None) as connection:
            return statement.one(connection, values)

    @contextlib.contextmanager
    def _used(self, begin: str | None) -> Iterator[Connection]:
        if not self._room.acquire(timeout=self._wait):
            raise LedgerUnavailable(
                f"{MAX_CONNECTIONS} connections to the ledger are in use and none became free in"
                f" {self._wait:g} s; try again",
                reason="timeout",
            )
        try:
            with self._lock:
                raw = self._idle.pop() if self._idle else None
            raw = raw or self._connect()
            sound = False
            try:
                if begin is not None:
                    raw.execute(begin)
                try:
                    yield Connection(raw, self._sqlite, "" if self._sqlite else raw.schema)
                    if begin is not None:
                        raw.execute("COMMIT")
                    sound = True
                except BaseException:
                    if begin is not None:
                        with contextlib.suppress(*self.errors):
                            raw.execute("ROLLBACK")
                            sound = True
                    raise
            finally:
                self._give_back(raw, sound)
        finally:
            self._room.release()

    def _give_back(self, raw: Any, sound: bool) -> None:
        """Reuse a connection; one that failed is closed, and with it all that may have failed."""
        with self._lock:
            if sound and not self._closed and len(self._idle) < MAX_IDLE_CONNECTIONS:
                self._idle.append(raw)
                return
        _close(raw)
        if not sound:
            self._drop()

    def _drop(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for raw in idle:
            _close(raw)

    def close(self) -> None:
        """Close every connection; one that is in use, when its transaction ends."""
        self._closed = True
        self._drop()


def _close(raw: Any) -> None:
    with contextlib.suppress(Exception):
        raw.close()


def sqlite_connection(path: Path, mode: str, wait: float = 0.0) -> sqlite3.Connection:
    """A connection to a file, opened as "ro", "rw", or "rwc" to make it."""
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(
        address, uri=True, timeout=wait, isolation_level=None, check_same_thread=False
    )


def open_sqlite(path: Path, *, read_only: bool, wait: float) -> Connections:
    """The connections to the ledger in a file; `InvalidFile` if it cannot be one."""
    _check_place(path)

    def connect() -> sqlite3.Connection:
        raw = sqlite_connection(path, "ro" if read_only else "rwc", wait)
        try:
            mode = "wal" if read_only else _write_ahead(raw, wait)
            if mode != "wal":
                raise LedgerUnwritable(
                    f"ledger {str(path)!r}: SQLite offers journal mode {mode!r} here and a"
                    " charge needs a write-ahead log; use a local disk",
                    reason="journal",
                )
            raw.execute("PRAGMA synchronous=FULL")
            raw.execute("PRAGMA cache_size=-32000")
        except BaseException:
            raw.close()
            raise
        return raw

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
            sleep(RETRY_SECONDS)


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
        if path.is_file() and 0 < path.stat().st_size < MIN_FILE_BYTES:
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


# --- the store ---


@dataclass
class _Moment:
    """A block in which one thread reads; its transaction, once it has read something."""

    opened: contextlib.ExitStack
    connection: Connection | None = None

    def end(self) -> None:
        """End the transaction; the next read begins another one."""
        self.connection = None
        self.opened.close()


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
        self._moments = threading.local()

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
        moment: _Moment | None = getattr(self._moments, "open", None)
        if moment is not None:
            moment.end()
        guard = self.guard
        with self._transaction(reading=False) as connection:
            if guard is not None:
                guard.begin(connection)
            yield connection
            if connection.tree is not None and connection.tree.unsaved:
                raise LedgerDamaged(
                    "totals were changed without an event; nothing was written", reason="totals"
                )
        if guard is not None and connection.head is not None:  # also if it was there before
            event = connection.head.anchor
            if event != connection.witnessed:
                guard.advance(event, connection.witnessed, self.unguarded)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the ledger and blocks nobody.

        Whoever wrote an event may have died before its witness knew it. One that is to be shown
        (`event_chain.show`) is recorded before this is left, or by `note` before that. Within
        `one_moment` it is the transaction that was opened first.
        """
        moment: _Moment | None = getattr(self._moments, "open", None)
        if moment is None:
            with self.reading_apart() as connection:
                yield connection
            return
        if moment.connection is None:
            moment.connection = moment.opened.enter_context(self.reading_apart())
        connection = moment.connection
        yield connection
        self.note(connection)  # the moment may go on, or end with an error

    @contextlib.contextmanager
    def one_moment(self) -> Iterator[None]:
        """Let everything that this thread reads until the block is left see the same moment.

        The transaction is opened by the first `reading`. It ends where this thread writes: what is
        read after that has seen it.
        """
        if getattr(self._moments, "open", None) is not None:
            yield
            return
        with contextlib.ExitStack() as opened:
            self._moments.open = _Moment(opened)
            try:
                yield
            finally:
                self._moments.open = None

    @contextlib.contextmanager
    def reading_apart(self) -> Iterator[Connection]:
        """The same in a transaction of its own, also within `one_moment`.

        For what is read bit by bit: a generator may be read after the moment has ended.
        """
        guard = self.guard
        recorded = None if guard is None else guard.recorded()  # before what is seen
        with self.unguarded() as connection:
            if guard is not None:
                guard.compare(connection, recorded)
            connection.witnessed = recorded
            yield connection
            event = None if guard is None else guard.unrecorded(connection)
        if guard is not None and event is not None:
            guard.advance(event, connection.witnessed, self.unguarded)

    def note(self, connection: Connection) -> None:
        """Record now what is to be shown while a transaction of `reading` goes on."""
        if self.guard is None:
            return
        event = self.guard.unrecorded(connection)
        if event is not None:
            self.guard.advance(event, connection.witnessed, self.unguarded)
            connection.witnessed = event

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
            raise failure_of(self.name, error) from error

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
            raise failure_of(self.name, error) from error
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
                with contextlib.closing(sqlite_connection(Path(self.name), "rw")) as raw:
                    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _connections(address: Address, *, read_only: bool, wait: float) -> Connections:
    if address.sqlite:
        return open_sqlite(Path(address.name), read_only=read_only, wait=wait)
    try:
        from takifugu.ledger.storage.postgresql import open_postgresql
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


def failure_of(
    ledger: str, cause: BaseException, *, outcome: str = "nothing was released"
) -> LedgerError:
    """The error for what a database refused to do for a ledger; ``outcome`` says what it left."""
    kind, reason, advice = _READ_ONLY if _no_log_beside(ledger, cause) else _kind(cause)
    return kind(f"ledger {ledger!r}: {line_of(cause)}; {outcome}. {advice}", reason=reason)


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
    unknown = (LedgerUnavailable, "unreachable", "See whether it can be reached, then try again.")
    return next((kind for code, kind in _POSTGRESQL.items() if state.startswith(code)), unknown)


def _no_text(cause: BaseException) -> bool:
    """Whether bytes were read that are no text; Python's own error of SQLite quotes them."""
    quoted = isinstance(cause, sqlite3.OperationalError) and "decode to UTF-8" in str(cause)
    return quoted or isinstance(cause, UnicodeDecodeError)


def line_of(cause: BaseException) -> str:
    """What a database said, in a line that quotes nothing that is stored."""
    if _no_text(cause):
        return "what should be text is not"
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]
