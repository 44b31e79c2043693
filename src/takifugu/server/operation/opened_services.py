"""What a running server consists of, opened in order and closed in reverse."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from starlette.types import ASGIApp

from takifugu.server.access.token_history import settle_tokens, watch_tokens
from takifugu.server.app import create_app
from takifugu.server.operation.known_hosts import KnownHosts
from takifugu.server.operation.readiness import Readiness
from takifugu.server.operation.request_limits import ForwardedHeaders, SmallBodies
from takifugu.server.operation.request_record import RequestRecord
from takifugu.server.operation.server_metrics import ServerMetrics
from takifugu.server.services import Services, open_services
from takifugu.server.settings import ServerSettings
from takifugu.server.work.jobs import JobBoard
from takifugu.server.work.pool import WorkPool

log = logging.getLogger("takifugu.server")
KEEPING = 2.0  # seconds in which the result of a release that was just made is kept


class Stop:
    """When the server began to stop, so that all that waits shares one limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began: float | None = None

    def begin(self) -> None:
        """It begins."""
        if self._began is None:
            self._began = monotonic()

    @property
    def left(self) -> float:
        """Seconds that may still be waited."""
        if self._began is None:
            return self._seconds
        return max(0.0, self._began + self._seconds - monotonic())


@asynccontextmanager
async def opened_services(
    project_file: Path, settings: ServerSettings, stop: Stop
) -> AsyncIterator[Services]:
    """The services of a server until the block is left.

    Before it is entered, tokens are compared with the ledger, and time and again until it is left
    (`takifugu.server.access.token_history`). If, at first, that cannot be read, or has lost
    events that its witness knows of, an error is raised: nobody could tell who may call.

    Then jobs that are running may end within what ``stop`` leaves them; the others are cancelled,
    and every worker ends.
    """
    metrics = ServerMetrics()
    services = open_services(project_file, settings, metrics=metrics)
    metrics.watch(lambda: _gauges(services.pool, services.board))
    try:
        await asyncio.to_thread(settle_tokens, services.project(), services.state)
        async with _watched_tokens(services):
            yield services
    finally:
        stop.begin()
        if not await services.board.drain(stop.left):
            log.warning("jobs that were running are cancelled")
            services.board.cancel_all()
        ending = [release.ending for release in services.releases.values()]
        if ending:  # results that are still being kept
            await asyncio.wait(ending, timeout=max(stop.left, KEEPING))
        await services.close()


@asynccontextmanager
async def _watched_tokens(services: Services) -> AsyncIterator[None]:
    ending = asyncio.Event()
    watching = asyncio.ensure_future(watch_tokens(services.project, services.state, ending))
    try:
        yield
    finally:
        ending.set()
        await watching


def _gauges(pool: WorkPool, board: JobBoard) -> Iterable[tuple[str, str, str, float]]:
    words = "Worker processes."
    running, all_of_them = pool.running, len(pool.processes)
    yield "takifugu_workers", words, "busy", running
    yield "takifugu_workers", words, "idle", max(0, all_of_them - running)
    yield "takifugu_tasks", "Tasks for workers.", "waiting", pool.waiting
    yield "takifugu_tasks", "Tasks for workers.", "running", running
    jobs = [job.state for job in board.jobs()]
    for state in ("waiting", "running"):
        yield "takifugu_jobs", "Jobs that have not ended.", state, jobs.count(state)


def whole_app(services: Services) -> tuple[ASGIApp, Readiness]:
    """The app behind everything that stands before it, and its readiness."""
    app: Any = create_app(services)
    app.state.readiness = readiness = Readiness(services)
    settings = services.settings
    inner: ASGIApp = SmallBodies(app, settings)
    inner = KnownHosts(inner, settings)
    inner = ForwardedHeaders(inner, settings.proxies)
    return RequestRecord(inner, services.metrics, settings), readiness
