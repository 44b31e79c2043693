"""The planner keeps every allowance, chooses what the exact laws say is best, and says why."""

import json
from fractions import Fraction
from itertools import product
from math import exp, log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import frozen
from takifugu._core.rounding import float_up
from takifugu.costs.losses import Approximate, Concentrated, Loss, Pure
from takifugu.errors import InvalidMechanism, TooLarge, UnsoundRequest
from takifugu.influence import chain_curve
from takifugu.mechanisms import (
    Exponential,
    IntegerGaussian,
    IntegerLaplace,
    MechanismPlan,
    NoisyTopK,
    PermuteAndFlip,
    Sensitivity,
    plan_histogram,
    plan_top_k,
)
from takifugu.mechanisms.candidates import allowed_loss, gaussian_beyond, laplace_beyond
from takifugu.mechanisms.planner import MAX_TERMS, name, noise_of
from takifugu.mechanisms.prediction import (
    Shape,
    predicted,
    resolution,
    staircase,
)
from takifugu.priors.markov import MarkovChain
from takifugu.translation.curve_translation import CurveTranslation
from tests.mechanisms.test_scales import Times
from tests.oracles import noise as oracle
from tests.raising import raises

FALSE_ALARM = 1e-9
CURVE = CurveTranslation(chain_curve(MarkovChain(frozen([[0.8, 0.2], [0.2, 0.8]]), length=1000)))
allowances = st.one_of(
    st.builds(Pure, st.floats(1e-3, 5)),
    st.builds(Approximate, st.floats(1e-2, 5), st.floats(1e-9, 0.3)),
    st.builds(Concentrated, st.floats(1e-4, 5)),
)


def keeps(loss: Loss, allowed: Loss) -> bool:
    """Whether a loss is within an allowance of its own currency."""
    match loss, allowed:
        case Pure(), Pure() | Approximate():
            return loss.epsilon <= allowed.epsilon
        case Approximate(), Approximate():
            return loss.epsilon <= allowed.epsilon and loss.delta <= allowed.delta
        case Concentrated(), Concentrated():
            return loss.rho <= allowed.rho
    return False


def is_proven(mechanism: Any, loss: Loss) -> bool:
    """Whether the mechanism's own price proves the loss that is charged."""
    match loss, mechanism.loss:
        case Pure(epsilon=e), Pure(epsilon=own):
            return bool(own <= e)
        case Concentrated(rho=r), Pure(epsilon=own):
            return bool(own**2 / 2 <= r)
        case Concentrated(rho=r), Concentrated(rho=own):
            return bool(own <= r)
        case Approximate(epsilon=e, delta=d), Concentrated(rho=own):
            root = sqrt(float(own) * log(1 / float(d)))  # no more than the textbook conversion
            return float(e) <= float(own) + 2 * root + 1e-6
    return False


@pytest.mark.nightly
@settings(max_examples=12)
@given(allowed=allowances, k=st.integers(1, 4), groups=st.integers(1, 9))
def test_every_mechanism_offered_keeps_the_allowance(allowed: Loss, k: int, groups: int) -> None:
    ranking = plan_top_k(6, k, groups, loss=allowed)
    counts = plan_histogram(6, groups, loss=allowed)
    offered = [(c.mechanism, c.loss) for c in ranking.choices]
    for mechanism, loss in [*offered, *((c.mechanism, c.loss) for c in counts.choices)]:
        assert keeps(loss, allowed)
        assert is_proven(mechanism, loss)
    kinds = {choice.mechanism.kind for choice in ranking.choices}
    gaussian = set() if isinstance(allowed, Pure) else {"gaussian-top-k"}
    assert kinds == {"laplace-top-k", "permute-and-flip", "exponential"} | gaussian
    assert ranking.error.gap == min(
        c.error.gap for c in ranking.choices
    )  # without a reference, the gap decides


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("gap", [4, 12])
def test_the_choice_is_the_best_by_the_exact_laws(k: int, gap: int) -> None:
    """`probabilities` sums the discrete laws; the planner integrates the continuous ones."""
    counts = (gap * staircase(8, k)).astype(np.int64)  # and the other way round: ties have a side
    plan = plan_top_k(8, k, loss=Pure(0.4), gap=gap)

    def right(mechanism: Any) -> float:
        both = mechanism.probabilities(np.stack([counts, counts[::-1]]))
        return float(np.mean([(both[0, j, j] + both[1, j, 7 - j]) / 2 for j in range(k)]))

    truth = {c.mechanism.kind: right(c.mechanism) for c in plan.choices}
    assert truth[plan.mechanism.kind] == max(truth.values())
    assert isinstance(plan.mechanism, PermuteAndFlip if k == 1 else NoisyTopK)
    for choice in plan.choices:
        guaranteed = choice.error.mean_right
        assert guaranteed is not None
        assert guaranteed == pytest.approx(truth[choice.mechanism.kind], abs=0.02)


