"""Numbers that no float holds: refused in words wherever numbers are taken."""

import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from takifugu._core.exact import at_least_zero, is_finite, shown
from takifugu.declarations import Order
from takifugu.errors import TakifuguError
from takifugu.mechanisms.planner import plan_top_k
from takifugu.mechanisms.post import rounded
from takifugu.priors import MarkovChain
from takifugu.priors.fitting import smooth
from takifugu.priors.prior import FittedRows
from takifugu.session import QueryOptions
from takifugu.session.release_cost import checked_delta
from takifugu.tables.scope import place_in_order
from takifugu.translation.accounting.composition import approximate
from takifugu.translation.translation import Translation

HUGE = 10**400
CHAIN = MarkovChain(np.array([[0.7, 0.3], [0.4, 0.6]]), length=3)
TRANSLATION = Translation(CHAIN)


@pytest.mark.parametrize(
    "given",
    [
        lambda: TRANSLATION.to_pufferfish(HUGE),
        lambda: TRANSLATION.to_pufferfish([0.1, HUGE, 0.1]),
        lambda: TRANSLATION.to_dp(HUGE),
        lambda: approximate(TRANSLATION, HUGE, 0.0),
        lambda: rounded([HUGE]),
        lambda: at_least_zero(-HUGE, "epsilon"),
        lambda: checked_delta("-1e400"),
        lambda: FittedRows("rows.csv", "who", "at", before=HUGE),
        lambda: place_in_order(HUGE, Order("at", "number"), zoned=False, what="start"),
        lambda: smooth(np.eye(2), tau=-np.inf),
        lambda: plan_top_k(3, 1, translation=TRANSLATION, epsilon=1, reference=[1, 2, HUGE]),
        lambda: MarkovChain([[HUGE, 1], [0, 1]]),  # type: ignore[arg-type]
        lambda: QueryOptions("top_k", k=1, reference=[1, 2, HUGE]),
    ],
)
def test_a_number_beyond_float64_is_refused(given: Callable[[], object]) -> None:
    with pytest.raises(TakifuguError):
        given()


def test_numbers_that_no_float_holds_are_shown() -> None:
    assert shown(Fraction(1, 3)) == "0.333333" and shown(Fraction(-2)) == "-2"
    assert (shown(Fraction(HUGE)), shown(Fraction(-HUGE))) == ("beyond 1.8e308", "beyond -1.8e308")


def test_what_a_float_holds_is_finite() -> None:
    largest = sys.float_info.max
    assert is_finite(largest) and is_finite(-int(largest)) and is_finite(0)
    assert not any(map(is_finite, (HUGE, -HUGE, np.inf, -np.inf, np.nan, 2 * int(largest))))
