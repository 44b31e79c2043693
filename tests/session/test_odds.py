"""What a loss means for one entry, against releases that are written out in full."""

from fractions import Fraction
from math import erfc, exp, inf, log, nan, sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from takifugu.errors import UnsoundRequest
from takifugu.session.guarantee import PosteriorOdds, odds, odds_words
from tests.raising import raises

WEIGHTS = st.lists(st.integers(1, 1000), min_size=2, max_size=8)


def sides(words: str) -> tuple[Fraction, Fraction]:
    """The two sides of the odds that a sentence ends with."""
    larger, _, smaller = words.split("at most ")[1].split(",")[0].partition(" : ")
    return Fraction(larger) / 100, Fraction(smaller) / 100


@given(epsilon=st.floats(0, 13))
@example(0.0)
@example(1.0)
@example(1e-300)
def test_randomized_response_reaches_the_odds_and_no_more(epsilon: float) -> None:
    """It tells the truth with probability e^ε/(1+e^ε): the posterior of a uniform prior is that."""
    larger, smaller = sides(odds_words(epsilon))
    posterior = 1 / (1 + exp(-epsilon))
    assert larger + smaller == 1
    assert float(larger) >= posterior * (1 - 1e-15)
    # rounded up, by at most one in the second digit of either side
    least = max(min(float(smaller), float(larger) - 0.5), 1e-8)
    assert float(larger) - posterior <= 0.11 * least + 1e-8
    assert odds(epsilon).describe()["to_at_most"] >= posterior * (1 - 1e-15)


def test_the_sentence_of_one() -> None:
    assert odds_words(0.99) == "someone who thought 50 : 50 can come to at most 73 : 27"
    assert odds_words(0).endswith("at most 50 : 50")


@pytest.mark.parametrize("epsilon", [15, 701, 1e300, inf])
def test_a_large_loss_allows_certainty(epsilon: float) -> None:
    assert "certain" in odds_words(epsilon)
    assert odds(epsilon).describe()["to_at_most"] > 0.999999


@pytest.mark.parametrize(("epsilon", "delta"), [(-1, 0), (nan, 0), (1, -0.1), (1, 1.5)])
def test_what_is_no_loss_is_refused(epsilon: float, delta: float) -> None:
    with raises(UnsoundRequest, field="epsilon"):
        odds(epsilon, delta)


@given(first=WEIGHTS, second=WEIGHTS, epsilon=st.floats(0, 3))
def test_with_a_delta_the_odds_hold_except_with_the_stated_probability(
    first: list[int], second: list[int], epsilon: float
) -> None:
    """Any two laws of outcomes: their least δ at ε, added up, and the posterior of each outcome."""
    size = min(len(first), len(second))
    laws = [[w / sum(law[:size]) for w in law[:size]] for law in (first, second)]
    for p, q in (laws, laws[::-1]):
        delta = sum(max(a - exp(epsilon) * b, 0) for a, b in zip(p, q, strict=True))
        other = sum(max(b - exp(epsilon) * a, 0) for a, b in zip(p, q, strict=True))
        stated = odds(epsilon, max(delta, other, 1e-18))
        assert left_with_less(p, p, q, stated.against) <= stated.beyond + 1e-12


def left_with_less(truth: list[float], p: list[float], q: list[float], least: float) -> float:
    """How often, under ``truth``, either value is left with a posterior of less than ``least``."""
    posteriors = [min(a, b) / (a + b) for a, b in zip(p, q, strict=True)]
    return sum(t for t, x in zip(truth, posteriors, strict=True) if x < least * (1 - 1e-9))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 0.01), (1.0, 0.01), (0.1, 1e-6)])
def test_with_a_delta_both_sides_are_excepted(epsilon: float, delta: float) -> None:
    """Two rare outcomes, one for each value: what is excepted is more than 10 δ, under either."""
    own = 10 * delta * 0.9999
    other = 0.9 * exp(-epsilon) * own * (1 - 1e-6)
    p, q = [own, other, 1 - own - other], [other, own, 1 - own - other]
    for a, b in ((p, q), (q, p)):  # (ε, δ) in both directions, for every set of outcomes
        assert sum(max(x - exp(epsilon) * y, 0) for x, y in zip(a, b, strict=True)) <= delta
    stated = odds(epsilon, Fraction(delta))
    for truth in (p, q):
        excepted = left_with_less(truth, p, q, stated.against)
        assert 13 * delta < excepted <= stated.beyond


@pytest.mark.parametrize(
    ("shift", "epsilon"),
    [
        (0.05, 0.1),
        (0.3, 0.1),
        (0.3, 0.5),
        (0.3, 1.0),
        (1.0, 0.5),
        (1.0, 3.0),
        (2.0, 0.1),
        (2.0, 3.0),
    ],
)
def test_gaussian_noise_needs_more_than_its_delta_excepted(shift: float, epsilon: float) -> None:
    """Its losses are normal: the privacy profile and the tail have closed forms."""

    def above(x: float) -> float:
        return erfc(x / sqrt(2)) / 2

    delta = above(epsilon / shift - shift / 2) - exp(epsilon) * above(epsilon / shift + shift / 2)
    stated = odds(epsilon, delta)
    reached = log((1 - stated.against) / stated.against) if stated.against else inf
    naive = above(epsilon / shift - shift / 2)  # that the odds are beyond e^ε
    assert naive > delta  # so "except with probability δ" would be false
    assert reached == inf or above(reached / shift - shift / 2) <= stated.beyond


# --- at the edges ---


NONE = Fraction(0)


def left(against: float, beyond: float = 0.0) -> PosteriorOdds:
    return PosteriorOdds(1.0, NONE, against, beyond)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("against", "ratio"),
    [
        (0.5, "50 : 50"),
        (0.269, "74 : 26"),  # two digits of each side, and of how far it is from 50
        (0.3, "70 : 30"),
        (0.125, "88 : 12"),
        (0.0625, "93.8 : 6.2"),
        (0.00669, "99.34 : 0.66"),
        (0.475, "52.5 : 47.5"),
        (0.49565, "50.44 : 49.56"),
        (0.4995678, "50.044 : 49.956"),
        (0.0000123456, "99.9988 : 0.0012"),
        (0.00000123456, "99.99988 : 0.00012"),
        (0.5 - 1.2345e-8, "50.000002 : 49.999998"),  # six decimals at most
    ],
)
def test_odds_have_two_digits_that_matter_and_are_rounded_up(against: float, ratio: str) -> None:
    assert left(against).ratio == ratio
    assert left(against).words == f"someone who thought 50 : 50 can come to at most {ratio}"


@pytest.mark.nightly
@pytest.mark.parametrize("delta", [Fraction(1, 20), Fraction(1, 2), 1])
def test_with_a_delta_of_a_twentieth_every_outcome_may_be_excepted(delta: Fraction) -> None:
    found = odds(1, delta)
    assert found == PosteriorOdds(1.0, Fraction(delta), 0.0, float(20 * delta))
    assert odds(1, Fraction(49, 1000)).against > 0.2


@pytest.mark.nightly
def test_what_nothing_moves_is_even() -> None:
    assert odds(0) == PosteriorOdds(0.0, NONE, 0.5, 0.0)
    assert odds(0, Fraction(1, 100)).against < 0.48  # a δ moves
    assert 0.49 < odds(1e-30).against < 0.5
