"""Copies that miss nothing, and copies put back that set nothing back unseen."""

import fcntl
import os
import shutil
import signal
import sqlite3
import stat
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from takifugu.errors import (
    InvalidFile,
    LedgerConflict,
    LedgerDamaged,
    LedgerError,
    LedgerSetBack,
    LedgerUnavailable,
    NotALedger,
    UnsoundRequest,
)
from takifugu.ledger import (
    Anchor,
    Ledger,
    LostWitness,
    begin_witness,
    open_ledger,
    restore_ledger,
)
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.ledger.witnesses.state_folder import FileWitness, heads_folder
from tests.contracts.ledger import paid, worker
from tests.ledger import postgres
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.older_copies import before_the_next_record
from tests.raising import raises

TERMS = LossTerms({"ward": DOUBLING})

Opener = Callable[..., Ledger]


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a budget and a charge, closed."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25", (0, 5), ["fr"]), DOUBLING)
    return folder / "ward.ledger"


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_after_a_kill_the_next_opening_leaves_nothing_in_the_log(path: Path, folder: Path) -> None:
    dying = worker("crash", str(path), "1/64", "1", "1", "3")  # a second would empty the log
    lines = set(dying.communicate()[0].split()) - {"refused"}
    assert lines and (folder / "ward.ledger-wal").stat().st_size  # they are in the log alone
    with open_ledger(path) as ledger:
        assert (folder / "ward.ledger-wal").stat().st_size == 0
        shutil.copy(path, folder / "main.only")
        everything = paid(ledger)
    with open_ledger(folder / "main.only", read_only=True) as copy:
        assert lines <= paid(copy) == everything
    assert "ward.ledger-wal" not in names(folder)


def test_closing_empties_the_log_also_while_others_have_it_open(
    path: Path, folder: Path, opened: Opener
) -> None:
    other = opened(path)
    other.spent("ward", DOUBLING)
    with open_ledger(path) as ledger:
        first = charge("0.25")
        ledger.charge(first, DOUBLING)
    assert (folder / "ward.ledger-wal").stat().st_size == 0
    shutil.copy(path, folder / "main.only")
    with open_ledger(folder / "main.only", inspect=True) as copy:
        assert first.key in paid(copy)


def test_a_backup_holds_what_is_still_in_the_log_and_is_private(
    path: Path, folder: Path, opened: Opener
) -> None:
    ledger, first = opened(path), charge("0.25")
    ledger.charge(first, DOUBLING)
    mask = os.umask(0)
    try:
        report = ledger.backup(folder / "backup")
        ledger.export(folder / "export")
    finally:
        os.umask(mask)
    assert report.sound and report.head == ledger.head()
    for name in ("backup", "export"):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
    with open_ledger(folder / "backup", read_only=True) as copy:
        assert first.key in paid(copy) and copy.verify().sound
    assert not [name for name in names(folder) if name.startswith(".") or "backup-" in name]


def test_a_backup_can_be_read_by_its_owner_whatever_is_masked(path: Path, folder: Path) -> None:
    with open_ledger(path) as ledger:
        mask = os.umask(0o277)
        try:
            ledger.backup(folder / "backup")
        finally:
            os.umask(mask)
    assert stat.S_IMODE((folder / "backup").stat().st_mode) == 0o600


