"""Linear queries and leaks of numbers where floats end: rounded to which side, never to nothing."""

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from takifugu._rounding import UNIT, float_down, float_up
from takifugu.costs import Cost, Distance, Steps
from takifugu.errors import UnsoundRequest
from takifugu.priors import AR1, Covariance, Gaussian, Secrets
from takifugu.translation import LinearQuery, LinearReleases
from takifugu.translation.bounds import Binding, Bound
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.gaussian import gaussian_witness, linear_queries
from takifugu.translation.gaussian.gaussian_noise import gdp_epsilon
from takifugu.translation.gaussian.gaussian_witness import GaussianWitness, _Slopes
from takifugu.translation.gaussian.linear_queries import _Shifts
from takifugu.translation.gaussian.shift_costs import TINY
from tests.raising import raises

pytestmark = pytest.mark.nightly

BETWEEN = Fraction(3, 2) / 2**1074  # the floats below and above it differ by a factor of two
FAR = Fraction(2) ** 1000
NEAR = 1 / FAR
ALONE = Gaussian(AR1(0.0), 1)


def test_scales_between_two_floats_count_as_the_worse_one() -> None:
    process = LinearReleases(ALONE, Secrets(within=1))
    query = LinearQuery([NEAR])
    exact = NEAR / BETWEEN
    pure, smooth = process.laplace([(query, BETWEEN)]), process.gaussian([(query, BETWEEN)])
    assert exact < Fraction(pure.pufferfish) < 2 * exact
    assert exact / 2 < Fraction(pure.lower) < exact
    assert exact < Fraction(smooth.mu) < 2 * exact
    for squared in (False, True):
        (found,) = process._by_entry([query], [(query, BETWEEN)], squared=squared)
        assert exact < Fraction(found) < 2 * exact


@pytest.mark.parametrize("bounds", [None, (0, FAR)])
def test_a_distance_between_two_floats_counts_as_the_worse_one(bounds: Any) -> None:
    shifts = _Shifts(ALONE, Secrets(within=BETWEEN), [LinearQuery([FAR], bounds=bounds)])
    (most,), (least,) = shifts.of(0)
    exact = BETWEEN * FAR
    if bounds is None:  # what is clamped may lie anywhere below
        assert exact < Fraction(most) < 2 * exact and exact / 2 < Fraction(least) < exact
    else:
        assert exact < Fraction(most) and least == 0


def test_a_width_between_two_floats_counts_as_the_larger_one() -> None:
    query = LinearQuery([FAR], bounds=(1, 1 + BETWEEN))
    (most,), _ = _Shifts(ALONE, Secrets(within=1), [query]).of(0)
    assert BETWEEN * FAR < Fraction(most) < 2 * BETWEEN * FAR


def test_every_number_that_is_given_is_rounded_to_its_safe_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ups, downs = list[Fraction](), list[Fraction]()

    def raised(value: Fraction) -> float:
        ups.append(value)
        return float_up(value)

    def lowered(value: Fraction) -> float:
        downs.append(value)
        return float_down(value)

    monkeypatch.setattr(linear_queries, "float_up", raised)
    monkeypatch.setattr(linear_queries, "float_down", lowered)
    third, seventh, fifth = Fraction(1, 3), Fraction(-1, 7), Fraction(1, 5)
    query = LinearQuery([third, seventh])
    shifts = _Shifts(Gaussian(AR1(0.5), 2), Secrets(within=fifth), [query])
    shifts.of(0)
    assert sorted(ups) == sorted([third, -seventh, fifth]) and downs == [fifth]
    ups.clear()
    clamped = LinearQuery([third], bounds=(third, fifth * 3))
    _Shifts(Gaussian(AR1(0.5), 2), Secrets(within=fifth), [clamped]).of(0)
    assert sorted(ups) == sorted([third, fifth, fifth * 3 - third])


