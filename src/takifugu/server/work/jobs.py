"""Jobs: tasks that were asked for, which people may watch, wait for and cancel.

A job outlives the request that started it. It is kept in memory for a while after its end and is
lost when the server stops: what was charged and released is in the ledger, and the same request
with the same key finds it there.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Literal

from takifugu.server.access_rules import Actor
from takifugu.server.api.problems import Problem, WorkFailed
from takifugu.server.work.pool import WorkPool
from takifugu.server.work.tasks import Task, WorkCancelled

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]
ENDED: tuple[JobState, ...] = ("done", "failed", "cancelled")
MAX_PROGRESS_LINES = 200  # of progress, for those who begin to watch later
ENDED_JOB_SECONDS = 600.0  # seconds that a job is kept after its end
MAX_ENDED_JOBS = 2_000  # that have ended
MAX_ENDED_JOBS_EACH = 20  # of one person: their results may be large
MAX_OPEN_JOBS = 50  # jobs of one person that have not ended


@dataclass(frozen=True)
class JobEvent:
    """Something that happened to a job.

    Attributes:
        kind: "progress", or "end", which is the last.
        text: The line of progress; at the end the state.
    """

    kind: Literal["progress", "end"]
    text: str


class Job:
    """One task, from when it was asked for to its end.

    Attributes:
        id: What to ask for it by; cannot be guessed.
        actor: Whose it is.
        task: What is to be done.
        state: Where it is.
        result: What the worker returned, if it is done.
        problem: Why there is no result, if it failed or was cancelled.
    """

    def __init__(self, actor: Actor, task: Task) -> None:
        self.id = secrets.token_hex(16)  # stands in addresses, where nothing may look like a token
        self.actor, self.task = actor, task
        self.state: JobState = "waiting"
        self.result: Any = None
        self.problem: dict[str, Any] | None = None
        self.ended_at: float | None = None
        self._lines = deque[tuple[int, str]](maxlen=MAX_PROGRESS_LINES)
        self._number = 0
        self._changed = asyncio.Event()
        self._ended = asyncio.Event()
        self._cancelled = asyncio.get_running_loop().create_future()

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ENDED

    async def wait(self, seconds: float) -> bool:
        """Wait for its end, for at most so long; whether it has ended."""
        if not self.ended:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._ended.wait()
        return self.ended

    async def events(self) -> AsyncIterator[JobEvent]:
        """The lines of progress so far, those that come, and then the end."""
        seen = 0
        while True:
            changed = self._changed
            for number, text in tuple(self._lines):
                if number > seen:
                    seen = number
                    yield JobEvent("progress", text)
            if self.ended:
                yield JobEvent("end", self.state)
                return
            if changed is self._changed:
                await changed.wait()

    def cancel(self) -> None:
        """Have it end, within a second if it runs; one that has ended stays as it is."""
        if not self._cancelled.done():
            self._cancelled.set_result(None)

    def _progress(self, text: str) -> None:
        if not self.ended:
            self._number += 1
            self._lines.append((self._number, text))
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def run(self, pool: WorkPool) -> None:
        """Have the pool do it; the board calls this, once."""
        try:
            self.result = await pool.run(
                self.task, self._progress, self._cancelled, started=self._begun
            )
            self.state = "done"
        except WorkCancelled as error:
            self.state, self.problem = "cancelled", error.document()
        except WorkFailed as error:
            self.state, self.problem = "failed", error.document()
        except BaseException:
            self.state = "failed"
            self.problem = Problem(
                500, "server", "the job could not be run", title="The job ended"
            ).document()
            raise
        finally:
            self.ended_at = monotonic()
            self._ended.set()
            self._wake()

    def _begun(self) -> None:
        self.state = "running"


class JobBoard:
    """The jobs of a server, in one event loop."""

    def __init__(self, pool: WorkPool) -> None:
        self._pool = pool
        self._jobs = dict[str, Job]()
        self._running = set[asyncio.Task[None]]()
        self._past = deque[Job]()  # those that have ended, in the order of their ends

    def start(self, actor: Actor, task: Task) -> Job:
        """Begin a job; the one that runs already, if it is the same request with the same key.

        Raises:
            WorkFailed: Another request of the same person with the same key is running (status
                409), or too many requests of theirs are (429).
        """
        self._forget()
        theirs = [
            job for job in self._jobs.values() if not job.ended and job.actor.name == actor.name
        ]
        for known in theirs:
            if task.key is None or (known.task.name, known.task.key) != (task.name, task.key):
                continue
            if known.task.dataset == task.dataset and known.task.options == task.options:
                return known
            raise WorkFailed(
                *(409, "LedgerConflict"),
                "another request with this idempotency key is running; use a new key for another"
                " request",
                title="The key is in use",
                field="Idempotency-Key",
                reason="key",
            )
        if len(theirs) >= MAX_OPEN_JOBS:
            raise WorkFailed(
                *(429, "TooManyJobs"),
                f"{len(theirs)} requests of {actor.name} have not ended yet; wait for one of them",
                title="Too many requests at once",
                reason="jobs",
            )
        job = Job(actor, task)
        self._jobs[job.id] = job
        running = asyncio.ensure_future(self._run(job))
        self._running.add(running)
        running.add_done_callback(self._finished)
        return job

    async def _run(self, job: Job) -> None:
        try:
            await job.run(self._pool)
        finally:
            job.task = replace(job.task, options={})  # which may hold a whole document
            self._past.append(job)
            theirs = [past for past in self._past if past.actor.name == job.actor.name]
            for past in theirs[:-MAX_ENDED_JOBS_EACH]:
                self.drop(past)

    def _finished(self, running: "asyncio.Task[None]") -> None:
        self._running.discard(running)
        if not running.cancelled():
            running.exception()  # it is the job's problem already

    def get(self, identity: str) -> Job | None:
        """The job of that name, if it is known and was not forgotten."""
        self._forget()
        return self._jobs.get(identity)

    def jobs(self) -> tuple[Job, ...]:
        """Every job that is known, the oldest first."""
        return tuple(self._jobs.values())

    async def drain(self, seconds: float) -> bool:
        """Wait until every job has ended, for at most so long; whether all have."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)
        return not self._running

    def cancel_all(self) -> None:
        """Cancel whatever has not ended: the server stops."""
        for job in self._jobs.values():
            if not job.ended:
                job.cancel()

    def _forget(self) -> None:
        """Forget jobs that ended long ago, and the first to end of those that are too many."""
        now = monotonic()
        while self._past:
            job = self._past[0]
            if (
                len(self._past) <= MAX_ENDED_JOBS
                and now - (job.ended_at or now) <= ENDED_JOB_SECONDS
            ):
                return
            self.drop(job)

    def drop(self, job: Job) -> None:
        """Forget a job that has ended, such as one whose answer was given at once."""
        if not job.ended or self._jobs.pop(job.id, None) is None:
            return
        with suppress(ValueError):  # it is just ending
            self._past.remove(job)
