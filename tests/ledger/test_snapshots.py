"""Everything that a snapshot of a ledger says, and what a charge under it is refused with."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import CellsChanged, InvalidCharge, NotAccepted, UnknownAnalyst
from takifugu.ledger import Cells, Ledger, Position, Quote, Snapshot, Terms, open_ledger
from takifugu.ledger.accounts.account import Book, flat
from takifugu.ledger.snapshot import (
    differing,
    read_snapshot,
    refuse_second_spelling,
    refuse_unknown,
    similar_names,
    unknown_analyst,
    with_budgets,
)
from takifugu.losses import Total
from tests.ledger.charges import CELLS, DOUBLING, charge
from tests.raising import raises

pytestmark = pytest.mark.nightly

TERMS, RULES = Terms("prior", "secrets"), {"about": "place", "order": "day"}
TOTAL = Total(Fraction(1, 4))
WHOLE = Position("ward", None, Fraction(8), Fraction(0), (TOTAL,))
ANA = Position("ward", "ana", Fraction(4), Fraction(1, 9), (TOTAL,))
PLAIN = Snapshot("ward", None, TERMS, RULES, WHOLE, None, (), False, None)


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    """Budgets of "ward" and of two analysts in it, and a charge of one; of "town" there is none."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 8)
        ledger.charge(charge("1/16", analyst="eve", rules=RULES), DOUBLING)
        ledger.set_budget("ward", 2, analyst="bob")
        ledger.set_budget("ward", 4, delta="1/9", analyst="ana")
        ledger.charge(charge("3/16", analyst="ana", rules=RULES), DOUBLING)
        ledger.set_budget("town", 5, analyst="carl")
        yield ledger


def test_a_snapshot_says_everything_about_a_dataset_and_an_analyst(kept: Ledger) -> None:
    own = replace(ANA, worst=(Total(Fraction(3, 16)),))
    assert kept.snapshot("ward", analyst="ana", cells=CELLS) == Snapshot(
        dataset="ward",
        analyst="ana",
        terms=TERMS,
        rules=RULES,
        whole=WHOLE,
        own=own,
        analysts=(),
        first=False,
        changes=None,
    )
    other = Cells.of({"source": {"kind": "csv", "path": "other.csv"}, "entity": "person"})
    stranger = kept.snapshot("ward", analyst="eve", cells=other)
    assert stranger.own is None and stranger.analysts == ("ana", "bob")
    assert not stranger.first and stranger.changes is not None and len(stranger.changes) == 1
    assert kept.snapshot("ward", analyst="bob").own == Position(
        "ward", "bob", Fraction(2), Fraction(0), (Total(),)
    )


def test_a_snapshot_of_what_has_no_budget_of_its_own(kept: Ledger) -> None:
    assert kept.snapshot("town") == Snapshot(
        "town", None, None, None, None, None, ("carl",), True, None
    )
    assert kept.snapshot("nowhere", cells=CELLS) == Snapshot(
        "nowhere", None, None, None, None, None, (), True, None
    )
    nobody = kept.snapshot("ward")  # without cells none are compared
    assert nobody == replace(PLAIN, analysts=("ana", "bob"), first=True)


def test_accounts_that_were_read_are_not_read_again(kept: Ledger) -> None:
    whole = Book("ward", "", Fraction(3), Fraction(1, 7), account=flat(Total(Fraction(2))))
    own = Book("ward", "ana", Fraction(1, 2), account=flat(Total(Fraction(1, 5))))
    with kept._store.reading() as connection:
        found = read_snapshot(connection, "ward", "ana", None, {"": whole, "ana": own})
        without = read_snapshot(connection, "ward", "ana", None, {})
        own.epsilon = None
        unbounded = read_snapshot(connection, "ward", "ana", None, {"": whole, "ana": own})
    assert found.whole == Position("ward", None, Fraction(3), Fraction(1, 7), (Total(Fraction(2)),))
    assert found.own == Position(
        "ward", "ana", Fraction(1, 2), Fraction(0), (Total(Fraction(1, 5)),)
    )
    assert found.analysts == ()
    assert without.whole is None is without.own and without.analysts == ("ana", "bob")
    assert unbounded.own is None and unbounded.analysts == ("ana", "bob")