def test_a_ratio_of_covariances_is_never_rounded_to_nothing() -> None:
    rows = np.array([[1e10, 5e-324, 0.0], [5e-324, 1.0, TINY], [0.0, TINY, 1.0]])
    shifts = _Shifts(Gaussian(Covariance(rows)), Secrets(within=1), [LinearQuery([1, 1, 1])])
    signed, high, low = shifts._pulls(np.arange(3), np.arange(3))
    assert signed[0].tolist() == [1.0, 0.0, 0.0]
    assert high[0, 1] == TINY * (1 + 2 * UNIT) and high[0, 2] == 0.0
    assert low[0].tolist() == [1 - 2 * UNIT, 0.0, 0.0]
    assert low[1].tolist() == [0.0, 1 - 2 * UNIT, 0.0] and high[1, 2] >= TINY
    (most, least) = shifts.of(0)
    assert least == pytest.approx([1, 1, 1]) and most == pytest.approx([1, 1, 1])
    far = _Shifts(Gaussian(Covariance(rows)), Secrets(within=1), [LinearQuery([0, 1])])
    assert far.of(0)[0][0] >= TINY and far.of(0)[0][2] >= TINY and far.of(0)[1][0] == 0.0


def test_secrets_are_looked_at_before_any_release() -> None:
    labels = Secrets(pairs=(((0,), (1,)),))
    for secrets, reason in ((Secrets(), "no-distance"), (labels, "pairs")):
        with raises(UnsoundRequest, field="secrets", reason=reason):
            LinearReleases(Gaussian(AR1(0.5), 3), secrets)


def test_an_output_beyond_all_floats_has_no_joint_law() -> None:
    """Nor have outputs whose law is no law: then nothing is said from below."""
    queries = [LinearQuery([1]), LinearQuery([1])]
    shifts = _Shifts(ALONE, Secrets(within=1), queries)
    law = np.array([[1.0, 1.0], [1.0, 1.0]])
    with np.errstate(all="ignore"):
        assert shifts._joint(law, [0], [1.0, 2.0]) == pytest.approx(1.25**0.5)
        assert shifts._joint(law, [0], [1.0, 0.0]) == 0.0
        assert shifts._joint(law * [[1, np.inf]] * 2, [0], [1.0, 2.0]) == 0.0
        assert shifts._joint(np.array([[1.0, 0.0], [0.0, 1.0]]), [0], [1.0, 2.0]) == 0.0
        alone = _Shifts(ALONE, Secrets(within=1), queries[:1])
        assert alone._joint(np.array([[1.0, 1.0], [1.0, 0.0]]), [0], [1.0]) == 0.0


def test_what_all_but_cancels_is_not_said_to_leak_less_than_nothing() -> None:
    law = Covariance(np.array([[1.0, 0.1], [0.1, 1.0]]))
    process = LinearReleases(Gaussian(law), Secrets(entries=(0,), within=1))
    for share in (1 + Fraction(1, 2**50), 1 - Fraction(1, 2**50)):
        found = process.gaussian([(LinearQuery([Fraction(0.1) * share, -1]), 1)])
        assert found.lower == 0.0 and 0 < found.mu < 1e-13


