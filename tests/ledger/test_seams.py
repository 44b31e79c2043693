"""Where two mechanisms of the ledger meet, and places that cannot be used: logs, keys, files."""

import os
import shutil
import stat
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from takifugu._core.keys import state_folder
from takifugu.errors import (
    InvalidFile,
    LedgerConflict,
    LedgerDamaged,
    LedgerSetBack,
    LedgerUnwritable,
    SameRows,
)
from takifugu.ledger import Ledger, open_ledger, restore_ledger
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.ledger.witnesses.state_folder import heads_folder
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


def test_a_ledger_without_its_head_is_not_written_to(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.check_writable()
        with ledger._store.writing() as connection:
            connection.raw.execute("DELETE FROM takifugu_head")
        with raises(LedgerDamaged, reason="head"):
            ledger.check_writable()


@pytest.mark.parametrize("many", [1, 2, 20, 21, 500, 501])
def test_any_number_of_groups_is_found_again(folder: Path, many: int) -> None:
    """For up to 500 groups a statement names them; for more the segments are read in full."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        names = [f"g{place:03}" for place in range(many)]
        ledger.charge(charge("0.25", None, names), DOUBLING)
        ledger.charge(charge("0.5", None, [names[-1]], query={"name": "other"}), DOUBLING)
        assert ledger.spent("ward", DOUBLING) == 1.5
        ledger.charge(charge("0.25", None, names, query={"name": "third"}), DOUBLING)
        assert ledger.spent("ward", DOUBLING) == 2.0


def test_a_key_that_cannot_be_used_releases_nothing(folder: Path) -> None:
    taken = folder / "key"
    taken.mkdir()
    with (
        open_ledger(folder / "ward.ledger", key=taken) as ledger,
        raises(LedgerUnwritable, reason="key"),
    ):
        ledger.mark("data", "x")


def test_a_ledger_of_a_server_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "takifugu.ledger.storage.postgresql", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with raises(InvalidFile, field="ledger", reason="driver"):
        open_ledger("postgresql://ann@localhost/ledger")


def test_an_address_that_is_none_is_refused_without_its_words() -> None:
    pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
    from takifugu.ledger.storage.postgresql import open_postgresql

    with raises(InvalidFile, field="ledger", reason="address") as caught:
        open_postgresql("postgresql://ann:secret@[/x", read_only=False, wait=1.0)
    assert "secret" not in str(caught.value)


def test_a_witness_needs_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda _: "~")
    with raises(LedgerUnwritable, reason="witness"):
        heads_folder()
