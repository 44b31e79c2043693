"""Everything that a snapshot of a ledger says, and what a charge under it is refused with."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.costs.losses import Total
from takifugu.errors import CellsChanged, InvalidCharge, NotAccepted, UnknownAnalyst
from takifugu.ledger import Ledger, Position, Quote, Snapshot, Terms, open_ledger
from takifugu.ledger.snapshot import (
    differing,
    refuse_second_spelling,
    similar_names,
)
from tests.ledger.charges import DOUBLING, charge
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


def test_a_budget_of_zero_is_one(folder: Path) -> None:
    with open_ledger(folder / "zero.ledger") as ledger:
        ledger.set_budget("ward", 0)
        ledger.set_budget("ward", 0, analyst="ana")
        found = ledger.snapshot("ward", analyst="ana")
    assert [one.epsilon for one in found.payers] == [0, 0] and found.analysts == ()


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
