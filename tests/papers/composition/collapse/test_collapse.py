"""Privacy collapse: exact against enumeration, simulated against exact."""

import math
from collections.abc import Hashable
from fractions import Fraction
from itertools import product
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from takifugu._core.numeric import Integers
from takifugu.errors import (
    InvalidMechanism,
    InvalidPrior,
    InvalidWorld,
    Malformed,
    TooLarge,
    UnsoundRequest,
)
from takifugu.finite import leakage
from takifugu.papers.composition import collapse
from takifugu.papers.composition.collapse import (
    Collapse,
    ExactLoss,
    Interval,
    ManyPriors,
    ManySecrets,
    SimulatedAttacks,
    SingleSecret,
    WaitingTime,
    example,
    printed_type_a,
    repeated,
    simulate,
    trace_attack,
)
from takifugu.papers.composition.collapse.repeated_runs import log_up, shares
from tests.oracles import collapse as oracle
from tests.raising import raises

F = Fraction
SIZES = range(3, 17)
weights = st.lists(st.integers(1, 6), min_size=1, max_size=3)
probabilities = st.fractions(F(1, 20), F(19, 20), max_denominator=40)


# --- Example 1 ---


@settings(max_examples=40)
@given(first=weights, second=weights, probability=probabilities)
def test_single_secret_is_what_enumeration_finds(
    first: list[int], second: list[int], probability: Fraction
) -> None:
    built = SingleSecret.of(first, second, probability=probability)
    world = oracle.single(first, second, probability)
    law = built.waiting()
    assert [law.probability(k) for k in (1, 2, 3)] == oracle.law(world, 3)
    for runs in (1, 2):
        assert built.loss(runs).ratio == oracle.worst_odds(world, runs)


@settings(max_examples=60)
@given(
    first=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    second=st.lists(st.integers(1, 50), min_size=1, max_size=6),
    probability=probabilities,
)
def test_one_run_of_single_secret_leaks_nothing(
    first: list[int], second: list[int], probability: Fraction
) -> None:
    built = SingleSecret.of(first, second, probability=probability)
    assert built.loss().is_zero and built.loss().epsilon == 0
    rounded = leakage(built.stage.world, built.stage.mechanism)
    assert 0 <= rounded.epsilon <= rounded.slack


@given(
    first=st.lists(st.integers(1, 50), min_size=2, max_size=6),
    second=st.lists(st.integers(1, 50), min_size=2, max_size=6),
    probability=probabilities,
)
def test_expectation_of_single_secret_is_one_plus_the_sum_of_odds(
    first: list[int], second: list[int], probability: Fraction
) -> None:
    built = SingleSecret.of(first, second, probability=probability)
    expected = []
    for decoys in (second, first):
        total = sum(decoys)
        expected.append(1 + sum(F(w, total - w) for w in decoys))
    assert [built.waiting(1).expectation, built.waiting(2).expectation] == expected
    assert (
        built.waiting().expectation == probability * expected[0] + (1 - probability) * expected[1]
    )
    largest = max(max(F(w, sum(side)) for w in side) for side in (first, second))
    assert built.bound() == 1 + 1 / (1 - largest)
    assert max(expected) <= built.bound()


def test_a_secret_is_never_revealed_if_the_other_has_a_single_dataset() -> None:
    built = SingleSecret.of([1, 2], [1], probability="0.25")
    assert built.waiting(1).expectation == math.inf and built.waiting(1).never == 1
    assert built.waiting(2).expectation == 1 + F(1, 2) + 2
    assert built.waiting().never == F(1, 4)
    assert built.waiting().expectation == built.waiting().variance == built.bound() == math.inf
    assert built.waiting().quantile(F(3, 4)) == math.inf
    assert built.waiting().quantile(F(1, 2)) == 3  # P(T ≤ 2) = 1/3, P(T ≤ 3) = 1/2
    assert built.loss(2).epsilon == math.inf  # but s2 may be
    seen = simulate(built, 400, rng=np.random.default_rng(1), limit=60)
    assert 0 < seen.unrevealed < 400 and seen.wrong == 0
    with raises(UnsoundRequest, field="limit", given=60):
        _ = seen.mean


def test_two_single_datasets_are_safe_for_ever() -> None:
    built = SingleSecret.of([1], [1])
    assert [built.loss(k).is_zero for k in (1, 2, 5)] == [True] * 3
    assert built.revealing_outputs() == () and built.waiting().never == 1
    assert simulate(built, 5, rng=np.random.default_rng(0), limit=9).unrevealed == 5


# --- Example 2 and all like it ---


