"""The parts that places are summed from: tails, posteriors and bins, each from its definition."""

import numpy as np
import pytest

from takifugu.mechanisms import IntegerGaussian, IntegerLaplace, prediction
from takifugu.mechanisms.prediction import POSTERIOR_BINS, right_places
from tests.oracles.placings import right_by_enumeration

pytestmark = pytest.mark.nightly

CASES = [  # noisy counts, how many places, the most of a count
    ([2], 1, 4),
    ([0, 2], 1, 3),
    ([2, 2], 2, 3),
    ([-3, 1, 1], 2, 4),
    ([1, 3, 2, 2], 1, 3),
    ([1, 0, 5, 2], 3, 2),
    ([6, 7], 2, 12),
]


@pytest.mark.parametrize(("noisy", "k", "most"), CASES, ids=str)
@pytest.mark.parametrize("gaussian", [False, True])
def test_places_are_those_of_every_table_of_counts(
    noisy: list[int], k: int, most: int, gaussian: bool
) -> None:
    for scale in (0.8, 2.5):
        noise = IntegerGaussian(scale) if gaussian else IntegerLaplace(scale)
        found = right_places(np.array([noisy]), k, np.array([most]), noise)
        truth = right_by_enumeration(noisy, k, most, scale, gaussian=gaussian)
        assert found is not None and found.shape == (1, k)
        assert found[0] == pytest.approx(truth, abs=1e-6)
        assert (found >= 0).all() and (found <= 1).all()


def test_groups_are_summed_each_on_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = np.array([[2, 1, 1], [90, 0, -5], [3, 3, 0], [0, 9, 9], [1, 2, 3]])
    most, noise = np.array([4, 95, 3, 9, 3]), IntegerLaplace(1.0)
    alone = [right_places(noisy[i : i + 1], 2, most[i : i + 1], noise) for i in range(5)]
    assert all(one is not None for one in alone)
    for at_once in (prediction.MAX_TERMS_HELD, 2 * 4 * POSTERIOR_BINS, 10):
        monkeypatch.setattr(prediction, "MAX_TERMS_HELD", at_once)
        found = right_places(noisy, 2, most, noise)
        assert found == pytest.approx(np.concatenate(alone), abs=1e-9)  # type: ignore[arg-type]
    truth = right_by_enumeration([2, 1, 1], 2, 4, 1.0, gaussian=False)
    assert found is not None and found[0] == pytest.approx(truth, abs=1e-6)


def test_gaussian_counts_further_out_than_five_scales_are_read_there() -> None:
    noise, most = IntegerGaussian(1.5), np.array([5])
    for far, read in (([-40, 3], [-8, 3]), ([2, 60], [2, 13])):
        found = right_places(np.array([far]), 2, most, noise)
        truth = right_by_enumeration(read, 2, 5, 1.5, gaussian=True)
        assert found is not None and found[0] == pytest.approx(truth, abs=1e-6)


def test_places_are_summed_up_to_the_most_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    noisy, most, noise = np.zeros((3, 4), np.int64), np.full(3, 9), IntegerLaplace(1.0)
    monkeypatch.setattr(prediction, "MAX_POSTERIOR_TERMS", 4 * 3 * 2 * 2 * POSTERIOR_BINS)
    assert right_places(noisy, 2, most, noise) is not None
    monkeypatch.setattr(prediction, "MAX_POSTERIOR_TERMS", 4 * 3 * 2 * 2 * POSTERIOR_BINS - 1)
    assert right_places(noisy, 2, most, noise) is None
