"""What is just allowed and just refused, and what is said of each."""

import math
import os
import sqlite3
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu.costs.cost import NOTHING, Cost
from takifugu.costs.losses import Metric, Total
from takifugu.errors import (
    InvalidCharge,
    InvalidFile,
    LedgerDamaged,
    LedgerUnavailable,
    NotAccepted,
)
from takifugu.ledger import Ledger, open_ledger, restore_ledger
from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.events.decisions import Review, Terms
from takifugu.ledger.frontier import ZERO
from takifugu.ledger.limits import Limit
from takifugu.ledger.storage.database import address_of
from tests.ledger.charges import DOUBLING, Places, charge, count
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


def test_a_name_that_is_no_text_is_no_address() -> None:
    with raises(InvalidFile, field="ledger", reason="text"):
        address_of(Path(os.fsdecode(b"ward\xff.ledger")))
    assert address_of(Path("wärd.ledger")).sqlite


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


class Boastful(Places):
    """Says that twice as much fits as does."""

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """Too much."""
        return 2 * super().to_cost(unit, pufferfish, spent=spent, beside=beside)


def test_a_factor_that_does_not_fit_is_cut_down_to_one_that_does() -> None:
    unit = count("1", "home")
    honest, boastful = (Limit(one, Fraction(6), Fraction(0)) for one in (Places(), Boastful()))
    most = honest.room((Total(),), unit)
    assert most == Fraction(3, 2)  # both changes to and from home: four times its cost
    found = boastful.room((Total(),), unit)
    assert Fraction(1) <= found <= most
    assert honest.room((Total(),), Metric(NOTHING)) == 1  # nothing fits as it is


def test_a_copy_whose_pages_do_not_fit_is_not_put_back(folder: Path) -> None:
    path, copy = folder / "ward.ledger", folder / "copy"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 2)
        ledger.charge(charge("0.25"), DOUBLING)
        ledger.backup(copy)
    database = sqlite3.connect(copy, isolation_level=None)
    database.execute("PRAGMA writable_schema=ON")
    database.execute(
        "UPDATE sqlite_master SET sql = replace(sql, '''abandoned''', '''charge''')"
        " WHERE name = 'takifugu_abandoned_once'"
    )
    database.close()  # the index lacks the charges that it should name now
    path.unlink()
    with raises(LedgerDamaged, reason="unsound copy"):
        restore_ledger(copy, path)
    assert not path.exists()
