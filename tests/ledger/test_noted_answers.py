"""An answer is shown only once the witness of its ledger knows it."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from takifugu.errors import (
    LedgerSetBack,
    LedgerUnwritable,
)
from takifugu.ledger import (
    Anchor,
    Event,
    Ledger,
    LostWitness,
    accept_loss,
    open_ledger,
)
from takifugu.ledger.witnesses.state_folder import FileWitness, heads_folder
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.older_copies import (
    Opener,
    copied_ledger,
    forgetful_witness,
    no_room_in_the_witness,
    set_back,
)
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.fixture
def path(folder: Path) -> Path:
    return copied_ledger(folder)


ASKED = charge("0.25", key="asked")


def exported(ledger: Ledger) -> str:
    place = Path(ledger.name).with_name("export")
    ledger.export(place)
    found = place.read_text(encoding="utf-8")
    place.unlink()
    return found


def first_of(events: Iterator[Event]) -> str:
    """What an interrupted reader has seen."""
    try:
        return str(next(events).body)
    finally:
        events.close()  # type: ignore[attr-defined]


VIEWS: dict[str, Callable[[Ledger], str]] = {
    "quote": lambda ledger: str(ledger.quote(ASKED, DOUBLING).answer),
    "lookup": lambda ledger: str(ledger.lookup(ASKED)),
    "reuse": lambda ledger: str(ledger.reuse(ASKED, DOUBLING)),
    "earlier": lambda ledger: str(ledger.earlier(ASKED)),
    "history": lambda ledger: str([event.body for event in ledger.history()]),
    "history of answers": lambda ledger: first_of(ledger.history(kind="answer")),
    "history of a dataset": lambda ledger: str([e.body for e in ledger.history("ward")]),
    "the last": lambda ledger: first_of(ledger.history(last=1)),
    "events": lambda ledger: str(ledger.events()),
    "events of kinds": lambda ledger: str(ledger.events(kind=("charge", "answer"))),
    "events before": lambda ledger: str(ledger.events(limit=1, before=6)),
    "event": lambda ledger: str(ledger.event(5)),
    "stored": lambda ledger: str(ledger.stored(4, 1)),
    "export": exported,
}


@pytest.mark.parametrize("how", [{}, {"read_only": True}, {"inspect": True}], ids=str)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_an_answer_only_once_its_event_is_noted(
    path: Path,
    opened: Opener,
    view: str,
    how: dict[str, bool],
) -> None:
    """Read in the history, lost with an older copy, it would be drawn again under its charge."""
    one, other = opened(path), opened(path, **how)
    receipt = one.charge(ASKED, DOUBLING, resume=True)
    one.backup(path.with_name("without"))

    with no_room_in_the_witness():
        with pytest.raises(LedgerUnwritable):
            one.record_answer(receipt, "first")
        assert other.spent("ward", DOUBLING) == 1 and other.verify().witness == receipt.anchor
        with pytest.raises(LedgerUnwritable):
            VIEWS[view](other)
        assert not path.with_name("export").exists()
    assert other.verify().witness == receipt.anchor
    assert "first" in VIEWS[view](other)
    assert other.verify().witness == other.head() and other.head().seq == 5
    one.close()
    other.close()
    shutil.copy(path.with_name("without"), path)
    with raises(LedgerSetBack, reason="older", event=5):
        open_ledger(path)


def test_a_view_notes_once_what_it_shows_and_only_answers(
    path: Path, opened: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, reader = opened(path), opened(path, read_only=True)
    notes, note = list[Anchor](), FileWitness.record

    def counted(
        self: FileWitness, ledger: str, event: Anchor, seen: Anchor | None
    ) -> Anchor | None:
        notes.append(event)
        return note(self, ledger, event, seen)

    with forgetful_witness():
        for _ in range(5):
            one.record_answer(one.charge(charge("1/64"), DOUBLING), 1)
        one.charge(charge("1/64"), DOUBLING)
    monkeypatch.setattr(FileWitness, "record", counted)
    assert len(list(reader.history(kind="charge"))) == len(reader.events(kind="charge")) == 7
    assert reader.event(4) is not None and len(reader.stored(0, 4)) == 4 and not notes
    assert len(list(reader.history())) == len(reader.events()) == reader.head().seq
    assert notes == [reader.head()]


def test_an_inspection_makes_no_record_and_shows_an_older_copy_as_it_is(
    path: Path,
) -> None:
    with open_ledger(path) as ledger:
        ledger.record_answer(ledger.charge(ASKED, DOUBLING), "first")
    shutil.copy(path, path.with_name("copy"))
    set_back(path)
    with open_ledger(path, inspect=True) as ledger:
        noted = ledger.verify().witness
        assert all("first" in view(ledger) for view in VIEWS.values())
        assert ledger.verify().witness == noted != ledger.head()
    (head,) = heads_folder().iterdir()
    head.unlink()
    with open_ledger(path, inspect=True) as ledger:
        assert all("first" in view(ledger) for view in VIEWS.values())
        assert ledger.verify().witness is None and not list(heads_folder().iterdir())


def test_a_damaged_ledger_is_inspected_without_a_note(path: Path) -> None:
    with open_ledger(path) as ledger:
        noted = ledger.head()
    with open_ledger(path, witness=False) as ledger:
        ledger.record_answer(ledger.charge(charge("0.25"), DOUBLING), "first")
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE takifugu_events SET body = body || ' ' WHERE seq = ?", (noted.seq,))
    raw.close()
    with open_ledger(path, inspect=True) as ledger:
        assert "first" in VIEWS["history"](ledger) and "first" in VIEWS["export"](ledger)


def test_a_reader_without_a_record_is_told_what_makes_one(folder: Path) -> None:
    path, before = folder / "unrecorded.ledger", set(heads_folder().glob("*"))
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 2)
        ledger.record_answer(ledger.charge(charge("0.25"), DOUBLING), 1)
    with pytest.warns(LostWitness, match="or the next answer that is shown, makes a new one"):
        reader = open_ledger(path, read_only=True)
    with reader:
        assert reader.events(kind="charge") and set(heads_folder().glob("*")) == before
        assert reader.events() and reader.verify().witness == reader.head()


@pytest.mark.parametrize("left", ["charge", "abandoned"])
def test_what_a_repeat_is_told_of_is_noted(path: Path, opened: Opener, left: str) -> None:
    one, other, asked = opened(path), opened(path), charge("0.25")

    receipt = one.charge(asked, DOUBLING, resume=True) if left == "abandoned" else None
    with no_room_in_the_witness():
        with pytest.raises(LedgerUnwritable):
            one.abandon(receipt) if receipt else one.charge(asked, DOUBLING, resume=True)
        with pytest.raises(LedgerUnwritable):
            other.earlier(asked)
    assert other.verify().witness != other.head()
    earlier = other.earlier(asked)
    assert earlier is not None and earlier.receipt.may_release == (left == "charge")
    assert other.verify().witness == other.head()


def test_an_answer_that_is_noted_is_shown_without_a_note(path: Path, opened: Opener) -> None:
    one, asked = opened(path), charge("0.25")
    one.record_answer(one.charge(asked, DOUBLING), 1)

    with no_room_in_the_witness():
        with pytest.raises(LedgerUnwritable):
            one.charge(charge("0.125"), DOUBLING)  # a later event that is not noted
        known = opened(path, read_only=True).lookup(asked)
        assert known is not None and known.value == 1
        with open_ledger(path, inspect=True) as ledger:
            assert ledger.lookup(asked) == known


def test_a_note_of_a_history_that_was_given_up_does_not_vouch_for_an_answer(
    path: Path, opened: Opener
) -> None:
    with open_ledger(path) as ledger:
        for _ in range(9):
            ledger.charge(charge("1/64"), DOUBLING)
        lost = ledger.head()
    shutil.copy(path.with_name("copy"), path)
    asked = charge("0.25", dataset="annex", data="other data")

    with forgetful_witness():
        accept_loss(path, actor="owner", costs=False)
        with open_ledger(path) as ledger:
            ledger.set_budget("annex", 2)
            answer = ledger.record_answer(ledger.charge(asked, DOUBLING), 1)
    reader = opened(path, read_only=True)
    assert reader.verify().witness == lost and lost.seq > answer.event.seq
    assert reader.lookup(asked) == answer
    assert reader.verify().witness == answer.event


# --- within one moment ---


@contextmanager
def failed_moment(ledger: Ledger) -> Iterator[None]:
    """A moment that an error ends."""
    with suppress(KeyError), ledger.one_moment():
        yield
        raise KeyError


@pytest.mark.parametrize("view", ["quote", "lookup", "earlier", "event", "stored", "the last"])
def test_an_answer_is_recorded_before_it_is_shown_though_the_moment_goes_on(
    folder: Path, opened: Opener, view: str
) -> None:
    path = copied_ledger(folder)
    writer, reader = opened(path), opened(path)
    receipt = writer.charge(ASKED, DOUBLING, resume=True)

    with no_room_in_the_witness():
        with pytest.raises(LedgerUnwritable):
            writer.record_answer(receipt, "first")
        with failed_moment(reader), pytest.raises(LedgerUnwritable):
            VIEWS[view](reader)
    with failed_moment(reader):
        assert reader.spent("ward", DOUBLING) == 1
        assert "first" in VIEWS[view](reader)
        assert reader.verify().witness == reader.head()
    assert reader.verify().witness == reader.head()


@pytest.mark.parametrize("view", ["history", "odometer"])
def test_events_that_are_read_one_by_one_are_a_read_of_their_own(
    folder: Path, opened: Opener, view: str
) -> None:
    """Read on after the moment, they would show what a later transaction has not yet committed."""
    ledger = opened(copied_ledger(folder))
    views: dict[str, Callable[[], Iterator[object]]] = {
        "history": ledger.history,
        "odometer": lambda: ledger.odometer("ward", DOUBLING),
    }
    before = list(views[view]())
    with ledger.one_moment():
        ledger.position("ward")
        events = iter(views[view]())
        first = next(events)
    ledger.charge(charge("0.5"), DOUBLING)
    assert [first, *events] == before and len(list(views[view]())) == len(before) + 1
