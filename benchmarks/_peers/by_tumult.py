"""Tumult Analytics: a session on a Spark frame, with all keys and a budget for one query."""

import os
import sys
from collections.abc import Callable

from benchmarks._peers.answers import Counts, answer
from benchmarks._visits import COUNTRIES, LABELS


def start(path: str, epsilon: float) -> Callable[[], Counts]:
    """Start Spark on this machine, with memory for 33 million rows: a changed row is two rows."""
    from pyspark.sql import SparkSession
    from tmlt.analytics import AddMaxRows, KeySet, PureDPBudget, QueryBuilder, Session

    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers need the same environment
    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "8")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")

    def work() -> Counts:
        session = Session.from_dataframe(
            privacy_budget=PureDPBudget(epsilon),
            source_id="visits",
            dataframe=spark.read.parquet(path).select("country", "label"),
            protected_change=AddMaxRows(2),
        )
        keys = KeySet.from_dict(
            {
                "country": [f"country {i}" for i in range(COUNTRIES)],
                "label": [f"label {i}" for i in range(LABELS)],
            }
        )
        query = QueryBuilder("visits").groupby(keys).count(name="n")
        rows = session.evaluate(query, PureDPBudget(epsilon)).collect()
        return [(row["country"], row["label"], row["n"]) for row in rows]

    return work


if __name__ == "__main__":
    answer(start)
