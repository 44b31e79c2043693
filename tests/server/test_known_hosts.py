"""Requests for another host than the server are refused: no name of another site leads here."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from takifugu.project.server_section import ServerSettings
from takifugu.server.operation.middleware import KnownHosts

STATS = "https://stats.example.org"
BEHIND = ServerSettings(origin=STATS, proxies=("127.0.0.1",))
TLS = ServerSettings(host="0.0.0.0", certificate=Path("c"), key=Path("k"))  # noqa: S104


def status(settings: ServerSettings, *hosts: str) -> int:
    """The status of a request with these headers ``Host``; 200 if it reaches the app."""
    found: list[int] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        found.append(message.get("status", 0))

    async def receive() -> Any:
        raise AssertionError("nothing is to be read")

    scope = {"type": "http", "headers": [(b"host", host.encode()) for host in hosts]}
    asyncio.run(KnownHosts(app, settings)(scope, receive, send))
    return found[0]


@pytest.mark.parametrize(
    ("settings", "host", "expected"),
    [
        *((ServerSettings(), host, 200) for host in ("127.0.0.1:8461", "localhost", "[::1]:80")),
        *((ServerSettings(), host, 200) for host in ("LOCALHOST:1", "localhost.", "127.3.2.1")),
        *((ServerSettings(), host, 421) for host in ("evil.example", "127.0.0.1.evil.example")),
        *((ServerSettings(), host, 421) for host in ("localhost.evil.example", "10.0.0.1", "0")),
        *((BEHIND, host, 200) for host in ("stats.example.org", "Stats.Example.ORG:443")),
        *((BEHIND, host, 200) for host in ("127.0.0.1:8461", "stats.example.org.")),
        *((BEHIND, host, 421) for host in ("evil.example", "example.org", "10.0.0.1:8461")),
        *((BEHIND, host, 421) for host in ("xstats.example.org", "stats.example.org.evil.example")),
        *((BEHIND, host, 400) for host in ("", "a@stats.example.org", "stats.example.org/x", "[")),
        *(
            (BEHIND, host, 400)
            for host in ("stats.example.org, evil.example", "a:b", "a b", "\xff")
        ),
        *((TLS, host, 200) for host in ("stats.example.org", "10.0.0.1")),  # TLS compares names
        (TLS, "a@b", 400),
    ],
)
def test_only_names_of_this_server_are_answered(
    settings: ServerSettings, host: str, expected: int
) -> None:
    assert status(settings, host) == expected


def test_a_host_is_named_once() -> None:
    assert status(BEHIND) == status(BEHIND, "stats.example.org", "stats.example.org") == 400
    assert status(TLS) == 400