@pytest.mark.parametrize("n", [3, 4])
def test_many_secrets_is_what_enumeration_finds(n: int) -> None:
    built, world = ManySecrets(n), oracle.bits(n)
    law = built.waiting()
    assert [law.probability(k) for k in (1, 2, 3)] == oracle.law(world, 3)
    for i, runs in product(range(n), (1, 2)):
        assert oracle.worst_odds(world, runs, itemgetter(i)) == built.loss(runs).ratio
    table = built.mechanism
    for x, row in zip(table.universe.datasets, table.likelihood, strict=True):
        truth = next(r for _, label, r in world if label == x)
        assert {o: p for o, p in zip(table.outputs, row, strict=True) if p} == truth


@pytest.mark.parametrize("n", SIZES)
def test_one_run_of_many_secrets_leaks_nothing_at_any_size(n: int) -> None:
    built = ManySecrets(n)
    assert built.loss(1).is_zero and built.loss(2).ratio == math.inf
    assert built.waiting() == WaitingTime.of([(2, F(1, 2))]) and built.waiting().expectation == 3
    for kind, bit in product(range(2), range(n)):  # the certificate, checked bit by bit
        flip = built.flip(bit, kind)
        assert flip >> bit & 1
        assert all((row & flip).bit_count() % 2 == 0 for row in built.parities[kind])


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_the_written_out_bits_leak_nothing_up_to_rounding(n: int) -> None:
    built = ManySecrets(n)
    found = leakage(built.world, built.mechanism)
    assert len(built.world.pairs) == 2 * n
    assert 0 <= found.epsilon <= found.slack


@pytest.mark.parametrize("n", [3, 4, 7])
def test_a_type_a_output_has_half_the_printed_probability(n: int) -> None:
    built = ManySecrets(n)
    assert built.probability(0) == F(1, 2**n) and printed_type_a(n) == 2 * built.probability(0)
    secret = built.world.pairs[0].left
    given_secret = built.world.conditional(0, secret) @ built.mechanism.likelihood
    type_a = given_secret[["A" in str(output) for output in built.mechanism.outputs]]
    assert type_a == pytest.approx(float(built.probability(0)), rel=1e-12)
    assert len(type_a) * built.probability(0) == F(1, 2)
    assert len(type_a) * printed_type_a(n) == 1  # which would leave nothing for type B
    assert 2 * built.probability(1) == F(1, 2)


@settings(max_examples=40)
@given(n=st.integers(3, 6), seed=st.integers(0, 2**32))
def test_the_posterior_of_the_bits_is_that_of_bayes(n: int, seed: int) -> None:
    trace = trace_attack(ManySecrets(n), 5, rng=np.random.default_rng(seed))
    joint = {label: p for p, label, _ in oracle.bits(n)}
    rows = {label: row for _, label, row in oracle.bits(n)}
    for step in trace.steps:
        if step.run:
            joint = {x: p * rows[x].get(step.output, 0) for x, p in joint.items()}
        total = sum(joint.values())
        ones = tuple(sum(p for x, p in joint.items() if x[i]) / total for i in range(n))
        assert step.posterior == ones
        assert step.candidates == sum(p > 0 for p in joint.values())
    if trace.revealed_at is not None:
        assert tuple(p == 1 for p in trace.steps[-1].posterior) == trace.truth


# --- Example 3 ---

intervals = st.tuples(probabilities, probabilities).map(lambda ends: Interval(*sorted(ends)))


@pytest.mark.nightly
@settings(max_examples=30)
@given(true_inside=intervals, false_inside=intervals, size=st.integers(1, 3))
def test_the_loss_over_many_priors_is_that_of_linear_programs(
    true_inside: Interval, false_inside: Interval, size: int
) -> None:
    built = ManyPriors(true_inside, false_inside, size)
    left, right = built.world.pairs[0].left, built.world.pairs[0].right
    knowledge = built.world.priors
    assert not isinstance(knowledge, tuple)
    worst = 1.0
    for column in built.stage.mechanism.likelihood.T:
        low, high = oracle.extremes(knowledge, left, column)
        other_low, other_high = oracle.extremes(knowledge, right, column)
        worst = max(worst, high / other_low, other_high / low)
    assert built.loss().epsilon == pytest.approx(math.log(worst), abs=1e-7)
    assert built.printed_epsilon() <= built.loss().epsilon


