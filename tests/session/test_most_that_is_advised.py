"""No ε is advised that would itself be refused."""

from fractions import Fraction
from typing import Any

import pytest

from takifugu.costs.cost import Cost, Membership
from takifugu.costs.losses import Concentrated, Total
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Standing
from takifugu.ledger.charging import Payer
from takifugu.ledger.limits import Limit
from takifugu.session.release_cost import Charged, Prices
from takifugu.translation.protocol import LossTranslation
from tests.ledger.charges import KNOWN, RICH, Places, Rich, count

pytestmark = pytest.mark.nightly

DELTA = Fraction(1, 1000)
HOME = Cost.of({Membership(["home"]): 1})


class NothingByValue(Places):
    """It has a price for every cost, and finds no cost for any loss."""

    def to_cost(self, unit: Cost, pufferfish: float, **_: Any) -> Fraction:
        """Nothing."""
        del unit, pufferfish
        return Fraction(0)


class NothingInRho(Rich):
    """It has a price for every ρ, and finds no ρ for any loss."""

    def to_dp(self, pufferfish: float, /) -> float:
        """Nothing."""
        del pufferfish
        return 0.0


@pytest.mark.parametrize(
    ("translation", "other", "loss", "unit", "delta"),
    [
        (NothingByValue(), KNOWN, count("0.125", "home"), HOME, None),
        (NothingInRho(), RICH, Concentrated("0.01"), Cost.any(1), DELTA),
    ],
    ids=["by value", "rho"],
)
def test_no_epsilon_is_advised_where_each_would_be_refused(
    translation: LossTranslation,
    other: LossTranslation,
    loss: Charged,
    unit: Cost,
    delta: Fraction | None,
) -> None:
    room = Standing.under(
        Payer(None, Fraction(8), DELTA, (Total(),), (Total(),)), Limit(other, Fraction(8), DELTA)
    )
    at = delta or Fraction(0)
    assert Prices("ward", other).most(loss, at, [room]) > 1
    prices = Prices("ward", translation)
    for epsilon in (8, 1, "0.001"):
        with pytest.raises(UnsoundRequest):
            prices.allowed(epsilon, delta, unit)
    assert prices.most(loss, at, [room]) == 0
