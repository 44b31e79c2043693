"""An older copy put back is refused; what was lost for good counts as spent."""

import fcntl
import os
import shutil
import signal
import sqlite3
import stat
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import (
    BudgetExceeded,
    LedgerConflict,
    LedgerDamaged,
    LedgerSetBack,
    LedgerUnavailable,
    LedgerUnwritable,
    UnsoundRequest,
)
from takifugu.ledger import (
    Anchor,
    Answer,
    Charge,
    Event,
    Groups,
    Ledger,
    LostWitness,
    Window,
    accept_loss,
    open_ledger,
)
from takifugu.ledger.witnesses.file_witness import SLOT, FileWitness, heads_folder
from takifugu.losses import Concentrated, Total
from takifugu.translation.protocol import LossTranslation
from tests.contracts.ledger import paid
from tests.ledger.charges import DOUBLING, IDENTITY, RICH, charge
from tests.ledger.folders import in_memory
from tests.raising import raises

Opener = Callable[..., Ledger]


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a budget of 2, closed; a copy of it is beside it."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25"), DOUBLING)
    shutil.copy(folder / "ward.ledger", folder / "copy")
    return folder / "ward.ledger"


def set_back(path: Path) -> None:
    """Spend something, then put the copy in its place."""
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.5"), DOUBLING)
    shutil.copy(path, path.with_name("newer"))
    shutil.copy(path.with_name("copy"), path)


def test_an_older_copy_is_refused_before_anything_is_planned(path: Path) -> None:
    set_back(path)
    for read_only in (False, True):
        with raises(LedgerSetBack, reason="older", event=4):
            open_ledger(path, read_only=read_only)
    with open_ledger(path, inspect=True) as ledger:
        report = ledger.verify()
        assert not report.sound and report.witness is not None and report.witness.seq == 4
        with pytest.raises(LedgerUnwritable):
            ledger.charge(charge("0.25"), DOUBLING)
    shutil.copy(path.with_name("newer"), path)
    with open_ledger(path) as ledger:
        assert ledger.spent("ward", DOUBLING) == 1.5 and ledger.verify().sound


def test_a_copy_put_back_under_an_open_ledger_is_refused(path: Path, opened: Opener) -> None:
    ledger, reader = opened(path), opened(path, read_only=True)
    with open_ledger(path) as other:
        before = other.head()
        other.charge(charge("0.5"), DOUBLING)
    with sqlite3.connect(path) as raw:  # as if a snapshot of the disk had been put back
        raw.execute("DELETE FROM takifugu_events WHERE seq > ?", (before.seq,))
        raw.execute("UPDATE takifugu_head SET seq = ?, hash = ?", (before.seq, before.hash))
    raw.close()
    for plan in (ledger.remaining, ledger.spent, reader.remaining, reader.spent):
        with pytest.raises(LedgerSetBack):
            plan("ward", DOUBLING)
    with pytest.raises(LedgerSetBack):
        ledger.charge(charge("0.25"), DOUBLING)
    with pytest.raises(LedgerSetBack):
        ledger.set_budget("ward", 9)


def test_two_copies_used_in_turn_are_refused(path: Path) -> None:
    other = path.with_name("copy")
    with open_ledger(other) as copy:
        copy.charge(charge("0.25"), DOUBLING)
    with raises(LedgerSetBack, reason="older"):
        open_ledger(path)


def test_two_copies_that_are_open_at_once_do_not_both_acknowledge(
    path: Path, opened: Opener
) -> None:
    one, two = opened(path), opened(path.with_name("copy"))
    one.charge(charge("0.25"), DOUBLING)
    with pytest.raises(LedgerSetBack):
        two.charge(charge("0.25"), DOUBLING)


