"""What is read within `Ledger.one_moment`: an answer is recorded before it is shown."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from takifugu.errors import LedgerUnwritable
from takifugu.ledger import Charge, Ledger
from tests.ledger.charges import DOUBLING, charge
from tests.ledger.older_copies import (
    Opener,
    copied_ledger,
    no_room_in_the_witness,
)

READS: dict[str, Callable[[Ledger, Charge], object]] = {
    "quote": lambda ledger, asked: ledger.quote(asked, DOUBLING).answer,
    "lookup": lambda ledger, asked: ledger.lookup(asked),
    "earlier": lambda ledger, asked: ledger.earlier(asked),
    "event": lambda ledger, _: ledger.event(ledger.head().seq),
    "stored": lambda ledger, _: ledger.stored(4, 1),
    "history": lambda ledger, _: next(iter(ledger.history(last=1))),
}


@contextmanager
def failed_moment(ledger: Ledger) -> Iterator[None]:
    """A moment that an error ends."""
    with suppress(KeyError), ledger.one_moment():
        yield
        raise KeyError


@pytest.mark.parametrize("how", READS)
def test_an_answer_is_recorded_before_it_is_shown_though_the_moment_goes_on(
    folder: Path, opened: Opener, how: str
) -> None:
    path = copied_ledger(folder)
    writer, reader, asked = opened(path), opened(path), charge("0.25")
    receipt = writer.charge(asked, DOUBLING, resume=True)

    with no_room_in_the_witness():
        with pytest.raises(LedgerUnwritable):
            writer.record_answer(receipt, 1)
        with failed_moment(reader), pytest.raises(LedgerUnwritable):
            READS[how](reader, asked)
    with failed_moment(reader):
        assert reader.spent("ward", DOUBLING) == 1
        assert READS[how](reader, asked) is not None
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
