"""Chains at the edge of what floats can hold: no bound is below what a mechanism leaks."""

import os
from fractions import Fraction
from math import log

import numpy as np
import pytest
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.errors import InvalidPrior, Malformed, TooLarge
from takifugu.priors import IntervalMarkovChain, MarkovChain, Secrets
from takifugu.translation import Translation, chain_losses
from tests.oracles import extreme_chains as oracle
from tests.raising import raises
from tests.translation import extremes
from tests.translation.transports import transport_of

DEEP = bool(os.environ.get("DEEP"))
HALF = [[0.5, 0.5], [0.0, 1.0]]  # from the first state, which is left with probability 1/2
QUICK = [[0.1, 0.9], [0.0, 1.0]]
FADING = [[1.0, 0.0], [1 - 3e-16, 3e-16]]
STEP = 1e-150
LADDER = [
    [1 - STEP, STEP, 0.0, 0.0],
    [0.0, 1 - STEP, STEP, 0.0],
    [0.0, 0.0, 1 - STEP, STEP],
    [0.0, 0.0, 0.0, 1.0],
]
REPORTED = [
    (HALF, [1.0, 0.0], 2_000, 0.001),
    (QUICK, [1.0, 0.0], 700, 0.005),
    (FADING, [0.5, 0.5], 30, 1.073),
    (FADING, [0.0, 1.0], 30, 1.073),
    (LADDER, [1.0, 0.0, 0.0, 0.0], 4, log(1.5)),
]


def markov(rows: ArrayLike, start: ArrayLike, length: int) -> MarkovChain:
    return MarkovChain(np.asarray(rows), start=np.asarray(start), length=length)


def intervals(low: ArrayLike, high: ArrayLike) -> IntervalMarkovChain:
    return IntervalMarkovChain(np.asarray(low), np.asarray(high))


def widened(rows: list[list[float]], start: list[float]) -> tuple[Floats, Floats]:
    """The same chain with one more state, which can be left but never entered."""
    size = len(rows)
    wide = np.zeros((size + 1, size + 1))
    wide[:size, :size] = rows
    wide[size, 0] = 1.0
    return wide, np.append(start, 0.0)


@pytest.mark.nightly
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("rows", "start", "length", "epsilon"), REPORTED)
def test_what_is_less_likely_than_any_float_still_happens(
    rows: list[list[float]], start: list[float], length: int, epsilon: float, wide: bool
) -> None:
    matrix, law = widened(rows, start) if wide else (np.array(rows), np.array(start))
    spent = np.full(length, epsilon)
    entries = sorted({length // 2, max(length - 3, 1), length - 1})
    rows_of = [matrix.tolist()] * (length - 1)
    truth = oracle.counting_losses(rows_of, law.tolist(), spent.tolist(), entries)
    losses = chain_losses(matrix, spent, start=law)
    chain = MarkovChain(matrix, start=law, length=length)
    public = Translation(chain).bound(epsilon, "transport")
    assert public.by_entry is not None
    for entry in entries:
        least = max(max(line) for line in truth[entry])
        assert losses.by_entry[entry] >= least
        assert losses.by_entry[entry] <= least * 1.03
        assert public.by_entry[entry] >= least * (1 - 1e-12)
    assert public.value >= max(max(map(max, truth[entry])) for entry in entries) * (1 - 1e-12)


@pytest.mark.nightly
def test_the_loss_of_two_thousand_halvings_in_exact_fractions() -> None:
    epsilon, steps = 0.001, 1_999
    tilt = Fraction(1001, 1000)  # below e^ε: each entry in the first state counts that much more
    above = tilt**steps  # in the first state at the end: so at every entry before
    stays = tilt / 2
    # in the second state at the end: the first one was left after k entries, with 2⁻ᵏ
    below = stays * (1 - stays**steps) / (1 - stays) / (1 - Fraction(1, 2**steps))
    ratio = above / below
    leak = epsilon + log(ratio.numerator) - log(ratio.denominator)
    assert leak > 1.996
    matrix, law = widened(HALF, [1.0, 0.0])
    assert chain_losses(matrix, np.full(steps + 1, epsilon), start=law).by_entry[-1] >= leak


@pytest.mark.nightly
def test_ten_thousand_entries_are_not_walked_one_by_one() -> None:
    spent = np.full(10_000, 0.0003)
    truth = oracle.counting_losses([HALF] * 9_999, [1.0, 0.0], spent.tolist(), [9_999])
    least = max(map(max, truth[9_999]))
    matrix, law = widened(HALF, [1.0, 0.0])
    losses = chain_losses(matrix, spent, start=law)
    assert least <= losses.by_entry[-1] <= least * (1 + 1e-6)
    assert len(losses.backward) < 6_000


def test_probabilities_below_the_least_are_refused_in_one_line() -> None:
    for tiny in (1e-300, 5e-324, 1e-160):
        rows = [[1 - tiny, tiny, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5]]
        with raises(InvalidPrior, reason="tiny"):
            chain_losses(rows, np.full(5, 0.1), start=[1.0, 0.0, 0.0])
        with raises(InvalidPrior, reason="tiny"):
            markov(rows, [1.0, 0.0, 0.0], 5)
        with raises(InvalidPrior, field="lower"):
            intervals([[0.5, tiny], [0.1, 0.5]], [[0.9, 0.5], [0.5, 0.9]])
        with raises(InvalidPrior, field="upper"):
            intervals([[0.5, 0.0], [0.1, 0.5]], [[1.0, tiny], [0.5, 0.9]])


def test_a_stationary_law_that_floats_cannot_hold_is_refused() -> None:
    tiny = 1e-150
    rows = [[1 - tiny, tiny, 0.0], [1 - tiny, 0.0, tiny], [1.0, 0.0, 0.0]]
    with pytest.raises(InvalidPrior, match="more than float64 can hold"):
        chain_losses(rows, np.full(5, 0.1))


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-30, 299.0, 700.0, 1e6, 1e290])
def test_any_epsilon_is_bounded(epsilon: float) -> None:
    matrix, law = widened(QUICK, [1.0, 0.0])
    spent = np.full(6, epsilon)
    losses = chain_losses(matrix, spent, start=law)
    assert not np.isnan(losses.by_entry).any()
    assert losses.loss >= 5 * epsilon * (1 - 1e-12)
    assert losses.loss <= 6 * epsilon * (1 + 1e-9) + 1e-9
    free = Translation(MarkovChain(matrix, start=law, length=6)).explain(epsilon)
    assert free.lower <= free.pufferfish


