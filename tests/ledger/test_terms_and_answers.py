"""Terms in force, approvals and answers: each decision whole, and each rule at its edge."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import LedgerConflict
from takifugu.ledger import (
    Answer,
    Ledger,
    Receipt,
    open_ledger,
    restore_ledger,
)
from takifugu.ledger.events.decisions import Terms
from takifugu.ledger.witnesses.lost_history import LossTerms
from tests.ledger.charges import DOUBLING, charge
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


# --- answers ---


def answered(ledger: Ledger, value: Any, **others: Any) -> tuple[Receipt, Answer]:
    receipt = ledger.charge(charge("0.25", **others), DOUBLING)
    return receipt, ledger.record_answer(receipt, value)


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