@pytest.mark.costly
@settings(max_examples=40)
@given(true_inside=intervals, false_inside=intervals, probability=probabilities)
def test_the_extreme_priors_leak_most(
    true_inside: Interval, false_inside: Interval, probability: Fraction
) -> None:
    built = ManyPriors(true_inside, false_inside, 2, probability)
    assert max(corner.loss().ratio for corner in built.corners) == built.loss().ratio
    found = [leakage(corner.world, corner.mechanism) for corner in built.corners]
    slack = max(one.slack for one in found)
    worst = max(one.epsilon for one in found)
    assert abs(worst - built.loss().epsilon) <= slack + 1e-14
    world = oracle.four_cases(probability, true_inside.middle, false_inside.middle)
    assert [built.waiting().probability(k) for k in (1, 2, 3)] == oracle.law(world, 3)
    assert built.stage.loss().ratio == oracle.worst_odds(world, 1) <= built.loss().ratio
    assert built.loss(2).ratio == math.inf


def test_theorem_three_prints_too_small_a_loss() -> None:
    built = ManyPriors(Interval.of("0.1", "0.1"), Interval.of("0.5", "0.5"))
    assert built.printed_epsilon() == pytest.approx(math.log(1.8), abs=1e-12)  # .588
    assert built.loss().ratio == 5  # 1.609
    found = leakage(built.corners[0].world, built.corners[0].mechanism)
    assert found.epsilon > 1.6 > built.printed_epsilon() + 1


def test_the_papers_own_intervals_are_printed_too_small_too() -> None:
    built = ManyPriors.sized(3)
    assert built.loss().ratio == F(12, 7)
    assert built.printed_epsilon() == pytest.approx(math.log(1.625), abs=1e-12)
    assert built.printed_epsilon() < built.loss().epsilon


@settings(max_examples=30)
@given(
    true_inside=intervals,
    false_inside=intervals,
    probability=probabilities,
    at=st.tuples(st.fractions(0, 1), st.fractions(0, 1)),
    seed=st.integers(0, 2**32),
)
def test_the_range_of_the_posterior_holds_every_prior(
    true_inside: Interval,
    false_inside: Interval,
    probability: Fraction,
    at: tuple[Fraction, Fraction],
    seed: int,
) -> None:
    built = ManyPriors(true_inside, false_inside, 1, probability)
    inner = [
        i.low + (i.high - i.low) * t for i, t in zip((true_inside, false_inside), at, strict=True)
    ]
    world = oracle.four_cases(probability, *inner)
    joint = [p for p, _, _ in world]
    for step in trace_attack(built, 4, rng=np.random.default_rng(seed)).steps:
        if step.run:
            joint = [
                p * row.get(step.output, 0) for p, (_, _, row) in zip(joint, world, strict=True)
            ]
        first = sum(joint[:2]) / sum(joint)
        assert step.bounds[0][0] <= first <= step.bounds[0][1]
        assert step.bounds[0][0] <= step.posterior[0] <= step.bounds[0][1]


# --- several runs ---


@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("runs", [2, 3])
def test_the_written_out_runs_leak_without_bound(number: int, runs: int) -> None:
    if number == 2:
        bits = ManySecrets(3)
        world, once = bits.world, bits.mechanism
    else:
        stage = (SingleSecret.of([1, 2], [3, 4]) if number == 1 else ManyPriors.sized(1)).stage
        world, once = stage.world, stage.mechanism
    many = repeated(once, runs)
    assert leakage(world, many).epsilon == math.inf
    assert leakage(world, once).epsilon < 0.6
    assert many.likelihood.sum(axis=1) == pytest.approx(1)
    i = np.ravel_multi_index((1,) * runs, (len(once.outputs),) * runs)
    assert many.outputs[i] == (once.outputs[1],) * runs
    assert many.likelihood[:, i] == pytest.approx(once.likelihood[:, 1] ** runs)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_the_revealing_outputs_do_reveal(number: int) -> None:
    built = example(number, 4)
    posterior, alone = built.initial_posterior(), []
    for output in built.revealing_outputs():
        alone.append(built.initial_posterior().after(output))
        posterior = posterior.after(output)
    assert all(p in (0, 1) for p in posterior.probabilities)
    assert all(0 < p < 1 for one in alone for p in one.probabilities)


# --- simulation ---

FALSE_ALARM = 1e-9  # for each of the two comparisons in a test
ATTACKS = 40_000
SLACK = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * ATTACKS))  # DKW, any law


def examples() -> list[Collapse]:
    lopsided = SingleSecret.of([9, 1], [1, 1, 1, 7], probability="0.7")
    return [*(example(k, n) for k in (1, 2, 3) for n in (3, 8, 16)), lopsided]


def distance(law: WaitingTime, other: WaitingTime) -> float:
    return max(abs(float(law.tail(k) - other.tail(k))) for k in range(1, 80))


