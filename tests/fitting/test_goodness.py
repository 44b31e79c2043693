"""Goodness of fit of chains, from the rows of a table: plain loops say the same."""

import csv
import gzip
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest

import takifugu as tf
from takifugu.drafting import Table
from takifugu.fitting import FitOptions
from takifugu.fitting.fit_kinds import fit_prior
from takifugu.fitting.goodness import goodness, parts_of
from takifugu.tables import Scope
from tests.fitting.test_count_tests import CHAIN, walks
from tests.oracles import likelihood_ratio
from tests.real_data import real

pa = pytest.importorskip("pyarrow", reason="tables in memory need PyArrow")
STATES = ("N1", "N2", "N3")
LAW = np.array(np.broadcast_to(CHAIN, (3, 3, 3)))
LAW[0, 1] = [0.6, 0.2, 0.2]


def nights(paths: list[list[int]], every: int = 60) -> Table:
    """Stages of sleep every so many minutes, from the first of March on; a number beside each."""
    lengths = [len(path) for path in paths]
    hours = np.concatenate([np.arange(n) for n in lengths])
    stage = np.concatenate([np.array(path) for path in paths])
    return tf.table(
        pa.table(
            {
                "who": np.repeat(np.arange(len(paths)), lengths),
                "at": np.datetime64("2024-03-01", "us") + hours * np.timedelta64(every, "m"),
                "stage": np.array(STATES)[stage],
                "depth": stage * 1.5,
            }
        ),
        name="nights",
        entity="who",
        order="at",
        protected={
            "stage": list(STATES),
            "depth": {"bounds": [0, 3], "step": 0.5, "missing": "refuse"},
        },
    )


def test_the_tests_are_those_of_plain_loops() -> None:
    paths = walks(LAW, 30, 140, np.random.default_rng(1))
    with nights(paths).open() as engine:
        found = goodness(engine, "stage")
        cut = goodness(engine, "depth", cuts=[Fraction(0), Fraction(1), Fraction(2), Fraction(3)])
    order, steady, hours = found.tests
    statistic, degrees = likelihood_ratio.orders(paths)
    assert order.numbers["statistic"] == pytest.approx(statistic)
    assert order.numbers["degrees"] == degrees
    assert order.verdict == "does not fit" and "N2" in order.sentence
    assert cut.tests[0].numbers["statistic"] == pytest.approx(statistic)
    days = [Counter[tuple[int, int]]() for _ in range(6)]
    for path in paths:  # 140 hours are six days
        for t in range(139):
            if t // 24 == (t + 1) // 24:
                days[t // 24][path[t], path[t + 1]] += 1
    counted = sum(sum(day.values()) for day in days)
    assert steady.numbers["counted"] == counted and len(steady.numbers["parts"]) == 6
    assert steady.verdict in ("fits", "differs little")
    assert hours.about == "hours" and hours.numbers["counted"] == 30 * 139
    assert hours.verdict in ("fits", "differs little")


def test_hours_that_differ_are_found_and_rows_that_are_not_hourly_are_left_alone() -> None:
    rng = np.random.default_rng(5)
    paths = []
    for _ in range(30):  # at night nothing moves
        path = [0]
        for hour in range(1, 240):
            law = np.eye(3) if hour % 24 < 8 else CHAIN
            path.append(int(rng.choice(3, p=law[path[-1]])))
        paths.append(path)
    with nights(paths).open() as engine:
        found = goodness(engine, "stage").tests[2]
    assert found.verdict == "does not fit" and "--by-hour" in found.sentence
    assert found.panel is not None and len(found.panel.values) == 24
    with nights(paths, every=30).open() as engine:
        assert [test.about for test in goodness(engine, "stage").tests] == ["order", "stationarity"]


@pytest.mark.real_data
def test_stages_of_sleep_remember_more_than_the_last() -> None:
    with gzip.open(real("sleep_hypnograms.csv.gz"), "rt", encoding="utf-8") as file:
        nights_of = [row for row in csv.DictReader(file) if row["scorer"] == "scorer_1"]
    paths = [
        [stage for stage in row["stages_30s"].split() if stage in "01234"] for row in nights_of
    ]
    lengths = [len(path) for path in paths]
    table = tf.table(
        pa.table(
            {
                "who": np.repeat(np.arange(len(paths)), lengths),
                "at": np.concatenate([np.arange(n) for n in lengths]),
                "stage": [stage for path in paths for stage in path],
            }
        ),
        name="sleep",
        entity="who",
        order="at",
        order_kind="number",
        protected={"stage": list("01234")},
    )
    with table.open() as engine:
        order, _ = goodness(engine, "stage").tests
    statistic, degrees = likelihood_ratio.orders(paths)
    assert order.numbers["statistic"] == pytest.approx(statistic) and degrees == 72
    assert order.verdict == "does not fit" and "most after 0" in order.sentence
    assert order.numbers["share"] == pytest.approx(0.0993, abs=1e-4)


def test_parts_cover_the_rows_once() -> None:
    with nights(walks(CHAIN, 5, 200, np.random.default_rng(2))).open() as engine:
        first, _ = engine.span()
        assert isinstance(first, datetime)
        for scope in (Scope(), Scope(end=first + timedelta(days=3)), Scope(start=first)):
            parts = list(parts_of(engine, scope))
            assert sum(engine.count(part) for _, part in parts) == engine.count(scope)
            assert len({name for name, _ in parts}) == len(parts) <= 6


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "about"),
    [
        (FitOptions(kind="markov"), ["order", "stationarity", "hours"]),
        (FitOptions(kind="markov", by_hour=True), ["stationarity"]),
        (FitOptions(kind="higher-order", order=2), ["order", "stationarity"]),
        (FitOptions(kind="network", columns=("stage",)), ["left out"]),
        (
            FitOptions(kind="gaussian", columns=("depth",)),
            ["residuals", "normality", "stationarity"],
        ),
    ],
)
def test_every_kind_is_tested_when_that_is_asked_for(options: FitOptions, about: list[str]) -> None:
    with nights(walks(LAW, 30, 140, np.random.default_rng(3))).open() as engine:
        found = fit_prior(engine, ["stage"], options, tested=True)
        plain = fit_prior(engine, ["stage"], options)
    assert found.goodness is not None and plain.goodness is None
    assert [test.about for test in found.goodness.tests] == about
    if options.kind == "higher-order":  # order two describes what has order two
        assert found.goodness.tests[0].verdict in ("fits", "differs little")
