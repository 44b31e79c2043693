"""A ledger beside what its witness noted: what is the same, older, another history, or given up."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from takifugu.errors import LedgerSetBack
from takifugu.ledger import Anchor, Ledger, accept_loss, open_ledger
from takifugu.ledger.storage.database import Connection, Store
from takifugu.ledger.witnesses.head_witness import holds
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.fixture
def path(folder: Path) -> Path:
    """A ledger with five events, closed."""
    with open_ledger(folder / "ward.ledger", witness=False) as ledger:
        for budget in range(1, 5):
            ledger.set_budget("ward", budget)
    return folder / "ward.ledger"


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """A transaction that nothing is compared in."""
    store = Store(path, read_only=True, wait=5)
    try:
        with store.unguarded() as connection:
            yield connection
    finally:
        store.close()


def anchors(path: Path) -> dict[int, Anchor]:
    with open_ledger(path, inspect=True, witness=False) as ledger:
        return {event.seq: Anchor(event.seq, event.hash) for event in ledger.history()}


def other(event: Anchor) -> Anchor:
    """An event of the same number in another history."""
    return replace(event, hash="f" * 64)


# --- which events a ledger has ---


def test_a_head_that_was_set_back_takes_its_events_with_it(path: Path) -> None:
    """Rows that were left behind it are no part of the chain any more."""
    known = anchors(path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_head SET seq = 3, hash = ?", (known[3].hash,))
    with reading(path) as connection:
        assert [holds(connection, event) for event in known.values()] == [True] * 3 + [False] * 2
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_head SET hash = ?", ("e" * 64,))
    with reading(path) as connection:
        assert [holds(connection, event) for event in known.values()] == [True] * 2 + [False] * 3


def test_a_history_that_was_given_up_is_held_by_the_decision(folder: Path) -> None:
    path = folder / "ward.ledger"
    lost: list[Anchor] = []
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
    for budget in (3, 4):  # two histories are lost, one after the other
        shutil.copy(path, folder / "copy")
        with open_ledger(path) as ledger:
            ledger.set_budget("ward", budget)
            ledger.set_budget("ward", budget + 5)
            lost.append(ledger.head())
        shutil.copy(folder / "copy", path)
        accept_loss(path, costs=False)
    with reading(path) as connection:
        for event in lost:
            assert holds(connection, event) and not holds(connection, other(event))
            assert not holds(connection, replace(event, seq=event.seq + 1))


# --- the name of a ledger ---


def test_an_older_ledger_in_the_place_of_another_history_is_told_apart(
    folder: Path, opened: Callable[..., Ledger]
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
