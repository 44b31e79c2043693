"""Declared linear queries: exact weights, the rows that are read, and what is refused."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from takifugu.costs.losses import Pure
from takifugu.declarations import Amount, Category, Declaration, InvalidQuery, Order, Source
from takifugu.errors import TooLarge
from takifugu.mechanisms import IntegerLaplace
from takifugu.session.plans import query_of
from takifugu.session.query.query import Aim
from takifugu.session.query.sums import WeightedSum, WeightedSumQuery
from takifugu.session.query_options import QueryOptions
from takifugu.tables import Engine, open_engine
from tests.raising import raises

HOURS, ZONES = (6, 12, 18, 23), ("a", "b")
LOADS = (0.0, 0.24, 0.26, 1.5, 9.0, -3.0)  # two are rounded, two are clamped
ROWS: list[dict[str, Any]] = [
    {"home": f"h{i % 3}", "step": i, "hour": HOURS[(i * i + i // 3) % 4], "zone": ZONES[i % 5 % 2],
     "kwh": LOADS[(i + i // 7) % 6]}
    for i in range(60)
]  # fmt: skip


@contextmanager
def meters(folder: Path, **changes: Any) -> Iterator[Engine]:
    lines = ["home,step,hour,zone,kwh"]
    lines += [",".join(str(value) for value in row.values()) for row in ROWS]
    (folder / "meters.csv").write_text("\n".join(lines) + "\n")
    parts: dict[str, Any] = {
        "low": Fraction(-1),
        "high": Fraction(2),
        "step": Fraction(1, 2),
        "hours": HOURS,
    } | changes
    declaration = Declaration(
        Source("csv", path=str(folder / "meters.csv")),
        "home",
        Order("step", "number"),
        (Amount("kwh", parts["low"], parts["high"], parts["step"], "refuse"),),
        (Category("hour", parts["hours"], "drop"), Category("zone", ZONES, "refuse")),
    )
    with open_engine(declaration, threads=1) as engine:
        yield engine


def made(
    engine: Engine,
    weights: Mapping[Any, Any],
    *,
    column: str = "kwh",
    by: str = "hour",
    **options: Any,
) -> WeightedSumQuery:
    found = query_of(
        QueryOptions("linear", query="load", epsilon=1, **options),
        engine.declaration,
        "kwh",
        {"load": WeightedSum(column, by, weights)},
    )
    assert isinstance(found, WeightedSumQuery)
    return found


def truth(weights: Mapping[int, Fraction], zone: str | None = None) -> Fraction:
    """The weighted sum of clamped and rounded numbers, row by row."""
    total = Fraction(0)
    for row in ROWS:
        if zone is None or row["zone"] == zone:
            held = min(max(Fraction(row["kwh"]), Fraction(-1)), Fraction(2))
            nearest = (held / Fraction(1, 2) + Fraction(1, 2)).__floor__() * Fraction(1, 2)
            total += weights.get(row["hour"], Fraction(0)) * nearest
    return total


weights_of = st.dictionaries(
    st.sampled_from(HOURS), st.fractions(-3, 3, max_denominator=12), min_size=1
).filter(lambda weights: any(weights.values()))


@pytest.mark.nightly
@settings(max_examples=25, deadline=None)
@given(weights=weights_of)
def test_an_answer_is_that_of_plain_fractions(
    tmp_path_factory: pytest.TempPathFactory, weights: dict[int, Fraction]
) -> None:
    with meters(tmp_path_factory.mktemp("meters")) as engine:
        query = made(engine, weights)
        unit = query.unit(engine)
        assert int(query.exact(engine)) * unit == truth(weights)
        written = {str(hour): str(weight) for hour, weight in weights.items()}
        assert made(engine, written) == query  # keys as TOML has them
        by_zone = query_of(
            QueryOptions("linear", query="load", by="zone", epsilon=1),
            engine.declaration,
            ("kwh",),
            {"load": WeightedSum("kwh", "hour", weights)},
        )
        assert [int(n) * unit for n in by_zone.exact(engine)] == [
            truth(weights, zone) for zone in ZONES
        ]
        read = {hour for hour, weight in weights.items() if weight}
        groups = query.rows.groups
        if len(read) == len(HOURS):
            assert groups is None
        else:
            assert groups is not None and groups.columns == ("hour",)
            assert {key for (key,) in groups.keys} == read


def test_noise_is_drawn_in_whole_units_and_told_in_those_of_the_answer(tmp_path: Path) -> None:
    with meters(tmp_path) as engine:
        query = made(engine, {6: "1/2", 12: "-3/4"})
        assert query.unit(engine) == Fraction(1, 8)  # half a step times a quarter
        assert query.sensitivity(engine.declaration).l1 == 3 * 6  # the width is six steps
        chosen = query.choose(engine, Aim(Pure("0.5")))
        noise = chosen.mechanism
        assert isinstance(noise, IntegerLaplace)
        assert noise.scale == pytest.approx(36)
        assert chosen.error["deviation"] == pytest.approx(36 * np.sqrt(2) / 8, rel=1e-3)
        table = query.table(noise, [8], engine)
        assert table.columns == ("estimate", "low", "high")
        assert table.raw is not None
        ((estimate, low, high),) = table.raw
        ((_, *ends),) = table.rows
        weights = {6: 0.5, 12: -0.75}
        found = [weights[row["hour"]] for row in ROWS if row["hour"] in weights]
        least = sum(min(-w, 2 * w) for w in found)
        most = sum(max(-w, 2 * w) for w in found)
        assert least < 1 < most and ends == [max(low, least), min(high, most)]
        assert (estimate, (high - low) / 2) == (1.0, pytest.approx(chosen.error["interval"]))
        body = query.body()
        assert body["weights"] == [[6, "1/2"], [12, "-3/4"], [18, "0"], [23, "0"]]
        assert (body["query"], body["weighted_by"], body["column"]) == ("load", "hour", "kwh")


def test_common_factors_of_weights_do_not_matter(tmp_path: Path) -> None:
    with meters(tmp_path) as engine:
        for one, other in (((2, -4), (1, -2)), (("1/6", "1/4"), (2, 3)), (("0.5", 0), (1, 0))):
            pair = [made(engine, dict(zip((6, 12), w, strict=True))) for w in (one, other)]
            assert pair[0].sensitivity(engine.declaration) == pair[1].sensitivity(
                engine.declaration
            )
            assert np.array_equal(pair[0].exact(engine), pair[1].exact(engine))


def test_rows_that_are_left_out_do_not_count_for_the_largest_weight(tmp_path: Path) -> None:
    with meters(tmp_path) as engine:
        weights = {6: 1, 12: 10, 18: 2}
        assert made(engine, weights).sensitivity(engine.declaration).l1 == 60
        few = made(engine, weights, where={"hour": [6, 18]})
        assert few.sensitivity(engine.declaration).l1 == 12
        assert few.rows.scope.where == {"hour": (6, 18)}
        assert int(few.exact(engine)) * few.unit(engine) == truth({6: Fraction(1), 18: Fraction(2)})
        some = made(engine, weights, where={"hour": [6, 23]})
        assert some.rows.scope.where == {"hour": (6,)}


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("weights", ("kwh", "hour", {})),
        ("weights", ("kwh", "hour", {6: 0, 12: "0"})),
        ("weights", ("kwh", "hour", [1, 2])),
        ("weights", ("kwh", "hour", {6: True})),
        ("weights", ("kwh", "hour", {1.5: 1})),
        ("column", (3, "hour", {6: 1})),
        ("by", ("kwh", "", {6: 1})),
    ],
)
def test_declarations_that_say_nothing_are_refused(field: str, arguments: Any) -> None:
    with raises(InvalidQuery, field=field):
        WeightedSum(*arguments)


def test_names_are_matched_with_those_of_the_table(tmp_path: Path) -> None:
    with meters(tmp_path) as engine:
        with raises(InvalidQuery, field="weights") as refused:
            made(engine, {6: 1, 7: 2})
        assert "7" in str(refused.value) and "23" in str(refused.value)  # both lists
        with raises(InvalidQuery, field="weights"):
            made(engine, {6: 1, "6": 2})
        with raises(InvalidQuery, field="weights by kwh"):
            made(engine, {6: 1}, by="kwh")
        with raises(InvalidQuery, field="by, hour"):
            query_of(
                QueryOptions("linear", query="load", by="hour", epsilon=1),
                engine.declaration,
                "kwh",
                {"load": WeightedSum("kwh", "hour", {6: 1})},
            )
        with raises(InvalidQuery, field="where, hour"):
            made(engine, {6: 1}, where={"hour": [12]})
        with raises(InvalidQuery, field="power"):
            made(engine, {6: 1}, column="power")
        for linear in ({}, {"other": WeightedSum("kwh", "hour", {6: 1})}):
            with raises(InvalidQuery, field="query"):
                query_of(
                    QueryOptions("linear", query="load", epsilon=1),
                    engine.declaration,
                    "kwh",
                    linear,
                )
    with meters(tmp_path, hours=None) as engine, raises(InvalidQuery, field="weights by hour"):
        made(engine, {6: 1})


def test_weights_of_too_many_digits_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    with meters(tmp_path) as engine, raises(TooLarge, field="weights"):
        made(engine, {6: 1, 12: Fraction(1, 10**13)})
    wide = {"low": Fraction(0), "high": Fraction(2**30), "step": Fraction(1)}
    with meters(tmp_path, **wide) as engine:
        query = made(engine, {6: 10**11, 12: 1})
        with raises(TooLarge, field="weights"):
            query.choose(engine, Aim(Pure(1)))


def test_clamping_may_undo_the_cancelling_of_signs() -> None:
    """Why declared unclamped queries are not used: 1.5 would be stated where 2.5 is lost.

    AR(1) with ρ = −1/2, means 0, 1000, 0; the first entry is 10 or 0, Laplace noise of scale 5 on
    the sum. An output far out has likelihood e^(sum/5), averaged here over the other two entries.
    """
    z = np.linspace(-8, 8, 801)
    weight = np.exp(-z * z / 2) / np.exp(-z * z / 2).sum()

    def lost(low: float, high: float) -> float:
        found = []
        for first in (10.0, 0.0):
            second = 1000 - 0.5 * first + np.sqrt(0.75) * z[:, None]
            third = -0.5 * (second - 1000) + np.sqrt(0.75) * z
            total = sum(np.clip(entry, low, high) for entry in (first, second, third))
            found.append(weight @ np.exp((total - 1000) / 5) @ weight)
        return float(np.log(found[0] / found[1]))

    assert lost(-9999, 9999) == pytest.approx(10 * (1 - 1 / 2 + 1 / 4) / 5, abs=1e-6)
    assert lost(-100, 100) == pytest.approx(10 * (1 + 1 / 4) / 5, abs=1e-6)
    assert lost(-100, 100) <= 10 * (1 + 1 / 2 + 1 / 4) / 5  # what is charged
