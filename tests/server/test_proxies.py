"""Headers of proxies: believed from those that are declared, and taken out otherwise."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from takifugu.project.server_section import ServerSettings
from takifugu.server.operation.connections import ConnectionLimits
from takifugu.server.operation.middleware import ForwardedHeaders
from tests.server.running import running_server

Pairs = list[tuple[bytes, bytes]]


def settled(client: str | None, headers: Pairs, proxies: tuple[str, ...]) -> dict[str, Any]:
    """The scope that the app sees."""
    seen: dict[str, Any] = {}

    async def app(scope: Any, *_: Any) -> None:
        seen.update(scope)

    scope = {
        "type": "http",
        "client": None if client is None else (client, 1234),
        "scheme": "http",
        "headers": [(b"host", b"here"), *headers],
    }

    async def unused(*_: Any) -> Any:
        raise AssertionError

    asyncio.run(ForwardedHeaders(app, proxies)(scope, unused, unused))
    return seen


def test_connections_are_counted_by_address_unless_a_proxy_makes_them() -> None:
    settings = ServerSettings(address_connections=2, proxies=("10.0.0.5",))
    limits = ConnectionLimits.from_settings(settings)
    assert limits.has_place("192.0.2.1", ["192.0.2.1", "192.0.2.2", "192.0.2.3"])
    assert not limits.has_place("192.0.2.1", ["192.0.2.1", "192.0.2.2", "192.0.2.1"])
    assert not limits.has_place("2001:db8::1", ["2001:db8::2", "2001:db8::3"])  # one household
    assert limits.has_place("2001:db8:1::1", ["2001:db8::2", "2001:db8::3"])
    assert limits.has_place("10.0.0.5", ["10.0.0.5"] * 100)


SPOOFED: Pairs = [
    (b"x-forwarded-for", b"198.51.100.7"),
    (b"x-forwarded-proto", b"https"),
    (b"x-forwarded-host", b"evil.example"),
    (b"forwarded", b"for=198.51.100.7;proto=https"),
    (b"x-real-ip", b"198.51.100.7"),
    (b"x-original-url", b"/metrics"),
]


@pytest.mark.parametrize("client", ["203.0.113.9", "127.0.0.1", None, "no address"])
def test_from_anybody_else_they_are_taken_out(client: str | None) -> None:
    for proxies in ((), ("10.0.0.5",)):
        seen = settled(client, SPOOFED, proxies)
        assert seen["headers"] == [(b"host", b"here")] and seen["scheme"] == "http"
        assert seen["client"] == (None if client is None else (client, 1234))


def test_from_a_proxy_they_are_believed_and_not_passed_on() -> None:
    seen = settled("10.0.0.5", SPOOFED, ("10.0.0.5",))
    assert seen["client"] == ("198.51.100.7", 0) and seen["scheme"] == "https"
    assert seen["headers"] == [(b"host", b"here")]


@pytest.mark.parametrize(
    ("hops", "found"),
    [
        ("198.51.100.7", "198.51.100.7"),
        ("1.2.3.4, 198.51.100.7", "198.51.100.7"),  # the first was written by the client
        ("1.2.3.4, 198.51.100.7, 10.1.0.9", "198.51.100.7"),  # two proxies of ours
        ("198.51.100.7:5555", "198.51.100.7"),
        ("[2001:db8::7]:5555", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("1.2.3.4, unknown", "10.0.0.5"),
        ("", "10.0.0.5"),
        ("10.1.0.9", "10.0.0.5"),
    ],
)
def test_the_last_address_that_is_no_proxy_counts(hops: str, found: str) -> None:
    headers = [(b"x-forwarded-for", hops.encode())]
    seen = settled("10.0.0.5", headers, ("10.0.0.5", "10.1.0.0/24"))
    assert seen["client"][0] == found
    parts = [(b"x-forwarded-for", hop.encode()) for hop in hops.split(",")]
    assert settled("10.0.0.5", parts, ("10.0.0.5", "10.1.0.0/24"))["client"][0] == found


def test_a_scheme_that_is_none_is_not_believed() -> None:
    for word in (b"gopher", b"https, http", b"", b"HTTPS "):
        seen = settled("10.0.0.5", [(b"x-forwarded-proto", word)], ("10.0.0.5",))
        assert seen["scheme"] == "http"


def test_in_clear_only_the_proxy_may_connect() -> None:
    behind = {"proxies": ("10.0.0.5", "10.1.0.0/24"), "origin": "https://stats.example.org"}
    limits = ConnectionLimits.from_settings(ServerSettings(host="0.0.0.0", **behind))  # type: ignore[arg-type]  # noqa: S104
    assert all(map(limits.admits, ("10.0.0.5", "10.1.0.77", "127.0.0.1", "::1")))
    assert not any(map(limits.admits, ("10.0.0.6", "203.0.113.9", "", None, "2001:db8::1")))
    assert ConnectionLimits.from_settings(ServerSettings()).admits(
        "203.0.113.9"
    )  # none can reach loopback
    tls = ServerSettings(host="::", certificate=Path("c"), key=Path("k"))
    assert ConnectionLimits.from_settings(tls).admits("203.0.113.9")


@pytest.mark.nightly
def test_spoofed_headers_change_nothing_at_a_real_server(study: Path) -> None:
    """Failed sign-ins are counted by address: a client must not be able to invent one."""
    with running_server(study) as server:
        statuses = []
        for turn in range(14):
            headers = {"X-Forwarded-For": f"198.51.100.{turn}", "X-Forwarded-Proto": "https"}
            statuses.append(
                server.get("/api/v1/me", token="tf_" + "x" * 40, headers=headers).status
            )
        assert statuses[0] == 401 and statuses[-1] == 429
        clients = {line["client"] for line in server.log() if "client" in line}
        assert clients == {"127.0.0.1"}


@pytest.mark.nightly
def test_addresses_that_a_proxy_tells_are_counted_apart(study: Path) -> None:
    behind: dict[str, Any] = {"proxies": ["127.0.0.1"], "origin": "https://stats.example.org"}
    with running_server(study, **behind) as server:
        answers = []
        for turn in range(14):
            headers = {"X-Forwarded-For": f"6.6.6.6, 198.51.100.{turn}"}
            answers.append(server.get("/api/v1/me", token="tf_" + "x" * 40, headers=headers))
        assert {answer.status for answer in answers} == {401}
        assert all(answer.headers["strict-transport-security"] for answer in answers)
        clients = [line["client"] for line in server.request_lines(answers)]
        assert clients == [f"198.51.100.{turn}" for turn in range(14)]
