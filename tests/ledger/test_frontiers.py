"""Totals at their edges: equal ones, ones that differ in one currency, and which two become one."""

import math
from fractions import Fraction
from itertools import permutations, product

import pytest

from takifugu.costs.cost import Cost
from takifugu.costs.losses import Approximate, Concentrated, Metric, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger.frontier import MOST_BITS, MOST_TOTALS, bounded, dominates, joined, worst
from takifugu.ledger.limits import (
    Limit,
    Limits,
    after,
    spent_epsilon,
    to_pufferfish,
)
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import DOUBLING, KNOWN, PLACES, RICH, Blind, Places, count
from tests.raising import raises

pytestmark = pytest.mark.nightly

LABELS = [f"l{place}" for place in range(MOST_TOTALS + 1)]


def total(epsilon: str = "0", delta: str = "0", rho: str = "0", **counts: str) -> Total:
    """A total of currencies and of counts of single labels."""
    found = Total(Fraction(epsilon), Fraction(delta), Fraction(rho))
    for label, size in counts.items():
        found = found.plus(count(size, label))
    return found


SCALARS = [total(*parts) for parts in product(("0", "1", "2"), repeat=3)]


def test_scalars_dominate_where_none_is_less() -> None:
    for one, other in product(SCALARS, repeat=2):
        parts = zip(
            (one.epsilon, one.delta, one.rho), (other.epsilon, other.delta, other.rho), strict=True
        )
        assert dominates(one, other) is all(mine >= others for mine, others in parts)


@pytest.mark.parametrize(
    ("one", "other", "does"),
    [
        (total(home="1"), total(home="1"), True),
        (total(home="1"), total(home="1.000001"), False),
        (total("1"), total(home="1"), True),  # ε of any change covers a count
        (total("1"), total(home="1.5"), False),
        (total("1", home="1"), total(home="2"), True),
        (total("1", home="1"), total(home="1", ward="1"), True),
        (total("1", home="1"), total("0.5", ward="1"), False),
        (total(home="1"), total(ward="1"), False),
        (total(home="1", ward="1"), total(home="1"), True),
        (total(home="1"), total("0.5"), False),
        (total(home="2"), total(home="1", ward="1"), False),  # more of one is not more of another
        (total(ward="2"), total(home="1", ward="1"), False),
        (total("1", home="2"), total("0.5", home="1", ward="0.6"), False),
        (total("1", home="2"), total("0.5", home="1", ward="0.5"), True),
        (total("1", home="1"), total("0", home="1.5", ward="0.6"), False),
        (total(home="1"), total(delta="1e-9"), False),
    ],
)
def test_what_is_more_of_epsilon_makes_up_for_less_of_a_count(
    one: Total, other: Total, does: bool
) -> None:
    assert dominates(one, other) is does
    if does:
        for pair in permutations(PLACES, 2):
            assert one.cost.between(*pair) >= other.cost.between(*pair)


def test_the_total_that_grows_least_covers_one_too_many() -> None:
    apart = [total(**{label: "1"}) for label in LABELS[:MOST_TOTALS]]
    near = total(l0="0.4", l8="0.5")
    found = worst([*apart, near])
    assert len(found) == MOST_TOTALS
    assert set(found) == {*apart[1:], total(l0="1", l8="0.5")}
    assert all(any(dominates(one, old) for one in found) for old in (*apart, near))


def test_what_is_rounded_is_hardly_more_and_short_again() -> None:
    for value in (Fraction(1, 3) + Fraction(1, 2**1300), Fraction(7, 3**900)):
        found = bounded(value)
        assert value < found < value + Fraction(1, 2**1100)
        assert found.denominator.bit_length() <= MOST_BITS
        parts = joined(Total(value, value, value), total("1", "2", "3", home="1"))
        assert parts.epsilon == bounded(value + 1) > value + 1
        assert parts.delta == bounded(value + 2) > value + 2
        assert parts.rho == bounded(value + 3) > value + 3


