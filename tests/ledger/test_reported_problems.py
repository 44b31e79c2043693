"""Every problem that a verification finds, in full: its kind, its words and the event."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import Anchor, Ledger, open_ledger
from takifugu.ledger.events.replay import Problem
from tests.contracts.ledger import tamper
from tests.contracts.ledger_people import approve, named, rewritten
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


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


# --- the chain ---


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
