"""A plugin of pytest: notes the outcome of every test in a file, and ends at a given time.

Two environment variables tell it: ``TORTURE_UNTIL``, in seconds since 1970, and
``TORTURE_OUTCOMES``, a file that gets one line of JSON for each test.
"""

import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

UNTIL, OUTCOMES = "TORTURE_UNTIL", "TORTURE_OUTCOMES"
_WORST = ("passed", "skipped", "failed")
_known: dict[str, str] = {}


def _note(test: str, outcome: str) -> None:
    line = json.dumps({"test": test, "outcome": outcome})
    with Path(os.environ[OUTCOMES]).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A module that cannot be imported has failed."""
    if report.outcome == "failed":
        _note(report.nodeid, "failed")
    elif report.outcome == "skipped":
        _note(report.nodeid, "skipped")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The worst of set-up, call and end is the outcome of a test."""
    so_far = _known.get(report.nodeid, "passed")
    worst = max(so_far, report.outcome, key=_WORST.index)
    if report.when == "teardown":
        _known.pop(report.nodeid, None)
        _note(report.nodeid, worst)
    else:
        _known[report.nodeid] = worst


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test; once the time is up, the next one is not begun."""
    result = yield
    if time.time() > float(os.environ[UNTIL]):
        item.session.shouldstop = "the time is up"
    return result
