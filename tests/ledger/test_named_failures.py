"""Failures of a database: the kind and the reason that each is told by."""

import sqlite3

import pytest

from takifugu.errors import (
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    LedgerUnwritable,
    NotALedger,
)
from takifugu.ledger.storage.database import failure_of, line_of

pytestmark = pytest.mark.nightly


def of_sqlite(code: int, message: str = "said so") -> sqlite3.Error:
    error = sqlite3.OperationalError(message)
    error.sqlite_errorcode = code
    return error


class OfServer(Exception):
    """An error of PostgreSQL's driver."""

    def __init__(self, state: str | None) -> None:
        super().__init__("said so")
        self.sqlstate = state


@pytest.mark.parametrize(
    ("cause", "kind", "reason"),
    [
        (of_sqlite(sqlite3.SQLITE_BUSY), LedgerUnavailable, "locked"),
        (of_sqlite(sqlite3.SQLITE_BUSY_SNAPSHOT), LedgerUnavailable, "locked"),
        (of_sqlite(sqlite3.SQLITE_LOCKED), LedgerUnavailable, "locked"),
        (of_sqlite(sqlite3.SQLITE_FULL), LedgerUnwritable, "full"),
        (of_sqlite(sqlite3.SQLITE_IOERR_FSYNC), LedgerUnwritable, "disk"),
        (of_sqlite(sqlite3.SQLITE_READONLY_DBMOVED), LedgerUnwritable, "read-only"),
        (of_sqlite(sqlite3.SQLITE_CORRUPT_VTAB), LedgerDamaged, "storage"),
        (of_sqlite(sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY), LedgerDamaged, "storage"),
        (of_sqlite(sqlite3.SQLITE_NOTADB), NotALedger, "foreign"),
        (of_sqlite(sqlite3.SQLITE_ERROR), LedgerUnavailable, "unreachable"),
        (sqlite3.ProgrammingError("said so"), LedgerUnavailable, "unreachable"),
        (OfServer("22P05"), LedgerUnwritable, "encoding"),
        (OfServer("22P02"), LedgerUnavailable, "unreachable"),
        (OfServer("53100"), LedgerUnwritable, "full"),
        (OfServer("55P03"), LedgerUnavailable, "locked"),
        (OfServer("55006"), LedgerUnavailable, "unreachable"),
        (OfServer("57014"), LedgerUnavailable, "timeout"),
        (OfServer("57P01"), LedgerUnavailable, "unreachable"),
        (OfServer("40P01"), LedgerUnavailable, "locked"),
        (OfServer("25006"), LedgerUnwritable, "read-only"),
        (OfServer("42501"), LedgerUnwritable, "read-only"),
        (OfServer("42P01"), NotALedger, "foreign"),
        (OfServer("XX001"), LedgerDamaged, "storage"),
        (OfServer("23505"), LedgerDamaged, "storage"),
        (OfServer("08006"), LedgerUnavailable, "unreachable"),
        (OfServer("00023"), LedgerUnavailable, "unreachable"),
        (OfServer(None), LedgerUnavailable, "unreachable"),
    ],
)
def test_every_failure_of_a_database_has_a_name(
    cause: Exception, kind: type[LedgerError], reason: str
) -> None:
    found = failure_of("some.ledger", cause)
    assert type(found) is kind and found.reason == reason
    assert str(found).startswith("ledger 'some.ledger': said so; nothing was released. ")


def test_a_failure_is_told_in_one_line_that_quotes_nothing_stored() -> None:
    assert line_of(sqlite3.OperationalError(" first\nsecond: secret\n")) == "first"
    assert line_of(sqlite3.OperationalError(" \n ")) == "OperationalError"
    quoting = sqlite3.OperationalError("Could not decode to UTF-8 column 'body' with text 'secret'")
    torn = UnicodeDecodeError("utf-8", b"\xff secret", 0, 1, "invalid start byte")
    for error in (quoting, torn):
        found = failure_of("some.ledger", error)
        assert type(found) is LedgerDamaged and found.reason == "storage"
        assert line_of(error) == "what should be text is not" and "secret" not in str(found)
    other = OfServer("53100")
    other.args = ("no room to decode to UTF-8",)
    assert line_of(other) == "no room to decode to UTF-8"
