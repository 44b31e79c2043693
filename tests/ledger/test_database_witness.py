"""A witness in a database of its own: one row for each ledger, made when it is first needed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerUnwritable
from takifugu.ledger import Anchor
from takifugu.ledger.storage.database import Statement, Store
from takifugu.ledger.witnesses.head_witness import DatabaseWitness
from tests.raising import raises

LEDGER, OTHER = "a" * 32, "b" * 32
EVENTS = [Anchor(seq, f"{seq:064x}") for seq in range(3, 8)]
Made = Callable[..., DatabaseWitness]


@pytest.fixture
def made(url: str) -> Iterator[Made]:
    """Opens a witness that is closed after the test."""
    with ExitStack() as stack:

        def enter(*, read_only: bool = False) -> DatabaseWitness:
            found = DatabaseWitness(Store(url, read_only=read_only, wait=5))
            stack.callback(found.close)
            return found

        yield enter


def rows(witness: DatabaseWitness) -> list[Any]:
    with witness._store.reading() as connection:
        return Statement("SELECT * FROM takifugu_witnesses ORDER BY ledger").all(connection, {})


def test_each_ledger_has_one_row_which_only_who_has_seen_it_replaces(made: Made) -> None:
    witness, other = made(), made()
    assert witness.name == witness._store.name
    assert witness.read(LEDGER) is None and other.read(LEDGER) is None
    seen = None
    for event in EVENTS:
        assert witness.record(LEDGER, event, seen) == event
        assert other.record(LEDGER, event, event) == event  # it is there, whatever was seen
        assert other.record(LEDGER, event, None) == event == other.read(LEDGER)
        seen = event
    late = Anchor(99, "f" * 64)
    for unseen in (None, EVENTS[0], late):
        assert other.record(LEDGER, late, unseen) == EVENTS[-1] == witness.read(LEDGER)
    assert witness.read(OTHER) is None
    assert other.record(OTHER, late, EVENTS[-1]) is None  # nothing is recorded yet
    assert other.record(OTHER, late, None) == late == witness.read(OTHER)
    assert witness.record(OTHER, EVENTS[0], late) == EVENTS[0]
    assert [tuple(row) for row in rows(witness)] == [
        (LEDGER, EVENTS[-1].seq, EVENTS[-1].hash),
        (OTHER, EVENTS[0].seq, EVENTS[0].hash),
    ]


def test_one_that_cannot_be_written_is_told(folder: Path) -> None:
    store = Store(f"sqlite:///{folder}/heads", read_only=True, wait=5)
    with raises(LedgerUnwritable, reason="read-only"):
        DatabaseWitness(store).record(LEDGER, EVENTS[0], None)
    store.close()
