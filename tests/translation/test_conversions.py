"""Conversions and margins by themselves: exact or to many digits, and never on the unsafe side."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest

from takifugu._rounding import float_up
from takifugu.costs import ANY, Column, Cost, Distance, Membership, Steps
from takifugu.errors import UnsoundRequest
from takifugu.losses import Approximate, Concentrated, Total
from takifugu.priors.kernels import AR1
from takifugu.translation.accounting import approximate, totals
from takifugu.translation.accounting.approximate import zcdp_epsilon
from takifugu.translation.accounting.totals import Filter, amounts_to, extra, share
from takifugu.translation.gaussian import lag_costs, shift_costs
from takifugu.translation.gaussian.gaussian_noise import LEAST, gdp_delta, gdp_epsilon
from takifugu.translation.gaussian.rounded_numbers import (
    all_without_rounding,
    rounding_factor,
    without_rounding,
)
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
            assert found == LEAST
            return
        truth = exact_delta(mu, epsilon)
        assert truth <= found
        ends = mu / 2 + epsilon / mu
        first = mpmath.ncdf(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mpmath.mpf(mu))
        assert found <= truth + first * 1e-13 * (1 + ends**2 + epsilon) + LEAST


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


def test_what_cannot_be_converted() -> None:
    for rho in (-1e-9, math.inf, math.nan):
        with raises(UnsoundRequest, field="rho"):
            zcdp_epsilon(rho, 0.1)
    for delta in (0.0, 1.0, math.nan):
        with raises(UnsoundRequest, field="delta"):
            zcdp_epsilon(1.0, delta)
    for given, below in (([0.1, -1e-9], 1.0), ([1.0], 1.0), (math.nan, 9.0), ("many", 9.0)):
        with raises(UnsoundRequest, field="delta"):
            approximate._losses(given, "delta", below)
    assert approximate._losses([0.0, 0.5], "delta", 1.0).tolist() == [0.0, 0.5]


def test_a_delta_needs_an_epsilon_beside_it() -> None:
    raised = approximate._raised(np.array([0.0, 0.05, 0.2, 2.0]), np.array([0.1, 0.0, 0.1, 0.1]))
    assert raised.tolist() == pytest.approx([0.2, 0.05, 0.2, 2.0])
    assert approximate._raised(np.array(0.0), np.array(0.1)) == 0.01
    assert approximate._raised(np.array([0.0, 0.0]), np.array([0.0, 0.1])).tolist() == [0.0, 0.01]


@pytest.mark.parametrize("order", [5, 9, 129, 4097])
@pytest.mark.parametrize("delta", [1e-300, 1e-9, 0.2])
def test_what_an_order_adds_is_rounded_up(order: int, delta: float) -> None:
    with mpmath.workdps(50):
        a = mpmath.mpf(order)
        logs = mpmath.log(1 / mpmath.mpf(delta)) - mpmath.log(a)
        truth = logs / (a - 1) + mpmath.log(1 - 1 / a)
        assert truth <= extra(order, delta) <= truth + 1e-12 * (1 + abs(logs))


@pytest.mark.parametrize("dp", [1e-6, 0.3, 2.0])
@pytest.mark.parametrize("more", [1.0, 1.7, 40.0])
def test_the_share_of_delta_is_rounded_down(dp: float, more: float) -> None:
    loss, delta = dp * more, 1e-5
    found = share(dp, loss, delta)
    with mpmath.workdps(50):
        truth = mpmath.mpf(delta) * mpmath.expm1(dp) / mpmath.expm1(mpmath.mpf(loss))
        exact = mpmath.mpf(found.numerator) / found.denominator
        assert truth * (1 - mpmath.mpf(1e-12)) <= exact <= truth
    assert share(3.0, 1.0, delta) <= Fraction(delta)
    for given in ((0.0, 1.0, 0.1), (1.0, 0.0, 0.1), (1.0, 1.0, 0.0), (1.0, 701.0, 0.1)):
        assert share(*given) == 0
    assert share(1.0, 700.0, 0.1) > 0


def test_what_a_total_amounts_to() -> None:
    delta = Fraction(1, 10**6)
    assert amounts_to(Total(Fraction(3, 10)), Fraction(0)) == Fraction(3, 10)
    some = Fraction(1, 10**7)
    assert amounts_to(Total(Fraction(3, 10), delta=some), delta) == Fraction(3, 10)
    assert amounts_to(Total(Fraction(3, 10), delta=delta / 2), delta) == Fraction(3, 10)
    assert amounts_to(Total(Fraction(3, 10), delta=delta / 2 + some / 1000), delta) is None
    assert amounts_to(Total(rho=Fraction(1, 100)), Fraction(0)) is None
    rho = Fraction(1, 50)
    found = amounts_to(Total(Fraction(1, 4), rho=rho), delta)
    part = float(delta / (2 * len(totals.ORDERS)))
    each = [a * rho + Fraction(extra(a, part)) for a in totals.ORDERS]
    assert found is not None and float(found) == pytest.approx(float(Fraction(1, 4) + min(each)))
    assert totals.ORDERS[0] == 5 and totals.ORDERS[-1] == 4097 and len(totals.ORDERS) == 11


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
    made = Filter.of(Fraction(1), Fraction(2), Fraction(1, 1000))
    assert made.allowed == 1
    assert 0 < made.delta <= Fraction(1, 1000)
    assert float(made.delta) == pytest.approx(1e-3 * math.expm1(1) / math.expm1(2))


def test_a_total_and_its_loss() -> None:
    """With a loss of twice ε: the least A for which its own share of δ is enough."""

    def loss_at(epsilon: float) -> tuple[float, float]:
        return epsilon, 2 * epsilon

    delta = Fraction(1, 10**5)
    assert totals.total_to_pufferfish(loss_at, Total(), delta) == 0.0
    assert totals.total_to_pufferfish(loss_at, Total(Fraction(1, 4)), delta) == 0.5
    mixed = Total(Fraction(1, 4), rho=Fraction(1, 100))
    found = totals.total_to_pufferfish(loss_at, mixed, delta)
    dp = found / 2
    need = amounts_to(mixed, share(dp, found, float(delta)))
    assert need is not None and need <= Fraction(dp)
    less = dp * (1 - 3e-6)
    need = amounts_to(mixed, share(less, 2 * less, float(delta)))
    assert need is None or need > Fraction(less)
    both = totals.joint_to_pufferfish(loss_at, (mixed, Total(Fraction(1, 2))), delta)
    assert both >= found * (1 - 1e-9)
    assert totals.total_to_pufferfish(loss_at, Total(delta=delta), delta) == math.inf
    assert totals.joint_to_pufferfish(loss_at, (mixed, Total(delta=delta)), delta) == math.inf
    assert totals.total_to_pufferfish(lambda e: (e, math.inf), mixed, delta) == math.inf


# ---- shifts of Gaussian entries

WIDE = Distance(0, 4)
GRID = Steps(0, 4, "0.5")


def test_what_a_shift_costs_is_rounded_up() -> None:
    distances = np.array([0.0, 1e-320, 0.1, 0.3, 3.9, 4.0, 7.0, 1e308])
    exact = [Fraction(float(one)) for one in distances]
    for found, one in zip(shift_costs.share_of_shift(WIDE, distances), exact, strict=True):
        truth = min(one / 4, Fraction(1))
        assert (
            truth
            <= Fraction(float(found))
            <= truth * (1 + Fraction(1, 10**15)) + Fraction(2.0**-1022)
        )
        assert (found == 0) == (one == 0)
    for found, one in zip(shift_costs.share_of_shift(GRID, distances), exact, strict=True):
        truth = min(one / 4 + Fraction(1, GRID.count), Fraction(1)) if one else Fraction(0)
        assert truth <= Fraction(float(found)) <= truth * (1 + Fraction(1, 10**14))
    narrow = Distance(0, Fraction(1, 10**330))
    assert shift_costs.share_of_shift(narrow, distances).tolist() == [0.0] + [1.0] * 7
    odd = shift_costs.share_of_shift(Membership([1]), distances)
    assert odd.tolist() == [0.0] + [1.0] * 7
    with raises(UnsoundRequest, field="columns"):
        shift_costs.share_of_shift(Column("age", ANY), distances)


def test_a_step_is_added_rounded_up_and_a_width_is_rounded_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shift_costs, "float_up", lambda number: 2 * float(number))
    monkeypatch.setattr(shift_costs, "float_down", lambda number: float(number) / 2)
    one = np.array([0.25])
    assert shift_costs.share_of_shift(WIDE, one) == pytest.approx([0.25 / 2])
    assert shift_costs.share_of_shift(GRID, one) == pytest.approx([0.25 / 2 + 2 / GRID.count])


def test_the_dearest_of_several_costs_and_their_sums() -> None:
    distances = np.array([0.0, 0.1, 1.0, 8.0])
    near = Cost.of({WIDE: Fraction(3, 10)})
    both = Cost.of({WIDE: Fraction(1, 10), ANY: Fraction(1, 7)})
    found = shift_costs.largest_cost([near, both], distances)
    for value, one in zip(found, distances, strict=True):
        part = min(Fraction(float(one)) / 4, Fraction(1))
        moved = 1 if one > 0 else 0
        truth = max(Fraction(3, 10) * part, Fraction(1, 10) * part + Fraction(1, 7) * moved)
        assert truth <= Fraction(float(value)) <= truth * (1 + Fraction(1, 10**14))
    assert shift_costs.largest_cost([], distances).tolist() == [0.0] * 4
    slope, jump = shift_costs.slope_and_jump(both)
    assert Fraction(1, 40) <= Fraction(slope) <= Fraction(1, 40) * (1 + Fraction(1, 10**14))
    assert Fraction(1, 7) <= Fraction(jump) <= Fraction(1, 7) * (1 + Fraction(1, 10**14))
    slope, jump = shift_costs.slope_and_jump(Cost.of({GRID: Fraction(1, 3), WIDE: Fraction(1)}))
    assert slope == pytest.approx(1 / 12 + 1 / 4) and jump == pytest.approx(1 / 3 / GRID.count)
    times = shift_costs.times_up(
        np.array([0.0, 1e-200, 0.1, 1e308]), np.array([1.0, 1e-200, 0.1, 9.0])
    )
    assert times[0] == 0.0 and times[1] == 2.0**-1022 and times[3] == math.inf
    assert Fraction(0.1) * Fraction(0.1) <= Fraction(float(times[2]))
    assert shift_costs.times_up(2.0, np.array([0.0, 0.5])).tolist() == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("rho", [0.2, -0.7, 0.9995])
def test_costs_added_up_over_lags(rho: float) -> None:
    """Of a first-order process the k-th entry moves by |ρ|^k: a geometric series."""
    within, coefficient = 0.5, Fraction(3, 10)
    one = lag_costs.LagCosts(AR1(rho), within, [Cost.of({WIDE: coefficient})])
    scale = float(coefficient) * within / 4
    r = abs(rho)
    assert one.own == pytest.approx(scale)
    lags = np.array([0, 1, 2, 50, 2**14, 2**14 + 1, 2**14 + 9, 10**6])
    with mpmath.workdps(40):
        b, s = mpmath.mpf(r), mpmath.mpf(3) / 10 / 8
        for found, lag in zip(one.up_to(lags), lags.tolist(), strict=True):
            truth = s * b * (1 - b**lag) / (1 - b)
            assert (
                truth * (1 - mpmath.mpf(1e-15)) <= found <= truth * (1 + mpmath.mpf(1e-7)) + 1e-290
            )
        whole = s * b / (1 - b)
        assert whole * (1 - mpmath.mpf(1e-15)) <= one.all_lags <= whole * (1 + mpmath.mpf(1e-10))
    jumps = lag_costs.LagCosts(AR1(rho), within, [Cost.of({ANY: coefficient})])
    assert jumps.own == pytest.approx(0.3)
    assert jumps.up_to(np.array([3]))[0] == pytest.approx(0.9)
    if r > 0.9:
        assert jumps.all_lags == math.inf
        assert jumps.up_to(np.array([2**14 + 10]))[0] == pytest.approx(0.3 * (2**14 + 10))
    moved = lag_costs.shifts_by_lag(AR1(rho), within, np.array([0, 1, 3]))
    assert moved.tolist() == pytest.approx([0.5, 0.5 * r, 0.5 * r**3])
    assert Fraction(float(moved[1])) >= Fraction(within) * Fraction(r)


def test_without_correlation_no_lag_costs_anything() -> None:
    one = lag_costs.LagCosts(AR1(0.0), 0.5, [Cost.of({ANY: Fraction(1)})])
    assert one.own == pytest.approx(1.0) and one.all_lags == 0.0
    assert one.up_to(np.array([0, 5, 10**6])).tolist() == [0.0, 0.0, 0.0]


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


def test_the_factor_takes_the_coarser_of_its_grids() -> None:
    assert rounding_factor(1e-3, 1e-9, 1.0) == rounding_factor(1e-3, 1 / 64, 1.0)
    assert rounding_factor(0.5, 0.01, 1.0) == pytest.approx(rounding_factor(0.5, 0.1, 1.0))
    for kappa, step, deviation in (
        (5.0, 0.1, 1.0),
        (0.1, 1.1, 1.0),
        (0.1, 0.1, 0.0),
        (0.1, 0.1, math.nan),
        (math.nan, 0.1, 1.0),
        (0.1, math.nan, 1.0),
    ):
        assert rounding_factor(kappa, step, deviation) == math.inf
    assert 1 < rounding_factor(0.1, 1.0 - 1e-9, 1.0) < math.inf


def test_a_cost_by_steps_becomes_one_by_distance() -> None:
    value = Fraction(1, 5)
    made = without_rounding(Cost.of({GRID: value}), 2.0)
    assert made is not None
    factor = rounding_factor(float_up(value / GRID.count), 0.5, 2.0)
    assert made[0].terms == Cost.of({WIDE: value * Fraction(factor)}).terms
    assert made[1] == pytest.approx(float(value / GRID.count))
    assert Fraction(made[1]) >= value / GRID.count
    assert without_rounding(Cost.of({WIDE: value}), 2.0) is None
    assert without_rounding(Cost.of({GRID: value, WIDE: value}), 2.0) is None
    assert without_rounding(Cost.of({GRID: value, Steps(0, 4, "0.25"): value}), 2.0) is None
    assert without_rounding(Cost.of({GRID: value}), 0.01) is None
    two = without_rounding(Cost.of({GRID: value, Steps(0, 8, "0.5"): value}), 2.0)
    assert two is not None and two[1] == pytest.approx(float(value / 8 + value / 16))
    many = all_without_rounding([Cost.of({GRID: value}), Cost.of({GRID: value / 2})], 2.0)
    assert many is not None and many[1].tolist() == pytest.approx([0.025, 0.0125])
    assert all_without_rounding([Cost.of({GRID: value}), Cost.of({WIDE: value})], 2.0) is None
    assert all_without_rounding([Cost.of({})], 2.0) is None