def test_a_budget_of_zero_is_one(folder: Path) -> None:
    with open_ledger(folder / "zero.ledger") as ledger:
        ledger.set_budget("ward", 0)
        ledger.set_budget("ward", 0, analyst="ana")
        found = ledger.snapshot("ward", analyst="ana")
    assert [one.epsilon for one in found.payers] == [0, 0] and found.analysts == ()


def test_who_pays_has_a_budget_the_whole_first() -> None:
    assert PLAIN.payers == (WHOLE,)
    assert replace(PLAIN, own=ANA).payers == (WHOLE, ANA)
    assert replace(PLAIN, whole=None, own=ANA).payers == (ANA,)
    assert replace(PLAIN, whole=None).payers == ()


def test_what_differs_is_named_part_by_part() -> None:
    other = RULES | {"order": "hour"}
    assert PLAIN.changed(TERMS, RULES) == PLAIN.changed(TERMS, None) == ()
    assert PLAIN.changed(Terms("p", "secrets"), RULES) == ("prior",)
    assert PLAIN.changed(Terms("prior", "s"), RULES) == ("secrets",)
    assert PLAIN.changed(TERMS, other) == ("rules",)
    assert PLAIN.changed(Terms("p", "s"), other) == ("prior", "secrets", "rules")
    first = replace(PLAIN, terms=None, rules=None)
    assert first.changed(Terms("p", "s"), other) == ()
    assert replace(PLAIN, rules=None).changed(Terms("p", "secrets"), other) == ("prior",)


def test_a_charge_is_refused_for_who_asks_before_what_and_where() -> None:
    cells = ("source was a, is b",)
    wrong = replace(PLAIN, analyst="Bob", analysts=("ana", "bob"), changes=cells)
    with raises(
        UnknownAnalyst, dataset="ward", analyst="Bob", known=("ana", "bob"), similar=("bob",)
    ):
        wrong.refuse(Terms("p", "secrets"), RULES)
    known = replace(wrong, analysts=())
    with raises(NotAccepted, dataset="ward", changed=("prior",), keys=()):
        known.refuse(Terms("p", "secrets"), None)
    with raises(NotAccepted, dataset="ward", changed=("rules",), keys=("order",)):
        known.refuse(TERMS, RULES | {"order": "hour"})
    with raises(NotAccepted, dataset="ward", changed=("rules",), keys=("about", "order")):
        known.refuse(TERMS, {})
    with raises(CellsChanged, dataset="ward", changes=cells):
        known.refuse(TERMS, RULES)
    with raises(CellsChanged, dataset="ward", changes=()):
        replace(known, changes=()).refuse(TERMS, RULES)
    replace(known, changes=None).refuse(TERMS, RULES)


def test_the_keys_of_rules_are_named_only_where_the_rules_differ() -> None:
    """No rules are given: they are not compared, whatever is in force."""
    with raises(NotAccepted, changed=("secrets",), keys=()):
        PLAIN.refuse(Terms("prior", "s"), None)
    with raises(NotAccepted, changed=("secrets", "rules"), keys=("about",)):
        PLAIN.refuse(Terms("prior", "s"), RULES | {"about": "mood"})


# --- names of analysts ---


def test_analysts_with_a_budget_are_those_of_the_dataset_by_name(kept: Ledger) -> None:
    with kept._store.reading() as connection:
        assert with_budgets(connection, "ward") == ("ana", "bob")
        assert with_budgets(connection, "town") == ("carl",)
        assert with_budgets(connection, "nowhere") == ()
        for fine in ("ana", "bob"):
            refuse_unknown(connection, "ward", fine)
        refuse_unknown(connection, "nowhere", "anybody")
        refuse_unknown(connection, "nowhere", None)
        with raises(
            UnknownAnalyst, dataset="ward", analyst="boba", known=("ana", "bob"), similar=("bob",)
        ):
            refuse_unknown(connection, "ward", "boba")
        with raises(UnknownAnalyst, dataset="ward", analyst=None, known=("ana", "bob")):
            refuse_unknown(connection, "ward", None)


def test_nobody_is_similar_to_no_name() -> None:
    error = unknown_analyst("ward", None, ("None", "none"))
    assert (error.dataset, error.analyst, error.similar) == ("ward", None, ())
    assert unknown_analyst("ward", "nonee", ("none", "ana")).similar == ("none",)


