"""Quantiles by their definition: every candidate of every group, and the edges of grids."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from takifugu.costs.losses import Concentrated, Pure
from takifugu.declarations import InvalidQuery
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.mechanisms import Exponential, PermuteAndFlip
from takifugu.session.cells import rows_of
from takifugu.session.query import quantiles
from takifugu.session.query.quantiles import (
    MAX_CANDIDATES,
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
from takifugu.tables import open_engine
from tests.raising import raises
from tests.session.world import WEIGHT, declaration

pytestmark = pytest.mark.nightly

ROWS = [
    ("Ann", 0, "a", "home", 0.5),
    ("Ann", 1, "a", "ward", 2.0),
    ("Ann", 2, "b", "ward", 9.0),  # counts as 4
    ("Ann", 3, "b", "home", 1.0),
    ("Bea", 0, "b", "home", 3.0),
    ("Bea", 1, "a", "home", 0.0),
    ("Bea", 2, "a", "home", 0.5),
    ("Bea", 3, "a", "home", 0.5),
]
LEVELS = [Fraction(1, 2), Fraction(1, 4), Fraction(2, 3), Fraction(1, 100), Fraction(99, 100)]


def distance(values: list[Fraction], candidate: int, level: Fraction) -> Fraction:
    """How many values would have to change side for a candidate to be an exact quantile.

    By its words: a share ``level`` of the values is at or below it, one of 1 − ``level`` not below.
    """
    below = sum(value < candidate for value in values)
    upto = sum(value <= candidate for value in values)
    target = level * len(values)
    return max(below - target, target - upto, Fraction(0))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("every", [1, 2, 3, 8])
def test_scores_are_minus_the_distance_in_rank(tmp_path: Path, level: Fraction, every: int) -> None:
    declared = declaration(tmp_path, ROWS, protected=(WEIGHT,))
    query = QuantileQuery("weight", ("zone",), rows_of(declared, None, None), level, every)
    query.check(declared)
    cells = 8 // every + 1
    with open_engine(declared, threads=1) as engine:
        found = query.exact(engine)
        assert query.cells_of_a_group(engine) == cells and query.sizes(engine) == [5, 3]
    for group, zone in enumerate("ab"):
        values = [
            Fraction(int(min(Fraction(row[4]), Fraction(4)) / WEIGHT.step) // every)
            for row in ROWS
            if row[2] == zone
        ]
        wanted = [-distance(values, cell, level) * level.denominator for cell in range(cells)]
        assert found[group].tolist() == wanted and max(wanted) == 0
    assert query.candidates(declared) == [every * cell / 2 for cell in range(cells)]
    moves = query.sensitivity(declared)
    q = level.denominator
    assert (moves.linf, moves.l1, moves.l2_squared) == (q, cells * q, cells * q * q)
    assert query.body()["level"] == str(level) and query.body()["every"] == every


def asked(folder: Path, **options: Any) -> QuantileQuery:
    declared = declaration(folder, protected=(WEIGHT,))
    given = QueryOptions("quantile", epsilon=1, **options)
    return QuantileQuery.of(given, declared, ("weight",), rows_of(declared, None, None))


def test_a_grid_is_a_whole_number_of_steps(tmp_path: Path) -> None:
    assert asked(tmp_path, level="0.5").every == 1
    for grid, every in (("0.5", 1), (1, 2), ("1.5", 3), (4, 8)):
        assert asked(tmp_path, level="0.5", grid=grid).every == every
    for grid in ("0.25", "0.75", "1.1", "0.4999"):
        with raises(InvalidQuery, field="grid"):
            asked(tmp_path, level="0.5", grid=grid)


@pytest.mark.parametrize(
    ("level", "found"),
    [
        ("1/3", Fraction(333333, 10**6)),
        ("2/3", Fraction(666667, 10**6)),
        ("0.9999994", Fraction(999999, 10**6)),
        ("0.123456", Fraction("0.123456")),
        ("0.0000006", Fraction(1, 10**6)),
    ],
)
def test_a_level_is_rounded_to_six_digits(tmp_path: Path, level: str, found: Fraction) -> None:
    assert asked(tmp_path, level=Fraction(level)).level == found


def test_the_finest_grid_and_the_coarsest(tmp_path: Path) -> None:
    rows = rows_of(declaration(tmp_path), None, None)
    query = QuantileQuery("weight", (), rows)

    def of(cells: int) -> Any:
        step = Fraction(4, cells - 1)
        return declaration(tmp_path, protected=(replace(WEIGHT, step=step),))

    query.check(of(MAX_CANDIDATES))
    with raises(TooLarge, field="grid", size=MAX_CANDIDATES + 1, limit=MAX_CANDIDATES):
        query.check(of(MAX_CANDIDATES + 1))
    for cells in (MAX_CANDIDATES + 1, 2 * MAX_CANDIDATES, 2 * MAX_CANDIDATES + 1):
        with raises(TooLarge, field="grid") as caught:
            query.check(of(cells))
        told = Fraction(str(caught.value).rpartition("at least ")[2])
        every = round(told / Fraction(4, cells - 1))
        replace(query, every=every).check(of(cells))  # what is advised is enough
        with raises(TooLarge, field="grid"):
            replace(query, every=every - 1).check(of(cells))  # and no less is
    replace(query, every=8).check(declaration(tmp_path, protected=(WEIGHT,)))  # two cells
    with raises(InvalidQuery, field="grid"):
        replace(query, every=9).check(declaration(tmp_path, protected=(WEIGHT,)))
    for level in (0, 1):
        with raises(InvalidQuery, field="level"):
            replace(query, level=Fraction(level)).check(declaration(tmp_path, protected=(WEIGHT,)))


def test_scores_stay_within_whole_numbers_of_64_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = declaration(tmp_path, ROWS, protected=(WEIGHT,))
    query = QuantileQuery("weight", (), rows_of(declared, None, None), Fraction(1, 10))
    with open_engine(declared, threads=1) as engine:
        monkeypatch.setattr(quantiles, "MAX_COUNT", 80)  # 8 rows, in tenths
        assert query.sizes(engine) == [8]
        monkeypatch.setattr(quantiles, "MAX_COUNT", 79)
        with raises(TooLarge, field="level"):
            query.sizes(engine)


# --- how far from the requested rank ---


def exactly_beyond(kind: str, cells: int, noise: float) -> Decimal:
    """Both formulas with fifty digits: one candidate at 0, all others just beyond."""
    with localcontext() as context:
        context.prec = 60
        r = (-Decimal(noise)).exp()
        if kind == "exponential":
            return (cells - 1) * r / (1 + (cells - 1) * r)
        return 1 - (1 - (1 - r) ** cells) / (cells * r)


@pytest.mark.parametrize("cells", [2, 3, 100, 65_536])
@pytest.mark.parametrize("noise", [1e-9, 0.1, 1.0, 5.0, 20.0, 36.0])
def test_the_probability_beyond_is_the_formula(cells: int, noise: float) -> None:
    for kind, found in (
        ("flips", flips_beyond(cells, noise)),
        ("exponential", exponential_beyond(cells, noise)),
    ):
        exact = float(exactly_beyond(kind, cells, noise))
        assert found == pytest.approx(exact, rel=1e-6, abs=1e-14)


def test_the_probability_beyond_at_both_ends() -> None:
    for cells in (2, 5):
        assert flips_beyond(cells, 0.0) == pytest.approx(1 - 1 / cells, abs=1e-15)
        assert exponential_beyond(cells, 0.0) == pytest.approx(1 - 1 / cells, abs=1e-15)
    assert flips_beyond(2, 800.0) == 0.0 == exponential_beyond(2, 800.0)
    assert 0.0 <= flips_beyond(2, 40.0) < 1e-15


@pytest.mark.parametrize("beyond", [flips_beyond, exponential_beyond])
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.9, 0.999999])
def test_the_distance_is_the_least_that_holds(beyond: Any, confidence: float) -> None:
    for cells in (2, 3, 1000):
        found = reach(beyond, cells, confidence)
        assert beyond(cells, found) <= 1 - confidence
        if found > 1e-6:
            assert beyond(cells, found * (1 - 1e-8)) > 1 - confidence


def test_no_noise_is_certain() -> None:
    with raises(UnsoundRequest, field="confidence"):
        reach(exponential_beyond, 5, 1.0)
    with pytest.raises(UnsoundRequest):
        reach(lambda *_: 0.5, 5, 0.9)  # one that never gets nearer
    assert reach(lambda _, far: 0.5 if far < 4000 else 0.0, 5, 0.9) == pytest.approx(4000)


def test_ranks_are_noise_in_units_of_a_rank() -> None:
    for cells in (2, 50):
        flips = PermuteAndFlip(6.0, 1, 3)
        assert ranks_of(flips, cells, 0.9) == pytest.approx(2 * reach(flips_beyond, cells, 0.9))
        smooth = Exponential(6.0, 1, 3, currency="concentrated")
        assert ranks_of(smooth, cells, 0.9) == pytest.approx(
            2 * reach(exponential_beyond, cells, 0.9)
        )


@pytest.mark.parametrize("moves", [1, 2, 10])
@pytest.mark.parametrize("allowed", ["0.001", "0.02", "3"])
def test_a_pick_within_a_loss_loses_no_more_and_hardly_less(moves: int, allowed: str) -> None:
    rho = picker(Concentrated(allowed), moves)
    assert isinstance(rho, Exponential) and isinstance(rho.loss, Concentrated)
    assert Fraction(allowed) * Fraction(999_999, 10**6) < rho.loss.rho <= Fraction(allowed)
    pure = picker(Pure(allowed), moves)
    assert isinstance(pure, PermuteAndFlip) and isinstance(pure.loss, Pure)
    assert Fraction(allowed) * Fraction(999_999, 10**6) < pure.loss.epsilon <= Fraction(allowed)
    with pytest.raises(UnsoundRequest):
        picker(Concentrated(0), moves)


@pytest.mark.parametrize("concentrated", [False, True])
def test_a_pick_within_a_rank_is_within_it_and_hardly_nearer(concentrated: bool) -> None:
    for ranks, moves in (("0.5", 1), (7, 10), ("1e-6", 3)):
        made = picker_within(ranks, 0.9, 100, moves, concentrated=concentrated)
        assert isinstance(made, Exponential if concentrated else PermuteAndFlip)
        wanted = float(Fraction(ranks))
        assert wanted * (1 - 1e-9) <= ranks_of(made, 100, 0.9) <= wanted
    for wrong in (0, -1):
        with pytest.raises(UnsoundRequest):
            picker_within(wrong, 0.9, 100, 1, concentrated=concentrated)


def test_levels_between_which_an_answer_lies() -> None:
    assert levels(Fraction(1, 2), 25.0, 100) == (0.25, 0.75)
    assert levels(Fraction(1, 4), 50.0, 100) == (0.0, 0.75)
    assert levels(Fraction(3, 4), 50.0, 100) == (0.25, 1.0)
    assert levels(Fraction(1, 2), 1.0, 0) == (0.0, 1.0)
    assert levels(Fraction(1, 3), 0.0, 1)[1] >= Fraction(1, 3)
    assert not np.isnan(levels(Fraction(1, 3), math.inf, 3)).any()
