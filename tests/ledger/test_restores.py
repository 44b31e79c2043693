"""Backups of older forms, ledgers that cannot be read, and places where no copy can be made."""

import hashlib
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import (
    InvalidFile,
    LedgerDamaged,
    LedgerSetBack,
    LedgerUnavailable,
    LedgerUnwritable,
    UnsoundRequest,
)
from takifugu.ledger import Anchor, LostWitness, open_ledger, restore_ledger
from takifugu.ledger.witnesses import backup
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.ledger.witnesses.state_folder import FileWitness
from tests.ledger.charges import DOUBLING, IDENTITY, charge
from tests.raising import raises

TERMS = LossTerms({"ward": DOUBLING})


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a budget and a charge, closed, and a backup of it."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25"), DOUBLING)
        ledger.backup(folder / "backup")
    return folder / "ward.ledger"


def test_a_backup_of_an_older_form_is_brought_up_to_date(folder: Path) -> None:
    old, path = folder / "backup", folder / "ward.ledger"
    text = Path(__file__).with_name("before_costs.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(old)) as raw:
        raw.executescript(text)
    before = old.read_bytes()
    with raises(LedgerUnwritable, reason="migration"):
        open_ledger(old, read_only=True)
    assert restore_ledger(old, path).sound and old.read_bytes() == before
    with pytest.warns(LostWitness):
        open_ledger(path).close()
    with open_ledger(path, read_only=True) as ledger:
        assert ledger.verify().sound and ledger.spent("ward", DOUBLING) == 0.8125


def indexes(path: Path) -> set[tuple[str, str]]:
    """The indexes of a ledger, with what each is on."""
    with closing(sqlite3.connect(path)) as raw:
        return set(raw.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'"))


@pytest.mark.parametrize("form", ["before_digests", "before_costs", "before_cells"])
def test_a_ledger_of_an_older_form_gets_every_index_of_a_new_one(folder: Path, form: str) -> None:
    old, new = folder / "old.ledger", folder / "new.ledger"
    with closing(sqlite3.connect(old)) as raw:
        raw.executescript(Path(__file__).with_name(f"{form}.sql").read_text(encoding="utf-8"))
    with pytest.warns(LostWitness):
        open_ledger(old).close()
    open_ledger(new).close()
    assert indexes(old) == indexes(new)


@pytest.mark.parametrize("body", ["{", "[]", '{"kind": "created"}'])
def test_a_ledger_that_cannot_be_read_is_moved_away_by_its_owner(
    path: Path, folder: Path, body: str
) -> None:
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_events SET body = ? WHERE seq = 1", (body,))
    with raises(LedgerDamaged, reason="storage"):
        restore_ledger(folder / "backup", path, lossy=True, terms=TERMS)
    with closing(sqlite3.connect(path)) as raw:
        found = raw.execute("SELECT body FROM takifugu_events WHERE seq = 1").fetchall()
    assert found == [(body,)]  # as it was
    path.rename(folder / "damaged")
    assert restore_ledger(folder / "backup", path).sound


def test_a_copy_is_not_made_through_a_link_that_lies_there(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "precious").write_text("precious")
    (folder / f".takifugu-{os.getpid()}-00000000.part").symlink_to(folder / "precious")
    monkeypatch.setattr(backup, "uuid4", lambda: SimpleNamespace(hex="0" * 32))
    with (
        open_ledger(path) as ledger,
        raises(InvalidFile, field="backup", reason="unwritable"),
    ):
        ledger.backup(folder / "another")
    assert (folder / "precious").read_text() == "precious" and not (folder / "another").exists()


def test_what_is_lost_is_noted_also_where_the_witness_was_behind(path: Path, folder: Path) -> None:
    with open_ledger(path, witness=False) as ledger:
        ledger.charge(charge("0.5"), DOUBLING)  # the witness knows of none of it
        ends = ledger.head()
    shutil.copy(path, folder / "newer")
    loss = restore_ledger(folder / "backup", path, lossy=True, terms=TERMS).loss
    assert loss is not None and loss.body["lost"] == vars(ends)
    with pytest.raises(LedgerSetBack):
        open_ledger(folder / "newer")
    with open_ledger(path) as ledger:
        assert ledger.verify().witness == Anchor(loss.seq, loss.hash)


def test_a_file_of_which_a_part_is_lost_is_damaged_and_no_foreign_one(
    path: Path, folder: Path
) -> None:
    whole = (folder / "backup").read_bytes()
    (folder / "backup").write_bytes(whole[:100] + bytes(8000) + whole[8100:])
    with raises(LedgerDamaged, reason="storage") as told:
        restore_ledger(folder / "backup", path)
    assert repr(str(folder / "backup")) in str(told.value)


def test_a_loss_the_witness_does_not_know_is_counted_before_it_happens(
    path: Path, folder: Path
) -> None:
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 4, delta="1e-6")
        ledger.backup(folder / "later")
    with open_ledger(path, witness=False) as ledger:
        ledger.charge(charge("0.5"), DOUBLING)
        spent = ledger.spent("ward", DOUBLING)
    with raises(UnsoundRequest, field="delta", reason="translation unknown"):
        restore_ledger(folder / "later", path, lossy=True, terms=LossTerms())
    with open_ledger(path) as ledger:
        assert ledger.spent("ward", DOUBLING) == spent  # as it was


def test_nobody_writes_between_what_is_compared_and_what_is_overwritten(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_ledger(path, witness=False) as ledger:
        ledger.charge(charge("0.5"), DOUBLING)
    note, tried = FileWitness.record, list[str]()

    def record(self: FileWitness, *arguments: Any) -> Any:
        with closing(sqlite3.connect(path, timeout=0)) as raw:
            if not tried:
                with pytest.raises(sqlite3.OperationalError, match="locked") as told:
                    raw.execute("BEGIN IMMEDIATE")
                tried.append(str(told.value))
        return note(self, *arguments)

    monkeypatch.setattr(FileWitness, "record", record)
    restore_ledger(folder / "backup", path, lossy=True, terms=TERMS)
    assert tried  # before the end of the old one is noted; afterwards nothing is compared


def test_an_accepted_loss_counts_the_largest_budget_and_totals_of_what_is_overwritten(
    folder: Path,
) -> None:
    """The backup has a budget of 2; the ledger in its place shows 100 and 60 charged, then 3."""
    path = folder / "raised.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.backup(folder / "before")
        ledger.set_budget("ward", 100)
        ledger.set_budget("town", 7)
        ledger.charge(charge("60"), IDENTITY)
        ledger.set_budget("ward", 50, analyst="ana")
        ledger.set_budget("ward", 3)
    terms = LossTerms({"ward": IDENTITY, "town": IDENTITY})
    report = restore_ledger(folder / "before", path, lossy=True, terms=terms, actor="olga")
    assert report.loss is not None and report.loss.body["actor"] == "olga"
    with open_ledger(path) as ledger:
        assert ledger.spent("ward", IDENTITY) == 100 and ledger.spent("town", IDENTITY) == 7
        assert ledger.spent("ward", IDENTITY, analyst="ana") == 100
        ledger.set_budget("ward", 101)
        assert ledger.remaining("ward", IDENTITY) == 1 and ledger.verify().sound


# --- the file beside ---


def test_a_backup_is_one_file_without_a_log(path: Path, folder: Path) -> None:
    """Bytes 18 and 19 say how a file is written: 1 for one that has no log beside it."""
    assert (folder / "backup").read_bytes()[18:20] == b"\x01\x01"
    with open_ledger(path) as ledger:
        assert path.read_bytes()[18:20] == b"\x02\x02"  # a ledger in use has one
        ledger.backup(folder / "another")
    assert (folder / "another").read_bytes()[18:20] == b"\x01\x01"
    restore_ledger(folder / "another", path)
    assert path.read_bytes()[18:20] == b"\x01\x01"  # until it is opened


# --- what is no backup ---


def test_the_file_of_a_copy_is_checked_as_well_as_its_events(path: Path, folder: Path) -> None:
    """An index that lacks a row would hide an event, and no event tells of it."""
    with closing(sqlite3.connect(folder / "backup", isolation_level=None)) as raw:
        name, sql = raw.execute(
            "SELECT name, sql FROM sqlite_master WHERE name = 'takifugu_events_of'"
        ).fetchone()
        raw.execute("PRAGMA writable_schema=ON")
        raw.execute(
            "UPDATE sqlite_master SET sql = ? WHERE name = ?", (f"{sql} WHERE seq > 2", name)
        )
    with closing(sqlite3.connect(folder / "backup", isolation_level=None)) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchone() != ("ok",)
    before = path.read_bytes()
    with raises(LedgerDamaged, reason="unsound copy") as told:
        restore_ledger(folder / "backup", path)
    assert "the file is damaged" in str(told.value) and path.read_bytes() == before


# --- in the place of a ledger ---


def test_a_copy_that_is_newer_takes_the_place_of_an_older_ledger(path: Path, folder: Path) -> None:
    """Nothing is lacking: no terms are looked at, and the witness stays as it is."""
    shutil.copy(path, folder / "older")
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 4, delta="1e-6")
        ledger.backup(folder / "newer")
        head = ledger.head()
    shutil.copy(folder / "older", path)
    ways: list[dict[str, Any]] = [{}, {"witness": False}, {"lossy": True, "terms": LossTerms()}]
    for how in ways:
        shutil.copy(folder / "older", path)
        assert restore_ledger(folder / "newer", path, **how).head == head
        with open_ledger(path) as ledger:
            assert ledger.head() == head == ledger.verify().witness


def test_a_copy_older_than_two_histories_leaves_what_was_noted(path: Path, folder: Path) -> None:
    """It lacks the end of the ledger in place, and what the witness has seen of another one."""
    shutil.copy(path, folder / "older")
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.125"), DOUBLING)
        noted = ledger.head()
    shutil.copy(folder / "older", path)
    with open_ledger(path, witness=False) as ledger:
        ledger.charge(charge("0.25"), DOUBLING)
        ledger.charge(charge("0.25"), DOUBLING)
    loss = restore_ledger(folder / "backup", path, lossy=True, terms=TERMS).loss
    assert loss is not None and loss.body["lost"] == vars(noted)
    with open_ledger(path) as ledger:
        assert ledger.verify().witness == ledger.head() == Anchor(loss.seq, loss.hash)


@pytest.mark.parametrize("charges", [1, 3])
def test_what_is_noted_of_two_histories_follows_both(
    path: Path, folder: Path, charges: int
) -> None:
    """The copy is the one that the witness has seen; the ledger in place went on from before it."""
    shutil.copy(path, folder / "older")
    with open_ledger(path) as ledger:
        ledger.charge(charge("0.125"), DOUBLING)
        ledger.backup(folder / "newer")
        noted = ledger.head()
    shutil.copy(folder / "older", path)
    with open_ledger(path, witness=False) as ledger:
        for _ in range(charges):
            ledger.charge(charge("0.0625"), DOUBLING)
        ends = ledger.head()
    loss = restore_ledger(folder / "newer", path, lossy=True, terms=TERMS).loss
    both = hashlib.sha256(f"{ends.hash}\n{noted.hash}".encode()).hexdigest()
    assert loss is not None and loss.seq == noted.seq + 1
    assert loss.body["lost"] == {"seq": max(ends.seq, noted.seq + 1), "hash": both}


@pytest.mark.parametrize("lost", [False, True])
def test_the_end_of_the_ledger_in_place_is_noted_as_seen_before_it_is_lost(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    with open_ledger(path) as ledger:
        before = ledger.head()
    with open_ledger(path, witness=False) as ledger:
        ledger.charge(charge("0.25"), DOUBLING)
        ends = ledger.head()
        (first, *_) = ledger.history()
    notes: list[tuple[Any, ...]] = []
    record = FileWitness.record

    def noted(self: FileWitness, *given: Any) -> Anchor | None:
        notes.append(given)
        return record(self, *given)

    monkeypatch.setattr(FileWitness, "record", noted)
    monkeypatch.setattr(FileWitness, "read", lambda *_: None) if lost else None
    if lost:
        with raises(LedgerUnavailable, reason="in use"):  # somebody has recorded an event since
            restore_ledger(folder / "backup", path, lossy=True, terms=TERMS)
    else:
        restore_ledger(folder / "backup", path, lossy=True, terms=TERMS)
    assert notes[0] == (first.body["ledger"], ends, None if lost else before)
