"""A release that a worker has drawn ends, for everybody, when its step of time does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from takifugu.project.project import open_project
from takifugu.project.server_section import ServerSettings
from takifugu.server.api.problems import WorkFailed
from takifugu.server.work.jobs import Job, JobBoard
from takifugu.server.work.pool import WorkPool
from takifugu.server.work.tasks import TASK_MODULES
from tests.raising import raises
from tests.server.projects import small_project
from tests.server.work.held_steps import FOLDER
from tests.server.work.pools import ANA, BO, asked

PATIENCE = 120.0
HISTOGRAM = {"kind": "histogram", "by": ["zone"], "epsilon": "0.9"}


def _release(epsilon: str = "0.9") -> Any:
    return asked("release", ANA, "stays", query=HISTOGRAM | {"epsilon": epsilon}, key="k")


def _kinds(project: Path) -> list[str]:
    with open_project(project).ledger(read_only=True) as ledger:
        events = ledger.history("stays")
        return [e.kind for e in events if e.kind in ("charge", "answer", "abandoned")]


async def _drawn(job: Job, folder: Path) -> None:
    while not (folder / "held").exists():
        assert not job.ended, "it did not wait for the step"
        await asyncio.sleep(0.005)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER, str(tmp_path))
    return small_project(tmp_path / "study")


@asynccontextmanager
async def _one_worker(project: Path) -> AsyncIterator[tuple[WorkPool, JobBoard]]:
    """A pool of one worker that holds what it has drawn until a file is there."""
    settings = ServerSettings(workers=1, time_step=0.05)
    modules = (*TASK_MODULES, "tests.server.work.held_steps")
    pool = WorkPool(project, settings, modules=modules)
    try:
        yield pool, JobBoard(pool)
    finally:
        await pool.close()


@pytest.mark.nightly
def test_whoever_looks_learns_of_the_end_at_the_step(tmp_path: Path, project: Path) -> None:
    async def test() -> None:
        async with _one_worker(project) as (pool, board):
            job = board.start(ANA, _release())
            await _drawn(job, tmp_path)
            behind = board.start(BO, asked("plan", BO, "stays", query=HISTOGRAM))
            assert not await behind.wait(0.5)  # another analyst, who waits for the worker
            assert (job.state, behind.state, pool.running) == ("running", "waiting", 1)
            with raises(WorkFailed, reason="key"):  # the same key for something else
                board.start(ANA, _release("0.8"))
            assert _kinds(project) == ["charge"]  # the place of the answer is open, too
            (tmp_path / "over").touch()
            assert await job.wait(PATIENCE) and await behind.wait(PATIENCE)
            assert (job.state, behind.state) == ("done", "done")
            assert _kinds(project) == ["charge", "answer"]

    asyncio.run(test())


@pytest.mark.nightly
def test_cancelling_does_not_tell_whether_it_was_drawn(tmp_path: Path, project: Path) -> None:
    async def test() -> None:
        async with _one_worker(project) as (_, board):
            job = board.start(ANA, _release())
            await _drawn(job, tmp_path)
            job.cancel()
            assert await job.wait(PATIENCE) and job.state == "cancelled"
            again = board.start(ANA, _release())
            assert not await again.wait(0.2)
            (tmp_path / "over").touch()
            assert await again.wait(PATIENCE) and again.state == "done"
            assert _kinds(project) == ["charge", "answer"]

    asyncio.run(test())
