"""The parts that places are summed from: tails, posteriors and bins, each from its definition."""

from math import exp

import mpmath
import numpy as np
import pytest

from takifugu.mechanisms import IntegerGaussian, IntegerLaplace, placings
from takifugu.mechanisms.placings import BINS, REACH, right_places
from tests.oracles import noise as oracle
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
    for at_once in (placings.AT_ONCE, 2 * 4 * BINS, 10):
        monkeypatch.setattr(placings, "AT_ONCE", at_once)
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
    monkeypatch.setattr(placings, "MOST_TERMS", 4 * 3 * 2 * 2 * BINS)
    assert right_places(noisy, 2, most, noise) is not None
    monkeypatch.setattr(placings, "MOST_TERMS", 4 * 3 * 2 * 2 * BINS - 1)
    assert right_places(noisy, 2, most, noise) is None


def law_of(noise: IntegerLaplace | IntegerGaussian) -> dict[int, float]:
    if isinstance(noise, IntegerLaplace):
        return {z: oracle.laplace(noise.scale, z) for z in range(-300, 301)}
    weights = {z: exp(-((z / noise.scale) ** 2) / 2) for z in range(-300, 301)}
    whole = sum(weights.values())
    return {z: weight / whole for z, weight in weights.items()}


SMALL = [IntegerLaplace(0.7), IntegerLaplace(4.0), IntegerGaussian(0.7), IntegerGaussian(4.0)]


@pytest.mark.parametrize("noise", SMALL, ids=str)
def test_the_tail_of_noise(noise: IntegerLaplace | IntegerGaussian) -> None:
    law = law_of(noise)
    least = [-80, -9, -2, -1, 0, 1, 5, 90]
    found = placings._above(noise)(np.array(least, float))
    truth = [sum(p for z, p in law.items() if z > t) for t in least]
    assert found == pytest.approx(truth, rel=1e-9, abs=1e-12)


def test_the_tail_of_very_wide_noise_is_that_of_a_rounded_normal() -> None:
    found = placings._above(IntegerGaussian(8000.0))(np.array([-9000.0, 0.0, 7.0, 20000.0]))
    truth = [float(mpmath.ncdf(-(t + 0.5) / 8000)) for t in (-9000, 0, 7, 20000)]
    assert found == pytest.approx(truth, rel=1e-10)


def posterior(noisy: int, top: int, law: dict[int, float]) -> list[float]:
    weights = [law[noisy - c] for c in range(top + 1)]
    return [w / sum(weights) for w in weights]


@pytest.mark.parametrize("noise", SMALL, ids=str)
def test_the_posterior_of_a_count(noise: IntegerLaplace | IntegerGaussian) -> None:
    above, law = placings._above(noise), law_of(noise)
    for noisy, top in ((3, 6), (0, 4), (8, 8), (2, 0)):
        known = posterior(noisy, top, law)
        counts = np.arange(-2, top + 3)
        found = placings._exceeds(counts.astype(float), np.array(noisy), np.array(top), above)
        assert found == pytest.approx(
            [sum(known[max(c + 1, 0) :]) for c in counts.tolist()], rel=1e-7, abs=1e-12
        )


@pytest.mark.parametrize(
    ("noisy", "top", "scale"),
    [
        (80, BINS - 1, 30.0),  # one number in each bin
        (80, BINS, 30.0),  # one too many: three in each
        (70, 2 * BINS - 1, 30.0),
        (20, 3 * BINS, 40.0),
        (3, 5, 4.0),
        (100, 260, 2.0),  # more than reach on either side
        (7, 259, 2.0),
        (256, 259, 2.0),
        (200, 1000, 6.625),  # 159 numbers: 80 out each way but one
    ],
)
def test_bins_hold_the_numbers_around_their_middle(noisy: int, top: int, scale: float) -> None:
    noise = IntegerLaplace(scale)
    law = {z: oracle.laplace(scale, z) for z in range(-1000, 1001)}
    known = posterior(noisy, top, law)
    reach = int(np.ceil(REACH * scale))
    low, high = max(noisy - reach, 0), min(noisy + reach, top)
    width = -(-(high - low + 1) // BINS)
    width += width % 2 == 0
    counts, weights = placings._bins(
        np.full((1, 1, 1), float(noisy)),
        np.full((1, 1, 1), float(top)),
        scale,
        placings._above(noise),
    )
    assert counts.shape == weights.shape == (1, 1, BINS)
    for i in range(BINS):
        begin = low + i * width
        end = min(begin + width - 1, high)
        if begin > high:
            assert weights[0, 0, i] == 0
            continue
        assert counts[0, 0, i] == begin + (end - begin) // 2
        inside = known[0 if i == 0 else begin : None if end == high else end + 1]
        assert weights[0, 0, i] == pytest.approx(sum(inside), rel=1e-7, abs=1e-12)


def test_one_more_coin() -> None:
    ahead = np.array([[0.5, 0.3, 0.2]])
    placings._toss(ahead, np.array([0.25]))
    assert ahead[0] == pytest.approx([0.375, 0.3 * 0.75 + 0.5 * 0.25, 0.2 * 0.75 + 0.3 * 0.25])
