"""Losses are exact, and add without rounding."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu._core.exact import LARGEST_EXPONENT, Number, exactly
from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure, Total
from takifugu.errors import UnsoundRequest
from tests.raising import raises


@given(values=st.lists(st.floats(0, 1e6), max_size=30))
def test_pure_losses_add_exactly(values: list[float]) -> None:
    total = Total.of([Pure(v) for v in values])
    assert total.epsilon == sum((Fraction(v) for v in values), Fraction(0))
    assert total.delta == total.rho == 0


@given(
    losses=st.lists(
        st.one_of(
            st.floats(0, 9).map(Pure),
            st.floats(0, 9).map(Concentrated),
            st.tuples(st.floats(0, 9), st.floats(0, 0.5)).map(lambda t: Approximate(*t)),
        ),
        max_size=12,
    )
)
def test_the_order_does_not_matter(losses: list[Loss]) -> None:
    assert Total.of(losses) == Total.of(reversed(losses))


@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "x", "1/0", None])
def test_a_loss_is_a_finite_number_of_at_least_zero(value: Number) -> None:
    for build in (Pure, Concentrated, lambda v: Approximate(1, v), lambda v: Approximate(v, 0)):
        with pytest.raises(UnsoundRequest):
            build(value)


def test_delta_stays_below_one() -> None:
    with raises(UnsoundRequest, field="delta", given=1):
        Approximate(1, 1)


@pytest.mark.parametrize(
    "text",
    [
        "1e999999999",
        "1E-1000",
        "2.5e+0001000",
        "1e9_999_999_999",
        "1e９９９９９９９９９",
        "1e-1_000 ",
    ],
)
def test_a_number_that_would_fill_the_memory_is_refused(text: str) -> None:
    with raises(UnsoundRequest, field="epsilon", needed=LARGEST_EXPONENT):
        exactly(text, "epsilon")


def test_the_longest_numbers_are_exact() -> None:
    assert exactly("1e-999", "epsilon") == Fraction(1, 10**999)
    assert exactly("1e0300", "epsilon") == 10**300


def test_digits_are_exact_and_a_truth_is_no_number() -> None:
    assert exactly(Decimal("0.1"), "epsilon") == exactly("0.1", "epsilon") == Fraction(1, 10)
    with raises(UnsoundRequest, field="epsilon", needed=LARGEST_EXPONENT):
        exactly(Decimal("1e99999"), "epsilon")
    for wrong in (True, False, Decimal("NaN"), Decimal("Infinity")):
        with raises(UnsoundRequest, field="epsilon"):
            exactly(wrong, "epsilon")
