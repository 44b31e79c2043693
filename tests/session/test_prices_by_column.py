"""What each protected column pays of a price, by a translation that is a factor for each."""

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from takifugu.costs import ANY, Column, Cost
from takifugu.losses import Concentrated, Metric, Pure, Total
from takifugu.priors.secrets import Secrets
from takifugu.session.release_cost import APART, NEARLY, Prices
from takifugu.translation.accounting.totals import total_to_pufferfish
from takifugu.translation.rows.row_translation import RowTranslation
from tests.ledger.charges import KNOWN, count
from tests.session.test_prices import NONE, TINY, priced, standing

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
    assert Prices("ward", rows)._by_column(Metric(HEAT * two), NONE, 99.0) == {
        "heat": 4.0,
        "place": 6.0,
    }


def test_a_little_less_than_a_price_is_rounded_down_to_millionths() -> None:
    prices = Prices("ward", KNOWN)
    assert prices._asked_again(1.0, None) == Decimal("0.997999")  # 0.998 is no float
    assert prices._asked_again(500.0, None) == Decimal(499)
    assert prices._asked_again(0.123456789, None) == Decimal("0.123209")
    for alone in (0.3, 2.0, 17.125, 1e-3):
        found = Fraction(prices._asked_again(alone, None))
        assert 0 <= Fraction(alone) * APART - found < Fraction(2, 10**6)
    cost = priced(KNOWN, count("0.25", "home"), standing(KNOWN, "12"))
    assert cost.alone == 1.0 and cost.most == Decimal("0.997999")
