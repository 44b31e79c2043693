"""The bounds hold with the stated confidence: exact sums over all outcomes, no sampling."""

from fractions import Fraction
from math import comb, exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.auditing import Claim, epsilon_below, largest_finding, power
from takifugu.auditing.loss_bounds import probability_above, probability_below
from takifugu.errors import UnsoundRequest
from tests.raising import raises


def binomial(n: int, p: Fraction) -> list[Fraction]:
    """The law of the number of hits."""
    return [comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.costly
@given(n=st.integers(1, 40), data=st.data(), exponent=st.integers(1, 11))
def test_a_probability_at_its_bound_would_hardly_give_the_count(
    n: int, data: st.DataObject, exponent: int
) -> None:
    """Clopper and Pearson: the bound is the probability at which the tail is exactly the error."""
    k = data.draw(st.integers(0, n))
    error = 10.0**-exponent
    low, high = (float(f(k, n, error=error)) for f in (probability_below, probability_above))
    assert 0 <= low <= k / n <= high <= 1
    if k > 0:
        tail = sum(binomial(n, Fraction(low))[k:])
        assert error * (1 - 1e-3) <= tail <= error
    if k < n:
        tail = sum(binomial(n, Fraction(high))[: k + 1])
        assert error * (1 - 1e-3) <= tail <= error


@settings(max_examples=20)
@given(
    n=st.integers(1, 14),
    p=st.integers(1, 99),
    q=st.integers(1, 99),
    delta=st.sampled_from([0.0, 0.1]),
    confidence=st.sampled_from([0.5, 0.8, 0.95]),
)
def test_the_bound_exceeds_the_truth_as_rarely_as_it_says(
    n: int, p: int, q: int, delta: float, confidence: float
) -> None:
    first, second = binomial(n, Fraction(p, 100)), binomial(n, Fraction(q, 100))
    hits, other = np.indices((n + 1, n + 1))
    bound = epsilon_below(hits, n, other, n, delta=delta, confidence=confidence)
    truth = max(log((p / 100 - delta) / (q / 100)), 0.0) if p / 100 > delta else 0.0
    wrong = sum(first[k] * second[m] for k, m in np.argwhere(bound > truth).tolist())
    assert float(wrong) <= 1 - confidence


@pytest.mark.costly
@settings(max_examples=25)
@given(
    tests=st.integers(5, 60),
    p=st.integers(1, 99),
    q=st.integers(0, 99),
    epsilon=st.floats(0, 1.5),
)
def test_the_power_is_never_overstated(tests: int, p: int, q: int, epsilon: float) -> None:
    first = np.array([float(x) for x in binomial(tests, Fraction(p, 100))])
    second = np.array([float(x) for x in binomial(tests, Fraction(q, 100))])
    hits, other = np.indices((tests + 1, tests + 1))
    refuted = epsilon_below(hits, tests, other, tests, confidence=0.9) > epsilon
    truth = float(first @ refuted @ second)
    stated = power(p / 100, q / 100, Claim(epsilon), tests=tests, confidence=0.9)
    assert stated <= truth + 1e-12


def test_the_power_is_worth_stating() -> None:
    assert power(0.5, 0.1, Claim(1.0), tests=20_000) > 1 - 1e-9
    assert power(0.5, 0.5 / exp(1), Claim(1.0), tests=20_000) < 0.01
    assert power(0.5, 0.0, Claim(1.0), tests=20_000) > 1 - 1e-9
    assert power(0.1, 0.5, Claim(1.0), tests=20_000) == pytest.approx(0)
    assert power(0.1, 0.9, Claim(1.0), tests=20) == 0


def test_the_largest_finding_grows_with_the_tests() -> None:
    # every output inside, none inside: p > e^{−5.3/n}, q < 5.3/n
    assert largest_finding(10_000) == pytest.approx(log(10_000 / -log(0.005)), abs=1e-3)
    assert largest_finding(1_000) < largest_finding(10_000)


def test_bad_numbers_are_refused() -> None:
    for epsilon in (-0.1, inf, float("nan")):
        with raises(UnsoundRequest, field="epsilon"):
            Claim(epsilon)
    for delta in (-0.1, 1.0, float("nan")):
        with raises(UnsoundRequest, field="delta"):
            Claim(1.0, delta)
    with raises(UnsoundRequest, field="tests", given=0):
        power(0.5, 0.1, Claim(1.0), tests=0)
    with raises(UnsoundRequest, field="probability"):
        power(1.5, 0.1, Claim(1.0), tests=10)
    with raises(UnsoundRequest, field="confidence", given=1.0):
        largest_finding(10, confidence=1.0)
