"""Which of this user's ledgers has charged which rows: a second ledger would have a new budget.

Two datasets of one ledger that have the same rows are told apart by the ledger itself
(`takifugu.ledger.events.cell_naming`). For two ledgers the state folder knows, which also records
the heads of this user's ledgers: for each keyed mark of rows (where they are, their bytes, what
they are about) a small file that names the ledgers which have charged them. The key lies in the
same folder, so that the names of the files say nothing to whoever has only these. Edited copies,
parts of a table and ledgers of other users are not recognised.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from takifugu.errors import LedgerUnwritable
from takifugu.keys import key_at


class ChargedRows(NamedTuple):
    """A ledger that has charged some rows: its name, where it was, its dataset; and the mark."""

    ledger: str
    place: str
    dataset: str
    mark: str


class KnownRows:
    """A folder with a file for each mark of rows that were charged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def marks(self, identities: Iterable[tuple[str, Any]]) -> tuple[str, ...]:
        """Keyed marks of rows, after the kind of each."""
        with self._named():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            key = key_at(self._folder / "rows.key")
        return tuple(f"{kind} {key.mark(kind, what)}" for kind, what in identities)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else looks rows up and enters them until the block is left."""
        with self._named():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def charged(self, marks: Iterable[str]) -> Iterator[ChargedRows]:
        """The ledgers that have charged rows with one of these marks."""
        for mark in marks:
            try:
                text = self._file(mark).read_text(encoding="utf-8")
            except FileNotFoundError:
                continue
            for line in text.splitlines():
                with suppress(ValueError):  # cut off by a crash: its charge was not written then
                    ledger, place, dataset = json.loads(line)
                    yield ChargedRows(ledger, place, dataset, mark)

    def enter(self, marks: Iterable[str], ledger: str, place: str, dataset: str) -> None:
        """Record that a ledger charges rows with these marks."""
        line = json.dumps([ledger, place, dataset]) + "\n"
        with self._named():
            for mark in marks:
                if not any(known.ledger == ledger for known in self.charged([mark])):
                    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
                    handle = os.open(self._file(mark), flags, 0o600)
                    try:
                        os.write(handle, line.encode())
                        os.fsync(handle)
                    finally:
                        os.close(handle)

    def _file(self, mark: str) -> Path:
        return self._folder / hashlib.sha256(mark.encode()).hexdigest()[:32]

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LedgerUnwritable(
                f"{str(self._folder)!r}, where this user's ledgers record the rows that they have"
                f" charged, cannot be used ({(error.strerror or 'failed').lower()}); nothing was"
                " released. Make it writable, or set XDG_STATE_HOME to a folder that is",
                reason="rows",
            ) from error
