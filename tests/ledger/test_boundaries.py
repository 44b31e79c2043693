"""What is just allowed and just refused, and what is said of each."""

import math
import os
import sqlite3
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from takifugu._rounding import float_up
from takifugu.costs import NOTHING, Cost
from takifugu.errors import (
    InvalidCharge,
    InvalidFile,
    LedgerDamaged,
    LedgerError,
    LedgerUnavailable,
    NotAccepted,
    UnsoundRequest,
)
from takifugu.ledger import Ledger, open_ledger, restore_ledger
from takifugu.ledger.accounts.frontier import ZERO
from takifugu.ledger.accounts.limits import MOST_COSTS, MOST_LIMITS, Limit, Limits
from takifugu.ledger.canonical_text import check_name
from takifugu.ledger.events.accepted_terms import Review, Terms
from takifugu.ledger.storage.addresses import address_of
from takifugu.ledger.storage.connections import MOST, Connections
from takifugu.ledger.storage.schema import INDEXES, UNIQUE
from takifugu.ledger.storage.statement import Statement, askable
from takifugu.ledger.storage.store import Store
from takifugu.ledger.witnesses.lost_history import _above
from takifugu.losses import Metric, Total
from tests.contracts.ledger import tamper
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


def test_a_new_ledger_has_every_index(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger"):
        pass
    with sqlite3.connect(folder / "ward.ledger") as database:
        rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index'")
        found = {name: sql or "" for name, sql in rows}
    database.close()
    assert INDEXES.keys() <= found.keys()
    assert {name for name in INDEXES if "UNIQUE" in found[name]} == set(UNIQUE)


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


@pytest.mark.parametrize("most", ["1e-70", "1e-9", "0.3", "1", "7", "1048575"])
def test_an_amount_that_is_not_admitted_lies_hardly_above_what_is(most: str) -> None:
    largest = Fraction(most)
    found = _above(lambda amount: amount <= largest)
    if largest < Fraction(1, 2**200):
        assert found == Fraction(1, 2**200)
    else:
        assert largest < found <= largest + max(largest, Fraction(1)) / 2**40


def test_a_budget_without_end_cannot_be_counted_as_lost() -> None:
    with raises(UnsoundRequest, reason="broken translation"):
        _above(lambda amount: amount <= 2**21)


@pytest.mark.parametrize(
    ("text", "fine"), [("ward", True), ("", True), ("wa\0rd", False), ("\ud800", False)]
)
def test_a_database_is_asked_for_text_only(text: str, fine: bool) -> None:
    assert askable(text) is fine


def test_a_report_names_twenty_problems_and_that_there_are_more(folder: Path) -> None:
    path = folder / "ward.ledger"
    with open_ledger(path) as ledger:
        ledger.set_budget("ward", 9)
        for _ in range(24):
            ledger.charge(charge("1/256"), DOUBLING)
    tamper(str(path), "UPDATE takifugu_events SET dataset = 'other' WHERE seq > 2")
    with open_ledger(path, read_only=True) as ledger:
        report = ledger.verify()
    assert not report.sound
    assert [one.reason for one in report.problems] == ["filed"] * 20 + ["more"]
    assert [one.event for one in report.problems] == [*range(3, 23), None]
    assert report.events == 23


def test_limits_are_remembered_and_the_oldest_forgotten() -> None:
    limits = Limits()
    first = limits.limit(DOUBLING, Fraction(1), Fraction(0))
    assert limits.limit(DOUBLING, Fraction(1), Fraction(0)) is first
    for size in range(2, 2 + MOST_LIMITS):
        limits.limit(DOUBLING, Fraction(size), Fraction(0))
    again = limits.limit(DOUBLING, Fraction(1), Fraction(0))
    assert again is not first and again.allowed == first.allowed


def test_costs_are_translated_once_and_many_are_forgotten() -> None:
    class Counted(Places):
        times = 0

        def cost_to_pufferfish(self, *costs: Cost) -> float:
            Counted.times += 1
            return super().cost_to_pufferfish(*costs)

    limit = Limit(Counted(), Fraction(10), Fraction(0))
    Counted.times = 0
    totals = [
        (Total().plus(count(Fraction(1, size), "home")),) for size in range(1, MOST_COSTS + 3)
    ]
    losses = [limit.spent(one) for one in totals]
    assert Counted.times == len(totals)
    assert limit.spent(totals[-1]) == losses[-1] and Counted.times == len(totals)
    assert limit.spent(totals[0]) == losses[0] and Counted.times == len(totals) + 1
    assert losses == [float_up(4 * Fraction(1, size)) for size in range(1, MOST_COSTS + 3)]


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


def test_one_row_is_read_by_itself(folder: Path) -> None:
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
    store = Store(folder / "ward.ledger", read_only=True, wait=5)
    statement = Statement("SELECT kind FROM takifugu_events WHERE seq = :which")
    for _ in range(2 * MOST):  # each gives its connection back
        found = store.one(statement, {"which": 1})
        assert found is not None and found.kind == "created"
    assert store.one(statement, {"which": 9}) is None
    with raises(LedgerError):
        store.one(Statement("SELECT nothing FROM nowhere"), {})
    assert store.one(statement, {"which": 2}) is not None
    store.close()


def test_a_connection_that_failed_is_not_used_again() -> None:
    made: list[sqlite3.Connection] = []

    def connect() -> sqlite3.Connection:
        made.append(sqlite3.connect(":memory:", isolation_level=None))
        return made[-1]

    begin = ("BEGIN", "BEGIN IMMEDIATE")
    kept = Connections(connect, sqlite=True, errors=(sqlite3.Error,), begin=begin, wait=1)
    good, bad = Statement("SELECT 1 AS one"), Statement("SELECT none FROM nowhere")
    for _ in range(3):
        assert kept.one(good, {}).one == 1
    assert len(made) == 1
    with pytest.raises(sqlite3.Error):
        kept.one(bad, {})
    with pytest.raises(sqlite3.ProgrammingError):
        made[0].execute("SELECT 1")  # it was closed
    assert kept.one(good, {}).one == 1 and len(made) == 2
    with pytest.raises(KeyError), kept.transaction(reading=False):
        raise KeyError
    with kept.transaction(reading=True) as connection:
        assert connection.raw is made[1]  # what was undone in it left it sound
    kept.close()
    with pytest.raises(sqlite3.ProgrammingError):
        made[1].execute("SELECT 1")


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
