"""Connections to the database of a ledger, and the transactions that are made on them.

A driver of Python's own interface (sqlite3, psycopg) is all that is needed: the ledger has a few
dozen statements, which both databases read. Connections are kept for the next transaction, since
opening one takes longer than a charge does; each serves one transaction at a time.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from takifugu.errors import LedgerUnavailable
from takifugu.ledger.storage.statement import Connection, Statement, Values

KEPT, MOST = 5, 15  # connections that are kept open, and that are open at once


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
        self._lock, self._room = threading.Lock(), threading.BoundedSemaphore(MOST)
        self._closed = False

    @contextlib.contextmanager
    def transaction(self, *, reading: bool) -> Iterator[Connection]:
        """One transaction: committed when it is left, undone if an error leaves it."""
        self._enter()
        try:
            raw = self._taken()
            sound = False
            try:
                raw.execute(self._begin[0 if reading else 1])
                try:
                    yield self._entered(raw)
                    raw.execute("COMMIT")
                except BaseException:
                    with contextlib.suppress(*self.errors):
                        raw.execute("ROLLBACK")
                        sound = True
                    raise
                sound = True
            finally:
                self._give_back(raw, sound)
        finally:
            self._room.release()

    def one(self, statement: Statement, values: Values) -> Any:
        """The first row that a statement reads, or None: by itself it is a transaction.

        A server of PostgreSQL then answers once, and not also for a beginning and an end.
        """
        self._enter()
        try:
            raw = self._taken()
            sound = False
            try:
                found = statement.one(self._entered(raw), values)
                sound = True
                return found
            finally:
                self._give_back(raw, sound)
        finally:
            self._room.release()

    def _enter(self) -> None:
        if not self._room.acquire(timeout=self._wait):
            raise LedgerUnavailable(
                f"{MOST} connections to the ledger are in use and none became free in"
                f" {self._wait:g} s; try again",
                reason="timeout",
            )

    def _entered(self, raw: Any) -> Connection:
        return Connection(raw, self._sqlite, "" if self._sqlite else raw.schema)

    def _taken(self) -> Any:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, raw: Any, sound: bool) -> None:
        """Keep a connection; one that failed is closed, and with it all that may have failed."""
        with self._lock:
            if sound and not self._closed and len(self._idle) < KEPT:
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
