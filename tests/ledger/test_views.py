"""What a ledger shows, row by row: readings, stretches, positions, pages, problems and exports."""

import sqlite3
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu.costs.losses import Concentrated, Total
from takifugu.errors import LedgerSetBack, NoBudget
from takifugu.ledger import Ledger, Reading, Stretch, accept_loss, open_ledger
from takifugu.ledger.account import WHOLE
from takifugu.ledger.events.replay import Problem
from tests.ledger.charges import DOUBLING, RICH, charge
from tests.ledger.older_copies import copied_ledger, set_back
from tests.raising import raises

pytestmark = pytest.mark.nightly


def eps(size: str) -> tuple[Total, ...]:
    """A total of ε alone."""
    return (Total(Fraction(size)),)


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    """A ledger in which two datasets, two analysts and three budgets of one dataset differ."""
    with open_ledger(folder / "ward.ledger", actor="olga") as ledger:
        ledger.set_budget("ward", 8, delta="1/50")  # 2
        ledger.set_budget("annex", 9)
        first = ledger.charge(charge("0.25", analyst="ana"), DOUBLING)  # 4
        ledger.charge(charge(1, dataset="annex", analyst="bob"), DOUBLING)
        ledger.set_budget("ward", 6)  # 6
        ledger.set_budget("ward", 4, analyst="ana")
        ledger.set_budget("ward", 3, analyst="bob", delta="1/60")  # 8
        ledger.record_answer(first, 7)
        ledger.reuse(charge("0.25", analyst="bob"), DOUBLING)  # 10
        ledger.charge(charge("0.5", (0, 5), ["fr"], analyst="bob"), DOUBLING)
        ledger.charge(charge("0.125", (3, None), analyst="ana"), DOUBLING)  # 12
        yield ledger


COUNTED: dict[str, list[tuple[int, str]]] = {
    WHOLE: [(4, "1/4"), (11, "3/4"), (12, "7/8")],
    "ana": [(4, "1/4"), (12, "3/8")],
    "bob": [(10, "1/4"), (11, "3/4")],
    "eve": [],
}


@pytest.mark.parametrize("who", COUNTED)
def test_every_charge_is_read_with_the_totals_and_the_budget_of_its_time(
    kept: Ledger, who: str
) -> None:
    times = {event.seq: event.at for event in kept.history()}
    readings = [Reading(seq, times[seq], 2 * float(Fraction(s))) for seq, s in COUNTED[who]]
    analyst = who or None
    assert list(kept.odometer("ward", DOUBLING, analyst=analyst)) == readings
    for last in (1, 2, 9):
        shown = list(kept.odometer("ward", DOUBLING, analyst=analyst, last=last))
        assert shown == readings[-last:]


def test_a_reading_is_at_most_the_budget_that_admitted_it(folder: Path) -> None:
    """ρ is read with the δ of its time, and a budget that admits a loss bounds it."""
    with open_ledger(folder / "ward.ledger") as ledger:
        for epsilon, delta in ((2, "1e-6"), (3, "1e-4")):
            ledger.set_budget("ward", epsilon, delta=delta)
            ledger.charge(charge(Concentrated("0.005"), translation="rich"), RICH)
        first, second = ledger.odometer("ward", RICH)
        assert first.epsilon == RICH.total_to_pufferfish(
            Total(rho=Fraction(1, 200)), Fraction("1e-6")
        )
        assert second.epsilon == RICH.total_to_pufferfish(
            Total(rho=Fraction(1, 100)), Fraction("1e-4")
        )
        assert ledger.spent("ward", RICH) == second.epsilon


def test_a_lost_history_is_read_by_those_who_have_an_account(folder: Path) -> None:
    path = copied_ledger(folder)
    set_back(path)
    event = accept_loss(path, translations={"ward": DOUBLING})
    with open_ledger(path) as ledger:
        (*_, last) = ledger.odometer("ward", DOUBLING)
        assert last == Reading(event.seq, event.at, 2.0)
        assert list(ledger.odometer("ward", DOUBLING, analyst="ana")) == []
        assert list(ledger.odometer("annex", DOUBLING)) == []


def test_stretches_of_time_are_told_from_the_first_to_the_last(kept: Ledger) -> None:
    assert kept.over_time("ward") == (
        Stretch(None, 0, eps("1/4")),
        Stretch(0, 3, eps("3/4")),
        Stretch(3, 5, eps("7/8")),
        Stretch(5, None, eps("3/8")),
    )
    assert kept.over_time("ward", analyst="ana") == (
        Stretch(None, 3, eps("1/4")),
        Stretch(3, None, eps("3/8")),
    )
    assert kept.over_time("ward", analyst="eve") == (Stretch(None, None, eps("0")),)
    with raises(NoBudget, dataset="other"):
        kept.over_time("other")


def test_a_copy_that_was_set_back_is_told_first_and_in_the_same_words(folder: Path) -> None:
    path = copied_ledger(folder)
    set_back(path)
    with pytest.raises(LedgerSetBack) as refused:
        open_ledger(path)
    error = refused.value
    with open_ledger(path, inspect=True) as ledger:
        report = ledger.verify()
    assert report.problems == (Problem("older", str(error), 4),)
    assert report.witness is not None and report.witness.seq == 4 and report.events == 3


SHOWS: dict[str, Callable[[Ledger], object]] = {
    "history": lambda ledger: list(ledger.history()),
    "the last": lambda ledger: list(ledger.history(last=1)),
    "history of answers": lambda ledger: list(ledger.history(kind="answer")),
    "events": lambda ledger: ledger.events(),
    "events of kinds": lambda ledger: ledger.events(kind=("charge", "answer")),
    "answers": lambda ledger: ledger.events(kind="answer"),
    "event": lambda ledger: ledger.event(9),
    "stored": lambda ledger: ledger.stored(0, 1),
    "export": lambda ledger: ledger.export(Path(ledger.name).with_name("export")),
}
SHOWS_NONE: dict[str, Callable[[Ledger], object]] = {
    "history of charges": lambda ledger: list(ledger.history(kind="charge")),
    "the last charge": lambda ledger: list(ledger.history(kind="charge", last=1)),
    "charges": lambda ledger: ledger.events(kind="charge"),
    "charges and reuses": lambda ledger: ledger.events(kind=("charge", "reuse")),
    "event": lambda ledger: ledger.event(2),
    "answered": lambda ledger: ledger.answered([4]),
}


def test_only_what_shows_answers_is_refused_where_an_older_copy_was_put_back(
    kept: Ledger, folder: Path
) -> None:
    """Answers are a matter of the witness; that something was charged may be read all the same."""
    before = kept.head()
    kept.charge(charge("0.125", analyst="ana"), DOUBLING)
    with sqlite3.connect(folder / "ward.ledger") as raw:  # as a snapshot of the disk would
        raw.execute("DELETE FROM takifugu_events WHERE seq > ?", (before.seq,))
        raw.execute("UPDATE takifugu_head SET seq = ?, hash = ?", (before.seq, before.hash))
    raw.close()
    for show in SHOWS.values():
        with raises(LedgerSetBack, reason="older", event=13):
            show(kept)
    assert not (folder / "export").exists()
    for show in SHOWS_NONE.values():
        assert show(kept)
    assert kept.head() == before
