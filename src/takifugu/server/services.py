"""What every part of a running server shares."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import Request

from takifugu.project.server_section import ServerSettings
from takifugu.server.access.rate_limits import Limiter
from takifugu.server.access_rules import Actor
from takifugu.server.state.server_state import ServerState, open_state
from takifugu.server.work.jobs import JobBoard
from takifugu.server.work.pool import WorkPool

if TYPE_CHECKING:
    from takifugu.ledger import Ledger
    from takifugu.project.project import Project

Value = TypeVar("Value")


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
        limiter: How often a token may call.
        metrics: What is counted for Prometheus; None for nothing.
    """

    project_file: Path
    settings: ServerSettings
    state: ServerState
    pool: WorkPool
    board: JobBoard
    limiter: Limiter
    metrics: Any = None
    _file: _ProjectFile = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_file", _ProjectFile(self.project_file))  # the one write

    def project(self) -> "Project":
        """The project as its file has it now."""
        return self._file.read()

    async def read_ledger(
        self, work: Callable[["Ledger"], Value], *, inspect: bool = False
    ) -> Value:
        """What ``work`` reads in the ledger, in a thread; nothing is written.

        To ``inspect`` reads it also if it is an older copy: that is what to find out.
        """

        def read() -> Value:
            mode = {"inspect": True} if inspect else {"read_only": True}
            with self.project().ledger(**mode) as ledger:
                return work(ledger)

        return await asyncio.to_thread(read)

    async def close(self) -> None:
        """End the workers, and close what is open."""
        await self.pool.close()
        self.state.close()


def open_services(project_file: Path, settings: ServerSettings, *, metrics: Any = None) -> Services:
    """The services of a project; to be made in the event loop that the app runs in."""
    from takifugu.project.project import open_project

    pool = WorkPool(project_file, settings)
    return Services(
        project_file,
        settings,
        state=open_state(open_project(project_file)),
        pool=pool,
        board=JobBoard(pool),
        limiter=Limiter.from_rate(settings.rate, settings.burst),
        metrics=metrics,
    )


def services_of(request: Request) -> Services:
    """The services of the app that a request came to."""
    services: Services = request.app.state.services
    return services


def actor_of(request: Request) -> Actor:
    """Who calls: `authorize` has found out."""
    actor: Actor = request.state.actor
    return actor
