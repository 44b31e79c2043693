"""The real app with its real workers, listening on loopback in a thread of the test."""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import uvicorn

from takifugu.project.server_section import ServerSettings
from takifugu.server.app import create_app
from takifugu.server.services import Services, open_services

SETTINGS = ServerSettings(rate=1_000_000, burst=100_000, time_step=0.0)
PEOPLE = {"ana": "analyst", "bo": "analyst", "olga": "owner", "udo": "auditor"}
PATIENCE = 120  # seconds: only what hangs takes as long


@dataclass(frozen=True)
class Listening:
    """An app that listens, and its tokens."""

    url: str
    project: Path
    services: Services = field(repr=False)
    tokens: Mapping[str, str] = field(repr=False)


@contextmanager
def listening(project: Path, **settings: Any) -> Iterator[Listening]:
    """The app of a project on a free port, with a token for everybody in `PEOPLE`."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    made: list[Any] = []
    ready = Event()

    async def serve() -> None:
        services = open_services(project, replace(SETTINGS, **settings))
        server = uvicorn.Server(
            uvicorn.Config(create_app(services), log_level="error", lifespan="off")
        )
        made.extend([services, server, asyncio.get_running_loop()])
        ready.set()
        try:
            await server.serve(sockets=[bound])
        finally:
            await services.close()

    thread = Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(PATIENCE)
    services, server, _ = made
    try:
        tokens = {
            name: services.state.create_token(name, role, None, "test").secret
            for name, role in PEOPLE.items()
        }
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        yield Listening(url, project, services, tokens)
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        bound.close()
        assert not thread.is_alive()
