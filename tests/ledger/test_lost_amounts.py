"""What a lost history may have cost at most: the search for it, from above, to its last halving."""

from fractions import Fraction

import pytest

from takifugu.costs import ANY, Column, Cost
from takifugu.errors import UnsoundRequest
from takifugu.fingerprint import fingerprint
from takifugu.ledger.witnesses.lost_history import LARGEST, Used, _above, _of_each
from takifugu.priors.secrets import Secrets
from tests.raising import raises

pytestmark = pytest.mark.nightly


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


@pytest.mark.parametrize("most", [Fraction(1), Fraction(2), Fraction(1, 2)])
def test_an_amount_that_is_admitted_is_below_what_is_found(most: Fraction) -> None:
    found = _above(lambda amount: amount <= most)
    assert most < found <= most * (1 + Fraction(1, 2**59))
    assert _above(lambda amount: amount < most) == most  # itself is not admitted


def test_hardly_anything_is_the_least() -> None:
    least = Fraction(1, 2**200)
    assert _above(lambda _: False) == least
    assert _above(lambda amount: amount < least) == least
    assert _above(lambda amount: amount <= least) == Fraction(1, 2**60)


def test_more_than_the_largest_is_no_budget() -> None:
    tried: list[Fraction] = []

    def admits(amount: Fraction) -> bool:
        tried.append(amount)
        return True

    with raises(UnsoundRequest, reason="broken translation"):
        _above(admits)
    assert max(tried) == LARGEST == 2**20
    assert _above(lambda amount: amount < LARGEST) == LARGEST
    with raises(UnsoundRequest, reason="broken translation"):
        _above(lambda amount: amount <= LARGEST)


def test_each_column_may_have_lost_all() -> None:
    three = Fraction(3)
    assert _of_each((), three) == Cost.any(3)
    assert _of_each(("a",), three) == Cost.any(3)
    assert _of_each(("a", "b"), three) == Cost.of({Column("a", ANY): 3, Column("b", ANY): 3})


def test_all_pairs_may_be_named_at_once_or_by_column_or_both() -> None:
    at_once = fingerprint(Secrets())
    by_column = fingerprint(("by column", {"place": Secrets(), "zone": Secrets()}))
    some = fingerprint(Secrets(pairs=((("ill",), ("well",)),)))
    columns = ("zone", "place")
    for named in (set(), {at_once}, {by_column}, {at_once, by_column}):
        assert Used(secrets=named).every_pair(columns)
        assert not Used(secrets={*named, some}).every_pair(columns)
    assert not Used(secrets={by_column}).every_pair(("zone",))
