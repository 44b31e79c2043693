"""How wide margins for rounding are where values are numbers, counted in units of roundoff.

A margin of a few units in the last place hardly shows in a result, whichever sign it has. So a
module is given a unit that is a million million times as large, and numbers that are exact: what a
result is off by, in these units, is the sum of its margins, on the safe side.
"""

from fractions import Fraction
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.costs import ANY, Cost, Distance, Steps
from takifugu.priors import AR1, Covariance, Gaussian, Secrets
from takifugu.translation import LinearQuery, LinearReleases
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.gaussian import (
    gaussian_noise,
    gaussian_transport,
    lag_costs,
    linear_queries,
    rounded_numbers,
    shift_costs,
)
from takifugu.translation.gaussian.gaussian_transport import GaussianTransport, _weighed
from takifugu.translation.gaussian.lag_costs import LagCosts, shifts_by_lag
from takifugu.translation.gaussian.linear_queries import GaussianNoiseLoss, _Shifts
from takifugu.translation.gaussian.rounded_numbers import rounding_factor, without_rounding
from takifugu.translation.gaussian.shift_costs import (
    largest_cost,
    share_of_shift,
    slope_and_jump,
    times_up,
)

pytestmark = pytest.mark.nightly

LARGE = 2.0**-20
LAW = np.array([[1.0, 0.5, -0.25], [0.5, 2.0, 0.0], [-0.25, 0.0, 1.0]])
UNIT_EACH = Cost.of({Distance(-512, 512): 1024})  # 1 for each unit


def with_large_units(monkeypatch: pytest.MonkeyPatch, module: ModuleType) -> None:
    monkeypatch.setattr(module, "UNIT", LARGE)


def units(found: Any, true: Any) -> Any:
    """How many large units a number is above what it would be exactly."""
    return (np.asarray(found) / np.asarray(true) - 1) / LARGE


def counted(number: Any) -> Any:
    return pytest.approx(number, abs=1e-3)


def test_what_a_shift_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, shift_costs)
    one = np.array([1.0])
    assert units(share_of_shift(Distance(0, 4), one), 1 / 4) == counted(2)
    assert units(share_of_shift(Steps(0, 4, 1), one), 1 / 2) == counted(1 + 2)
    assert units(times_up(2.0, np.array([0.25])), 0.5) == counted(2)
    alone = Cost.of({Distance(0, 4): 1})
    both = Cost.of({Distance(0, 4): 1, Distance(0, 8): 2})
    assert units(largest_cost((alone,), one), 1 / 4) == counted(2 + 2 + 2)
    assert units(largest_cost((both,), one), 1 / 2) == counted(2 + 2 + 4)
    assert units(largest_cost((alone, both), one), 1 / 2) == counted(2 + 2 + 4)
    slope, jump = slope_and_jump(Cost.of({Distance(0, 4): 1, ANY: 2}))
    assert units(slope, 1 / 4) == counted(4) and units(jump, 2) == counted(4)
    slope, jump = slope_and_jump(Cost.of({Steps(0, 4, 1): 1}))
    assert units(slope, 1 / 4) == counted(2) and units(jump, 1 / 4) == counted(2)