def test_peeling_wins_when_one_entry_moves_many_counts() -> None:
    """One entry in 40 categories: noise on all of them pays for each, a selection for the largest.

    Scales 80/ε against 2k/ε.
    """
    visits = Sensitivity("visits", l1=80, l2_squared=80, linf=1)
    for k in (1, 3):
        plan = plan_top_k(100, k, loss=Pure(1), sensitivity=visits)
        assert isinstance(plan.mechanism, PermuteAndFlip)
        assert isinstance(plan.alternatives[-1].mechanism, NoisyTopK)


@pytest.mark.parametrize(
    ("allowed", "kind"),
    [
        (Pure("0.1"), IntegerLaplace),
        (Approximate("0.1", 1e-6), IntegerLaplace),  # deviations 28 and 74
        (Approximate("0.1", 0.3), IntegerGaussian),
        (Concentrated("0.005"), IntegerGaussian),  # deviations 14 and 28
    ],
)
def test_the_noise_of_a_histogram_depends_on_the_currency(allowed: Loss, kind: type) -> None:
    plan = plan_histogram(78, loss=allowed)
    assert isinstance(plan.mechanism, kind)
    assert plan.error.deviation == min(c.error.deviation for c in plan.choices)
    if allowed == Pure("0.1"):
        assert plan.mechanism.scale == pytest.approx(20)


def test_groups_cost_one_charge() -> None:
    alone, many = (plan_top_k(78, 3, groups, loss=Pure(0.2)) for groups in (1, 77))
    assert alone.loss == many.loss
    assert alone.mechanism == many.mechanism
    assert "77 groups have public keys and disjoint entries: one charge for all" in many.reason
    assert "charge" not in alone.reason


def test_one_charge_for_all_groups_is_what_the_joint_law_says() -> None:
    """Two groups, one entry of one of them replaced: the loss of both answers together."""
    plan = plan_top_k(2, 1, 2, loss=Pure(1))
    assert isinstance(plan.mechanism, PermuteAndFlip)
    scale = plan.mechanism.scale

    def law(first: list[int], second: list[int]) -> dict[tuple[int, int], float]:
        one, two = (oracle.permute_and_flip(scores, scale) for scores in (first, second))
        return {(i, j): one[i] * two[j] for i, j in product(range(2), repeat=2)}

    left, right = law([3, 0], [2, 2]), law([2, 1], [2, 2])
    assert max(oracle.pure_loss(left, right), oracle.pure_loss(right, left)) <= 1
    both = law([3, 0], [2, 2]), law([2, 1], [3, 1])  # two entries: more than one charge
    assert oracle.pure_loss(*both) > 0.6


@pytest.mark.parametrize("delta", [None, 1e-5])
def test_a_pufferfish_loss_is_translated_and_certified(delta: float | None) -> None:
    plans: list[MechanismPlan[Any, Any]] = [
        plan_top_k(78, 3, 5, translation=CURVE, epsilon=1, delta=delta),
        plan_histogram(78, translation=CURVE, epsilon=1, delta=delta),
    ]
    for plan in plans:
        assert plan.pufferfish is not None
        assert 0.99 < plan.pufferfish <= 1
        assert isinstance(plan.loss, Pure | Approximate)
        assert float(plan.loss.epsilon) == pytest.approx(0.0765, abs=1e-4)
        gaussian = [c for c in plan.alternatives if isinstance(c.loss, Approximate)]
        assert bool(gaussian) == (delta is not None)
        for choice in gaussian:
            assert isinstance(choice.loss, Approximate)
            grown = (exp(1) - 1) / (exp(0.07652) - 1)
            assert float(choice.loss.delta) * grown <= 1e-5 * 1.001


