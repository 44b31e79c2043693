"""Jobs: watched, waited for, joined and cancelled."""

import asyncio
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from takifugu.server.api.problems import WorkFailed, json_bytes
from takifugu.server.work import jobs
from takifugu.server.work.jobs import Job, JobBoard
from takifugu.server.work.pool import WorkPool
from takifugu.server.work.tasks import EncodedJson
from tests.raising import raises
from tests.server.work.pools import (
    ANA,
    BO,
    SharedPools,
    asked,
    there,
    waiting_for,
    with_pool,
)

PATIENCE = 120.0


async def _seen(job: Job) -> list[tuple[str, str]]:
    return [(event.kind, event.text) async for event in job.events()]


@pytest.mark.nightly
def test_a_job_runs_to_its_end_and_can_be_watched_meanwhile_and_after(shared: SharedPools) -> None:
    async def test(pool: WorkPool) -> None:
        board = JobBoard(pool)
        job = board.start(ANA, asked("say", lines=["one", "two"]))
        assert job.state == "waiting" and not job.ended
        expected = [("progress", "one"), ("progress", "two"), ("end", "done")]
        assert await _seen(job) == expected
        assert await _seen(job) == expected
        assert await job.wait(0)
        assert (job.state, job.result, job.problem) == ("done", b"said", None)
        assert board.get(job.id) is job and board.get("another") is None

    shared.run(test)


def test_no_name_of_a_job_can_look_like_a_token() -> None:
    async def names() -> set[str]:
        return {Job(ANA, asked("say")).id for _ in range(100)}

    found = asyncio.run(names())
    assert len(found) == 100 and all(re.fullmatch("[0-9a-f]{32}", one) for one in found)


@pytest.mark.nightly
def test_a_result_can_be_had_as_the_json_of_a_response(study: Path) -> None:
    async def test(pool: WorkPool) -> None:
        task = asked("plan", ANA, "stays", query={"kind": "histogram", "epsilon": "1"})
        plain = await pool.run(task)
        found = await pool.run(replace(task, encoded=True))
        assert isinstance(found, EncodedJson) and found.content == json_bytes(plain)
        assert found.document() == json.loads(json.dumps(plain))
        with raises(WorkFailed):  # an error is the same problem document
            await pool.run(replace(asked("fail", own=True), encoded=True))

    with_pool(test, study)


@pytest.mark.nightly
def test_what_takes_long_tells_what_is_being_done(study: Path) -> None:
    text = study.read_text(encoding="utf-8")
    head = "[dataset.stays]\n"
    study.write_text(text.replace(head, f"{head}table = true\n"), encoding="utf-8")

    async def test(pool: WorkPool) -> None:
        query = {"kind": "histogram", "by": ["zone"], "epsilon": "1"}
        task = asked("plan", ANA, "stays", query=query)
        *lines, end = await _seen(JobBoard(pool).start(ANA, task))
        assert [kind for kind, _ in lines] == ["progress"] * len(lines)
        assert lines[0][1] == "opening stays" and end == ("end", "done")
        assert any(text.startswith("tabulating, ") for _, text in lines)
        assert await _seen(JobBoard(pool).start(ANA, task)) == [("end", "done")]  # it is open

    with_pool(test, study)


@pytest.mark.nightly
def test_a_job_that_fails_has_its_problem(shared: SharedPools) -> None:
    async def test(pool: WorkPool) -> None:
        job = JobBoard(pool).start(ANA, asked("fail", own=True))
        assert await _seen(job) == [("end", "failed")]
        assert job.problem is not None and job.problem["reason"] == "too-much"
        lost = JobBoard(pool).start(ANA, asked("die", key="k"))
        assert await lost.wait(PATIENCE) and lost.state == "failed"
        assert lost.problem is not None and lost.problem["reason"] == "worker-lost"

    shared.run(test)


@pytest.mark.nightly
def test_a_job_is_cancelled_whether_it_waits_or_runs(shared: SharedPools, tmp_path: Path) -> None:
    async def test(pool: WorkPool) -> None:
        board = JobBoard(pool)
        first = board.start(ANA, waiting_for(tmp_path, "first"))
        second = board.start(BO, waiting_for(tmp_path, "second"))
        await there(tmp_path / "first.begun")
        assert not await first.wait(0.001)
        assert (first.state, second.state) == ("running", "waiting")
        for job in (second, first):
            job.cancel()
            assert await job.wait(PATIENCE) and job.state == "cancelled"
            assert job.problem is not None and job.problem["reason"] == "cancelled"
        first.cancel()
        assert first.state == "cancelled"
        assert not (tmp_path / "second.begun").exists()

    shared.run(test, 1)


