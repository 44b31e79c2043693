"""Answers that take long: jobs that are followed, shown, lost, and cancelled."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

import takifugu as tf
from takifugu.client import ServerRefused, ServerUnreachable
from takifugu.client.remote_dataset import answered
from takifugu.session import StalePlan
from takifugu.session.activity import Activity
from tests.client.listening import Listening, listening
from tests.client.test_connecting import answer, exchange, problem, scripted
from tests.raising import raises
from tests.server.projects import small_project

JOB = "/api/v1/jobs/j1"


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Listening]:
    """A server that waits for nothing: every task is answered as a job."""
    folder = tmp_path_factory.mktemp("slow") / "a study"
    with listening(small_project(folder, budget="100"), wait=0.0, workers=1) as running:
        yield running


class Shown:
    """A place where activities are shown, for tests."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def show(self, text: str) -> None:
        """Keep it."""
        self.texts.append(text)

    def clear(self) -> None:
        """Keep that nothing is left."""
        self.texts.append("")


@pytest.mark.nightly
def test_answers_that_come_as_jobs_are_the_same(slow: Listening) -> None:
    with tf.connect(slow.url, slow.tokens["ana"]) as connection:
        dataset = connection.dataset("stays")
        plan = dataset.plan.histogram(by="zone", epsilon="0.5")
        result = dataset.release(plan)
        assert dataset.release(plan).rows == result.rows
        assert dataset.spent() == dataset.budget.spent > 0 and dataset.guarantee()
        other = dataset.plan.histogram(epsilon=1)
        with raises(StalePlan, differences=("plan",)):
            dataset.release(replace(plan, options=other.options))


def test_what_a_job_says_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("takifugu.session.activity.DELAY", 0.0)
    monkeypatch.setattr("takifugu.session.activity.TICK", 0.01)
    lines = (
        b'event: progress\ndata: {"text": "translating"}\n\n: still running\n\n'
        b'event: end\ndata: {"id": "j1", "state": "done", "result": {"a": 1}, "problem": null}\n\n'
    )
    script = [answer(202, {"id": "j1"}, f"Location: {JOB}"), answer(200, body=lines)]
    shown = Shown()
    with (
        scripted(script) as port,
        exchange(port) as asking,
        Activity("planning", shown) as activity,
    ):
        assert answered(asking, "POST", "/x", activity, document={}) == {"a": 1}
        until = time.monotonic() + 20
        while not any("translating" in text for text in shown.texts):
            assert time.monotonic() < until
            time.sleep(0.01)
    assert shown.texts[-1] == ""


def nothing() -> Activity:
    return Activity("", None)


@pytest.mark.nightly
def test_a_job_without_a_stream_is_looked_at_from_time_to_time() -> None:
    running = answer(200, {"id": "j1", "state": "running"})
    done = answer(200, {"id": "j1", "state": "done", "result": 7})
    accepted = answer(202, {"id": "j1"}, f"Location: {JOB}")
    for stream in (problem(404, "no-job"), answer(200, body=b"event: progress\ndata: {\n\n"), b""):
        with scripted([accepted, stream, running, done]) as port, exchange(port) as asking:
            assert answered(asking, "POST", "/x", nothing(), document={}) == 7


@pytest.mark.nightly
def test_a_job_that_the_server_forgot_or_lost_is_asked_for_again() -> None:
    seen: list[bytes] = []
    accepted = answer(202, {"id": "j1"}, f"Location: {JOB}")
    lost = {"id": "j1", "state": "failed", "problem": {
        "type": "urn:takifugu:problem:WorkerLost", "detail": "lost", "status": 503}}  # fmt: skip
    gone = problem(404, "no-job")
    script = [accepted, gone, gone, accepted, gone, answer(200, lost), answer(201, {"ok": 1})]
    key = {"Idempotency-Key": "k1"}
    with scripted(script, seen=seen) as port, exchange(port) as asking:
        found = answered(asking, "POST", "/x", nothing(), document={}, headers=key)
        assert found == {"ok": 1}
    asked = [one for one in seen if one.startswith(b"POST")]
    assert len(asked) == 3 and all(b"Idempotency-Key: k1" in one for one in asked)
    with (
        scripted([accepted, gone, gone] * 50) as port,
        exchange(port, 0.5) as asking,
        raises(ServerUnreachable, reason="lost"),
    ):
        answered(asking, "POST", "/x", nothing())
    with (
        scripted([accepted, gone, answer(200, lost)] * 50) as port,
        exchange(port, 0.5) as asking,
        raises(ServerRefused, code="WorkerLost"),
    ):
        answered(asking, "POST", "/x", nothing())


def test_a_job_that_was_cancelled_elsewhere_is_an_error() -> None:
    accepted = answer(202, {"id": "j1"}, f"Location: {JOB}")
    ended = answer(200, {"id": "j1", "state": "cancelled", "result": None, "problem": None})
    with (
        scripted([accepted, problem(404, "x"), ended]) as port,
        exchange(port) as asking,
        raises(ServerRefused, code="cancelled", reason="cancelled"),
    ):
        answered(asking, "POST", "/x", nothing())


@pytest.mark.nightly
def test_an_interrupt_cancels_the_job(slow: Listening) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with tf.connect(slow.url, slow.tokens["ana"]) as connection:
            dataset = connection.dataset("stays")
            dataset.plan.histogram(epsilon=1)  # a worker is there
            (worker,) = slow.services.pool.processes
            os.kill(worker, signal.SIGSTOP)  # it takes for ever now

            def interrupt() -> None:
                until = time.monotonic() + 60
                while not slow.services.pool.running and time.monotonic() < until:
                    time.sleep(0.01)
                time.sleep(0.3)
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                dataset.plan.histogram(epsilon=2)
            thread.join()
            until = time.monotonic() + 60
            while slow.services.pool.running and time.monotonic() < until:
                time.sleep(0.01)
            assert not slow.services.pool.running and worker not in slow.services.pool.processes
            assert dataset.plan.histogram(epsilon=2).cost.fits  # the next one has a new worker
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.nightly
def test_a_worker_that_is_killed_is_not_noticed(slow: Listening) -> None:
    with tf.connect(slow.url, slow.tokens["bo"]) as connection:
        dataset = connection.dataset("stays")
        plan = dataset.plan.histogram(epsilon="0.37")
        for worker in slow.services.pool.processes:
            os.kill(worker, signal.SIGKILL)
        before = len(dataset.history())
        result = dataset.release(plan)
        assert not result.free and len(dataset.history()) == before + 1
