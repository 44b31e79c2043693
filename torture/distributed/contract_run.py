"""The tests of the engine contract on a cluster whose executors are killed all the time."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.tables.spark_sessions import CLUSTER, MASTER
from torture.distributed.executors import executors, kill, processor_seconds
from torture.part_report import ROOT

TESTS = "tests/tables/test_spark.py"
TRIED = (0, 1)  # what pytest ends with where it has run tests: all passed, or some failed
AGE = (3.0, 9.0)  # seconds on a processor at which an executor dies: it needs some to start
ENDED = re.compile(r"^\S+::(.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE)


@dataclass(frozen=True)
class ContractRun:
    """How the tests of the contract ended.

    Attributes:
        tests: How many ran.
        failed: The names of those that failed.
        skipped: How many could not run, and said why.
        killed: How many executors were killed meanwhile.
        status: With which pytest ended by itself; None if it was stopped, as time was over.
    """

    tests: int
    failed: tuple[str, ...]
    skipped: int
    killed: int
    status: int | None

    @property
    def ended(self) -> bool:
        """Whether they came to their end in time."""
        return self.status is not None

    @property
    def undone(self) -> str:
        """Why it shows nothing although it ended, in words; empty if it does."""
        if not self.ended:
            return ""
        if self.status not in TRIED:
            return f"pytest ended with status {self.status}"
        if self.tests == self.skipped:
            return f"no test was run, and {self.skipped} were skipped"
        return ""


def run_contract(
    folder: Path, seconds: float, rng: np.random.Generator, *, options: Sequence[str] = ()
) -> ContractRun:
    """Run the contract in a process of its own and kill its executors, one by one."""
    folder.mkdir(parents=True, exist_ok=True)
    told = folder / "contract.log"
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", TESTS]
    with told.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and tests
            [*command, *options],
            cwd=ROOT,
            env={**os.environ, MASTER: CLUSTER, "PYTHONUNBUFFERED": "1"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        killed = _kill_until(process, time.monotonic() + seconds, rng)
        status = process.poll()
        if status is None:
            process.terminate()
        process.wait()
    text = told.read_text(encoding="utf-8", errors="replace")
    return ended_tests(text, killed, status)


def _kill_until(process: subprocess.Popen[bytes], end: float, rng: np.random.Generator) -> int:
    """Kill executors of a process until it ends, each when it has done some work."""
    killed, age = 0, float(rng.uniform(*AGE))
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
        old = [pid for pid in executors(process.pid) if processor_seconds(pid) >= age]
        if old:
            killed += kill(old[int(rng.integers(len(old)))])
            age = float(rng.uniform(*AGE))
    return killed


def ended_tests(told: str, killed: int, status: int | None) -> ContractRun:
    """What pytest has told, line by line, of the tests that ended; no status if it was stopped."""
    found = ENDED.findall(told)
    failed = tuple(name for name, how in found if how in ("FAILED", "ERROR"))
    skipped = sum(how == "SKIPPED" for _, how in found)
    return ContractRun(len(found), failed, skipped, killed, status)