@settings(max_examples=15)
@given(
    scores=st.lists(st.integers(0, 30), min_size=2, max_size=5),
    k=st.integers(1, 2),
    scale=st.floats(2, 20),
)
def test_predictions_of_selections_are_what_the_rounds_give(
    scores: list[int], k: int, scale: float
) -> None:
    ordered = sorted(scores, reverse=True)
    rounds: list[tuple[Shape, Any, float]] = [
        ("gumbel", oracle.softmax, 1e-3),
        ("flips", oracle.permute_and_flip, 1e-9),
    ]
    for shape, law, error in rounds:
        exact = oracle.peeled(scores, k, scale, law)
        found = predicted(np.array(scores, float), k, shape, scale)
        for place in range(k):
            right = sum(p for o, p in exact.items() if scores[o[place]] == ordered[place])
            assert found.places[place] == pytest.approx(right, abs=error)
        among = sum(p * sum(scores[i] >= ordered[k - 1] for i in o) for o, p in exact.items())
        assert found.hits == pytest.approx(among / k, abs=error)


@settings(max_examples=15)
@given(gap=st.floats(0, 60), scale=st.floats(1, 30))
def test_predictions_of_noise_are_the_closed_forms_for_two(gap: float, scale: float) -> None:
    x = gap / scale
    forms: dict[Shape, float] = {
        "laplace": 1 - exp(-x) * (2 + x) / 4,
        "gaussian": NormalDist().cdf(x / sqrt(2)),
        "gumbel": 1 / (1 + exp(-x)),
        "flips": 1 - exp(-x) / 2,
    }
    for shape, confidence in forms.items():
        expected = confidence if x > 0 else 1.0  # equal scores are as good as one another
        found = predicted(np.array([gap, 0.0]), 1, shape, scale)
        assert found.mean == pytest.approx(expected, abs=2e-3)


def test_large_rounds_of_permute_and_flip_are_predicted_by_their_bound() -> None:
    steps = staircase(78, 3) * 5.0
    assert predicted(steps, 3, "flips", 1.0).mean == predicted(steps, 3, "gumbel", 1.0).mean
    best = predicted(staircase(78, 1) * 4.0, 1, "flips", 1.0).mean
    assert best > predicted(staircase(78, 1) * 4.0, 1, "gumbel", 1.0).mean


@pytest.mark.parametrize("shape", ["laplace", "gaussian", "gumbel", "flips"])
def test_leads_that_are_told_apart_are_and_smaller_ones_are_not(shape: Shape) -> None:
    step = resolution(30, 2, shape)
    assert predicted(staircase(30, 2) * step, 2, shape, 1.0).places.min() >= 0.95
    assert predicted(staircase(30, 2) * step * 0.998, 2, shape, 1.0).places.min() < 0.95
    assert resolution(1, 1, shape) == 0.0  # there is nothing to be told apart
    assert 0 < resolution(2, 1, shape) < step


@pytest.mark.parametrize(("labels", "k"), [(40, 40), (256, 128), (256, 256)])
def test_a_ranking_of_all_or_half_of_many_labels_is_planned_without_a_reference(
    labels: int, k: int
) -> None:
    plan = plan_top_k(labels, k, loss=Pure(1))  # sums over the sets of 20 of 40 would never end
    gaps = [choice.error.gap for choice in plan.alternatives]
    assert 0 < plan.error.gap <= min(gaps)


def test_predictions_that_take_too_long_are_refused_with_their_size_before_they_begin() -> None:
    alike = np.tile([7, 1, 0], (100_000, 1))
    assert plan_top_k(3, 3, 100_000, reference=alike, confidence=0.9).error.right
    groups = np.arange(3 * 100_000).reshape(100_000, 3)
    for target in ({"loss": Pure(1)}, {"confidence": 0.9}):
        with raises(TooLarge, field="reference", reason="terms") as refused:
            plan_top_k(3, 3, 100_000, reference=groups, **target)
        assert refused.value.limit == MAX_TERMS < (refused.value.size or 0)
    with raises(TooLarge, field="reference", reason="terms"):
        plan_top_k(1000, 900, gap=10.0, loss=Pure(1))


