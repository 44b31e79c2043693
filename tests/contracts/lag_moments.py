"""What every engine must count for a fit of numbers, held to plain loops over the rows."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from takifugu.declarations import Amount, InvalidDeclaration, InvalidQuery, Order
from takifugu.fitting.goodness import goodness
from takifugu.fitting.lag_moments import LagMoments, lag_moments
from takifugu.tables import Engine, Scope
from tests.contracts.engines import LANDS, Store, Stored, opened
from tests.oracles import lag_covariances, likelihood_ratio
from tests.raising import raises

FIRST = datetime(2024, 3, 1)
BOUNDS, STEP = (Fraction(-2), Fraction(3)), Fraction(1, 8)
WEIGHT = Amount("weight", *BOUNDS, STEP, "refuse")


def numbers() -> list[dict[str, Any]]:
    """Hourly numbers of four people, some beyond the bounds, out of order in the table."""
    found = []
    for i in range(240):
        person, hour = ("Ann", "Bea", "Čeněk", "Ann")[i * 7 % 4], i
        at = FIRST + timedelta(hours=hour)
        wave = math.sin(i / 5) + 0.7 * math.sin(i * i) + (0.5 if person == "Bea" else 0.0)
        found.append(
            {
                "person": person,
                "at": at,
                "instant": at.replace(tzinfo=UTC),
                "unix": int(at.replace(tzinfo=UTC).timestamp()),
                "row": i,
                "label": "home",
                "code": 1,
                "home land": LANDS[(i // 3) % 2],
                "visits": round(10 * wave),
                "weight": (wave * 1.9, math.inf)[i == 77],
                "hidden": "undeclared",
            }
        )
    return found[100:] + found[:100]


@pytest.fixture(scope="module")
def readings(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return store("readings", numbers(), tmp_path_factory.mktemp("readings"))


def reopened(readings: Stored, column: str = "at", amount: Amount = WEIGHT) -> Engine:
    kind = {"at": "time", "instant": "time", "unix": "unix", "row": "number"}[column]
    zone = None if kind == "number" else "UTC"
    return opened(readings, order=Order(column, kind, zone=zone), protected=(amount,))  # type: ignore[arg-type]


def refer(
    table: list[dict[str, Any]], found: LagMoments, value: str, *, profile: str | None, own: bool
) -> None:
    paths = lag_covariances.left_over(
        table, value=value, entity="person", order=("at",), bounds=(found.amount.low,
        found.amount.high), step=found.amount.step, profile=profile, own=own,
    )  # fmt: skip
    near = float(found.amount.step) ** 2 / 500  # means are points of a grid
    assert found.rows == len(table) and found.entities == len(paths)
    for lag in range(found.longest + 1):
        count, covariance = lag_covariances.covariance(paths, lag)
        assert found.products[lag] == count
        if lag == 0:
            covariance -= float(found.amount.step) ** 2 / 12
        assert found.covariances[lag] == pytest.approx(covariance, abs=near)
    skewness, kurtosis = lag_covariances.moments(paths)
    assert found.skewness == pytest.approx(skewness, abs=0.01)
    assert found.kurtosis == pytest.approx(kurtosis, abs=0.01)


@pytest.mark.parametrize("profile", [None, "home land"])
@pytest.mark.parametrize("own", [False, True])
def test_moments_are_those_of_plain_loops(readings: Stored, profile: str | None, own: bool) -> None:
    with reopened(readings) as engine:
        found = lag_moments(engine, "weight", lags=7, profile=profile, own=own)
    refer(numbers(), found, "weight", profile=profile, own=own)
    low, high = found.at_bounds
    held = [lag_covariances.rounded(row["weight"], *BOUNDS, STEP) for row in numbers()]
    assert (low, high) == (held.count(BOUNDS[0]), held.count(BOUNDS[1])) and low and high
    assert found.spacing is not None and found.spacing[0] >= 3600


def test_whole_numbers_and_every_kind_of_order_count_alike(readings: Stored) -> None:
    visits = Amount("visits", Fraction(-12), Fraction(15), Fraction(1), "refuse")
    for column in ("at", "instant", "unix", "row"):
        with reopened(readings, column, visits) as engine:
            found = lag_moments(engine, "visits", lags=3)
        refer(numbers(), found, "visits", profile=None, own=False)
        unit = 1 if column == "row" else 3600
        assert found.spacing == (unit, 4 * unit)


def test_moments_of_some_rows_are_about_those_alone(readings: Stored) -> None:
    end = FIRST + timedelta(hours=160)
    with reopened(readings) as engine:
        found = lag_moments(engine, "weight", Scope(end=end), lags=4, profile="home land")
    refer(
        [row for row in numbers() if row["at"] < end], found, "weight", profile="home land",
        own=False,
    )  # fmt: skip


def test_numbers_that_cannot_be_fitted_are_refused(
    readings: Stored, store: Store, tmp_path: Path
) -> None:
    with reopened(readings) as engine:
        with raises(InvalidQuery, field="lags"):
            lag_moments(engine, "weight", lags=0)
        with raises(InvalidQuery, field="profile"):
            lag_moments(engine, "weight", profile="weight")
        with raises(InvalidQuery, field="weight", reason="few-rows"):
            lag_moments(engine, "weight", Scope(end=FIRST + timedelta(hours=25)))
        with raises(InvalidQuery, field="at"):
            lag_moments(engine, "at")
    some = Amount("weight", *BOUNDS, STEP, "drop")
    with reopened(readings, amount=some) as engine, raises(InvalidDeclaration, reason="numbers"):
        lag_moments(engine, "weight")
    changes: dict[str, Mapping[str, Any]] = {
        "flat": {"weight": 1.0}, "none": {"weight": None}, "tied": {"at": FIRST},
    }  # fmt: skip
    kinds = {"flat": (InvalidQuery, "constant"), "none": (InvalidDeclaration, "missing"),
             "tied": (InvalidDeclaration, "ties")}  # fmt: skip
    for name, change in changes.items():
        table = [{**row, **(change if name != "none" or i == 9 else {})}
                 for i, row in enumerate(numbers())]  # fmt: skip
        kind, reason = kinds[name]
        with (
            reopened(store(name, table, tmp_path)) as engine,
            raises(kind, reason=reason) as refused,
        ):
            lag_moments(engine, "weight")
        assert "1.0" not in str(refused.value)


def test_the_order_of_a_chain_over_ranges_is_tested_as_plain_loops_do(readings: Stored) -> None:
    cuts = [Fraction(-2), Fraction(0), Fraction(1), Fraction(3)]
    for column in ("at", "instant", "unix"):
        with reopened(readings, column) as engine:
            found = goodness(engine, "weight", cuts=cuts)
        paths: dict[str, list[int]] = {}
        for row in sorted(numbers(), key=lambda row: row["row"]):
            value = lag_covariances.rounded(row["weight"], *BOUNDS, STEP)
            paths.setdefault(row["person"], []).append(int(value >= 0) + int(value >= 1))
        statistic, degrees = likelihood_ratio.orders(list(paths.values()))
        assert found.tests[0].numbers["statistic"] == pytest.approx(statistic)
        assert found.tests[0].numbers["degrees"] == degrees
        # people have every second row at most, so that hours of the day are not compared
        assert [test.about for test in found.tests] == ["order", "stationarity"]
        assert len(found.tests[1].numbers["parts"]) == 6
