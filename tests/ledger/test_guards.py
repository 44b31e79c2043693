"""A ledger beside what its witness noted: what is the same, older, another history, or given up."""

import shutil
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged, LedgerSetBack
from takifugu.ledger import Anchor, Event, Ledger, LostWitness, accept_loss, open_ledger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.storage.database import Connection, Store
from takifugu.ledger.witnesses.head_witness import Guard, holds, identity, identity_in
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

LEDGER = "ab" * 16


@dataclass
class Noting:
    """A witness that remembers one event, or says what it is told to say."""

    name: str = "elsewhere"
    event: Anchor | None = None
    answers: list[Anchor | None] = field(default_factory=list)
    asked: list[tuple[Any, ...]] = field(default_factory=list)

    def read(self, ledger: str, /) -> Anchor | None:
        """What it remembers."""
        self.asked.append((ledger,))
        return self.event

    def record(self, ledger: str, event: Anchor, seen: Anchor | None, /) -> Anchor | None:
        """What it was told to say."""
        self.asked.append((ledger, event, seen))
        return self.answers.pop(0)

    def close(self) -> None:
        """Nothing is open."""


def guard(witness: Noting | None, *, writes: bool = True, lenient: bool = False) -> Guard:
    made = Guard(witness, "ward.ledger", writes=writes, lenient=lenient)
    made.ledger = LEDGER
    return made


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


def test_a_ledger_holds_each_of_its_events_and_no_other(path: Path) -> None:
    known = anchors(path)
    with reading(path) as connection:
        for event in known.values():
            assert holds(connection, event) and not holds(connection, other(event))
        assert not holds(connection, Anchor(6, known[5].hash))
        assert not holds(connection, Anchor(4, known[5].hash))
        assert not holds(connection, Anchor(0, "0" * 64))