@pytest.mark.statistical
@pytest.mark.parametrize("k", [1, 3])
def test_what_was_predicted_happens(k: int) -> None:
    """Simulated rankings of a reference; each mean is of numbers in [0, 1] (Hoeffding)."""
    reference = np.array([300, 240, 200, *range(150, 50, -10)])
    draws = 20_000
    slack = sqrt(log(2 * 8 / FALSE_ALARM) / (2 * draws)) + 0.01  # and the twins' difference
    plan = plan_top_k(len(reference), k, loss=Concentrated("0.001"), reference=reference)
    rng = np.random.default_rng(31)
    for choice in plan.choices:
        named = choice.mechanism.simulate(reference, draws, rng=rng).reshape(draws, k)
        assert choice.error.mean_right is not None
        assert abs((named == np.arange(k)).mean() - choice.error.mean_right) <= slack
        assert choice.error.hits is not None
        assert abs((named < k).mean() - choice.error.hits) <= slack
    worst = plan.alternatives[-1].error.mean_right
    assert worst is not None
    assert plan.error.mean_right is not None
    assert plan.error.mean_right - worst > 2 * slack  # a mix-up would be seen


def gaussian_order(scores: list[int], k: int, scale: float) -> oracle.Law:
    """P(named in this order), all outcomes of the noise."""
    reach = 12
    noise = {z: oracle.gaussian(scale, z) for z in range(-reach, reach + 1)}
    found: oracle.Law = {}
    for drawn in product(noise, repeat=len(scores)):
        noisy = [x + z for x, z in zip(scores, drawn, strict=True)]
        order = tuple(sorted(range(len(scores)), key=lambda i: (-noisy[i], i))[:k])
        confidence = float(np.prod([noise[z] for z in drawn]))
        found[order] = found.get(order, 0.0) + confidence
    return found


@pytest.mark.nightly
@pytest.mark.statistical
def test_gaussian_noise_then_sorting_follows_its_law() -> None:
    scores, scale = [3, 2, 0], 1.5
    law = gaussian_order(scores, 2, scale)
    mechanism = NoisyTopK(IntegerGaussian(scale), 2)
    probabilities = mechanism.probabilities(scores)
    for place, candidate in product(range(2), range(3)):
        exact = sum(p for order, p in law.items() if order[place] == candidate)
        assert probabilities[place, candidate] == pytest.approx(exact, abs=1e-9)
    assert mechanism.error(scores).first_is_best == pytest.approx(probabilities[0, 0])
    rng = np.random.default_rng(32)
    samples = {
        2_500: mechanism.release(np.tile(scores, (2_500, 1))),
        20_000: mechanism.simulate(scores, 20_000, rng=rng),
    }
    for draws, drawn in samples.items():
        rows = [tuple(row) for row in drawn.tolist()]
        for order, p in law.items():
            hits = rows.count(order)
            assert oracle.plausible(hits, draws, p, alarm=FALSE_ALARM / 12)
    swapped = law[(1, 0)]
    assert oracle.power(20_000, law[(0, 1)], swapped, alarm=FALSE_ALARM / 12) > 1 - 1e-9


def test_gaussian_top_k_is_calibrated_and_charged_as_its_noise() -> None:
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-5, "translation": CURVE}
    mechanism = NoisyTopK.calibrated(**asked, k=3)
    assert mechanism.noise == IntegerGaussian.calibrated(**asked)
    assert mechanism.loss == mechanism.noise.loss
    assert mechanism.describe()["kind"] == "gaussian-top-k"
    with raises(UnsoundRequest, field="values"):
        mechanism.error()
    with pytest.raises(TooLarge):
        NoisyTopK(IntegerGaussian(1e5), 3).probabilities(range(78))


@pytest.mark.parametrize(("within", "confidence"), [(50, 0.95), (1, 0.9), (300, 0.999)])
def test_the_least_loss_for_an_error(within: int, confidence: float) -> None:
    plan = plan_histogram(78, 77, within=within, confidence=confidence, delta=1e-6)
    assert isinstance(plan.mechanism, IntegerLaplace)
    inside = sum(oracle.laplace(plan.mechanism.scale, z) for z in range(-within, within + 1))
    assert confidence <= inside < confidence + 1e-4
    wider = plan.mechanism.scale * 1.001  # a loss 0.1 % smaller does not do it
    assert sum(oracle.laplace(wider, z) for z in range(-within, within + 1)) < confidence
    [gaussian] = plan.alternatives
    assert isinstance(gaussian.mechanism, IntegerGaussian)
    assert isinstance(gaussian.loss, Approximate)
    assert isinstance(plan.loss, Pure)
    assert gaussian.loss.epsilon > plan.loss.epsilon
    assert gaussian_beyond(gaussian.mechanism.scale, within) <= 1 - confidence


