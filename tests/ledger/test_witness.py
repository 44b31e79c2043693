"""An older copy put back is refused, whoever keeps the witness, and whenever somebody dies."""

import fcntl
import json
import os
import shutil
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from takifugu.errors import (
    LedgerConflict,
    LedgerSetBack,
    LedgerUnavailable,
    LedgerUnwritable,
)
from takifugu.ledger import (
    Anchor,
    LostWitness,
    accept_loss,
    begin_witness,
    open_ledger,
)
from takifugu.ledger.witnesses.state_folder import SLOT_BYTES, FileWitness, heads_folder
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.older_copies import (
    Opener,
    before_the_next_record,
    copied_ledger,
    no_room_in_the_witness,
    set_back,
)
from tests.raising import raises


@pytest.fixture
def path(folder: Path) -> Path:
    return copied_ledger(folder)


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
    before_the_next_record(monkeypatch, lambda: one.charge(charge("0.25"), DOUBLING))
    with raises(LedgerSetBack, reason="another history"):
        two.charge(charge("0.5"), DOUBLING)
    one.charge(charge("0.25"), DOUBLING)
    with pytest.raises(LedgerSetBack):
        two.charge(charge("0.25"), DOUBLING)


def test_a_note_that_comes_late_never_moves_the_witness_backwards(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = opened(path), opened(path)
    before_the_next_record(
        monkeypatch, lambda: [quick.charge(charge("0.125"), DOUBLING) for _ in range(2)]
    )
    assert slow.charge(charge("0.125"), DOUBLING).anchor.seq == 4
    assert quick.verify().witness == quick.head() and quick.head().seq == 6


def test_a_crash_before_the_note_leaves_the_witness_behind_and_no_harm(
    path: Path, opened: Opener
) -> None:
    ledger, first = opened(path), charge("0.25")

    with no_room_in_the_witness(), pytest.raises(LedgerUnwritable):
        ledger.charge(first, DOUBLING)
    report = ledger.verify()
    assert report.sound and report.witness is not None and report.witness.seq == 3
    assert opened(path, read_only=True).verify().witness == report.witness
    assert ledger.charge(first, DOUBLING).may_release  # it was paid, and not acknowledged
    assert not opened(path).charge(first, DOUBLING).may_release
    report = ledger.verify()
    assert report.witness == ledger.head() and ledger.spent("ward", DOUBLING) == 1


def test_a_repeat_is_acknowledged_only_once_its_event_is_noted(path: Path, opened: Opener) -> None:
    ledger, first = opened(path), charge("0.25")

    with no_room_in_the_witness():
        for _ in range(2):
            with pytest.raises(LedgerUnwritable):
                ledger.charge(first, DOUBLING)
    assert ledger.charge(first, DOUBLING).may_release
    assert ledger.verify().witness == ledger.head()


@pytest.mark.nightly
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


def test_without_its_witness_nothing_is_released_until_the_owner_begins_a_new_one(
    path: Path,
) -> None:
    """A container without a volume, or whoever puts an older copy back: both lose the record."""
    with open_ledger(path) as ledger:
        shutil.rmtree(heads_folder())
        with raises(LedgerSetBack, reason="witness missing"):
            ledger.charge(charge("0.25"), DOUBLING)
    for read_only in (False, True):
        with raises(LedgerSetBack, reason="witness missing") as told:
            open_ledger(path, read_only=read_only)
    assert "takifugu ledger begin-witness" in str(told.value)
    assert not heads_folder().exists()
    with open_ledger(path, inspect=True) as ledger:
        assert ledger.verify().witness is None
    event = begin_witness(path, actor="olga")
    assert (event.kind, event.body["actor"]) == ("witness", "olga")
    with open_ledger(path) as ledger:
        assert ledger.head() == Anchor(event.seq, event.hash) and ledger.verify().sound
        ledger.charge(charge("0.25"), DOUBLING)
    with raises(LedgerConflict, reason="witness"):
        begin_witness(path)
    shutil.copy(path.with_name("copy"), path)
    with pytest.raises(LedgerSetBack):
        open_ledger(path)


def test_a_ledger_that_never_had_a_witness_begins_one_by_an_event(folder: Path) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 2)
    with pytest.warns(LostWitness), open_ledger(path, read_only=True):
        pass
    with pytest.warns(LostWitness), open_ledger(path, actor="olga") as ledger:
        begun = list(ledger.history())[-1]
    assert (begun.kind, begun.body["actor"], begun.seq) == ("witness", "olga", 3)
    with open_ledger(path) as ledger:
        assert ledger.head().seq == 3  # once
    shutil.rmtree(heads_folder())
    with raises(LedgerSetBack, reason="witness missing"):
        open_ledger(path)


@pytest.mark.parametrize("form", ["before_digests", "before_costs", "before_cells"])
def test_a_ledger_of_an_earlier_version_adopts_the_witness_that_it_has(
    folder: Path, form: str
) -> None:
    path = folder / "old.ledger"
    with closing(sqlite3.connect(path)) as raw:
        raw.executescript(Path(__file__).with_name(f"{form}.sql").read_text(encoding="utf-8"))
        (body,) = raw.execute("SELECT body FROM takifugu_events WHERE seq = 1").fetchone()
        head = Anchor(*raw.execute("SELECT seq, hash FROM takifugu_head").fetchone())
    FileWitness(heads_folder(), folder=True).record(json.loads(body)["ledger"], head, None)
    with open_ledger(path) as ledger:  # without a warning
        assert list(ledger.history())[-1].kind == "witness" and ledger.verify().sound
    shutil.rmtree(heads_folder())
    with raises(LedgerSetBack, reason="witness missing"):
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
    assert len(content) == 2 * SLOT_BYTES
    witness, newest = FileWitness(note, folder=False), heads[-1]
    assert witness.read(note.name) == newest
    for place in (0, SLOT_BYTES):
        torn = bytearray(content)
        torn[place + 20 : place + SLOT_BYTES] = bytes(SLOT_BYTES - 20)
        note.write_bytes(torn)
        assert witness.read(note.name) in heads[-2:]
    note.write_bytes(content[:100])
    with raises(LedgerSetBack, reason="witness missing"):  # too little is left of it
        open_ledger(path)


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


def test_an_older_ledger_in_the_place_of_another_history_is_told_apart(
    folder: Path, opened: Opener
) -> None:
    """Both end with the same number: one is not older than the other."""
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.charge(charge("1/8"), DOUBLING)
    with open_ledger(folder / "copy", witness=False) as ledger:
        ledger.charge(charge("1/4"), DOUBLING)
    with raises(LedgerSetBack, reason="another history", event=3):
        opened(folder / "copy")
