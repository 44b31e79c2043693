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
from takifugu.ledger.events.decisions import AcceptedTerms, Terms
from takifugu.ledger.events.stored_answers import AnsweredCharges
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


@pytest.mark.parametrize(
    ("terms", "details", "again"),
    [
        (NEW, {"file": 1}, False),
        (NEW, {"file": 2}, True),
        (Terms("another", "fewer secrets"), {"file": 1}, True),
        (Terms("new prior", "others"), {"file": 1}, True),
    ],
)
def test_what_is_in_force_already_is_not_accepted_again(
    kept: Ledger, terms: Terms, details: dict[str, Any], again: bool
) -> None:
    kept.enter_policy("ward", NEW, {"file": 1})
    before = kept.head().seq
    kept.enter_policy("ward", terms, details)
    assert kept.head().seq == before + 1 + again
    assert in_force(kept) == (terms, None)


def test_a_policy_beside_a_clock_that_went_back_leaves_the_latest_time(folder: Path) -> None:
    times = iter(NOON + timedelta(hours=h) for h in (0, 5, 2, 3))
    with open_ledger(folder / "a.ledger", clock=lambda: next(times)) as ledger:
        ledger.set_budget("ward", 1)
        ledger.enter_policy("ward", OLD, {})
        ledger.set_budget("ward", 2)
        behind = [event.body.get("clock_behind") for event in ledger.history()]
    assert behind == [None, None, "3:00:00", "3:00:00", "2:00:00"]


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


def test_a_chain_keeps_to_the_terms_that_it_accepts() -> None:
    decided = AcceptedTerms()

    def allows(kind: str, terms: Terms, dataset: str = "ward") -> bool:
        return decided.allows({"kind": kind, "dataset": dataset, **vars(terms)})

    assert allows("charge", OLD) and allows("reuse", NEW)  # nothing was accepted yet
    assert allows("policy", NEW) and allows("charge", OLD)
    assert allows("accepted", NEW)
    assert not allows("charge", OLD) and not allows("reuse", OLD)
    assert allows("charge", NEW) and allows("reuse", NEW)
    assert not allows("charge", Terms(NEW.prior, OLD.secrets))
    assert not allows("reuse", Terms(OLD.prior, NEW.secrets))
    assert allows("policy", OLD) and not allows("charge", OLD)
    assert allows("charge", OLD, "town")
    assert allows("accepted", OLD) and allows("charge", OLD) and not allows("charge", NEW)
    assert decided.allows({"kind": "budget", "dataset": "ward"})


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


def test_charges_of_the_same_query_on_the_same_rows_are_told(kept: Ledger) -> None:
    kept.set_budget("town", 8)
    asked: dict[str, Any] = {"window": (0, 5), "groups": ["fr"]}
    answered(kept, 1, **asked)
    answered(kept, 2, mechanism={"kind": "other"}, **asked)
    for other in (
        asked | {"window": (0, 6)},
        asked | {"groups": ["de"]},
        asked | {"data": "newer"},
        asked | {"declared": "otherwise"},
        asked | {"query": {"name": "other"}},
        asked | {"dataset": "town"},
    ):
        answered(kept, 3, **other)
    kept.charge(charge("0.25", **asked), DOUBLING)  # has no answer
    told = kept.released(charge("1", **asked))
    assert [mechanism for mechanism, _ in told] == [{"kind": "laplace"}, {"kind": "other"}]


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


def test_a_chain_has_one_answer_to_a_charge_before_it() -> None:
    answers = AnsweredCharges()

    def fits(kind: str, **body: int) -> bool:
        return answers.fits({"kind": kind, **body})

    assert not fits("answer", charge=3) and fits("charge", seq=3)
    assert not fits("answer", charge=3)  # one came too early
    assert fits("charge", seq=4) and fits("charge", seq=5) and fits("charge", seq=6)
    assert fits("answer", charge=4) and not fits("answer", charge=4)
    assert not fits("abandoned", charge=4)
    assert fits("abandoned", charge=5) and not fits("answer", charge=5)
    assert not fits("abandoned", charge=5) and fits("answer", charge=6)
    assert fits("budget", seq=9) and not fits("answer", charge=9)
    assert fits("reuse", seq=10, charge=4)
