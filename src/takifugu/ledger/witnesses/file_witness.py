"""A witness in a file: two records, written in turn, of which a crash can spoil the older one."""

import fcntl
import hashlib
import os
import stat
from dataclasses import dataclass
from errno import EINVAL, ENOSPC
from pathlib import Path
from time import monotonic, sleep

from takifugu._atomic import refuse_special
from takifugu.errors import LedgerSetBack, LedgerUnavailable, LedgerUnwritable
from takifugu.keys import state_folder
from takifugu.ledger.events.event_chain import Anchor

AGAIN = 0.001  # seconds until a lock that others hold is tried again
SLOT = 4096  # bytes: a block of a disk is written in full or left alone


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
    """One file for a ledger, or a folder with a file for each."""

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
            handle = os.open(self.path(ledger), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._failed(error, "read") from error
        try:
            slots = self._slots(handle, ledger)
        except OSError as error:
            raise self._failed(error, "read") from error
        finally:
            os.close(handle)
        return max(slots, key=lambda slot: slot.turn).event if slots else None

    def record(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Record ``event`` unless others have recorded something since."""
        try:
            handle = self._open(ledger)
            try:
                self._lock(handle)
                return self._record(handle, ledger, event, seen)
            finally:
                os.close(handle)
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
                sleep(AGAIN)

    def _open(self, ledger: str) -> int:
        path, flags = self.path(ledger), os.O_RDWR | os.O_CLOEXEC
        refuse_special(path)
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            _make_private(Path(path).parent)
            return os.open(path, flags | os.O_CREAT, 0o600)

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
        line = f"{text} {_check(text)}\n".encode("ascii").ljust(SLOT, b"\0")
        if slots and os.fstat(handle).st_size == 2 * SLOT:
            _write(handle, line, SLOT * (turn % 2))
            os.fdatasync(handle)
            return event
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 2 * SLOT)
        _write(handle, line, SLOT * (turn % 2))
        os.fsync(handle)
        sync_folder(Path(self.path(ledger)).parent)
        return event

    def close(self) -> None:
        """Nothing is kept open."""

    def _slots(self, handle: int, ledger: str) -> list[_Slot]:
        """The records that were written in full. One of another ledger is an error."""
        found = []
        content = os.pread(handle, 2 * SLOT, 0)
        for place in (0, SLOT):
            line = content[place : place + SLOT].partition(b"\n")[0]
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
            found.append(_Slot(int(turn), Anchor(int(seq), hash_)))
        return found

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


def sync_folder(folder: Path) -> None:
    """Make a new name in ``folder`` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