def test_an_event_that_is_missing_or_was_edited_is_not_the_one_that_was_noted(path: Path) -> None:
    """A hash that differs tells it already: what else became of the row is not asked."""
    known = anchors(path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_events SET hash = ? WHERE seq = 4", ("e" * 64,))
        raw.execute("DELETE FROM takifugu_events WHERE seq = 2")
    with reading(path) as connection:
        assert not holds(connection, known[2]) and not holds(connection, known[4])
        assert holds(connection, known[5])  # the head itself


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


def test_an_event_whose_text_was_edited_is_damage(path: Path) -> None:
    known = anchors(path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_events SET body = body || ' ' WHERE seq = 3")
    with reading(path) as connection, raises(LedgerDamaged, reason="edited", event=3):
        holds(connection, known[3])


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


# --- what is compared ---


def test_a_comparison_refuses_what_lacks_the_event(path: Path) -> None:
    known = anchors(path)
    strict = guard(Noting())
    with reading(path) as connection:
        for seq in (1, 3, 5):
            strict.compare(connection, known[seq])
        for event, reason in (
            (Anchor(6, "c" * 64), "older"),
            (other(known[5]), "another history"),
            (other(known[4]), "another history"),
        ):
            with raises(LedgerSetBack, reason=reason, event=event.seq) as told:
                strict.compare(connection, event)
            message = str(told.value)
            assert "'ward.ledger'" in message and "(witness: elsewhere)" in message
            assert ("ends at event 5" in message) == (reason == "older")
            assert f"event {event.seq}" in message
            guard(Noting(), lenient=True).compare(connection, event)
            guard(None).compare(connection, event)


@pytest.mark.parametrize(
    ("writes", "words"),
    [
        (True, ": a new one is made."),
        (False, ": the next charge, or the next answer that is shown, makes a new one."),
    ],
)
def test_a_ledger_without_a_record_warns_once(path: Path, writes: bool, words: str) -> None:
    found = guard(Noting(), writes=writes)
    with reading(path) as connection, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            found.compare(connection, None)
    (warning,) = told
    assert warning.category is LostWitness and "'ward.ledger'" in str(warning.message)
    assert "has 5 events but no witness in elsewhere" + words in str(warning.message)


@pytest.mark.parametrize(("events", "warned"), [(1, False), (2, True)])
def test_a_ledger_that_was_just_made_needs_no_warning(
    folder: Path, events: int, warned: bool
) -> None:
    with open_ledger(folder / "new.ledger", witness=False) as ledger:
        for budget in range(1, events):
            ledger.set_budget("ward", budget)
    with reading(folder / "new.ledger") as connection, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        guard(Noting()).compare(connection, None)
    assert [one.category for one in told] == [LostWitness] * warned


# --- what is shown ---


def test_what_is_to_be_shown_and_not_noted_is_noted_up_to_the_head(path: Path) -> None:
    known = anchors(path)
    strict, lenient = guard(Noting()), guard(Noting(), lenient=True)
    with reading(path) as connection:
        assert strict.unknown(connection, known[1]) is None  # nothing is shown
        chain.show(connection, 3)
        chain.show(connection, 2)
        head = known[5]
        for noted in (None, known[1], known[2], other(known[3]), other(head), Anchor(9, "c" * 64)):
            assert strict.unknown(connection, noted) == head, noted
        for noted in (known[3], known[4], head):
            assert strict.unknown(connection, noted) is None
            assert lenient.unknown(connection, noted) is None
        for noted in (None, other(known[3]), Anchor(9, "c" * 64)):  # it does not go on from there
            assert lenient.unknown(connection, noted) is None
        for noted in (known[1], known[2]):
            assert lenient.unknown(connection, noted) == head
        assert guard(None).unknown(connection, known[1]) is None
        assert guard(None, lenient=True).unknown(connection, known[1]) is None


def test_a_damaged_ledger_that_is_inspected_notes_nothing(path: Path) -> None:
    known = anchors(path)
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute("UPDATE takifugu_events SET body = body || ' ' WHERE seq = 2")
    with reading(path) as connection:
        chain.show(connection, 3)
        assert guard(Noting(), lenient=True).unknown(connection, known[2]) is None
        assert guard(Noting(), lenient=True).unknown(connection, known[1]) == known[5]


# --- recording ---


Told = tuple[list[tuple[Any, ...]], int]


def advanced(path: Path, event: Anchor, seen: Anchor | None, *answers: Anchor | None) -> Told:
    """What a witness that gives these answers is asked; how often the ledger is read for it."""
    witness, read = Noting(answers=list(answers)), list[int]()

    def counted() -> Any:
        read.append(1)
        return reading(path)

    guard(witness).advance(event, seen, counted)
    assert not witness.answers
    return witness.asked, len(read)


def test_a_record_of_another_history_is_refused(path: Path) -> None:
    known = anchors(path)
    for there, reason in (
        (other(known[3]), "another history"),
        (other(known[4]), "another history"),
        (other(known[5]), "another history"),
        (Anchor(6, "c" * 64), "older"),
    ):
        with raises(LedgerSetBack, reason=reason, event=there.seq):
            advanced(path, known[4], known[3], there)


def test_a_history_that_was_given_up_makes_way_for_the_decision(folder: Path) -> None:
    """What was lost has the number of the event that gave it up, which is recorded all the same."""
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
    shutil.copy(path, folder / "copy")
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 3)
        lost = ledger.head()
    shutil.copy(folder / "copy", path)
    decision = accept_loss(path, costs=False)
    event = Anchor(decision.seq, decision.hash)
    assert event.seq == lost.seq
    asked = [(LEDGER, event, None), (LEDGER, event, lost)]
    assert advanced(path, event, None, lost, event) == (asked, 1)


# --- the name of a ledger ---


def test_a_copy_has_the_name_of_its_ledger(path: Path, folder: Path) -> None:
    shutil.copy(path, folder / "copy")
    with reading(path) as one, reading(folder / "copy") as two:
        assert identity(one) == identity(two) == chain.one(one, 1).body["ledger"]


@pytest.mark.parametrize(
    "name", [None, 7, "", "ab" * 15, "ab" * 17, "AB" * 16, "g" * 32, f"{LEDGER}\n", [LEDGER]]
)
def test_a_first_event_names_its_ledger_by_32_digits(name: Any) -> None:
    made: Callable[[Any], Event] = lambda given: Event(  # noqa: E731
        1, "created", datetime(2026, 1, 9, tzinfo=UTC), "c" * 64, {"ledger": given}
    )
    assert identity_in(made(LEDGER)) == LEDGER
    with raises(LedgerDamaged, reason="unreadable", event=1):
        identity_in(made(name))


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
