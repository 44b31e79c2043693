"""What this user's state folder remembers: the heads of ledgers, and the rows they have charged."""

import fcntl
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from errno import EINVAL, ENOSPC
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from takifugu._core.atomic import refuse_special
from takifugu._core.keys import key_at, state_folder
from takifugu.errors import LedgerSetBack, LedgerUnavailable, LedgerUnwritable
from takifugu.ledger.events.event_chain import Anchor

RETRY_SECONDS = 0.001  # seconds until a lock that others hold is tried again
SLOT_BYTES = 4096  # bytes: a block of a disk is written in full or left alone


def heads_folder() -> Path:
    """Where heads are recorded, in this user's state folder."""
    try:
        return state_folder() / "heads"
    except OSError as error:
        raise LedgerUnwritable(
            "this user has no home folder to keep the witness of a ledger in; set XDG_STATE_HOME,"
            " or name a witness",
            reason="witness",
        ) from error


@dataclass(frozen=True)
class _Slot:
    """One of the two records in a file: the one with the later turn counts."""

    turn: int
    event: Anchor


class FileWitness:
    """A witness in one file for a ledger, or in a folder with a file for each.

    A file has two records, written in turn, of which a crash can spoil the older one.
    """

    def __init__(self, place: Path, *, folder: bool, wait: float = 10.0) -> None:
        """``wait``: seconds for others who record, and may be stopped while they do."""
        self._folder, self.name, self._wait = folder, str(place), wait

    def path(self, ledger: str) -> str:
        """The file of one ledger."""
        return os.path.join(self.name, ledger) if self._folder else self.name

    def read(self, ledger: str) -> Anchor | None:
        """The event that was recorded last."""
        try:
            refuse_special(self.path(ledger))
            with _handle(self.path(ledger), os.O_RDONLY) as handle:
                slots = self._slots(handle, ledger)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error, "read") from error
        return max(slots, key=lambda slot: slot.turn).event if slots else None

    def record(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Record ``event`` unless others have recorded something since."""
        try:
            with self._opened(ledger) as handle:
                self._lock(handle)
                return self._record(handle, ledger, event, seen)
        except OSError as error:
            raise self._failed(error, "written") from error

    def _lock(self, handle: int) -> None:
        """Keep others out until the file is closed: it is of this opening, so threads wait too."""
        until = monotonic() + self._wait
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if monotonic() > until:
                    raise LedgerUnavailable(
                        f"others hold the witness {self.name!r} locked; nothing was released. See"
                        " whether a process of theirs is stopped, then try again",
                        reason="locked",
                    ) from None
                sleep(RETRY_SECONDS)

    def _opened(self, ledger: str) -> AbstractContextManager[int]:
        path, flags = self.path(ledger), os.O_RDWR
        refuse_special(path)
        if not os.path.exists(path):
            _make_private(Path(path).parent)
            flags |= os.O_CREAT
        return _handle(path, flags)

    def _record(
        self, handle: int, ledger: str, event: Anchor, seen: Anchor | None
    ) -> Anchor | None:
        if not stat.S_ISREG(os.fstat(handle).st_mode):  # a device forgets, and is not ours
            raise OSError(EINVAL, "not a regular file")
        slots = sorted(self._slots(handle, ledger), key=lambda slot: slot.turn)
        now = slots[-1].event if slots else None
        if now == event or now != seen:
            return now
        turn = slots[-1].turn + 1 if slots else 0
        text = f"{turn} {ledger} {event.seq} {event.hash}"
        line = f"{text} {_check(text)}\n".encode("ascii").ljust(SLOT_BYTES, b"\0")
        if slots and os.fstat(handle).st_size == 2 * SLOT_BYTES:
            _write(handle, line, SLOT_BYTES * (turn % 2))
            os.fdatasync(handle)
            return event
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 2 * SLOT_BYTES)
        _write(handle, line, SLOT_BYTES * (turn % 2))
        os.fsync(handle)
        sync(Path(self.path(ledger)).parent)
        return event

    def close(self) -> None:
        """Nothing is kept open."""

    def _slots(self, handle: int, ledger: str) -> list[_Slot]:
        """The records that were written in full. One of another ledger is an error."""
        slots = []
        content = os.pread(handle, 2 * SLOT_BYTES, 0)
        for place in (0, SLOT_BYTES):
            line = content[place : place + SLOT_BYTES].partition(b"\n")[0]
            text, _, check = line.decode("ascii", "replace").rpartition(" ")
            if not text or check != _check(text):
                continue
            turn, whose, seq, hash_ = text.split(" ")
            if whose != ledger:
                raise LedgerSetBack(
                    f"{self.name!r} is the witness of another ledger; nothing was released. Give"
                    " every ledger a witness of its own",
                    reason="another ledger",
                )
            slots.append(_Slot(int(turn), Anchor(int(seq), hash_)))
        return slots

    def _failed(self, error: OSError, done: str) -> LedgerUnwritable:
        return LedgerUnwritable(
            f"the witness {self.name!r} cannot be {done} ({(error.strerror or 'failed').lower()});"
            " nothing was released. Make it writable, set XDG_STATE_HOME to a folder that is, or"
            " name another witness",
            reason="witness",
        )


def _make_private(folder: Path) -> None:
    """Make a folder, and those above it that are missing, for this user alone."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _write(handle: int, line: bytes, place: int) -> None:
    """Write all of a record: a disk that is nearly full may take a part and report no error."""
    if os.pwrite(handle, line, place) != len(line):
        raise OSError(ENOSPC, os.strerror(ENOSPC))


def _check(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sync(path: Path) -> None:
    """Make the contents of a file durable, or the new names in a folder."""
    with _handle(path, os.O_RDONLY) as handle:
        os.fsync(handle)


@contextmanager
def _handle(path: str | Path, flags: int) -> Iterator[int]:
    """A file that is opened, for its owner alone if it is made, until the block is left."""
    handle = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


class ChargedRows(NamedTuple):
    """A ledger that has charged some rows: its name, where it was, its dataset; and the mark."""

    ledger: str
    place: str
    dataset: str
    mark: str


class KnownRows:
    """Which of this user's ledgers has charged which rows: a second one would have a new budget.

    Two datasets of one ledger that have the same rows are told apart by the ledger itself
    (`takifugu.ledger.events.cell_naming`). For two ledgers the state folder knows, which also
    records the heads of this user's ledgers: for each keyed mark of rows (where they are, their
    bytes, what they are about) a small file that names the ledgers which have charged them. The key
    lies in the same folder, so that the names of the files say nothing to whoever has only these.
    Edited copies, parts of a table and ledgers of other users are not recognised.
    """

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
            lock = ExitStack()
            handle = lock.enter_context(_handle(self._folder / "lock", os.O_CREAT | os.O_RDWR))
        with lock:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

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
                    flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND
                    with _handle(self._file(mark), flags) as handle:
                        os.write(handle, line.encode())
                        os.fsync(handle)

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
