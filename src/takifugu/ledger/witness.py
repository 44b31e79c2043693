"""A witness of the head: the last event, noted durably in a second place.

A chain of hashes shows every change but one: an older copy put back is a sound chain, and with it
the budget that was spent since would be there again. So the place and hash of the last event are
kept elsewhere: by default in a file in the user's state folder, or in a file or database that is
named. They are compared when a ledger is opened, whenever it is read to plan, and before anything
is written; a charge is acknowledged only when its event is noted. The order is always: commit,
note, acknowledge. A crash in between leaves the witness behind the ledger, which is no harm: the
witnessed event is still there, and the note is brought forward. Several processes may note: the
one that comes late finds a later event, looks whether its own ledger has it, and leaves it.

Whoever can write both places can set both back; keep the witness where the ledger's backups do not
reach, and on a server where those who write the ledger cannot set it back.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from errno import EINVAL, ENOSPC
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, bindparam, insert, select, update

from takifugu.errors import LedgerDamaged, LedgerSetBack, LedgerUnwritable
from takifugu.keys import state_folder
from takifugu.ledger import chain
from takifugu.ledger.chain import Anchor
from takifugu.ledger.schema import EVENTS, WITNESSES
from takifugu.ledger.statement import Statement
from takifugu.ledger.work import work_of
from takifugu.whole import refuse_special

SLOT = 4096  # bytes: a block of a disk is written in full or left alone
IDENTITY = re.compile(r"[0-9a-f]{32}")


class LostWitness(UserWarning):
    """A ledger with a past has no witness: the note was lost, or it is opened here first."""


class Witness(Protocol):
    """A second place that remembers the head of ledgers. Implemented by files and databases."""

    name: str

    def read(self, ledger: str, /) -> Anchor | None:
        """The event that was noted last; None if none was."""

    def note(self, ledger: str, event: Anchor, seen: Anchor | None, /) -> Anchor | None:
        """Note ``event``, durably, if what is noted is still what was ``seen``.

        Returns:
            What is noted now: ``event``, or what others have noted since it was ``seen``.
        """

    def close(self) -> None:
        """Let go of it."""


# --- files ---


def heads_folder() -> Path:
    """Where heads are noted, in this user's state folder."""
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
    """One of the two notes in a file: the one with the later turn counts."""

    turn: int
    event: Anchor


