"""Baselines by name: their noise is what their papers say."""

import pytest

from takifugu._core.numeric import frozen
from takifugu.costs.losses import Pure
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.mechanisms import Exponential, NoisyTopK
from takifugu.papers.composition.baselines.rankings import (
    BASELINES,
    Baseline,
    curve_of_the_paper,
    one_per_bar,
    peeling,
    split_over_bars,
)
from takifugu.priors.markov import MarkovChain
from tests.raising import raises

EVEN = MarkovChain(frozen([[0.8, 0.2], [0.2, 0.8]]), length=1000)


def scale(name: str, chain: MarkovChain, epsilon: float, k: int = 1) -> float:
    ranking = BASELINES[name].top_k(chain, epsilon, k)
    return ranking.noise.scale if isinstance(ranking, NoisyTopK) else ranking.scale


@pytest.mark.parametrize(
    ("q", "p", "exact", "approximate"),
    [(0.1, 0.9, 31.738, 49.220), (0.4, 0.6, 3.572, 11.537), (0.3, 0.9, 16.625, 28.276)],
)
def test_quilts_have_their_published_noise_per_unit_of_sensitivity(
    q: float, p: float, exact: float, approximate: float
) -> None:
    """At ε = 1, T = 100; a histogram moves by 2. Two categories split alike."""
    chain = MarkovChain(frozen([[1 - q, q], [1 - p, p]]), length=100)
    for reading in ("one Laplace per bar", "budget split"):
        assert scale(f"MQMExact, {reading}", chain, 1.0) == pytest.approx(2 * exact, rel=1e-4)
        assert scale(f"MQMApprox, {reading}", chain, 1.0) == pytest.approx(
            2 * approximate, rel=1e-4
        )


def test_ours_exp_is_the_curve_and_peeling() -> None:
    assert scale("Ours-Exp", EVEN, 1.0, 3) == pytest.approx(6 / 0.0765, rel=1e-3)
    curve = curve_of_the_paper(EVEN)
    assert curve.leak.shape[0] == 1
    assert isinstance(BASELINES["Ours-Exp"].top_k(EVEN, 1.0, 3), Exponential)


def test_group_dp_shares_out_over_all_entries() -> None:
    assert scale("group DP", EVEN, 1.0) == pytest.approx(2 * 1000)


def test_temporal_leakage_is_exact_for_two_states_that_stay() -> None:
    """A long chain p = q = .8 allows .2598 at ε = 1."""
    long = MarkovChain(EVEN.transition, length=60)
    assert scale("scalar TPL", long, 1.0) == pytest.approx(2 / 0.2598, rel=1e-3)


def test_a_start_that_is_not_stationary_counts() -> None:
    moving = MarkovChain(frozen([[0.9, 0.1], [0.4, 0.6]]), start=frozen([0.5, 0.5]), length=30)
    resting = MarkovChain(frozen([[0.9, 0.1], [0.4, 0.6]]), length=30)
    for name in ("MQMExact, one Laplace per bar", "scalar TPL"):
        assert scale(name, moving, 1.0) != scale(name, resting, 1.0)


def test_what_each_way_of_ranking_adds() -> None:
    assert one_per_bar(0.5, 3, 78).noise.scale == pytest.approx(4)
    assert split_over_bars(0.5, 3, 78).noise.scale == pytest.approx(156)
    assert peeling(0.5, 3, 78).scale == pytest.approx(12)
    for ranking in (one_per_bar(0.5, 3, 78), split_over_bars(0.5, 3, 78)):
        assert isinstance(ranking.loss, Pure) and ranking.loss.epsilon <= 0.5
    assert peeling(0.5, 3, 78).pure.epsilon <= 0.5


def test_what_a_baseline_cannot_do_is_one_clear_line() -> None:
    with raises(InvalidPrior, field="length"):
        scale("group DP", MarkovChain(frozen([[0.8, 0.2], [0.2, 0.8]])), 1.0)
    steps = frozen([[[0.8, 0.2], [0.2, 0.8]]] * 3)
    with raises(InvalidPrior, field="transition"):
        scale("MQMExact, budget split", MarkovChain(steps, start=frozen([0.5, 0.5])), 1.0)
    with raises(UnsoundRequest, field="epsilon", given=1.0):
        Baseline(lambda _chain, _epsilon: 0.0, one_per_bar).top_k(EVEN, 1.0, 1)
    with raises(UnsoundRequest):
        scale("group DP", EVEN, 0.0)