def test_lags_that_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shifts 2, 1, 1/2, …, of which 1/2 is paid at most: four lags cost 1/2, 1/2, 1/4, 1/8."""
    with_large_units(monkeypatch, lag_costs)
    monkeypatch.setattr(lag_costs, "MOST_LAGS", 4)
    moved = shifts_by_lag(AR1(0.5), 2.0, np.arange(3))
    assert units(moved, [2, 1, 1 / 2]) == counted([2, 2, 2])
    lags = LagCosts(AR1(0.5), 2.0, (Cost.of({Distance(0, "0.5"): "0.5"}),))
    assert lags.own == pytest.approx(0.5)
    # the two lags below the width are raised with their shifts, then all of them as a sum of four
    inside = 1.375 + (0.375 * 2 + 1.375 * (4 + 4)) * LARGE
    assert lags.up_to(np.array([4]))[0] == pytest.approx(inside, abs=1e-8)
    # the sum of all correlations beyond: 1 − 15/16, with the margins of both, and then its own
    left = 1 / 16 + (15 / 16 * (4 + 4) + 8 * 3) * LARGE
    far = 2 * left * (1 + 8 * LARGE)
    assert lags._beyond[0] == pytest.approx(far, abs=1e-8) and lags._beyond[1] == 0
    last = 0.125 * (1 + 2 * LARGE)
    one_more, two_more = lags.up_to(np.array([5, 6]))
    raised = (1 + 2 * LARGE) * (inside + last * (1 + 8 * LARGE))
    assert one_more == pytest.approx(raised, abs=1e-8)
    raised = (1 + 2 * LARGE) * (inside + far * (1 + 8 * LARGE))
    assert lags.all_lags == pytest.approx((inside + far) * (1 + 8 * LARGE), abs=1e-8)
    assert two_more == pytest.approx(min(raised, lags.all_lags), abs=1e-8)
    wide = LagCosts(AR1(0.5), 2.0, (UNIT_EACH,))  # nothing is clamped: the closed form
    assert units(wide.all_lags, 2) == counted(8)


def test_rows_of_a_covariance(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, gaussian_transport)
    transport = GaussianTransport(Gaussian(Covariance(LAW)), Secrets(within=1))
    true = np.array([1 + 0.5 + 0.25, 1 + 0.25, 1 + 0.25])
    everywhere = transport.valued(EntryCosts((UNIT_EACH,))).by_entry
    assert units(everywhere, true) == counted(np.full(3, 4 + (3 + 4)))
    each = transport.valued(EntryCosts(by_entry=(UNIT_EACH,) * 3)).by_entry
    assert units(each, true) == counted(np.full(3, 4 + (3 + 4) + 2 * (1 + 1)))
    both = UNIT_EACH + Cost.any(1)
    each = transport.valued(EntryCosts(by_entry=(both,) * 3)).by_entry
    distances, jumps = true * (4 + (3 + 4)), np.array([3, 2, 2]) * (3 + 4)
    summed = true + np.array([3, 2, 2])
    assert units(each, summed) == counted((distances + jumps) / summed + 2 * (2 + 1))
    row = _weighed(Distance(0, 1), np.array([[0.5, 0.25]]), np.array([1.0, 2.0]))
    assert units(row, 1) == counted([2 + 4])


def test_a_stationary_process(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, gaussian_transport)
    near = Secrets(within=1)
    costs = EntryCosts((UNIT_EACH,))
    three = GaussianTransport(Gaussian(AR1(0.5), 3), near)
    assert units(three.valued(costs).by_entry, [1.75, 2, 1.75]) == counted([4, 4, 4])
    unbounded = GaussianTransport(Gaussian(AR1(0.5)), near)
    assert units(unbounded.valued(costs).value, 3) == counted(4)
    listed = EntryCosts(by_entry=(UNIT_EACH,) * 3)
    found = three.valued(listed).by_entry
    assert units(found, [1.75, 2, 1.75]) == counted(np.full(3, (2 * 5 + 8) + 2 + 2 * (1 + 1)))
    monkeypatch.setattr(gaussian_transport, "LONGEST_SUM", 4)  # five entries: two lags, and more
    five = GaussianTransport(Gaussian(AR1(0.5), 5), near)
    found = five.valued(EntryCosts(by_entry=(UNIT_EACH,) * 5)).by_entry
    inside, beyond = np.array([1.5, 2, 2, 2, 1.5]), 0.5 * 5
    raised = inside * (2 * 3 + 8) + beyond * (5 + 4)
    summed = inside + beyond
    assert units(found, summed) == counted(raised / summed + 2 + 2 * (1 + 1))


def test_the_own_step_of_rounded_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, gaussian_transport)
    fine = Cost.of({Steps(-50, 50, Fraction(1, 128)): 100})
    near = Secrets(within=1)
    for prior in (Gaussian(AR1(0.5), 3), Gaussian(AR1(0.5))):
        transport = GaussianTransport(prior, near)
        made = without_rounding(fine, prior.least_deviation())
        assert made is not None
        smooth, own = made
        plain = transport._by_distance(EntryCosts((smooth,)))
        found = transport.valued(EntryCosts((fine,)))
        assert units(found.value, plain.value + own) == counted(4)
        if plain.by_entry is not None:
            assert units(found.by_entry, plain.by_entry + own) == counted([4, 4, 4])


def test_the_largest_epsilon_is_lowered_while_it_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bound of three entries and 4 large units: lowered by 4 at a time until it fits."""
    with_large_units(monkeypatch, gaussian_transport)
    transport = GaussianTransport(Gaussian(AR1(0.5), 3), Secrets(within=1))
    found = transport.largest(1.0)
    assert transport.uniform(found).value <= 1 < transport.uniform(found * (1 + 5 * LARGE)).value
    asked: list[float] = []
    uniform = transport.uniform

    def seen(epsilon: float) -> Any:
        asked.append(epsilon)
        return uniform(epsilon * (1 + 6 * LARGE) if len(asked) > 1 else epsilon)

    monkeypatch.setattr(transport, "uniform", seen)
    lowered = transport.largest(1.0)
    assert uniform(lowered * (1 + 6 * LARGE)).value <= 1
    assert np.diff(asked[1:]) / LARGE * 3 == pytest.approx([-4] * (len(asked) - 2), rel=1e-4)


