"""The auditor catches what is wrong, with proven power, and passes what is right.

Random numbers are seeded here, so that a red test can be run again. An audit of a true claim
refutes it with probability at most 1 − confidence, for any seed; that a false claim is caught is
proved for the event that was chosen, from the exact laws of both sides.
"""

import secrets
from itertools import product
from math import exp, log
from statistics import NormalDist

import numpy as np
import pytest

from takifugu._core.numeric import Floats
from takifugu.auditing import (
    Audit,
    Claim,
    Comparison,
    Release,
    Sampler,
    audit,
    neighbours,
    paths_given,
    power,
    simulated,
)
from takifugu.auditing.events import choose
from takifugu.errors import Malformed, UnsoundRequest
from tests.auditing import simulations as sim
from tests.raising import raises

FALSE_ALARM = 1e-10  # of one audit of a true claim
STICKY, REST, LENGTH = [[0.9, 0.1], [0.1, 0.9]], [0.5, 0.5], 7
REACH = 60


def probability_of_refuting(found: Audit, outputs: object, first: Floats, second: Floats) -> float:
    """The power of the event that was chosen, from the exact laws of both sides."""
    inside = found.event.contains(outputs)
    sides = (second, first) if found.event.swapped else (first, second)
    rare = max(1 - float(law.sum()) for law in sides) + 1e-12  # what the grid leaves out
    likely, unlikely = (float(law[inside].sum()) for law in sides)
    return power(likely - 1e-12, unlikely + rare, found.claim, tests=found.tests)


def counts_law(counts: tuple[int, int], scale: float) -> Floats:
    """P of every point of the grid of two noisy counts."""
    noise = sim.geometric_law(2 * REACH, scale)
    one, two = (noise[REACH - c : 3 * REACH + 1 - c] for c in counts)
    return np.outer(one, two).ravel()


def grid() -> np.ndarray:
    axis = np.arange(-REACH, REACH + 1)
    return np.array(list(product(axis, axis)))


def test_a_histogram_with_sensitivity_1_where_2_is_right_is_caught() -> None:
    rng = np.random.default_rng(1)
    comparison = sim.between(sim.noisy_counts(1.0), [5, 3], [4, 4], rng)
    found = audit(comparison, 1.0, samples=20_000)
    assert found.refuted
    assert found.lower > 1.5  # the truth is 2
    first, second = counts_law((5, 3), 1.0), counts_law((4, 4), 1.0)
    assert probability_of_refuting(found, grid(), first, second) > 1 - 1e-9


def test_two_bars_of_a_wide_histogram_are_found() -> None:
    rng = np.random.default_rng(2)
    first, second = [5, 3] + [2] * 76, [4, 4] + [2] * 76
    found = audit(sim.between(sim.noisy_counts(1.0), first, second, rng), 1.0, samples=20_000)
    assert found.refuted
    assert found.lower > 1.5


def test_an_exponential_mechanism_without_the_factor_2_is_caught() -> None:
    rng = np.random.default_rng(3)
    comparison = sim.between(sim.exponential(1.0), [3, 0], [2, 1], rng)
    found = audit(comparison, 1.0, samples=20_000)
    assert found.refuted
    laws = [np.array([exp(a), exp(b)]) / (exp(a) + exp(b)) for a, b in ((3, 0), (2, 1))]
    assert probability_of_refuting(found, np.array([0, 1]), *laws) > 1 - 1e-9


