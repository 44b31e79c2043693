"""A charge in every part: what decides it, what is written of it, and what its receipt says."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.losses import Pure, Total
from takifugu.errors import BudgetExceeded, InvalidCharge, NoBudget, UnsoundRequest
from takifugu.ledger import Anchor, Charge, Ledger, Receipt, Terms, accept_loss, open_ledger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.stored_answers import EarlierCharge
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import CELLS, DOUBLING, IDENTITY, KNOWN, charge, count
from tests.ledger.older_copies import copied_ledger, set_back
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", actor="olga", witness=False) as ledger:
        yield ledger


def known(epsilon: str, label: str, **others: Any) -> Charge:
    """A noisy count of one label, by "ana", under the translation that knows places."""
    return charge(count(epsilon, label), translation="places", **({"analyst": "ana"} | others))


# --- what decides ---


def test_what_one_budget_admits_is_still_asked_of_the_other(kept: Ledger) -> None:
    kept.set_budget("ward", 100)
    kept.set_budget("ward", 2, analyst="ana")
    head = kept.head()
    with raises(BudgetExceeded, analyst="ana", needs=1, left=Fraction(1, 2)):
        kept.charge(known("1", "home"), KNOWN)
    kept.set_budget("ward", 2)
    kept.set_budget("ward", 100, analyst="ana")
    with raises(BudgetExceeded, analyst=None, needs=1, left=Fraction(1, 2)):
        kept.charge(known("1", "home"), KNOWN)
    assert kept.head().seq == head.seq + 2
    kept.charge(known("0.5", "home"), KNOWN)


@pytest.mark.parametrize("query", [{"name": "stays"}, {"of": "place"}, {"name": ""}])
def test_a_refusal_names_the_query_and_of_equal_budgets_the_analysts_own(
    kept: Ledger, query: dict[str, str]
) -> None:
    kept.set_budget("ward", 2)
    kept.set_budget("ward", 2, analyst="ana")
    kept.charge(charge("0.25", analyst="ana"), DOUBLING)
    wanted = charge("1.5", analyst="ana", query=query)
    with raises(
        BudgetExceeded,
        query=query.get("name") or wanted.body()["query_fingerprint"][:12],
        dataset="ward",
        analyst="ana",
        currency="epsilon",
        needs=Fraction(3, 2),
        left=Fraction(3, 4),
    ):
        kept.charge(wanted, DOUBLING)


def test_a_dataset_that_only_has_groups_has_no_budget(kept: Ledger) -> None:
    kept.set_partition("ward", ("country",))
    head = kept.head()
    for ask in (kept.charge, kept.quote):
        with raises(NoBudget, dataset="ward"):
            ask(charge("0.25"), DOUBLING)
    with raises(NoBudget, dataset="ward"):
        kept.remaining("ward", DOUBLING)
    assert kept.head() == head
    assert kept.spent("ward", DOUBLING) == 0.0  # there is an account, and nothing in it
    assert kept.begin_budget("ward", "1/2", delta="1/9") == (Fraction(1, 2), Fraction(1, 9))
    assert kept.begin_budget("ward", 9) == (Fraction(1, 2), Fraction(1, 9))
    kept.charge(charge("0.25"), DOUBLING)


def test_a_translation_must_be_the_one_that_the_charge_names(kept: Ledger) -> None:
    kept.set_budget("ward", 2)
    kept.record_answer(kept.charge(charge("0.25", analyst="ana"), DOUBLING), 1)
    head, other = kept.head(), charge("0.25", analyst="bob", translation="another one")
    for ask in (kept.charge, kept.quote, kept.reuse):
        with raises(
            UnsoundRequest, field="translation", given="doubling", needed="another one"
        ) as refused:
            ask(other, DOUBLING)
        assert "names translation another one but doubling was given" in str(refused.value)
    assert kept.head() == head
    kept.charge(other, IDENTITY)  # which has no fingerprint


# --- what is written ---


def test_every_event_is_written_under_the_lock(
    kept: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without a witness, which would lock the chain to compare it."""
    written, append = [], chain.append

    def locked(connection: Any, kind: str, *rest: Any, **how: Any) -> chain.Event:
        assert connection.state.locked, kind
        written.append(kind)
        return append(connection, kind, *rest, **how)

    monkeypatch.setattr(chain, "append", locked)
    terms = Terms("prior", "secrets")
    kept.set_budget("ward", 8)
    kept.enter_policy("ward", terms, {})
    first = charge("0.25", analyst="ana", sources=("path k:1",))
    kept.record_answer(kept.charge(first, DOUBLING), 1)
    kept.reuse(charge("0.25", analyst="bob"), DOUBLING)
    kept.abandon(kept.charge(charge("0.125"), DOUBLING, resume=True))
    kept.accept(terms, kept.review("ward", IDENTITY, DOUBLING))
    kept.accept_cells("ward", CELLS)
    assert written == [
        *("budget", "policy", "accepted", "source", "charge", "answer", "reuse"),
        *("charge", "abandoned", "accepted", "cells"),
    ]
    with kept.decision_on("question", "request"), kept._store.unguarded() as connection:
        assert not connection.state.locked


