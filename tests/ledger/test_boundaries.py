"""What is just allowed and just refused, and what is said of each."""

import math
import os
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu.errors import (
    InvalidCharge,
    InvalidFile,
    LedgerUnavailable,
    NotAccepted,
)
from takifugu.ledger import Ledger, open_ledger, restore_ledger
from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.events.decisions import Review, Terms
from takifugu.ledger.frontier import ZERO
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(("letters", "fine"), [(1, True), (500, True), (501, False), (0, False)])
def test_a_name_has_up_to_five_hundred_letters(letters: int, fine: bool) -> None:
    name = "é" * letters
    if fine:
        check_name(name, "dataset")
    else:
        with raises(InvalidCharge, field="dataset", reason="name"):
            check_name(name, "dataset")


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


def test_rules_that_changed_are_named(ledger: Ledger) -> None:
    rules = {"about": "place", "order": "day"}
    ledger.charge(charge("0.25", rules=rules), DOUBLING)
    other = charge("0.25", rules=rules | {"order": "hour"})
    with raises(NotAccepted, changed=("rules",), keys=("order",)):
        ledger.charge(other, DOUBLING)
    seen = ledger.quote(charge("0.25", rules=rules), DOUBLING).snapshot
    with raises(NotAccepted, changed=("rules",), keys=("order",)):
        seen.refuse(Terms("prior", "secrets"), other.rules)
    seen.refuse(Terms("prior", "secrets"), rules)
    with raises(NotAccepted, changed=("prior",), keys=()):
        seen.refuse(Terms("another", "secrets"), rules)


def test_what_is_abandoned_is_not_resumed_even_where_that_cannot_be_written(folder: Path) -> None:
    path = folder / "ward.ledger"
    wanted = charge("0.25")
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        receipt = ledger.charge(wanted, DOUBLING, resume=True)
        assert ledger.charge(wanted, DOUBLING, resume=True).may_release
        away = folder / "away"
        path.rename(away)
        with raises(LedgerUnavailable, reason="replaced"):
            ledger.abandon(receipt)
        away.rename(path)
        assert not ledger.charge(wanted, DOUBLING, resume=True).may_release


@pytest.mark.parametrize("what", ["fifo", "folder"])
def test_a_backup_goes_to_no_special_file(folder: Path, what: str) -> None:
    path, copy = folder / "ward.ledger", folder / "copy"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.backup(copy)
    path.unlink()
    if what == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with raises(InvalidFile):
        restore_ledger(copy, path)
    assert path.is_fifo() if what == "fifo" else path.is_dir()


def test_nothing_is_written_of_an_abandoned_charge_that_nobody_resumes(ledger: Ledger) -> None:
    receipt = ledger.charge(charge("0.25"), DOUBLING)
    before = ledger.head()
    ledger.abandon(receipt)
    assert ledger.head() == before
    resumed = ledger.charge(charge("0.25"), DOUBLING, resume=True)
    ledger.abandon(resumed)
    ledger.abandon(resumed)  # once is enough
    assert ledger.head().seq == resumed.anchor.seq + 1
    assert ledger.verify().sound