def shifts_of(query: LinearQuery, *, covariance: bool) -> tuple[Any, Any]:
    prior = Gaussian(Covariance(LAW)) if covariance else Gaussian(AR1(0.5), 3)
    return _Shifts(prior, Secrets(within=1), [query]).of(0)


def test_how_far_queries_move(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, linear_queries)
    query = LinearQuery([1, 2, 4])
    true = np.array([1 + 1 - 1, 0.25 + 2, 4 - 0.25])
    sums = np.array([1 + 1 + 1, 0.25 + 2, 4 + 0.25])
    most, least = shifts_of(query, covariance=True)
    # 2 + 2 for both ends of each pull, twice 3 + 8 for the sum; then 4, or 8, for the product
    error = sums * (4 + 2 * (3 + 8))
    above = np.minimum(true + error * LARGE, sums * (1 + (2 + 2 * (3 + 8)) * LARGE))
    assert (most / above - 1) / LARGE == counted([4, 4, 4])
    assert least == pytest.approx((true - error * LARGE) * (1 - 8 * LARGE), abs=1e-8)
    clamped = LinearQuery([1, 2, 4], bounds=(-8, 8))
    most, least = shifts_of(clamped, covariance=True)
    assert units(most, sums) == counted(np.full(3, 2 + 2 * (3 + 8))) and not least.any()
    signed, high, low = _Shifts(
        Gaussian(Covariance(LAW)), Secrets(within=1), [query]
    )._pulls(np.array([0]), np.arange(3))  # fmt: skip
    assert signed.tolist() == [[1, 0.5, -0.25]]
    assert units(high[0], [1, 0.5, 0.25]) == counted([2, 2, 2])
    assert units(low[0], [1, 0.5, 0.25]) == counted([-2, -2, -2])


def test_beyond_the_window_signs_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, linear_queries)
    monkeypatch.setattr(linear_queries, "MOST_ROWS", 1)
    shifts = _Shifts(Gaussian(AR1(0.5)), Secrets(within=1), [LinearQuery({2: 1, 3: -1})])
    most, _ = shifts.of(0)
    assert shifts.entries.tolist() == [1, 2, 3, 4, 0, 5]
    assert units(most[4:], [0.25 + 0.125] * 2) == counted([2 * (2 + 8) + 4] * 2)


def test_both_kinds_of_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    query = LinearQuery([1, 2, 4])
    process = LinearReleases(Gaussian(AR1(0.5), 3), Secrets(within=1))
    monkeypatch.setattr(
        linear_queries._Shifts, "of", lambda *_: (np.full(3, 0.5), np.full(3, 0.25))
    )
    monkeypatch.setattr(linear_queries._Shifts, "joint", lambda *_: 0.0)
    with_large_units(monkeypatch, linear_queries)
    once, twice = [(query, 2)], [(query, 2), (LinearQuery([1]), 2)]
    for count, releases in ((1, once), (2, twice)):
        found = process.laplace(releases)
        assert units(found.by_entry, 0.25 * count) == counted([2 * count + 4] * 3)
        assert units(found.lower, 0.125 * count) == counted(-(2 * count + 4))
        smooth = process.gaussian(releases)
        assert units(smooth.mu, 0.25 * count**0.5) == counted(2 * count + 8)
        alone = process._by_entry([query, LinearQuery([1])], releases)
        assert units(alone, 0.25 * count) == counted([2 * count + 8] * 3)
        squared = process._by_entry([query, LinearQuery([1])], releases, squared=True)
        assert units(squared, 0.25 * count**0.5) == counted([2 * count + 8] * 3)
    both = process.mixed(once, once, delta=1e-3)
    epsilon, mu = (float(process._by_entry([query], once, squared=s)[0]) for s in (False, True))
    assert units(both, epsilon + gaussian_noise.gdp_epsilon(mu, 1e-3)) == counted(4)
    made = GaussianNoiseLoss(0.5, 0.0, smooth.binding, smooth.by_entry)
    assert units(made.rho, 0.125) == counted(4)


