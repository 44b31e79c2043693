"""Selections follow their laws, as OpenDP draws them and as numpy simulates them.

Exact binomial tests with a false alarm of at most 10⁻⁹ a test, as in `test_noise_law`.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from takifugu._core.numeric import Integers
from takifugu.finite import FiniteMechanism
from takifugu.mechanisms import (
    Exponential,
    FiniteChannel,
    IntegerLaplace,
    NoisyTopK,
    PermuteAndFlip,
    RandomisedResponse,
)
from takifugu.mechanisms.opendp_measurements import pick
from takifugu.priors.universe import Tables
from tests.oracles import noise as oracle

ALARM = 1e-9
REAL, SIMULATED = 2_500, 20_000
SCALE = 4.0
GAP = 14  # the best of 31 leads by this: about as likely as the 30 others together
CROWD = [GAP, *[0] * 30]
SMALL = [5, 3, 0]

Peel = type[Exponential] | type[PermuteAndFlip]
ROUNDS: dict[Peel, Callable[[Sequence[float], float], list[float]]] = {
    Exponential: oracle.softmax,
    PermuteAndFlip: oracle.permute_and_flip,
}


def tally(drawn: Integers, law: oracle.Law) -> bool:
    """Whether every outcome of a law was drawn about as often as it should."""
    rows = [tuple(np.atleast_1d(row).tolist()) for row in drawn]
    assert set(rows) <= set(law)
    return all(
        oracle.plausible(rows.count(outcome), len(rows), p, alarm=ALARM / len(law))
        for outcome, p in law.items()
    )


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("kind", list(ROUNDS))
@pytest.mark.parametrize("k", [1, 2])
def test_selections_follow_their_law(kind: Peel, k: int) -> None:
    law = oracle.peeled(SMALL, k, SCALE, ROUNDS[kind])
    mechanism = kind(SCALE, k)
    assert tally(mechanism.release(np.tile(SMALL, (REAL, 1))), law)
    rng = np.random.default_rng(6)
    assert tally(mechanism.simulate(SMALL, SIMULATED, rng=rng), law)


@pytest.mark.nightly
@pytest.mark.statistical
def test_noise_on_the_histogram_then_sorting_follows_its_law() -> None:
    found = oracle.noisy_order(SMALL, 2, 1.5, reach=25)
    total = sum(found.values())
    law = {order: p / total for order, p in found.items()}
    mechanism = NoisyTopK(IntegerLaplace(1.5), 2)
    assert tally(mechanism.release(np.tile(SMALL, (REAL, 1))), law)
    assert tally(mechanism.simulate(SMALL, SIMULATED, rng=np.random.default_rng(7)), law)


def best_of_crowd(kind: Peel, scale: float) -> float:
    """P(the best is chosen), in closed form: 30 candidates alike."""
    q = float(np.exp(-GAP / scale))
    if kind is Exponential:
        return 1 / (1 + 30 * q)
    return (1 - (1 - q) ** 31) / (31 * q)  # ∫ (1 − q y)^30 dy


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("kind", list(ROUNDS))
def test_selections_read_scores_in_units_of_their_scale(kind: Peel) -> None:
    truth = best_of_crowd(kind, SCALE)
    released = kind(SCALE).release(np.tile(CROWD, (REAL, 1)))
    assert oracle.plausible(int((released == 0).sum()), REAL, truth, alarm=ALARM)


@pytest.mark.parametrize("wrong", [0.85, 1.15])
@pytest.mark.parametrize("kind", list(ROUNDS))
def test_the_test_above_would_catch_a_wrong_scale(kind: Peel, wrong: float) -> None:
    truth, other = best_of_crowd(kind, SCALE), best_of_crowd(kind, wrong * SCALE)
    assert oracle.power(REAL, truth, other, alarm=ALARM) > 0.999
    rng = np.random.default_rng(8)
    drawn = kind(wrong * SCALE).simulate(CROWD, REAL, rng=rng)
    assert not oracle.plausible(int((drawn == 0).sum()), REAL, truth, alarm=ALARM)


def test_the_two_laws_differ_enough_to_be_told_apart() -> None:
    soft, flips = (best_of_crowd(kind, SCALE) for kind in (Exponential, PermuteAndFlip))
    assert oracle.power(REAL, soft, flips, alarm=ALARM) > 1 - 1e-6


def test_groups_are_simulated_side_by_side() -> None:
    rng = np.random.default_rng(9)
    scores = np.array([[0, 900, 0, 0], [900, 0, 0, 0], [0, 0, 500, 900]])
    for mechanism in (Exponential(1.0, 2), PermuteAndFlip(1.0, 2)):
        drawn = mechanism.simulate(scores, 50, rng=rng)
        assert drawn.shape == (50, 3, 2)
        assert (drawn[:, :, 0] == [1, 0, 3]).all()
        assert (drawn[:, 2, 1] == 2).all()
        assert mechanism.release(scores)[:, 0].tolist() == [1, 0, 3]


@pytest.mark.statistical
def test_many_repetitions_are_drawn_in_blocks_without_a_seam() -> None:
    rng = np.random.default_rng(10)
    wide = np.tile(SMALL, (2_000, 60, 1))
    drawn = Exponential(SCALE).simulate(wide, 20, rng=rng)  # 7.2 million cells, two blocks
    soft = oracle.softmax(SMALL, SCALE)
    for block in (drawn[:10], drawn[10:]):
        hits = int((block == 0).sum())
        assert oracle.plausible(hits, block.size, soft[0], alarm=ALARM / 2)


RESPONSES = 2_500
VALUES = tuple(range(30))  # one true value against 29 others: probabilities 1/2 and 1/58


@pytest.mark.statistical
def test_responses_follow_their_channel() -> None:
    response = RandomisedResponse(VALUES, 0.5)
    released = np.array(response.release([4] * RESPONSES))
    simulated = response.simulate([4], 10 * SIMULATED, rng=np.random.default_rng(11)).ravel()
    for drawn in (released, simulated):
        hits = np.bincount(drawn, minlength=30)
        for value in VALUES:
            p = 0.5 if value == 4 else 0.5 / 29
            assert oracle.plausible(int(hits[value]), drawn.size, p, alarm=ALARM / 60)


@pytest.mark.parametrize("wrong", [0.85, 1.15])
def test_the_test_above_would_catch_a_wrong_loss(wrong: float) -> None:
    odds = 29.0**wrong
    truth = odds / (odds + 29)
    assert oracle.power(RESPONSES, 0.5, truth, alarm=ALARM / 60) > 1 - 1e-6
    drawn = RandomisedResponse(VALUES, truth).simulate(
        [4], RESPONSES, rng=np.random.default_rng(14)
    )
    assert not oracle.plausible(int((drawn == 4).sum()), RESPONSES, 0.5, alarm=ALARM / 60)


@pytest.mark.statistical
def test_a_channel_is_drawn_with_its_own_chances() -> None:
    table = np.array([[0.7, 0.1, 0.2], [0.25, 0.25, 0.5]])
    mechanism = FiniteChannel(FiniteMechanism(Tables.bits(1), table, ("a", "b", "c")))
    law = {"a": 0.7, "b": 0.1, "c": 0.2}
    draws = 1_500
    real = [mechanism.release((0,)) for _ in range(draws)]
    for output, p in law.items():
        assert oracle.plausible(real.count(output), draws, p, alarm=ALARM / 6)
    simulated = mechanism.simulate((0,), SIMULATED, rng=np.random.default_rng(13))
    for output, p in law.items():
        assert oracle.plausible(simulated.count(output), SIMULATED, p, alarm=ALARM / 6)


@pytest.mark.statistical
def test_thirds_are_thirds() -> None:
    draws = 1_500
    found = [pick([1, 1, 1]) for _ in range(draws)]
    for index in range(3):
        assert oracle.plausible(found.count(index), draws, 1 / 3, alarm=ALARM / 3)
