"""What every part of a running server shares."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fastapi import Request

from takifugu.server.roles import Actor
from takifugu.server.settings import ServerSettings

if TYPE_CHECKING:
    from takifugu.ledger import Ledger
    from takifugu.project.project import Project

Found = TypeVar("Found")


class RunningJob(Protocol):
    """A job, as routes use it; `takifugu.server.work.jobs.Job` is one."""

    @property
    def id(self) -> str:
        """Its name."""

    @property
    def actor(self) -> Actor:
        """Who started it."""

    @property
    def state(self) -> str:
        """Of "waiting", "running", "done", "failed" and "cancelled", one."""

    @property
    def result(self) -> Any:
        """What the task returned."""

    @property
    def problem(self) -> Mapping[str, Any] | None:
        """Why it failed."""

    async def wait(self, seconds: float) -> bool:
        """Whether it ends within ``seconds``."""

    def events(self) -> AsyncIterator[Any]:
        """Lines of progress, then the end."""

    def cancel(self) -> None:
        """End it."""


class JobStarter(Protocol):
    """Starts jobs and finds them; `takifugu.server.work.jobs.JobBoard` is one."""

    def start(self, actor: Actor, task: Any) -> RunningJob:
        """A new job, or the running one with the same key."""

    def get(self, job: str) -> RunningJob | None:
        """The job with this name."""


class TaskRunner(Protocol):
    """Runs tasks in workers; `takifugu.server.work.pool.WorkPool` is one."""

    async def run(self, task: Any, progress: Callable[[str], None] | None = None) -> Any:
        """What a task returns."""

    async def close(self) -> None:
        """End every worker."""


class _ProjectFile:
    """The project of a file, read again when the file has changed."""

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, Lock()
        self._seen: tuple[int, ...] = ()
        self._project: Project | None = None

    def read(self) -> "Project":
        from takifugu.project.project import open_project

        with self._lock:
            stat = self._file.stat()
            seen = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
            if self._project is None or seen != self._seen:
                self._project = open_project(self._file)
                self._seen = seen
            return self._project


@dataclass(frozen=True)
class Services:
    """What every part of a running server shares.

    Attributes:
        project_file: The project file.
        settings: How the server is set up.
        state: Tokens, sign-ins, requests for approval, results.
        pool: The worker processes.
        board: The jobs that run in them.
        limiter: How often a token may call; None for no limit.
        metrics: What is counted for Prometheus; None for nothing.
    """

    project_file: Path
    settings: ServerSettings
    state: Any
    pool: TaskRunner
    board: JobStarter
    limiter: Any = None
    metrics: Any = None
    _file: _ProjectFile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_file", _ProjectFile(self.project_file))  # the one write

    def project(self) -> "Project":
        """The project as its file has it now; from a thread, since it may read the file."""
        return self._file.read()

    async def of_project(self, work: Callable[["Project"], Found]) -> Found:
        """What ``work`` finds in the project, in a thread."""
        return await asyncio.to_thread(lambda: work(self.project()))

    async def of_ledger(self, work: Callable[["Ledger"], Found]) -> Found:
        """What ``work`` reads in the ledger, in a thread; nothing is written."""

        def read() -> Found:
            with self.project().ledger(read_only=True) as ledger:
                return work(ledger)

        return await asyncio.to_thread(read)


def services_of(request: Request) -> Services:
    """The services of the app that a request came to."""
    found: Services = request.app.state.services
    return found


def actor_of(request: Request) -> Actor:
    """Who calls: `authorize` has found out."""
    found: Actor = request.state.actor
    return found
