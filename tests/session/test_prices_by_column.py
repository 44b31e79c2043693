"""What each protected column pays of a price, and what lies just within or beyond a price."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from takifugu._core.rounding import float_up
from takifugu.costs.cost import Cost
from takifugu.costs.losses import Concentrated, Pure, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Position
from takifugu.priors.secrets import Secrets
from takifugu.session.release_cost import Prices
from takifugu.translation.rows.row_translation import RowTranslation
from tests.ledger.charges import DOUBLING, KNOWN, RICH, Doubling, count
from tests.raising import raises
from tests.session.test_prices import NONE, Loose, priced, standing

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


def test_one_column_pays_all_of_a_price() -> None:
    found = priced(ByFactor("heat"), Pure("0.25"), standing(ByFactor("heat"), "8"))
    assert found.by_column is None and found.alone == 0.5


def test_each_column_pays_its_part_and_no_more_than_the_price() -> None:
    rows = ByFactor("heat", "place")
    found = priced(rows, Pure("0.25"), standing(rows, "8"))
    assert found.alone == 0.75 and found.by_column == {"heat": 0.5, "place": 0.75}


# --- edges of prices and of what is advised ---


def test_a_price_is_of_a_loss_that_is_rounded_up() -> None:
    third = Prices("ward", DOUBLING).alone(Pure("1/3"), NONE)
    assert third == 2 * float_up(Fraction(1, 3)) and Fraction(third) > Fraction(2, 3)


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
