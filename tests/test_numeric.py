"""Directed rounding, held against exact arithmetic; arrays that are refused, in one line."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidMechanism, InvalidPrior
from takifugu.numeric import (
    LEAST,
    UNIT,
    distribution,
    down,
    frozen,
    gamma,
    log_ratio_up,
    up,
)

chances = st.one_of(st.just(0.0), st.floats(LEAST, 1.0))


def test_frozen_arrays_are_copies_that_cannot_be_written() -> None:
    given = np.array([1.0, -0.0])
    kept = frozen(given)
    given[0] = 5.0
    assert kept[0] == 1.0 and math.copysign(1, kept[1]) == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 2.0


@given(
    st.lists(st.tuples(chances, chances), min_size=1, max_size=60),
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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.4], r"`p` sums to 0.9; it must sum to 1$"),
        ([[0.5, 0.5], [0.9, 0.2]], r"`p` row 1 sums to 1.1; it must sum to 1 along every row"),
        ([[0.5, 0.5], [math.nan, 1]], r"`p` row 1, place 0 is not a number; it must hold numbers"),
        ([1.5, -0.5], r"`p` place 1 is -0.5; it must be a probability, 0 or more"),
        ([math.inf, 0.0], r"`p` place 0 is inf"),
        ([1.0, 1e-200], r"`p` place 1 is 1e-200; it must be 0 or at least 3.05e-151"),
        ([], r"`p` has shape \(0,\); it must hold at least one number"),
        (0.5, r"`p` has shape \(\); it must hold at least one number"),
        (["a", "b"], r"`p` is not an array of numbers; it must hold one number in each place"),
        ([[1.0], [0.5, 0.5]], r"`p` is not an array of numbers"),
        ([1j, 0], r"`p` is not an array of numbers"),
    ],
)
def test_what_is_no_distribution_is_refused_in_one_line(values: object, message: str) -> None:
    for problem in (InvalidPrior, InvalidMechanism):
        with pytest.raises(problem, match=message) as caught:
            distribution(values, "p", problem)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
        assert caught.value.field == "p"


def test_a_distribution_may_be_off_by_the_stated_tolerance() -> None:
    assert distribution([0.5, 0.5 + 0.9e-9], "p", InvalidPrior).sum() > 1
    with pytest.raises(InvalidPrior):
        distribution([0.5, 0.5 + 1.1e-9], "p", InvalidPrior)
    thirds = np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    assert distribution(thirds, "p", InvalidPrior)[0] == 1 / 3
