"""Numbers rounded to steps: a program over all mechanisms on the grid never finds more."""

from fractions import Fraction
from math import erf, floor, inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from takifugu._core.numeric import Floats
from takifugu.costs.cost import ANY, Cost, Distance, Steps
from takifugu.priors import AR1, Covariance, Gaussian, Matern, Secrets, SquaredExponential
from takifugu.priors.kernels import Kernel
from takifugu.translation import Translation
from takifugu.translation.certify.gaussian import rounding_factor


def cells(mean: float, deviation: float, ends: Floats) -> Floats:
    """The probability of each cell between ``ends``, the outer ones open."""
    below = [(1 + erf((end - mean) / deviation / sqrt(2))) / 2 for end in ends]
    return np.diff([0.0, *below, 1.0])


def program(law: Floats, rest: Floats, kappa: float) -> float:
    """The largest log Σ h·law / Σ h·rest over all h with neighbours within e^κ."""
    size = len(law)
    rows = np.zeros((2 * (size - 1), size))
    for n in range(size - 1):
        rows[2 * n, n], rows[2 * n, n + 1] = 1.0, -np.exp(kappa)
        rows[2 * n + 1, n + 1], rows[2 * n + 1, n] = 1.0, -np.exp(kappa)
    solved = linprog(-law, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=rest[None], b_eq=[1.0])
    return float(np.log(-solved.fun))


@pytest.mark.costly
@settings(max_examples=60, deadline=None)
@given(
    st.floats(0.02, 0.9),
    st.floats(0.001, 0.6),
    st.floats(-3.0, 3.0),
    st.floats(0.001, 4.0),
    st.integers(2, 40),
)
def test_no_mechanism_on_the_grid_beats_the_factor(
    eta: float, kappa: float, mean: float, shift: float, count: int
) -> None:
    """N(mean, 1) against N(mean − shift, 1), seen in steps of η between clamps."""
    factor = rounding_factor(kappa, eta, 1.0)
    ends = np.array([(k - count / 2 + 0.37) * eta for k in range(count)])
    law, rest = cells(mean, 1.0, ends), cells(mean - shift, 1.0, ends)
    keep = (law > 1e-14) | (rest > 1e-14)
    if keep.sum() < 2:
        return
    law, rest = law[keep] / law[keep].sum(), rest[keep] / rest[keep].sum()
    assert program(law, rest, kappa) <= factor * kappa * shift / eta + 1e-7


def test_the_factor_is_close_to_one_where_the_grid_is_fine() -> None:
    assert 1 < rounding_factor(1e-3, 0.01, 1.0) < 1.0001
    assert rounding_factor(0.01, 0.1, 1.0) < 1.002
    assert rounding_factor(1e-300, 1e-300, 1.0) < 1.0001
    for kappa, step, deviation in ((6.0, 0.1, 1.0), (0.1, 2.0, 1.0), (0.1, 0.1, 0.0)):
        assert rounding_factor(kappa, step, deviation) == inf


@pytest.mark.parametrize("rho", [0.3, -0.6, 0.85])
@pytest.mark.parametrize(("step", "coefficient"), [("0.25", 1.0), ("0.5", 3.0), ("0.05", 0.5)])
@pytest.mark.parametrize("within", ["0.3", "1.7"])
def test_two_entries_against_a_program_over_all_mechanisms(
    rho: float, step: str, coefficient: float, within: str
) -> None:
    shape, grid, apart = Steps(-2, 3, step), Fraction(step), Fraction(within)
    kappa = coefficient / shape.count
    translation = Translation(Gaussian(AR1(rho), 2), Secrets(entries=(0,), within=within))
    found = translation.explain_cost(Cost.of({shape: coefficient}))
    ends = np.array([float(-2 + (k + Fraction(1, 2)) * grid) for k in range(shape.count)])
    worst = 0.0
    for start in (0.0, float(grid) / 2 - 1e-9, -1.234):
        x = start + float(apart)
        own = abs(np.rint(min(x, 3) / float(grid)) - np.rint(start / float(grid))) * kappa
        assert own <= kappa * (floor(apart / grid) + 1)
        deviation = sqrt(1 - rho**2)
        law, rest = (cells(rho * value, deviation, ends) for value in (x, start))
        worst = max(worst, own + program(law, rest, kappa))
    assert worst <= found.pufferfish + 1e-7
    assert found.lower <= found.pufferfish
    both = Cost.of({Distance(-2, 3): coefficient, ANY: kappa})
    assert found.pufferfish <= translation.cost_bound(both).value * (1 + 1e-9)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "kernel",
    [AR1(0.9), AR1(-0.3), Matern("1/2", 2.0), Matern("3/2", 1.0), Matern("5/2", 2.0),
     SquaredExponential(0.2), SquaredExponential(1.0)],
    ids=str,
)  # fmt: skip
def test_the_least_eigenvalue_is_one(kernel: Kernel) -> None:
    law = Gaussian(kernel, 300).covariance(range(300))
    least = float(np.linalg.eigvalsh(law)[0])
    assert 0 < kernel.least_eigenvalue() <= least
    assert kernel.least_eigenvalue() >= 0.3 * least
    written = Covariance(law[:50, :50]).least_eigenvalue()
    assert 0.99 * float(np.linalg.eigvalsh(law[:50, :50])[0]) <= written
    assert written <= float(np.linalg.eigvalsh(law[:50, :50])[0])