def test_a_name_is_new_or_spelt_as_it_was(kept: Ledger) -> None:
    with kept._store.reading() as connection:
        for fine in ("ana", "bob", "eve", "dora", "an a2"):
            refuse_second_spelling(connection, "ward", fine)
        refuse_second_spelling(connection, "town", "Ana")  # of another dataset
        for name, known in (("Ana", "ana"), ("EVE", "eve"), ("b ob", "bob")):
            with raises(InvalidCharge, field="analyst") as told:
                refuse_second_spelling(connection, "ward", name)
            assert repr(name) in str(told.value) and f"{known!r} has an account" in str(told.value)
        for odd in (" dora", "dora ", "do\nra", "do\u200bra"):
            with raises(InvalidCharge, field="analyst") as told:
                refuse_second_spelling(connection, "ward", odd)
            assert repr(odd) in str(told.value) and "account" not in str(told.value)


def test_a_spelling_that_has_an_account_may_go_on(folder: Path) -> None:
    """Two spellings that charged before there were budgets are two accounts already."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 2)
        for name in ("eve", "Eve"):
            ledger.charge(charge("1/8", analyst=name), DOUBLING)
        for name in ("eve", "Eve"):
            ledger.set_budget("ward", 1, analyst=name)
        with raises(InvalidCharge, field="analyst"):
            ledger.set_budget("ward", 1, analyst="EVE")


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("ANA", ["ana", "bob", "An a"], ("ana", "An a")),  # the same but for what eyes overlook
        ("anna", ["Bob", "Ana", "Anne", "Hanna", "Annas"], ("Hanna", "Annas", "Ana")),
        ("abcde", ["abcxy"], ("abcxy",)),  # 6 of 10 letters are shared
        ("abcdefg", ["abcdxyz"], ()),  # 8 of 14
        ("ana", [], ()),
    ],
)
def test_names_that_were_meant_are_the_closest_three(
    name: str, known: list[str], meant: tuple[str, ...]
) -> None:
    assert similar_names(name, known) == meant


# --- rules ---


def fit(prior: object, **others: Any) -> dict[str, Any]:
    return {"prior": prior, "share": "1/5", **others}


@pytest.mark.parametrize(
    ("known", "given", "keys"),
    [
        ({"z": 1, "b": 2, "k": 3}, {"z": 2, "a": 5, "k": 3}, ("a", "b", "z")),
        ({}, {"fits": [fit("p")]}, ("fitted",)),
        ({"fits": [fit("p")]}, {}, ("fitted",)),
        ({"fits": []}, {"fits": [fit("p")]}, ("fitted",)),
        ({"fits": [fit("p"), fit("q")]}, {"fits": [fit("q"), fit("p", z=1)]}, ("z",)),
        ({"fits": [fit("p", z=0), fit("q")]}, {"fits": [fit("p", z=1), fit("q", a=2)]}, ("a", "z")),
        ({"fits": [fit("p"), fit("q")]}, {"fits": [fit("p", z=1)]}, ("fitted",)),
        ({"fits": [fit("p")]}, {"fits": [fit("p", z=1), fit("p")]}, ("fitted",)),
        ({"fits": [fit("p"), fit("p")]}, {"fits": [fit("p", z=1)]}, ("fitted",)),
        ({"fits": {"p": 1}}, {"fits": {"p": 2}}, ("fitted",)),
        ({"fits": [1]}, {"fits": [2]}, ("fitted",)),
        ({"other": [fit("p")]}, {"other": [fit("p", z=1)]}, ("other",)),
        ({"z": 0, "fits": [fit("p")]}, {"z": 1, "fits": [fit("p", share=0)]}, ("share", "z")),
    ],
)
def test_keys_of_rules_that_differ(
    known: dict[str, Any], given: dict[str, Any], keys: tuple[str, ...]
) -> None:
    assert differing(known, given) == keys


# --- what a charge would meet ---


@pytest.mark.parametrize(
    ("answer", "shared", "own", "stored", "reuse"),
    [
        (None, False, None, False, False),
        (None, False, ANA, False, False),
        (None, True, None, True, False),
        (None, True, ANA, False, True),
        ("answer", True, None, True, False),
        ("answer", True, ANA, True, False),
        ("answer", False, ANA, True, False),
    ],
)
def test_an_answer_is_free_for_whom_it_was_paid(
    answer: Any, shared: bool, own: Position | None, stored: bool, reuse: bool
) -> None:
    quote = Quote(replace(PLAIN, own=own), answer, shared, None, ())
    assert quote.stored is stored and quote.reuse is reuse