def test_of_two_copies_that_charge_at_the_same_moment_one_is_refused(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = opened(path), opened(path.with_name("copy"))
    note = FileWitness.record

    def after_the_other(self: FileWitness, *arguments: object) -> object:
        monkeypatch.setattr(FileWitness, "record", note)
        one.charge(charge("0.25"), DOUBLING)
        return note(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FileWitness, "record", after_the_other)
    with raises(LedgerSetBack, reason="another history"):
        two.charge(charge("0.5"), DOUBLING)
    one.charge(charge("0.25"), DOUBLING)
    with pytest.raises(LedgerSetBack):
        two.charge(charge("0.25"), DOUBLING)


def test_a_note_that_comes_late_never_moves_the_witness_backwards(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = opened(path), opened(path)
    note = FileWitness.record

    def late(self: FileWitness, *arguments: object) -> object:
        monkeypatch.setattr(FileWitness, "record", note)
        for _ in range(2):
            quick.charge(charge("0.125"), DOUBLING)
        return note(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FileWitness, "record", late)
    assert slow.charge(charge("0.125"), DOUBLING).anchor.seq == 4
    assert quick.verify().witness == quick.head() and quick.head().seq == 6


def test_a_crash_before_the_note_leaves_the_witness_behind_and_no_harm(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, first = opened(path), charge("0.25")

    def dies(*_: object) -> None:
        raise LedgerUnwritable("no room for the note")

    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", dies)
        with pytest.raises(LedgerUnwritable):
            ledger.charge(first, DOUBLING)
    report = ledger.verify()
    assert report.sound and report.witness is not None and report.witness.seq == 3
    assert opened(path, read_only=True).verify().witness == report.witness
    assert ledger.charge(first, DOUBLING).may_release  # it was paid, and not acknowledged
    assert not opened(path).charge(first, DOUBLING).may_release
    report = ledger.verify()
    assert report.witness == ledger.head() and ledger.spent("ward", DOUBLING) == 1


def test_a_repeat_is_acknowledged_only_once_its_event_is_noted(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, first = opened(path), charge("0.25")

    def dies(*_: object) -> None:
        raise LedgerUnwritable("no room for the note")

    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", dies)
        for _ in range(2):
            with pytest.raises(LedgerUnwritable):
                ledger.charge(first, DOUBLING)
    assert ledger.charge(first, DOUBLING).may_release
    assert ledger.verify().witness == ledger.head()


READS: dict[str, Callable[[Ledger, Charge], Answer | None]] = {
    "quote": lambda ledger, asked: ledger.quote(asked, DOUBLING).answer,
    "lookup": lambda ledger, asked: ledger.lookup(asked),
    "reuse": lambda ledger, asked: ledger.reuse(asked, DOUBLING),
    "earlier": lambda ledger, asked: getattr(ledger.earlier(asked), "answer", None),
}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("how", READS)
def test_an_answer_is_shown_only_once_its_event_is_noted(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch, how: str, read_only: bool
) -> None:
    """Its writer died before the note: lost with an older copy, it would be drawn again."""
    one, other, asked = opened(path), opened(path, read_only=read_only), charge("0.25")
    receipt = one.charge(asked, DOUBLING, resume=True)
    one.backup(path.with_name("without"))

    def dies(*_: object) -> None:
        raise LedgerUnwritable("no room for the note")

    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", dies)
        with pytest.raises(LedgerUnwritable):
            one.record_answer(receipt, 1)
        assert other.spent("ward", DOUBLING) == 1 and other.verify().witness == receipt.anchor
        with pytest.raises(LedgerUnwritable):
            READS[how](other, asked)
    shown = READS[how](other, asked)
    assert shown is not None and shown.value == 1
    assert other.verify().witness == other.head() == shown.event
    one.close()
    other.close()
    shutil.copy(path.with_name("without"), path)
    with raises(LedgerSetBack, reason="older", event=5):
        open_ledger(path)


def exported(ledger: Ledger) -> str:
    place = Path(ledger.name).with_name("export")
    ledger.export(place)
    found = place.read_text(encoding="utf-8")
    place.unlink()
    return found


def first_of(events: Iterator[Event]) -> str:
    """What an interrupted reader has seen."""
    try:
        return str(next(events).body)
    finally:
        events.close()  # type: ignore[attr-defined]


VIEWS: dict[str, Callable[[Ledger], str]] = {
    "history": lambda ledger: str([event.body for event in ledger.history()]),
    "history of answers": lambda ledger: first_of(ledger.history(kind="answer")),
    "history of a dataset": lambda ledger: str([e.body for e in ledger.history("ward")]),
    "the last": lambda ledger: first_of(ledger.history(last=1)),
    "events": lambda ledger: str(ledger.events()),
    "events of kinds": lambda ledger: str(ledger.events(kind=("charge", "answer"))),
    "events before": lambda ledger: str(ledger.events(limit=1, before=6)),
    "event": lambda ledger: str(ledger.event(5)),
    "stored": lambda ledger: str(ledger.stored(4, 1)),
    "export": exported,
}


@pytest.mark.parametrize("how", [{}, {"read_only": True}, {"inspect": True}], ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_an_answer_only_once_its_event_is_noted(
    path: Path,
    opened: Opener,
    monkeypatch: pytest.MonkeyPatch,
    view: str,
    how: dict[str, bool],
) -> None:
    """Read in the history, lost with an older copy, it would be drawn again under its charge."""
    one, other, asked = opened(path), opened(path, **how), charge("0.25")
    receipt = one.charge(asked, DOUBLING, resume=True)
    one.backup(path.with_name("without"))

    def dies(*_: object) -> None:
        raise LedgerUnwritable("no room for the note")

    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", dies)
        with pytest.raises(LedgerUnwritable):
            one.record_answer(receipt, "first")
        with pytest.raises(LedgerUnwritable):
            VIEWS[view](other)
        assert not path.with_name("export").exists()
    assert other.verify().witness == receipt.anchor
    assert "first" in VIEWS[view](other)
    assert other.verify().witness == other.head() and other.head().seq == 5
    one.close()
    other.close()
    shutil.copy(path.with_name("without"), path)
    with raises(LedgerSetBack, reason="older", event=5):
        open_ledger(path)


def test_a_view_notes_once_what_it_shows_and_only_answers(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, reader = opened(path), opened(path, read_only=True)
    notes, note = list[Anchor](), FileWitness.record

    def forgets(_: FileWitness, _ledger: str, event: Anchor, _seen: Anchor | None) -> Anchor:
        return event

    def counted(
        self: FileWitness, ledger: str, event: Anchor, seen: Anchor | None
    ) -> Anchor | None:
        notes.append(event)
        return note(self, ledger, event, seen)

    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", forgets)
        for _ in range(5):
            one.record_answer(one.charge(charge("1/64"), DOUBLING), 1)
        one.charge(charge("1/64"), DOUBLING)
    monkeypatch.setattr(FileWitness, "record", counted)
    assert len(list(reader.history(kind="charge"))) == len(reader.events(kind="charge")) == 7
    assert reader.event(4) is not None and len(reader.stored(0, 4)) == 4 and not notes
    assert len(list(reader.history())) == len(reader.events()) == reader.head().seq
    assert notes == [reader.head()]


def test_an_inspection_makes_no_record_and_shows_an_older_copy_as_it_is(
    path: Path,
) -> None:
    with open_ledger(path) as ledger:
        ledger.record_answer(ledger.charge(charge("0.25"), DOUBLING), "first")
    shutil.copy(path, path.with_name("copy"))
    set_back(path)
    with open_ledger(path, inspect=True) as ledger:
        noted = ledger.verify().witness
        assert all("first" in view(ledger) for view in VIEWS.values())
        assert ledger.verify().witness == noted != ledger.head()
    (head,) = heads_folder().iterdir()
    head.unlink()
    with open_ledger(path, inspect=True) as ledger:
        assert all("first" in view(ledger) for view in VIEWS.values())
        assert ledger.verify().witness is None and not list(heads_folder().iterdir())


def test_a_damaged_ledger_is_inspected_without_a_note(path: Path) -> None:
    with open_ledger(path) as ledger:
        noted = ledger.head()
    with open_ledger(path, witness=False) as ledger:
        ledger.record_answer(ledger.charge(charge("0.25"), DOUBLING), "first")
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE takifugu_events SET body = body || ' ' WHERE seq = ?", (noted.seq,))
    raw.close()
    with open_ledger(path, inspect=True) as ledger:
        assert "first" in VIEWS["history"](ledger) and "first" in VIEWS["export"](ledger)


def test_a_reader_without_a_record_is_told_what_makes_one(path: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.record_answer(ledger.charge(charge("0.25"), DOUBLING), 1)
    (head,) = heads_folder().iterdir()
    head.unlink()
    with pytest.warns(LostWitness, match="or the next answer that is shown, makes a new one"):
        reader = open_ledger(path, read_only=True)
    with reader:
        assert reader.events(kind="charge") and not head.exists()
        assert reader.events() and reader.verify().witness == reader.head()


@pytest.mark.parametrize("left", ["charge", "abandoned"])
def test_what_a_repeat_is_told_of_is_noted(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    one, other, asked = opened(path), opened(path), charge("0.25")

    def dies(*_: object) -> None:
        raise LedgerUnwritable("no room for the note")

    receipt = one.charge(asked, DOUBLING, resume=True) if left == "abandoned" else None
    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", dies)
        with pytest.raises(LedgerUnwritable):
            one.abandon(receipt) if receipt else one.charge(asked, DOUBLING, resume=True)
        with pytest.raises(LedgerUnwritable):
            other.earlier(asked)
    assert other.verify().witness != other.head()
    earlier = other.earlier(asked)
    assert earlier is not None and earlier.receipt.may_release == (left == "charge")
    assert other.verify().witness == other.head()


def test_an_answer_that_is_noted_is_shown_without_a_note(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, asked = opened(path), charge("0.25")
    one.record_answer(one.charge(asked, DOUBLING), 1)

    def dies(*_: object) -> None:
        raise LedgerUnwritable("no room for the note")

    monkeypatch.setattr(FileWitness, "record", dies)
    with pytest.raises(LedgerUnwritable):
        one.charge(charge("0.125"), DOUBLING)  # a later event that is not noted
    known = opened(path, read_only=True).lookup(asked)
    assert known is not None and known.value == 1
    with open_ledger(path, inspect=True) as ledger:
        assert ledger.lookup(asked) == known


def test_a_note_of_a_history_that_was_given_up_does_not_vouch_for_an_answer(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(path) as ledger:
        for _ in range(9):
            ledger.charge(charge("1/64"), DOUBLING)
        lost = ledger.head()
    shutil.copy(path.with_name("copy"), path)
    asked = charge("0.25", dataset="annex", data="other data")

    def forgets(_: FileWitness, _ledger: str, event: Anchor, _seen: Anchor | None) -> Anchor:
        return event

    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", forgets)
        accept_loss(path, actor="owner", costs=False)
        with open_ledger(path) as ledger:
            ledger.set_budget("annex", 2)
            answer = ledger.record_answer(ledger.charge(asked, DOUBLING), 1)
    reader = opened(path, read_only=True)
    assert reader.verify().witness == lost and lost.seq > answer.event.seq
    assert reader.lookup(asked) == answer
    assert reader.verify().witness == answer.event


@pytest.mark.parametrize("moment", ["before", "half", "written", "noted"])
def test_kill_minus_9_around_the_note_costs_budget_and_refuses_nothing(
    path: Path, moment: str
) -> None:
    """Two kills at every step: the event is in the ledger, and the ledger is opened as before."""
    for times in (1, 2):
        child = os.fork()
        if child == 0:
            try:
                charge_and_die(path, moment)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        with open_ledger(path, read_only=True) as reader:
            noted = reader.verify().witness
            assert noted is not None and noted.seq >= reader.head().seq - (moment != "noted")
        with open_ledger(path) as ledger:
            report = ledger.verify()
            assert report.sound and report.witness == ledger.head() and report.events == 3 + times
            assert ledger.spent("ward", DOUBLING) == 0.5 + 0.25 * times


def charge_and_die(path: Path, moment: str) -> None:
    pwrite, sync, note = os.pwrite, os.fdatasync, FileWitness.record

    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def half(handle: int, line: bytes, place: int) -> None:
        pwrite(handle, line[:40] + bytes(len(line) - 40), place)
        die()

    def noted(*arguments: object) -> None:
        note(*arguments)  # type: ignore[arg-type]
        die()

    with open_ledger(path) as ledger:
        match moment:
            case "before":
                os.pwrite = die  # type: ignore[assignment]
            case "half":
                os.pwrite = half  # type: ignore[assignment]
            case "written":
                os.fdatasync = die  # type: ignore[assignment]
            case "noted":
                FileWitness.record = noted  # type: ignore[method-assign, assignment]
        ledger.charge(charge("0.125"), DOUBLING)
    os.fdatasync = sync


def test_a_lost_witness_is_made_anew_with_a_warning(path: Path) -> None:
    shutil.rmtree(heads_folder())
    with pytest.warns(LostWitness), open_ledger(path, read_only=True):
        assert not heads_folder().exists()
    with (
        pytest.warns(LostWitness) as seen,
        open_ledger(path) as ledger,
    ):
        ledger.charge(charge("0.25"), DOUBLING)
    assert len(seen) == 1
    shutil.copy(path.with_name("copy"), path)
    with pytest.raises(LedgerSetBack):
        open_ledger(path)


def test_a_new_ledger_needs_no_warning_and_none_is_written_elsewhere(folder: Path) -> None:
    mask = os.umask(0)
    try:
        shutil.rmtree(heads_folder(), ignore_errors=True)
        with open_ledger(folder / "new.ledger") as ledger:
            ledger.set_budget("ward", 2)
            for name in ("new.ledger", "new.ledger-wal", "new.ledger-shm"):
                assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    finally:
        os.umask(mask)
    (note,) = heads_folder().iterdir()
    assert stat.S_IMODE(note.stat().st_mode) == 0o600
    for parent in (heads_folder(), heads_folder().parent):
        assert stat.S_IMODE(parent.stat().st_mode) == 0o700
    assert heads_folder().is_relative_to(os.environ["XDG_STATE_HOME"])


@pytest.mark.parametrize("kind", ["file", "database"])
def test_the_witness_may_be_kept_elsewhere(folder: Path, opened: Opener, kind: str) -> None:
    elsewhere = folder / "elsewhere"
    witness = str(elsewhere) if kind == "file" else f"sqlite:///{elsewhere}"
    path = folder / "ward.ledger"
    with open_ledger(path, witness=witness) as ledger:
        ledger.set_budget("ward", 2)
        assert ledger.witness == str(elsewhere) and ledger.verify().witness == ledger.head()
        identity = next(iter(ledger.history())).body["ledger"]
    assert not (heads_folder() / identity).exists()
    shutil.copy(path, folder / "copy")
    with open_ledger(path, witness=witness) as ledger:
        ledger.charge(charge("0.25"), DOUBLING)
    shutil.copy(folder / "copy", path)
    with pytest.raises(LedgerSetBack):
        opened(path, witness=witness)
    if kind == "file":
        with raises(LedgerSetBack, reason="another ledger"):
            opened(folder / "second.ledger", witness=witness)
    else:
        opened(folder / "second.ledger", witness=witness).set_budget("ward", 1)
    accept_loss(path, witness=witness, actor="owner", costs=False)
    assert opened(path, witness=witness).verify().sound


def test_without_a_witness_every_event_says_so(folder: Path, opened: Opener) -> None:
    ledger = opened(folder / "ward.ledger", witness=False)
    ledger.set_budget("ward", 2)
    assert [e.body["witness"] for e in ledger.history()] == ["off", "off"]
    assert ledger.witness is None and ledger.verify().witness is None and ledger.verify().sound
    with pytest.warns(LostWitness):
        noted = opened(folder / "ward.ledger")
    noted.charge(charge("0.25"), DOUBLING)
    assert "witness" not in list(noted.history())[-1].body


def test_a_note_that_was_half_written_leaves_the_one_before(path: Path) -> None:
    (note,) = [n for n in heads_folder().iterdir() if str(identity(path)) == n.name]
    with open_ledger(path) as ledger:
        for _ in range(3):
            ledger.charge(charge("1/64"), DOUBLING)
        heads = [Anchor(e.seq, e.hash) for e in ledger.history()]
    content = note.read_bytes()
    assert len(content) == 2 * SLOT
    witness, newest = FileWitness(note, folder=False), heads[-1]
    assert witness.read(note.name) == newest
    for place in (0, SLOT):
        torn = bytearray(content)
        torn[place + 20 : place + SLOT] = bytes(SLOT - 20)
        note.write_bytes(torn)
        assert witness.read(note.name) in heads[-2:]
    note.write_bytes(content[:100])
    with pytest.warns(LostWitness), open_ledger(path) as ledger:  # too little is left of it
        assert ledger.verify().witness == ledger.head()


def test_a_witness_that_others_keep_locked_is_waited_for_and_then_given_up(path: Path) -> None:
    (note,) = [n for n in heads_folder().iterdir() if str(identity(path)) == n.name]
    wanted = charge("1/64")
    with open_ledger(path, wait=0.1) as ledger:
        handle = os.open(note, os.O_RDWR)
        fcntl.flock(handle, fcntl.LOCK_EX)  # as a process that is stopped while it records
        with raises(LedgerUnavailable, reason="locked"):
            ledger.charge(wanted, DOUBLING)
        assert ledger.spent("ward", DOUBLING) == 0.53125  # written, and not acknowledged
        os.close(handle)
        assert ledger.charge(wanted, DOUBLING).may_release  # paid once
        assert ledger.spent("ward", DOUBLING) == 0.53125 and ledger.verify().sound


def identity(path: Path) -> str:
    with open_ledger(path, inspect=True) as ledger:
        found: str = next(iter(list(ledger.history()))).body["ledger"]
    return found


def test_a_heads_folder_that_cannot_be_written_releases_nothing(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").write_text("in the way")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "file"))
    with raises(LedgerUnwritable, reason="witness"):
        open_ledger(path)


def test_the_heads_folder_is_the_one_that_xdg_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # to be ignored, by the specification
    monkeypatch.setenv("HOME", "/home/somebody")
    assert heads_folder() == Path("/home/somebody/.local/state/takifugu/heads")


# --- a loss of history ---


def test_a_loss_counts_as_spent_up_to_the_budget(path: Path, opened: Opener) -> None:
    set_back(path)
    event = accept_loss(path, translations={"ward": DOUBLING}, actor="Dr Owner")
    assert event.kind == "loss" and event.body["actor"] == "Dr Owner"
    assert event.body["lost"]["seq"] == 4
    ledger = opened(path)
    assert ledger.verify().sound and ledger.verify().witness == ledger.head()
    assert ledger.spent("ward", DOUBLING) == 2 and ledger.remaining("ward", DOUBLING) == 0
    for window in (None, (0, 5)):
        with pytest.raises(BudgetExceeded):
            ledger.charge(charge("1/1000000", window), DOUBLING)
    ledger.set_budget("ward", 3)
    assert ledger.remaining("ward", DOUBLING) == Fraction(1, 2)
    ledger.charge(charge("0.5", (0, 5)), DOUBLING)
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("0.01", (4, 9)), DOUBLING)
    assert [r.epsilon for r in ledger.odometer("ward", DOUBLING)] == [0.5, 2, 3]
    ledger.close()
    shutil.copy(path.with_name("newer"), path)
    with pytest.raises(LedgerSetBack):
        opened(path)


def test_cells_of_the_copy_start_from_the_loss(path: Path, opened: Opener) -> None:
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.5", (0, 5), ["fr"]), DOUBLING)
        ledger.charge(charge("0.125", (0, 5), analyst="bob"), DOUBLING)
        ledger.set_budget("ward", 1, analyst="ana")
    shutil.copy(path, path.with_name("copy"))
    set_back_with = charge("0.25", (7, 8), ["de"], analyst="ana")
    with open_ledger(path) as ledger:
        ledger.charge(set_back_with, DOUBLING)
    shutil.copy(path.with_name("copy"), path)
    accept_loss(path, translations={"ward": DOUBLING})
    ledger = opened(path)
    one, half = (Total(Fraction(1)),), (Total(Fraction(1, 2)),)
    assert ledger.lost("ward") == ledger.lost("ward", window=Window(7, 8)) == one
    assert ledger.lost("ward", groups=Groups(["country"], [("it",)])) == one
    assert ledger.lost("ward", analyst="ana") == half
    assert ledger.lost("ward", analyst="bob") == one  # no budget of his own: that of the whole
    assert ledger.lost("ward", analyst="eve") == one  # what she learnt is unknown
    ledger.set_budget("ward", 4)
    ledger.set_budget("ward", 2, analyst="eve")
    with raises(BudgetExceeded, analyst="eve"):
        ledger.charge(charge("0.01", analyst="eve"), DOUBLING)
    assert ledger.verify().sound


@pytest.mark.parametrize(
    ("translations", "budgets", "counted"),
    [
        ({}, {}, 2),  # the ε of the budget itself: no translation is below it
        ({"ward": DOUBLING}, {"ward": 5}, Fraction(5, 2)),
        ({"ward": DOUBLING}, {"ward": "0.5"}, 1),
        ({"ward": IDENTITY}, {}, 2),
    ],
)
def test_what_is_not_known_counts_as_more(
    path: Path,
    opened: Opener,
    translations: dict[str, object],
    budgets: dict[str, object],
    counted: Fraction,
) -> None:
    set_back(path)
    accept_loss(path, translations=translations, budgets=budgets, costs=False)  # type: ignore[arg-type]
    ((total,),) = [p.worst for p in opened(path).positions()]
    assert counted <= total.epsilon <= counted * (1 + Fraction(1, 2**40))


def test_another_translation_than_was_used_is_not_relied_on(path: Path, opened: Opener) -> None:
    class Steep(LossTranslation):
        fingerprint = "steep"

        def to_pufferfish(self, epsilon: float, /) -> float:
            return 100 * epsilon

        def to_dp(self, epsilon: float, /) -> float:
            return epsilon / 100

    set_back(path)
    accept_loss(path, translations={"ward": Steep()}, costs=False)
    assert opened(path).lost("ward") == (Total(Fraction(2)),)


def test_a_budget_with_a_delta_counts_every_currency_and_needs_the_translation(
    folder: Path, opened: Opener
) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2, delta="1e-6")
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.charge(charge(Concentrated("0.01"), translation="rich"), RICH)
        most = ledger.remaining("ward", RICH, like=Concentrated(0))
    shutil.copy(folder / "copy", path)
    with raises(UnsoundRequest, field="delta", reason="translation unknown"):
        accept_loss(path)
    accept_loss(path, translations={"ward": RICH})
    ledger = opened(path)
    (total,) = ledger.lost("ward")
    assert total.rho >= Fraction(1, 100) + most and total.delta == Fraction(1, 10**6)
    assert total.epsilon >= Fraction(1999, 1000)
    with pytest.raises(BudgetExceeded):
        ledger.charge(charge("1/1000000", translation="rich"), RICH)


def test_nothing_is_accepted_where_nothing_was_lost_or_the_copy_is_not_sound(path: Path) -> None:
    with raises(LedgerConflict, reason="nothing lost"):
        accept_loss(path)
    set_back(path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE takifugu_events SET body = replace(body, '1/4', '1/8') WHERE seq = 3")
    raw.close()
    with raises(LedgerDamaged, reason="unsound copy"):
        accept_loss(path)
    with pytest.raises((LedgerSetBack, LedgerDamaged)):
        open_ledger(path)


def test_a_crash_between_the_acceptance_and_its_note_is_made_good(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_back(path)

    def dies(*_: object) -> None:
        raise LedgerUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(FileWitness, "record", dies)
        with pytest.raises(LedgerUnavailable):
            accept_loss(path, costs=False)
    ledger = opened(path)
    assert ledger.verify().sound and ledger.verify().witness == ledger.head()
    assert len(paid(ledger)) == 1


@settings(max_examples=8 if settings.get_current_profile_name() == "quick" else 500)
@given(
    before=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), max_size=3),
    since=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=1, max_size=4),
    raised=st.integers(2, 6),
)
def test_the_total_counted_after_a_loss_is_never_below_the_true_one(
    before: list[tuple[int, int]],
    since: list[tuple[int, int]],
    raised: int,
) -> None:
    """By adding up, for four days, all that was ever admitted, whichever copy it is written in."""
    with in_memory() as folder:
        a_loss(folder / "ward.ledger", before, since, raised)


def a_loss(
    path: Path, before: list[tuple[int, int]], since: list[tuple[int, int]], raised: int
) -> None:
    true = [Fraction(0)] * 4

    def spend(charges: list[tuple[int, int]]) -> None:
        with open_ledger(path) as ledger:
            for tenths, day in charges:
                loss, window = Fraction(tenths, 10), None if day == 0 else (day, 4)
                try:
                    ledger.charge(charge(loss, window), DOUBLING)
                except BudgetExceeded:
                    continue
                for at in range(day, 4):
                    true[at] += loss

    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
    spend(before)
    shutil.copy(path, path.with_name("copy"))
    with open_ledger(path) as ledger:
        ledger.set_partition("ward", ("country",))  # so that something is lost in any case
    spend(since)
    shutil.copy(path.with_name("copy"), path)
    accept_loss(path, translations={"ward": DOUBLING})
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", raised)
    spend(since)
    with open_ledger(path) as ledger:
        for day in range(4):
            (total,) = ledger.lost("ward", window=Window(day, day + 1))
            assert true[day] <= total.epsilon <= Fraction(raised, 2)
        assert ledger.verify().sound