@pytest.mark.nightly
def test_the_same_key_joins_what_is_running_and_only_the_same_request(
    shared: SharedPools, tmp_path: Path
) -> None:
    async def test(pool: WorkPool) -> None:
        board = JobBoard(pool)
        task = waiting_for(tmp_path, "one")
        keyed = asked("wait", ANA, key="k", **task.options)
        job = board.start(ANA, keyed)
        assert board.start(ANA, keyed) is job
        assert board.start(BO, asked("wait", BO, key="k", **task.options)) is not job
        assert board.start(ANA, task) is not job  # without a key nothing is the same
        with raises(WorkFailed, reason="key") as refused:
            board.start(ANA, asked("wait", ANA, key="k", begun="x", until="y"))
        assert refused.value.status == 409
        (tmp_path / "end").touch()
        assert await job.wait(PATIENCE)
        again = board.start(ANA, keyed)
        assert again is not job  # it has ended: whether it is repeated is for the ledger to say
        assert await board.drain(PATIENCE)

    shared.run(test)


@pytest.mark.nightly
def test_nobody_fills_the_queue(
    shared: SharedPools, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_OPEN_JOBS", 2)

    async def test(pool: WorkPool) -> None:
        board = JobBoard(pool)
        for _ in range(2):
            board.start(ANA, waiting_for(tmp_path, "one"))
        with raises(WorkFailed, reason="jobs") as refused:
            board.start(ANA, waiting_for(tmp_path, "one"))
        assert refused.value.status == 429
        board.start(BO, waiting_for(tmp_path, "one"))
        assert not await board.drain(0.01)
        board.cancel_all()
        assert await board.drain(PATIENCE)
        assert {job.state for job in board.jobs()} == {"cancelled"}

    shared.run(test, 1)


@pytest.mark.nightly
def test_jobs_are_forgotten_after_their_end(
    shared: SharedPools, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(pool: WorkPool) -> None:
        board = JobBoard(pool)
        first = board.start(ANA, asked("who", key="k"))
        assert await first.wait(PATIENCE)
        assert board.get(first.id) is first
        monkeypatch.setattr(jobs, "ENDED_JOB_SECONDS", -1.0)
        assert board.get(first.id) is None and board.jobs() == ()
        monkeypatch.setattr(jobs, "ENDED_JOB_SECONDS", PATIENCE)
        monkeypatch.setattr(jobs, "MAX_ENDED_JOBS", 1)
        made = [board.start(ANA, asked("who")) for _ in range(3)]
        for job in made:
            assert await job.wait(PATIENCE)
        assert board.get(made[-1].id) is made[-1] and board.jobs() == (made[-1],)

    shared.run(test)


@pytest.mark.nightly
def test_of_one_person_few_results_are_kept_and_no_documents(
    shared: SharedPools, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "MAX_ENDED_JOBS_EACH", 2)

    async def test(pool: WorkPool) -> None:
        board = JobBoard(pool)
        theirs = board.start(BO, asked("who"))
        assert await theirs.wait(PATIENCE)
        made = []
        for _ in range(4):
            made.append(board.start(ANA, asked("say", lines=["long"] * 10)))
            assert await made[-1].wait(PATIENCE)
        assert await board.drain(PATIENCE)
        assert board.jobs() == (theirs, *made[2:])
        assert all(job.task.options == {} for job in board.jobs())
        board.drop(made[2])
        assert board.get(made[2].id) is None and board.get(made[3].id) is made[3]

    shared.run(test)


@pytest.mark.nightly
def test_one_that_stops_watching_disturbs_nobody(shared: SharedPools) -> None:
    async def test(pool: WorkPool) -> None:
        job = JobBoard(pool).start(ANA, asked("say", lines=["one", "two", "three"]))
        watching = asyncio.ensure_future(_seen(job))
        await asyncio.sleep(0)
        watching.cancel()
        assert (await _seen(job))[-1] == ("end", "done")

    shared.run(test)
