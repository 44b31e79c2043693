"""Quantiles at the edges: how far an answer may be, which noise is taken, what is no quantile."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest
from mpmath import mp, mpf

from takifugu.engines import InvalidQuery
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.losses import Concentrated, Pure
from takifugu.mechanisms import Exponential, PermuteAndFlip
from takifugu.session.query import quantiles
from takifugu.session.query.quantiles import (
    FINEST,
    MOST_CANDIDATES,
    QuantileQuery,
    exponential_beyond,
    flips_beyond,
    levels,
    picker,
    picker_within,
    ranks_of,
    reach,
)
from takifugu.session.query_options import QueryOptions
from tests.raising import raises
from tests.session.plain_engine import DECLARED, ENGINE, rows

pytestmark = pytest.mark.nightly

QUANTILE = QuantileQuery("weight", ("zone",), rows(), Fraction(1, 3), 2)


@pytest.mark.parametrize("cells", [2, 3, 50, MOST_CANDIDATES])
@pytest.mark.parametrize("distance", [1e-6, 0.5, 1.0, 3.0, 12.0])
def test_the_chance_of_being_beyond_has_its_closed_form(cells: int, distance: float) -> None:
    with mp.workdps(60):
        r = mp.exp(-mpf(distance))
        flips = 1 - (1 - (1 - r) ** cells) / (cells * r)
        others = (cells - 1) * r
        exponential = others / (1 + others)
    assert flips_beyond(cells, distance) == pytest.approx(float(flips), rel=1e-9, abs=1e-14)
    assert exponential_beyond(cells, distance) == pytest.approx(float(exponential), rel=1e-12)


def test_at_no_distance_one_in_all_is_hit_and_far_away_none_is_missed() -> None:
    assert flips_beyond(4, 0.0) == 0.75 == exponential_beyond(4, 0.0)
    assert flips_beyond(4, 1e4) == 0.0 == exponential_beyond(4, 1e4)


@pytest.mark.parametrize("beyond", [flips_beyond, exponential_beyond])
@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.95, 0.999999])
@pytest.mark.parametrize("cells", [2, 1000])
def test_the_least_reach_is_found_from_above(beyond: Any, confidence: float, cells: int) -> None:
    found = reach(beyond, cells, confidence)
    assert beyond(cells, found) <= 1 - confidence
    assert beyond(cells, found * (1 - 2e-9)) > 1 - confidence or found < 1e-8


def test_a_reach_is_searched_for_up_to_a_limit() -> None:
    def step(at: float) -> Any:
        return lambda _, distance: 1.0 if distance < at else 0.0

    assert reach(step(4096), 2, 0.5) == pytest.approx(4096, rel=2e-9)
    assert reach(step(0.75), 2, 0.5) == pytest.approx(0.75, rel=2e-9)
    with raises(UnsoundRequest):
        reach(step(4097), 2, 0.5)


@pytest.mark.parametrize(
    ("level", "ranks", "size", "ends"),
    [
        (Fraction(1, 2), 1.25, 5, (0.25, 0.75)),
        (Fraction(1, 4), 2.0, 4, (0.0, 0.75)),
        (Fraction(3, 4), 2.0, 4, (0.25, 1.0)),
        (Fraction(1, 2), 2.0, 0, (0.0, 1.0)),
    ],
)
def test_levels_are_so_many_ranks_away_and_between_0_and_1(
    level: Fraction, ranks: float, size: int, ends: tuple[float, float]
) -> None:
    assert levels(level, ranks, size) == ends


@pytest.mark.parametrize("moves", [1, 3])
def test_the_noise_is_the_least_within_a_loss(moves: int) -> None:
    assert picker(Pure(Fraction(1, 2)), moves) == PermuteAndFlip.within(
        Fraction(1, 2), sensitivity=moves
    )
    found = picker(Concentrated(Fraction(1, 8)), moves)
    assert isinstance(found, Exponential) and found.sensitivity == moves
    assert found.concentrated.rho <= Fraction(1, 8)
    assert found.scale == pytest.approx(moves / sqrt(2 / 8), rel=1e-9)
    assert found.loss == found.concentrated
    with raises(UnsoundRequest):
        picker(Concentrated(Fraction(0)), moves)


@pytest.mark.parametrize("concentrated", [True, False])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_noise_is_the_most_that_stays_within_ranks(
    concentrated: bool, confidence: float
) -> None:
    found = picker_within("2.5", confidence, 40, 3, concentrated=concentrated)
    assert isinstance(found, Exponential if concentrated else PermuteAndFlip)
    assert found.sensitivity == 3 and isinstance(found.loss, Concentrated) == concentrated
    within = ranks_of(found, 40, confidence)
    assert 2.5 * (1 - 1e-11) < within <= 2.5
    beyond = exponential_beyond if concentrated else flips_beyond
    assert within == reach(beyond, 40, confidence) * found.scale / 3
    assert ranks_of(found, 40) == ranks_of(found, 40, 0.95)
    for wrong in (0, -1):
        with raises(UnsoundRequest):
            picker_within(wrong, confidence, 40, 3, concentrated=concentrated)


@pytest.mark.parametrize("level", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2)])
def test_a_level_is_between_0_and_1(level: Fraction) -> None:
    replace(QUANTILE, level=Fraction(1, FINEST)).check(DECLARED)
    replace(QUANTILE, level=1 - Fraction(1, FINEST)).check(DECLARED)
    with raises(InvalidQuery, field="level"):
        replace(QUANTILE, level=level).check(DECLARED)


def test_a_grid_has_two_cells_or_more_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    replace(QUANTILE, every=10).check(DECLARED)  # of eleven numbers the first and the last
    with raises(InvalidQuery, field="grid"):
        replace(QUANTILE, every=11).check(DECLARED)
    fine = replace(QUANTILE, every=1)
    monkeypatch.setattr(quantiles, "MOST_CANDIDATES", 11)
    fine.check(DECLARED)
    monkeypatch.setattr(quantiles, "MOST_CANDIDATES", 10)
    with raises(TooLarge, field="grid", size=11, limit=10) as caught:
        fine.check(DECLARED)
    step = DECLARED.amount("weight").step
    assert str(caught.value).endswith(f"at least {float(2 * step):g}")  # six cells then


def test_scores_stay_within_whole_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = QUANTILE.sizes(ENGINE)
    assert sizes == [5, 2, 0]
    monkeypatch.setattr(quantiles, "LARGEST", 21)  # seven rows, in thirds of a rank
    assert QUANTILE.sizes(ENGINE) == sizes
    monkeypatch.setattr(quantiles, "LARGEST", 20)
    with raises(TooLarge, field="level"):
        QUANTILE.sizes(ENGINE)


def test_options_give_a_level_of_six_digits_and_a_grid_of_whole_steps() -> None:
    step = DECLARED.amount("weight").step

    def made(**how: Any) -> QuantileQuery:
        options = QueryOptions("quantile", epsilon=1, **how)
        return QuantileQuery.of(options, DECLARED, ("weight",), rows())

    assert made(level=Fraction(1, 3)).level == Fraction(333_333, 10**6)
    assert (made(level="0.5").every, made(level="0.5").level) == (1, Fraction(1, 2))
    assert made(level="0.5", grid=step).every == 1 and made(level="0.5", grid=3 * step).every == 3
    for wrong in (step / 2, 3 * step / 2, Fraction(0), -step):
        with raises(InvalidQuery, field="grid"):
            made(level="0.5", grid=wrong)
