"""Expected accuracies against every order in which labels can be drawn, and against simulation."""

from fractions import Fraction
from itertools import permutations
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from takifugu.errors import Malformed
from takifugu.mechanisms.selection import Exponential
from takifugu.papers.composition.experiments.metrics import expected_accuracies, scores
from tests.raising import raises


def enumerated(counts: list[int], scale: float) -> list[float]:
    """Every order of three labels with its probability, in exact arithmetic of the weights."""
    weights = [Fraction(exp((count - max(counts)) / scale)) for count in counts]
    best = sorted(counts, reverse=True)
    right = [Fraction(0)] * 3
    for order in permutations(range(len(counts)), 3):
        left = sum(weights)
        probability = Fraction(1)
        for label in order:
            probability *= weights[label] / left
            left -= weights[label]
        for place, label in enumerate(order):
            right[place] += probability * (counts[label] == best[place])
    return [float(one) for one in right]


@given(
    st.lists(st.integers(1, 60), min_size=5, max_size=7),
    st.sampled_from([0.2, 1.0, 7.0, 300.0]),
)
def test_it_is_what_enumeration_finds(counts: list[int], scale: float) -> None:
    found = expected_accuracies(np.array([counts], float), np.array([scale]))[:, 0]
    assert found.tolist() == pytest.approx(enumerated(counts, scale), abs=1e-9)


def test_gaps_of_any_size_and_ties_are_exact() -> None:
    counts = np.array([[10**9, 10**6, 1000, 1, 0], [5, 5, 5, 5, 5], [9, 9, 4, 4, 4]], float)
    found = expected_accuracies(counts[:1], np.array([1.0, 100.0, 1e4]))
    assert found[:, 0].tolist() == [1, 1, 1]
    assert found[2, 1] == pytest.approx(1 / (1 + 2 * np.exp(-10)), rel=1e-4)
    assert expected_accuracies(counts[1:2], np.array([2.0]))[:, 0] == pytest.approx(1, abs=1e-12)
    assert expected_accuracies(counts[2:], np.array([1e-3]))[:, 0] == pytest.approx(1, abs=1e-12)


def test_it_is_what_the_mechanism_and_the_metrics_measure() -> None:
    rng = np.random.default_rng(3)
    counts = rng.poisson(rng.uniform(5, 200, size=(12, 9)))
    counts[0, 2:] = 0  # a place that no label earned
    mechanism = Exponential.within(0.2, k=3)
    named = mechanism.simulate(counts, 4_000, rng=rng)
    measured = scores(counts, named)
    scale = float(mechanism.scale)
    expected = expected_accuracies(counts.astype(float), np.array([scale]))[:, 0]
    for place in range(3):
        draws = measured[f"acc@{place + 1}"]
        # Hoeffding: draws are independent and between 0 and 1; a false alarm in 1e9
        slack = np.sqrt(np.log(2e9) / (2 * draws.size))
        assert abs(draws.mean() - expected[place]) < slack
        assert slack < 0.02


def test_too_few_labels_are_refused() -> None:
    for counts in (np.ones((2, 4)), np.ones(9), np.full((2, 6), np.nan)):
        with raises(Malformed, field="counts"):
            expected_accuracies(counts, np.array([1.0]))
