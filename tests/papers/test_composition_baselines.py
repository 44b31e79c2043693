"""The simulated top-k releases follow their laws; the order of the three is as claimed."""

from collections.abc import Callable
from itertools import permutations
from math import exp, log, sqrt

import numpy as np
import pytest

from papers.composition import baselines
from takifugu.errors import Malformed, UnsoundRequest

FALSE_ALARM = 1e-9
DRAWS = 100_000
COUNTS = [[6, 5, 3, 0], [2, 2, 9, 1]]


def peeling(counts: list[int], k: int, scale: float) -> dict[tuple[int, ...], float]:
    """The law of peeling, round by round: P(next = c) ∝ e^{count/scale} among those left."""
    law = {}
    for ranking in permutations(range(len(counts)), k):
        p, left = 1.0, set(range(len(counts)))
        for winner in ranking:
            p *= exp(counts[winner] / scale) / sum(exp(counts[c] / scale) for c in left)
            left.remove(winner)
        law[ranking] = p
    return law


@pytest.mark.statistical
def test_peeling_follows_the_law_of_its_rounds() -> None:
    k, epsilon = 2, 3.0
    rng = np.random.default_rng(20)
    drawn = baselines.exponential_top_k(COUNTS, k, epsilon, repetitions=DRAWS, rng=rng)
    assert drawn.shape == (DRAWS, 2, k)
    slack = sqrt(log(2 * 24 / FALSE_ALARM) / (2 * DRAWS))  # Hoeffding, 2 groups of 12 rankings
    for group, counts in enumerate(COUNTS):
        law = peeling(counts, k, 2 * k / epsilon)
        wrong = peeling(counts, k, k / epsilon)  # without the factor 2
        rankings, times = np.unique(drawn[:, group], axis=0, return_counts=True)
        seen = {tuple(r.tolist()): n / DRAWS for r, n in zip(rankings, times, strict=True)}
        for ranking, p in law.items():
            assert abs(seen.get(ranking, 0.0) - p) <= slack
        assert max(abs(wrong[r] - law[r]) for r in law) > 2 * slack  # it would be caught


def first_beats_second(scale: float, gap: float) -> float:
    """P(gap + Z − Z′ > 0) for independent Laplace Z, Z′ of this scale."""
    x = gap / scale
    return 1 - exp(-x) * (2 + x) / 4


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("release", "scale"),
    [(baselines.mqm_histogram_top_k, 2 / 1.5), (baselines.mqm_split_top_k, 3 / 1.5)],
)
def test_laplace_top_1_of_two_follows_its_law(
    release: Callable[..., np.ndarray], scale: float
) -> None:
    rng = np.random.default_rng(21)
    drawn = release([[4, 2, -1000]], 1, 1.5, repetitions=DRAWS, rng=rng)
    slack = sqrt(log(2 / FALSE_ALARM) / (2 * DRAWS))
    assert abs(np.mean(drawn == 0) - first_beats_second(scale, 2)) <= slack
    half = first_beats_second(scale / 2, 2)
    assert abs(half - first_beats_second(scale, 2)) > 2 * slack


def test_the_scales_of_the_three_releases() -> None:
    assert baselines.histogram_scale(0.5) == pytest.approx(4)
    assert baselines.split_scale(0.5, 78) == pytest.approx(156)
    assert baselines.peeling_scale(0.5, 3) == pytest.approx(12)


@pytest.mark.statistical
def test_one_histogram_beats_peeling_and_peeling_beats_the_split() -> None:
    """Theory.md, 3.8, on counts that fall like 1/rank over 78 categories, ε = .02."""
    rng = np.random.default_rng(22)
    counts = (3000 / np.arange(1, 79))[None, :]
    truth = {0, 1, 2}

    def hit_rate(release: Callable[..., np.ndarray]) -> float:
        drawn = release(counts, 3, 0.02, repetitions=4000, rng=rng)[:, 0]
        return float(np.isin(drawn, list(truth)).mean())

    slack = 2 * sqrt(log(2 / FALSE_ALARM) / (2 * 4000))  # each mean of a value in [0, 1]
    histogram = hit_rate(baselines.mqm_histogram_top_k)
    exponential = hit_rate(baselines.exponential_top_k)
    split = hit_rate(baselines.mqm_split_top_k)
    assert histogram > exponential + slack
    assert exponential > split + slack


def test_bad_input_is_one_clear_line() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(Malformed, match=r"be numbers \[group, category\]"):
        baselines.exponential_top_k([1, 2], 1, 1.0, repetitions=1, rng=rng)
    with pytest.raises(Malformed, match="between 1 and 4"):
        baselines.exponential_top_k(COUNTS, 5, 1.0, repetitions=1, rng=rng)
    with pytest.raises(UnsoundRequest, match="positive and finite"):
        baselines.mqm_split_top_k(COUNTS, 1, 0.0, repetitions=1, rng=rng)
