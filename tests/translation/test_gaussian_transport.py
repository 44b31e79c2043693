"""Gaussian processes: the shift bound, from above; sums that leak as much, from below."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from takifugu._core.numeric import Floats
from takifugu.costs.cost import ANY, Column, Cost, Distance, Membership
from takifugu.errors import UnsoundRequest
from takifugu.priors import (
    AR1,
    Covariance,
    Gaussian,
    Matern,
    Product,
    Secrets,
    SquaredExponential,
)
from takifugu.priors.kernels import Kernel
from takifugu.translation import Translation
from takifugu.translation.entry_costs import EntryCosts
from tests.oracles import gaussian_processes as oracle
from tests.raising import raises

WIDE = Distance(-100_000, 100_000)  # clamping hardly matters


def sums(per_unit: float, shape: Distance = WIDE) -> Cost:
    """The cost of noise on a sum that moves by 1 per unit: |u − v| times ``per_unit``."""
    return Cost.of({shape: Fraction(per_unit) * (shape.high - shape.low)})


@pytest.mark.parametrize(
    ("scale", "two", "three"),
    [
        (0.5, 2.27067, 2.54134),
        (1, 2.73576, 3.47152),
        (2, 3.21306, 4.42612),
        (5, 3.63746, 5.27492),
    ],
)
def test_sums_over_two_and_three_entries(scale: float, two: float, three: float) -> None:
    for length, known in ((2, two), (3, three)):
        translation = Translation(Gaussian(SquaredExponential(scale), length), Secrets(within=10))
        found = translation.explain_cost(sums(0.2))
        assert found.pufferfish == pytest.approx(known, abs=5e-6) and found.exact
        assert found.method == "transport" and found.by_method["curve"] is None
    written = Covariance(Gaussian(SquaredExponential(scale), 3).covariance(range(3)))
    again = Translation(Gaussian(written), Secrets(within=10)).explain_cost(sums(0.2))
    assert again.pufferfish == pytest.approx(three, abs=5e-6) and again.exact
    assert again.binding is not None and again.binding.entry == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kernel", "known"),
    [
        (AR1(0.5), 3.0),
        (AR1(-0.5), 3.0),
        (AR1(0.9), 19.0),
        (Matern("1/2", 2.0), 1 / np.tanh(0.25)),
        (Matern("3/2", 2.0), 4.62229),
        (Matern("5/2", 2.0), 4.77056),
        (SquaredExponential(2.0), float(oracle.total_correlation("squared-exponential", 2.0))),
    ],
    ids=str,
)
def test_unbounded_processes_by_closed_forms(kernel: Kernel, known: float) -> None:
    found = Translation(Gaussian(kernel, variance=3.0), Secrets(within=1)).explain_cost(sums(1.0))
    assert found.pufferfish == pytest.approx(known, abs=5e-6) and found.exact
    first = Translation(Gaussian(kernel), Secrets(entries=(0,), within=1)).explain_cost(sums(1.0))
    assert first.pufferfish == pytest.approx((known + 1) / 2, abs=5e-6) and first.exact


@pytest.mark.nightly
@settings(max_examples=12)
@given(
    st.integers(2, 3),
    st.integers(0, 2**32 - 1),
    st.floats(0.1, 2.0),
    st.floats(0.2, 3.0),
    st.booleans(),
)
def test_no_output_of_a_noisy_sum_leaks_more(
    size: int, seed: int, scale: float, within: float, clamped: bool
) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, size + 1))
    law = np.round(factor @ factor.T + 0.1 * np.eye(size), 6)
    law = (law + law.T) / 2
    mean = np.round(rng.normal(size=size), 3)
    entry = int(rng.integers(size))
    bounds = (-1.0, 1.5)
    shape = Distance(*bounds) if clamped else Distance(-10_000, 10_000)
    prior = Gaussian(Covariance(law), mean=mean)
    translation = Translation(prior, Secrets(entries=(entry,), within=within))
    found = translation.explain_cost(sums(1 / scale, shape))
    outputs = np.concatenate([np.linspace(-8, 8, 13), [-1e3, 1e3]])[:, None]
    query = (np.ones(size), scale, bounds if clamped else None)
    worst = 0.0
    for middle in (-1.0, 0.0, 0.25, 2.0):
        pair = (middle + within / 2, middle - within / 2)
        worst = max(worst, oracle.laplace_loss(law, mean, entry, pair, [query], outputs))
    assert worst <= found.pufferfish + 1e-6
    assert found.lower <= found.pufferfish
    if not clamped and (law[entry] >= 0).all():
        assert worst == pytest.approx(found.pufferfish, rel=2e-3) and found.exact
        assert found.lower <= worst * (1 + 2e-3)


@pytest.mark.costly
@settings(max_examples=25)
@given(
    st.floats(-0.95, 0.95),
    st.floats(0.05, 3.0),
    st.floats(0.05, 2.0),
    st.floats(-2.0, 2.0),
)
def test_the_witness_of_two_entries_is_below_its_own_law(
    rho: float, within: float, steep: float, mean: float
) -> None:
    shape = Distance(-2, 3)
    prior = Gaussian(AR1(rho), 2, mean=mean)
    translation = Translation(prior, Secrets(entries=(0,), within=within))
    found = translation.explain_cost(sums(steep, shape))
    deviation = float(np.sqrt(1 - rho**2))
    best = 0.0
    for middle in (mean, 0.5):
        x, y = middle + within / 2, middle - within / 2
        own = steep * (min(max(x, -2), 3) - min(max(y, -2), 3))
        ends = (mean + rho * (x - mean), mean + rho * (y - mean))
        beside = oracle.clamped_leak(ends, deviation, -2, 3, steep if rho > 0 else -steep)
        assert beside >= -1e-12
        best = max(best, own + beside)
    assert found.lower <= best + 1e-9 and best <= found.pufferfish + 1e-9
    assert found.lower >= steep * min(within, 5) - 1e-9


@pytest.mark.nightly
def test_the_witness_is_close_where_bounds_are_far_and_never_above() -> None:
    near = Secrets(within=10)
    pressure = Gaussian(AR1(0.9), mean=120, variance=100)
    far = Translation(pressure, near).explain_cost(sums(0.005, Distance(40, 240)))
    assert 0.99 * far.pufferfish < far.lower < far.pufferfish
    edge = Translation(pressure, near).explain_cost(sums(0.005, Distance(120, 320)))
    assert 0.05 <= edge.lower < 0.9 * edge.pufferfish  # the own entry at least


def program(law: Floats, rest: Floats, cost: Floats) -> float:
    """The largest log E[g|x]/E[g|y] over all g with this cost, on a grid, by linear programming."""
    size = len(law)
    near = [(u, v) for u in range(size) for v in (u - 1, u + 1) if 0 <= v < size]
    rows = np.zeros((len(near), size))
    for k, (u, v) in enumerate(near):
        rows[k, u], rows[k, v] = 1.0, -np.exp(cost[u, v])
    solved = linprog(-law, A_ub=rows, b_ub=np.zeros(len(near)), A_eq=rest[None], b_eq=[1.0])
    return float(np.log(-solved.fun))


@pytest.mark.parametrize("rho", [0.3, -0.6, 0.9])
@pytest.mark.parametrize("steep", [0.2, 1.0])
def test_two_entries_against_a_program_over_all_mechanisms(rho: float, steep: float) -> None:
    """Of distance costs the worst mechanism tilts: the program on a grid finds no other."""
    within, grid = 1.0, np.linspace(-6, 6, 241)
    deviation = np.sqrt(1 - rho**2)
    one, other = (
        np.exp(-(((grid - rho * value) / deviation) ** 2) / 2)
        for value in (within / 2, -within / 2)
    )
    cost = steep * np.abs(np.subtract.outer(np.clip(grid, -2, 3), np.clip(grid, -2, 3)))
    true = steep * within + program(one / one.sum(), other / other.sum(), cost)
    translation = Translation(Gaussian(AR1(rho), 2), Secrets(entries=(0,), within=within))
    found = translation.explain_cost(sums(steep, Distance(-2, 3)))
    assert found.lower <= true + 1e-4 and true <= found.pufferfish + 1e-4
    ends = (rho * within / 2, -rho * within / 2)
    tilted = oracle.clamped_leak(ends, deviation, -2, 3, steep * np.sign(rho))
    assert true == pytest.approx(steep * within + tilted, abs=1e-4)


def exact_loss(costs: list[Cost], kernel: str, parameter: float, entry: int, within: int) -> float:
    """Σ_j w_j·min(r|ρ|, width) of distance costs, one entry at a time, to many digits."""
    with mpmath.workdps(40):
        total = mpmath.mpf(0)
        for j, cost in enumerate(costs):
            moved = within * abs(oracle.correlation(kernel, parameter, j - entry, 40))
            for shape, value in cost.terms:
                share = mpmath.mpf(1)
                if isinstance(shape, Distance):
                    width = shape.high - shape.low
                    share = min(moved * width.denominator / width.numerator, mpmath.mpf(1))
                total += mpmath.mpf(value.numerator) / value.denominator * share
        return float(total * (1 - mpmath.mpf(2) ** -53))


@pytest.mark.costly
@settings(max_examples=15)
@given(
    st.sampled_from(
        [("ar1", 0.9, AR1(0.9)), ("ar1", -0.4, AR1(-0.4)), ("3/2", 3.0, Matern("3/2", 3.0))]
    ),
    st.lists(
        st.tuples(st.sampled_from([0.0, 1e-300, 0.3, 7.0]), st.sampled_from([0.0, 1e-300, 2.0])),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
)
def test_profiles_one_entry_at_a_time(
    named: tuple[str, float, Kernel], spent: list[tuple[float, float]], written: bool
) -> None:
    name, parameter, kernel = named
    costs = [Cost.of({Distance(0, 1): a, Distance(-5, 95): b}) for a, b in spent]
    process = Gaussian(kernel, len(costs))
    if written:
        if name != "ar1" or parameter < 0:
            return
        law = [[0.5 ** abs(i - j) for j in range(len(costs))] for i in range(len(costs))]
        process, name, parameter = Gaussian(Covariance(np.array(law))), "ar1", 0.5
    bound = Translation(process, Secrets(within=2)).cost_bound(costs, "transport")
    if not any(costs):
        assert bound.value == 0
        return
    assert bound.by_entry is not None
    for entry in range(len(costs)):
        true = exact_loss(costs, name, parameter, entry, 2)
        assert true <= bound.by_entry[entry] <= true * (1 + 1e-11) + 1e-303


@pytest.mark.nightly
def test_ten_thousand_entries_each_with_a_cost_of_its_own() -> None:
    rng = np.random.default_rng(3)
    size = 10_000
    costs = [Cost.of({Distance(0, 100): float(w)}) for w in rng.random(size) * 1e-3]
    translation = Translation(Gaussian(AR1(0.75), size), Secrets(within=7))
    bound = translation.cost_bound(costs)
    assert bound.by_entry is not None and bound.value == bound.by_entry.max()
    weights = np.array([float(cost.terms[0][1]) for cost in costs])
    for entry in (0, 1, 5000, size - 1):
        true = 0.07 * float(weights @ 0.75 ** np.abs(np.arange(size) - entry).astype(float))
        assert bound.by_entry[entry] == pytest.approx(true, rel=1e-9)
        assert bound.by_entry[entry] >= true * (1 - 1e-12)
    longer = Translation(Gaussian(AR1(0.75), 20_000), Secrets(within=7)).cost_bound(costs * 2)
    assert bound.value * (1 - 1e-11) <= longer.value <= bound.value * 1.3
    long = Translation(Gaussian(AR1(0.75), 2**50), Secrets(within=7)).cost_bound(costs[0])
    unbounded = Translation(Gaussian(AR1(0.75)), Secrets(within=7)).cost_bound(costs[0])
    assert long.value == pytest.approx(unbounded.value, rel=1e-9)


@pytest.mark.parametrize("kernel", [AR1(0.99999), Matern("5/2", 5000.0), SquaredExponential(1e9)])
def test_long_memories_beyond_the_lags_that_are_added(kernel: Kernel) -> None:
    assert not isinstance(kernel, Covariance)
    near, cost = Secrets(within=1), sums(1.0)
    unbounded = Translation(Gaussian(kernel), near).cost_bound(cost).value
    assert unbounded == pytest.approx(kernel.total(), rel=1e-9) and unbounded >= kernel.total()
    long = Translation(Gaussian(kernel, 40_001), near).cost_bound(cost).value
    true = 1 + 2 * float(np.sum(kernel.least(np.arange(1, 20_001))))
    assert true <= long <= unbounded and long <= true * 1.2
    # clamped to a width that is below the distance: each entry pays its own cost at most
    narrow = Translation(Gaussian(kernel, 101), Secrets(within=50)).cost_bound(
        Cost.of({Distance(0, 1): "0.01"})
    )
    assert narrow.value == pytest.approx(1.01, rel=1e-9)


def test_tiny_and_huge_costs_are_not_rounded_to_nothing() -> None:
    near = Secrets(within=1)
    for value in (1e-300, 5e-324, 1e-10, 1e250):
        found = Translation(Gaussian(AR1(0.5)), near).cost_bound(Cost.of({WIDE: value}))
        true = Fraction(value) * 3 / 200_000
        assert (
            true <= Fraction(found.value) <= true * (1 + Fraction(1, 10**9)) + Fraction(1, 10**302)
        )
    far = Translation(Gaussian(AR1(0.5)), Secrets(within="1e-300")).cost_bound(sums(1.0))
    assert 3e-300 <= far.value <= 3.0001e-300


def test_what_is_not_a_distance_counts_in_full_for_each_entry_that_moves() -> None:
    near = Secrets(within=1)
    blocks = Gaussian(Covariance(np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])))
    translation = Translation(blocks, near)
    found = translation.explain(0.25)
    assert found.pufferfish == pytest.approx(0.5) and found.lower == pytest.approx(0.25)
    assert float(translation.to_dp(1.0)) == pytest.approx(0.5)
    assert translation.bound(np.array([0.1, 0.2, 0.9])).value == pytest.approx(0.9)
    both = translation.cost_bound(Cost.of({ANY: "0.1", WIDE: 200_000}))
    assert both.value == pytest.approx(0.2 + 1.5)
    unbounded = Translation(Gaussian(AR1(0.5)), near)
    assert unbounded.to_pufferfish(0.1) == np.inf and unbounded.to_dp(1.0) == 0
    assert unbounded.cost_to_pufferfish(Cost.of({ANY: "1e-9", WIDE: 1})) == np.inf
    assert unbounded.to_pufferfish(0.0) == 0 and unbounded.cost_to_pufferfish(Cost()) == 0
    with raises(UnsoundRequest, field="cost", reason="unknown label"):
        unbounded.cost_to_pufferfish(Cost.of({Membership(["home"]): 1}))
    with raises(UnsoundRequest, field="columns"):
        unbounded.cost_to_pufferfish(Cost.of({Column("a", WIDE): 1}))
    with raises(UnsoundRequest, field="profile"):
        unbounded.cost_bound([sums(1.0)])
    with raises(UnsoundRequest, field="profile"):
        translation.cost_bound([sums(1.0)])


def test_alternatives_and_allowances() -> None:
    translation = Translation(Gaussian(AR1(0.5)), Secrets(within=1))
    steep, flat = sums(1.0, Distance(0, 2)), sums(0.5)
    together = translation.cost_to_pufferfish(steep, flat)
    assert together == pytest.approx(3.0) and together >= translation.cost_to_pufferfish(flat)
    unit = Cost.of({WIDE: 1})
    factor = translation.to_cost(unit, 1.0)
    assert factor == pytest.approx(200_000 / 3, rel=1e-8)
    assert translation.cost_to_pufferfish(unit * factor) <= 1
    more = translation.to_cost(unit, 1.0, spent=(unit * 30_000,), beside=(unit * 60_000,))
    assert more == pytest.approx(200_000 / 3 - 30_000, rel=1e-8)
    assert translation.to_cost(unit, 1.0, beside=(unit * 70_000,)) == 0
    uncertain = Translation(Gaussian(AR1(0.5)), Secrets(within=1), uncertainty=0.2)
    assert uncertain.cost_to_pufferfish(unit) == pytest.approx(0.000015 + np.log(1.5))


def test_people_and_several_processes() -> None:
    near = Secrets(within=1)
    ann, bob = Gaussian(AR1(0.5), 3), Gaussian(AR1(0.9), 2)
    both = Translation(Product({"ann": ann, "bob": bob}), near)
    found = both.explain_cost(sums(1.0))
    assert found.pufferfish == pytest.approx(2.0)
    assert found.binding is not None and found.binding.prior == "ann"
    profile = [sums(w) for w in (0.0, 0.0, 1.0, 2.0, 3.0)]
    assert both.cost_bound(profile).value == pytest.approx(2 * 0.9 + 3)
    either = Translation([Gaussian(AR1(0.5)), Gaussian(AR1(0.6))], near)
    assert either.cost_to_pufferfish(sums(1.0)) == pytest.approx(4.0)


def test_costs_that_any_entry_may_have_lost() -> None:
    near = Secrets(entries=(1,), within=4)
    steep, flat = Cost.of({Distance(0, 1): 1}), Cost.of({Distance(0, 10): 2})
    written = Covariance(np.array([[1, 0.5, 0.25], [0.5, 1, 0.5], [0.25, 0.5, 1]]))
    for process in (Gaussian(AR1(0.5), 3), Gaussian(written)):
        bound = Translation(process, near).cost_bound(EntryCosts((steep, flat)))
        assert bound.value == pytest.approx(1.0 + 1.0 + 1.0)  # shifts 2, 4, 2: min(d, 1) or d/5


def test_secrets_of_entries_that_there_are() -> None:
    process = Gaussian(AR1(0.5), 3)
    for wrong in ("0", 3, -1):
        with raises(UnsoundRequest, field="secrets", given=wrong):
            Translation(process, Secrets(entries=(wrong,), within=1)).cost_bound(sums(1.0))
    one = Translation(process, Secrets(entries=(0,), within=1)).explain_cost(sums(1.0))
    assert one.pufferfish == pytest.approx(1.75) and one.exact
    assert one.by_entry is not None and one.by_entry.tolist()[1:] == [0, 0]