def mean_slack(law: WaitingTime) -> float:
    """Bernstein: P(|mean − E| > slack) ≤ FALSE_ALARM; half of it is that some T passes ``cap``."""
    cap = next(k for k in range(1, 2000) if ATTACKS * law.tail(k) <= F(FALSE_ALARM) / 2)
    log = math.log(4 / FALSE_ALARM)
    b = 2 * cap * log / 3
    return (b + math.sqrt(b * b + 8 * ATTACKS * log * float(law.variance))) / (2 * ATTACKS) + 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize("built", examples(), ids=lambda built: built.title)
def test_adversaries_need_as_many_runs_as_the_law_says(built: Collapse) -> None:
    law = built.waiting()
    seen = simulate(built, ATTACKS, rng=np.random.default_rng(7))
    assert seen.wrong == seen.unrevealed == 0 and seen.right.all()
    empirical = [float((seen.runs > k).mean()) for k in range(1, 80)]
    exact = [float(law.tail(k)) for k in range(1, 80)]
    assert max(abs(a - b) for a, b in zip(empirical, exact, strict=True)) <= SLACK
    assert abs(seen.mean - float(law.expectation)) <= mean_slack(law)
    assert seen.standard_error == pytest.approx(math.sqrt(float(law.variance) / ATTACKS), rel=0.2)
    assert seen.share(2) == float((seen.runs == 2).mean())


def test_the_test_above_would_catch_a_wrong_law() -> None:
    right = ManySecrets(3).waiting()
    for wrong in (F(9, 20), F(11, 20)):  # a coin that is not fair
        stuck = WaitingTime.of([(1 / wrong, wrong)])  # too soon, or too late
        assert distance(right, stuck) > 2 * SLACK
        assert abs(float(right.expectation - stuck.expectation)) > 2 * mean_slack(right)
    one = SingleSecret.sized(8)
    assert distance(one.waiting(1), one.waiting(2)) > 2 * SLACK
    assert abs(float(one.waiting().expectation) - float(one.bound())) > 2 * mean_slack(
        one.waiting()
    )


@pytest.mark.parametrize("built", examples(), ids=lambda built: built.title)
def test_the_crowd_declares_when_bayes_is_certain_and_what_it_says(built: Collapse) -> None:
    stage, rng = built.stage, np.random.default_rng(3)
    size = 25
    data, adversaries = stage.draw(size, rng=rng), stage.adversaries(size)
    posteriors = [built.initial_posterior() for _ in range(size)]
    for _ in range(4):
        codes = stage.answer(data, rng=rng)
        adversaries = adversaries.see(codes)
        posteriors = [b.after(stage.output(int(c))) for b, c in zip(posteriors, codes, strict=True)]
        for i, declared in enumerate(adversaries.declared.tolist()):
            certain = all(p in (0, 1) for p in posteriors[i].probabilities)
            assert certain == (declared >= 0)
            if certain:
                assert tuple(p == 1 for p in posteriors[i].probabilities) == stage.holds(
                    int(data[i])
                )
                assert declared == stage.secret(data[[i]])[0]


class Liar(ManySecrets):
    """A curator who answers about another dataset: what the adversary declares is then wrong."""

    def answer(self, datasets: Integers, *, rng: np.random.Generator) -> Integers:
        """About the dataset with another first bit."""
        return super().answer(datasets ^ 1, rng=rng)


def test_a_wrong_declaration_is_counted() -> None:
    liar = Liar(4)
    assert simulate(liar, 50, rng=np.random.default_rng(0)).wrong == 50


def test_batches_join_to_the_whole() -> None:
    parts = list(collapse.simulate_in_batches(ManySecrets(3), 40_000, rng=np.random.default_rng(5)))
    whole = simulate(ManySecrets(3), 40_000, rng=np.random.default_rng(5))
    assert len(parts) > 1 and sum(len(part.runs) for part in parts) == 40_000
    assert (collapse.join_batches(parts).runs == whole.runs).all()


def test_one_repetition_has_no_standard_error() -> None:
    assert SimulatedAttacks(np.array([3]), np.array([True]), 9).standard_error == math.inf


# --- the parts ---