def test_a_backup_appears_whole_or_not_at_all(
    path: Path, folder: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = opened(path)
    (folder / "there").write_text("precious")
    with raises(InvalidFile, field="backup", reason="exists"):
        ledger.backup(folder / "there")
    with raises(InvalidFile, field="backup", reason="folder"):
        ledger.backup(folder / "nowhere" / "backup")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = names(folder)
    monkeypatch.setattr(os, "fsync", fails)
    with raises(InvalidFile, field="backup", reason="unwritable"):
        ledger.backup(folder / "backup")
    assert names(folder) == before and (folder / "there").read_text() == "precious"


def test_a_damaged_ledger_gives_no_backup(path: Path, folder: Path, opened: Opener) -> None:
    ledger = opened(path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE takifugu_events SET body = replace(body, '1/4', '1/8') WHERE seq = 3")
    raw.close()
    with raises(LedgerDamaged, reason="unsound copy"):
        ledger.backup(folder / "backup")
    assert "backup" not in names(folder)


def test_a_backup_is_put_back_where_the_ledger_is_gone(path: Path, folder: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.backup(folder / "backup")
        head = ledger.head()
    path.unlink()
    assert restore_ledger(folder / "backup", path).head == head
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with open_ledger(path) as ledger:
        assert ledger.head() == head and ledger.verify().sound
        ledger.charge(charge("0.25"), DOUBLING)


def test_a_backup_is_put_back_in_the_place_of_an_empty_file(path: Path, folder: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.backup(folder / "backup")
    path.write_bytes(b"")  # as a disk that was full leaves it
    restore_ledger(folder / "backup", path)
    with open_ledger(path) as ledger:
        assert ledger.verify().sound and ledger.spent("ward", DOUBLING) == 0.5


def test_a_backup_in_the_place_of_the_same_ledger_changes_nothing(path: Path, folder: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.backup(folder / "backup")
    restore_ledger(folder / "backup", path)
    with open_ledger(path) as ledger:
        assert ledger.verify().sound and ledger.spent("ward", DOUBLING) == 0.5


@pytest.mark.parametrize("gone", [False, True])
def test_a_backup_that_is_older_is_put_back_only_with_a_loss(
    path: Path, folder: Path, gone: bool
) -> None:
    with open_ledger(path) as ledger:
        ledger.backup(folder / "backup")
        ledger.charge(charge("0.5"), DOUBLING)
    if gone:
        path.unlink()
    before = names(folder)
    with raises(LedgerSetBack, reason="older", event=4):
        restore_ledger(folder / "backup", path)
    if not gone:  # without the witness the ledger in its place tells
        with raises(LedgerSetBack, reason="older", event=4):
            restore_ledger(folder / "backup", path, witness=False)
    assert names(folder) == before
    restore_ledger(folder / "backup", path, lossy=True, terms=TERMS)
    with open_ledger(path) as ledger:
        assert ledger.remaining("ward", DOUBLING) == 0 and ledger.verify().sound


@pytest.mark.parametrize("gone", [False, True])
def test_a_loss_that_cannot_be_counted_changes_nothing(
    path: Path, folder: Path, gone: bool
) -> None:
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 4, delta="1e-6")
        ledger.backup(folder / "backup")
        ledger.charge(charge("0.5"), DOUBLING)
    if gone:
        path.unlink()
    before = names(folder)
    with raises(UnsoundRequest, field="delta", reason="translation unknown"):
        restore_ledger(folder / "backup", path, lossy=True, terms=LossTerms())
    assert names(folder) == before
    terms = LossTerms({"ward": DOUBLING})
    assert restore_ledger(folder / "backup", path, lossy=True, terms=terms).loss is not None


def test_terms_of_a_loss_are_not_looked_at_where_nothing_is_lost(path: Path, folder: Path) -> None:
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 4, delta="1e-6")
        ledger.backup(folder / "backup")
    restore_ledger(folder / "backup", path, lossy=True, terms=LossTerms())


@pytest.fixture(params=[1, 2], ids=["as long", "longer"])
def forked(path: Path, folder: Path, request: pytest.FixtureRequest) -> Path:
    """A ledger that went on without its witness from an older copy; the newer one is a backup.

    The backup and the witness end at event 4, which has 1/8; the ledger has other charges of 1/4.
    """
    shutil.copy(path, folder / "older")
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.125"), DOUBLING)
        ledger.backup(folder / "backup")
    shutil.copy(folder / "older", path)
    with open_ledger(path, witness=False) as ledger:
        for _ in range(request.param):
            ledger.charge(charge("0.25"), DOUBLING)
        ledger.backup(folder / "fork")
    return path


def accepted(path: Path, folder: Path) -> None:
    """The backup in place of the ledger: the budget is spent, and the other one is refused."""
    restore_ledger(folder / "backup", path, lossy=True, terms=TERMS)
    with open_ledger(path) as ledger:
        assert ledger.remaining("ward", DOUBLING) == 0 and ledger.verify().sound


def test_neither_of_two_histories_is_forgotten_when_one_takes_the_others_place(
    forked: Path, folder: Path
) -> None:
    with raises(LedgerSetBack, reason="older"):
        restore_ledger(folder / "backup", forked)
    accepted(forked, folder)
    with open_ledger(forked, inspect=True) as ledger:
        noted = ledger.verify().witness
        assert noted is not None and noted.seq > 4  # a server takes only later events
    shutil.copy(folder / "fork", forked)  # the other one lacks what the witness had seen
    with pytest.raises(LedgerSetBack):
        open_ledger(forked)


def test_a_history_is_not_overwritten_while_the_witness_is_locked(
    forked: Path, folder: Path
) -> None:
    (head,) = heads_folder().iterdir()
    with head.open("rb") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        with raises(LedgerUnavailable, reason="locked"):
            restore_ledger(folder / "backup", forked, lossy=True, terms=TERMS, wait=0.1)
    with open_ledger(forked, inspect=True) as ledger:
        assert ledger.spent("ward", DOUBLING) > 0.75  # what it had
    with pytest.raises(LedgerSetBack):
        open_ledger(forked)
    accepted(forked, folder)


@pytest.mark.nightly
@pytest.mark.parametrize("moment", ["before", "noted", "overwritten"])
def test_kill_minus_9_while_a_history_is_overwritten_forgets_none(
    forked: Path, folder: Path, moment: str
) -> None:
    child = os.fork()
    if child == 0:
        try:
            restore_and_die(forked, folder / "backup", moment)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    if moment != "overwritten":
        with pytest.raises(LedgerSetBack):
            open_ledger(forked)
    accepted(forked, folder)


def restore_and_die(path: Path, backup: Path, moment: str) -> None:
    note = FileWitness.record

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def record(self: FileWitness, ledger: str, event: Anchor, seen: Anchor | None) -> None:
        if moment == "noted":
            note(self, ledger, event, seen)
        die()

    if moment != "overwritten":
        FileWitness.record = record  # type: ignore[method-assign]
    restore_ledger(backup, path, lossy=True, terms=TERMS)
    die()


@pytest.mark.parametrize("lost", [False, True])
def test_nothing_is_overwritten_if_others_have_moved_the_witness(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.125"), DOUBLING)
        ledger.backup(folder / "backup")
        shutil.copy(folder / "backup", folder / "elsewhere")
    with open_ledger(path, witness=False) as ledger:
        ledger.charge(charge("0.25"), DOUBLING)
    if lost:
        (head,) = heads_folder().iterdir()
        head.unlink()

    def others() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LostWitness)
            if lost:
                begin_witness(folder / "elsewhere")
            with open_ledger(folder / "elsewhere") as other:
                other.charge(charge("0.5"), DOUBLING)

    before_the_next_record(monkeypatch, others)
    with raises(LedgerUnavailable, reason="in use"):
        restore_ledger(folder / "backup", path, lossy=True, terms=TERMS)
    with open_ledger(path, inspect=True) as ledger:
        assert ledger.spent("ward", DOUBLING) == 1.25  # as it was
    with pytest.raises(LedgerSetBack):
        open_ledger(path)
    accepted(path, folder)


def test_nothing_is_put_back_while_others_have_the_ledger_open(
    path: Path, folder: Path, opened: Opener
) -> None:
    ledger = opened(path)
    ledger.backup(folder / "backup")
    with raises(LedgerUnavailable, reason="locked"):
        restore_ledger(folder / "backup", path, wait=0.1)
    ledger.charge(charge("0.25"), DOUBLING)
    assert ledger.verify().sound


def test_what_is_not_a_sound_backup_of_this_ledger_is_not_put_back(
    path: Path, folder: Path
) -> None:
    with open_ledger(path) as ledger:
        ledger.backup(folder / "edited")
    with sqlite3.connect(folder / "edited") as raw:
        raw.execute("UPDATE takifugu_events SET body = replace(body, '1/4', '1/8') WHERE seq = 3")
    raw.close()
    with open_ledger(folder / "other.ledger") as other:
        other.backup(folder / "other")
    (folder / "text").write_text("not a database at all, but long enough" * 40)
    refused: list[tuple[str, type[LedgerError | InvalidFile]]] = [
        ("edited", LedgerDamaged),
        ("other", LedgerConflict),
        ("text", NotALedger),
        ("missing", InvalidFile),
        ("ward.ledger", InvalidFile),
    ]
    for name, kind in refused:
        with pytest.raises(kind):
            restore_ledger(folder / name, path)
    assert not [name for name in names(folder) if name.startswith(".")]
    with open_ledger(path) as ledger:
        assert ledger.verify().sound and ledger.head().seq == 3


@pytest.mark.nightly
def test_a_ledger_on_a_server_says_what_to_use_instead(
    server: postgres.Cluster, folder: Path, opened: Opener
) -> None:
    ledger = opened(server.address())
    with raises(InvalidFile, field="backup", reason="server"):
        ledger.backup(folder / "backup")
    (folder / "backup").touch()
    with raises(InvalidFile, field="restore", reason="server"):
        restore_ledger(folder / "backup", server.address())
