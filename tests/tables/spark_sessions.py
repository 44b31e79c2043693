"""A small Spark for tests and trials: in this process, or as a cluster of processes."""

import os
import shutil
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # halves what Java takes for so little
MASTER = "SPARK_MASTER"  # the variable that says where the contract runs; by default in a process
EXECUTORS = 2
CLUSTER = f"local-cluster[{EXECUTORS},1,1024]"  # each a process with a core and a gigabyte
TOUGH = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": SHORT_LIVED,
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "64",
    "spark.stage.maxConsecutiveAttempts": "64",
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
}  # a cluster whose executors are killed all the time, and that is to go on


def why_no_spark() -> str | None:
    """Why there is no Spark here; None if there is."""
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        return "needs Java: there is none on the path"
    if find_spec("pyspark") is None:
        return "needs the package pyspark"
    return None


def small_spark(warehouse: Path, master: str | None = None) -> Any:
    """A session of Spark, whose clocks are not in UTC: engines must not depend on that."""
    place = master or os.environ.get(MASTER, "local[1]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession
    builder = (
        SparkSession.builder.master(place)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.extraJavaOptions", SHORT_LIVED)
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.warehouse.dir", str(warehouse))
        .config("spark.log.level", "OFF")
    )
    if place.startswith("local-cluster"):
        for name, value in TOUGH.items():
            builder = builder.config(name, value)
    return builder.getOrCreate()
