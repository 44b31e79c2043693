"""The parts of a backup and of putting it back, each at its edges."""

import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import (
    LedgerDamaged,
    LedgerUnavailable,
)
from takifugu.ledger import Anchor, open_ledger, restore_ledger
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.ledger.witnesses.state_folder import FileWitness
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.older_copies import copied_ledger
from tests.raising import raises

pytestmark = pytest.mark.nightly

TERMS = LossTerms({"ward": DOUBLING})


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with a budget and a charge, closed, and a backup of it."""
    made = copied_ledger(folder)
    with open_ledger(made) as ledger:
        ledger.backup(folder / "backup")
    return made


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