def test_the_tails_that_targets_are_met_by() -> None:
    for scale in (0.7, 5.0, 40.0):
        left = 1 - sum(oracle.laplace(scale, z) for z in range(-9, 10))
        assert laplace_beyond(scale, 9) == pytest.approx(left, abs=1e-12)
    assert gaussian_beyond(5.0, 9) == pytest.approx(
        1 - sum(oracle.gaussian(5.0, z) for z in range(-9, 10)), abs=1e-9
    )
    wide = gaussian_beyond(6_000.0, 9_000), gaussian_beyond(4_999.0, 7_498)
    assert wide[0] == pytest.approx(wide[1], abs=1e-4)


def test_the_least_loss_for_a_ranking() -> None:
    plan = plan_top_k(78, 3, gap=200, confidence=0.9, delta=1e-6, groups=4)
    assert plan.error.mean_right == pytest.approx(0.9, abs=1e-3)
    assert isinstance(plan.loss, Pure)
    less = plan_top_k(78, 3, gap=200, loss=Pure(plan.loss.epsilon * Fraction(99, 100)))
    assert less.error.mean_right is not None
    assert less.error.mean_right < 0.9
    for choice in plan.alternatives:
        assert isinstance(choice.loss, Pure | Approximate)
        assert choice.loss.epsilon >= plan.loss.epsilon
        assert choice.error.mean_right == pytest.approx(0.9, abs=1e-3)


def test_an_error_that_is_wanted_is_priced_in_pufferfish_too() -> None:
    plan = plan_histogram(78, within=50, translation=CURVE)
    assert isinstance(plan.loss, Pure)
    assert plan.pufferfish == CURVE.to_pufferfish(float(plan.loss.epsilon))
    assert float(CURVE.to_pufferfish(float(plan.loss.epsilon))) > 1


def test_a_plan_is_words_and_json() -> None:
    plan = plan_top_k(["a", "b", "c"], 2, 7, loss=Approximate(1, 1e-6), reference=[9, 5, 1])
    assert plan.reason.startswith("within (ε, δ) = (1, 1e-6) per entry, integer Laplace noise on")
    assert "permute-and-flip in 2 rounds resolves leads of" in plan.reason
    assert "(a concentrated loss)" in plan.reason
    said = json.loads(json.dumps(plan.describe()))
    assert said["mechanism"]["kind"] == "laplace-top-k"
    assert said["groups"] == 7
    assert len(said["alternatives"]) == len(plan.alternatives) == 4
    assert said["error"]["right"] == list(plan.error.right or ())


@pytest.mark.parametrize(
    ("options", "field", "reason"),
    [
        ({}, "loss", "missing"),
        ({"epsilon": 1}, "loss", "missing"),
        ({"loss": Pure(1), "epsilon": 1, "translation": CURVE}, "loss", "both"),
        ({"loss": Pure(1), "confidence": 0.9, "gap": 5}, "loss", "both"),
        ({"confidence": 0.9}, "reference", "missing"),
        ({"confidence": 1.5, "gap": 5}, "confidence", ""),
        ({"confidence": 0.9, "gap": 5, "delta": 1e-6, "translation": CURVE}, "delta", ""),
        ({"loss": Pure(1), "gap": 5, "reference": [1, 2, 3]}, "reference", "both"),
        ({"loss": Pure(1), "gap": -1}, "gap", ""),
        ({"loss": Concentrated(0)}, "loss", "zero"),
        ({"loss": Approximate(0, 1e-6)}, "loss", "zero"),
        ({"loss": Pure(0)}, "loss", "zero"),
    ],
)
def test_unclear_requests_are_one_clear_line(
    options: dict[str, Any], field: str, reason: str
) -> None:
    with raises(UnsoundRequest, field=field, reason=reason):
        plan_top_k(3, 1, **options)


