"""The pool, with real worker processes."""

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest

from takifugu.project.server_section import ServerSettings
from takifugu.server.api.problems import WorkFailed
from takifugu.server.work.pool import WorkPool
from takifugu.server.work.tasks import (
    WorkCancelled,
    WorkerLost,
    WorkTimedOut,
)
from tests.raising import raises
from tests.server.work.pools import (
    ANA,
    BO,
    NO_PROJECT,
    OWNER,
    SharedPools,
    asked,
    there,
    waiting_for,
    with_pool,
)

PATIENCE = 120  # seconds: a machine may be busy; only what hangs takes as long


def _is_there(process: int) -> bool:
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return False
    return "State:\tZ" not in status  # nobody has asked how it ended


async def _gone(process: int) -> None:
    while _is_there(process):
        await asyncio.sleep(0.01)


@pytest.mark.nightly
def test_a_worker_belongs_to_the_server_and_to_no_terminal(shared: SharedPools) -> None:
    async def test(pool: WorkPool) -> None:
        found = await pool.run(asked("who"))
        assert found["process"] == found["group"] == found["session"] != os.getpid()
        assert found["parent"] == os.getpid()
        assert found["ignored"] == [True, True]
        assert pool.processes == (found["process"],)
        assert len(found["handles"]) <= 8  # in, out, err, its pipe; what Python itself opens
        for ignored in (signal.SIGINT, signal.SIGTERM):
            os.kill(found["process"], ignored)
        assert (await pool.run(asked("who")))["process"] == found["process"]

    shared.run(test, 1)


@pytest.mark.nightly
def test_bytes_come_back_and_lines_of_progress_on_the_way(shared: SharedPools) -> None:
    async def test(pool: WorkPool) -> None:
        lines = list[str]()
        assert await pool.run(asked("say", lines=["one", "two"]), lines.append) == b"said"
        assert lines == ["one", "two"]

    shared.run(test)


