"""What each protected column pays of a price, and what lies just within or beyond a price."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from takifugu._rounding import float_up
from takifugu.costs import ANY, Column, Cost
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Position
from takifugu.losses import Concentrated, Metric, Pure, Total
from takifugu.priors.secrets import Secrets
from takifugu.session import release_cost
from takifugu.session.odds import odds
from takifugu.session.release_cost import APART, NEARLY, Prices
from takifugu.translation.accounting.totals import total_to_pufferfish
from takifugu.translation.rows.row_translation import RowTranslation
from tests.ledger.charges import DOUBLING, KNOWN, RICH, Doubling, count
from tests.raising import raises
from tests.session.test_prices import HOME, NONE, TINY, Loose, Tabled, cost, priced, standing

pytestmark = pytest.mark.nightly

TIMES = {"heat": 2, "place": 3}


class ByFactor(RowTranslation):
    """Each column loses so many times the largest cost, exactly; what it was asked is noted."""

    over = "row"

    def __init__(self, *columns: str) -> None:
        prior: Any = object()
        super().__init__({"prior": prior}, {column: Secrets() for column in columns})
        self.asked: list[tuple[Cost, ...]] = []

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """A factor of the largest."""
        self.asked.append(costs)
        largest = max(cost.scalar for cost in costs)
        return {column: float(TIMES[column] * largest) for column in self.secrets}


HEAT = Cost.of({Column("heat", ANY): 1})


def test_one_column_pays_all_of_a_price() -> None:
    found = priced(ByFactor("heat"), Pure("0.25"), standing(ByFactor("heat"), "8"))
    assert found.by_column is None and found.alone == 0.5


def test_each_column_pays_its_part_and_no_more_than_the_price() -> None:
    rows = ByFactor("heat", "place")
    found = priced(rows, Pure("0.25"), standing(rows, "8"))
    assert found.alone == 0.75 and found.by_column == {"heat": 0.5, "place": 0.75}
    prices = Prices("ward", rows)
    assert prices._by_column(Pure("0.5"), NONE, 1.25) == {"heat": 1.0, "place": 1.25}
    assert prices._by_column(Pure("0.5"), NONE, 0.75) == {"heat": 0.75, "place": 0.75}


def test_each_column_pays_for_a_rho_by_itself() -> None:
    rows, delta = ByFactor("heat", "place"), Fraction(1, 1000)
    found = Prices("ward", rows)._by_column(Concentrated("0.01"), delta, 99.0)
    total = Total().plus(Concentrated("0.01"))
    by_hand = {
        column: total_to_pufferfish(lambda dp, n=times: (dp, n * dp), total, delta)  # type: ignore[misc]
        for column, times in TIMES.items()
    }
    assert found == by_hand and 0 < by_hand["heat"] < by_hand["place"] < 99


def test_columns_pay_for_a_cost_that_is_nearly_one_that_was_priced_as_for_that_one() -> None:
    rows = ByFactor("heat", "place")
    prices = Prices("ward", rows)
    assert prices.alone(Metric(HEAT * 2), NONE) == 6.0

    def paid_for(amount: Fraction) -> Cost:
        rows._known.clear()
        rows.asked.clear()
        assert prices._by_column(Metric(HEAT * amount), NONE, 99.0) is not None
        ((cost,),) = rows.asked
        return cost

    two = Fraction(2)
    for nearly in (two, two * NEARLY, two * (1 + NEARLY) / 2):
        assert paid_for(nearly) == HEAT * 2
    for other in (two * NEARLY - TINY, two + TINY, Fraction(1, 4), Fraction(7)):
        assert paid_for(other) == HEAT * other
    prices = Prices("ward", rows)  # nothing was priced
    for fresh in (Fraction(1), (1 + NEARLY) / 2):
        assert paid_for(fresh) == HEAT * fresh
    assert prices._by_column(Metric(HEAT * two), NONE, 99.0) == {
        "heat": 4.0,
        "place": 6.0,
    }


# --- edges of prices and of what is advised ---


def test_what_is_close_and_what_is_apart() -> None:
    """Prices that are a millionth apart are one; an ε that is 2 in 1000 below asks for less."""
    assert Fraction(2**20 - 1, 2**20) == NEARLY and Fraction(499, 500) == APART
    named = {f"c{place}": 8.0 - place for place in range(8)}
    assert cost(by_column=named).alone_words == (
        "epsilon = 0.5 alone (c0 8, c1 7, c2 6, c3 5, c4 4, c5 3, 2 more at most 2)"
    )


def test_a_price_is_of_a_loss_that_is_rounded_up() -> None:
    third = Prices("ward", DOUBLING).alone(Pure("1/3"), NONE)
    assert third == 2 * float_up(Fraction(1, 3)) and Fraction(third) > Fraction(2, 3)


def test_nothing_is_known_of_a_price_before_it_is_asked_for() -> None:
    for amount in (Fraction(1), NEARLY, (1 + NEARLY) / 2):
        price = Prices("ward", KNOWN).alone(Metric(HOME * amount), NONE)
        assert price == float_up(4 * amount)


def test_odds_are_those_of_the_release_and_of_the_budget() -> None:
    delta, whole = Fraction(1, 1000), Fraction(1, 100)
    found = cost(delta=delta, budget_delta=whole)
    alone, everything = odds(0.5, delta), odds(Fraction(4), whole)
    assert found.odds_words == (
        f"for one entry: {alone.words} from this release; from all that the budget admits they"
        f" {everything.outcome}"
    )
    assert replace(found, fits=False).odds_words == (
        f"for one entry: {everything.words} from all that the budget admits"
    )
    told = found.describe()["odds"]
    assert told == {"alone": alone.describe(), "budget": everything.describe()}


def test_whose_budget_has_too_little_delta_is_said() -> None:
    whole = Position("ward", None, Fraction(1), Fraction(1, 1000), (Total(),))
    for analyst, whose in ((None, "of dataset 'ward'"), ("Ann", "of analyst 'Ann' on dataset")):
        with raises(UnsoundRequest, reason="above-budget") as caught:
            Prices("ward", RICH).refuse_delta(Fraction(1, 10), [replace(whole, analyst=analyst)])
        assert whose in str(caught.value)


def test_no_room_is_no_advice_in_every_currency() -> None:
    full = standing(RICH, "2", Pure(2), delta="1/1000")
    assert Prices("ward", RICH).most(Concentrated("0.01"), Fraction(1, 1000), [full]) == 0
    assert Prices("ward", RICH).most(Pure("0.01"), NONE, [full]) == 0
    spent = standing(KNOWN, "12", Pure(2))
    assert Prices("ward", KNOWN).most(count("0.125", "home"), NONE, [spent]) == 0


def test_a_most_below_a_millionth_is_told_as_nothing() -> None:
    nearly_full = standing(DOUBLING, "4", Pure(2 - Fraction(1, 10**9)))
    found = priced(DOUBLING, Pure("0.25"), nearly_full)
    assert found.most == 0 and found.describe()["most"] == "0"


def test_the_most_is_lowered_to_what_is_covered_also_below_one() -> None:
    found = priced(Loose(Fraction(6, 10**6)), Pure("0.25"), standing(Loose(NONE), "0.5"))
    assert Decimal("0.499995") <= found.most <= Decimal("0.5")


def test_what_is_advised_in_four_digits_must_be_accepted_too() -> None:
    """0.5001 may be asked for, and a message would advise 0.5, which is below the table."""

    class Later(Doubling):
        least = 0.50005

    whole = standing(Later(), "4", Pure(2 - Fraction("0.25004")))
    assert priced(Later(), Pure("0.25"), whole).most == 0
    whole = standing(Later(), "4", Pure(2 - Fraction("0.25005")))
    assert priced(Later(), Pure("0.25"), whole).most == Decimal("0.5001")


def test_an_epsilon_is_covered_by_a_room_that_is_all_of_its_allowance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prices, delta, eighth = Prices("ward", Tabled()), Fraction(1, 1000), Fraction(1, 8)
    half = Decimal("0.5")
    asked = list[tuple[Any, ...]]()

    def rho(*given: Any) -> Fraction:
        asked.append(given)
        return eighth

    monkeypatch.setattr(release_cost, "rho_within", rho)
    for loss, room in (
        (Pure(1), 2 * eighth),
        (Metric(HOME), 2 * eighth),
        (Concentrated(1), eighth),
    ):
        assert prices._covered(half, loss, delta, room)
        assert not prices._covered(half, loss, delta, room - TINY)
    assert [given[1:] for given in asked] == [(0.5, delta)] * 2
    below = Decimal("0.25")  # the table begins at 0.5, and costs are translated without it
    assert prices._covered(below, Metric(HOME), NONE, eighth)
    assert not prices._covered(below, Pure(1), NONE, Fraction(9))
    assert not prices._covered(below, Concentrated(1), delta, Fraction(9))


def test_a_little_less_than_a_price_is_rounded_down_to_millionths() -> None:
    prices = Prices("ward", KNOWN)
    assert prices._asked_again(1.0, None) == Decimal("0.997999")  # 0.998 is no float
    assert prices._asked_again(500.0, None) == Decimal(499)
    assert prices._asked_again(0.123456789, None) == Decimal("0.123209")
    for alone in (0.3, 2.0, 17.125, 1e-3):
        found = Fraction(prices._asked_again(alone, None))
        assert 0 <= Fraction(alone) * APART - found < Fraction(2, 10**6)
    again = priced(KNOWN, count("0.25", "home"), standing(KNOWN, "12"))
    assert again.alone == 1.0 and again.most == Decimal("0.997999")
