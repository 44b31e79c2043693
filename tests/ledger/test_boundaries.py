"""What is just allowed and just refused, and what is said of each."""

import math
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu.errors import (
    LedgerUnavailable,
)
from takifugu.ledger import Ledger, open_ledger
from takifugu.ledger.events.decisions import Review
from takifugu.ledger.frontier import ZERO
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly


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
