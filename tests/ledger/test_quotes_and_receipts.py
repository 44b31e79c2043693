"""A charge in every part: what decides it, what is written of it, and what its receipt says."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.losses import Pure
from takifugu.ledger import Anchor, Charge, Ledger, Receipt, Terms, accept_loss, open_ledger
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.stored_answers import EarlierCharge
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import CELLS, DOUBLING, IDENTITY, charge
from tests.ledger.older_copies import copied_ledger, set_back

pytestmark = pytest.mark.nightly


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    with open_ledger(folder / "ward.ledger", actor="olga", witness=False) as ledger:
        yield ledger


# --- what is written ---


def test_every_event_is_written_under_the_lock(
    kept: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without a witness, which would lock the chain to compare it."""
    written, append = [], chain.append

    def locked(connection: Any, kind: str, *rest: Any, **how: Any) -> chain.Event:
        assert connection.locked, kind
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
        assert not connection.locked


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
