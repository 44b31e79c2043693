"""The probability of each place of a ranking, held to sums over all counts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.mechanisms import IntegerGaussian, IntegerLaplace
from takifugu.mechanisms.prediction import MAX_POSTERIOR_TERMS, right_places
from tests.oracles.placings import right_by_enumeration

SCALES = st.sampled_from([0.3, 1.0, 2.5, 7.0])


@given(
    noisy=st.lists(st.integers(-4, 9), min_size=1, max_size=3),
    most=st.integers(0, 5),
    scale=SCALES,
    gaussian=st.booleans(),
    data=st.data(),
)
def test_probabilities_are_those_of_all_counts(
    noisy: list[int], most: int, scale: float, gaussian: bool, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, len(noisy)))
    if gaussian and (min(noisy) < -5 * scale or max(noisy) > most + 5 * scale):
        return  # further out than noise goes: read at that distance
    noise = IntegerGaussian(scale) if gaussian else IntegerLaplace(scale)
    found = right_places(np.array([noisy]), k, np.array([most]), noise)
    assert found is not None and found.shape == (1, k)
    truth = right_by_enumeration(noisy, k, most, scale, gaussian=gaussian)
    assert found[0] == pytest.approx(truth, abs=1e-6)


@pytest.mark.nightly
@pytest.mark.parametrize("gaussian", [False, True])
def test_wide_noise_is_summed_over_bins(gaussian: bool) -> None:
    scale, most = 25.0, 420  # more than `BINS` numbers within reach of either
    noise = IntegerGaussian(scale) if gaussian else IntegerLaplace(scale)
    for noisy in ([230, 190], [400, 395], [430, 20], [3, 3]):
        found = right_places(np.array([noisy]), 2, np.array([most]), noise)
        truth = right_by_enumeration(noisy, 2, most, scale, gaussian=gaussian)
        assert found is not None
        assert found[0] == pytest.approx(truth, abs=1e-3)


@pytest.mark.nightly
def test_a_claim_is_right_as_often_as_it_says() -> None:
    """Counts drawn flat, 3,000 rankings of 6 labels.

    The mean of "right" and of the probability differ by less than 0.05 but with a probability of
    2 exp(−2·3000·0.05²) < 7e-7 for each place (Hoeffding); a flat 0.5 would differ by more.
    """
    rng = np.random.default_rng(7)
    noise, k, most = IntegerLaplace(4.0), 3, 60
    exact = rng.integers(0, most + 1, (3_000, 6))
    noisy = exact + noise.draw(exact.shape, rng=rng)
    found = right_places(noisy, k, np.full(3_000, most), noise)
    assert found is not None
    named = np.argsort(-noisy, axis=1, kind="stable")[:, :k]
    mine = np.take_along_axis(exact, named, axis=1)
    right = mine == -np.sort(-exact, axis=1)[:, :k]
    assert np.abs(right.mean(axis=0) - found.mean(axis=0)).max() < 0.05
    assert (right.mean(axis=0) > 0.6).all()


def test_far_leads_are_sure_and_ties_are_shared() -> None:
    noise = IntegerLaplace(1.0)
    found = right_places(np.array([[10**6, 500, -3]]), 3, np.array([10**7]), noise)
    assert found is not None and found[0] == pytest.approx([1, 1, 1], abs=1e-9)
    level = right_places(np.array([[7, 7]]), 2, np.array([0]), noise)  # both are 0 for sure
    assert level is not None and level[0] == pytest.approx([1, 1])
    assert right_places(np.zeros((0, 3), np.int64), 2, np.zeros(0, np.int64), noise) is not None


def test_too_many_rivals_have_no_probability() -> None:
    many = int(MAX_POSTERIOR_TERMS**0.5)
    noise = IntegerLaplace(1e6)
    assert right_places(np.zeros((1, many), np.int64), 100, np.array([10]), noise) is None


def test_no_groups_have_no_places() -> None:
    found = right_places(np.zeros((0, 4), np.int64), 2, np.zeros(0, np.int64), IntegerLaplace(1.0))
    assert found is not None and found.shape == (0, 2)
