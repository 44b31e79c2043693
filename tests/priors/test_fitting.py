"""Counting, smoothing and confidence."""

from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.errors import InvalidPrior
from takifugu.priors.fitting import Transitions, smoothed, with_other
from takifugu.priors.markov import MarkovChain
from tests.raising import raises


def markov(*arguments: Any, **named: Any) -> MarkovChain:
    """Lists as well as arrays, without the type checker's help."""
    return MarkovChain(*arguments, **named)


# The matrix of the paper's appendix "Smoothing and Stability", as the counts it came from
COUNTS = [
    [9, 0, 3, 1, 5],
    [2, 5, 2, 1, 4],
    [3, 1, 39, 11, 29],
    [0, 0, 7, 36, 35],
    [4, 8, 32, 29, 245],
]
PRINTED = [
    [0.49999, 1e-05, 0.16666, 0.05555, 0.27777, 1e-05],
    [0.14286, 0.35714, 0.14286, 0.07143, 0.28571, 1e-05],
    [0.03614, 0.01205, 0.46987, 0.13253, 0.34939, 1e-05],
    [1e-05, 1e-05, 0.08974, 0.46152, 0.44870, 1e-05],
    [0.01258, 0.02516, 0.10063, 0.09119, 0.77043, 1e-05],
    [0.19999, 0.19999, 0.19999, 0.19999, 0.19999, 1e-05],
]


def test_the_papers_smoothing_example_to_its_digits() -> None:
    given_ = Transitions(np.array(COUNTS)).chain()
    printed_before = np.array([[0.5, 0, 0.1666, 0.0555, 0.2777], [0, 0, 0.0897, 0.4615, 0.4487]])
    assert (np.abs(given_.transition[[0, 3]] - printed_before) < 1e-4).all()
    grown = with_other(given_)
    assert grown.states == (0, 1, 2, 3, 4, "other")
    np.testing.assert_array_equal(grown.transition[5], [0.2] * 5 + [0])
    mended = smoothed(grown).transition
    np.testing.assert_array_equal(mended[:5].round(5), PRINTED[:5])
    # the printed last row is cut off, not rounded, and sums to 0.99996: 0.2 (1 − τ) = 0.199998
    np.testing.assert_allclose(mended[5], [0.199998] * 5 + [1e-5], rtol=1e-12)
    assert (np.floor(mended[5] * 1e5 + 1e-6) / 1e5 == PRINTED[5]).all()
    np.testing.assert_allclose(mended.sum(axis=1), 1, atol=1e-15)


def test_counts_lead_to_the_same_chain_in_one_go() -> None:
    counts = Transitions(np.array(COUNTS))
    assert counts.chain(other="other", tau=1e-5) == smoothed(with_other(counts.chain()))


def test_steps_are_counted_within_sequences_and_staying_counts() -> None:
    counts = Transitions.of([["a", "a", "b"], ["b"], [], ["c", "a"]])
    assert counts.states == ("a", "b", "c")
    np.testing.assert_array_equal(counts.counts, [[1, 1, 0], [0, 0, 0], [1, 0, 0]])
    numbers = Transitions.of([np.array([0, 1, 1, 0])], states=(0, 1, 2))
    np.testing.assert_array_equal(numbers.counts, [[0, 1, 0], [1, 1, 0], [0, 0, 0]])


@settings(max_examples=30)
@given(path=st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_counting_is_what_a_loop_finds(path: list[int]) -> None:
    counts = Transitions.of([path], states=(0, 1, 2, 3)).counts
    slow = np.zeros((4, 4), dtype=int)
    for x, y in pairwise(path):
        slow[x, y] += 1
    np.testing.assert_array_equal(counts, slow)


def test_unknown_and_unseen_states() -> None:
    with raises(InvalidPrior, field="sequences") as caught:
        Transitions.of([["a", "secret"]], states=("a", "b"))
    assert "secret" not in str(caught.value)
    lonely = Transitions.of([["a", "b", "a"]], states=("a", "b", "c"))
    with raises(InvalidPrior, field="counts"):
        lonely.chain()
    filled = lonely.chain(unseen="uniform").transition
    np.testing.assert_array_equal(filled[2], [0.5, 0.5, 0])
    with raises(InvalidPrior, field="sequences"):
        Transitions.of([])
    for wrong in ([[0.5]], [[1, 2]], [[-1]]):
        with raises(InvalidPrior, field="counts"):
            Transitions(np.array(wrong))


def test_smoothing_needs_room() -> None:
    chain = markov([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    for tau in (0.5, 0.0, float("nan")):
        with raises(InvalidPrior, field="tau"):
            smoothed(chain, tau=tau)


def at_least(k: int, n: int, p: float) -> float:
    """P(Bin(n, p) ≥ k), term by term."""
    return sum(comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


@pytest.mark.parametrize("confidence", [0.9, 0.999])
def test_intervals_are_those_of_clopper_and_pearson(confidence: float) -> None:
    counts = Transitions(np.array([[7, 3, 0], [0, 0, 0], [1, 1, 38]]))
    found = counts.intervals(confidence=confidence, simultaneous=False)
    miss = (1 - confidence) / 2
    for x, y in np.ndindex(3, 3):
        k, n = int(counts.counts[x, y]), int(counts.exits[x])
        low, high = float(found.lower[x, y]), float(found.upper[x, y])
        assert low == 0 if k == 0 else at_least(k, n, low) == pytest.approx(miss, rel=1e-6)
        assert (
            high == 1 if k == n else 1 - at_least(k + 1, n, high) == pytest.approx(miss, rel=1e-6)
        )
    shared = counts.intervals(confidence=confidence)
    alone = counts.intervals(confidence=1 - (1 - confidence) / 9, simultaneous=False)
    np.testing.assert_allclose(shared.upper, alone.upper, rtol=1e-9)
    assert (shared.lower <= found.lower).all() and (found.upper <= shared.upper).all()
    with raises(InvalidPrior, field="confidence"):
        counts.intervals(confidence=1.0)
