"""Directed rounding, held against exact arithmetic."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import LEAST
from takifugu._core.rounding import UNIT, down, float_down, float_up, gamma, log_ratio_up, up

LARGEST, SMALLEST = math.nextafter(math.inf, 0.0), math.nextafter(0.0, 1.0)
probabilities = st.one_of(st.just(0.0), st.floats(LEAST, 1.0))


@given(value=st.one_of(st.fractions(-(10**6), 10**6), st.fractions(max_denominator=10**30)))
def test_floats_are_rounded_the_safe_way(value: Fraction) -> None:
    low, high = float_down(value), float_up(value)
    assert Fraction(low) <= value <= Fraction(high)
    assert low == high or math.nextafter(low, math.inf) == high


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_rounded_to_itself(value: float) -> None:
    assert float_down(Fraction(value)) == value == float_up(Fraction(value))


@given(value=st.integers(-1074, 1023), sign=st.sampled_from([-1, 1]))
def test_a_hair_beside_a_power_of_two_is_rounded_to_its_neighbour(value: int, sign: int) -> None:
    power = 2.0**value
    beside = sign * (Fraction(power) + Fraction(1, 2**2200))
    low, high = float_down(beside), float_up(beside)
    edges = sorted((sign * power, sign * math.nextafter(power, math.inf)))
    assert [low, high] == edges


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        (Fraction(0), 0.0, 0.0),
        (Fraction(1, 2**1100), 0.0, SMALLEST),
        (-Fraction(1, 2**1100), -SMALLEST, 0.0),
        (Fraction(3, 2**1075), SMALLEST, 2 * SMALLEST),
        (Fraction(LARGEST) + 1, LARGEST, math.inf),
        (Fraction(10**400), LARGEST, math.inf),
        (-Fraction(10**400), -math.inf, -LARGEST),
        (Fraction(2**1024 - 2**970 + 1), LARGEST, math.inf),
    ],
)
def test_floats_end_on_the_safe_side(value: Fraction, low: float, high: float) -> None:
    assert (float_down(value), float_up(value)) == (low, high)
    assert math.copysign(1, float_down(Fraction(0))) == 1


@pytest.mark.parametrize("value", [0.0, SMALLEST, 2.0**-1022, 1.0, 1e300])
def test_up_and_down_move_by_eight_units_of_roundoff(value: float) -> None:
    assert float(up(value)) >= value + 8 * UNIT and float(down(value)) <= value - 8 * UNIT
    assert float(up(-value)) == -float(down(value))


@given(
    st.lists(st.tuples(probabilities, probabilities), min_size=1, max_size=60),
    st.sampled_from(["sum", "dot", "matmul", "einsum"]),
)
def test_gamma_bounds_every_way_to_sum_products(terms: list[tuple[float, float]], way: str) -> None:
    a, b = np.array(terms).T
    computed = {
        "sum": lambda: (a * b).sum(),
        "dot": lambda: a @ b,
        "matmul": lambda: (np.tile(a, (7, 1)) @ np.tile(b[:, None], (1, 5)))[3, 2],
        "einsum": lambda: np.einsum("i,i->", a, b),
    }[way]()
    exact = sum((Fraction(x) * Fraction(y) for x, y in terms), Fraction(0))
    assert abs(Fraction(float(computed)) - exact) <= Fraction(gamma(len(terms))) * exact


@pytest.mark.parametrize("size", [1000, 4096])
def test_gamma_bounds_large_matrix_products(size: int) -> None:
    rng = np.random.default_rng(size)
    a, b = rng.dirichlet(np.ones(size), 3), rng.random((size, 4))
    product = a @ b
    for i, j in np.ndindex(3, 4):
        exact = sum(
            (
                Fraction(x) * Fraction(y)
                for x, y in zip(a[i].tolist(), b[:, j].tolist(), strict=True)
            ),
            Fraction(0),
        )
        assert abs(Fraction(float(product[i, j])) - exact) <= Fraction(gamma(size)) * exact


def test_gamma_is_the_bound_of_higham_for_two_more_terms() -> None:
    for n in (1, 10, 4096):
        assert gamma(n) >= (n + 2) * UNIT
        assert gamma(n) == pytest.approx((n + 2) * UNIT, rel=1e-9)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e3, 1e3))
def test_up_and_down_pass_the_rounding_of_a_few_operations(x: float, y: float, z: float) -> None:
    value = x + y  # one rounding
    exact = Fraction(x) + Fraction(y)
    assert Fraction(float(up(value))) > exact > Fraction(float(down(value)))
    product = z * y  # another; both in `up`
    exact = Fraction(z) * Fraction(y)
    assert Fraction(float(up(product))) > exact > Fraction(float(down(product)))
    assert float(up(value)) - value <= 9 * UNIT * (abs(value) + 1)


def test_up_keeps_infinity_and_down_keeps_minus_infinity() -> None:
    assert float(up(math.inf)) == math.inf
    assert float(down(-math.inf)) == -math.inf


@settings(max_examples=200)
@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1.0), st.floats(0, 1e-6), st.sampled_from([-1, 1]))
def test_log_ratio_up_allows_for_the_stated_error(
    n: float, d: float, error: float, sign: int
) -> None:
    # the worst that an error of that size can have done to both
    guaranteed = float(
        log_ratio_up(n * (1 - error), d * (1 + error), error=error * 1.01 + 4 * UNIT)
    )
    with mpmath.workdps(50):
        exact = mpmath.log(mpmath.mpf(n) / mpmath.mpf(d))
        assert mpmath.mpf(guaranteed) >= exact
        plain = float(log_ratio_up(n * (1 + sign * error), d, error=2 * error + 4 * UNIT))
        assert mpmath.mpf(plain) >= exact


def test_log_ratio_up_at_the_edges() -> None:
    assert float(log_ratio_up(0.0, 0.5, error=0.0)) == -math.inf
    assert float(log_ratio_up(0.5, 0.0, error=0.0)) == math.inf
    assert float(log_ratio_up(0.0, 0.0, error=0.0)) == -math.inf
