"""The pool of workers: who gets one, for how long, and what happens when one is lost.

Order. Everybody has a queue of their own. Whoever has the fewest tasks running is next; of these,
who was served least recently. So one analyst with a hundred requests delays another by one.

Short tasks. A plan takes hundredths of a second, the first translation under a large prior minutes.
Where there are two workers or more, long tasks never have all of them: one waits while the others
do, and what is short runs past it. Short is what took less than `LONG` seconds the last times, on a
dataset that is open already or that opened quickly; a task of a kind or on a dataset that was not
seen yet is taken to be long. `LONG` is two seconds: well above what a plan takes, so that a busy
machine makes no plan look long, and about as long as people wait without wondering. What turns out
to be long although it was expected to be short keeps its worker, since to start it anew elsewhere
would take longer still.

Ends. A task ends with its result, with the problem that the worker made of an error, by being
cancelled, after `ServerSettings.work_time`, or with its worker. Cancelling a task that runs gives
it `GRACE` to end by itself, because most do and a worker that is killed must open its datasets
again, then kills the worker; the one who waits is answered at once. A release ends at a step of
time, in its worker (`query_tasks`): so does whatever depends on that here, for whoever waits for
the worker, for who cancels, and for who counts what is running. A worker that is lost in the middle
of a task is missed at a step, too. One that ended while it was idle is given no task.
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

from takifugu.server.settings import ServerSettings
from takifugu.server.work.tasks import TASK_MODULES, EncodedJson, Task
from takifugu.server.work.work_errors import (
    WorkCancelled,
    WorkerLost,
    WorkFailed,
    WorkTimedOut,
)
from takifugu.server.work.worker_process import Progress, WorkerGone, WorkerProcess
from takifugu.session.time_steps import until_step

LONG = 2.0  # seconds from which on a task is long
GRACE = 0.5  # seconds that a cancelled task may still run
FADING = 0.8  # of what a kind of task took, when it takes less: long ones are forgotten slowly
UNABLE = 30.0  # seconds for which a server that could start no worker is not ready
TRIES = 3  # workers that end before they are ready, one after another, until work fails

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
        self,
        project_file: Path,
        settings: ServerSettings,
        *,
        modules: Sequence[str] = TASK_MODULES,
    ) -> None:
        self.project_file, self.settings = project_file, settings
        self._modules = tuple(modules)
        self._workers: list[WorkerProcess] = []
        self._queue: list[_Waiting] = []
        self._numbers = count()
        self._served = dict[str, int]()  # by person, when a task of theirs was last begun
        self._background = set[asyncio.Task[None]]()
        self._took = dict[tuple[str, str | None], float]()
        self._opening = dict[str, float]()
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
        """Whether workers can be started, as far as is known: failures count for `UNABLE`."""
        since = self._unable_since
        return not self._closed and (since is None or monotonic() - since > UNABLE)

    @property
    def processes(self) -> tuple[int, ...]:
        """The numbers of the processes of the workers."""
        return tuple(worker.pid for worker in self._workers)

    async def run(
        self,
        task: Task,
        progress: Progress | None = None,
        cancelled: "asyncio.Event | asyncio.Future[None] | None" = None,
        started: Callable[[], None] | None = None,
    ) -> Any:
        """Have a worker do a task, and return what it returned.

        Args:
            task: What to do.
            progress: Called with lines of progress.
            cancelled: An event or a future that the caller sets to cancel it. A caller that is
                itself cancelled cancels it too.
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
        watched = cancelled.wait() if isinstance(cancelled, asyncio.Event) else None
        stop = cancelled if watched is None else asyncio.ensure_future(watched)
        try:
            worker = await self._assigned(item, stop)  # type: ignore[arg-type]
            if started is not None:
                started()
            return await self._result(item, worker, stop)  # type: ignore[arg-type]
        finally:
            if watched is not None and stop is not None:
                stop.cancel()  # type: ignore[union-attr]

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
            log.warning("task %r took longer than %g s and was ended", item.task.name, self._limit)
            worker.kill()
            self._later(self._let_end(work, worker))
            raise WorkTimedOut(item.task, self._limit)
        try:
            kind, content = work.result()
        except WorkerGone:
            log.error("worker %d was lost during task %r", worker.pid, item.task.name)
            if item.task.key is not None:
                took = monotonic() - worker.since
                await asyncio.sleep(until_step(took, self.settings.time_step))
            raise WorkerLost(item.task) from None
        finally:
            self._free(worker)
        if kind == "problem":
            raise WorkFailed(content)
        return EncodedJson(content) if item.task.encoded else content

    @property
    def _limit(self) -> float:
        return self.settings.work_time

    async def _let_end(
        self, work: "asyncio.Future[tuple[str, Any]]", worker: WorkerProcess
    ) -> None:
        """Let a task that nobody waits for end by itself; kill its worker if it does not."""
        await asyncio.wait({work}, timeout=GRACE)
        if not work.done():
            worker.kill()
            await asyncio.wait({work})
        with contextlib.suppress(WorkerGone):
            work.result()
        self._free(worker)

    # --- who is next ---

    def _free(self, worker: WorkerProcess) -> None:
        """A worker ended a task: note how long that took, and give it the next one."""
        if worker.task is not None:
            self._note(worker, worker.task)
        worker.task, worker.since = None, monotonic()
        if worker.lost:
            self._remove(worker)
        self._dispatch()

    def _note(self, worker: WorkerProcess, task: Task) -> None:
        took = monotonic() - worker.since
        opening = min(worker.opening, took)
        if opening and task.dataset is not None:
            self._opening[task.dataset] = opening
        kind = task.name, task.dataset
        self._took[kind] = max(took - opening, FADING * self._took.get(kind, 0.0))

    def _is_short(self, task: Task, worker: WorkerProcess) -> bool:
        """Whether a task is expected to be short on a worker."""
        seconds = self._took.get((task.name, task.dataset))
        if seconds is None or task.dataset is None or task.dataset in worker.datasets:
            return seconds is not None and seconds < LONG
        opening = self._opening.get(task.dataset)
        return opening is not None and seconds + opening < LONG

    def _long(self) -> int:
        """How many tasks are running that are long, or were expected to be."""
        now = monotonic()
        return sum(
            one.task is not None and (one.expected_long or now - one.since > LONG)
            for one in self._workers
        )

    def _dispatch(self) -> None:
        """Give free workers what waits; start one more if that is not enough."""
        if self._closed:
            return
        for worker in [one for one in self._workers if one.idle and one.gone]:
            log.error("worker %d ended while it was idle", worker.pid)
            worker.kill()
            self._remove(worker)
        while self._queue and (idle := [one for one in self._workers if one.idle]):
            found = self._next(idle)
            if found is None:
                break
            item, worker = found
            self._queue.remove(item)
            if item.started.done():  # cancelled meanwhile
                continue
            self._served[item.who] = next(self._numbers)
            worker.expected_long = not self._is_short(item.task, worker)
            worker.task, worker.since, worker.opening = item.task, monotonic(), 0.0
            item.started.set_result(worker)
        starting = any(not one.ready and not one.lost for one in self._workers)
        enough = starting or any(one.idle for one in self._workers)
        if self._queue and not enough and len(self._workers) < self.settings.workers:
            self._start()

    def _next(self, idle: list[WorkerProcess]) -> tuple[_Waiting, WorkerProcess] | None:
        """The next task that may have one of the idle workers, and which of them."""
        waiting = {item.who for item in self._queue}
        running = defaultdict[str, int](int)
        for one in self._workers:
            if one.task is not None:
                running[one.task.actor.name] += 1
        only_short = self.settings.workers > 1 and self._long() >= self.settings.workers - 1
        served = self._served = {who: self._served.get(who, -1) for who in running.keys() | waiting}

        def turn(one: _Waiting) -> tuple[int, int, int]:
            return running[one.who], served[one.who], one.number

        for item in self._queue if len(self._queue) == 1 else sorted(self._queue, key=turn):
            dataset = item.task.dataset
            worker = next((one for one in idle if dataset in one.datasets), idle[0])
            if not only_short or self._is_short(item.task, worker):
                return item, worker
        return None

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
            await worker.begin(self.project_file, self._modules, self.settings.time_step)
        except WorkerGone:
            self._remove(worker)
            self._failed_starts += 1
            log.error("worker %d ended before it was ready", worker.pid)
            if self._failed_starts >= TRIES:
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
        worker.printed.close()

    def _later(self, work: Any) -> None:
        made = asyncio.ensure_future(work)
        self._background.add(made)
        made.add_done_callback(self._background.discard)

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
