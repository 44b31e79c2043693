"""Failures of SQLite and PostgreSQL by their names in takifugu's tree of errors."""

import contextlib
import sqlite3
from collections.abc import Iterator

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, TimeoutError

from takifugu.errors import (
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    LedgerUnwritable,
    NotALedger,
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
