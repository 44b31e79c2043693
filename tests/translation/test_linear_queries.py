"""Linear queries on Gaussian processes: exact signs, entry by entry, two kinds of noise."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.cost import Cost, Distance
from takifugu.errors import UnsoundRequest
from takifugu.priors import AR1, Covariance, Gaussian, Matern, Secrets
from takifugu.translation import LinearQuery, LinearReleases, Translation
from takifugu.translation.certify.closed import gdp_epsilon
from tests.oracles import gaussian_processes as oracle
from tests.raising import raises

SUM = LinearQuery([1, 1, 1])


def test_signs_cancel_in_a_declared_query_and_not_in_a_clamped_one() -> None:
    process = LinearReleases(Gaussian(AR1(-0.5), 3), Secrets(entries=(0,), within=10))
    declared = process.laplace([(SUM, 5)])
    assert declared.pufferfish == pytest.approx(1.5, abs=5e-6) and declared.exact
    clamped = process.laplace([(LinearQuery([1, 1, 1], bounds=(-100, 100)), 5)])
    assert clamped.pufferfish == pytest.approx(3.5, abs=5e-6) and not clamped.exact
    narrow = process.laplace([(LinearQuery([1, 1, 1], bounds=(0, 4)), 5)])
    assert narrow.pufferfish == pytest.approx((4 + 4 + 2.5) / 5)


def test_queries_add_up_entry_by_entry() -> None:
    process = LinearReleases(Gaussian(AR1(0.0), 2), Secrets(within=1))
    first, second = LinearQuery([1, 0]), LinearQuery([0, 1])
    alone = process.laplace([(first, 1)]).pufferfish
    both = process.laplace([(first, 1), (second, 2)])
    assert alone == pytest.approx(1) and both.pufferfish == pytest.approx(1)  # not 1.5
    assert both.by_entry == pytest.approx([1, 0.5]) and both.exact


@pytest.mark.costly
@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(1, 2))
def test_no_output_leaks_more_and_far_out_they_leak_as_much(
    seed: int, size: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, size + 1))
    law = np.round(factor @ factor.T + 0.1 * np.eye(size), 6)
    law = (law + law.T) / 2
    entry = int(rng.integers(size))
    weights = np.round(rng.normal(size=(count, size)), 3) + 1e-3
    scales = rng.uniform(0.5, 3, count).round(3)
    process = LinearReleases(Gaussian(Covariance(law)), Secrets(entries=(entry,), within=1))
    found = process.laplace(
        [(LinearQuery(w.tolist()), float(b)) for w, b in zip(weights, scales, strict=True)]
    )
    assert found.exact or found.pufferfish < 1e-9
    axis = [-200.0, -3.0, -1.0, 0.0, 0.5, 2.0, 200.0]
    outputs = np.array(np.meshgrid(*[axis] * count)).reshape(count, -1).T
    queries = [(w, float(b), None) for w, b in zip(weights, scales, strict=True)]
    worst = oracle.laplace_loss(law, np.zeros(size), entry, (0.5, -0.5), queries, outputs)
    assert worst <= found.pufferfish + 1e-6
    assert worst == pytest.approx(found.pufferfish, rel=2e-3, abs=1e-4)


def test_a_prior_hides_one_release_and_not_two() -> None:
    """X₁ + Z and Z: alone the variance of Z hides X₁; the difference of both shows it."""
    law = np.diag([1.0, 100.0])
    process = LinearReleases(Gaussian(Covariance(law)), Secrets(entries=(0,), within=1))
    added, other = LinearQuery([1, 1]), LinearQuery([0, 1])
    once, nothing = process.gaussian([(added, "0.1")]), process.gaussian([(other, "0.1")])
    both = process.gaussian([(added, "0.1"), (other, "0.1")])
    assert once.lower == pytest.approx(0.1, abs=1e-5) and nothing.mu == nothing.lower == 0
    assert both.lower == pytest.approx(7.07, abs=5e-3)
    assert np.hypot(once.lower, nothing.lower) < both.lower  # what must not be added up
    assert once.mu == pytest.approx(10) and both.lower <= both.mu == pytest.approx(10)
    spread = np.array([[100.01, 100.0], [100.0, 100.01]])  # given X₁
    assert both.lower == pytest.approx(oracle.joint_mu(spread, np.array([1.0, 0.0])), rel=1e-6)


@pytest.mark.costly
@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 5), st.integers(1, 4))
def test_gaussian_noise_between_the_joint_law_and_the_sum_of_squares(
    seed: int, size: int, count: int
) -> None:
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, size))
    law = np.round(factor @ factor.T + 0.1 * np.eye(size), 6)
    law = (law + law.T) / 2
    weights, sigmas = np.round(rng.normal(size=(count, size)), 3) + 1e-3, rng.uniform(0.1, 3, count)
    releases = [(LinearQuery(w.tolist()), float(s)) for w, s in zip(weights, sigmas, strict=True)]
    found = LinearReleases(Gaussian(Covariance(law)), Secrets(within=2)).gaussian(releases)
    worst = 0.0
    for entry in range(size):
        pull = law[entry] / law[entry, entry]
        given = law - np.outer(pull, law[entry])
        spread = weights @ given @ weights.T + np.diag(sigmas**2)
        worst = max(worst, oracle.joint_mu(spread, 2 * weights @ pull))
        squares = np.sum((2 * weights @ pull / sigmas) ** 2)
        assert found.by_entry[entry] == pytest.approx(np.sqrt(squares), rel=1e-9)
    assert found.lower <= worst * (1 + 1e-9) and worst <= found.mu * (1 + 1e-12)
    assert found.rho >= found.mu**2 / 2


def test_both_kinds_of_noise_add_up_entry_by_entry() -> None:
    process = LinearReleases(Gaussian(AR1(0.5), 4), Secrets(within=1))
    pure = [(LinearQuery([1, 0, 0, 0]), 2), (LinearQuery([1, 1, 1, 1]), 4)]
    smooth = [(LinearQuery([0, 0, 0, 1]), 1.5)]
    found = process.mixed(pure, smooth, delta=1e-6)
    epsilon = process.laplace(pure).by_entry
    mu = process.gaussian(smooth).by_entry
    by_hand = max(e + gdp_epsilon(m, 1e-6) for e, m in zip(epsilon, mu, strict=True))
    assert found == pytest.approx(by_hand) and found >= by_hand
    assert found < epsilon.max() + gdp_epsilon(mu.max(), 1e-6)
    assert process.mixed(pure, [], delta=1e-6) == pytest.approx(epsilon.max())
    assert process.mixed([], smooth, delta=1e-6) == pytest.approx(gdp_epsilon(mu.max(), 1e-6))


@pytest.mark.parametrize("length", [None, 2**50, 40_000])
def test_long_processes_are_looked_at_in_a_window(length: int | None) -> None:
    kernel = Matern("3/2", 3.0)
    process = LinearReleases(Gaussian(kernel, length), Secrets(within=1))
    weights = {20_000 + k: (-1) ** k * (k + 1) for k in range(9)}
    found = process.laplace([(LinearQuery(weights), 1)])
    rows = np.arange(19_900, 20_100)
    lags = np.abs(np.subtract.outer(rows, np.arange(20_000, 20_009)))
    signed = list(weights.values())
    exact = np.abs((1 + lags / np.sqrt(3)) * np.exp(-lags / np.sqrt(3)) @ signed)
    assert found.pufferfish == pytest.approx(exact.max(), rel=1e-9) and found.exact
    assert found.binding.entry == rows[int(exact.argmax())]
    slow = LinearReleases(Gaussian(AR1(0.999999), length), Secrets(within=1))
    beyond = slow.laplace([(LinearQuery({30_000: 1, 30_001: -1}), 1)])
    assert beyond.pufferfish >= beyond.lower >= 0.99e-6


def test_a_sum_agrees_with_its_cost() -> None:
    near = Secrets(within=3)
    prior = Gaussian(AR1(0.5), 5)
    linear = LinearReleases(prior, near).laplace([(LinearQuery([1] * 5), 7)])
    cost = Translation(prior, near).explain_cost(Cost.of({Distance(-700, 700): 200}))
    assert linear.pufferfish == pytest.approx(cost.pufferfish)
    assert linear.exact and cost.exact


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: LinearQuery([0, 0]), "weights"),
        (lambda: LinearQuery([]), "weights"),
        (lambda: LinearQuery({-1: 1}), "weights"),
        (lambda: LinearQuery({True: 1}), "weights"),
        (lambda: LinearQuery({"a": 1}), "weights"),  # type: ignore[dict-item]
        (lambda: LinearQuery([float("nan")]), "weights"),
        (lambda: LinearQuery([1], bounds=(1, 1)), "bounds"),
        (lambda: LinearReleases(Gaussian(AR1(0.5)), Secrets()), "secrets"),
        (lambda: LinearReleases(Gaussian(AR1(0.5), 2), Secrets(entries=(2,), within=1)), "secrets"),
    ],
)
def test_malformed_queries_are_refused(make: Any, field: str) -> None:
    with raises(UnsoundRequest, field=field):
        make()


def test_malformed_releases_are_refused() -> None:
    process = LinearReleases(Gaussian(AR1(0.5), 3), Secrets(within=1))
    for releases in ([], [(SUM, 0)], [(SUM, -1)], [("sum", 1)]):
        with raises(UnsoundRequest, field="releases"):
            process.laplace(releases)  # type: ignore[arg-type]
    with raises(UnsoundRequest, field="weights", given=3, needed=3):
        process.gaussian([(LinearQuery({3: 1}), 1)])
    with raises(UnsoundRequest, field="scale"):
        process.laplace([(SUM, float("nan"))])