@pytest.mark.parametrize("continuous", [False, True])
def test_noise_used_twice_is_caught(continuous: bool) -> None:
    rng = np.random.default_rng(4)

    def laplace(counts: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        return counts + rng.laplace(0, 2, (len(counts), 1))

    release = laplace if continuous else sim.shared_noise(2.0)
    comparison = sim.between(release, [5, 3], [4, 3], rng)
    found = audit(comparison, 1.0, samples=20_000)
    assert found.refuted
    assert found.lower > 7  # the truth is infinite; 10,000 tests can show 7.54
    if not continuous:
        noise = sim.geometric_law(REACH, 2.0)
        shift = np.arange(-REACH, REACH + 1)
        both = np.concatenate([np.stack([c + shift, 3 + shift], 1) for c in (5, 4)])
        none = np.zeros_like(noise)
        laws = np.concatenate([noise, none]), np.concatenate([none, noise])
        assert probability_of_refuting(found, both, *laws) > 1 - 1e-9


def chain_laws(epsilon: float) -> tuple[np.ndarray, dict[int, Floats], dict[int, Floats]]:
    """All paths; P(path | middle = x); P(randomised answer | middle = x)."""
    paths = np.array(list(product((0, 1), repeat=LENGTH)))
    stays = (paths[:, 1:] == paths[:, :-1]).sum(axis=1)
    law = 0.5 * 0.9**stays * 0.1 ** (LENGTH - 1 - stays)
    differ = (paths[:, None, :] != paths[None, :, :]).sum(axis=2)
    flip = 1 / (1 + exp(epsilon))
    answer = flip**differ * (1 - flip) ** (LENGTH - differ)
    given = {x: np.where(paths[:, LENGTH // 2] == x, law, 0.0) * 2 for x in (0, 1)}
    return paths, given, {x: given[x] @ answer for x in (0, 1)}


def middle(simulate: sim.Simulate, rng: np.random.Generator) -> Comparison:
    """The middle of the sticky chain: is it 1, or is it 0?"""
    draws = [paths_given(STICKY, REST, LENGTH, LENGTH // 2, x, rng=rng) for x in (1, 0)]
    one, zero = (simulated(simulate, draw, rng=rng) for draw in draws)
    return Comparison(one, zero, "middle: 1 or 0")


def test_entry_dp_sold_as_pufferfish_on_a_sticky_chain_is_caught_in_the_answers() -> None:
    rng = np.random.default_rng(5)
    found = audit(middle(sim.randomised_response(1.0), rng), 1.0, samples=20_000)
    assert found.refuted
    paths, _, answers = chain_laws(1.0)
    assert found.lower > 2
    assert probability_of_refuting(found, paths, answers[1], answers[0]) > 1 - 1e-9


def test_entry_dp_sold_as_pufferfish_on_a_sticky_chain_is_caught_in_a_count() -> None:
    rng = np.random.default_rng(6)
    found = audit(middle(sim.noisy_total(1.0), rng), 1.0, samples=20_000)
    assert found.refuted
    assert found.lower > 2.5  # any per-entry mechanism leaks 4.12132 at most here
    paths, given, _ = chain_laws(1.0)
    noise = sim.geometric_law(2 * REACH, 1.0)
    laws: list[Floats] = []
    for x in (1, 0):
        ones = np.zeros(LENGTH + 1)
        np.add.at(ones, paths.sum(axis=1), given[x])
        shifted = [noise[REACH - c : 3 * REACH + 1 - c] for c in range(LENGTH + 1)]
        laws.append(ones @ np.array(shifted))
    assert probability_of_refuting(found, np.arange(-REACH, REACH + 1), *laws) > 1 - 1e-9


# all claim ε = 1; the last number is what they leak on these two datasets
RIGHT = {
    "histogram": (sim.noisy_counts(2.0), [5, 3], [4, 4], 1.0),
    "count": (sim.noisy_counts(1.0), [5], [4], 1.0),
    "exponential": (
        sim.exponential(0.5),
        [3, 0],
        [2, 1],
        0.5 + log((1 + exp(1.5)) / (exp(0.5) + exp(1))),
    ),
    "two releases": (sim.noisy_counts(2.0), [5, 5], [4, 4], 1.0),
    "response": (sim.randomised_response(1.0), [0, 1, 1], [1, 1, 1], 1.0),
}


@pytest.mark.nightly
@pytest.mark.statistical
@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("seed", range(5))
def test_right_mechanisms_pass_and_are_nearly_reached(name: str, seed: int) -> None:
    simulate, first, second, truth = RIGHT[name]
    rng = np.random.default_rng(seed)
    comparison = sim.between(simulate, first, second, rng)
    for samples in (4_000, 40_000):
        found = audit(comparison, 1.0, samples=samples, confidence=1 - FALSE_ALARM)
        assert not found.refuted
        assert found.lower <= truth
    assert found.lower > 0.7 * truth  # a bound worth its name


@pytest.mark.statistical
def test_entry_dp_at_the_translated_loss_passes_on_the_sticky_chain() -> None:
    """ε_DP = .2 leaks .97324 at most here (any mechanism), so the claim 1 is true."""
    rng = np.random.default_rng(7)
    for release in (sim.noisy_total(0.2), sim.randomised_response(0.2)):
        found = audit(middle(release, rng), 1.0, samples=40_000, confidence=1 - FALSE_ALARM)
        assert not found.refuted
        assert found.lower > 0.2  # more than the entry alone would reveal


@pytest.mark.statistical
def test_false_alarms_are_as_rare_as_guaranteed_even_when_they_are_allowed() -> None:
    """Claims at the true ε, confidence one half: P(alarms > 265) ≤ e^{−2·65²/400} < 1e-9."""
    rng = np.random.default_rng(8)
    comparison = sim.between(sim.randomised_response(1.0), [0], [1], rng)
    alarms = sum(audit(comparison, 1.0, samples=400, confidence=0.5).refuted for _ in range(400))
    assert alarms <= 265


def test_an_event_tested_where_it_was_chosen_would_cry_wolf() -> None:
    """The control for the test above: one sample for all three parts sees a leak in pure noise."""
    rng = np.random.default_rng(9)
    hopes = []
    for _ in range(20):
        first, second = rng.integers(0, 400, 300), rng.integers(0, 400, 300)  # ε = 0
        hopes.append(
            choose((first, second), (first, second), delta=0, confidence=0.99).expected_bound
        )
    assert sum(expected_bound > 0.1 for expected_bound in hopes) == 20

    def uniform(size: int) -> np.ndarray:
        return rng.integers(0, 400, size)

    comparison = Comparison(uniform, uniform)
    assert sum(audit(comparison, 0.1, samples=600).refuted for _ in range(20)) <= 8


def exact_epsilon(delta: float) -> float:
    """The ε of a Gaussian with σ = 1 and sensitivity 1 at this δ, by bisection."""
    normal = NormalDist().cdf
    low, high = 0.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        spent = normal(0.5 - middle) - exp(middle) * normal(-0.5 - middle)
        low, high = (middle, high) if spent > delta else (low, middle)
    return high


def test_approximate_claims_are_judged_at_their_delta() -> None:
    rng = np.random.default_rng(10)

    def gaussian(data: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        return data + rng.normal(0, 1, data.shape)

    def leaky(data: np.ndarray, *, rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(data.shape) < 0.05, data, -1)  # (0, .05) and no better

    comparison = sim.between(gaussian, [1], [0], rng)
    wrong = audit(comparison, Claim(1.0, 1e-3), samples=100_000, confidence=1 - FALSE_ALARM)
    assert wrong.refuted
    assert wrong.lower < exact_epsilon(1e-3)
    right = Claim(1.0, 0.15)  # δ(1) = Φ(−.5) − e·Φ(−1.5) = .127
    assert not audit(comparison, right, samples=100_000, confidence=1 - FALSE_ALARM).refuted
    exposed = sim.between(leaky, [1], [0], rng)
    sure = 1 - FALSE_ALARM
    assert not audit(exposed, Claim(0.0, 0.05), samples=20_000, confidence=sure).refuted
    assert audit(exposed, Claim(1.0, 0.02), samples=20_000).refuted
    assert audit(exposed, 1.0, samples=20_000).refuted


def test_a_one_way_claim_is_judged_one_way() -> None:
    """Output 1 is as likely on both sides or more on the second; only that way it reveals much."""
    rng = np.random.default_rng(11)

    def answers(probability: float) -> Sampler:
        return lambda size: np.where(rng.random(size) < probability, 1, 0)

    first, second = answers(0.01), answers(0.3)  # log .99/.7 = .35 one way, log 30 the other
    both = Comparison(first, second)
    one = Comparison(first, second, both_ways=False)
    assert audit(both, 1.0, samples=10_000).refuted
    assert not audit(one, 1.0, samples=10_000, confidence=1 - FALSE_ALARM).refuted


def test_the_best_of_many_comparisons_is_tested_alone() -> None:
    rng = np.random.default_rng(12)
    quiet = [sim.between(sim.noisy_counts(1.0), [5], [4], rng) for _ in range(5)]
    loud = sim.between(sim.noisy_counts(1.0), [7], [4], rng)
    named = Comparison(loud.first, loud.second, "the loud one")
    found = audit([*quiet, named], 1.0, samples=4_000)
    assert found.refuted
    assert found.comparison == "the loud one"
    assert found.samples == 2 * (6 * 2_000 + 2_000)
    assert found.tests == 2_000


@pytest.mark.statistical
def test_a_release_with_real_noise_is_audited_call_by_call() -> None:
    """No seed here: the operating system's randomness. False alarm 1e-10, miss below 1e-9."""

    def respond(keep: int) -> Release:
        def release(bit: int) -> str:
            honest = secrets.randbelow(100) < keep
            return "yes" if bool(bit) == honest else "no"

        return release

    comparison = neighbours(respond(73), 1, 0)
    assert not audit(comparison, 1.0, samples=5_000, confidence=1 - FALSE_ALARM).refuted
    comparison = neighbours(respond(85), 1, 0)
    assert power(0.85, 0.15, Claim(1.0), tests=2_500) > 1 - 1e-9
    assert audit(comparison, 1.0, samples=5_000).refuted


def test_the_verdict_is_one_line_without_released_values() -> None:
    rng = np.random.default_rng(13)
    comparison = sim.between(sim.noisy_counts(1.0), [987654], [987650], rng)
    found = audit(comparison, Claim(1.0, 1e-6), samples=2_000)
    assert str(found).startswith("refuted: claimed (ε, δ) = (1, 1e-06); ε ≥ ")
    assert "\n" not in str(found)
    assert "98765" not in str(found) + repr(found)
    assert found.verdict == "refuted"
    assert audit(comparison, 9.0, samples=2_000).verdict == "not refuted"


def test_bad_requests_are_one_clear_line() -> None:
    quiet = Comparison(lambda n: [0] * n, lambda n: [0] * n)
    with raises(UnsoundRequest, field="comparisons"):
        audit([], 1.0, samples=1_000)
    with raises(UnsoundRequest, field="samples", given=10):
        audit(quiet, 1.0, samples=10)
    with raises(UnsoundRequest, field="confidence", given=1.0):
        audit(quiet, 1.0, samples=1_000, confidence=1.0)
    short = Comparison(lambda n: [0] * (n - 1), lambda n: [0] * n)
    with raises(Malformed, field="outputs"):
        audit(short, 1.0, samples=1_000)
    odd = Comparison(lambda n: (0,) * n, lambda n: [0] * n)
    with raises(Malformed, field="outputs"):
        audit(odd, 1.0, samples=1_000)
    assert audit(quiet, 0.0, samples=1_000).lower == 0
