"""Connections that no client can hold open: limits of size, time and number.

A client may be slow by intent: a byte of a header every ten seconds, a body that never ends, a
response that is never read. Each costs the server a connection, of which there are finitely many.
So a request has ``request_time`` to arrive from its first byte on, head and body; its head may have
``header_bytes``; of a response that waits to be read, every `RESPONSE_PART_BYTES` have
``response_time``; and there are at most ``connections``, and ``address_connections`` of one
address. All connections are looked at several times a second (`watch_connections`): one clock for
all of them, which no client can keep from being read.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from takifugu.project.server_section import ServerSettings, is_loopback, network_of
from takifugu.server.access.rate_limits import neighbourhood
from takifugu.server.operation.middleware import Network, is_among, refusal_bytes

RESPONSE_PART_BYTES = 16_384  # bytes of a response
REFUSAL_SECONDS = 2.0  # seconds in which a client that is refused can read why


def _ignored(_: str) -> None:
    """Count nothing."""


@dataclass(frozen=True)
class ConnectionLimits:
    """What a connection may do.

    Attributes:
        settings: The settings that say so.
        peers: Who may connect; None for anybody. Without TLS that is the proxies alone: whoever
            else sends a token sends it in clear.
        proxies: The proxies: they connect for many, so that theirs are not counted by address.
        refused: Called with the kind of a refusal.
    """

    settings: ServerSettings
    peers: tuple[Network, ...] | None
    proxies: tuple[Network, ...] = ()
    refused: Callable[[str], None] = _ignored

    @classmethod
    def from_settings(
        cls, settings: ServerSettings, refused: Callable[[str], None] = _ignored
    ) -> "ConnectionLimits":
        """The limits of a server."""
        clear = settings.certificate is None and not is_loopback(settings.host)
        proxies = tuple(network_of(proxy) for proxy in settings.proxies)
        return cls(settings, proxies if clear else None, proxies, refused)

    def admits(self, address: str | None) -> bool:
        """Whether somebody at this address may connect."""
        if self.peers is None or is_among(address, self.peers):
            return True
        return is_loopback(address or "")

    def has_place(self, address: str | None, others: Iterable[str | None]) -> bool:
        """Whether one more connection of this address fits beside those of ``others``."""
        if is_among(address, self.proxies):
            return True
        network = neighbourhood(address)
        count = sum(neighbourhood(other) == network for other in others)
        return count < self.settings.address_connections


class LimitedConnection(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *arguments: Any, limits: ConnectionLimits, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._limits = limits
        self._stage = "head"  # what is awaited: "head", "body", or "" between requests
        self._since: float | None = None  # since when it is awaited
        self._head = 0  # bytes of a head that is not complete
        self._fields = 0  # bytes of the fields that are
        self._unread: tuple[float, int] | None = None  # since when, and how much
        self._refused_at: float | None = None
        self._silent = True  # nothing was ever received

    @property
    def address(self) -> str | None:
        """Where it comes from."""
        return self.client[0] if self.client else None

    # --- called by the event loop ---

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has connected."""
        super().connection_made(transport)
        self._since = self.loop.time()
        limits, connections = self._limits, cast("set[LimitedConnection]", self.connections)
        others = (connection.address for connection in connections if connection is not self)
        if not limits.admits(self.address):
            self.refuse(403, "not-a-proxy", "only the proxy in front of this server may connect")
        elif len(self.connections) > limits.settings.connections:
            self.refuse(503, "too-many-connections", "too many connections are open; try later")
        elif not limits.has_place(self.address, others):
            detail = "too many connections of this address are open; close some, or try later"
            self.refuse(503, "too-many-connections", detail)

    def data_received(self, data: bytes) -> None:
        """Bytes of a request have come."""
        if self._refused_at is not None or self.transport.is_closing():
            return  # so that what is still being sent is read, and the refusal with it
        self._silent, before = False, self._stage
        super().data_received(data)
        if self._stage == "head":
            self._head = self._head + len(data) if before == "head" else 0
            if self._head > self._limits.settings.header_bytes:
                self._refuse_head()
        else:
            self._head = 0

    def pause_writing(self) -> None:
        """The client reads more slowly than it is written to."""
        super().pause_writing()
        self._unread = self.loop.time(), self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        """The client has read nearly all."""
        super().resume_writing()
        self._unread = None

    # --- called by the parser ---

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._stage, self._fields = "head", 0
        if self._since is None:
            self._since = self.loop.time()

    def on_url(self, url: bytes) -> None:
        """A part of its address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header; or a trailer, which nobody needs and which must not pass for a header."""
        self._count(len(name) + len(value) + 4)
        if self._stage == "head":
            super().on_header(name, value)

    def _count(self, size: int) -> None:
        self._fields += size
        if self._fields > self._limits.settings.header_bytes:
            raise ValueError("the head is too large")  # the parser stops, and `send_400_response`

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._stage = "body"
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request is there."""
        self._stage, self._since = "", None
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """An upgrade is not offered; the request is answered as it is."""

    # --- refusals ---

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - of uvicorn, in plain text
        """What was sent is no request."""
        if self._fields > self._limits.settings.header_bytes:
            self._refuse_head()
        else:
            self.refuse(400, "no-request", "what was sent is not a request of HTTP/1.1")

    def _refuse_head(self) -> None:
        most = self._limits.settings.header_bytes
        self.refuse(431, "headers-too-large", f"the head of a request may have {most:,} bytes")

    def refuse(self, status: int, kind: str, detail: str) -> None:
        """Answer with a problem, unless a response has begun, and end the connection."""
        if self._refused_at is not None:
            return
        self._refused_at, self._since = self.loop.time(), None
        self._limits.refused(kind)
        begun = self.cycle is not None and not self.cycle.response_complete
        if self.pipeline or (begun and self.cycle.response_started):
            self.transport.abort()
            return
        if begun:  # the app must not answer as well
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(refusal_bytes(self._limits.settings, status, kind, detail))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()

    # --- called by the watch ---

    def look(self, now: float) -> None:
        """End the connection if its client takes too long."""
        settings = self._limits.settings
        if self._refused_at is not None:
            if now > self._refused_at + REFUSAL_SECONDS:
                self.transport.abort()
            return
        if self.transport.is_closing() and self._unread is None:
            self._unread = now, self.transport.get_write_buffer_size()
        if self._unread is not None:
            since, size = self._unread
            left = self.transport.get_write_buffer_size()
            if left <= size - RESPONSE_PART_BYTES:
                self._unread = now, left
            elif now > since + settings.response_time:
                self._limits.refused("slow-reader")
                self.transport.abort()
        elif self._since is not None:
            if self.flow.read_paused:  # by us, so that it cannot arrive
                self._since = now
            elif now > self._since + settings.request_time:
                self._too_late()

    def _too_late(self) -> None:
        if self._silent:
            self.transport.close()
            return
        seconds = self._limits.settings.request_time
        self.refuse(408, "slow-request", f"a request may take {seconds:g} seconds to arrive")


async def watch_connections(connections: Iterable[Any], settings: ServerSettings) -> None:
    """Look at all connections until cancelled, often enough for the shortest limit."""
    step = min(1.0, settings.request_time / 4, settings.response_time / 4)
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(step)
        now = loop.time()
        for connection in list(connections):
            connection.look(now)
