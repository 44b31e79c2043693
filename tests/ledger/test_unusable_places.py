"""Branches of a ledger that are seldom taken: what cannot be read, asked, linked or reached."""

import os
import sys
from pathlib import Path

import pytest

from takifugu.errors import InvalidFile, LedgerDamaged, LedgerUnwritable
from takifugu.ledger import open_ledger
from takifugu.ledger.witnesses.state_folder import heads_folder
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


# --- statements ---


def test_a_ledger_without_its_head_is_not_written_to(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.check_writable()
        with ledger._store.writing() as connection:
            connection.raw.execute("DELETE FROM takifugu_head")
        with raises(LedgerDamaged, reason="head"):
            ledger.check_writable()


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
