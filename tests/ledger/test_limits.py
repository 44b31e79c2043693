"""What a translated budget admits at its edges, what it remembers, and how much still fits."""

import math
from fractions import Fraction

import pytest

from takifugu._core.rounding import float_up
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Metric, Total
from takifugu.ledger.frontier import Frontier
from takifugu.ledger.limits import Limit, after, to_pufferfish
from takifugu.translation.certify.closed import Filter
from tests.ledger.charges import DOUBLING, KNOWN, Blind, Doubling, Places, count, total

pytestmark = pytest.mark.nightly

NO_DELTA = Fraction(0)


def nested(many: int, size: str) -> Total:
    """A total of counts of sets, each of which holds the one before it."""
    labels, found = ["home"], Total()
    for place in range(many):
        labels.append(f"l{place}")
        found = found.plus(count(size, *labels))
    return found


class Boast(Doubling):
    """Allows more than it should by a factor; what is too much reveals everything."""

    def __init__(self, factor: float, limit: float) -> None:
        self.factor, self.limit = factor, limit

    def to_pufferfish(self, dp: float, /) -> float:
        """Infinite above the limit."""
        return 2 * dp if 2 * dp <= self.limit else math.inf

    def to_dp(self, pufferfish: float, /) -> float:
        """Too much."""
        return self.factor * pufferfish / 2


@pytest.mark.parametrize("budget", [0.25, 1.0, 1.5, 40.0])
@pytest.mark.parametrize("apart", [0.0, 2.0**-49, 2.0**-45, 2.0**-40, 2.0**-20])
def test_an_allowance_is_lowered_until_it_is_within_the_budget(budget: float, apart: float) -> None:
    exact = Fraction(budget) / 2
    for translation in (Boast(1 + apart, budget), Boast(1 + apart, math.inf)):
        allowed = Limit(translation, Fraction(budget), NO_DELTA).allowed
        assert exact * (1 - Fraction(32 * apart)) <= allowed <= exact


def test_nothing_is_allowed_where_far_too_much_is_promised() -> None:
    assert Limit(Boast(3, 1.0), Fraction(1), NO_DELTA).allowed == 0
    assert Limit(DOUBLING, NO_DELTA, NO_DELTA).allowed == 0


def test_an_epsilon_beyond_all_floats_is_infinite_and_never_asked_for() -> None:
    class Finite(Doubling):
        def to_pufferfish(self, dp: float, /) -> float:
            assert dp < math.inf
            return 0.0

    assert to_pufferfish(Finite(), (Total(Fraction(2) ** 1100),), NO_DELTA) == math.inf
    assert to_pufferfish(Finite(), (Total(Fraction(2) ** 1000),), NO_DELTA) == 0.0
    third = Fraction(1, 3)
    assert to_pufferfish(DOUBLING, (Total(third),), NO_DELTA) == 2 * float_up(third) > 2 * third


class Asked(Places):
    """Notes how often it is asked what a cost means."""

    def __init__(self) -> None:
        self.times = 0

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """Counted."""
        self.times += 1
        return super().cost_to_pufferfish(*costs)


def test_what_was_refused_or_is_larger_is_never_taken_for_what_was_admitted() -> None:
    translation = Asked()
    limit = Limit(translation, Fraction(6), NO_DELTA)
    small, large = (total(home="1.25"),), (total(home="1.5"),)
    beyond, both = (total(home="1.51"),), (total(home="1.25"), total(ward="1.25"))
    for totals in (small, large, beyond, both):
        assert limit.decided(totals) is None
    assert limit.admits(small) and translation.times == 1
    for totals in (large, beyond, both):
        assert limit.decided(totals) is None
    assert not limit.translate(beyond)
    for _ in range(2):
        assert limit.decided(beyond) is False and not limit.admits(beyond)
        assert limit.decided(large) is None
        assert not limit.admits(both)  # each alone would do
    assert limit.admits(large)
    asked = translation.times
    for size in ("1.25", "1.3", "1.5"):  # no more than what was admitted
        assert limit.decided((total(home=size),)) is True
    assert limit.translate(small)  # forgets nothing larger
    assert limit.decided((total(home="1.4"),)) is True
    assert translation.times == asked
    assert limit.decided(beyond) is False
    assert limit.decided((Total(),)) is True and limit.decided(()) is True


