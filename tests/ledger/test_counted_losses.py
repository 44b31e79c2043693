"""What is counted for each account whose history is lost, by every budget it may have had."""

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu._core.fingerprint import fingerprint
from takifugu.costs.cost import ANY, Column, Cost
from takifugu.costs.losses import Concentrated, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Anchor, Ledger, Terms, open_ledger
from takifugu.ledger.account import WHOLE, Books, flat
from takifugu.ledger.limits import Limit
from takifugu.ledger.witnesses.lost_history import (
    MAX_LOSS,
    LossTerms,
    Used,
    _above,
    _most,
    _reached,
    counted,
    used_in,
)
from takifugu.priors.secrets import Secrets
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import DOUBLING, IDENTITY, KNOWN, RICH, Doubling, Places, Rich, charge
from tests.ledger.charges import count as counted_loss
from tests.raising import raises

pytestmark = pytest.mark.nightly

ALL_PAIRS = fingerprint(Secrets())
MINE, SOME = Used({"doubling"}, {ALL_PAIRS}), Used({"doubling"}, {"some"})
THREE, HALF, NONE = Fraction(3), Fraction(1, 2), Fraction(0)
MICRO = Fraction(1, 10**6)


class EveryPair(Places):
    """Every pair of places is secret."""

    every_pair = True


class Columns(EveryPair):
    """Of two columns: whatever is charged names one of them."""

    names_columns = True

    def covering_cost(self, epsilon: Fraction, /) -> Cost | None:
        """On each of them."""
        return Cost.of({Column("a", ANY): epsilon, Column("b", ANY): epsilon})


class RichColumns(Rich):
    """The same, with a δ and a ρ."""

    names_columns = True
    knows_values = True
    covering_cost = Columns.covering_cost


EACH = Cost.of({Column("a", ANY): THREE, Column("b", ANY): THREE})


def most(
    translation: LossTranslation | None,
    used: Used = MINE,
    *,
    delta: Fraction = NONE,
    columns: tuple[str, ...] = (),
    costs: bool = True,
) -> Total:
    given = {} if translation is None else {"ward": translation}
    terms = LossTerms(given, {}, {"ward": columns}, costs)
    return _most(THREE, delta, used, "ward", terms)


# --- the most that a budget admits ---


def test_without_a_translation_the_budget_itself_is_counted() -> None:
    assert most(None) == most(None, columns=("a",)) == most(None, costs=False) == Total(THREE)
    assert most(None, SOME, costs=False) == Total(THREE)
    assert most(None, SOME, costs=False, columns=("a",)) == Total(THREE)
    with raises(UnsoundRequest, field="costs", reason="some pairs"):
        most(None, SOME)


@pytest.mark.parametrize("costs", [False, True])
def test_of_several_columns_it_is_counted_on_each(costs: bool) -> None:
    """They are charged by value in any case, whatever the owner says of costs."""
    assert most(None, columns=("a", "b"), costs=costs) == Total(costs=EACH)
    with raises(UnsoundRequest, field="costs", reason="some pairs") as told:
        most(None, SOME, columns=("a", "b"), costs=costs)
    assert "'ward'" in str(told.value)


def test_what_the_translation_allows_is_counted_where_it_was_the_only_one() -> None:
    assert most(DOUBLING) == most(DOUBLING, SOME) == Total(Fraction(3, 2))
    assert most(DOUBLING, Used()) == Total(Fraction(3, 2))
    for used in (Used({"doubling", "other"}, {ALL_PAIRS}), Used({"other"}, {ALL_PAIRS})):
        assert most(DOUBLING, used) == most(DOUBLING, used, costs=False) == Total(THREE)
        assert most(IDENTITY, used) == Total(THREE)  # has no name: it is the one
    other = Used({"other"}, {"some"})
    assert most(DOUBLING, other, costs=False) == Total(THREE)
    with raises(UnsoundRequest, field="costs", reason="some pairs"):
        most(DOUBLING, other)  # another one may have known values


def test_more_than_the_budget_is_counted_if_the_translation_allows_it() -> None:
    class Generous(Doubling):
        """Allows more than a sound one could."""

        def to_pufferfish(self, dp: float, /) -> float:
            """Less than is given."""
            return dp / 2

        def to_dp(self, pufferfish: float, /) -> float:
            """More than is given."""
            return 2 * pufferfish

    for used in (MINE, Used({"other"})):
        assert most(Generous(), used, costs=False) == Total(Fraction(6))


def test_a_translation_that_knows_values_counts_the_budget_unless_no_cost_was_charged() -> None:
    mine = Used({"places"}, {"some"})
    assert most(EveryPair(), mine) == Total(THREE)
    assert most(EveryPair(), mine, costs=False) == Total(HALF)
    assert most(KNOWN, mine, costs=False) == Total(HALF)
    with raises(UnsoundRequest, field="costs", reason="some pairs"):
        most(KNOWN, Used({"places"}, {ALL_PAIRS}))


