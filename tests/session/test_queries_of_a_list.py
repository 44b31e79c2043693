"""Every kind of query on a table of seven rows, by hand: its cells, its answer, what it may be."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from takifugu.costs.losses import Concentrated, Pure
from takifugu.declarations import InvalidQuery
from takifugu.errors import TooLarge
from takifugu.mechanisms import Bounds, IntegerGaussian, IntegerLaplace
from takifugu.session.possible_answers import CUT, SUM_TO_ONE
from takifugu.session.query import query as queries
from takifugu.session.query.counts import (
    CountQuery,
    CountsQuery,
    HistogramQuery,
    MarginalsQuery,
    ProportionsQuery,
)
from takifugu.session.query.quantiles import QuantileQuery
from takifugu.session.query.query import Aim, filled_groups, shape
from takifugu.session.query.sums import MeanQuery, SumQuery, WeightedSum, WeightedSumQuery
from takifugu.session.query.top_k import TopKQuery
from takifugu.session.query.transitions import TransitionsQuery
from tests.raising import raises
from tests.session.plain_engine import (
    DECLARED,
    ENGINE,
    FLOORS,
    ROWS,
    STATES,
    WEIGHT,
    PlainEngine,
    rows,
)

pytestmark = pytest.mark.nightly

AB = rows({"zone": ("b", "a")})
LOAD = WeightedSum("weight", "zone", {"a": "1/2", "b": -2})
EMPTY = rows(window=(9, None))
HISTOGRAM = HistogramQuery("state", ("zone",), AB, sum_to_one=True)
PAIRS = HistogramQuery("state", (), rows(), beside=("mood",))
COUNT = CountQuery("state", ("zone",), AB, ("ward", "home"))
COUNTS = CountsQuery("state", ("zone",), AB, ("ward", "home"))
SHARES = ProportionsQuery("state", ("zone",), rows(), sum_to_one=True)
MARGINALS = MarginalsQuery("state", ("zone",), AB, beside=("mood",))
STEPS = TransitionsQuery("state", (), rows())
STEPS_BY = TransitionsQuery("state", ("zone",), rows(window=(1, None)))
SUM = SumQuery("weight", ("zone",), rows())
MEAN = MeanQuery("weight", ("zone",), rows())
LINEAR = WeightedSumQuery("weight", ("floor",), rows()).declared("load", LOAD, DECLARED)
LINEAR_AT = WeightedSumQuery("weight", ("floor",), rows({"floor": (2,)})).declared(
    "load", LOAD, DECLARED
)
QUANTILE = QuantileQuery("weight", ("zone",), rows(), Fraction(1, 3), 2)
TOP = TopKQuery("state", ("zone",), AB, 2, ("home",))
ABC = ("zone", ("a", "b", "c"))
BOTH = ("zone", ("a", "b"))  # in the order of the declaration
PER_ROW = [5] * 3 + [2] * 3 + [0] * 3
# the query, its axes, cells of a group, numbers of a group and groups, (l1, l2², l∞), the answer
FACTS: list[tuple[Any, Any, int, tuple[int, int], tuple[int, int, int], Any]] = [
    (HISTOGRAM, (BOTH, ("state", STATES)), 3, (3, 2), (2, 2, 1), [[2, 3, 0], [0, 0, 2]]),
    (
        PAIRS,
        (("state", STATES), ("mood", ("low", "high"))),
        6,
        (6, 1),
        (2, 2, 1),
        [[2, 0], [2, 1], [1, 1]],
    ),
    (COUNT, (BOTH,), 3, (1, 2), (1, 1, 1), [5, 0]),
    (COUNTS, (BOTH, ("state", ("home", "ward"))), 3, (2, 2), (2, 2, 1), [[2, 3], [0, 0]]),
    (SHARES, (ABC, ("state", STATES)), 3, (3, 3), (2, 2, 1), [[2, 3, 0], [0, 0, 2], [0, 0, 0]]),
    (
        MARGINALS,
        (BOTH, ("label", (0, 1, 2, 3, 4))),
        5,
        (5, 2),
        (4, 4, 1),
        [[2, 3, 0, 4, 1], [0, 0, 2, 1, 1]],
    ),
    (
        STEPS,
        (("state before", STATES), ("state after", STATES)),
        9,
        (9, 1),
        (4, 6, 2),
        [[0, 1, 0], [1, 1, 0], [0, 0, 1]],
    ),
    (SUM, (ABC,), 1, (1, 3), (10, 100, 10), [14, 6, 0]),
    (MEAN, (ABC,), 1, (1, 3), (10, 100, 10), [14, 6, 0]),
    (LINEAR, (("floor", FLOORS),), 3, (1, 2), (40, 1600, 40), [-11, 1]),
    (LINEAR_AT, (("floor", (2,)),), 3, (1, 1), (40, 1600, 40), [1]),
    (
        QUANTILE,
        (ABC,),
        6,
        (1, 3),
        (18, 54, 3),
        [[-2, 0, -1, -4, -7, -7], [-2, 0, -1, -1, -1, -4], [0] * 6],
    ),
    (TOP, (BOTH, ("state", ("ward", "clinic"))), 3, (2, 2), (2, 2, 1), [[3, 0], [0, 2]]),
]


@pytest.mark.parametrize(("query", "axes", "cells", "size", "moves", "answer"), FACTS)
def test_a_query_has_its_axes_its_sensitivity_and_its_answer(
    query: Any, axes: Any, cells: int, size: Any, moves: Any, answer: Any
) -> None:
    assert query.axes(ENGINE) == axes and query.groups(ENGINE) == axes[: len(query.by)]
    assert query.cells_of_a_group(ENGINE) == cells and shape(query, ENGINE) == size
    found = query.sensitivity(DECLARED)
    assert (found.l1, found.l2_squared, found.linf) == moves
    assert query.exact(ENGINE).tolist() == answer
    query.check(DECLARED)


@pytest.mark.parametrize(
    ("query", "unit", "numerator", "below", "least", "most"),
    [
        (HISTOGRAM, 1, 1, None, [0] * 6, [5] * 3 + [2] * 3),
        (PAIRS, 1, 1, None, [0] * 6, [7] * 6),
        (COUNT, 1, 1, None, [0, 0], [5, 2]),
        (SHARES, Fraction(1, 2), 1, PER_ROW, [0] * 9, PER_ROW),
        (STEPS, 1, 1, None, [0] * 9, [4] * 9),  # 7 rows of 3 people
        (STEPS_BY, 1, 1, None, [0] * 27, [2] * 9 + [0] * 18),
        (SUM, Fraction(1, 2), 1, [2, 2, 2], [-10, -4, 0], [40, 16, 0]),
        (MEAN, Fraction(1, 4), 1, [10, 4, 0], [-10, -4, 0], [40, 16, 0]),
        (LINEAR, Fraction(1, 4), 1, [4, 4], [-38, -36], [32, 24]),
        (LINEAR_AT, Fraction(1, 4), 1, [4], [-36], [24]),
    ],
)  # fmt: skip
def test_numbers_have_units_and_ranges(
    query: Any, unit: Any, numerator: int, below: Any, least: Any, most: Any
) -> None:
    assert query.unit(ENGINE) == unit
    units = query.units(ENGINE)
    assert (units.numerator, units.denominators) == (numerator, below)
    assert query.ranges(ENGINE) == (least, most)


def test_a_body_tells_queries_apart() -> None:
    assert HISTOGRAM.body() == {"name": "histogram", "column": "state", "by": ["zone"]}
    assert PAIRS.body() == {"name": "histogram", "column": ["state", "mood"], "by": []}
    assert COUNT.body()["values"] == ["home", "ward"]
    assert QUANTILE.body() | {"level": "1/3", "every": 2} == QUANTILE.body()
    assert LINEAR.body()["weights"] == [["a", "1/2"], ["b", "-2"], ["c", "0"]]
    assert LINEAR.body()["query"] == "load" and LINEAR.body()["weighted_by"] == "zone"
    assert TOP.body()["k"] == 2 and TOP.body()["leave_out"] == ["home"]
    assert "leave_out" not in TopKQuery("state", (), rows(), 2).body()


@pytest.mark.parametrize(
    ("query", "each"),
    [
        (PAIRS, "number"),
        (SUM, "number (one unit of noise is 0.5)"),
        (MEAN, "number (one unit of noise is 0.25)"),
        (LINEAR, "number (one unit of noise is 0.25)"),
    ],
)
def test_noise_is_chosen_in_the_unit_of_the_answer(query: Any, each: str) -> None:
    unit, moves = float(query.unit(ENGINE)), query.sensitivity(DECLARED)
    once = "" if query.by == () else " The "
    for aim, noise in (
        (Aim(Pure(1)), IntegerLaplace(float(moves.l1), moves)),
        (Aim(Concentrated(Fraction(1, 8)), 1e-6), IntegerGaussian(2 * moves.l2, moves)),
    ):
        found = query.choose(ENGINE, aim)
        assert query.noise(found.mechanism).scale == pytest.approx(noise.scale, rel=1e-9)
        assert query.noise(found.mechanism).sensitivity == moves
        assert found.error["deviation"] == pytest.approx(noise.error().deviation * unit, rel=1e-9)
        assert found.error["interval"] == noise.error().interval * unit
        kind = "Laplace" if aim.delta is None else "Gaussian"
        loss = "ε = 1" if aim.delta is None else "ρ = 0.125"
        begin = f"mechanism: integer {kind} noise with a standard deviation of"
        assert found.reason.startswith(f"{begin} {found.error['deviation']:.4g} on each {each};")
        assert f"; a per-entry DP loss of {loss}.{once}" in found.reason


def test_noise_of_an_earlier_release_is_that_of_its_scale() -> None:
    found = SUM.chosen_before(7.0, ENGINE)
    assert SUM.noise(found.mechanism) == IntegerLaplace(7.0, SUM.sensitivity(DECLARED))
    assert ", as it was released before; a per-entry" in found.reason
    assert PAIRS.chosen_earlier(ENGINE, Aim(Pure(1))) == ()


def test_a_table_has_keys_numbers_and_intervals_that_are_possible() -> None:
    noise = IntegerLaplace(1.0)
    half = int(noise.error().interval)
    assert half == 3
    found = HISTOGRAM.tabulated(noise, [2, 9, -4, 0, 1, 1], ENGINE, {})
    assert found.columns == ("zone", "state", "estimate", "low", "high")
    assert found.raw is not None and found.notes == (CUT, SUM_TO_ONE)
    assert found.raw[1] == ("a", "ward", 9, 6, 12) and found.raw[5] == ("b", "clinic", 1, -2, 4)
    assert [row[:2] for row in found.rows[:4]] == [
        ("a", "home"),
        ("a", "ward"),
        ("a", "clinic"),
        ("b", "home"),
    ]
    assert sum(row[2] for row in found.rows[:3]) == 5 and sum(r[2] for r in found.rows[3:]) == 2
    plain = PAIRS.tabulated(noise, [2, 9, -4, 0, 1, 1], ENGINE, {})
    assert plain.notes == (CUT,) and plain.rows[1] == ("home", "high", 7, 4, 7)
    assert plain.rows[2] == ("ward", "low", 0, 0, 3)
    named = MARGINALS.tabulated(noise, [2, 3, 0, 4, 1, 0, 0, 2, 1, 9], ENGINE, {})
    assert named.columns == ("zone", "column", "label", "estimate", "low", "high")
    assert named.rows[3] == ("a", "mood", "low", 4, 1, 5) and named.raw is not None
    assert named.raw[9] == ("b", "mood", "high", 9, 6, 12) and named.rows[9][3] == 2


def test_a_group_without_rows_has_no_share_and_no_mean() -> None:
    noise = IntegerLaplace(1.0)
    shares = SHARES.tabulated(noise, [1, 1, 1, 1, 1, 1, 7, 7, 7], ENGINE, {})
    assert shares.rows[6] == ("c", "home", None, None, None)
    assert SHARES.drawn([1, 1, 1, 1, 1, 1, 7, 7, 7], ENGINE) == [1] * 6 + [None] * 3
    mean = MEAN.choose(ENGINE, Aim(Pure(1))).mechanism
    found = MEAN.tabulated(mean, [1.5, 2.0, None], ENGINE, {})
    assert found.rows[2] == ("c", None, None, None) and found.rows[0][1] == 1.5
    assert MEAN.drawn([1.5, 2.0, 3.0], ENGINE) == [15, 8, None]
    assert SUM.drawn([1.5, -2.0, 0.0], ENGINE) == [3, -4, 0]
    assert filled_groups(MEAN, ENGINE) == [5, 2]
    with raises(InvalidQuery, field="window", given="holds no rows"):
        filled_groups(SumQuery("weight", (), EMPTY), ENGINE)


def test_a_query_of_too_many_numbers_or_no_groups_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queries, "MOST_CELLS", 9)
    assert shape(HISTOGRAM, ENGINE) == (3, 2)  # 3 × 3 are counted
    monkeypatch.setattr(queries, "MOST_CELLS", 8)
    with raises(TooLarge, field="by", size=9, limit=8):
        shape(HISTOGRAM, ENGINE)
    with raises(TooLarge, field="column", size=9, limit=8):
        shape(STEPS, ENGINE)

    class Keyless(PlainEngine):
        def keys(self, name: str) -> tuple[Any, ...]:
            return () if name == "zone" else super().keys(name)

    nobody: Any = Keyless(DECLARED, ROWS)
    with raises(InvalidQuery, field="by", given="has no keys"):
        shape(HISTOGRAM, nobody)


@pytest.mark.parametrize(
    ("low", "high", "dropped"), [(2, 5, (0, 5)), (-5, -2, (-5, 0)), (-1, 4, (-1, 4))]
)
def test_a_value_that_is_dropped_adds_nothing(
    low: int, high: int, dropped: tuple[int, int]
) -> None:
    weight = replace(WEIGHT, low=Fraction(low), high=Fraction(high))
    away = replace(weight, missing="drop")
    for one, ends in ((weight, (low, high)), (away, dropped)):
        found = SUM.bounds(replace(DECLARED, protected=(one,)))
        assert found == Bounds(*ends, Fraction(1, 2))
