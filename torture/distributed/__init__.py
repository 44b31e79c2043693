"""Distributed: the engine contract on a cluster of processes, whose executors are killed.

Spark in ``local-cluster`` runs its executors as processes of their own. While queries run, they are
killed, and Spark does their work again: what is answered has to be what DuckDB answers on the same
rows. A driver that dies leaves a clear error, no answer, and a charge that is kept.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from takifugu.declarations import Source
from tests.tables.spark_sessions import CLUSTER, EXECUTORS, small_spark, why_no_spark
from torture.distributed.contract_run import run_contract
from torture.distributed.driver_loss import EPSILON, lose_driver
from torture.distributed.executors import PROC, started
from torture.distributed.killing import disturbed
from torture.distributed.queries import QUERIES, SCOPES, answer, visits_engine, write_visits
from torture.part_report import Report

COPIES = 4_000  # of the rows of the contract
MOST_KILLS = 2  # in one query
UNDISTURBED = 4  # one query in so many has all executors
CONTRACT_SHARE = 0.6  # of the time
AGAIN = "python -m torture distributed --seed {}"


def run(
    report: Report,
    rng: np.random.Generator,
    *,
    copies: int = COPIES,
    limit: int | None = None,
    contract: bool = True,
) -> None:
    """Compare queries, run the contract and lose a driver; with ``limit`` so many queries."""
    missing = why_no_spark() or (None if PROC.exists() else "needs /proc, to find executors")
    if missing is not None:
        report.remark(f"Nothing was run: it {missing}")
        return
    work = report.folder / "distributed"
    shutil.rmtree(work, ignore_errors=True)
    driver_lost(report, work / "driver")
    if contract:
        contract_kept(report, work / "contract", rng)
    source = write_visits(work / "visits", copies)
    spark = small_spark(work / "warehouse", CLUSTER)
    try:
        count_executors(report, started(os.getpid(), EXECUTORS))
        compare(report, spark, source, rng, limit)
    finally:
        spark.stop()
        shutil.rmtree(work / "visits", ignore_errors=True)


def driver_lost(report: Report, folder: Path) -> None:
    """Lose a driver in the middle of a release; tell what must not be."""
    found = lose_driver(folder)
    report.count("drivers killed")
    wrong = []
    if found.error != "DatabaseFailed":
        wrong.append(f"the error was {found.error or 'none'}")
    if "Traceback" in found.told or "\n" in found.told:
        wrong.append("its message is not one line")
    if not 0 < found.charged <= EPSILON * (1 + 1e-6):
        wrong.append(f"{found.charged} was spent after the failure")
    if found.spent != found.charged:
        wrong.append(f"{found.spent} was spent after the same release under the same key")
    if found.answers != 1 or not found.rows:
        wrong.append(f"{found.answers} answers are stored")
    if wrong:
        report.finding(f"A driver died: {'; '.join(wrong)}", AGAIN.format(report.seed))


def contract_kept(report: Report, folder: Path, rng: np.random.Generator) -> None:
    """Run the tests of the contract on a cluster that loses executors."""
    done = run_contract(folder, report.seconds_left * CONTRACT_SHARE, rng)
    report.count("contract tests passed", done.tests - len(done.failed) - done.skipped)
    report.count("executors killed", done.killed)
    if done.failed:
        report.finding(
            f"Tests of the contract failed on the cluster: {', '.join(done.failed)}",
            "see distributed/contract/contract.log",
        )
    if done.undone:
        report.finding(
            f"The contract was not tried on the cluster: {done.undone}",
            "see distributed/contract/contract.log",
        )
    if not done.ended:
        report.remark(f"There was no time for all tests of the contract: {done.tests} ended")


def count_executors(report: Report, found: list[int]) -> None:
    """Tell how many executors there are; a cluster without them tortures nothing."""
    report.count("separate executor processes", len(found))
    if len(found) < EXECUTORS:
        report.finding(
            f"The cluster has {len(found)} executors of {EXECUTORS}", AGAIN.format(report.seed)
        )


def compare(
    report: Report, spark: Any, source: Source, rng: np.random.Generator, limit: int | None
) -> None:
    """Ask both engines the same, and kill executors of one of them meanwhile."""
    pid, truth, rows = os.getpid(), dict[tuple[str, str], Any](), dict[str, list[int]]()
    asked = [(name, scope) for name in QUERIES for scope in SCOPES]
    for number in range(limit if limit is not None else 10**9):
        if limit is None and report.over:
            break
        name, where = asked[number % len(asked)]
        question, scope = QUERIES[name], SCOPES[where]
        if (name, where) not in truth:
            with visits_engine(source) as engine:
                truth[name, where] = answer(question, engine, scope)
        most = (
            0 if number % UNDISTURBED == UNDISTURBED - 1 else int(rng.integers(1, MOST_KILLS + 1))
        )
        with visits_engine(source, spark) as engine, disturbed(spark, pid, rng, most) as seen:
            found = answer(question, engine, scope)
        same = found == truth[name, where]
        report.count("queries compared")
        report.count("executors killed", seen.killed)
        report.count("executors killed while a job ran", seen.in_a_job)
        report.count("tasks and stages done again", seen.failed_tasks)
        report.count("differences", int(not same))
        row = rows.setdefault(name, [0, 0, 0, 0])
        for place, more in enumerate((1, seen.killed, seen.failed_tasks, int(not same))):
            row[place] += more
        report.table(
            "Queries on a cluster that loses executors",
            ("query", "compared with DuckDB", "executors killed", "done again", "differences"),
            [(query, *counts) for query, counts in rows.items()],
        )
        if not same:
            report.finding(
                f"{name} of {where} on Spark differs from DuckDB's, with {seen.killed} executors"
                " killed",
                AGAIN.format(report.seed),
            )
