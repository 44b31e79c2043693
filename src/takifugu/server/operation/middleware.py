"""What stands before the app: requests are numbered, limited and recorded, or refused.

`takifugu.server.operation.server_process` puts one before the other, for requests of HTTP alone.
"""

import asyncio
import ipaddress
import json
import logging
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.project.server_section import ServerSettings, is_loopback, network_of
from takifugu.server.access.headers import security_headers
from takifugu.server.api.problems import MEDIA_TYPE, Problem
from takifugu.server.api.responses import problem_response
from takifugu.server.operation.health import NOBODY, OTHER, ServerMetrics
from takifugu.server.operation.server_log import current_request

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
log = logging.getLogger("takifugu.server.requests")
HEADER = b"x-request-id"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
MAX_PROBLEM_BYTES = 65_536
PROBE_PATHS = ("/healthz", "/readyz", "/metrics")  # asked every few seconds by machines
WITH_ADDRESS = (400, 401, 403, 421, 429)  # refusals whose sender an owner may have to find
_KIND = re.compile(r"urn:takifugu:problem:([A-Za-z][A-Za-z0-9-]{0,60})")
ANONYMOUS_BYTES = 65_536  # the largest body of who sends neither a token nor a cookie
MAX_DRAINED_BYTES = 2**20  # of a body that is too large, read so that the refusal is read too
FORWARDED = (b"forwarded", b"x-real-ip", b"x-original-url", b"x-rewrite-url")
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,255})(?::[0-9]{0,5})?", re.IGNORECASE)


