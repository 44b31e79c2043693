"""What all readings of rows share: how much more may be spent, under a loss that is known."""

from collections.abc import Mapping
from fractions import Fraction

import pytest

from takifugu.costs.cost import Cost
from takifugu.errors import UnsoundRequest
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.secrets import Secrets
from takifugu.translation import RowTranslation
from takifugu.translation.rows.row_translation import maximal

PRIOR = IndependentEntries({"a": {0: 0.5, 1: 0.5}})


class Multiple(RowTranslation):
    """Every cost loses a multiple of its scalar."""

    over = "row"
    times = Fraction(2)

    def by_column(self, costs: tuple[Cost, ...], /) -> Mapping[str, float]:
        """The largest of them."""
        return {"a": float(max(cost.scalar for cost in costs) * self.times)}


def multiple(times: Fraction) -> Multiple:
    made = Multiple({"prior": PRIOR}, {"a": Secrets()})
    made.times = times
    return made


@pytest.mark.parametrize("unit", ["0.001", "1", "250"])
def test_as_much_of_a_unit_as_the_loss_allows_whatever_its_size(unit: str) -> None:
    size = float(Fraction(unit))
    rows = multiple(Fraction(2))
    found = float(rows.to_cost(Cost.any(unit), 3.0))
    assert found == pytest.approx(1.5 / size, rel=1e-5) and found * size <= 1.5
    spent = float(rows.to_cost(Cost.any(unit), 3.0, spent=(Cost.any(1),)))
    assert spent == pytest.approx(0.5 / size, rel=1e-5) and spent * size <= 0.5
    # what other rows have lost leaves room, or none
    assert float(rows.to_cost(Cost.any(unit), 3.0, beside=(Cost.any(1),))) == pytest.approx(
        found, rel=1e-5
    )
    assert rows.to_cost(Cost.any(unit), 3.0, beside=(Cost.any("1.5"),)) == 0
    assert rows.to_cost(Cost.any(unit), 3.0, spent=(Cost.any(2),)) == 0
    # a loss far below the cost: up to 64 times the target
    for share, told in ((50, 50 * 3.0), (1000, 64 * 3.0)):
        less = float(multiple(Fraction(1, share)).to_cost(Cost.any(unit), 3.0))
        assert less == pytest.approx(told / size, rel=1e-5)


def test_losses_that_are_no_number_and_units_of_nothing() -> None:
    rows = multiple(Fraction(2))
    assert rows.to_cost(Cost(), 3.0) == 0 and rows.to_cost(Cost.any(1), 0.0) == 0
    assert rows.to_dp(3.0) == pytest.approx(1.5, rel=1e-5) and rows.to_dp(3.0) <= 1.5
    assert rows.to_pufferfish(0.5) == 1.0 and rows.losses() == {"a": 0.0}
    for bad in (-1.0, float("inf"), float("nan")):
        with pytest.raises(UnsoundRequest) as caught:
            rows.to_cost(Cost.any(1), bad)
        assert caught.value.field == "pufferfish"
    assert maximal([Cost.any(1), Cost.any(2), Cost.any(2)]) == (Cost.any(2),)
