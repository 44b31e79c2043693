"""Terms in force, approvals and answers: each decision whole, and each rule at its edge."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidCharge, LedgerConflict, LedgerDamaged
from takifugu.ledger import (
    Anchor,
    Answer,
    Ledger,
    Receipt,
    open_ledger,
    restore_ledger,
)
from takifugu.ledger.events import decisions
from takifugu.ledger.events.decisions import Terms
from takifugu.ledger.witnesses.lost_history import LossTerms
from tests.contracts.ledger_people import approve
from tests.ledger.charges import DOUBLING, IDENTITY, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

OLD, NEW = Terms("prior", "secrets"), Terms("new prior", "fewer secrets")
NOON = datetime(2027, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    hours = count()
    clock = lambda: NOON + timedelta(hours=next(hours))  # noqa: E731
    with open_ledger(folder / "ward.ledger", actor="olga", clock=clock) as ledger:
        ledger.set_budget("ward", 8, delta="1/16")
        yield ledger


# --- terms ---


def in_force(ledger: Ledger) -> tuple[Terms | None, Any]:
    with ledger._store.reading() as connection:
        return decisions.in_force(connection, "ward")


def test_terms_and_rules_are_those_of_the_last_acceptance_then_of_the_last_charge(
    kept: Ledger,
) -> None:
    assert in_force(kept) == (None, None)
    kept.charge(charge("0.25", rules={"about": "place"}), DOUBLING)
    assert in_force(kept) == (OLD, {"about": "place"})
    kept.accept(NEW, kept.review("ward", IDENTITY, DOUBLING))
    assert in_force(kept) == (NEW, {"about": "place"})  # an acceptance without rules
    kept.accept(NEW, kept.review("ward", IDENTITY), rules={"about": "person"})
    assert in_force(kept) == (NEW, {"about": "person"})
    kept.accept(OLD, kept.review("ward", IDENTITY), rules="some words")
    assert in_force(kept) == (OLD, None)


def test_a_policy_after_a_loss_of_history_is_accepted_at_an_infinite_loss(folder: Path) -> None:
    """What the lost charges were made under is not known, and no prior translates them."""
    path, copy = folder / "a.ledger", folder / "copy"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 1)
        ledger.backup(copy)
        ledger.charge(charge("0.25"), DOUBLING)
    path.unlink()
    restore_ledger(copy, path, lossy=True, terms=LossTerms({"ward": DOUBLING}))
    with open_ledger(path) as ledger:
        ledger.enter_policy("ward", OLD, {})
        accepted = list(ledger.history("ward"))[-1].body
    told = [accepted[name] for name in ("kind", "budget", "spent_before", "spent_after")]
    assert told == ["accepted", "1", None, "infinity"]


# --- approvals ---


def test_the_acceptance_that_an_approval_was_given_under_is_written(kept: Ledger) -> None:
    wanted = charge("0.25", analyst="ana")
    kept.set_budget("town", 1)
    kept.enter_policy("town", NEW, {})
    first = kept.event(approve(kept, wanted))
    assert first is not None and first.body["under"] is None
    accepted = kept.accept(OLD, kept.review("ward", IDENTITY))
    second = kept.event(approve(kept, wanted))
    assert second is not None and second.body["under"] == accepted.seq


# --- answers ---


def answered(ledger: Ledger, value: Any, **others: Any) -> tuple[Receipt, Answer]:
    receipt = ledger.charge(charge("0.25", **others), DOUBLING)
    return receipt, ledger.record_answer(receipt, value)


def test_an_answer_is_stored_only_under_a_receipt_of_its_charge(kept: Ledger) -> None:
    receipt = kept.charge(charge("0.25"), DOUBLING, resume=True)
    budget = kept.event(2)
    assert budget is not None
    head = kept.head()
    for wrong, event in (
        (replace(receipt, anchor=Anchor(receipt.anchor.seq, "0" * 64)), None),
        (replace(receipt, anchor=Anchor(2, budget.hash)), None),
        (replace(receipt, may_release=False), receipt.anchor.seq),
    ):
        for attempt in (lambda one: kept.record_answer(one, 1), kept.abandon):
            with raises(LedgerConflict, reason="receipt", event=event):
                attempt(wrong)
    with raises(LedgerDamaged, reason="missing", event=99):
        kept.record_answer(replace(receipt, anchor=Anchor(99, "0" * 64)), 1)
    with raises(InvalidCharge, field="answer", reason="infinite"):
        kept.record_answer(receipt, float("nan"))
    assert kept.head() == head


def test_a_second_answer_under_the_same_receipt_is_the_first_or_refused(kept: Ledger) -> None:
    receipt, first = answered(kept, [1, 2])
    assert kept.record_answer(receipt, [1, 2]) == first
    with raises(LedgerConflict, reason="answer", event=receipt.anchor.seq):
        kept.record_answer(receipt, [2, 1])
    resumed = kept.charge(charge("0.125"), DOUBLING, resume=True)
    stored = kept.record_answer(resumed, "one")
    assert kept.record_answer(resumed, "two") == stored and stored.value == "one"
    last = kept.charge(charge("1/16"), DOUBLING, resume=True)
    kept.abandon(last)
    gone = list(kept.history())[-1]
    own = {name: gone.body[name] for name in ("v", "seq", "at", "totals")}
    assert gone.body == own | {
        "kind": "abandoned",
        "charge": last.anchor.seq,
        "dataset": "ward",
        "analyst": None,
        "actor": "olga",
    }
    assert gone.at == last.at
    with raises(LedgerConflict, reason="abandoned", event=last.anchor.seq):
        kept.record_answer(last, 1)