@pytest.mark.parametrize("costs", [False, True])
def test_a_translation_of_several_columns_says_itself_what_covers_them(costs: bool) -> None:
    for used in (Used({"places"}, {"some"}), Used({"other"})):
        assert most(Columns(), used, costs=costs) == Total(costs=EACH)


def test_with_a_delta_every_currency_is_counted_to_its_edge() -> None:
    found = most(RICH, delta=MICRO)
    limit = Limit(RICH, THREE, MICRO)
    assert found == Total(limit.allowed, MICRO, found.rho) and limit.allowed > 2
    slightly = found.rho * (1 - Fraction(1, 2**50))
    assert limit.admits((Total().plus(Concentrated(slightly)),))
    assert not limit.admits((Total().plus(Concentrated(found.rho)),))


def test_with_a_delta_several_columns_are_counted_beside_it() -> None:
    found = most(RichColumns(), delta=MICRO)
    assert found == Total(NONE, MICRO, most(RICH, delta=MICRO).rho, EACH)


def test_with_a_delta_the_translation_must_be_known() -> None:
    with raises(UnsoundRequest, field="delta", reason="translation unknown") as told:
        most(None, delta=MICRO)
    assert "'ward'" in str(told.value)
    with raises(UnsoundRequest, field="delta", reason="another translation") as told:
        most(DOUBLING, Used({"other"}), delta=MICRO)
    assert "'ward'" in str(told.value)


# --- which budgets an account may have had ---


def accounts(**budgets: int | None) -> Books:
    """Accounts on "ward" by analyst, with these budgets; "whole" is that of the dataset."""
    books = Books()
    for name, budget in budgets.items():
        book = books.book("ward", WHOLE if name == "whole" else name)
        book.epsilon = None if budget is None else Fraction(budget)
    return books


# --- all accounts ---


@pytest.fixture
def kept(folder: Path) -> Iterator[Ledger]:
    """Two datasets with budgets, and charges of several people under several terms."""
    with open_ledger(folder / "ward.ledger") as ledger:
        ledger.set_budget("ward", 8)
        ledger.set_budget("town", 6)
        ledger.charge(charge("1/8", analyst="bob", secrets="s1"), DOUBLING)
        ledger.set_budget("ward", 4, analyst="ana")
        ledger.set_budget("ward", 2, analyst="bob")
        asked = charge("1/4", analyst="ana", secrets="s1")
        ledger.record_answer(ledger.charge(asked, DOUBLING), 7)
        ledger.set_partition("yard", ("country",))  # which has no budget
        yield ledger


def test_what_a_copy_names_is_found_by_dataset(kept: Ledger) -> None:
    with kept._store.reading() as connection:
        assert used_in(connection) == {"ward": Used({"doubling"}, {"s1"})}
    kept.reuse(charge("1/4", analyst="bob", secrets="s1", translation="same"), IDENTITY)
    kept.accept(Terms("prior", "s2"), kept.review("ward", DOUBLING, DOUBLING))
    other: dict[str, Any] = {"data": "other data", "query": {"name": "others"}}
    kept.charge(charge("1/8", dataset="town", secrets="s3", translation="places", **other), KNOWN)
    with kept._store.reading() as connection:
        assert used_in(connection) == {
            "ward": Used({"doubling", "same"}, {"s1", "s2"}),
            "town": Used({"places"}, {"s3"}),
        }


def test_every_account_is_counted_also_of_a_dataset_that_the_copy_does_not_know(
    kept: Ledger,
) -> None:
    with kept._store.reading() as connection:
        terms = LossTerms(
            {"ward": DOUBLING},
            {"new": (9, 0), "town": 7},
            columns={"new": ("a", "b"), "ward": ("a",)},
            costs=False,
        )
        content, _ = counted(connection, Anchor(99, "c" * 64), terms)
    each = [["9", ["column", "a", ["any"]]], ["9", ["column", "b", ["any"]]]]
    plain = {"delta": "0", "rho": "0"}
    expected: list[dict[str, Any]] = [
        {"dataset": "ward", "analyst": None, "epsilon": "4", **plain},
        {"dataset": "town", "analyst": None, "epsilon": "7", **plain},
        {"dataset": "ward", "analyst": "bob", "epsilon": "1", **plain},
        {"dataset": "ward", "analyst": "ana", "epsilon": "2", **plain},
        {"dataset": "new", "analyst": None, "epsilon": "0", **plain, "costs": each},
    ]
    found = sorted(content["accounts"], key=str)
    for one in (*found, *expected):
        one.get("costs", []).sort()
    assert found == sorted(expected, key=str)


def test_a_loss_is_counted_on_every_backend(ledger: Ledger) -> None:
    lost = Anchor(9, "c" * 64)
    with ledger._store.reading() as connection:
        content, _ = counted(connection, lost, LossTerms({"ward": DOUBLING}))
    whole = {"dataset": "ward", "analyst": None, "epsilon": "1", "delta": "0", "rho": "0"}
    assert content == {"lost": {"seq": 9, "hash": "c" * 64}, "accounts": [whole]}