def test_more_than_floats_can_add_is_refused() -> None:
    with raises(Malformed, field="epsilon", reason="sum"):
        chain_losses(HALF, np.full(6, 1e308), start=[1.0, 0.0])


def test_a_path_that_is_too_unlikely_is_not_written_out() -> None:
    chain = markov(LADDER, [1.0, 0.0, 0.0, 0.0], 4)
    with pytest.raises(TooLarge, match="written out"):
        chain.explicit()
    assert (markov(HALF, [1.0, 0.0], 1_500).marginals()[1:] > 0).all()


def test_interval_chains_with_hardly_any_bounds_and_large_losses() -> None:
    box = IntervalMarkovChain(np.full((3, 3), 1e-9), np.ones((3, 3)), start="any", length=4)
    transport = transport_of(box, Secrets())
    for epsilon in (1e-300, 0.5, 45.0, 200.0, 1e4):
        assert transport.uniform(epsilon).value >= epsilon


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(20 if DEEP else 4))
def test_random_extremes_are_never_below_the_oracle(block: int) -> None:
    rounds = 400 if DEEP else 50
    seen = [
        extremes.check(np.random.default_rng([7, block, seed]), seed, long=DEEP)
        for seed in range(rounds)
    ]
    assert seen.count("held") > rounds / 2


@pytest.mark.nightly
def test_witnesses_of_fading_chains_leak_what_they_say() -> None:
    chain = markov(*widened(HALF, [1.0, 0.0]), 1_500)
    transport = transport_of(chain, Secrets())
    bound = transport.uniform(0.01)
    witness = transport.witness(0.01, bound)
    assert witness.binding is not None and witness.factors is not None
    whole = [[1.0] * 3 for _ in range(1_500)]
    for place, line in zip(witness.entries, witness.factors.tolist(), strict=True):
        whole[int(place)] = line
    left, right = int(witness.binding.left), int(witness.binding.right)
    rows = [chain.transition.tolist()] * 1_499
    assert isinstance(witness.binding.entry, int)
    true = oracle.product_loss(rows, [1.0, 0.0, 0.0], whole, witness.binding.entry, [left], [right])
    assert 1.0 < witness.leak <= true <= bound.value