@pytest.mark.nightly
def test_an_error_comes_back_as_a_problem_without_words_that_are_not_ours(
    shared: SharedPools, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(pool: WorkPool) -> None:
        with raises(WorkFailed, field="epsilon", reason="too-much") as own:
            await pool.run(asked("fail", own=True))
        assert own.value.status == 422
        for actor in (ANA, OWNER):
            with raises(WorkFailed, reason="server") as other:
                await pool.run(asked("fail", actor))
            assert "Annabel" not in json.dumps(other.value.document())
        for name in ("odd", "no such task"):
            with raises(WorkFailed, reason="server"):
                await pool.run(asked(name))
        assert (await pool.run(asked("who")))["process"] in pool.processes

    with caplog.at_level(logging.INFO):
        shared.run(test, 1)
    assert "ValueError" in caplog.text and "Annabel" not in caplog.text


@pytest.mark.nightly
def test_of_what_a_worker_prints_the_size_alone_is_logged(
    shared: SharedPools, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(pool: WorkPool) -> None:
        await pool.run(asked("print"))
        (worker,) = pool.processes
        while (told := f"worker {worker} printed {20 + 16} bytes") not in caplog.text:
            await asyncio.sleep(0.01)
        assert caplog.text.count(told) == 1  # together

    with caplog.at_level(logging.INFO):
        shared.run(test, 1)
    assert "RuntimeWarning" in caplog.text  # of a warning, its kind
    assert "Annabel" not in caplog.text and "row 17" not in caplog.text


@pytest.mark.nightly
def test_what_a_worker_printed_last_is_told_when_it_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(pool: WorkPool) -> None:
        await pool.run(asked("print"))

    with caplog.at_level(logging.INFO):
        with_pool(test, workers=1)
    assert "printed 36 bytes" in caplog.text and "Annabel" not in caplog.text


@pytest.mark.nightly
def test_an_error_that_nobody_caught_is_its_kind_and_place(
    shared: SharedPools, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(pool: WorkPool) -> None:
        await pool.run(asked("lose a thread"))

    with caplog.at_level(logging.INFO):
        shared.run(test, 1)
    assert "ValueError at tests.server.work.staged_tasks:" in caplog.text
    assert "Annabel" not in caplog.text and "printed" not in caplog.text


@pytest.mark.nightly
def test_a_worker_that_ends_while_it_is_idle_is_given_no_task(shared: SharedPools) -> None:
    async def test(pool: WorkPool) -> None:
        first = (await pool.run(asked("who")))["process"]
        os.kill(first, signal.SIGKILL)
        ended = os.WEXITED | os.WNOWAIT | os.WNOHANG  # with all its threads, and not reaped yet
        while os.waitid(os.P_PID, first, ended) is None:
            await asyncio.sleep(0.01)
        assert (await pool.run(asked("who")))["process"] != first
        assert first not in pool.processes

    shared.run(test, 1)


@pytest.mark.nightly
def test_a_worker_that_dies_is_replaced_and_its_task_is_lost(
    shared: SharedPools, tmp_path: Path
) -> None:
    async def test(pool: WorkPool) -> None:
        for _ in range(2):
            with raises(WorkerLost, reason="worker-lost") as lost:
                await pool.run(asked("die", key="k"))
            assert lost.value.status == 503
        assert (await pool.run(asked("who")))["parent"] == os.getpid()
        again = asked("die", unless=str(tmp_path / "died"))
        with raises(WorkerLost):
            await pool.run(again)
        assert await pool.run(again) is None
        assert len(pool.processes) == 1

    shared.run(test, 2)


@pytest.mark.nightly
def test_a_task_that_waits_is_cancelled_without_any_worker_being_killed(
    shared: SharedPools, tmp_path: Path
) -> None:
    async def test(pool: WorkPool) -> None:
        first = asyncio.ensure_future(pool.run(waiting_for(tmp_path, "first")))
        await there(tmp_path / "first.begun")
        stop = asyncio.get_running_loop().create_future()
        second = asyncio.ensure_future(pool.run(waiting_for(tmp_path, "second"), cancelled=stop))
        third = asyncio.ensure_future(pool.run(waiting_for(tmp_path, "third")))
        await asyncio.sleep(0)
        assert pool.waiting == 2
        stop.set_result(None)
        with raises(WorkCancelled, reason="cancelled"):
            await second
        third.cancel()
        with pytest.raises(asyncio.CancelledError):
            await third
        assert pool.waiting == 0 and pool.running == 1
        (tmp_path / "end").touch()
        assert await first in pool.processes
        assert not (tmp_path / "second.begun").exists()
        assert not (tmp_path / "third.begun").exists()

    shared.run(test, 1)


@pytest.mark.nightly
@pytest.mark.parametrize("by", ["future", "caller"])
def test_a_task_that_runs_is_cancelled_by_killing_its_worker(
    shared: SharedPools, tmp_path: Path, by: str
) -> None:
    async def test(pool: WorkPool) -> None:
        stop = asyncio.get_running_loop().create_future()
        running = asyncio.ensure_future(pool.run(waiting_for(tmp_path, "one"), cancelled=stop))
        await there(tmp_path / "one.begun")
        (process,) = pool.processes
        if by == "future":
            stop.set_result(None)
            with raises(WorkCancelled):
                await running
        else:
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        await _gone(process)
        found = await pool.run(asked("who"))
        assert found["process"] != process

    shared.run(test, 1)


@pytest.mark.nightly
def test_a_cancelled_task_that_ends_by_itself_keeps_its_worker(
    shared: SharedPools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("takifugu.server.work.pool.CANCEL_GRACE", PATIENCE)

    async def test(pool: WorkPool) -> None:
        stop = asyncio.get_running_loop().create_future()
        task = waiting_for(tmp_path, "one")
        running = asyncio.ensure_future(pool.run(task, cancelled=stop))
        await there(tmp_path / "one.begun")
        (process,) = pool.processes
        (tmp_path / "end").touch()
        stop.set_result(None)
        with raises(WorkCancelled):
            await running
        assert (await pool.run(asked("who")))["process"] == process

    shared.run(test, 1)


@pytest.mark.nightly
def test_a_task_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async def test(pool: WorkPool) -> None:
        with raises(WorkTimedOut, reason="work-time"):
            await pool.run(waiting_for(tmp_path, "one"))
        pool.settings = replace(pool.settings, work_time=PATIENCE)
        (tmp_path / "end").touch()
        assert await pool.run(waiting_for(tmp_path, "one")) in pool.processes

    with_pool(test, workers=1, work_time=0.1)


@pytest.mark.nightly
def test_one_person_never_has_all_workers(shared: SharedPools, tmp_path: Path) -> None:
    async def test(pool: WorkPool) -> None:
        (tmp_path / "end").touch()
        await pool.run(waiting_for(tmp_path, "short", ANA))  # as such tasks were, so far
        (tmp_path / "end").unlink()
        long = [
            asyncio.ensure_future(pool.run(waiting_for(tmp_path, f"long {n}", ANA)))
            for n in range(3)
        ]
        await there(tmp_path / "long 0.begun")
        for _ in range(3):
            await pool.run(asked("who", BO))  # nobody knows how long this takes
        assert pool.running == 1 and pool.waiting == 2
        assert not (tmp_path / "long 1.begun").exists()
        long.append(asyncio.ensure_future(pool.run(waiting_for(tmp_path, "other", BO))))
        await there(tmp_path / "other.begun")
        (tmp_path / "end").touch()
        await asyncio.gather(*long)

    shared.run(test, 2)


@pytest.mark.nightly
def test_a_person_has_several_workers_while_one_is_left_for_others(
    shared: SharedPools, tmp_path: Path
) -> None:
    async def test(pool: WorkPool) -> None:
        long = [
            asyncio.ensure_future(pool.run(waiting_for(tmp_path, f"long {n}", ANA)))
            for n in range(3)
        ]
        await there(tmp_path / "long 0.begun")
        await there(tmp_path / "long 1.begun")
        await pool.run(asked("who", BO))
        assert pool.running == 2 and pool.waiting == 1
        (tmp_path / "end").touch()
        await asyncio.gather(*long)

    shared.run(test, 3)


RANKING = {
    "kind": "top_k",
    "k": 3,
    "by": ["zone"],
    "confidence": 0.9,
    "reference": [[90, 40, 0], [50, 20, 0], [10, 90, 60]],
}


@pytest.mark.nightly
def test_a_plan_that_takes_too_much_processor_time_is_ended(study: Path) -> None:
    tasks = (
        asked("plan for ever"),
        asked("plan", dataset="stays", query=RANKING),
        asked("release", dataset="stays", query=RANKING, key="k"),
        asked("review-request", OWNER, "stays", query=RANKING, analyst="ana", question=""),
    )

    async def test(pool: WorkPool) -> None:
        for task in tasks:
            with raises(WorkTimedOut, reason="plan-time") as ended:
                await pool.run(task)
            assert "reference" in ended.value.detail, task.name
        assert (await pool.run(asked("who")))["process"] in pool.processes

    with_pool(test, study, workers=1, plan_time=1e-4)


@pytest.mark.nightly
def test_one_worker_serves_everybody_in_turn(shared: SharedPools, tmp_path: Path) -> None:
    async def test(pool: WorkPool) -> None:
        ended = list[str]()

        async def one(task: object, name: str) -> None:
            await pool.run(task)  # type: ignore[arg-type]
            ended.append(name)

        first = asyncio.ensure_future(pool.run(waiting_for(tmp_path, "first")))
        await there(tmp_path / "first.begun")
        mine = [asyncio.ensure_future(one(asked("who", ANA), "ana")) for _ in range(5)]
        await asyncio.sleep(0)
        others = [asyncio.ensure_future(one(asked("who", BO), "bo")) for _ in range(2)]
        await asyncio.sleep(0)
        (tmp_path / "end").touch()
        await asyncio.gather(first, *mine, *others)
        assert ended == ["bo", "ana", "bo", "ana", "ana", "ana", "ana"]

    shared.run(test, 1)


@pytest.mark.nightly
def test_a_worker_that_is_idle_ends_and_another_is_started_when_it_is_needed() -> None:
    async def test(pool: WorkPool) -> None:
        process = (await pool.run(asked("who")))["process"]
        await _gone(process)
        while pool.processes:
            await asyncio.sleep(0.01)
        assert (await pool.run(asked("who")))["process"] != process

    with_pool(test, worker_idle=0.05)


@pytest.mark.nightly
def test_closing_ends_what_waits_and_what_runs(tmp_path: Path) -> None:
    async def test(pool: WorkPool) -> None:
        tasks = [waiting_for(tmp_path, "one"), waiting_for(tmp_path, "two")]
        running = [asyncio.ensure_future(pool.run(task)) for task in tasks]
        await there(tmp_path / "one.begun")
        (process,) = pool.processes
        await pool.close()
        assert not _is_there(process)
        for future in running:
            with pytest.raises(WorkFailed):
                await future
        with raises(WorkCancelled):
            await pool.run(asked("who"))

    with_pool(test, workers=1)


@pytest.mark.nightly
def test_workers_that_cannot_be_started_are_a_problem_and_no_endless_wait(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def run() -> None:
        pool = WorkPool(NO_PROJECT, ServerSettings(), modules=("tests.server.work.no_such_module",))
        assert pool.able
        with raises(WorkerLost):
            await pool.run(asked("who"))
        assert not pool.able
        await pool.close()

    asyncio.run(run())
    assert "a worker ended: ModuleNotFoundError at " in caplog.text
    assert "printed" not in caplog.text


SERVER = """
import asyncio, sys
from pathlib import Path
from tests.server.work.pools import pool_of, waiting_for, there

async def run(folder):
    async with pool_of(workers=2) as pool:
        task = asyncio.ensure_future(pool.run(waiting_for(folder, "one")))
        await there(folder / "one.begun")
        print(*pool.processes, flush=True)
        await task

asyncio.run(run(Path(sys.argv[1])))
"""


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks processes up in /proc")
def test_workers_end_with_a_server_that_is_killed(tmp_path: Path) -> None:
    server = subprocess.Popen(  # noqa: S603 - our own interpreter and arguments
        [sys.executable, "-c", SERVER, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        assert server.stdout is not None
        workers = [int(word) for word in server.stdout.readline().split()]
        assert workers and all(map(_is_there, workers))
        server.send_signal(signal.SIGKILL)
        server.wait()
        for _ in range(PATIENCE * 100):
            if not any(map(_is_there, workers)):
                break
            sleep(0.01)
    assert not any(map(_is_there, workers))