@pytest.mark.parametrize(
    "reference",
    [[1, 2], [[1, 2, 3]] * 3, [1, 2, np.nan], ["a", "b", "c"]],
    ids=["too few", "too many groups", "not a number", "text"],
)
def test_bad_references_are_one_clear_line(reference: Any) -> None:
    with raises(InvalidMechanism, field="reference"):
        plan_top_k(3, 1, 2, loss=Pure(1), reference=reference)


def test_other_bad_requests_are_one_clear_line() -> None:
    with raises(InvalidMechanism, field="k"):
        plan_top_k(3, 4, loss=Pure(1))
    with raises(UnsoundRequest, field="within", needed=1):
        plan_histogram(3, within=0.5)
    stuck = CurveTranslation(chain_curve(MarkovChain(frozen([[0, 1], [1, 0]]))))
    with raises(UnsoundRequest, reason="no allowance"):
        plan_histogram(3, translation=stuck, epsilon=1)


@pytest.mark.parametrize("besides", [{"translation": CURVE}, {"epsilon": 1}, {"delta": 1e-6}])
def test_a_loss_says_all_and_stands_alone(besides: dict[str, Any]) -> None:
    given: dict[str, Any] = {"translation": None, "epsilon": None, "delta": None}
    assert allowed_loss(Pure(1), **given) == Pure(1)
    with raises(UnsoundRequest, field="loss", reason="both"):
        allowed_loss(Pure(1), **{**given, **besides})


def test_a_mechanism_of_one_round_is_named_without_it() -> None:
    assert name(Exponential(1.0)) == "the exponential mechanism"
    assert name(Exponential(1.0, 2)) == "the exponential mechanism in 2 rounds"


@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(2, 3), Fraction(1, 7)])
def test_a_delta_that_no_float_holds_is_never_exceeded(delta: Fraction) -> None:
    """One third and two thirds are rounded to either side by the nearest float."""
    for choice in plan_top_k(4, 2, loss=Approximate("0.5", delta)).choices:
        if isinstance(choice.loss, Approximate):
            assert delta * Fraction(999, 1000) < choice.loss.delta <= delta
            assert Fraction(49, 100) < choice.loss.epsilon <= Fraction(1, 2)


def test_a_plan_that_would_lose_more_than_was_asked_for_is_refused() -> None:
    with raises(UnsoundRequest, field="translation"):
        plan_histogram(3, translation=Times(3.0, 0.5), epsilon=1)
    target = plan_histogram(3, translation=Times(3.0, 0.5), within=9)  # no ε to be exceeded
    assert isinstance(target.loss, Pure)
    assert target.pufferfish == 3 * float_up(target.loss.epsilon)


def test_the_reason_of_a_plan_in_full() -> None:
    assert plan_histogram(3, 2, loss=Pure("0.5")).reason == (
        "within ε = 0.5 per entry, integer Laplace noise has a standard deviation of 5.642 on each"
        " of the 3 counts and costs ε = 0.5. The 2 groups have public keys and disjoint entries:"
        " one charge for all."
    )
    plan = plan_histogram(3, within=9, delta=0.2)
    assert "to keep each count within ±9 with a confidence of 0.95, " in plan.reason


@pytest.mark.parametrize(
    ("options", "known"),
    [
        ({"gap": 5}, 5 * staircase(4, 2)[None, :]),
        ({"reference": [9, 1, 4, 2]}, np.array([[9.0, 1, 4, 2]])),
        ({"reference": [[9, 1, 4, 2], [3, 1, 0, 0]]}, np.array([[9.0, 1, 4, 2], [3, 1, 0, 0]])),
    ],
)
def test_a_ranking_for_a_reference_is_by_what_is_right(options: Any, known: Any) -> None:
    plan = plan_top_k(4, 2, 2, loss=Pure(1), **options)
    for choice in plan.choices:
        shape, scale, _ = noise_of(choice.mechanism)
        seen = [predicted(row, 2, shape, scale) for row in known]
        assert choice.error.right == pytest.approx(np.mean([one.places for one in seen], axis=0))
        assert choice.error.hits == pytest.approx(np.mean([one.hits for one in seen]))
    rights = [choice.error.mean_right or 0.0 for choice in plan.choices]
    assert rights == sorted(rights, reverse=True)
