"""Distributed: a small seed of the part, where there is Java and PySpark; and planted faults."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import torture.distributed
from takifugu.tables import Engine, Scope
from takifugu.tables.engine import Engine as EngineClass
from tests.tables.spark_sessions import why_no_spark
from tests.torture.planted import part_report
from torture.distributed import compare, contract_kept, count_executors, driver_lost, run
from torture.distributed.contract_run import ended_tests
from torture.distributed.driver_loss import DriverLoss
from torture.distributed.executors import (
    EXECUTOR,
    PROC,
    executors,
    kill,
    processor_seconds,
    started,
)
from torture.distributed.queries import (
    QUERIES,
    answer,
    visits_engine,
    write_visits,
)

pytestmark = pytest.mark.nightly

SPARK = pytest.mark.skipif(why_no_spark() is not None, reason=str(why_no_spark()))
LINUX = pytest.mark.skipif(not PROC.exists(), reason="needs /proc, to find executors")
KEPT = DriverLoss("DatabaseFailed", "it is gone", 2.0, 2.0, 1, [["home", 3]])


@SPARK
@LINUX
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
def test_executors_that_die_change_no_answer(tmp_path: Path) -> None:
    report = part_report("distributed", tmp_path)
    run(report, np.random.default_rng(3), copies=12, limit=2, contract=False)
    assert report.findings == []
    assert report.counts["separate executor processes"] == 2
    assert report.counts["queries compared"] == 2
    assert report.counts["drivers killed"] == 1
    assert report.counts["differences"] == 0


def test_a_cluster_without_executors_is_found(tmp_path: Path) -> None:
    report = part_report("distributed", tmp_path)
    count_executors(report, [1, 2])
    assert report.findings == []
    count_executors(report, [1])
    assert [one.what for one in report.findings] == ["The cluster has 1 executors of 2"]


def test_without_spark_it_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torture.distributed, "why_no_spark", lambda: "needs Java")
    report = part_report("distributed", tmp_path)
    run(report, np.random.default_rng(3))
    assert report.remarks == ["Nothing was run: it needs Java"]
    assert report.counts == {}


def test_every_query_of_an_engine_is_asked(tmp_path: Path) -> None:
    """By each method that runs statements; on DuckDB, none of the answers is empty."""
    source = write_visits(tmp_path, 12)
    called = set[str]()
    counting = [name for name in vars(EngineClass) if not name.startswith("_")]
    with visits_engine(source) as engine, pytest.MonkeyPatch.context() as patched:
        for name in counting:
            method = getattr(EngineClass, name)
            if callable(method):
                patched.setattr(EngineClass, name, _noted(name, method, called))
        for question in QUERIES.values():
            assert answer(question, engine, Scope()) not in ([], {}, [[]])
    asked = {"count", "span", "lengths", "entities", "known_size", "histogram", "sums"}
    asked |= {"distribution", "transitions", "steps", "refuse_changes", "runs"}
    assert called >= asked | {"cross_tabulations", "refuse_disorder", "fingerprint", "keys"}


def _noted(name: str, method: Any, called: set[str]) -> Any:
    def noted(*given: Any, **options: Any) -> Any:
        called.add(name)
        return method(*given, **options)

    return noted


class LosesPart:
    """A cluster that forgets a part of its rows, as one would whose retries were lost."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()

    def count(self, scope: Scope) -> int:
        """A row too few."""
        return self._engine.count(scope) - 1


class NoJobs:
    """What is asked of a Spark that runs nothing."""

    sparkContext = property(lambda self: self)

    def statusTracker(self) -> "NoJobs":
        """What runs."""
        return self

    def getActiveJobsIds(self) -> list[int]:
        """Nothing."""
        return []


def test_a_row_that_is_lost_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write_visits(tmp_path, 12)

    def opened(source: Any, session: Any = None) -> Any:
        return visits_engine(source) if session is None else LosesPart(visits_engine(source))

    monkeypatch.setattr(torture.distributed, "visits_engine", opened)
    report = part_report("distributed", tmp_path)
    compare(report, NoJobs(), source, np.random.default_rng(1), 2)
    assert report.counts["differences"] == len(report.findings) == 2
    assert "count of all on Spark differs" in report.findings[0].what


@pytest.mark.parametrize(
    "lost",
    [
        DriverLoss("", "", 2.0, 2.0, 1, [["home", 3]]),  # an answer all the same
        DriverLoss("DatabaseFailed", "Traceback\nof Python", 2.0, 2.0, 1, [["home", 3]]),
        DriverLoss("DatabaseFailed", "it is gone", 0.0, 0.0, 1, [["home", 3]]),  # for nothing
        DriverLoss("DatabaseFailed", "it is gone", 2.0, 4.0, 1, [["home", 3]]),  # paid twice
        DriverLoss("DatabaseFailed", "it is gone", 2.0, 2.0, 2, [["home", 3]]),
    ],
)
def test_a_driver_that_is_lost_badly_is_found(
    lost: DriverLoss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = part_report("distributed", tmp_path)
    monkeypatch.setattr(torture.distributed, "lose_driver", lambda _: lost)
    driver_lost(report, tmp_path)
    assert len(report.findings) == 1
    monkeypatch.setattr(torture.distributed, "lose_driver", lambda _: KEPT)
    driver_lost(report, tmp_path)
    assert len(report.findings) == 1


@LINUX
def test_only_executors_that_descend_from_us_are_found() -> None:
    sleeping = [
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", "import time; time.sleep(60)", name]
        )
        for name in (EXECUTOR, "another")
    ]
    try:
        assert started(os.getpid(), 1) == [sleeping[0].pid]
        assert started(os.getpid(), 2, limit=0.1) == [sleeping[0].pid]
        assert executors(sleeping[0].pid) == []  # not its own parent
        assert 0 <= processor_seconds(sleeping[0].pid) < 60
        assert kill(sleeping[0].pid)
        sleeping[0].wait()
        assert executors(os.getpid()) == []
        assert not kill(sleeping[0].pid)
        assert processor_seconds(sleeping[0].pid) == 0
    finally:
        for one in sleeping:
            one.kill()
            one.wait()


PASSED = "tests/tables/test_spark.py::test_a PASSED [100%]\n"
SKIPPED = "tests/tables/test_spark.py::test_a SKIPPED (needs Java) [100%]\n"
NOT_COLLECTED = "collected 0 items / 1 error\nERROR tests/tables/test_spark.py - ImportError\n"


@pytest.mark.parametrize(
    ("told", "status", "why"),
    [
        (NOT_COLLECTED, 2, "pytest ended with status 2"),
        (PASSED, -9, "pytest ended with status -9"),
        ("", 5, "pytest ended with status 5"),
        ("", 0, "no test was run, and 0 were skipped"),
        (SKIPPED, 0, "no test was run, and 1 were skipped"),
        (PASSED, 0, ""),
        (SKIPPED + PASSED, 0, ""),
        ("", None, ""),  # stopped: its time was over
    ],
)
def test_a_contract_that_is_not_tried_is_found(
    told: str, status: int | None, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = ended_tests(told, 0, status)
    monkeypatch.setattr(torture.distributed, "run_contract", lambda *_: done)
    report = part_report("distributed", tmp_path)
    contract_kept(report, tmp_path, np.random.default_rng(1))
    found = [f"The contract was not tried on the cluster: {why}"] if why else []
    assert [one.what for one in report.findings] == found
    assert bool(report.remarks) == (status is None)