def test_the_names_of_cells_are_written_with_the_first_charge_alone(kept: Ledger) -> None:
    kept.set_budget("ward", 8)
    for _ in range(2):
        kept.charge(charge("0.25", sources=("path k:1",)), DOUBLING, resume=True)
    kept.charge(charge("0.25"), DOUBLING)
    one, two, three = kept.history(kind="charge")
    assert one.body["naming"] == CELLS.parts
    assert "naming" not in two.body and "naming" not in three.body
    assert [body.get("resumable") for body in (one.body, two.body, three.body)] == [True] * 2 + [
        None
    ]
    assert len({event.body["attempt"] for event in (one, two, three)}) == 3
    (source,) = kept.history(kind="source")
    assert source.seq == one.seq - 1 and source.body["actor"] == "olga"
    assert kept.verify().sound


def test_a_receipt_says_what_was_written(kept: Ledger) -> None:
    kept.set_budget("ward", 8)
    wanted = charge("0.25", analyst="ana", key="once")
    assert kept.earlier(wanted) is None
    receipt = kept.charge(wanted, DOUBLING, resume=True)
    (event,) = kept.history(kind="charge")
    own = Anchor(event.seq, event.hash)
    assert receipt == Receipt(own, "once", "ward", "ana", event.at, True, True)
    assert kept.earlier(wanted) == EarlierCharge(receipt, None)
    assert kept.charge(wanted, DOUBLING) == replace(receipt, may_release=False, resumable=False)
    answer = kept.record_answer(receipt, [7])
    assert answer.value == [7] and answer.paid == own and answer.at == event.at
    assert kept.earlier(wanted) == EarlierCharge(replace(receipt, may_release=False), answer)
    plain = kept.charge(charge("0.5", analyst="ana", key="plain"), DOUBLING)
    assert plain.may_release and not plain.resumable


def test_how_a_query_was_answered_before_is_told(kept: Ledger) -> None:
    kept.set_budget("ward", 8)
    given = [("0.25", "laplace", "ana"), ("0.5", "geometric", None), ("0.125", "laplace", "bob")]
    for epsilon, kind, analyst in given:
        wanted = charge(epsilon, mechanism={"kind": kind}, analyst=analyst)
        receipt = kept.charge(wanted, DOUBLING)
        if analyst != "bob":
            kept.record_answer(receipt, 1)
    for other in ({"data": "newer"}, {"query": {"name": "other"}}, {"window": (0, 5)}):
        elsewhere = charge("1/16", **other)
        kept.record_answer(kept.charge(elsewhere, DOUBLING), 1)
    assert kept.released(charge("0.75")) == (
        ({"kind": "laplace"}, Pure("0.25")),
        ({"kind": "geometric"}, Pure("0.5")),
    )


# --- what would happen ---


def test_nobody_elses_answer_is_quoted_as_ones_own(kept: Ledger) -> None:
    kept.set_budget("ward", 8)
    kept.record_answer(kept.charge(charge("0.25", analyst="ana"), DOUBLING), "hers")
    for analyst, own in (("ana", True), ("bob", False), (None, True)):
        found = kept.quote(charge("0.25", analyst=analyst), DOUBLING)
        assert (found.answer is not None, found.shared) == (own, True)
        assert (found.stored, found.reuse) == (True, False)  # nobody has a budget of their own
        other = kept.quote(charge("0.5", analyst=analyst), DOUBLING)
        assert (other.answer, other.shared, other.stored) == (None, False, False)


def test_a_rehearsal_counts_what_was_lost_and_only_its_own_datasets(folder: Path) -> None:
    path = copied_ledger(folder)
    with open_ledger(path) as ledger:
        ledger.set_budget("annex", 4)
        ledger.charge(charge("0.5", dataset="annex"), DOUBLING)
    shutil.copy(path, path.with_name("copy"))
    set_back(path)
    accept_loss(path, translations={"ward": DOUBLING, "annex": DOUBLING})
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 3)
        ledger.set_budget("annex", 6)
        tried: list[tuple[Charge, LossTranslation]] = [
            (charge("0.5"), DOUBLING),
            (charge("0.125"), DOUBLING),
            (charge("0.75", dataset="annex"), DOUBLING),
        ]
        found = ledger.rehearse(tried)
        assert [one.charge for one in found] == [one for one, _ in tried]
        assert [one.admitted for one in found] == [True, False, True]
        assert [one.spent for one in found] == pytest.approx([3.0, 3.0, 5.5])
        alone = ledger.rehearse(tried[2:])
        assert [(one.admitted, one.spent) for one in alone] == [(True, found[2].spent)]


def test_a_window_in_another_unit_is_refused_to_analysts_too(kept: Ledger) -> None:
    from datetime import date

    from takifugu.ledger import Groups, Window

    kept.set_budget("ward", 8)
    kept.set_partition("ward", ("country",))
    kept.charge(charge("0.25", (0, 5), ["fr"], analyst="ana"), DOUBLING)
    days = Window(date(2026, 1, 1), None)
    for analyst in (None, "ana", "bob"):
        with raises(InvalidCharge, field="window", reason="unit"):
            kept.lost("ward", analyst=analyst, window=days)
    finer = Groups(["age", "country"], [(30, "fr"), (40, "fr")])
    other = Groups(["age", "country"], [(30, "de")])
    for groups, lost in ((finer, "1/4"), (other, "0")):
        for analyst in (None, "ana"):
            found = kept.lost("ward", analyst=analyst, groups=groups)
            assert found == (Total(Fraction(lost)),)