def test_what_is_spent_is_at_most_a_budget_that_admits_it() -> None:
    class Loose(Places):
        """Translates a cost to a little more than it should."""

        def cost_to_pufferfish(self, *costs: Cost) -> float:
            return super().cost_to_pufferfish(*costs) * (1 + 2**-30)

    loose = Loose()
    spent = (Total().plus(count("1", "home")),)
    exact = to_pufferfish(KNOWN, spent, Fraction(0))
    assert exact == 4.0
    assert to_pufferfish(loose, spent, Fraction(0)) > 4.0
    assert spent_epsilon(loose, spent, None, Fraction(0)) > 4.0
    assert spent_epsilon(loose, spent, Fraction(4), Fraction(0)) > 4.0  # not admitted
    assert spent_epsilon(loose, spent, Fraction(5), Fraction(0), Limits()) > 4.0
    assert spent_epsilon(loose, spent, Fraction(6), Fraction(0)) < 4.1


@pytest.mark.parametrize("value", [-1.0, math.nan])
@pytest.mark.parametrize("spent", [total("1"), total(home="1"), total("1", "1e-9")])
def test_a_translation_below_zero_or_of_no_number_is_broken(value: float, spent: Total) -> None:
    class Broken(LossTranslation):
        def to_pufferfish(self, dp: float, /) -> float:
            del dp
            return value

        def to_dp(self, pufferfish: float, /) -> float:
            return pufferfish

        def cost_to_pufferfish(self, *costs: Cost) -> float:
            del costs
            return value

        def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
            del total, delta
            return value

    with raises(UnsoundRequest, reason="broken translation"):
        to_pufferfish(Broken(), (spent,), Fraction(1, 1000))
    assert to_pufferfish(Broken(), (Total(),), Fraction(0)) == 0.0  # nothing was read


@pytest.mark.parametrize("allowed", [-1.0, math.nan, math.inf])
def test_an_allowance_that_is_no_amount_is_broken(allowed: float) -> None:
    class Broken(LossTranslation):
        def to_pufferfish(self, dp: float, /) -> float:
            return dp

        def to_dp(self, pufferfish: float, /) -> float:
            del pufferfish
            return allowed

    with raises(UnsoundRequest, reason="broken translation"):
        Limit(Broken(), Fraction(1), Fraction(0))


def test_a_cost_that_cannot_be_read_counts_as_the_epsilon_that_covers_it() -> None:
    spent = (total(home="1"), total(ward="2"))
    assert to_pufferfish(Blind(), spent, Fraction(0)) == 12.0
    limit = Limit(Blind(), Fraction(12), Fraction(0))
    assert limit.allowed == 2
    assert limit.room((total(),), count("1", "home")) == 2
    assert limit.room(spent, count("1", "home")) == 0
    assert limit.room((total(home="1"),), count("1", "ward")) == 1


def test_room_is_that_of_the_currency_beside_what_was_spent() -> None:
    limit = Limit(DOUBLING, Fraction(4), Fraction(0))
    assert limit.room((total("0.5"),), Pure("1")) == Fraction(3, 2)
    assert limit.room((total("0.5"), total("1.5")), Pure("1")) == Fraction(1, 2)
    assert limit.room((total("0.5"),), Metric(Cost.any(2))) == Fraction(3, 4)
    known = Limit(KNOWN, Fraction(12), Fraction(0))
    assert known.room((total(),), count("1", "home")) == 3  # four times what it costs
    assert known.room((total(home="1"),), count("1", "home")) == 2
    assert known.room((total(),), count("1", "home"), (total(home="3"),)) == 3
    full = (total(home="3"),)  # which takes the whole budget by value, and more than it by ε
    assert known.room((total(),), Pure("1"), full) == 0
    assert known.admits(full) and not known.admits(after((total(),), Pure("1e-9"), full))
    half = (total(home="1.5"),)
    room = known.room((total(),), Pure("1"), half)
    assert room == 2 and known.admits(after((total(),), Pure(room), half))
    most = (total(home="2.5"),)
    room = known.room((total(),), Pure("1"), most)
    assert room == 1 and known.admits(after((total(),), Pure(room), most))  # 10 + 2 · 1
    rich = Limit(RICH, Fraction(1), Fraction(1, 1000))
    assert rich.room((total(),), Concentrated("0.001")) > 0
    assert rich.room((total(),), Approximate("0.1", "1e-6")) > 0
    assert rich.room((total(),), Approximate("0.1", "0.01")) == 0  # more δ than there is
    assert rich.room((total(),), Concentrated("0.001"), (total(home="9"),)) == 0
