"""A charge in every part: what decides it, what is written of it, and what its receipt says."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import BudgetExceeded, InvalidCharge, NoBudget, UnsoundRequest
from takifugu.ledger import Anchor, Charge, Ledger, Receipt, Terms, accept_loss, open_ledger
from takifugu.ledger.accounts.limits import Limits
from takifugu.ledger.accounts.standings import Payer
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.ledger import Refusal, Untranslated, enter_charge
from takifugu.ledger.resumed_charges import EarlierCharge
from takifugu.ledger.storage.statement import transaction_state
from takifugu.losses import Pure, Total
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import CELLS, DOUBLING, IDENTITY, KNOWN, charge, count
from tests.ledger.older_copies import copied_ledger, set_back
from tests.raising import raises

pytestmark = pytest.mark.nightly

NOW = datetime(2027, 1, 1, tzinfo=UTC)
NO_DELTA = Fraction(0)


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", actor="olga", witness=False) as ledger:
        yield ledger


def known(epsilon: str, label: str, **others: Any) -> Charge:
    """A noisy count of one label, by "ana", under the translation that knows places."""
    return charge(count(epsilon, label), translation="places", **({"analyst": "ana"} | others))


def entered(ledger: Ledger, wanted: Charge, limits: Limits, **how: Any) -> Any:
    """What entering a charge says, under the lock."""
    body = wanted.body() | {"actor": "olga"}
    with ledger._store.writing() as connection:
        last = chain.head(connection, lock=True)
        return enter_charge(
            *(connection, last, "charge", body, KNOWN, limits, NOW, wanted),
            **how,
        )


# --- what decides ---


def test_what_must_be_translated_first_is_named_and_nothing_else(kept: Ledger) -> None:
    kept.set_budget("ward", 100, delta="1/50")
    kept.set_budget("ward", 2, analyst="ana")
    wanted, limits, head = known("0.4", "home"), Limits(), kept.head()
    both = ((Fraction(100), Fraction(1, 50)), (Fraction(2), NO_DELTA))
    assert entered(kept, wanted, limits) == Untranslated(both)
    limits.limit(KNOWN, *both[0])
    assert entered(kept, wanted, limits) == Untranslated(both[1:])
    own = limits.limit(KNOWN, *both[1])  # the other one admits the charge by its ε already
    totals = ((own, (Total().plus(count("0.4", "home")),)),)
    assert entered(kept, wanted, limits) == Untranslated(totals=totals)
    assert kept.head() == head
    event = entered(kept, wanted, limits, wait=True)
    assert (event.kind, event.seq, event.at) == ("charge", head.seq + 1, NOW)


def test_a_budget_that_surely_refuses_decides_before_any_translation(kept: Ledger) -> None:
    kept.set_budget("ward", 3)
    kept.set_budget("ward", 2, analyst="ana")
    wanted, limits = known("1", "home"), Limits()
    for size in (3, 2):
        limits.limit(KNOWN, Fraction(size), NO_DELTA)
    assert isinstance(entered(kept, wanted, limits), Untranslated)
    limits.limit(KNOWN, Fraction(2), NO_DELTA).translate((Total().plus(count("1", "home")),))
    found = entered(kept, wanted, limits)
    assert isinstance(found, Refusal)
    assert [(one.analyst, one.limit.epsilon) for one in found.standings] == [
        (None, Fraction(3)),
        ("ana", Fraction(2)),
    ]
    assert found.error(wanted.body()).left == Fraction(1, 2)


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

    def locked(connection: Any, last: chain.Head, kind: str, *rest: Any, **how: Any) -> chain.Event:
        assert transaction_state(connection).locked, kind
        written.append(kind)
        return append(connection, last, kind, *rest, **how)

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
        assert not transaction_state(connection).locked


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


def test_what_is_refused_is_not_taken_for_lost_on_the_way(kept: Ledger) -> None:
    kept.set_budget("ward", 1)
    with pytest.raises(BudgetExceeded):
        kept.charge(charge(5), DOUBLING)
    assert not kept._lost
    with raises(NoBudget):
        kept.charge(charge(5, dataset="other"), DOUBLING)
    assert len(kept._lost) == 1


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


def test_a_quote_has_the_snapshot_the_answer_and_each_account_as_it_stands(kept: Ledger) -> None:
    kept.set_budget("ward", 8, delta="1/50")
    kept.set_budget("ward", 4, analyst="ana", delta="1/60")
    kept.set_budget("ward", 2, analyst="bob")
    kept.charge(charge("0.5", (0, 5), ["fr"], analyst="ana"), DOUBLING)
    kept.charge(charge("0.25", (3, 9), analyst="bob"), DOUBLING)
    paid = kept.charge(charge("0.125", (3, 9), ["de"], analyst="ana"), DOUBLING)
    answer = kept.record_answer(paid, "seen")
    wanted = charge("0.125", (3, 9), ["de"], analyst="ana")
    found = kept.quote(wanted, DOUBLING)
    assert found.snapshot == kept.snapshot("ward", analyst="ana", cells=CELLS)
    assert (found.answer, found.shared, found.stored, found.reuse) == (answer, True, True, False)
    assert found.last is not None and found.last.seq == paid.anchor.seq

    def total(size: str) -> tuple[Total, ...]:
        return (Total(Fraction(size)),)

    assert [one.payer for one in found.standings] == [
        Payer(None, Fraction(8), Fraction(1, 50), total("3/4"), total("3/8")),
        Payer("ana", Fraction(4), Fraction(1, 60), total("1/2"), total("1/8")),
    ]
    for one in found.standings:
        assert (one.limit.epsilon, one.limit.delta) == (one.epsilon, one.delta)
        assert one.limit.translation is DOUBLING
    same: dict[str, Any] = {"analyst": "ana", "window": wanted.window, "groups": wanted.groups}
    standings = kept.standings("ward", DOUBLING, **same)
    assert [one.payer for one in standings] == [one.payer for one in found.standings]
    assert [one.room(Pure(1)) for one in standings] == [Fraction(29, 8), Fraction(15, 8)]
    assert [one.spent for one in standings] == [1.5, 1.0]
    assert [one.spent_after(Pure("0.5")) for one in standings] == [1.75, 1.25]
    assert [one.admits(Pure(2)) for one in standings] == [True, False]


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
