"""The process that answers requests: it starts, says where it listens, and stops in order.

At SIGTERM or SIGINT it takes no new requests, waits for the running ones at most ``stop_time``,
cancels what is left, ends the workers, and exits with status 0. At a second signal it ends at once.
"""

import asyncio
import logging
import os
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from takifugu.engines.engine_errors import DriverMissing
from takifugu.server.operation.listening import (
    BACKLOG,
    address_of,
    listening_socket,
    load_certificate,
    tls_context,
)
from takifugu.server.settings import ServerSettings

log = logging.getLogger("takifugu.server")
AFTER_STOP = 10.0  # seconds beyond ``stop_time`` until a process that cannot end is ended

try:
    import uvicorn
except ModuleNotFoundError as missing:
    raise DriverMissing(missing.name or "uvicorn", purpose="the server", extra="server") from None


class StoppableServer(uvicorn.Server):
    """Uvicorn's server with our own signals, sockets and TLS."""

    def __init__(
        self,
        config: uvicorn.Config,
        settings: ServerSettings,
        *,
        announce: Callable[[], None],
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(config)
        self._settings, self._announce, self._stopping = settings, announce, stopping
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
        self.servers = [
            await loop.create_server(
                self._connection, sock=bound, ssl=self._tls, backlog=BACKLOG, **limits
            )
            for bound in sockets or []
        ]
        self.started = True
        self._announce()

    def _connection(self) -> asyncio.Protocol:
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, wait for what is running, then cancel it."""
        self._stopping()
        limit = self._settings.stop_time + AFTER_STOP
        guard = threading.Timer(limit, _end, (f"did not stop within {limit:g} seconds",))
        guard.daemon = True
        guard.start()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals until the server has stopped, which then counts as done."""
        handled: dict[signal.Signals, Callable[..., None]]
        handled = {signal.SIGINT: self.handle_exit, signal.SIGTERM: self.handle_exit}
        if self._tls is not None and hasattr(signal, "SIGHUP"):
            handled[signal.SIGHUP] = self._reload
        before = {number: signal.signal(number, what) for number, what in handled.items()}
        try:
            yield
        finally:
            for number, what in before.items():
                signal.signal(number, what)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop in order at the first signal, at once at the second."""
        if self.should_exit:
            _end("stopped by a second signal", 128 + sig)
        self.should_exit = True

    def _reload(self, *_: object) -> None:
        """Use the certificate files as they are now, from the next connection on."""
        certificate, key = self._settings.certificate, self._settings.key
        if self._tls is None or certificate is None or key is None:
            return
        try:
            load_certificate(self._tls, certificate, key)
        except Exception as error:  # noqa: BLE001 - the server goes on with the certificate it has
            log.error("the certificate was not reloaded", extra={"kind": type(error).__name__})
        else:
            log.info("the certificate was reloaded")


def _end(why: str, status: int = 1) -> None:
    """End this process now; workers end when their pipe closes."""
    log.critical(why)
    logging.shutdown()
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
    try:
        config = uvicorn_config(settings)
        factory = config.get_loop_factory()
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(_serve(project_file, settings, config, bound, announce))
    finally:
        bound.close()


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
    from fastapi import FastAPI

    app = FastAPI(title=project_file.parent.name)

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    config.app = app
    address = address_of(settings, bound)
    server = StoppableServer(config, settings, announce=lambda: announce(address))
    await server.serve([bound])
