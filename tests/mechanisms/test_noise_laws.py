"""Predicted errors are the exact ones: formulas against enumeration."""

from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.mechanisms import (
    BoundedSum,
    Bounds,
    Exponential,
    IntegerGaussian,
    IntegerLaplace,
    NoisyTopK,
    PermuteAndFlip,
    RandomisedResponse,
)
from takifugu.mechanisms.noise_laws import laplace_above, softmax
from tests.oracles import noise as oracle
from tests.raising import raises

scales = st.floats(0.2, 20)
tables = st.lists(st.integers(-8, 8), min_size=2, max_size=5)


@given(scale=scales)
@settings(max_examples=40)
def test_the_error_of_laplace_noise_is_that_of_its_law(scale: float) -> None:
    error = IntegerLaplace(scale).error()
    reach = range(-1500, 1501)
    variance = sum(oracle.laplace(scale, z) * z * z for z in reach)
    assert error.deviation == pytest.approx(sqrt(variance), rel=1e-9)
    h = int(error.interval)
    inside = sum(oracle.laplace(scale, z) for z in range(-h, h + 1))
    assert inside >= 0.95 - 1e-12
    assert h == 0 or inside - 2 * oracle.laplace(scale, h) < 0.95


@pytest.mark.parametrize("scale", [0.4, 1.0, 5.5, 30.0])
def test_the_error_of_gaussian_noise_is_that_of_its_law(scale: float) -> None:
    error = IntegerGaussian(scale).error()
    law = {z: oracle.gaussian(scale, z) for z in range(-380, 381)}
    assert error.deviation == pytest.approx(sqrt(sum(p * z * z for z, p in law.items())), rel=1e-9)
    h = int(error.interval)
    inside = sum(p for z, p in law.items() if abs(z) <= h)
    assert inside >= 0.95 - 1e-12
    assert h == 0 or inside - 2 * law[h] < 0.95


def test_a_wide_gaussian_is_as_wide_as_it_says() -> None:
    assert IntegerGaussian(1e6).deviation == 1e6
    assert IntegerGaussian(1e6).error().interval == 1_960_000


@given(scale=st.floats(0.3, 9), z=st.integers(-30, 30))
@settings(max_examples=40)
def test_tails_of_laplace_noise(scale: float, z: int) -> None:
    truth = sum(oracle.laplace(scale, t) for t in range(z + 1, 700))
    assert float(laplace_above(scale, np.array(float(z)))) == pytest.approx(truth, abs=1e-12)


@given(scores=tables, scale=scales)
@settings(max_examples=60)
def test_one_round_is_what_enumeration_finds(scores: list[int], scale: float) -> None:
    flips = oracle.permute_and_flip(scores, scale)
    assert PermuteAndFlip(scale).probabilities(scores)[0] == pytest.approx(flips, abs=1e-12)
    soft = oracle.softmax(scores, scale)
    assert Exponential(scale).probabilities(scores)[0] == pytest.approx(soft, abs=1e-12)


def test_permute_and_flip_over_many_candidates_adds_up_to_one() -> None:
    probabilities = PermuteAndFlip(40.0).probabilities(np.arange(0, 3 * 300, 3))
    assert probabilities.sum() == pytest.approx(1, abs=1e-12)
    assert (np.diff(probabilities[0]) > 0).all()


@given(scores=tables, scale=scales, data=st.data())
@settings(max_examples=30)
def test_peeled_rounds_are_what_enumeration_finds(
    scores: list[int], scale: float, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(scores)))
    for mechanism, law in (
        (PermuteAndFlip(scale, k), oracle.permute_and_flip),
        (Exponential(scale, k), oracle.softmax),
    ):
        places = np.zeros((k, len(scores)))
        for order, probability in oracle.peeled(scores, k, scale, law).items():
            for place, candidate in enumerate(order):
                places[place, candidate] += probability
        assert mechanism.probabilities(scores) == pytest.approx(places, abs=1e-11)


def test_errors_of_selections_are_by_rank_and_need_scores() -> None:
    mechanism = PermuteAndFlip(2.0, k=2)
    error = mechanism.error([0, 3, 2])
    assert error.probabilities[0] == pytest.approx(mechanism.probabilities([3, 2, 0])[0])
    assert error.first_is_best == pytest.approx(mechanism.probabilities([0, 3, 2])[0, 1])
    assert error.expected_rank[0] < error.expected_rank[1]
    groups = mechanism.error([[0, 3, 2], [3, 2, 0]])
    assert groups.probabilities[0] == pytest.approx(groups.probabilities[1])
    for selection in (mechanism, NoisyTopK(IntegerLaplace(2.0))):
        with raises(UnsoundRequest, field="values"):
            selection.error()


def test_rankings_too_large_to_sum_are_refused() -> None:
    with pytest.raises(TooLarge):
        Exponential(5.0, k=6).probabilities(np.zeros(78, dtype=int))
    with pytest.raises(TooLarge):
        NoisyTopK(IntegerLaplace(1e6), 3).probabilities(np.zeros(78, dtype=int))


def test_the_error_of_a_sum_is_in_its_own_units() -> None:
    total = BoundedSum.laplace(Bounds(0, 10, "0.5"), 30.0)
    assert total.deviation == pytest.approx(IntegerLaplace(30.0).deviation / 2)
    assert total.error().interval == IntegerLaplace(30.0).error().interval / 2
    assert total.rounding == 0.25


@given(truth=st.floats(0.4, 0.95), count=st.integers(0, 50))
@settings(max_examples=30)
def test_counts_estimated_from_responses_are_unbiased(truth: float, count: int) -> None:
    response = RandomisedResponse(("a", "b", "c"), truth)
    true = np.array([count, 50 - count, 0])
    expected = true @ response.channel()
    other = (1 - truth) / 2
    assert (expected - 50 * other) / (truth - other) == pytest.approx(true, abs=1e-9)
    spread = response.channel()[:, 0] * (1 - response.channel()[:, 0])
    deviation = sqrt(true @ spread) / (truth - other)
    assert deviation <= response.error(50).deviation * (1 + 1e-12)


def test_an_estimate_inverts_the_channel() -> None:
    response = RandomisedResponse(("a", "b"), 0.75)
    assert response.estimate([75, 25]) == pytest.approx([100, 0])
    assert response.estimate([[75, 25], [50, 50]]) == pytest.approx(np.array([[100, 0], [50, 50]]))


def test_scores_of_any_size_have_probabilities() -> None:
    near = softmax(np.array([[0.0, -1.0], [3.0, 3.0]]), 0.5)
    for far in (1e9, -1e9, 2.0**52):
        shifted = softmax(np.array([[far, far - 1.0], [far, far]]), 0.5)
        assert shifted == pytest.approx(near, rel=1e-12)
    assert softmax(np.array([1e9, 0.0]), 0.5).tolist() == [1.0, 0.0]
