"""Odds at every edge: where digits end, where certainty begins, which way numbers are rounded."""

from fractions import Fraction
from math import inf

import pytest
from mpmath import mp, mpf

from takifugu.errors import UnsoundRequest
from takifugu.session.guarantee import CERTAIN, MARGIN, PosteriorOdds, odds
from tests.raising import raises

pytestmark = pytest.mark.nightly

NONE = Fraction(0)


def left(against: float, beyond: float = 0.0) -> PosteriorOdds:
    return PosteriorOdds(1.0, NONE, against, beyond)


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


def test_certainty_begins_where_less_than_a_millionth_is_left() -> None:
    assert CERTAIN == 1e-6
    for small in (CERTAIN, CERTAIN / 2, 0.0):
        assert left(small).ratio == "100 : 0" and left(small).outcome == "can become certain"
    assert left(CERTAIN * 1.1).ratio == "99.99989 : 0.00011"


def test_what_is_excepted_is_told_if_there_is_any() -> None:
    assert left(0.3).outcome == "can come to at most 70 : 30"
    told = "can come to at most 70 : 30, except with probability at most 1e-5"
    assert left(0.3, 1e-5).outcome == told


@pytest.mark.parametrize("delta", [NONE, Fraction(1, 1000)])
@pytest.mark.parametrize("epsilon", [1e-9, 0.25, 1.0, 5.0, 690.0])
def test_odds_are_rounded_up_by_the_margin_of_each_operation(
    epsilon: float, delta: Fraction
) -> None:
    with mp.workdps(60):
        wide = mpf(epsilon) + (mp.log(mpf(10) / 9) if delta else 0)
        exact = 1 / (1 + mp.exp(wide))
        found = odds(epsilon, delta)
        short = float(1 - mpf(found.against) / exact)  # what the rounding gives away
        share = float(1 - exact) * float(mp.log(mpf(10) / 9)) if delta else 0.0
    rounding = 1e-15 + 2e-16 * epsilon
    assert abs(short - MARGIN * (1 + share)) <= rounding and MARGIN == 1e-12


def test_an_exponential_is_taken_as_long_as_it_is_a_float() -> None:
    assert 0 < odds(699.5).against < 1e-300
    assert odds(700).against == odds(700.5).against == odds(inf).against == 0.0


@pytest.mark.parametrize("delta", [Fraction(1, 20), Fraction(1, 2), 1])
def test_with_a_delta_of_a_twentieth_every_outcome_may_be_excepted(delta: Fraction) -> None:
    found = odds(1, delta)
    assert found == PosteriorOdds(1.0, Fraction(delta), 0.0, float(20 * delta))
    assert odds(1, Fraction(49, 1000)).against > 0.2


def test_what_nothing_moves_is_even() -> None:
    assert odds(0) == PosteriorOdds(0.0, NONE, 0.5, 0.0)
    assert odds(0, Fraction(1, 100)).against < 0.48  # a δ moves
    assert 0.49 < odds(1e-30).against < 0.5


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(-1e-300, 0), (1, Fraction(-1, 10**9)), (1, Fraction(10**9 + 1, 10**9))]
)
def test_what_is_hardly_no_loss_is_refused(epsilon: float, delta: Fraction) -> None:
    with raises(UnsoundRequest, field="epsilon"):
        odds(epsilon, delta)
