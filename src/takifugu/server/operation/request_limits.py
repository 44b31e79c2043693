"""Middleware before the app: proxies that are trusted, and bodies that are small and complete."""

import ipaddress
from collections.abc import Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.project.server_section import network_of
from takifugu.server.operation.refused_requests import refusal
from takifugu.server.settings import ServerSettings

ANONYMOUS_BYTES = 65_536  # the largest body of who sends neither a token nor a cookie
DRAINED = 2**20  # bytes of a body that is too large that are read, so that the refusal is too
FORWARDED = (b"forwarded", b"x-real-ip", b"x-original-url", b"x-rewrite-url")


class ForwardedHeaders:
    """Trusts ``X-Forwarded-For`` and ``-Proto`` of the proxies in front, and of nobody else.

    From anybody else such headers are taken out, so that nothing behind can trust them. Which
    host a browser sees is a setting (``origin``) and never read from a header.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._app = app
        self._networks = tuple(network_of(proxy) for proxy in proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            self._settle(scope)
        await self._app(scope, receive, send)

    def _settle(self, scope: Scope) -> None:
        sent = [pair for pair in scope["headers"] if not _is_forwarded(pair[0])]
        if len(sent) == len(scope["headers"]):
            return
        named = {name: value for name, value in scope["headers"] if _is_forwarded(name)}
        client = scope.get("client")
        if self._is_proxy(client[0] if client else None):
            scheme = named.get(b"x-forwarded-proto", b"").strip()
            if scheme in (b"http", b"https"):
                scope["scheme"] = scheme.decode()
            lists = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
            origin = self._first_stranger(b",".join(lists).decode("latin-1").split(","))
            if origin is not None:
                scope["client"] = (origin, 0)
        scope["headers"] = sent

    def _first_stranger(self, hops: Sequence[str]) -> str | None:
        """The last address that no proxy of ours has: what stands before it anybody can write."""
        for hop in reversed(hops):
            address = _address(hop.strip())
            if address is None:
                return None
            if not self._is_proxy(address):
                return address
        return None

    def _is_proxy(self, address: str | None) -> bool:
        try:
            found = ipaddress.ip_address(address or "")
        except ValueError:
            return False
        return any(found in network for network in self._networks)


def _is_forwarded(name: bytes) -> bool:
    return name.startswith(b"x-forwarded-") or name in FORWARDED


def _address(text: str) -> str | None:
    """An address as proxies write it: alone, or with a port."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return None


class SmallBodies:
    """Reads the body of a request before the app sees it, or refuses it with 413.

    So no route ever holds a lock or a worker while a client is slow, and none needs a limit of its
    own. A request whose client goes away while sending never reaches the app.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        most = self._settings.request_bytes
        if not any(name in (b"authorization", b"cookie") for name, _ in scope["headers"]):
            most = min(most, ANONYMOUS_BYTES)
        declared = _declared(scope)
        if declared is not None and declared > most + DRAINED:
            await self._refuse(send, most)
            return
        body, size = bytearray(), 0
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return  # gone: there is nobody to answer
            part = message.get("body", b"")
            size += len(part)
            if size <= most:
                body += part
            else:
                body.clear()
            if size > most + DRAINED:
                break
            if not message.get("more_body", False):
                break
        if size > most:
            await self._refuse(send, most)
            return
        pending: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def received() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, received, send)

    async def _refuse(self, send: Send, most: int) -> None:
        detail = f"the body of a request may have {most:,} bytes"
        headers, body = refusal(self._settings, 413, "body-too-large", detail)
        await send({"type": "http.response.start", "status": 413, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
        for name, value in scope["headers"]
    )


def _declared(scope: Scope) -> int | None:
    """The length that a request declares; the parser has seen that it is one number."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.strip().isdigit():
            return int(value)
    return None
