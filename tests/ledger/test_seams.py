"""Where two mechanisms of the ledger meet: copies without a witness, other keys, stale logs."""

import os
import shutil
import stat
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from takifugu._core.keys import state_folder
from takifugu.errors import (
    InvalidFile,
    LedgerConflict,
    LedgerSetBack,
    LedgerUnwritable,
    SameRows,
)
from takifugu.ledger import Ledger, open_ledger, restore_ledger
from takifugu.ledger.witnesses.lost_history import LossTerms
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

TERMS = LossTerms({"ward": DOUBLING})

Opener = Callable[..., Ledger]


def forget_witnesses() -> None:
    """The user's state folder is lost."""
    shutil.rmtree(state_folder())


def test_a_lossy_restore_without_a_witness_renews_nothing(folder: Path) -> None:
    """The command knows what it overwrites, whoever has removed the note of it."""
    path, copy = folder / "ward.ledger", folder / "copy"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.backup(copy)
        ledger.charge(charge("0.75"), DOUBLING)
    forget_witnesses()
    restore_ledger(copy, path, lossy=True, terms=TERMS)
    with open_ledger(path) as ledger:
        assert ledger.spent("ward", DOUBLING) >= 2


def test_a_lossy_restore_by_choice_without_a_witness_is_refused(folder: Path) -> None:
    path, copy = folder / "ward.ledger", folder / "copy"
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.backup(copy)
        ledger.charge(charge("0.75"), DOUBLING)
    with raises(LedgerSetBack, reason="no witness", event=3):
        restore_ledger(copy, path, witness=False, lossy=True, terms=TERMS)
    with open_ledger(path, witness=False) as ledger:
        assert ledger.spent("ward", DOUBLING) == 1.5


@pytest.mark.parametrize("end", ["-wal", "-journal"])
def test_a_log_that_lies_there_is_not_read_into_a_copy(folder: Path, end: str) -> None:
    """SQLite would read the log of one file into another."""
    path, copy, log = folder / "ward.ledger", folder / "copy", folder / f"ward.ledger{end}"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.backup(copy)
    path.unlink()
    log.write_bytes(b"log")
    with raises(LedgerConflict, reason="log"):
        restore_ledger(copy, path, lossy=True, terms=TERMS)
    assert log.read_bytes() == b"log" and not path.exists()
    log.write_bytes(b"")  # it holds nothing
    assert restore_ledger(copy, path).events == 2


def test_another_key_does_not_make_two_budgets_for_the_same_rows(
    folder: Path, opened: Opener
) -> None:
    """Marks under two keys cannot be compared, so nobody can say that the rows are others."""
    ledger = opened(folder / "ward.ledger")
    rows = ("content", (3, "12345", "state"))

    def marked(dataset: str) -> SameRows | None:
        marks = (f"content {ledger.mark(*rows)}",)
        data = ledger.mark("data", "of the file")
        try:
            ledger.charge(charge("0.25", dataset=dataset, data=data, sources=marks), DOUBLING)
        except SameRows as error:
            return error
        return None

    for dataset in ("ward", "copy of ward"):
        ledger.set_budget(dataset, 2)
    assert marked("ward") is None
    ledger.close()
    (folder / "ward.key").unlink()
    ledger = opened(folder / "ward.ledger")
    refused = marked("copy of ward")
    assert refused is not None and (refused.other, refused.same) == ("ward", None)
    assert marked("ward") is None  # itself, whose earlier charges count all the same
    ledger.count_separately("copy of ward", "ward")
    assert marked("copy of ward") is None


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK])
def test_a_special_file_is_no_place_for_a_ledger_or_its_witness(folder: Path, kind: int) -> None:
    """A pipe would block; making a device private would take it away from everybody else."""
    special = folder / "special"
    os.mknod(special, kind | 0o666)
    before = special.stat().st_mode
    with raises(InvalidFile, field="ledger", reason="special file"):
        open_ledger(special)
    with raises(LedgerUnwritable, reason="witness"):
        open_ledger(folder / "ward.ledger", witness=special)
    assert special.stat().st_mode == before


def test_the_witness_is_told_what_was_written_in_full(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is nearly full may take a part of a note and report no error."""
    true = os.pwrite

    def short(handle: int, content: bytes, place: int) -> int:
        return true(handle, content[:40], place)

    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        monkeypatch.setattr(os, "pwrite", short)
        with raises(LedgerUnwritable, reason="witness"):
            ledger.charge(charge("0.25"), DOUBLING)
    monkeypatch.setattr(os, "pwrite", true)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with open_ledger(folder / "ward.ledger") as ledger:
            assert ledger.spent("ward", DOUBLING) == 0.5
