"""Every problem that a verification finds, in full: its kind, its words and the event."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import Anchor, Ledger, Snapshot, Terms, open_ledger
from takifugu.ledger.accounts.account import Books
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events import replay
from takifugu.ledger.events.replay import Problem, Report, _digest_problems, _total_problems
from takifugu.ledger.storage.statement import Statement, transaction_state
from tests.contracts.ledger import tamper
from tests.contracts.ledger_people import approve, named, rewritten
from tests.ledger.charges import DOUBLING, IDENTITY, charge
from tests.ledger.test_seldom_used import row
from tests.raising import raises

pytestmark = pytest.mark.nightly

AT = "2020-01-01T00:00:00+00:00"
BUDGET: dict[str, Any] = {"kind": "budget", "seq": 2, "at": AT, "dataset": "ward", "key": "k"}


@pytest.fixture
def path(folder: Path) -> str:
    return str(folder / "ward.ledger")


@pytest.fixture
def kept(path: str) -> Iterator[Ledger]:
    """Two accounts and three charges, without a witness: the storage may be rewritten."""
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 8)
        ledger.set_budget("ward", 4, analyst="ana")
        for window in ((0, 5), (2, 9), (7, 11)):
            ledger.charge(charge("0.25", window, analyst="ana"), DOUBLING)
        yield ledger


# --- one row ---


def problems(found: Any, due: int) -> list[Problem]:
    return list(replay._row_problems(found, "before", due))


def test_what_is_wrong_with_a_row_is_told_one_by_one() -> None:
    assert problems(row(BUDGET, "before"), 2) == []
    assert problems(row(BUDGET | {"seq": 7}, "before"), 5) == [
        Problem("missing", "event 5 is missing: event 7 comes in its place", 5)
    ]
    assert problems(row(BUDGET, "elsewhere"), 2) == [
        Problem("edited", "event 2 was changed, or what came before it", 2)
    ]
    assert problems(row(BUDGET, "before", text=json.dumps(BUDGET, indent=1)), 2) == [
        Problem("form", "event 2 is not written as this ledger writes", 2)
    ]
    assert problems(row(BUDGET | {"kind": "gift"}, "before"), 2) == [
        Problem("kind", "event 2 is of kind 'gift', which cannot be in its place", 2)
    ]
    assert problems(row(BUDGET, "before", text="{}"), 2) == []  # the replay says so


def test_a_row_is_filed_under_what_its_event_says() -> None:
    filed = row(BUDGET, "before")
    filed.dataset = "other"
    assert problems(filed, 2) == [
        Problem("filed", "event 2 is filed under another dataset than its own", 2)
    ]
    filed.key = None
    assert problems(filed, 2) == [
        Problem("filed", "event 2 is filed under another dataset and key than its own", 2)
    ]
    paid = row(BUDGET | {"kind": "charge"}, "before")
    assert problems(paid, 2) == [
        Problem("filed", "event 2 is filed under another charge than its own", 2)
    ]
    paid.charge = 2  # a charge is filed under its own number
    assert problems(paid, 2) == []


def test_all_that_is_wrong_with_a_row_is_told() -> None:
    body = BUDGET | {"kind": "gift", "seq": 7}
    found = row(body, "before", text=json.dumps(body, indent=1))
    found.analyst = "ana"
    assert [(one.reason, one.event) for one in problems(found, 5)] == [
        ("missing", 5), ("form", 7), ("kind", 7), ("filed", 7),
    ]  # fmt: skip


# --- the chain ---


def test_a_sound_report_is_told_in_full(kept: Ledger) -> None:
    report = kept.verify(kept.head())
    assert report == Report(6, kept.head(), ()) and report.sound


def test_a_file_that_its_database_finds_damaged_is_told(
    kept: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = Statement("SELECT 'row 7 is missing' AS integrity_check")
    monkeypatch.setattr(replay, "_INTEGRITY", says)
    damaged = Problem("storage", "the file is damaged: row 7 is missing")
    assert kept.verify().problems == (damaged,)
    with kept._store.reading() as connection:
        assert replay.verify(connection, None, sqlite=False).sound  # a server looks after its own


def test_terms_that_were_not_accepted_are_told(
    kept: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.accept(Terms("new prior", "secrets"), kept.review("ward", IDENTITY, DOUBLING))
    monkeypatch.setattr(Snapshot, "refuse", lambda *_: None)
    number = kept.charge(charge("0.25", analyst="ana"), DOUBLING).anchor.seq
    message = f"event {number} was charged under terms that were not accepted"
    assert kept.verify().problems == (Problem("terms", message, number),)


def test_an_approval_that_does_not_fit_is_told(kept: Ledger, path: str) -> None:
    wanted = charge("0.25", analyst="ana")
    number = approve(kept, wanted)
    paid = kept.acting("ana").charge(named(wanted, number), DOUBLING).anchor.seq

    def refused(body: dict[str, Any]) -> None:
        if body["kind"] == "approval":
            body["decision"] = "refused"

    rewritten(path, refused)
    message = f"event {paid} names approval {number}, which is no approval of this ledger"
    assert kept.verify().problems == (Problem("approval", message, paid),)


def test_a_second_answer_is_told(kept: Ledger, path: str) -> None:
    one, two = (kept.charge(charge("1/8", analyst="ana"), DOUBLING) for _ in range(2))
    kept.record_answer(one, 1)
    kept.record_answer(two, 2)
    last = kept.head().seq

    def twice(body: dict[str, Any]) -> None:
        if body["seq"] == last:
            body["charge"] = one.anchor.seq

    rewritten(path, twice)
    filed = f"event {last} is filed under another charge than its own"
    message = f"event {last} is not the one answer to a charge before it"
    assert kept.verify().problems == (
        Problem("filed", filed, last),
        Problem("answer", message, last),
    )


def test_an_event_that_cannot_be_read_is_told(kept: Ledger, path: str) -> None:
    tamper(path, "UPDATE takifugu_events SET body = 'x' WHERE seq = 5")
    report = kept.verify()
    assert report.events == 6 and report.problems[:2] == (
        Problem("edited", "event 5 was changed, or what came before it", 5),
        Problem("unreadable", "event 5 cannot be read", 5),
    )
    assert {one.event for one in report.problems[2:]} == {None}  # what the others add up to


def test_an_end_that_is_not_the_head_is_told(kept: Ledger, path: str) -> None:
    head = kept.head()
    tamper(path, "UPDATE takifugu_head SET seq = 9")
    message = (
        "the chain ends at event 6 but the head is event 9: events were cut off or added behind"
        " the ledger's back"
    )
    report = kept.verify(head)
    assert report.head == head and report.problems[0] == Problem("head", message, 9)
    tamper(path, "UPDATE takifugu_head SET seq = 6, hash = 'x'")
    assert kept.verify().problems[0].reason == "head"


def test_another_chain_than_the_one_recorded_is_told(kept: Ledger) -> None:
    message = "event 3 is not the one recorded: this is an old or another chain"
    assert kept.verify(Anchor(3, "0" * 64)).problems == (Problem("anchor", message, 3),)
    for event in kept.history():
        assert kept.verify(Anchor(event.seq, event.hash)).sound
        assert not kept.verify(Anchor(event.seq + 1, event.hash)).sound


# --- totals ---


def test_each_part_of_an_account_that_is_not_what_its_events_say_is_told(
    kept: Ledger, path: str
) -> None:
    tamper(path, "UPDATE takifugu_accounts SET epsilon = '99' WHERE analyst = 'ana'")
    first, *others = kept.verify().problems
    assert first == Problem(
        "budget", "the budget of dataset 'ward', analyst 'ana' is not what its events add up to"
    )
    (second,) = others
    assert (second.reason, second.event) == ("totals", None)
    assert second.message.startswith("the totals are not what the last event left behind")
    tamper(path, "UPDATE takifugu_accounts SET epsilon = '4' WHERE analyst = 'ana'")
    assert kept.verify().sound
    tamper(path, "UPDATE takifugu_accounts SET worst = '0 0 0' WHERE analyst = ''")
    assert kept.verify().problems[0] == Problem(
        "totals", "the totals of dataset 'ward' is not what its events add up to"
    )


def test_totals_that_cannot_be_read_are_told(kept: Ledger, path: str) -> None:
    tamper(path, "UPDATE takifugu_accounts SET worst = 'many'")
    first, second = kept.verify().problems
    assert (first.reason, first.event) == (second.reason, second.event) == ("totals", None)
    assert "'ward'" in first.message and "last event" in second.message


def test_accounts_without_events_and_events_without_accounts_are_told(kept: Ledger) -> None:
    with kept._store.reading() as connection:
        books = replay.replayed(connection)
        assert list(_total_problems(connection, books)) == []
        assert list(_digest_problems(connection, books)) == []
        books.books["town", ""] = books.books["ward", ""]
        del books.books["ward", "ana"]
        assert list(_total_problems(connection, books)) == [
            Problem("account", "the account of dataset 'town' is missing"),
            Problem("account", "the account of dataset 'ward', analyst 'ana' is not in the events"),
        ]
        message = "the last event does not name the totals that the events add up to"
        assert list(_digest_problems(connection, books)) == [Problem("totals", message)]


def test_a_report_of_twenty_problems_names_no_others(path: str) -> None:
    with open_ledger(path, witness=False) as ledger:
        ledger.set_budget("ward", 9)
        for _ in range(24):
            ledger.charge(charge("1/256"), DOUBLING)
        wrong = "UPDATE takifugu_events SET dataset = 'other' WHERE seq BETWEEN 3 AND"
        tamper(path, f"{wrong} 22", "UPDATE takifugu_accounts SET epsilon = '99'")
        report = ledger.verify()
        assert report.events == 26 and report.head == ledger.head()
        assert [one.event for one in report.problems] == list(range(3, 23))
        tamper(path, f"{wrong} 23")
        report = ledger.verify()
    assert report.events == 23 and report.head.seq == 23
    assert report.problems[20:] == (Problem("more", "and more"),)


# --- replays ---


def test_an_event_that_means_nothing_is_named() -> None:
    at = datetime(2020, 1, 1, tzinfo=UTC)
    budget = {"kind": "budget", "dataset": "ward", "analyst": None, "epsilon": "1", "delta": "0"}
    event = chain.Event(7, "budget", at, "hash", budget)
    books = Books()
    replay.take(books, event)
    assert books.books["ward", ""].epsilon == 1
    wrongs: list[dict[str, Any]] = [{"epsilon": "x"}, {"epsilon": "1/0"}, {"epsilon": None}]
    for wrong in (*wrongs, {"delta": []}):
        with raises(LedgerDamaged, reason="unreadable", event=7):
            replay.take(books, replace(event, body=budget | wrong))
    with raises(LedgerDamaged, reason="unreadable", event=7):
        replay.take(books, replace(event, body={"kind": "budget"}))


def test_totals_are_not_rebuilt_from_events_that_say_something_else(
    kept: Ledger, path: str
) -> None:
    def less(body: dict[str, Any]) -> None:
        if body["kind"] == "charge":
            body["loss"]["epsilon"] = "1/8"

    rewritten(path, less)
    with raises(LedgerDamaged, reason="totals") as caught:
        kept.rebuild()
    assert "do not add up" in str(caught.value)
    assert kept.verify().problems[0].reason == "totals"  # they are as they were


def test_nobody_adds_to_a_chain_while_its_totals_are_rebuilt(kept: Ledger) -> None:
    with kept._store.writing() as connection:
        state = transaction_state(connection)
        state.head, state.locked = None, False
        replay.rebuild(connection)
        assert state.locked
