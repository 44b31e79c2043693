"""Totals at their edges: equal ones, ones that differ in one currency, and which two become one."""

from fractions import Fraction
from itertools import permutations

import pytest

from takifugu.costs.cost import Cost
from takifugu.costs.losses import Approximate, Concentrated, Metric, Pure, Total
from takifugu.ledger.frontier import dominates
from takifugu.ledger.limits import (
    Limit,
    Limits,
    after,
    spent_epsilon,
    to_pufferfish,
)
from tests.ledger.charges import DOUBLING, KNOWN, PLACES, RICH, Places, count

pytestmark = pytest.mark.nightly


def total(epsilon: str = "0", delta: str = "0", rho: str = "0", **counts: str) -> Total:
    """A total of currencies and of counts of single labels."""
    found = Total(Fraction(epsilon), Fraction(delta), Fraction(rho))
    for label, size in counts.items():
        found = found.plus(count(size, label))
    return found


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
