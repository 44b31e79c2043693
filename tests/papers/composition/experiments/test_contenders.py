"""Each contender has the noise that its paper says, and answers by the law of its mechanism."""

from functools import cache
from math import pi, sqrt

import numpy as np
import pytest

from takifugu._core.numeric import Integers
from takifugu.costs.losses import Pure
from takifugu.mechanisms import Exponential, NoisyTopK
from takifugu.mechanisms.planner import noise_of
from takifugu.papers.composition.experiments.allowances import (
    EPSILONS,
    PROOFS,
    Allowances,
    allowances,
)
from takifugu.papers.composition.experiments.experiment import (
    CONTENDERS,
    GROUP_DP,
    MQM_SPLIT,
    MQM_VECTOR,
    OURS_EXP,
    TAKIFUGU,
    calibrated,
    calibrated_at,
    planned,
)
from takifugu.papers.composition.experiments.measurements import Prepared
from takifugu.papers.composition.experiments.metrics import K
from tests.oracles import noise as oracle
from tests.papers.composition.small_datasets import prepared

ALARM = 1e-9  # the probability that a statistical test here fails although nothing is wrong
DRAWS = 20_000
COUNTS = [6, 5, 3]
SPENT = 3.0


def small() -> Prepared:
    """One group of three labels, of counts that noise confuses."""
    world = prepared()
    return Prepared(**{**vars(world), "groups": ("AA",), "counts": np.array([COUNTS])})


@cache
def law_of(name: str, spent: float) -> oracle.Law:
    """The probability of every ranking, by enumeration, from the noise that the paper states."""
    if name in (OURS_EXP, GROUP_DP):
        return oracle.peeled(COUNTS, K, 2 * K / spent, oracle.softmax)
    scale = len(COUNTS) / spent if name == MQM_SPLIT else 2 / spent
    found = oracle.noisy_order(COUNTS, K, scale, reach=20)
    total = sum(found.values())
    return {order: p / total for order, p in found.items()}


def drawn(name: str, spent: float, seed: int = 11) -> Integers:
    rng = np.random.default_rng(seed)
    world = small()
    found = calibrated(name, world, spent).mechanism.simulate(world.counts, DRAWS, rng=rng)
    assert found.shape == (DRAWS, 1, K)
    return found[:, 0]


def fits(rankings: Integers, law: oracle.Law) -> bool:
    """Whether every ranking was drawn about as often as it should be."""
    rows = [tuple(row) for row in rankings.tolist()]
    return all(
        oracle.plausible(rows.count(order), len(rows), p, alarm=ALARM / len(law))
        for order, p in law.items()
    )


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("name", list(CONTENDERS))
def test_a_contender_answers_by_the_law_of_its_mechanism(name: str) -> None:
    assert fits(drawn(name, SPENT), law_of(name, SPENT))


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("name", list(CONTENDERS))
def test_the_test_above_would_catch_a_wrong_scale(name: str) -> None:
    """A likely ranking moves by more than the test overlooks, except with probability 1e-6."""
    right, wrong = law_of(name, SPENT), law_of(name, 1.3 * SPENT)
    most = max(right, key=lambda order: abs(right[order] - wrong[order]))
    missed = 1 - oracle.power(DRAWS, right[most], wrong[most], alarm=ALARM / len(right))
    assert missed < 1e-6


@pytest.mark.parametrize("spent", [0.002, 0.4])
def test_the_noise_of_each_contender_is_as_its_formula(spent: float) -> None:
    world = prepared()
    labels = world.counts.shape[1]

    def noise(name: str) -> tuple[str, float, float]:
        return noise_of(calibrated(name, world, spent).mechanism)

    for name in (OURS_EXP, GROUP_DP):
        shape, scale, deviation = noise(name)
        assert shape == "gumbel" and scale == pytest.approx(6 / spent)
        assert deviation == pytest.approx(6 / spent * pi / sqrt(6))
    for name, wide in ((MQM_VECTOR, 2 / spent), (MQM_SPLIT, labels / spent), (TAKIFUGU, 2 / spent)):
        shape, scale, deviation = noise(name)
        assert shape == "laplace" and scale == pytest.approx(wide)
        assert deviation == pytest.approx(sqrt(2) * wide, rel=0.02)
    assert calibrated(MQM_SPLIT, world, spent).noise == noise(MQM_SPLIT)[2]


def test_a_contender_never_loses_more_than_it_may() -> None:
    world = prepared()
    for name in CONTENDERS:
        mechanism = calibrated(name, world, 0.0123).mechanism
        loss = mechanism.pure if isinstance(mechanism, Exponential) else mechanism.loss
        assert isinstance(loss, Pure)
        assert 0.99 * 0.0123 * (2 / 4 if name == MQM_SPLIT else 1) < float(loss.epsilon) <= 0.0123


def test_split_over_many_labels_peeling_wins_and_over_few_it_does_not() -> None:
    """The printed order turns on m > 6: Laplace of m/ε against Gumbel of 6/ε."""

    def noises(labels: int) -> tuple[float, float]:
        peeled, split = (CONTENDERS[n].release(0.1, labels, 1) for n in (OURS_EXP, MQM_SPLIT))
        return noise_of(peeled)[2], noise_of(split)[2]

    for labels, wins in ((78, True), (11, True), (5, False)):
        peeled, split = noises(labels)
        assert (peeled < split) is wins


def test_each_contender_spends_what_its_own_proof_allows() -> None:
    world = prepared()
    plain = {proof: {1.0: 0.01 * (k + 1)} for k, proof in enumerate(PROOFS)}
    allowed = Allowances(20_000, plain)
    found = {
        n: calibrated_at(n, world, allowed, 1.0, uncertain=False).epsilon_dp for n in CONTENDERS
    }
    assert found == {
        OURS_EXP: plain["curve"][1.0],
        MQM_VECTOR: plain["quilts"][1.0],
        MQM_SPLIT: plain["quilts"][1.0],
        GROUP_DP: plain["group"][1.0],
        TAKIFUGU: plain["exact"][1.0],
    }


def test_takifugu_has_the_least_noise_of_all() -> None:
    world = prepared()
    allowed = allowances(world.chain)
    for epsilon in EPSILONS:
        for uncertain in (False, True):
            noise = {
                name: calibrated_at(name, world, allowed, epsilon, uncertain=uncertain).noise
                for name in CONTENDERS
            }
            assert min(noise, key=lambda name: noise[name]) == TAKIFUGU


def test_the_planner_picks_one_laplace_per_bar_for_every_size_of_the_experiment() -> None:
    """Three rounds cost three times as much: no number of labels up to 400 makes up for that."""
    for labels in (4, 5, 11, 78, 400):
        assert isinstance(planned(0.05, labels, 10), NoisyTopK)
