"""The process that answers requests: it starts, says where it listens, and stops in order.

At SIGTERM or SIGINT it takes no new requests, waits for the running ones at most ``stop_time``,
cancels what is left, ends the workers, and exits with status 0. At a second signal it ends at once.
"""

import asyncio
import logging
import os
import resource
import signal
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any, NoReturn

from takifugu.declarations.table_errors import DriverMissing
from takifugu.errors import TakifuguError
from takifugu.project.server_section import ServerSettings
from takifugu.server.operation.listening import (
    BACKLOG,
    address_of,
    listening_socket,
    load_certificate,
    tls_context,
)
from takifugu.server.operation.server_log import OWN, handle_loop_errors, log_to_stderr
from takifugu.server.work.jobs import JobBoard
from takifugu.server.work.pool import WorkPool

try:
    import uvicorn
    from starlette.types import ASGIApp, Receive, Scope, Send

    from takifugu.server.access.tokens import settle_tokens, watch_tokens
    from takifugu.server.app import create_app
    from takifugu.server.operation.connections import (
        ConnectionLimits,
        LimitedConnection,
        watch_connections,
    )
    from takifugu.server.operation.health import Readiness, ServerMetrics
    from takifugu.server.operation.middleware import (
        ForwardedHeaders,
        KnownHosts,
        RequestRecord,
        SmallBodies,
    )
    from takifugu.server.services import Services, open_services
except ModuleNotFoundError as missing:
    if (missing.name or OWN).partition(".")[0] == OWN:
        raise
    raise DriverMissing(missing.name or "", purpose="the server", extra="server") from None

log = logging.getLogger("takifugu.server")
OTHER_FILES = 256  # beside connections
AFTER_STOP = 10.0  # seconds beyond ``stop_time`` until a process that cannot end is ended


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
    (`takifugu.server.access.tokens`). If, at first, that cannot be read, or has lost
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
    recorded = RequestRecord(inner, services.metrics, settings)

    async def whole(scope: Scope, receive: Receive, send: Send) -> None:
        await (recorded if scope["type"] == "http" else app)(scope, receive, send)

    return whole, readiness


def tell_manager(state: str) -> None:
    """Tell systemd a ``state``, such as ``READY=1``, if it has started this process.

    The protocol is one datagram to the socket that ``$NOTIFY_SOCKET`` names (sd_notify(3)).
    """
    name = os.environ.get("NOTIFY_SOCKET", "")
    if not name.startswith(("/", "@")):
        return
    address = f"\0{name[1:]}" if name.startswith("@") else name
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notifier:
        notifier.sendto(state.encode(), address)


class StoppableServer(uvicorn.Server):
    """Uvicorn's server with our own signals, sockets, TLS and connections."""

    def __init__(
        self,
        config: uvicorn.Config,
        limits: ConnectionLimits,
        *,
        announce: Callable[[], None],
        stopping: Callable[[], None],
    ) -> None:
        super().__init__(config)
        settings = self._settings = limits.settings
        self._limits, self._announce, self._stopping = limits, announce, stopping
        self._tls: ssl.SSLContext | None = None
        if settings.certificate is not None and settings.key is not None:
            self._tls = tls_context(settings.certificate, settings.key)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, then listen, then say so."""
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise SystemExit(1)
        loop = asyncio.get_running_loop()
        limits: dict[str, Any] = {}
        if self._tls is not None:
            limits = {"ssl_handshake_timeout": self._settings.request_time}
            limits["ssl_shutdown_timeout"] = self._settings.response_time
        connection = partial(
            LimitedConnection,
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
            limits=self._limits,
        )
        self.servers = [
            await loop.create_server(
                connection, sock=bound, ssl=self._tls, backlog=BACKLOG, **limits
            )
            for bound in sockets or []
        ]
        self.started = True
        watch = watch_connections(self.server_state.connections, self._settings)
        self._watch = asyncio.ensure_future(watch)
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, wait for what is running, then cancel it."""
        self._stopping()
        limit = self._settings.stop_time + AFTER_STOP
        guard = threading.Timer(limit, _end, (f"did not stop within {limit:g} seconds", 1))
        guard.daemon = True
        guard.start()
        await super().shutdown(sockets)
        self._watch.cancel()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals until the server has stopped, which then counts as done."""
        handled: dict[signal.Signals, Callable[..., None]]
        handled = {signal.SIGINT: self.handle_exit, signal.SIGTERM: self.handle_exit}
        if self._tls is not None:
            handled[signal.SIGHUP] = self._reload
        for number, what in handled.items():  # also while what is left is closed
            signal.signal(number, what)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop in order at the first signal, at once at the second."""
        if self.should_exit:
            _end("stopped at once by a second signal", 128 + sig)
        self.should_exit = True

    def _reload(self, *_: object) -> None:
        """Use the certificate files as they are now, from the next connection on."""
        certificate, key = self._settings.certificate, self._settings.key
        if self._tls is None or certificate is None or key is None:
            return
        try:
            load_certificate(self._tls, certificate, key)
        except TakifuguError as error:
            log.error("the certificate was not reloaded: %s", error)
        else:
            log.info("the certificate was reloaded")


def _end(why: str, status: int) -> NoReturn:
    """End this process now; its workers notice and end too."""
    try:
        with suppress(Exception):  # a signal may come while a line is being written
            log.critical(why)
    finally:
        os._exit(status)


def run_server(
    project_file: Path, settings: ServerSettings, *, announce: Callable[[str], None]
) -> None:
    """Serve a project until a signal stops it.

    Args:
        project_file: The project file.
        settings: The settings, checked.
        announce: Called with the address once requests are answered.
    """
    bound = listening_socket(settings)
    log_to_stderr()
    allow_files(settings)
    try:
        config = uvicorn_config(settings)
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            handle_loop_errors(runner.get_loop())
            runner.run(_serve(project_file, settings, config, bound, announce))
    finally:
        bound.close()
    log.info("stopped")


def allow_files(settings: ServerSettings) -> None:
    """Let this process open a file for each connection, as far as its user may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = settings.connections + 4 * OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < needed:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def uvicorn_config(settings: ServerSettings) -> uvicorn.Config:
    """How uvicorn is set up: its own logs, proxies, limits and headers are replaced by ours."""
    return uvicorn.Config(
        _no_app,
        loop="auto",
        http="httptools",
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=settings.keep_alive,  # type: ignore[arg-type]
        timeout_graceful_shutdown=settings.stop_time,  # type: ignore[arg-type]
        backlog=BACKLOG,
    )


async def _no_app(*_: Any) -> None:
    raise RuntimeError("the app is given when the server starts")


async def _serve(
    project_file: Path,
    settings: ServerSettings,
    config: uvicorn.Config,
    bound: socket.socket,
    announce: Callable[[str], None],
) -> None:
    stop = Stop(settings.stop_time)
    async with opened_services(project_file, settings, stop) as services:
        app, readiness = whole_app(services)
        address = address_of(settings, bound)

        def announced() -> None:
            log.info("listening", extra={"address": address})
            announce(address)
            tell_manager("READY=1")

        def stopping() -> None:
            log.info("stopping")
            tell_manager("STOPPING=1")
            readiness.stopping = True
            stop.begin()

        config.app = app
        limits = ConnectionLimits.from_settings(settings, services.metrics.refused)
        server = StoppableServer(config, limits, announce=announced, stopping=stopping)
        services.metrics.watch(lambda: _connections(server))
        await server.serve([bound])


def _connections(server: StoppableServer) -> Iterator[tuple[str, str, str, float]]:
    words = "Connections that are open."
    yield "takifugu_connections", words, "open", len(server.server_state.connections)