@pytest.mark.parametrize("bounds", [None, (0, 1)])
def test_what_products_lose_to_underflow_is_added_wherever_something_moves(bounds: Any) -> None:
    """Of two weights, one for an entry that moves by half as much, and one that does not move."""
    rows = np.array([[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    least = Fraction(1, 2**1074)
    within = Fraction(1, 2**1070) if bounds else Fraction(2**40)
    query = LinearQuery({1: 1 if bounds else least, 2: 1}, bounds=bounds)
    (most, _, alone), _ = _Shifts(Gaussian(Covariance(rows)), Secrets(within=within), [query]).of(0)
    if bounds is None:
        assert 4 * TINY * 2.0**40 <= most <= 5 * TINY * 2.0**40 and alone > 2.0**39
    else:
        assert 5 * TINY <= most <= 6 * TINY and 5 * TINY <= alone <= 6 * TINY


def test_what_is_beyond_the_window_leaks_nothing_for_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_queries, "MOST_ROWS", 1)
    process = LinearReleases(Gaussian(AR1(0.5)), Secrets(within=Fraction(1, 8)))
    found = process.laplace([(LinearQuery({3: 1}), 1)])
    assert len(found.by_entry) == 5 and found.lower == pytest.approx(0.125)


def test_the_entry_that_loses_most_need_not_have_the_largest_epsilon() -> None:
    """Three entries without correlation, in every order: each has its own ε and μ."""
    prior, delta = Gaussian(AR1(0.0), 3), 1e-5
    for order, scale in product(([0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]), (1.0, 1 / 32)):
        epsilon, mu = [one * scale for one in (1, 2, 3)], [one * scale for one in (0.75, 0.5, 0.25)]
        pure = [(LinearQuery({k: 1}), 1 / Fraction(epsilon[i])) for k, i in enumerate(order)]
        smooth = [(LinearQuery({k: 1}), 1 / Fraction(mu[i])) for k, i in enumerate(order)]
        process = LinearReleases(prior, Secrets(within=1))
        both = [e + gdp_epsilon(m, delta) for e, m in zip(epsilon, mu, strict=True)]
        assert process.mixed(pure, smooth, delta=delta) == pytest.approx(max(both), rel=1e-9)


# ---- the witness of numbers


def leak(prior: Gaussian, within: Any, cost: Cost) -> float:
    at = Bound(9.0, Binding("x", "y", entry=0))
    return GaussianWitness(prior, Fraction(within), None).best(EntryCosts((cost,)), at)[0]


def test_what_leaks_for_sure_is_rounded_down() -> None:
    assert leak(ALONE, 1, Cost.any(2)) == 2 * (1 - 2.0**-50)
    assert 0 < Fraction(leak(ALONE, 1, Cost.any(BETWEEN))) < BETWEEN
    third = leak(ALONE, 1, Cost.any(Fraction(1, 3)))
    assert third == float_down(Fraction(1, 3)) * (1 - 2.0**-50)


def test_a_neighbour_that_moves_as_much_as_the_secret_is_used() -> None:
    far = Cost.of({Distance(-(10**4), 10**4): 2 * 10**4})  # 1 for each unit
    law = Gaussian(Covariance(np.array([[1.0, 1.0], [1.0, 2.0]])))
    assert leak(law, 2, far) == pytest.approx(4, rel=1e-6)


def test_the_steps_of_rounded_numbers_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[float, float, float]] = []

    def factor(*given: float) -> float:
        asked.append(given)  # type: ignore[arg-type]
        return 1.25

    monkeypatch.setattr(gaussian_witness, "rounding_factor", factor)
    witness = GaussianWitness(ALONE, Fraction(1), None)
    for value, step in ((Fraction(1, 7), Fraction(1, 3)), (Fraction(10, 3), Fraction(1, 10))):
        slopes = _Slopes.of(Cost.of({Steps(0, 20, step): value}))
        grain = value * step / 20
        share, error = witness._smoothing(slopes)
        assert asked[-1] == (float_up(grain), float_up(step), ALONE.least_deviation())
        assert share == 1 - float_up(grain) ** 2 / 12 and error == 0.5
        assert Fraction(asked[-1][0]) > grain and Fraction(asked[-1][1]) > step


def test_what_scores_are_moved_by_is_measured_by_all_that_made_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An entry with a deviation of 1/2 given the secret, which moves its mean by half as much."""
    asked: list[tuple[list[float], list[float]]] = []

    def nearer(scores: Any, size: Any) -> Any:
        asked.append((scores.tolist(), size.tolist()))
        return scores

    monkeypatch.setattr(gaussian_witness, "_nearer", nearer)
    prior = Gaussian(Covariance(np.array([[1.0, 0.5], [0.5, 0.5]])))
    slopes = _Slopes.of(Cost.of({Distance(-6, 10): 32}))  # 2 for each unit
    law, ends = prior.covariance([0, 1]), (-1.0, 3.0)
    GaussianWitness(prior, Fraction(4), None)._beside(
        0, ends, np.array([1]), law, np.array([0]), [slopes]
    )
    low, high = -0.5 + 2 * 0.25, 1.5 + 2 * 0.25  # the mean at both ends, tilted
    size = [(abs(low) + abs(high) + 6 + 10) / 0.5]
    assert asked == [([(-6 - low) / 0.5], size), ([(high - 10) / 0.5], size)]
