"""Every problem that a verification finds, in full: its kind, its words and the event."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerDamaged
from takifugu.ledger import Anchor, Ledger, open_ledger
from takifugu.ledger.events.replay import Problem
from tests.contracts.ledger import tamper
from tests.contracts.ledger_people import rewritten
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


def test_an_event_that_cannot_be_read_is_told(kept: Ledger, path: str) -> None:
    tamper(path, "UPDATE takifugu_events SET body = 'x' WHERE seq = 5")
    report = kept.verify()
    assert report.events == 6 and report.problems[:2] == (
        Problem("edited", "event 5 was changed, or what came before it", 5),
        Problem("unreadable", "event 5 cannot be read", 5),
    )
    assert {one.event for one in report.problems[2:]} == {None}  # what the others add up to


def test_another_chain_than_the_one_recorded_is_told(kept: Ledger) -> None:
    message = "event 3 is not the one recorded: this is an old or another chain"
    assert kept.verify(Anchor(3, "0" * 64)).problems == (Problem("anchor", message, 3),)
    for event in kept.history():
        assert kept.verify(Anchor(event.seq, event.hash)).sound
        assert not kept.verify(Anchor(event.seq + 1, event.hash)).sound


# --- totals ---


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
