"""Conversions and margins by themselves: exact or to many digits, and never on the unsafe side."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import pytest

from takifugu.costs.losses import Approximate, Concentrated, Total
from takifugu.errors import UnsoundRequest
from takifugu.translation import zcdp_epsilon
from takifugu.translation.certify.closed import SMALLEST_DELTA, Filter, gdp_delta, gdp_epsilon
from takifugu.translation.certify.gaussian import rounding_factor
from tests.raising import raises

pytestmark = pytest.mark.nightly


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-8, 1e-3, 0.5, 1.0, 6.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, 1.0, 9.0, 300.0])
def test_delta_of_gaussian_noise_is_rounded_up(mu: float, epsilon: float) -> None:
    with mpmath.workdps(2000 if epsilon / mu > 1e4 else 400):
        found = gdp_delta(mu, epsilon)
        if epsilon / mu > 1e5 + mu:
            assert found == SMALLEST_DELTA
            return
        truth = exact_delta(mu, epsilon)
        assert truth <= found
        ends = mu / 2 + epsilon / mu
        first = mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mpmath.mpf(mu))
        assert found <= truth + first * 1e-13 * (1 + ends**2 + epsilon) + SMALLEST_DELTA


def test_the_ends_of_gaussian_noise() -> None:
    assert gdp_delta(0.0, 1.0) == 0.0 and gdp_epsilon(0.0, 0.5) == 0.0
    assert gdp_delta(1e150, 1.0) == gdp_delta(math.inf, 0.0) == 1.0
    assert gdp_epsilon(1e150, 0.5) == gdp_epsilon(math.inf, 0.5) == math.inf
    assert gdp_delta(0.9e150, 1.0) == 1.0
    assert gdp_epsilon(0.1, 0.9) == 0.0  # δ at 0 is enough
    for mu, epsilon in ((1.0, -1e-9), (1.0, math.inf), (1.0, math.nan)):
        with raises(UnsoundRequest, field="epsilon"):
            gdp_delta(mu, epsilon)
    for mu in (-1e-9, math.nan):
        with raises(UnsoundRequest, field="mu"):
            gdp_delta(mu, 1.0)
        with raises(UnsoundRequest, field="mu"):
            gdp_epsilon(mu, 0.5)
    for delta in (0.0, 1.0, -0.1, math.nan):
        with raises(UnsoundRequest, field="delta"):
            gdp_epsilon(1.0, delta)


@pytest.mark.parametrize("mu", [1e-3, 0.5, 1.0, 6.0])
@pytest.mark.parametrize("delta", [1e-200, 1e-9, 0.01])
def test_epsilon_of_gaussian_noise_is_the_least(mu: float, delta: float) -> None:
    found = gdp_epsilon(mu, delta)
    with mpmath.workdps(500):
        assert exact_delta(mu, found) <= delta
        if found:
            assert exact_delta(mu, found * (1 - 1e-9)) > delta


def best_order(rho: float, delta: float) -> mpmath.mpf:
    def value(a: mpmath.mpf) -> mpmath.mpf:
        logs = mpmath.log(1 / mpmath.mpf(delta)) - mpmath.log(a)
        return a * mpmath.mpf(rho) + logs / (a - 1) + mpmath.log(1 - 1 / a)

    grid = [1 + mpmath.mpf(10) ** (mpmath.mpf(k) / 20) for k in range(-120, 160)]
    return min(value(a) for a in grid)


@pytest.mark.parametrize("rho", [1e-12, 1e-4, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("delta", [1e-100, 1e-6, 0.3, 0.99])
def test_epsilon_of_concentrated_losses_is_near_the_best_order(rho: float, delta: float) -> None:
    with mpmath.workdps(40):
        coarse = best_order(rho, delta)
        found = zcdp_epsilon(rho, delta)
        assert found <= max(coarse, 0) * (1 + mpmath.mpf(1e-12)) + 1e-13
        assert found >= 0 and found >= coarse * mpmath.mpf(0.98) - mpmath.mpf(1e-2) * abs(coarse)
    assert zcdp_epsilon(0.0, delta) == 0.0
    assert zcdp_epsilon(rho, delta) >= zcdp_epsilon(rho / 2, delta)
    assert zcdp_epsilon(rho, delta / 2) >= zcdp_epsilon(rho, delta)


def test_the_room_of_a_filter_is_what_it_still_admits() -> None:
    one = Filter(Fraction(2), Fraction(1, 10**5))
    spent = Total(Fraction(1, 2))
    assert one.room(spent, Approximate(Fraction(1, 10), Fraction(0))) == Fraction(3, 2)
    assert one.room(Total(Fraction(3)), Approximate(Fraction(1, 10), Fraction(0))) == 0
    assert one.room(spent, Approximate(Fraction(1, 10), one.delta)) == 0
    beside = one.room(spent, Approximate(Fraction(1, 10), one.delta / 2))
    assert beside == Fraction(3, 2)
    rho = one.room(spent, Concentrated(Fraction(1, 10)))
    assert rho > 0 and one.admits(Total(spent.scalar, rho=rho))
    assert not one.admits(Total(spent.scalar, rho=rho * (1 + Fraction(1, 10**9))))
    again = one.room(Total(spent.scalar, rho=rho / 3), Concentrated(Fraction(1, 10)))
    assert again == rho - rho / 3
    assert one.room(Total(Fraction(2)), Concentrated(Fraction(1, 10))) == 0
    assert Filter(Fraction(2), Fraction(0)).room(spent, Concentrated(Fraction(1))) == 0
    assert one.admits(Total(Fraction(2))) and not one.admits(Total(Fraction(2001, 1000)))
    assert not one.admits(Total(Fraction(0), delta=one.delta))
    made = Filter.from_budget(Fraction(1), Fraction(2), Fraction(1, 1000))
    assert made.allowed == 1
    assert 0 < made.delta <= Fraction(1, 1000)
    assert float(made.delta) == pytest.approx(1e-3 * math.expm1(1) / math.expm1(2))


# ---- numbers that are rounded


def exact_factor(kappa: float, eta: float) -> mpmath.mpf:
    """R of the theorem at this η, the sum over cells written out."""
    k, e = mpmath.mpf(kappa), mpmath.mpf(eta)

    def bent(z: mpmath.mpf) -> mpmath.mpf:
        return abs(z**2 - 1) * mpmath.exp(-(z**2) / 2) / mpmath.sqrt(2 * mpmath.pi)

    def most(low: mpmath.mpf, high: mpmath.mpf) -> mpmath.mpf:
        ends = [bent(low), bent(high)]
        root = mpmath.sqrt(3)
        if low <= root <= high:
            ends.append(bent(root))
        if low == 0:
            ends.append(bent(mpmath.mpf(0)))
        return max(ends)

    total = most(mpmath.mpf(0), e)  # the cell of a itself
    n = 1
    while n * e < 39:
        total += 2 * mpmath.exp(k * n) * most((n - 1) * e, (n + 1) * e)
        n += 1
    below = mpmath.exp(-k) * 2 * mpmath.exp((k / e) ** 2 / 2) * mpmath.ncdf(-k / e)
    return 1 + e**3 / 12 * total / below


@pytest.mark.parametrize(("kappa", "eta"), list(product([1e-3, 0.05, 0.4, 1.5], [0.05, 0.3, 0.9])))
def test_the_factor_for_rounded_numbers_is_that_of_the_theorem(kappa: float, eta: float) -> None:
    found = rounding_factor(kappa, 2 * eta, 2.0)
    used = max(eta, kappa / 5.0, 1 / 64)
    if used > 1:
        assert found == math.inf
        return
    with mpmath.workdps(40):
        truth = exact_factor(kappa, used)
        assert truth * (1 - mpmath.mpf(1e-12)) <= found <= 1 + (truth - 1) * mpmath.mpf(1.0001)