def refusal(
    settings: ServerSettings,
    status: int,
    kind: str,
    detail: str,
    *,
    field: str = "",
    reason: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A response that refuses a request and closes its connection."""
    document = Problem(status, kind, detail, field=field, reason=reason).document()
    guards = security_headers(settings) | {"Connection": "close"}
    return problem_response(document, guards | dict(headers or {}))


def refusal_bytes(settings: ServerSettings, status: int, kind: str, detail: str) -> bytes:
    """The same as it is written to a connection."""
    response = refusal(settings, status, kind, detail)
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode("ascii")
    fields = b"".join(b"%b: %b\r\n" % pair for pair in response.raw_headers)
    return line + fields + b"\r\n" + bytes(response.body)


class RequestRecord:
    """Numbers, logs and counts requests; the address that was asked for is in none of these.

    An address may hold anything: names of people, a token that was pasted by mistake. What is
    written is the template of the route that answered, or "other".
    """

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, settings: ServerSettings) -> None:
        self._app, self._metrics, self._settings = app, metrics, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        number = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = number
        current_request.set(number)
        seen = _Seen()

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                headers.append((HEADER, number.encode()))
                message = {**message, "headers": headers}
            seen.note(message)
            await send(message)

        began = perf_counter()
        try:
            await self._app(scope, receive, sending)
        except asyncio.CancelledError:  # the server stops, and has waited long enough
            if not seen.status:
                detail = "the server is stopping; ask again, with the same Idempotency-Key"
                refused = (self._settings, 503, "stopping", detail)
                response = refusal(*refused, headers={"Retry-After": "5"})
                await response(scope, receive, sending)
        finally:
            self._record(scope, seen, perf_counter() - began)

    def _record(self, scope: Scope, seen: "_Seen", seconds: float) -> None:
        route = getattr(scope.get("route"), "path", OTHER)
        actor = scope["state"].get("actor")
        role = NOBODY if actor is None else actor.role
        method = scope["method"] if scope["method"] in METHODS else OTHER
        status = seen.status or 499  # nobody was there to be answered
        self._metrics.answered(
            method=method, route=route, role=role, status=status, seconds=seconds, sent=seen.sent
        )
        if seen.kind:
            self._metrics.refused(seen.kind)
        facts: dict[str, Any] = {
            "actor": "" if actor is None else actor.name,
            "role": role,
            "method": method,
            "route": route,
            "status": status,
            "ms": round(seconds * 1000, 1),
            "bytes": seen.sent,
        }
        if seen.kind:
            facts["kind"] = seen.kind
        if status in WITH_ADDRESS and scope.get("client"):
            facts["client"] = scope["client"][0]
        if route in PROBE_PATHS and status < 400:
            log.debug("request", extra=facts)
        else:
            log.log(logging.ERROR if status >= 500 else logging.INFO, "request", extra=facts)


class _Seen:
    """What was sent of a response."""

    def __init__(self) -> None:
        self.status, self.sent, self.kind = 0, 0, ""
        self._problem = False

    def note(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._problem = any(
                name.lower() == b"content-type" and value.startswith(MEDIA_TYPE.encode())
                for name, value in message.get("headers", ())
            )
            return
        body = message.get("body", b"")
        self.sent += len(body)
        if self._problem and body and len(body) <= MAX_PROBLEM_BYTES:
            self._problem, self.kind = False, _kind(body)


def _kind(body: bytes) -> str:
    """The kind of a problem document: a word of the code, never one of the request."""
    try:
        match = _KIND.fullmatch(str(json.loads(body)["type"]))
    except (ValueError, KeyError, TypeError):
        return ""
    return "" if match is None else match[1]


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
        return is_among(address, self._networks)


def is_among(address: str | None, networks: Iterable[Network]) -> bool:
    """Whether an address is in one of some networks."""
    try:
        given = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    return any(given in network for network in networks)


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
        if not _has_body(scope):
            await self._app(scope, receive, send)
            return
        most = self._settings.request_bytes
        if not any(name in (b"authorization", b"cookie") for name, _ in scope["headers"]):
            most = min(most, ANONYMOUS_BYTES)
        declared = _declared(scope)
        if declared is not None and declared > most + MAX_DRAINED_BYTES:
            await self._too_large(most)(scope, receive, send)
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
            if size > most + MAX_DRAINED_BYTES:
                break
            if not message.get("more_body", False):
                break
        if size > most:
            await self._too_large(most)(scope, receive, send)
            return
        pending: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def received() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, received, send)

    def _too_large(self, most: int) -> Response:
        detail = f"the body of a request may have {most:,} bytes"
        return refusal(self._settings, 413, "body-too-large", detail)


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


class KnownHosts:
    """Refuses requests whose ``Host`` is not a name of this server."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app, self._settings = app, settings
        self._own: str | None = None
        if settings.origin is not None:
            self._own = urlsplit(settings.origin).hostname
        self._any = settings.origin is None and not is_loopback(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if (fault := self._fault(scope)) is None:
            await self._app(scope, receive, send)
            return
        status, detail, reason = fault
        refused = (self._settings, status, "other-host", detail)
        await refusal(*refused, field="Host", reason=reason)(scope, receive, send)

    def _fault(self, scope: Scope) -> tuple[int, str, str] | None:
        """Status, words and reason of a refusal; None if there is nothing to refuse."""
        sent = [value for name, value in scope["headers"] if name == b"host"]
        if len(sent) != 1:
            how, reason = ("is missing", "missing") if not sent else ("is sent twice", "twice")
            return 400, f"`Host` {how}; send it once: the name in the address", reason
        host = host_of(sent[0].decode("latin-1"))
        if host is None:
            return 400, "`Host` is no name and no address of a machine", "form"
        if self._any or host == self._own or is_loopback(host):
            return None
        return 421, "`Host` is not a name of this server; owners set it as `origin`", "other host"


def host_of(text: str) -> str | None:
    """The name or address in a header ``Host``, in small letters; None if there is none.

    >>> host_of("Stats.Example.org.:8443"), host_of("[::1]:80"), host_of("a@b")
    ('stats.example.org', '::1', None)
    """
    match = _HOST.fullmatch(text.strip())
    if match is None:
        return None
    return match[1].strip("[]").lower().removesuffix(".") or None
