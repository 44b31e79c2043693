"""Losses are exact, and add without rounding."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.losses import Approximate, Concentrated, Loss, Number, Pure, Total
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
