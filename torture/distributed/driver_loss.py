"""A driver that dies while it draws: a clear error, no answer, and the charge is kept.

``python -m torture.distributed.driver_loss FOLDER`` releases a histogram on Spark under a key and
kills its own driver as soon as the charge is paid and the rows are about to be read. Then the same
is asked again under the same key, of DuckDB: the charge is the same one, and there is an answer.
"""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from takifugu.declarations import Source
from takifugu.errors import TakifuguError
from takifugu.ledger import open_ledger
from takifugu.priors import MarkovChain
from takifugu.session import Session, releases
from takifugu.session.query.query import draw
from tests.contracts.engines import LABELS, rows
from tests.tables.spark_sessions import small_spark
from tests.tables.storing import store_duckdb
from torture.distributed.executors import drivers, kill
from torture.distributed.queries import visits_engine
from torture.part_report import ROOT

KEY, EPSILON, TOLD = "the same release", 200, "told.json"
LIMIT = 600.0  # seconds


@dataclass(frozen=True)
class DriverLoss:
    """How a release ended whose driver died, and the same under the same key again.

    Attributes:
        error: The kind of the error of the first one; empty if there was an answer.
        told: Its message.
        charged: What was spent after the first.
        spent: What was spent after both.
        answers: How many answers are stored in the end.
        rows: What the second answered.
    """

    error: str
    told: str
    charged: float
    spent: float
    answers: int
    rows: list[Any]


def lose_driver(folder: Path) -> DriverLoss:
    """Lose a driver in a process of its own, then ask again in another."""
    folder.mkdir(parents=True, exist_ok=True)
    store_duckdb(rows(), f"COPY visits TO '{folder}/visits.parquet' (FORMAT parquet)")
    with open_ledger(folder / "visits.ledger") as ledger:
        ledger.set_budget("visits", 2 * EPSILON)
    first, second = _lost(folder), _release(folder, None)
    return DriverLoss(
        error=first["error"],
        told=first["told"],
        charged=first["spent"],
        spent=second["spent"],
        answers=second["answers"],
        rows=second["rows"],
    )


def _lost(folder: Path) -> dict[str, Any]:
    """What a process tells whose driver dies."""
    subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "torture.distributed.driver_loss", str(folder)],
        cwd=ROOT,
        check=True,
        timeout=LIMIT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found: dict[str, Any] = json.loads((folder / TOLD).read_text(encoding="utf-8"))
    return found


def _release(folder: Path, spark: Any) -> dict[str, Any]:
    """Release under the key, on a Spark whose driver dies at the draw, or without Spark."""
    states = (*LABELS, "other")
    chain = MarkovChain(np.full((len(states), len(states)), 1 / len(states)), states=states)
    source = Source("parquet", path=str(folder / "visits.parquet"))
    told = {"error": "", "told": "", "rows": list[Any]()}

    def dying(*given: Any) -> Any:
        for pid in drivers(os.getpid()):
            kill(pid)
        time.sleep(0.5)
        return draw(*given)

    with open_ledger(folder / "visits.ledger") as ledger:
        try:
            with visits_engine(source, spark) as engine:
                asking = Session(engine, chain, ledger=ledger, dataset="visits", about="label")
                plan = asking.plan.histogram(epsilon=EPSILON)
                with mock.patch.object(releases, "draw", draw if spark is None else dying):
                    told["rows"] = [list(row) for row in asking.release(plan, key=KEY).rows]
        except TakifuguError as error:
            told |= {"error": type(error).__name__, "told": str(error)}
        spent = float(max(one.epsilon for one in ledger.positions()[0].worst))
        answers = len(list(ledger.history("visits", kind="answer")))
    return {**told, "spent": spent, "answers": answers}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    made = _release(place, small_spark(place / "warehouse", "local[1]"))
    (place / TOLD).write_text(json.dumps(made), encoding="utf-8")
    os._exit(0)  # a gateway whose driver is dead is not closed