def test_terms_are_checked_with_all_that_they_state(kept: Ledger) -> None:
    """What cannot be counted is refused for each of the four, and for that one alone."""
    lost = Anchor(99, "c" * 64)
    fine = LossTerms({"ward": DOUBLING}, {"town": (7, MICRO)}, costs=False)
    with kept._store.reading() as connection:
        with raises(UnsoundRequest, reason="translation unknown") as told:
            counted(connection, lost, fine)
        assert "'town'" in str(told.value)
        both = {"ward": DOUBLING, "town": RICH}
        counted(connection, lost, LossTerms(both, {"town": (7, MICRO)}, costs=False))
        counted(connection, lost, LossTerms({"town": RICH}, costs=False))
        for some in (
            LossTerms({"town": RICH}),
            LossTerms({"town": RICH}, columns={"ward": ("a", "b")}, costs=False),
        ):
            with raises(UnsoundRequest, reason="some pairs") as told:
                counted(connection, lost, some)
            assert "'ward'" in str(told.value)
    assert LossTerms() == LossTerms({}, {}, {}, True)


@pytest.mark.parametrize("most", [Fraction(1, 3), Fraction(2, 7), Fraction(5, 3), Fraction(100, 7)])
@pytest.mark.parametrize("strict", [False, True])
def test_an_amount_is_found_from_above_to_a_part_of_two_to_the_sixty(
    most: Fraction, strict: bool
) -> None:
    found = _above(lambda amount: amount < most if strict else amount <= most)
    low, high = Fraction(0), Fraction(1)
    while high <= most:
        low, high = high, 2 * high
    step = (high - low) / 2**60
    assert most < found <= most + step
    assert ((found - low) / step).denominator == 1


def test_more_than_the_largest_is_no_budget() -> None:
    tried: list[Fraction] = []

    def admits(amount: Fraction) -> bool:
        tried.append(amount)
        return True

    with raises(UnsoundRequest, reason="broken translation"):
        _above(admits)
    assert max(tried) == MAX_LOSS == 2**20
    assert _above(lambda amount: amount < MAX_LOSS) == MAX_LOSS
    with raises(UnsoundRequest, reason="broken translation"):
        _above(lambda amount: amount <= MAX_LOSS)


def test_all_pairs_may_be_named_at_once_or_by_column_or_both() -> None:
    at_once = fingerprint(Secrets())
    by_column = fingerprint(("by column", {"place": Secrets(), "zone": Secrets()}))
    some = fingerprint(Secrets(pairs=((("ill",), ("well",)),)))
    columns = ("zone", "place")
    for named in (set(), {at_once}, {by_column}, {at_once, by_column}):
        assert Used(secrets=named).every_pair(columns)
        assert not Used(secrets={*named, some}).every_pair(columns)
    assert not Used(secrets={by_column}).every_pair(("zone",))


def reached(
    books: Books,
    analyst: str = WHOLE,
    named: dict[str, tuple[Fraction, Fraction]] | None = None,
    *,
    costs: bool = False,
) -> Total | None:
    book, known = books.book("ward", analyst), {k: [v] for k, v in (named or {}).items()}
    worst = book.account.worst
    terms = LossTerms({"ward": DOUBLING}, costs=costs)
    return _reached(book, books, known, MINE, worst, terms)


def test_an_account_may_have_reached_its_budget_or_the_one_that_is_named() -> None:
    books = accounts(whole=8, ana=6, bob=None)
    named = {"ward": (Fraction(20), NONE)}
    assert reached(books) == Total(Fraction(4))
    assert reached(books, named=named) == Total(Fraction(10))
    assert reached(books, named={"ward": (Fraction(2), NONE)}) == Total(Fraction(4))
    assert reached(books, named={"town": (Fraction(20), NONE)}) == Total(Fraction(4))
    assert reached(books, "ana") == Total(Fraction(3))  # a budget of her own
    assert reached(books, "ana", {"town": (Fraction(20), NONE)}) == Total(Fraction(3))
    assert reached(books, "ana", named) == Total(Fraction(10))  # hers may have been raised, too
    assert reached(books, "bob") == Total(Fraction(4))
    assert reached(books, "bob", named) == Total(Fraction(10))


def test_nothing_was_charged_where_there_was_no_budget() -> None:
    books = accounts(whole=None, ana=6)
    assert reached(books) is None and reached(books, "ana") is None
    assert reached(books, named={"ward": (Fraction(20), NONE)}) == Total(Fraction(10))
    zero = accounts(whole=0)
    assert reached(zero) == Total()


def test_what_the_copy_has_beyond_every_budget_is_counted_as_well() -> None:
    books = accounts(whole=8)
    account = books.book("ward", WHOLE)
    account.account = flat(Total(Fraction(5)))
    assert reached(books) == Total(Fraction(5))
    account.account = flat(Total(Fraction(3)))
    assert reached(books) == Total(Fraction(4))
    loose = Total(costs=counted_loss("7", "home").cost)
    account.account = flat(loose)
    assert reached(books) == Total(Fraction(4), costs=loose.costs)
    assert reached(books, named={"ward": (Fraction(20), NONE)}) == Total(Fraction(10))
