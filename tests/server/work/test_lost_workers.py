"""Workers that are killed in the middle of releases: one charge each, and every answer is one."""

import asyncio
import os
import signal
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from takifugu.project.project import open_project
from takifugu.server.access_rules import Actor
from takifugu.server.work.jobs import JobBoard
from takifugu.server.work.pool import WorkPool
from takifugu.server.work.tasks import WorkerLost
from tests.server.work.pools import asked, with_pool

KILLS, ASKED = 5, 15
DELAYS = (0.0, 0.02, 0.005, 0.05, 0.01, 0.03)  # seconds after a release began


def _release(number: int) -> Any:
    query = {"kind": "histogram", "by": ["zone"], "epsilon": f"0.9{number:02d}"}
    actor = Actor(f"analyst {number % 5}", "analyst", str(number))
    return asked("release", actor, "stays", query=query, key=f"request {number}")


@pytest.mark.nightly
def test_a_killed_worker_loses_no_charge_and_releases_nothing_that_is_not_charged(
    project: Path,
) -> None:
    open_project(project).set_budget("stays", "100")
    answers = dict[int, Any]()

    async def ask(pool: WorkPool, number: int) -> None:
        while number not in answers:
            with suppress(WorkerLost):
                answers[number] = await pool.run(_release(number))

    async def kill(pool: WorkPool) -> None:
        for _, delay in zip(range(KILLS), cycle(DELAYS), strict=False):
            before = len(answers)
            while len(answers) == before and len(answers) < ASKED:  # some worker is warm
                await asyncio.sleep(0.001)
            await asyncio.sleep(delay)
            for process in pool.processes[:1]:
                os.kill(process, signal.SIGKILL)

    async def test(pool: WorkPool) -> None:
        killing = asyncio.ensure_future(kill(pool))
        await asyncio.gather(*(ask(pool, number) for number in range(ASKED)))
        killing.cancel()
        again = await pool.run(_release(3))
        assert again["result"]["rows"] == answers[3]["result"]["rows"]

    with_pool(test, project, workers=2)
    with open_project(project).ledger(read_only=True) as ledger:
        assert ledger.verify().sound
        charges = {event.seq: event.body for event in ledger.history("stays", kind="charge")}
        assert len(charges) == ASKED  # the same request is one charge, however often it was lost
    paid = set[int]()
    for number, answer in answers.items():
        event = answer["result"]["provenance"]["charge"]["event"]
        assert charges[event]["analyst"] == charges[event]["actor"] == f"analyst {number % 5}"
        paid.add(event)
    assert paid == set(charges)


@pytest.mark.nightly
@pytest.mark.parametrize("begun", [False, True])
def test_a_cancelled_release_is_taken_up_by_its_key(study: Path, begun: bool) -> None:
    async def test(pool: WorkPool) -> None:
        board, task = JobBoard(pool), _release(0)
        job = board.start(task.actor, task)
        while begun and job.state == "waiting":
            await asyncio.sleep(0.001)
        job.cancel()
        assert await job.wait(120)
        if job.state == "cancelled":  # it may have ended before
            assert job.problem is not None
            assert "idempotency key" in job.problem["detail"]
        found = await pool.run(task)
        assert found["result"]["rows"]

    with_pool(test, study, workers=1)
    with open_project(study).ledger(read_only=True) as ledger:
        assert len(list(ledger.history("stays", kind="charge"))) == 1