def test_where_no_eigenvalue_is_known_nothing_is_gained() -> None:
    singular = Gaussian(Covariance(np.ones((2, 2))))
    translation = Translation(singular, Secrets(within=1))
    steps = translation.cost_bound(Cost.of({Steps(0, 10, 1): 1}))
    assert steps.value == pytest.approx(2 * (1 + 1) / 10)
    assert SquaredExponential(1e6).least_eigenvalue() == 0
    mixed = Translation(Gaussian(AR1(0.5)), Secrets(within=1))
    assert mixed.cost_to_pufferfish(Cost.of({Steps(0, 100, 1): 1, ANY: "1e-9"})) == inf
    assert mixed.cost_to_pufferfish(Cost.of({Steps(0, 100, 1): 1, Steps(0, 100, 2): 1})) == inf


@pytest.mark.nightly
def test_unbounded_processes_pay_for_one_step_of_rounding() -> None:
    process = Gaussian(AR1(0.5), mean=120, variance=100)
    translation = Translation(process, Secrets(within=10))
    plain = translation.cost_to_pufferfish(Cost.of({Distance(40, 240): 1}))
    for step, most in ((1, 1.006), ("0.1", 1.0001)):
        shape = Steps(40, 240, step)
        found = translation.explain_cost(Cost.of({shape: 1}))
        own = 1 / shape.count
        assert plain + own <= found.pufferfish <= plain * most + own
        assert 0.9 * plain < found.lower <= plain
    factor = translation.to_cost(Cost.of({Steps(40, 240, 1): 1}), 0.5)
    assert translation.cost_to_pufferfish(Cost.of({Steps(40, 240, 1): factor})) <= 0.5


def test_profiles_and_groups_of_releases_with_steps() -> None:
    process = Gaussian(AR1(0.5), 5)
    translation = Translation(process, Secrets(within=2))
    shape = Steps(0, 1000, "0.01")
    costs = [Cost.of({shape: value}) for value in (0, 1, 0, 2, 3)]
    bound = translation.cost_bound(costs)
    plain = translation.cost_bound([Cost.of({shape.distance: v}) for v in (0, 1, 0, 2, 3)])
    assert bound.by_entry is not None and plain.by_entry is not None
    assert (bound.by_entry >= plain.by_entry).all()
    assert bound.by_entry == pytest.approx(
        plain.by_entry + np.array([0, 1, 0, 2, 3]) / 1e5, rel=1e-3
    )
    either = translation.cost_to_pufferfish(costs[1], costs[4])
    assert either >= translation.cost_to_pufferfish(costs[4])


@pytest.mark.costly
@settings(max_examples=40, deadline=None)
@given(
    st.floats(-0.9, 0.9),
    st.sampled_from(["0.05", "0.1", "0.25", "0.5"]),
    st.floats(0.05, 3.0),
    st.floats(0.1, 3.0),
    st.floats(-3.0, 3.0),
)
def test_the_witness_of_rounded_numbers_is_below_its_own_law(
    rho: float, step: str, coefficient: float, within: float, mean: float
) -> None:
    """The law of exp(κ·steps) given either end, cell by cell: at least what is reported."""
    low, high, grain = -4, 6, float(step)
    shape = Steps(low, high, step)
    kappa = coefficient / shape.count
    prior = Gaussian(AR1(rho), 2, mean=mean)
    found = Translation(prior, Secrets(entries=(0,), within=within)).explain_cost(
        Cost.of({shape: coefficient})
    )
    ends = np.array([low + (k + 0.5) * grain for k in range(shape.count)])
    tilted = np.exp(np.sign(rho) * kappa * np.arange(shape.count + 1))
    deviation, best = sqrt(1 - rho**2), 0.0
    for middle in (mean, (low + high) / 2):
        for offset in np.linspace(-0.5, 0.5, 11) * grain:
            x, y = middle + within / 2 + offset, middle - within / 2 + offset
            seen = [np.rint((min(max(end, low), high) - low) / grain) for end in (x, y)]
            one, other = (cells(mean + rho * (end - mean), deviation, ends) for end in (x, y))
            leak = kappa * abs(seen[0] - seen[1]) + np.log(tilted @ one) - np.log(tilted @ other)
            best = max(best, float(leak))
    assert found.lower <= best + 1e-9 and best <= found.pufferfish + 1e-9
