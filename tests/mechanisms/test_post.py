"""Free post-processing: exact where it is exact, least squares where it is least squares."""

from itertools import pairwise
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.mechanisms import IntegerLaplace, post
from tests.oracles import noise as oracle

numbers = st.floats(-100, 100)


def test_rounding_and_non_negativity() -> None:
    assert post.rounded([1.4, -2.6]).tolist() == [1, -3]
    assert post.rounded([1.4, -2.6], step=0.5).tolist() == [1.5, -2.5]
    assert post.at_least_zero([3, -2]).tolist() == [3, 0]


@pytest.mark.costly
@given(values=st.lists(numbers, min_size=1, max_size=8), total=st.integers(0, 60))
@settings(max_examples=80)
def test_whole_numbers_add_up(values: list[float], total: int) -> None:
    found = post.whole_with_total(values, total)
    assert found.sum() == total
    assert (found >= 0).all()
    inside = np.maximum(np.array(values), 0)
    if abs(inside.sum() - total) < 1e-12 and (np.array(values) >= 0).all():
        assert np.abs(found - inside).max() <= 1 + 1e-6


@given(
    values=st.lists(numbers, min_size=3, max_size=6),
    spread=st.floats(0.1, 5),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_consistent_numbers_satisfy_the_equations_and_are_nearest(
    values: list[float], spread: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n = len(values)
    A = rng.integers(-1, 2, (2, n)).astype(float)
    deviations = spread * rng.uniform(0.5, 2, n)
    found = post.consistent(values, deviations, A)
    assert pytest.approx(0, abs=1e-7) == A @ found.values
    assert (found.deviation <= deviations * (1 + 1e-9)).all()
    # any other solution is farther: the move is orthogonal to the null space, in the metric of V
    move = (found.values - values) / deviations**2
    _, s, vh = np.linalg.svd(A)
    free = vh[int((s > 1e-9).sum()) :]
    assert free @ move == pytest.approx(np.zeros(len(free)), abs=1e-7)


def test_totals_and_groups_add_up_and_are_surer() -> None:
    found, total = post.totals_and_groups(
        [10, 20, 33], 60, group_deviation=2.0, total_deviation=1.0
    )
    assert found.values.sum() == pytest.approx(total)
    # residual −3 shared in proportion to variances 4, 4, 4 and 1
    assert found.values == pytest.approx(np.array([10, 20, 33]) - 3 * 4 / 13)
    assert (found.deviation < 2.0).all()
    exact, kept = post.totals_and_groups([1, 2], 5, group_deviation=1.0, total_deviation=0.0)
    assert exact.values == pytest.approx([2, 3])
    assert kept == pytest.approx(5)


@pytest.mark.statistical
def test_projection_lowers_the_error_as_much_as_it_says() -> None:
    rng = np.random.default_rng(1)
    noise = IntegerLaplace(3.0)
    truth = np.array([5, 9, 20, 34])
    draws = 20_000
    noisy = noise.simulate(truth, draws, rng=rng)
    A = np.array([[1.0, 1.0, 1.0, -1.0]])
    one = post.consistent(noisy[0], [noise.deviation] * 4, A)
    gain = noisy - (noisy @ A.T) @ (A / 4)
    assert one.values == pytest.approx(gain[0])
    assert gain.mean(axis=0) == pytest.approx(truth, abs=0.2)
    # noise of variance 35: the deviation of 20,000 squares, at most 7σ from its mean
    assert gain.std(axis=0) == pytest.approx(one.deviation, rel=0.08)
    assert one.deviation[0] == pytest.approx(noise.deviation * np.sqrt(3 / 4))


def test_margins_of_a_table_add_up() -> None:
    cells = [[1.0, 2.0], [3.0, 4.0]]
    found = post.marginals(
        cells,
        [4.0, 8.0],
        [5.0, 7.0],
        cell_deviation=1.0,
        row_deviation=1e-6,
        column_deviation=1e-6,
    )
    assert found.values.sum(axis=1) == pytest.approx([4, 8], abs=1e-4)
    assert found.values.sum(axis=0) == pytest.approx([5, 7], abs=1e-4)
    assert (found.deviation < 1).all()


@pytest.mark.nightly
@pytest.mark.parametrize("noisy", [[5, 3, 0], [2, 2, 2], [0, 9, 1]])
def test_ranks_under_a_flat_prior_are_what_enumeration_finds(noisy: list[int]) -> None:
    ranking = post.ranks(noisy, scale=1.3, places=1)
    truth = oracle.noisy_order(noisy, 1, 1.3, reach=22)
    assert ranking.probabilities[0] == pytest.approx([truth[(i,)] for i in range(3)], abs=1e-6)
    assert ranking.leads == pytest.approx(truth[(int(ranking.order[0]),)], abs=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("truth", [[20, 20, 20, 20], [20, 19, 5, 0], [30, 10, 10, 10]])
def test_claims_of_a_leader_are_wrong_no_more_often_than_stated(truth: list[int]) -> None:
    rng = np.random.default_rng(2)
    draws, level = 4_000, 0.8
    noisy = IntegerLaplace(2.0).simulate(truth, draws, rng=rng)
    order = np.sort(noisy, axis=1)
    leads = order[:, -1] - order[:, -2]
    confidence = {
        int(lead): post.ranks([int(lead), 0, 0, 0], scale=2.0).confidence
        for lead in np.unique(leads)
    }
    claimed = np.array([confidence[int(lead)] >= level for lead in leads])
    leader = np.argmax(noisy, axis=1)
    wrong = claimed & (np.array(truth)[leader] < max(truth))
    tie = claimed & (truth.count(max(truth)) > 1)
    assert int((wrong | tie).sum()) <= (1 - level) * draws  # far inside: the bound is conservative


@pytest.mark.parametrize(
    "noisy",
    [[9, 2], [2, 9], [7, 7], [8, 7], [9, 7], [10, 7], [5], [12, 1, 3], [3, 12, 11], [0, -9]],
)
def test_confidence_is_that_all_noise_is_small_beside_the_lead(noisy: list[int]) -> None:
    scale = 1.7
    first, second, *_ = (*sorted(noisy, reverse=True), -1000)
    small = [h for h in range(1001) if first - second > 2 * h]  # noise up to h keeps the order
    weights = {z: exp(-abs(z) / scale) for z in range(-600, 601)}
    within = sum(weights[z] for z in weights if small and abs(z) <= max(small))
    expected = (within / sum(weights.values())) ** len(noisy)
    assert post.ranks(noisy, scale=scale).confidence == pytest.approx(expected, rel=1e-9)


def test_confidence_grows_with_the_lead_and_a_tie_has_none() -> None:
    grows = [post.ranks([lead, 0, 0], scale=3.0).confidence for lead in (0, 5, 20, 80)]
    assert grows[0] == 0
    assert all(a < b for a, b in pairwise(grows))
    assert grows[-1] > 0.999
