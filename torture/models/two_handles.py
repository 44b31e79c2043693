"""A ledger in a file that two handles have open, and what becomes of that file.

Copies, rollbacks, files that are replaced while they are open, edits behind the ledger's back: each
must be noticed, and nothing be written to a file that is not the newest.
"""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from takifugu.errors import LedgerError, LedgerSetBack, LedgerUnavailable
from takifugu.ledger import Ledger, open_ledger
from tests.ledger.folders import in_memory
from tests.oracles.ledger_sums import PlainEvent, events_of
from torture.models.counted_machine import DONE, NOTICED, CountedMachine, must
from torture.models.crash_points import UNTOLD, Point

EDITS = {
    "a total": "UPDATE takifugu_accounts SET always = '0', worst = '0' WHERE analyst = ''",
    "a cell": "UPDATE takifugu_cells SET own = '0'",
    "a stretch of time": "UPDATE takifugu_segments SET base = '0', peak = '0'",
    "a budget": "UPDATE takifugu_accounts SET epsilon = '1000' WHERE epsilon IS NOT NULL",
    "an event": "UPDATE takifugu_events SET body = replace(body, '/', '/9') WHERE kind = 'charge'",
    "the last event": "DELETE FROM takifugu_events WHERE seq = (SELECT seq FROM takifugu_head)",
    "the end": """
        DELETE FROM takifugu_events WHERE seq = (SELECT seq FROM takifugu_head);
        UPDATE takifugu_head SET seq = seq - 1,
        hash = (SELECT hash FROM takifugu_events ORDER BY seq DESC LIMIT 1)""",
}
copies, handles = st.integers(0, 1), st.sampled_from((0, 1))


class TwoHandles(CountedMachine):
    """A ledger in a folder in memory, with its witness, opened twice.

    Attributes:
        path: The file of the ledger.
        open: The handles.
        known: The last event that somebody was told of.
        untold: The last event when somebody died before its witness knew it. Nobody was told of
            it, and an older copy without it lacks nothing, until it is shown, or the ledger is
            opened again, or another event follows.
        edited_at: The last event when the file was last edited: a new one makes it worth while.
        set_back_at: The same for the last time that an older copy was put back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder: Path = self.resources.enter_context(in_memory())
        self.path = self.folder / "ward.ledger"
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = str(self.folder / "state")
        self.resources.callback(_put_back, before)
        self.open: list[Ledger] = []
        self.resources.callback(self.close)
        self.known = self.edited_at = self.set_back_at = self.untold = 0

    def reopen(self) -> None:
        """Both handles anew."""
        self.close()
        self.open = [open_ledger(self.path, wait=60) for _ in range(2)]
        self.untold = 0  # the witness is brought forward

    def close(self) -> None:
        """Close both handles."""
        for ledger in self.open:
            ledger.close()
        self.open = []

    def events(self) -> list[PlainEvent]:
        """Every event, by plain SQL."""
        return events_of(str(self.path))

    def keys(self) -> set[Any]:
        """The keys of all events, by plain SQL."""
        return {event.body.get("key") for event in self.events()}

    def state(self) -> tuple[Any, ...]:
        """What must not change by what is refused."""
        last = self.events()[-1]
        return last.seq, last.hash, self.open[0].positions()

    def sound(self, ledger: Ledger) -> None:
        """The chain must be sound, and is known from now on, unless its end is `untold`."""
        report = ledger.verify()
        must(report.sound, f"{report.problems}")
        if report.head.seq > self.untold:
            self.told(report.head.seq)

    def told(self, seq: int) -> None:
        """Somebody was told of an event: no older copy may take its place unnoticed."""
        self.known = max(self.known, seq)

    def died(self, point: Point | None) -> None:
        """Somebody came to an end there."""
        if point in UNTOLD:
            self.untold = self.events()[-1].seq

    def copy(self, number: int) -> Path:
        """Where a copy is kept."""
        return self.folder / f"copy{number}"

    @rule(handle=handles, number=copies)
    def back_up(self, handle: int, number: int) -> None:
        """A copy is made, to be put back some time."""
        self.copy(number).unlink(missing_ok=True)
        self.open[handle].backup(self.copy(number))
        self.took("backup")

    @property
    def older(self) -> list[int]:
        """The copies that lack an event that somebody was told of."""
        return [
            number
            for number in (0, 1)
            if self.copy(number).exists() and events_of(str(self.copy(number)))[-1].seq < self.known
        ]

    def put(self, source: Path) -> None:
        """A file in the place of the ledger, which nobody has open."""
        for end in ("", "-wal", "-shm"):
            Path(f"{self.path}{end}").unlink(missing_ok=True)
        shutil.copy(source, self.path)

    def set_aside(self) -> Path:
        """The newest state, in a file; nobody has the ledger open then."""
        self.close()
        newest = self.folder / "newest"
        shutil.copy(self.path, newest)
        return newest

    @precondition(lambda self: self.set_back_at < self.known and self.older)
    @rule(number=copies, while_open=st.booleans())
    def set_back(self, number: int, while_open: bool) -> None:
        """Somebody puts an older copy in its place: it is refused until it is put right."""
        self.set_back_at, copy = self.known, self.copy(self.older[number % len(self.older)])
        if while_open:
            self.replaced_while_open(copy)
        newest = self.set_aside()
        self.put(copy)
        self.refused_everywhere()
        self.took("rollback", NOTICED)
        self.put(newest)
        self.reopen()

    def replaced_while_open(self, copy: Path) -> None:
        """Handles that are open notice another file in the place of theirs."""
        aside, other = self.folder / "aside", self.folder / "other"
        shutil.copy(copy, other)
        Path(self.path).rename(aside)
        other.rename(self.path)
        for ledger in self.open:
            try:
                ledger.set_budget("nothing", 1)
            except LedgerUnavailable:
                self.took("file replaced while open", NOTICED)
            else:
                must(False, "a handle wrote to a file that is not in its place any more")
        os.replace(aside, self.path)

    def refused_everywhere(self) -> None:
        """An older copy opens for nobody, and a verification says why."""
        try:
            open_ledger(self.path, wait=5).close()
        except LedgerSetBack:
            pass
        else:
            must(False, "an older copy was opened")
        with open_ledger(self.path, inspect=True, wait=5) as ledger:
            must(not ledger.verify().sound, "an older copy is said to be sound")

    @precondition(lambda self: self.edited_at < self.known)
    @rule(what=st.sampled_from(sorted(EDITS)))
    def edit_behind_its_back(self, what: str) -> None:
        """Somebody edits the file: a verification says so, unless nothing was there to edit."""
        self.edited_at = self.known
        free = what == "the end" and self.events()[-1].seq == self.untold  # as if it had never been
        newest = self.set_aside()
        with closing(sqlite3.connect(self.path)) as raw:
            before = list(raw.iterdump())
            raw.executescript(EDITS[what])
            raw.commit()
            changed = list(raw.iterdump()) != before
        if changed:
            sound = False
            with suppress(LedgerError), open_ledger(self.path, inspect=True, wait=5) as ledger:
                sound = ledger.verify().sound
            must(free or not sound, f"an edit of {what} is said to be sound")
            self.took(f"edit of {what}", DONE if sound else NOTICED)
        self.put(newest)
        self.reopen()


def _put_back(before: str | None) -> None:
    if before is None:
        os.environ.pop("XDG_STATE_HOME", None)
    else:
        os.environ["XDG_STATE_HOME"] = before
