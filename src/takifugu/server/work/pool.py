"""The pool of workers: who gets one, for how long, and what happens when one is lost.

Order. Everybody has a queue of their own. Whoever has the fewest tasks running is next; of these,
who was served least recently. So one analyst with a hundred requests delays another by one.

The last free worker is for somebody who has nothing running. So one person never has all workers,
where there are two or more, whatever they ask for: how long a task will take is not known before
it has ended, and nobody else waits for it.

Ends. A task ends with its result, with the problem that the worker made of an error, by being
cancelled, after `ServerSettings.work_time`, when a plan in it has taken more processor time than
`ServerSettings.plan_time`, or with its worker. Cancelling a task that runs gives it `CANCEL_GRACE`
to end by itself, because most do and a worker that is killed must open its datasets again, then
kills the worker; the one who waits is answered at once. A release ends at a step of time, in its
worker (`dataset_tasks`): so does whatever depends on that here, for whoever waits for the worker,
for who cancels, and for who counts what is running. A worker that is lost in the middle of a task
is missed at a step, too. One that ended while it was idle is given no task.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from takifugu.project.server_section import ServerSettings
from takifugu.server.api.problems import WorkFailed
from takifugu.server.work.tasks import (
    TASK_MODULES,
    EncodedJson,
    Task,
    WorkCancelled,
    WorkerLost,
    WorkTimedOut,
)
from takifugu.server.work.worker_process import Progress, WorkerGone, WorkerProcess
from takifugu.session.time_steps import until_step

CANCEL_GRACE = 0.5  # seconds that a cancelled task may still run
UNABLE_SECONDS = 30.0  # seconds for which a server that could start no worker is not ready
MAX_FAILED_STARTS = 3  # workers that end before they are ready, one after another, until work fails

log = logging.getLogger("takifugu.server.work")


@dataclass(eq=False)
class _Waiting:
    """A task in the queue, and where its end will be told."""

    task: Task
    number: int
    progress: Progress | None
    started: "asyncio.Future[WorkerProcess]" = field(default_factory=asyncio.Future)

    @property
    def who(self) -> str:
        return self.task.actor.name


class WorkPool:
    """Runs tasks in worker processes; to be used in one event loop."""

    def __init__(
        self, project_file: Path, settings: ServerSettings, *, modules: Sequence[str] = TASK_MODULES
    ) -> None:
        self.project_file, self.settings = project_file, settings
        self._modules = tuple(modules)
        self._workers: list[WorkerProcess] = []
        self._queue: list[_Waiting] = []
        self._numbers = count()
        self._served = dict[str, int]()  # by person, when a task of theirs was last begun
        self._background = set[asyncio.Task[None]]()
        self._failed_starts = 0
        self._unable_since: float | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many tasks wait for a worker."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """How many tasks are being done."""
        return sum(worker.task is not None for worker in self._workers)

    @property
    def able(self) -> bool:
        """Whether workers can be started, as far as is known; see `UNABLE_SECONDS`."""
        since = self._unable_since
        return not self._closed and (since is None or monotonic() - since > UNABLE_SECONDS)

    @property
    def processes(self) -> tuple[int, ...]:
        """The numbers of the processes of the workers."""
        return tuple(worker.pid for worker in self._workers)

    async def run(
        self,
        task: Task,
        progress: Progress | None = None,
        cancelled: "asyncio.Future[None] | None" = None,
        started: Callable[[], None] | None = None,
    ) -> Any:
        """Have a worker do a task, and return what it returned.

        Args:
            task: What to do.
            progress: Called with lines of progress.
            cancelled: A future that the caller sets to cancel it. A caller that is itself cancelled
                cancels it too.
            started: Called when a worker begins.

        Raises:
            WorkFailed: The task ended with an error.
            WorkCancelled: It was cancelled.
            WorkerLost: The worker ended in the middle of it.
            WorkTimedOut: It took too long.
        """
        if self._closed:
            raise WorkCancelled(task, "the server is stopping")
        item = _Waiting(task, next(self._numbers), progress)
        self._queue.append(item)
        self._dispatch()
        worker = await self._assigned(item, cancelled)
        if started is not None:
            started()
        return await self._result(item, worker, cancelled)

    async def _assigned(self, item: _Waiting, stop: "asyncio.Future[Any] | None") -> WorkerProcess:
        """The worker that will do a task, once one is free for it."""
        waits = {item.started} if stop is None else {item.started, stop}
        try:
            if not item.started.done():
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._withdraw(item)
            raise
        if stop is not None and stop.done():
            self._withdraw(item)
            raise WorkCancelled(item.task)
        return item.started.result()

    def _withdraw(self, item: _Waiting) -> None:
        """Take a task out of the queue, or give back the worker that it just got."""
        if item in self._queue:
            self._queue.remove(item)
        elif item.started.done() and item.started.exception() is None:
            worker = item.started.result()
            worker.task, worker.since = None, monotonic()
        self._dispatch()

    async def _result(
        self, item: _Waiting, worker: WorkerProcess, stop: "asyncio.Future[Any] | None"
    ) -> Any:
        """What a worker makes of the task that it was given."""
        work = asyncio.ensure_future(worker.do(item.task, item.progress))
        waits: set[asyncio.Future[Any]] = {work} if stop is None else {work, stop}
        try:
            await asyncio.wait(
                waits, timeout=self.settings.work_time, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            self._later(self._let_end(work, worker))
            raise
        if not work.done():
            item.progress = None
            if stop is not None and stop.done():
                self._later(self._let_end(work, worker))
                raise WorkCancelled(item.task)
            limit = self.settings.work_time
            log.warning("task %r took longer than %g s and was ended", item.task.name, limit)
            worker.kill()
            self._later(self._let_end(work, worker))
            raise WorkTimedOut(item.task, limit)
        try:
            kind, content = work.result()
        except WorkerGone:
            log.error("worker %d was lost during task %r", worker.pid, item.task.name)
            planned_too_long = await worker.planned_too_long()
            if item.task.key is not None:
                took = monotonic() - worker.since
                await asyncio.sleep(until_step(took, self.settings.time_step))
            if planned_too_long:
                raise WorkTimedOut(item.task, self.settings.plan_time, planning=True) from None
            raise WorkerLost(item.task) from None
        finally:
            self._free(worker)
        if kind == "problem":
            raise WorkFailed.from_document(content)
        return EncodedJson(content) if item.task.encoded else content

    async def _let_end(
        self, work: "asyncio.Future[tuple[str, Any]]", worker: WorkerProcess
    ) -> None:
        """Let a task that nobody waits for end by itself; kill its worker if it does not."""
        await asyncio.wait({work}, timeout=CANCEL_GRACE)
        if not work.done():
            worker.kill()
            await asyncio.wait({work})
        with contextlib.suppress(WorkerGone):
            work.result()
        self._free(worker)

    # --- who is next ---

    def _free(self, worker: WorkerProcess) -> None:
        """A worker ended a task: give it the next one."""
        worker.task, worker.since = None, monotonic()
        if worker.lost:
            self._remove(worker)
        self._dispatch()

    def _dispatch(self) -> None:
        """Give free workers what waits; start one more if that is not enough."""
        if self._closed:
            return
        for worker in [
            candidate for candidate in self._workers if candidate.idle and candidate.gone
        ]:
            log.error("worker %d ended while it was idle", worker.pid)
            worker.kill()
            self._remove(worker)
        while self._queue and (
            idle := [candidate for candidate in self._workers if candidate.idle]
        ):
            assigned = self._next(idle)
            if assigned is None:
                break
            item, worker = assigned
            self._queue.remove(item)
            if item.started.done():  # cancelled meanwhile
                continue
            self._served[item.who] = next(self._numbers)
            worker.task, worker.since = item.task, monotonic()
            item.started.set_result(worker)
        starting = any(not worker.ready and not worker.lost for worker in self._workers)
        enough = starting or any(worker.idle for worker in self._workers)
        if self._queue and not enough and len(self._workers) < self.settings.workers:
            self._start()

    def _next(self, idle: list[WorkerProcess]) -> tuple[_Waiting, WorkerProcess] | None:
        """The next task that may have one of the idle workers, and which of them."""
        waiting = {item.who for item in self._queue}
        running = defaultdict[str, int](int)
        for worker in self._workers:
            if worker.task is not None:
                running[worker.task.actor.name] += 1
        served = self._served = {who: self._served.get(who, -1) for who in running.keys() | waiting}

        def turn(item: _Waiting) -> tuple[int, int, int]:
            return running[item.who], served[item.who], item.number

        item = min(self._queue, key=turn)
        if running[item.who] and self.settings.workers - self.running <= 1:
            return None  # everybody who waits has something running
        dataset = item.task.dataset
        return item, next((worker for worker in idle if dataset in worker.datasets), idle[0])

    # --- processes ---

    def _start(self) -> None:
        try:
            worker = WorkerProcess.start()
        except OSError as error:  # no memory, no processes left
            log.error("no worker can be started: %s", error.strerror)
            self._fail_waiting()
            return
        self._workers.append(worker)
        self._later(self._begin(worker))

    async def _begin(self, worker: WorkerProcess) -> None:
        try:
            await worker.begin(self.project_file, self._modules, self.settings)
        except WorkerGone:
            self._remove(worker)
            self._failed_starts += 1
            log.error("worker %d ended before it was ready", worker.pid)
            if self._failed_starts >= MAX_FAILED_STARTS:
                self._failed_starts = 0
                self._fail_waiting()
        else:
            self._failed_starts, self._unable_since = 0, None
            self._retire(worker)
        self._dispatch()

    def _fail_waiting(self) -> None:
        """No worker can be started: whoever waits is told so, rather than left to wait."""
        self._unable_since = monotonic()
        waiting, self._queue = self._queue, []
        for item in waiting:
            if not item.started.done():
                item.started.set_exception(WorkerLost(item.task))

    def _retire(self, worker: WorkerProcess) -> None:
        """Let a worker end that was idle for long enough; otherwise look again when it may be."""
        if worker.lost:
            return
        left = self.settings.worker_idle - (monotonic() - worker.since)
        if worker.idle and left <= 0:
            worker.dismiss()
            self._remove(worker)
            return
        again = left if left > 0 else self.settings.worker_idle
        asyncio.get_running_loop().call_later(max(again, 0.01), self._retire, worker)

    def _remove(self, worker: WorkerProcess) -> None:
        if worker in self._workers:
            self._workers.remove(worker)
            self._later(self._reap(worker))

    async def _reap(self, worker: WorkerProcess) -> None:
        if not await worker.ended(5):
            worker.kill()
            await worker.ended(5)
        await worker.close_output()

    def _later(self, work: Any) -> None:
        started = asyncio.ensure_future(work)
        self._background.add(started)
        started.add_done_callback(self._background.discard)

    async def close(self) -> None:
        """End every worker; tasks that wait or run are cancelled."""
        self._closed = True
        waiting, self._queue = self._queue, []
        for item in waiting:
            if not item.started.done():
                item.started.set_exception(WorkCancelled(item.task, "the server is stopping"))
        for worker in list(self._workers):
            if worker.idle:
                worker.dismiss()
            else:
                worker.kill()
            self._remove(worker)
        while self._background:
            await asyncio.gather(*self._background, return_exceptions=True)
