"""Backups of older forms, ledgers that cannot be read, and places where no copy can be made."""

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