def test_the_joint_law_from_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two outputs of one entry: μ² = Δᵀ S⁻¹ Δ; each margin lowers it."""
    with_large_units(monkeypatch, linear_queries)
    queries = [LinearQuery([1, 1]), LinearQuery([0, 1])]
    prior = Gaussian(Covariance(LAW[:2, :2]))
    shifts = _Shifts(prior, Secrets(entries=(0,), within=1), queries)
    found = shifts.joint(0, [1.0, 2.0])
    moved = np.array([1.5, 0.25])
    each = np.array([[1.0, 1.0], [0.0, 0.5]])
    given = np.array([[0.0, 0.0], [0.0, 1.75]])
    spread = each @ given @ each.T + np.eye(2)
    solved = np.linalg.solve(spread, moved)
    square = float(moved @ solved)
    sizes, off = np.abs(solved), 8 * (2 + 2 + 4)
    rounded = sizes @ (2 * each @ np.abs(LAW[:2, :2]) @ each.T + np.eye(2)) @ sizes
    less = off * (sizes @ (each @ np.array([1.0, 0.5]))) / square + off * rounded / square / 2 + 8
    assert units(found, square**0.5) == pytest.approx(-less, rel=1e-3)


def test_gaussian_noise_in_large_units(monkeypatch: pytest.MonkeyPatch) -> None:
    with_large_units(monkeypatch, gaussian_noise)
    for mu, epsilon in ((1.0, 0.5), (2.0, 3.0), (0.5, 0.25)):
        ahead, behind = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        first, second = mpmath.ncdf(ahead), mpmath.ncdf(behind) * mpmath.exp(epsilon)
        off = 64 * (1 + ahead**2 + behind**2 + epsilon) * LARGE
        true = (first * (1 + off) - second * (1 - off)) * (1 + 8 * LARGE)
        assert gaussian_noise.gdp_delta(mu, epsilon) == pytest.approx(float(true), rel=1e-9)


def exact_factor(kappa: float, eta: float) -> Any:
    """R of the theorem of rounded numbers, term by term in many digits."""
    with mpmath.workdps(40):
        k, e = mpmath.mpf(kappa), mpmath.mpf(eta)

        def bent(z: Any) -> Any:
            return abs(z * z - 1) * mpmath.exp(-z * z / 2)

        total = mpmath.mpf(1)  # |φ''| at 0, of the cell in the middle
        for n in range(1, int(40 / eta) + 2):
            ends = [(n - 1) * e, (n + 1) * e]
            peak = ends[0] <= mpmath.sqrt(3) <= ends[1]
            most = max(*map(bent, ends), 2 * mpmath.exp(-1.5) if peak else 0)
            total += 2 * mpmath.exp(k * n) * most
        above = e**3 / 12 * total / mpmath.sqrt(2 * mpmath.pi)
        z = k / e / mpmath.sqrt(2)
        return above / (mpmath.exp(-k) * mpmath.exp(z * z) * mpmath.erfc(z))


@pytest.mark.parametrize(
    ("kappa", "step", "deviation", "eta"),
    [(0.125, 0.5, 2.0, 0.25), (0.5, 0.125, 1.0, 0.125), (1.25, 0.125, 1.0, 0.25),
     (0.03125, 0.001, 1.0, 1 / 64), (0.25, 1.0, 1.0, 1.0)],
)  # fmt: skip
def test_the_factor_of_rounded_numbers(
    kappa: float, step: float, deviation: float, eta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The density at 0 is rounded up by 2.4e-8 of itself; 1e-9 is added beside that."""
    monkeypatch.setattr(rounded_numbers, "UNIT", 0.0)
    added = rounding_factor(kappa, step, deviation) - 1
    assert 2.49e-8 < float(mpmath.mpf(added) / exact_factor(kappa, eta) - 1) < 2.52e-8
    with_large_units(monkeypatch, rounded_numbers)
    found = rounding_factor(kappa, step, deviation)
    if eta == 1.0:
        assert found == np.inf  # the grid is just too coarse
        return
    raised = eta if eta == rounded_numbers.FINEST else eta * (1 + 8 * LARGE)
    added = found / (1 + 4 * LARGE) - 1
    assert 2.49e-8 < float(mpmath.mpf(added) / exact_factor(kappa, raised) - 1) < 2.52e-8


@pytest.mark.parametrize("bounds", [None, (-1, 1)])
def test_what_underflows_beside_an_entry_that_does_not_move(bounds: Any) -> None:
    """A weight so small that its product is 0 as a float still tells something."""
    law = Covariance(np.array([[1.0, 0.0], [0.0, 1.0]]))
    tiny = Fraction(1, 10**300)
    process = LinearReleases(Gaussian(law), Secrets(entries=(0,), within=tiny))
    both = LinearQuery({0: tiny, 1: 1}, bounds=bounds)
    assert 0 < process.laplace([(both, 1)]).pufferfish < 1e-300
    assert process.laplace([(LinearQuery({1: 1}, bounds=bounds), 1)]).pufferfish == 0