@pytest.mark.costly
@settings(max_examples=40)
@given(sides=st.tuples(weights, weights))
def test_moments_and_quantiles_are_those_of_the_law(sides: tuple[list[int], list[int]]) -> None:
    law = SingleSecret.of(*sides).waiting()
    assume(law.expectation != math.inf)
    pmf = [law.probability(k) for k in range(1, 300)]
    assert all(p >= 0 for p in pmf)
    mean = sum(k * p for k, p in enumerate(pmf, 1))
    assert float(mean) == pytest.approx(float(law.expectation), rel=1e-6)
    second = sum(k * k * p for k, p in enumerate(pmf, 1))
    assert float(second - mean**2) == pytest.approx(float(law.variance), rel=1e-5, abs=1e-9)
    for level in (F(1, 10), F(1, 2), F(99, 100)):
        k = law.quantile(level)
        assert isinstance(k, int)
        assert law.within(k) >= level and (k == 1 or law.within(k - 1) < level)


@given(st.integers(1, 10**40), st.integers(1, 10**40))
def test_logarithms_are_rounded_up(numerator: int, denominator: int) -> None:
    import mpmath

    with mpmath.workdps(60):
        true = mpmath.log(mpmath.mpf(numerator) / denominator)
        found = log_up(F(numerator, denominator))
        assert true <= found <= true + (abs(true) + 1) * 1e-14


def test_a_loss_near_zero_is_not_zero() -> None:
    assert ExactLoss(1 + F(1, 10**40)).epsilon > 0
    assert ExactLoss(F(1)).epsilon == 0
    assert ExactLoss(F(10) ** 400).epsilon == pytest.approx(400 * math.log(10))


def test_numbers_are_taken_as_they_are() -> None:
    assert shares([np.float64(0.5), "0.25", 0.25], "w") == (F(1, 2), F(1, 4), F(1, 4))
    assert all(type(p.numerator) is int for p in shares([np.int64(2), np.float32(3)], "w"))


bad_output: Hashable = ("A", (0, 1))


@pytest.mark.parametrize(
    ("attempt", "error", "field", "facts"),
    [
        (lambda: SingleSecret.of([1, 0], [1]), InvalidPrior, "first", ("0",)),
        (lambda: SingleSecret.of([], [1]), InvalidPrior, "first", ()),
        (lambda: SingleSecret.of([1], [math.nan]), InvalidPrior, "second", ()),
        (lambda: SingleSecret.of([1], [1], probability=1), InvalidPrior, "probability", ("1",)),
        (lambda: SingleSecret((F(1, 2),), (F(1),), F(1, 2)), InvalidPrior, "first", ()),
        (lambda: SingleSecret.of([1], [1]).waiting(3), InvalidPrior, "secret", ("3",)),
        (lambda: Interval.of(0, "0.5"), InvalidPrior, "low", ("0",)),
        (lambda: Interval.of("0.6", "0.5"), InvalidPrior, "low", ()),
        (
            lambda: ManyPriors(Interval.of("0.5", "0.5"), Interval.of("0.5", "0.5"), 0),
            InvalidWorld,
            "size",
            ("0",),
        ),
        (lambda: ManySecrets(2), InvalidWorld, "n", ("3",)),
        (lambda: ManySecrets(33), InvalidWorld, "n", ("3", "32")),
        (lambda: ManySecrets(13).mechanism, TooLarge, "", ()),
        (lambda: example(4, 5), Malformed, "example", ("4",)),
        (lambda: example(1, 17), Malformed, "n", ("17",)),
        (lambda: ManySecrets(3).loss(0), InvalidWorld, "runs", ("0",)),
        (lambda: WaitingTime.of([(2, F(3, 4))]), InvalidPrior, "terms", ("1", "3/2")),
        (lambda: WaitingTime.of([(1, F(3, 2))]), InvalidPrior, "terms", ()),
        (lambda: WaitingTime.of([(2, F(1, 2))]).quantile(F(1)), InvalidPrior, "level", ("1",)),
        (lambda: WaitingTime.of([(2, F(1, 2))]).tail(10**6), TooLarge, "", ("1,000,000",)),
        (lambda: repeated(ManySecrets(8).mechanism, 4), TooLarge, "", ()),
        (
            lambda: ManySecrets(3).initial_posterior().after(bad_output).after(("A", (1, 1))),
            InvalidMechanism,
            "output",
            (),
        ),
        (
            lambda: example(1, 3).initial_posterior().after(("b1", "a1")),
            InvalidMechanism,
            "output",
            (),
        ),
    ],
)
def test_bad_input_is_one_clear_line(attempt, error, field, facts) -> None:  # type: ignore[no-untyped-def]
    with raises(error, field=field) as caught:
        attempt()
    message = str(caught.value)
    assert "\n" not in message and all(fact in message for fact in facts)


def test_public_names_are_listed_and_exist() -> None:
    assert sorted(collapse.__all__, key=str.lower) == sorted(set(collapse.__all__), key=str.lower)
    assert all(hasattr(collapse, name) for name in collapse.__all__)
