"""What every part of a server's state shares: its storage and its clock."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock
from typing import Any

from takifugu._closing import Closing
from takifugu.ledger.storage.statement import Connection, Statement
from takifugu.ledger.storage.store import Store

_LOCK = Statement("SELECT pg_advisory_xact_lock(7472696668)")  # not that of a ledger


class StateStore(Closing):
    """The storage of a server's state, without what is in it."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock
        self._latest = datetime.min.replace(tzinfo=UTC)
        self._clock_lock = Lock()

    @property
    def name(self) -> str:
        """Where it is kept, without any password."""
        return self._store.name

    @property
    def in_file(self) -> bool:
        """Whether it is in a file: reading it takes microseconds, and waits for nobody."""
        return self._store.sqlite

    def close(self) -> None:
        """Release the storage."""
        self._store.close()

    @contextmanager
    def _alone(self) -> Iterator[Connection]:
        """A transaction that no other of this kind runs beside, in any process."""
        with self._store.writing() as connection:  # which is enough in SQLite
            if not connection.sqlite:
                _LOCK.run(connection, {})
            yield connection

    def now(self) -> datetime:
        """The time; a clock that is set back does not revive what has ended in this process."""
        found = self._clock().astimezone(UTC)
        with self._clock_lock:
            self._latest = max(self._latest, found)
            return self._latest


def stamp(moment: datetime) -> str:
    """A time as it is stored: texts of one length, in the order of time."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def moment_of(text: str) -> datetime:
    """The time that was stored."""
    return datetime.fromisoformat(text)


def moment_if_any(text: str | None) -> datetime | None:
    """The time that was stored, if there is one."""
    return None if text is None else moment_of(text)


def json_text(document: Mapping[str, Any]) -> str:
    """A document as it is stored; numbers that JSON lacks are an error."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