def test_a_budget_that_admits_a_loss_bounds_it() -> None:
    limit = Limit(DOUBLING, Fraction(1, 3), NO_DELTA)
    within = (Total(limit.allowed),)
    assert limit.admits(within)
    assert limit.capped(0.25, within) == 0.25
    assert limit.capped(9.0, within) == float_up(Fraction(1, 3)) > Fraction(1, 3)
    assert limit.capped(9.0, (Total(Fraction(1)),)) == 9.0


def largest(admits: Filter, spent: Frontier, unit: Cost, beside: Frontier) -> Fraction:
    """The largest factor by trying, up to a part of 2^40."""
    low, high = Fraction(0), Fraction(64)
    for _ in range(60):
        middle = (low + high) / 2
        totals = (*beside, *(total.plus(Metric(unit * middle)) for total in spent))
        low, high = (middle, high) if all(map(admits.admits, totals)) else (low, middle)
    return low


@pytest.mark.parametrize(
    ("spent", "unit", "beside"),
    [
        ((Total(),), count("1/3", "home"), ()),
        ((Total(Fraction(1, 3)),), count("0.7", "home"), ()),
        ((total(home="0.3"),), count("0.7", "home"), ()),
        ((total(home="0.3"),), count("0.7", "ward"), ()),
        ((total(home="0.3", ward="0.9"),), count("3", "work"), ()),
        ((total(home="0.3"), total(ward="1.7")), count("0.5", "ward"), ()),
        ((total(ward="1.7"), total(home="0.3")), count("0.5", "work"), ()),
        ((total(home="0.3"),), count("0.5", "work"), (total(ward="1.9"),)),
        ((total(home="0.3"),), count("0.5", "work"), (total(ward="2.1"),)),
        ((total(home="2"),), count("0.5", "home"), ()),
        ((total(home="2.5"),), count("0.5", "work"), ()),
        ((nested(10, "0.1"),), count("0.5", "home"), ()),  # sets that all tell home apart
        ((nested(10, "0.1"),), count("2", "home"), ()),
        ((nested(40, "1/60"), Total(Fraction(1))), count("0.3", "home", "l0"), ()),
    ],
)
def test_the_factor_of_a_cost_by_its_epsilon_is_the_largest_that_fits(
    spent: Frontier, unit: Metric, beside: Frontier
) -> None:
    limit = Limit(Blind(), Fraction(12), NO_DELTA)  # allows 2, and can read no cost
    found = limit.room(spent, unit, beside)
    true = largest(
        Filter.from_budget(Fraction(2), Fraction(12), NO_DELTA), spent, unit.cost, beside
    )
    assert true * (1 - Fraction(1, 2**40)) <= found <= true + Fraction(1, 2**50)
    totals = after(spent, Metric(unit.cost * found), beside)
    assert not found or limit.admits(totals)


def test_what_others_have_lost_counts_beside_what_is_read() -> None:
    limit = Limit(KNOWN, Fraction(12), NO_DELTA)
    read, unit = (total(home="0.5"),), count("1", "home")

    def room(*beside: Total) -> Fraction:
        found = limit.room(read, unit, beside)
        assert limit.admits(after(read, Metric(unit.cost * found), beside))
        above = Metric(unit.cost * (found + Fraction(1, 2**20)))
        assert not limit.admits(after(read, above, beside))
        return found

    assert room() == Fraction(5, 2)
    assert room(total(home="0.25")) == Fraction(5, 2)
    assert room(total(home="2.75")) == Fraction(5, 2)  # more of the same
    assert room(total(ward="1")) == 2  # both changes between ward and work add 1 each
    assert room(total(ward="1"), total(home="0.25")) == 2
