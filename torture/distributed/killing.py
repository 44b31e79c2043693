"""Kill an executor while a job of Spark runs, and see that the job goes on."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torture.distributed.executors import executors, kill

POLLED = 0.02  # seconds
LONGEST = 1.0  # seconds from the beginning of a job to a kill, at most


@dataclass
class Disturbed:
    """What was done to the cluster during one query.

    Attributes:
        killed: Executors that were killed.
        in_a_job: How many of them while a job ran, which had then to go on without.
        failed_tasks: Tasks of its jobs that failed, and were done again.
    """

    killed: int = 0
    in_a_job: int = 0
    failed_tasks: int = 0
    jobs: set[int] = field(default_factory=set)


@contextmanager
def disturbed(spark: Any, pid: int, rng: np.random.Generator, most: int) -> Iterator[Disturbed]:
    """Inside, up to ``most`` executors of the driver ``pid`` are killed, in the middle of jobs."""
    tracker = spark.sparkContext.statusTracker()
    seen, ended = Disturbed(), threading.Event()
    waits = [float(wait) for wait in rng.uniform(0, LONGEST, most)]
    chosen = [float(one) for one in rng.random(most)]

    def work() -> None:
        for wait, one in zip(waits, chosen, strict=True):
            if not _until(lambda: _jobs(tracker, seen), ended) or ended.wait(wait):
                return
            alive = executors(pid)
            running = bool(_jobs(tracker, seen))
            if alive and running and kill(alive[int(one * len(alive))]):
                seen.killed += 1
                seen.in_a_job += 1
        _until(lambda: _jobs(tracker, seen) and False, ended)  # to know the jobs that follow

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()
    seen.failed_tasks = _failed(tracker, seen.jobs)


def _until(happens: Callable[[], object], ended: threading.Event) -> bool:
    """Wait until something happens; False if all ended before."""
    while not ended.is_set():
        if happens():
            return True
        time.sleep(POLLED)
    return False


def _jobs(tracker: Any, seen: Disturbed) -> list[int]:
    found = list(tracker.getActiveJobsIds())
    seen.jobs.update(found)
    return found


def _failed(tracker: Any, jobs: set[int]) -> int:
    """Tasks that failed, and stages that were begun again, in these jobs."""
    total = 0
    for job in jobs:
        info = tracker.getJobInfo(job)
        for stage in () if info is None else info.stageIds:
            found = tracker.getStageInfo(stage)
            if found is not None:
                total += found.numFailedTasks + found.currentAttemptId
    return total
