"""What a ledger shows, row by row: readings, stretches, positions, pages, problems and exports."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.losses import Approximate, Concentrated, Total
from takifugu.errors import InvalidFile, LedgerSetBack, NoBudget, UnsoundRequest
from takifugu.ledger import Ledger, Reading, Stretch, Window, accept_loss, open_ledger
from takifugu.ledger.account import WHOLE
from takifugu.ledger.events.replay import Problem
from takifugu.ledger.snapshot import Position
from tests.ledger.charges import DOUBLING, KNOWN, RICH, charge, count
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


def test_positions_are_those_of_every_account(kept: Ledger) -> None:
    none, six = Fraction(0), Fraction(1, 60)
    assert kept.positions() == (
        Position("annex", None, Fraction(9), none, eps("1")),
        Position("annex", "bob", None, none, eps("1")),
        Position("ward", None, Fraction(6), none, eps("7/8")),
        Position("ward", "ana", Fraction(4), none, eps("3/8")),
        Position("ward", "bob", Fraction(3), six, eps("3/4")),
    )


def test_an_analyst_may_have_an_account_where_the_dataset_has_none(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 4, analyst="ana")
        assert ledger.spent("ward", DOUBLING, analyst="ana") == 0.0
        assert ledger.lost("ward", analyst="ana", window=Window(0, 5)) == eps("0")
        assert ledger.over_time("ward", analyst="ana") == (Stretch(None, None, eps("0")),)
        for analyst in (None, "bob"):
            with raises(NoBudget, dataset="ward"):
                ledger.spent("ward", DOUBLING, analyst=analyst)
            with raises(NoBudget, dataset="ward"):
                ledger.lost("ward", analyst=analyst)
        for analyst in (None, "ana"):
            with raises(NoBudget, dataset="ward"):
                ledger.remaining("ward", DOUBLING, analyst=analyst)


def test_what_remains_is_asked_in_the_currency_that_is_meant(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 12, delta="1e-3")
        ledger.charge(charge(count("0.5", "home"), (0, 5), translation="places"), KNOWN)
        (standing,) = ledger.standings("ward", KNOWN, window=Window(0, 5))
        for like, fits in (
            (Concentrated(1), True),
            (Approximate(1, "1e-9"), True),
            (Approximate(1, "1e-6"), False),
        ):
            found = ledger.remaining("ward", KNOWN, window=Window(0, 5), like=like)
            assert found == standing.room(like) and (found > 0) is fits
        found = ledger.remaining("ward", KNOWN, window=Window(0, 5))
        assert Fraction(5, 3) - Fraction(1, 2**40) < found <= Fraction(5, 3)
        home = count("0.25", "home")
        assert ledger.remaining("ward", KNOWN, window=Window(0, 5), like=home) == 10
        assert ledger.remaining("ward", KNOWN, window=Window(5, 9), like=home) == 12


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({}, list(range(1, 13))),
        ({"last": 0}, []),
        ({"last": 2}, [11, 12]),
        ({"dataset": "annex"}, [3, 5]),
        ({"analyst": "bob"}, [5, 8, 10, 11]),
        ({"dataset": "ward", "analyst": "bob"}, [8, 10, 11]),
        ({"dataset": "ward", "analyst": "bob", "last": 2}, [10, 11]),
        ({"kind": "charge"}, [4, 5, 11, 12]),
        ({"kind": "charge", "analyst": "ana", "last": 1}, [12]),
        ({"kind": "answer"}, [9]),
        ({"kind": "answer", "last": 5}, [9]),
        ({"dataset": "other"}, []),
    ],
)
def test_history_is_of_what_was_asked_for_in_order(
    kept: Ledger, asked: dict[str, Any], numbers: list[int]
) -> None:
    found = list(kept.history(**asked))
    assert [event.seq for event in found] == numbers
    assert found == [kept.event(number) for number in numbers]


@pytest.mark.parametrize("given", [{"before": 0}, {"after": 0, "limit": 1, "before": 1}])
def test_before_the_first_event_there_is_none(kept: Ledger, given: dict[str, int]) -> None:
    assert kept.events(**given) == ()  # type: ignore[arg-type]


def test_a_page_between_two_events(kept: Ledger) -> None:
    assert [one.seq for one in kept.events(3, 2, before=9)] == [8, 7]
    assert [one.seq for one in kept.events(3, 9, before=6)] == [5, 4]
    assert [one.seq for one in kept.events(2, 3, "charge", "ward", "ana")] == [4, 12]
    assert [one.seq for one in kept.events(kind=["answer", "reuse"])] == [9, 10]
    with raises(UnsoundRequest, field="limit", given=0) as refused:
        kept.events(limit=0)
    assert "1 to 10000 events" in str(refused.value)
    assert len(kept.events()) == 12  # and up to a hundred


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


def test_other_problems_follow_that_of_the_witness(folder: Path) -> None:
    path = copied_ledger(folder)
    set_back(path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE takifugu_accounts SET epsilon = '99'")
    raw.close()
    with open_ledger(path, inspect=True) as ledger:
        reasons = [problem.reason for problem in ledger.verify().problems]
    assert reasons[0] == "older" and "budget" in reasons[1:]


def test_an_export_is_private_and_replaces_nothing(kept: Ledger, folder: Path) -> None:
    target = folder / "events"
    assert kept.export(str(target)) == 12
    assert target.stat().st_mode & 0o777 == 0o600
    before = target.read_bytes()
    with raises(InvalidFile, field="export"):
        kept.export(target)
    assert target.read_bytes() == before and before.isascii()
    lines = [json.loads(line) for line in before.splitlines()]
    assert [(line["hash"], line["body"]) for line in lines] == [
        (event.hash, event.body) for event in kept.history()
    ]
    assert kept.stored(0, 99) == tuple(
        (seq, line["hash"], text.split(b'"body":', 1)[1][:-1].decode())
        for seq, (line, text) in enumerate(zip(lines, before.splitlines(), strict=True), 1)
    )


def test_of_charges_those_are_answered_that_have_an_answer(kept: Ledger) -> None:
    assert kept.answered([4, 5, 10, 11, 12]) == {4}
    assert kept.answered([]) == frozenset() == kept.answered([5])


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
