"""The outermost middleware: every request gets a number, a line in the log, and is counted."""

import asyncio
import json
import logging
import re
import secrets
from time import perf_counter
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.server.operation.refused_requests import refusal
from takifugu.server.operation.server_log import current_request
from takifugu.server.operation.server_metrics import NOBODY, OTHER, ServerMetrics
from takifugu.server.settings import ServerSettings

log = logging.getLogger("takifugu.server.requests")
HEADER = b"x-request-id"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
MOST_OF_A_PROBLEM = 65_536
QUIET = ("/healthz", "/readyz", "/metrics")  # asked every few seconds by machines
WITH_ADDRESS = (400, 401, 403, 421, 429)  # refusals whose sender an owner may have to find
_KIND = re.compile(r"urn:takifugu:problem:([A-Za-z][A-Za-z0-9-]{0,60})")


class RequestRecord:
    """Numbers, logs and counts requests; the address that was asked for is in none of these.

    An address may hold anything: names of people, a token that was pasted by mistake. What is
    written is the template of the route that answered, or "other".
    """

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, settings: ServerSettings) -> None:
        self._app, self._metrics, self._settings = app, metrics, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
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
                again = [("retry-after", "5")]
                headers, body = refusal(self._settings, 503, "stopping", detail, headers=again)
                await sending({"type": "http.response.start", "status": 503, "headers": headers})
                await sending({"type": "http.response.body", "body": body})
        finally:
            self._record(scope, seen, perf_counter() - began)

    def _record(self, scope: Scope, seen: "_Seen", seconds: float) -> None:
        route = getattr(scope.get("route"), "path", OTHER)
        actor = scope["state"].get("actor")
        role = NOBODY if actor is None else actor.role
        method = scope["method"] if scope["method"] in METHODS else OTHER
        status = seen.status or 499  # nobody was there to be answered
        self._metrics.answered(
            method=method,
            route=route,
            role=role,
            status=status,
            seconds=seconds,
            sent=seen.sent,
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
        if route in QUIET and status < 400:
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
                name.lower() == b"content-type" and value.startswith(b"application/problem+json")
                for name, value in message.get("headers", ())
            )
            return
        body = message.get("body", b"")
        self.sent += len(body)
        if self._problem and body and len(body) <= MOST_OF_A_PROBLEM:
            self._problem, self.kind = False, _kind(body)


def _kind(body: bytes) -> str:
    """The kind of a problem document: a word of the code, never one of the request."""
    try:
        found = _KIND.fullmatch(str(json.loads(body)["type"]))
    except (ValueError, KeyError, TypeError):
        return ""
    return "" if found is None else found[1]
