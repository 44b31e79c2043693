"""What owners decide is in the chain, and charges keep to it: terms in force, and who may query."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import (
    BudgetExceeded,
    InvalidCharge,
    LedgerConflict,
    NotAccepted,
    UnknownAnalyst,
)
from takifugu.ledger import Ledger, Snapshot, Terms
from takifugu.ledger.charging import similar_names
from takifugu.ledger.events.decisions import Review, decimal_up, misfit
from takifugu.ledger.frontier import ZERO
from tests.contracts.ledger import tamper
from tests.ledger.charges import DOUBLING, IDENTITY, charge
from tests.raising import raises

Opener = Callable[..., Ledger]
OLD, NEW = Terms("prior", "secrets"), Terms("new prior", "secrets")


def accept(ledger: Ledger, terms: Terms, dataset: str = "ward") -> None:
    ledger.accept(terms, ledger.review(dataset, IDENTITY, DOUBLING))


# --- terms ---


def test_a_charge_under_another_prior_or_other_secrets_is_refused(ledger: Ledger) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    head = ledger.head()
    for other, changed in (
        (Terms("new prior", "secrets"), ("prior",)),
        (Terms("prior", "fewer"), ("secrets",)),
        (Terms("x", "y"), ("prior", "secrets")),
    ):
        with raises(NotAccepted, dataset="ward", changed=changed):
            ledger.charge(charge("0.25", prior=other.prior, secrets=other.secrets), DOUBLING)
        with raises(NotAccepted, dataset="ward", changed=changed):
            ledger.snapshot("ward").refuse(other, None)
    assert ledger.head() == head and ledger.snapshot("ward").terms == OLD


def test_an_accepted_prior_is_charged_under_and_the_old_one_no_more(ledger: Ledger) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    seen = ledger.review("ward", IDENTITY, DOUBLING)
    assert seen.old == OLD and seen.epsilon == 2
    assert (seen.before, seen.after) == (0.5, 0.25)
    event = ledger.accept(NEW, seen, uncertainty="0.1")
    assert event.kind == "accepted" and event.body["actor"]
    recorded = {
        name: event.body[name] for name in ("prior", "secrets", "spent_before", "spent_after")
    }
    assert recorded == {
        "prior": "new prior", "secrets": "secrets", "spent_before": "0.5", "spent_after": "0.25",
    }  # fmt: skip
    assert event.body["before"] == {"prior": "prior", "secrets": "secrets"}
    assert event.body["details"] == {"uncertainty": "0.1"} and event.body["budget"] == "2"
    with pytest.raises(NotAccepted):
        ledger.charge(charge("0.25"), DOUBLING)
    ledger.charge(charge("0.25", prior="new prior"), DOUBLING)
    accept(ledger, OLD)  # reverted
    with pytest.raises(NotAccepted):
        ledger.charge(charge("0.25", prior="new prior"), DOUBLING)
    ledger.charge(charge("0.25"), DOUBLING)
    assert ledger.verify().sound
    ledger.rebuild()
    assert ledger.verify().sound and ledger.snapshot("ward").terms == OLD


def test_each_dataset_has_its_own_terms(ledger: Ledger) -> None:
    ledger.set_budget("town", 2)
    ledger.charge(charge("0.25"), DOUBLING)
    ledger.charge(charge("0.25", dataset="town", prior="of the town"), DOUBLING)
    accept(ledger, NEW, "town")
    ledger.charge(charge("0.25"), DOUBLING)
    ledger.charge(charge("0.25", dataset="town", prior="new prior"), DOUBLING)
    assert ledger.snapshot("ward").terms == OLD and ledger.snapshot("nowhere").terms is None


def test_a_policy_is_in_force_at_once_only_before_the_first_charge(ledger: Ledger) -> None:
    first = ledger.enter_policy("ward", OLD, {"how": "fitted"})
    assert first.kind == "policy" and ledger.snapshot("ward").terms == OLD
    count = ledger.head().seq
    ledger.enter_policy(
        "ward", OLD, {"how": "fitted"}
    )  # the same again: recorded, not accepted again
    assert ledger.head().seq == count + 1
    ledger.enter_policy("ward", NEW, {"how": "fitted"})  # replaced before anything was charged
    with pytest.raises(NotAccepted):
        ledger.charge(charge("0.25"), DOUBLING)
    ledger.charge(charge("0.25", prior="new prior"), DOUBLING)
    ledger.enter_policy("ward", OLD, {"how": "fitted"})
    ledger.enter_policy("ward", Terms("a third", "secrets"), {"how": "fitted"})
    assert ledger.snapshot("ward").terms == NEW
    kinds = [event.kind for event in ledger.history("ward")]
    assert kinds == ["budget", "policy", "accepted", "policy", "policy", "accepted", "charge",
                     "policy", "policy"]  # fmt: skip
    assert ledger.verify().sound


def test_a_policy_of_a_dataset_without_a_budget_is_told_too(ledger: Ledger) -> None:
    ledger.enter_policy("town", OLD, {})
    seen = ledger.review("town", IDENTITY)
    assert (seen.epsilon, seen.before, seen.after, seen.within) == (None, 0, 0, True)
    ledger.accept(NEW, seen)
    assert ledger.snapshot("town").terms == NEW and ledger.verify().sound


def test_a_ledger_of_earlier_versions_goes_by_its_last_charge(
    ledger: Ledger, url: str, opened: Opener
) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    ledger.close()
    tamper(url, "DROP INDEX takifugu_events_of", "DELETE FROM takifugu_migrations WHERE place > 2")
    again = opened(url)
    assert again.snapshot("ward").terms == OLD and not list(again.history("ward", kind="accepted"))
    with pytest.raises(NotAccepted):
        again.charge(charge("0.25", prior="new prior"), DOUBLING)


def test_a_charge_that_was_not_accepted_is_found_by_verify(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    accept(ledger, NEW)
    with monkeypatch.context() as patch:
        patch.setattr(Snapshot, "refuse", lambda *_: None)
        ledger.charge(charge("0.25"), DOUBLING)
    (problem,) = ledger.verify().problems
    assert (problem.reason, problem.event) == ("terms", ledger.head().seq)


def test_another_analysts_answer_is_not_given_under_other_terms(ledger: Ledger) -> None:
    ledger.set_budget("ward", 1, analyst="ana")
    ledger.set_budget("ward", 1, analyst="bob")
    ledger.record_answer(ledger.charge(charge("0.25", analyst="ana"), DOUBLING), 7)
    with pytest.raises(NotAccepted):
        ledger.reuse(charge("0.25", analyst="bob", prior="new prior"), DOUBLING)


@given(value=st.floats(0, 1e12))
def test_what_is_written_of_a_loss_is_not_below_it(value: float) -> None:
    text = decimal_up(value)
    assert text is not None
    assert Fraction(value) <= Fraction(text) < Fraction(value) + Fraction(1, 10**6)


@pytest.mark.parametrize("meanwhile", ["charged", "budget", "delta", "accepted", "nothing"])
def test_what_changed_since_it_was_seen_is_not_accepted(ledger: Ledger, meanwhile: str) -> None:
    ledger.charge(charge("0.25"), DOUBLING)
    seen = ledger.review("ward", IDENTITY, DOUBLING)
    match meanwhile:
        case "charged":
            ledger.charge(charge("0.25"), DOUBLING)
        case "budget":
            ledger.set_budget("ward", 3)
        case "delta":
            ledger.set_budget("ward", 2, delta="1e-6")
        case "accepted":
            ledger.accept(NEW, seen)
    if meanwhile == "nothing":
        ledger.accept(NEW, seen)
        return
    head = ledger.head()
    with raises(LedgerConflict, reason="review", dataset="ward"):
        ledger.accept(NEW, seen)
    assert ledger.head() == head


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (0.0, "0"),
        (0.5, "0.5"),
        (1e-9, "0.000001"),
        (math.nextafter(0.5, 1), "0.500001"),
        (math.inf, "infinity"),
        (math.nan, "infinity"),
        (-1.0, "infinity"),
        (100.0, "100"),
    ],
)
def test_a_loss_is_written_in_millionths_rounded_up(value: float | None, text: str | None) -> None:
    assert decimal_up(value) == text


@pytest.mark.parametrize(
    ("epsilon", "after", "within"),
    [
        ("1", 0.5, True),
        ("1", 1.0, True),
        ("1", math.nextafter(1.0, 2.0), False),
        ("1", math.inf, False),
        ("0", 0.0, True),
        (None, 0.0, True),
        (None, 0.5, False),
        (None, math.inf, False),
    ],
)
def test_a_review_is_within_a_budget_that_is_not_below_the_loss(
    epsilon: str | None, after: float, within: bool
) -> None:
    budget = None if epsilon is None else Fraction(epsilon)
    review = Review("ward", None, budget, Fraction(0), (ZERO,), None, after)
    assert review.within is within


# --- analysts ---

STRANGERS = ["Bob", "bob ", " bob", "bоb", "ｂｏｂ", "bo\u200bb", "rob", "eve", None]


@pytest.mark.parametrize("who", STRANGERS)
def test_where_analysts_have_budgets_nobody_else_may_ask(ledger: Ledger, who: str | None) -> None:
    ledger.set_budget("ward", 1, analyst="bob")
    ledger.record_answer(ledger.charge(charge("0.25", analyst="bob"), DOUBLING), 7)
    head = ledger.head()
    for query in (
        lambda: ledger.charge(charge("0.25", analyst=who), DOUBLING),
        lambda: ledger.reuse(charge("0.25", analyst=who), DOUBLING),
        lambda: ledger.lookup(charge("0.25", analyst=who)),
        lambda: ledger.snapshot("ward", analyst=who).refuse(OLD, None),
    ):
        with raises(UnknownAnalyst, dataset="ward", analyst=who, known=("bob",)) as refused:
            query()
        assert "\n" not in str(refused.value)
    assert ledger.head() == head
    ledger.charge(charge("0.1", analyst="bob"), DOUBLING)


def test_budgets_of_analysts_are_of_one_dataset(ledger: Ledger) -> None:
    ledger.set_budget("town", 2)
    ledger.set_budget("town", 1, analyst="bob")
    ledger.charge(charge("0.25"), DOUBLING)
    ledger.charge(charge("0.25", analyst="eve"), DOUBLING)
    with pytest.raises(UnknownAnalyst):
        ledger.charge(charge("0.25", dataset="town"), DOUBLING)


def test_an_analyst_who_asked_before_there_were_budgets_needs_one(ledger: Ledger) -> None:
    ledger.charge(charge("0.1", analyst="eve"), DOUBLING)
    ledger.set_budget("ward", 1, analyst="bob")
    with pytest.raises(UnknownAnalyst):
        ledger.charge(charge("0.1", analyst="eve"), DOUBLING)
    ledger.set_budget("ward", "0.3", analyst="eve")
    with pytest.raises(BudgetExceeded):  # what she learnt before counts
        ledger.charge(charge("0.1", analyst="eve"), DOUBLING)


@pytest.mark.parametrize("name", ["Bob", "bob ", "b ob", "ｂｏｂ", "bo\u200bb", "\tbob"])
def test_two_spellings_do_not_get_two_budgets(ledger: Ledger, name: str) -> None:
    ledger.set_budget("ward", 1, analyst="bob")
    head = ledger.head()
    with raises(InvalidCharge, field="analyst"):
        ledger.set_budget("ward", 1, analyst=name)
    assert ledger.head() == head
    ledger.set_budget("ward", 2, analyst="bob")


def test_who_was_meant_is_guessed_and_many_names_are_cut_short(ledger: Ledger) -> None:
    names = ["ana", "bob"]
    assert similar_names("Bob", names) == ("bob",) and similar_names("zzz", names) == ()
    for place in range(30):
        ledger.set_budget("ward", 1, analyst=f"analyst-{place:02}")
    with raises(UnknownAnalyst, similar=()) as refused:
        ledger.charge(charge("0.1"), DOUBLING)
    assert len(refused.value.known) == 30 and len(str(refused.value)) < 300


@pytest.mark.parametrize(
    ("decides", "asks", "reason"),
    [
        ("olga", "bob", None),
        ("ANA", "bob", "person"),
        ("Bob", "bob", "person"),
        ("olga", None, None),
    ],
)
def test_an_approval_is_by_somebody_else_than_who_asks_and_who_is_asked_for(
    decides: str, asks: str | None, reason: str | None
) -> None:
    about = {"dataset": "ward", "analyst": "ana", "question": "q"}
    approval = about | {"decision": "approved", "actor": decides, "under": 4}
    taken = about | {"kind": "charge", "actor": asks, "approval": 5}
    assert misfit(approval, taken, 4) == reason
    assert misfit(None, taken, 4) == "missing"
