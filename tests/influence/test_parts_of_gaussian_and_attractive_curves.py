"""Windows of normal laws to many digits, and sets of attractive fields over all states."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import mpmath
import numpy as np
import pytest

from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.influence import gaussian_curves as gaussian
from takifugu.influence.network import attractive_curves as attractive
from takifugu.influence.network.attractive_curves import AttractiveField, attractive_curve
from takifugu.influence.network.elimination import Elimination, bits
from takifugu.influence.network.messages import message
from takifugu.numeric import Floats
from takifugu.priors.random_field import MarkovRandomField
from takifugu.priors.truncated_gaussian import TruncatedGaussian
from tests.raising import raises

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("start", [-30.0, -3.0, -0.3, 0.0, 0.7, 8.0, 37.0])
@pytest.mark.parametrize("width", [1e-12, 1e-5, 1e-3, 0.3, 2.0, 60.0])
@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (0.4, 0.7), (-2.0, 5.0)])
def test_the_mass_of_a_window_is_known_to_its_error(
    start: float, width: float, mean: float, deviation: float
) -> None:
    found = gaussian._window(start, width, mean, deviation)
    with mpmath.workdps(60):
        ends = [
            (mpmath.mpf(one) - mpmath.mpf(mean)) / mpmath.mpf(deviation)
            for one in (start, mpmath.mpf(start) + mpmath.mpf(width))
        ]
        if ends[0] > 0:
            ends = [-ends[1], -ends[0]]
        truth = mpmath.log(mpmath.ncdf(ends[1]) - mpmath.ncdf(ends[0]))
        assert abs(truth - mpmath.mpf(found.log)) <= found.error
    assert found.error <= 1e-5
    other = gaussian._Mass(0.25, 0.5)
    both = found.over(other)
    assert both.log == found.log - 0.25 and both.error == found.error + 0.5


@pytest.mark.parametrize("width", [1e-16, 1e-20, 1e-300])
def test_a_window_far_narrower_than_a_rounding_is_known_to_its_error(width: float) -> None:
    found = gaussian._window(-1.0, width, 0.25, 2.0)
    exact = math.log(width / 2) - 0.625**2 / 2 - math.log(2 * math.pi) / 2
    assert 0 <= found.error <= 1e-10 and abs(found.log - exact) <= found.error + 1e-10
    covariance = np.array([[1.0, 0.5], [0.5, 1.0]])
    wide, narrow = (TruncatedGaussian(covariance, 1.0, one) for one in (1e-6, width))
    alike = gaussian.gaussian_curve(wide).leak, gaussian.gaussian_curve(narrow).leak
    np.testing.assert_allclose(*alike, rtol=1e-4)


def test_a_window_of_no_width_in_floats_is_not_bounded() -> None:
    least = math.ulp(0.0)
    assert gaussian._window(-1.0, least, 0.0, 2.0).error == math.inf
    prior = TruncatedGaussian(np.array([[4.0, 6.0], [6.0, 16.0]]), bound=1.0, width=least)
    assert gaussian.gaussian_curve(prior).leak[:, 0].tolist() == [math.inf, math.inf]


def prior_of(n: int, rho: float, *, bound: float = 3.0, width: float = 0.5) -> TruncatedGaussian:
    covariance = np.array([[rho ** abs(i - j) for j in range(n)] for i in range(n)])
    scale = np.linspace(0.8, 1.3, n)
    return TruncatedGaussian(covariance * np.outer(scale, scale), bound=bound, width=width)


@pytest.mark.parametrize("rho", [0.0, 0.4, -0.7, 0.95])
@pytest.mark.parametrize("given", [(1,), (1, 2), (2, 3), (1, 2, 3)])
def test_a_conditional_law_is_widened_by_its_error(rho: float, given: tuple[int, ...]) -> None:
    prior = prior_of(4, rho)
    reach, deviation = gaussian._conditional(prior, 0, given)
    with mpmath.workdps(50):
        sigma = mpmath.matrix(prior.covariance.tolist())
        block = mpmath.matrix([[sigma[a, b] for b in given] for a in given])
        cross = mpmath.matrix([sigma[a, 0] for a in given])
        weights = mpmath.lu_solve(block, cross)
        far = prior.bound * mpmath.fsum(abs(one) for one in weights)
        variance = sigma[0, 0] - mpmath.fsum(a * b for a, b in zip(weights, cross, strict=True))
        assert far <= reach <= far * (1 + mpmath.mpf(1e-10)) + 1e-10
        assert deviation <= mpmath.sqrt(variance) <= deviation * (1 + mpmath.mpf(1e-10))


def density_ratio(prior: TruncatedGaussian, mean: float, deviation: float, start: float) -> Any:
    whole = mpmath.sqrt(prior.covariance[0, 0])

    def mass(centre: float, spread: Any) -> Any:
        low = (mpmath.mpf(start) - centre) / spread
        high = (mpmath.mpf(start) + prior.width - centre) / spread
        return (
            mpmath.ncdf(high) - mpmath.ncdf(low)
            if low < 0
            else mpmath.ncdf(-low) - mpmath.ncdf(-high)
        )

    return mpmath.log(mass(mean, mpmath.mpf(deviation)) / mass(0.0, whole))


@pytest.mark.parametrize("mean", [0.0, 0.2, 1.5, 6.0])
@pytest.mark.parametrize("deviation", [0.2, 0.5, 0.79])
@pytest.mark.parametrize("width", [0.01, 0.5])
def test_no_two_windows_differ_by_more(mean: float, deviation: float, width: float) -> None:
    prior = prior_of(2, 0.5, width=width)
    found = gaussian._gaussian_term(prior, 0, mean, deviation)
    with mpmath.workdps(60):
        starts = np.linspace(-prior.bound, prior.bound - width, 81)
        ratios = [density_ratio(prior, mean, deviation, float(one)) for one in starts]
        assert max(ratios) - min(ratios) <= found
        assert found <= (max(ratios) - min(ratios)) * mpmath.mpf(1.01) + 0.6 * width / deviation**2


def test_windows_without_a_law() -> None:
    prior = prior_of(2, 0.5)
    assert gaussian._gaussian_term(prior, 0, 1.0, 0.0) == math.inf
    assert gaussian._gaussian_term(prior, 0, math.inf, 0.5) == math.inf
    whole = math.sqrt(prior.covariance[0, 0])
    assert gaussian._gaussian_term(prior, 0, 0.0, whole) == 0.0
    for spread in (whole, 1.25 * whole):
        edge = gaussian._gaussian_term(prior, 0, 0.3, spread)
        with mpmath.workdps(40):
            ends = [
                density_ratio(prior, 0.3, spread, one)
                for one in (prior.bound - prior.width, -prior.bound)
            ]
            assert ends[0] - ends[1] <= edge <= ends[0] - ends[1] + 1e-10
    assert gaussian._finite(math.nan) == math.inf == gaussian._finite(math.inf)
    assert gaussian._finite(2.5) == 2.5 and gaussian._finite(-3.0) == -3.0


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_staying_within_the_bounds_is_at_least_so_likely(rho: float) -> None:
    prior = prior_of(3, rho, bound=2.0)
    with mpmath.workdps(40):
        for j, given in ((1, [0]), (2, [0]), (2, [0, 1])):
            found = gaussian._stay(prior, j, given)
            reach, deviation = gaussian._conditional(prior, j, given)
            ends = [(mpmath.mpf(s * prior.bound) - reach) / deviation for s in (-1, 1)]
            truth = mpmath.log(mpmath.ncdf(ends[1]) - mpmath.ncdf(ends[0]))
            assert truth - 1e-7 * (1 + abs(truth)) <= found <= truth
    alone = gaussian._log_stay(prior, [1], [0])
    assert alone <= gaussian._stay(prior, 1, [0]) + 1e-12
    both = gaussian._log_stay(prior, [1, 2], [0])
    ways = [
        gaussian._stay(prior, 1, [0]) + gaussian._stay(prior, 2, [0, 1]),
        gaussian._stay(prior, 2, [0]) + gaussian._stay(prior, 1, [0, 2]),
    ]
    outside = sum(-math.expm1(gaussian._stay(prior, j, [0])) for j in (1, 2))
    if outside < 1:
        ways.append(math.log1p(-outside))
    assert both <= max(ways) + 1e-11
    assert both >= max(ways) - 1e-9 or both >= -0.5
    assert gaussian._log_stay(prior, [], [0]) == 0.0
    assert gaussian._log_within(prior, 0) == both


def test_candidates_are_windows_neighbours_and_the_most_correlated() -> None:
    covariance = np.eye(4)
    covariance[0, 3] = covariance[3, 0] = 0.8
    covariance[1, 2] = covariance[2, 1] = 0.3
    prior = TruncatedGaussian(covariance, bound=3.0, width=0.5)
    found = gaussian._candidates(prior, 0, 2)
    assert (0, 3) in found and (0, 1) in found
    assert all(0 in one and len(one) == 2 for one in found)
    assert gaussian._candidates(prior, 1, 1) == {(1,)}
    assert gaussian._candidates(prior, 2, 4) == {(0, 1, 2, 3)}
    for exposed in ((0,), (0, 3), (0, 1, 2, 3)):
        leak = gaussian.split_leak(prior, 0, exposed)
        assert (leak == 0.0) == (len(exposed) == 4)
        assert gaussian.split_leak(prior, 0, exposed, law="printed") <= leak
    assert gaussian.split_leak(prior, 0, (0, 3)) < gaussian.split_leak(prior, 0, (0, 1))


def test_entries_are_as_correlated_as_they_are_on_one_scale() -> None:
    """Entry 2 varies the most; entry 3 is the one that goes with entry 0."""
    covariance = np.diag([1.0, 1.0, 100.0, 0.01])
    covariance[0, 2] = covariance[2, 0] = 2.0  # a correlation of 0.2
    covariance[0, 3] = covariance[3, 0] = 0.08  # of 0.8
    prior = TruncatedGaussian(covariance, bound=3.0, width=0.5)
    found = gaussian._candidates(prior, 0, 2)
    assert (0, 3) in found and (0, 2) not in found


# ---- attractive fields


def field_of(seed: int, n: int, density: float = 0.6) -> MarkovRandomField:
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < density]
    return MarkovRandomField.ising(
        {i: float(rng.normal(-0.5, 1)) for i in range(n)},
        {pair: float(rng.exponential(0.8)) for pair in pairs},
    )


def odds(model: MarkovRandomField, inside: list[int], entry: int, around: int) -> float:
    """Log P(entry is 1)/P(it is 0) with all that is not inside set to a value, over all states."""
    sums = [0.0, 0.0]
    for x in product((0, 1), repeat=len(model.entries)):
        if any(x[v] != around for v in range(len(x)) if v not in inside):
            continue
        weight = math.prod(float(model.unary[i][v]) for i, v in enumerate(x))
        for (a, b), table in zip(model.edges, model.weights, strict=True):
            weight *= float(table[x[int(a)]][x[int(b)]])
        sums[x[entry]] += weight
    return math.log(sums[1] / sums[0])


@pytest.mark.parametrize("seed", range(5))
def test_odds_of_a_set_are_those_over_all_its_states(seed: int) -> None:
    n = 5
    model = field_of(seed, n)
    field = AttractiveField(model)
    for mask in range(1, 2**n):
        for entry in bits(mask):
            one, zero = field.evaluate(mask, entry)
            truth = odds(model, bits(mask), entry, 1), -odds(model, bits(mask), entry, 0)
            assert truth[0] - 1e-14 <= one <= truth[0] + 1e-11
            assert truth[1] - 1e-14 <= zero <= truth[1] + 1e-11


def test_rings_edges_and_contacts() -> None:
    """A path 0 – 1 – 2 – 3 with a stronger contact 1 – 4, and 5 apart."""
    pulls = {(0, 1): 0.5, (1, 2): 1.0, (2, 3): 0.2, (1, 4): 3.0}
    model = MarkovRandomField.ising(dict.fromkeys(range(6), 0.0), pulls)
    field = AttractiveField(model)
    assert bits(attractive._whole(field, 0)) == [0, 1, 2, 3, 4]
    assert bits(attractive._whole(field, 5)) == [5]
    assert bits(attractive._edge(field, 0b000010)) == [0, 2, 4]
    assert bits(attractive._edge(field, 0b010110)) == [0, 3]
    for size, expected in (
        (1, [0]),
        (2, [0, 1]),
        (3, [0, 1, 2]),
        (4, [0, 1, 2, 4]),
        (9, [0, 1, 2, 3, 4]),
    ):
        assert bits(attractive._ball(field, 0, size)) == expected
    assert bits(attractive._nearer(field, 0b000010, 1, 0)) == [1, 4]
    assert bits(attractive._nearer(field, 0b010010, 1, 0)) == [1, 2, 4]
    assert bits(attractive._nearer(field, 0b000011, 0, 0)) == [0, 1, 2]  # none of them is felt by 0
    assert bits(attractive._nearer(field, 0b000011, 0, 1)) == [0, 1, 4]
    assert attractive._nearer(field, 0b100000, 5, 0) == 0b100000
    assert field.strength[1, 4] == pytest.approx(3.0) == field.strength[4, 1]
    best, sets, seen, tried = attractive._grow(field, 1, attractive._whole(field, 1), 3)
    assert tried == 2 and len(best) == len(sets) == 3 and sets[0] == [0b10, 0b10]
    for way in (0, 1):
        values = [row[way] for row in best]
        assert values == sorted(values, reverse=True)
        assert values[1] == min(
            field.evaluate(mask, 1)[way] for mask in (0b10, 0b11, 0b110, 0b10010)
        )
        for b in range(3):
            assert sets[b][way].bit_count() <= b + 1
            assert field.evaluate(sets[b][way], 1)[way] == values[b]
    assert field.evaluate(0b10, 1) in seen


def test_fields_beyond_floats_and_sets_beyond_reach() -> None:
    attractive._stays(999.0, np.array([3.0, -2.0]))
    for bad in (1000.0, np.array([1.0, math.nan]), math.inf):
        with raises(TooLarge):
            attractive._stays(0.0, bad)
    model = field_of(1, 3)
    for largest in (0, 21):
        with raises(UnsoundRequest, field="largest"):
            attractive_curve(model, largest=largest)
    wide = MarkovRandomField.ising(
        dict.fromkeys(range(22), 0.0), {(k, k + 1): 0.1 for k in range(21)}
    )
    field = AttractiveField(wide)
    with raises(TooLarge, size=21, limit=20):
        field.evaluate(2**21 - 1, 0)


@pytest.mark.parametrize("seed", range(4))
def test_marginals_by_elimination_are_sums_over_all_states(seed: int) -> None:
    n = 5
    model = field_of(seed, n, density=0.5)
    full = Elimination(model)
    weights: dict[tuple[int, ...], float] = {}
    for x in product((0, 1), repeat=n):
        weight = math.prod(float(model.unary[i][v]) for i, v in enumerate(x))
        for (a, b), table in zip(model.edges, model.weights, strict=True):
            weight *= float(table[x[int(a)]][x[int(b)]])
        weights[x] = weight
    for entry in range(n):
        whole = full.part(2**n - 1, entry)
        reached = {entry}
        for _ in range(n):
            reached |= {
                int(b if a in reached else a)
                for a, b in model.edges
                if (a in reached) != (b in reached)
            }
        assert set(bits(whole)) == reached
        for keep in {entry, max(reached)}:
            mask = 1 << entry | 1 << keep
            found, roundings = full.marginal(whole, mask)
            kept = bits(mask)
            truth = np.zeros((2,) * len(kept))
            for x, weight in weights.items():
                truth[tuple(x[v] for v in kept)] += weight
            assert found / found.sum() == pytest.approx(truth / truth.sum(), rel=1e-12)
            assert roundings >= len(reached)
        up, down = full.odds(whole, entry, [((1,), (0,)), ((0,), (1,))])
        sums = [sum(w for x, w in weights.items() if x[entry] == v) for v in (0, 1)]
        truth_up = math.log(sums[1] / sums[0])
        assert truth_up <= up <= truth_up + 1e-12 and -truth_up <= down <= -truth_up + 1e-12
    assert full.boundary(0b11) == (full.around[0] | full.around[1]) & ~0b11
    for mask in (0, 1, 0b1010, 0b11111):
        assert sum(1 << v for v in bits(mask)) == mask


def test_messages_are_scaled_so_that_most_and_least_are_equally_far_from_one() -> None:
    table = np.array([[1e-3, 4.0], [2.0, 0.5], [0.0, 3.0]])
    found = message(table, roundings=5, least=-10)
    assert found.roundings >= 6
    for row in found.rows:
        positive = row[row > 0]
        assert positive.max() * positive.min() == pytest.approx(1.0)
        assert 2.0**-found.depth <= positive.min() and positive.max() <= 2.0**found.depth
        assert any(np.allclose(row / row.sum(), given / given.sum(), rtol=1e-12) for given in table)
    assert message(table, roundings=5, least=-960).depth == found.depth
    with raises(TooLarge):
        message(table, roundings=5, least=-961)
    nothing: Floats = np.zeros((0, 2))
    assert message(nothing, roundings=3, least=0).roundings == 3
    assert Fraction(found.depth) < 12


def test_a_table_of_a_group_counts_one_rounding_for_each_product() -> None:
    """Of n tables n - 1: the first is only copied. Scaling a row is one more for each of them."""
    full = Elimination(field_of(1, 3, density=1.0))
    own, near, far = (k for k, mask in enumerate(full._masks) if mask & 0b001)
    assert [full._masks[k] for k in (own, near, far)] == [0b001, 0b011, 0b101]
    assert full._table(0, 0b001, [own], []).roundings == 1
    assert full._table(0b010, 0b001, [near], []).roundings == 1
    assert full._table(0b010, 0b001, [own, near], []).roundings == 1 + 1
    thinned = 2  # of four rows the two extreme ones are kept
    assert full._table(0b110, 0b001, [own, near, far], []).roundings == 2 + 1 + thinned