class FileWitness:
    """A file with two notes, written in turn: a crash can spoil the older one at most."""

    def __init__(self, place: Path, *, folder: bool) -> None:
        self._folder, self.name = folder, str(place)

    def path(self, ledger: str) -> str:
        """The file of one ledger."""
        return os.path.join(self.name, ledger) if self._folder else self.name

    def read(self, ledger: str) -> Anchor | None:
        """The event that was noted last."""
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

    def note(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Note ``event`` unless others have noted something since."""
        try:
            handle = self._open(ledger)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)  # of this opening alone: threads wait for it too
                return self._note(handle, ledger, event, seen)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._failed(error, "written") from error

    def _open(self, ledger: str) -> int:
        path, flags = self.path(ledger), os.O_RDWR | os.O_CLOEXEC
        refuse_special(path)
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            _make_private(Path(path).parent)
            return os.open(path, flags | os.O_CREAT, 0o600)

    def _note(self, handle: int, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        if not stat.S_ISREG(
            os.fstat(handle).st_mode
        ):  # a device forgets, and is not ours to change
            raise OSError(EINVAL, "no file")
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
        """The notes that were written in full. One that is of another ledger is an error."""
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
    """Write all of a note: a disk that is nearly full may take a part of it and say no word."""
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


# --- databases ---

_OF = WITNESSES.c.ledger == bindparam("whose")
_NOTED = Statement(select(WITNESSES.c.seq, WITNESSES.c.hash).where(_OF).with_for_update())
_BEGIN = Statement(insert(WITNESSES), "ledger", "seq", "hash")
_MOVE = Statement(update(WITNESSES).where(_OF), "seq", "hash")


class DatabaseWitness:
    """A row for each ledger in a database of its own."""

    def __init__(self, store: Any) -> None:
        self._store, self.name, self._ready = store, store.name, False

    def read(self, ledger: str) -> Anchor | None:
        """The event that was noted last."""
        self._make()
        with self._store.reading() as connection:
            row = connection.execute(select(WITNESSES).where(WITNESSES.c.ledger == ledger)).first()
        return None if row is None else Anchor(row.seq, row.hash)

    def note(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Note ``event`` unless others have noted something since."""
        self._make()
        with self._store.writing() as connection:
            row = _NOTED.one(connection, {"whose": ledger})
            now = None if row is None else Anchor(row.seq, row.hash)
            if now == event or now != seen:
                return now
            if now is None:
                _BEGIN.run(connection, {"ledger": ledger, "seq": event.seq, "hash": event.hash})
            else:
                _MOVE.run(connection, {"whose": ledger, "seq": event.seq, "hash": event.hash})
        return event

    def close(self) -> None:
        """Let go of the connections."""
        self._store.close()

    def _make(self) -> None:
        if not self._ready:
            with self._store.writing() as connection:
                self._store.only_one(connection)
                WITNESSES.create(connection, checkfirst=True)
            self._ready = True


# --- comparing ---

_HASH_AT = Statement(select(EVENTS.c.hash).where(EVENTS.c.seq == bindparam("wanted")))


class Guard:
    """Holds a ledger against its witness.

    Attributes:
        witness: None if the owner chose to have none: every event then says so.
        lenient: Whether a ledger that was set back may be looked into; nothing is written then.
    """

    def __init__(self, witness: Witness | None, name: str, *, writes: bool, lenient: bool) -> None:
        self.witness, self.lenient = witness, lenient
        self._name, self._writes = name, writes
        self.ledger = ""
        self._warned = False

    def noted(self) -> Anchor | None:
        """What is noted now. Read before the ledger is: it never runs ahead of it."""
        if self.witness is None or not self.ledger:
            return None
        return self.witness.read(self.ledger)

    def begin(self, connection: Connection) -> None:
        """Before something is written: lock the chain and compare."""
        work = work_of(connection)
        work.unwitnessed = self.witness is None
        if self.ledger and self.witness is not None:
            chain.head(connection, lock=True)
            noted = self.noted()
            self.compare(connection, noted)
            work.seen = noted

    def compare(self, connection: Connection, noted: Anchor | None) -> None:
        """Refuse a ledger that does not have the event that was ``noted``."""
        if self.lenient or self.witness is None:
            return
        if noted is None:
            self._lost(connection)
        elif not holds(connection, noted):
            raise self.refusal(connection, noted)

    def refusal(self, connection: Connection, noted: Anchor) -> LedgerSetBack:
        """What to say of a ledger that does not have the event that was ``noted``."""
        last = chain.head(connection)
        older = last.seq < noted.seq
        state = (
            f"ends at event {last.seq} but its witness has seen event {noted.seq}: it is an older"
            " copy"
            if older
            else f"has another event {noted.seq} than its witness has seen: it is another history"
        )
        where = self.witness.name if self.witness else ""
        return LedgerSetBack(
            f"ledger {self._name!r} {state} (witness: {where}); nothing was released. Restore the"
            " newer copy; if it is lost, the owner may run `takifugu ledger accept-loss`, which"
            " counts the budget as spent",
            reason="older" if older else "another history",
            event=noted.seq,
        )

    def _lost(self, connection: Connection) -> None:
        last = chain.head(connection)
        if last.seq > 1 and not self._warned and self.witness is not None:
            self._warned = True
            done = "it is made anew" if self._writes else "it will be made anew by the next charge"
            warnings.warn(
                f"ledger {self._name!r} has {last.seq} events but no witness in"
                f" {self.witness.name}: {done}. If this user has opened the ledger before, make"
                " sure that it is not an older copy",
                LostWitness,
                stacklevel=2,
            )

    def advance(
        self,
        event: Anchor,
        seen: Anchor | None,
        reading: Callable[[], contextlib.AbstractContextManager[Connection]],
    ) -> None:
        """After a commit: note ``event``, or see that a later one of this ledger is noted."""
        if self.witness is None or not self.ledger:
            return
        while True:
            now = self.witness.note(self.ledger, event, seen)
            if now == event:
                return
            if now is not None:
                with reading() as connection:
                    if not holds(connection, now):
                        raise self.refusal(connection, now)
                if now.seq > event.seq:
                    return
            seen = now


def holds(connection: Connection, noted: Anchor) -> bool:
    """Whether the chain has the event that was ``noted``, or accepted its loss."""
    last = chain.head(connection)
    if (last.seq, last.hash) == (noted.seq, noted.hash):
        return True
    if last.seq > noted.seq:
        row = _HASH_AT.one(connection, {"wanted": noted.seq})
        if row is not None and row.hash == noted.hash:
            return chain.one(connection, noted.seq).hash == noted.hash
    return _accepted(connection, noted)


def _accepted(connection: Connection, noted: Anchor) -> bool:
    """Whether a later decision of the owner gave up the history that was ``noted``."""
    losses = connection.execute(select(EVENTS.c.seq).where(EVENTS.c.kind == "loss")).scalars()
    return any(
        chain.one(connection, seq).body.get("lost") == {"seq": noted.seq, "hash": noted.hash}
        for seq in losses.all()
    )


def identity(connection: Connection) -> str:
    """The name that a ledger was given when it was made; a copy has the same."""
    found = chain.one(connection, 1).body.get("ledger")
    if not isinstance(found, str) or not IDENTITY.fullmatch(found):
        raise LedgerDamaged(
            "the first event does not name the ledger; restore a copy", reason="unreadable", event=1
        )
    return found
