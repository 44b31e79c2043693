"""Branches of a ledger that are seldom taken: what cannot be read, asked, linked or reached."""

import os
import pwd
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from takifugu.errors import InvalidFile, LedgerDamaged, LedgerUnwritable
from takifugu.ledger import Ledger, lifecycle, open_ledger
from takifugu.ledger.account import Books
from takifugu.ledger.witnesses.backup import _appear
from takifugu.ledger.witnesses.state_folder import FileWitness, heads_folder
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


def test_an_event_of_an_unknown_kind_counts_for_nothing() -> None:
    with raises(LedgerDamaged, reason="unknown kind"):
        Books().apply({"kind": "gift"})


# --- statements ---


def test_a_ledger_without_its_head_is_not_written_to(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.check_writable()
        with ledger._store.writing() as connection:
            connection.raw.execute("DELETE FROM takifugu_head")
        with raises(LedgerDamaged, reason="head"):
            ledger.check_writable()


# --- names that no database can look for ---


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_no_event_has_a_name_that_cannot_be_asked_for(ledger: Ledger, name: str) -> None:
    ledger.charge(charge("0.25", analyst="ana"), DOUBLING)
    for how in ({"dataset": name}, {"analyst": name}, {"kind": name}):
        assert list(ledger.history(**how)) == [] == list(ledger.events(**how))  # type: ignore[arg-type]
    assert not ledger.events(dataset="ward", analyst=name)
    assert not ledger.events(kind=["charge", name])
    assert not list(ledger.history("ward", kind=name))
    assert len(list(ledger.history("ward", kind="charge"))) == 1
    assert len(ledger.events(kind=["charge"], dataset="ward", analyst="ana")) == 1


# --- what was written by others ---


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


# --- files ---


def test_a_key_that_cannot_be_used_releases_nothing(folder: Path) -> None:
    taken = folder / "key"
    taken.mkdir()
    with (
        open_ledger(folder / "ward.ledger", key=taken) as ledger,
        raises(LedgerUnwritable, reason="key"),
    ):
        ledger.mark("data", "x")


def test_a_name_that_no_disk_takes_is_refused(folder: Path) -> None:
    with raises(InvalidFile, field="ledger"):
        open_ledger(folder / ("x" * 300) / "ward.ledger")


def test_a_ledger_of_a_server_needs_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "takifugu.ledger.storage.postgresql", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with raises(InvalidFile, field="ledger", reason="driver"):
        open_ledger("postgresql://ann@localhost/ledger")


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError])
def test_a_connection_whose_exchange_was_cut_short_is_not_used_again(error: Any) -> None:
    """What comes later must not be taken for the answer to something else."""
    psycopg = pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
    from takifugu.ledger.storage.postgresql import _timed

    def exchange() -> Any:
        raise error
        yield

    ended: list[bool] = []
    raw: Any = SimpleNamespace(pgconn=SimpleNamespace(socket=0, finish=lambda: ended.append(True)))
    with pytest.raises(psycopg.OperationalError if error is TimeoutError else error):
        _timed(5.0).wait(raw, exchange())
    assert ended == [True]


def test_an_address_that_is_none_is_refused_without_its_words() -> None:
    pytest.importorskip("psycopg", reason="an extra: install takifugu[postgres]")
    from takifugu.ledger.storage.postgresql import open_postgresql

    with raises(InvalidFile, field="ledger", reason="address") as caught:
        open_postgresql("postgresql://ann:secret@[/x", read_only=False, wait=1.0)
    assert "secret" not in str(caught.value)


def test_a_copy_appears_under_its_name_unless_that_is_taken(folder: Path) -> None:
    part, path = folder / "part", folder / "copy"

    def failing(error: OSError) -> Callable[[Path, Path], None]:
        def link(_: Path, __: Path) -> None:
            raise error

        return link

    part.write_text("copy")
    _appear(part, path, failing(OSError(95, "no links here")))
    assert path.read_text() == "copy" and not part.exists()
    part.write_text("another")
    for taken in (OSError(95, "no links here"), FileExistsError(17, "it is there")):
        with raises(InvalidFile, field="backup", reason="exists"):
            _appear(part, path, failing(taken))
        assert path.read_text() == "copy" and part.read_text() == "another"
    gone = FileExistsError(17, "it was there a moment ago")
    with pytest.raises(FileExistsError):
        _appear(part, folder / "new", failing(gone))
    assert not (folder / "new").exists()
    _appear(part, folder / "new")
    assert os.path.samefile(part, folder / "new")


def test_a_witness_needs_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda _: "~")
    with raises(LedgerUnwritable, reason="witness"):
        heads_folder()


def test_a_witness_that_cannot_be_read_is_no_empty_one(folder: Path) -> None:
    (folder / "file").write_text("")
    assert FileWitness(folder / "none", folder=False).read("x") is None
    with raises(LedgerUnwritable, reason="witness"):
        FileWitness(folder / ("y" * 300), folder=False).read("x")


def test_marks_of_one_opening_are_by_one_key(folder: Path) -> None:
    """Also where its file is lost meanwhile, which does not make another one."""
    place = folder / "own.key"
    with open_ledger(folder / "ward.ledger", key=place) as ledger:
        first = ledger.mark("rows", 3)
        place.unlink()
        assert ledger.mark("rows", 3) == first != ledger.mark("rows", 4)
        assert not place.exists()


def test_who_acts_is_the_user_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(pw_name=f"u{number}"))
    assert lifecycle.current_actor() == "u4711"

    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert lifecycle.current_actor() == "uid 4711"
