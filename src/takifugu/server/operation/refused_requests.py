"""Requests that are refused before the app sees them, as problem documents like all others."""

import json
from collections.abc import Iterable
from http import HTTPStatus

from takifugu.server.access.headers import security_headers
from takifugu.server.settings import ServerSettings

TYPE = "urn:takifugu:problem:"
Headers = list[tuple[bytes, bytes]]


def refusal(
    settings: ServerSettings,
    status: int,
    kind: str,
    detail: str,
    *,
    field: str = "",
    reason: str = "",
    headers: Iterable[tuple[str, str]] = (),
) -> tuple[Headers, bytes]:
    """Headers and body of a response that refuses a request and closes its connection."""
    document = {
        "type": TYPE + kind,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "field": field,
        "reason": reason,
    }
    body = json.dumps(document, separators=(",", ":")).encode("ascii")
    fixed = {
        "content-type": "application/problem+json",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "connection": "close",
    }
    guards = ((name.lower(), value) for name, value in security_headers(settings).items())
    written = [*fixed.items(), *guards, *headers]
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in written], body


def refusal_bytes(settings: ServerSettings, status: int, kind: str, detail: str) -> bytes:
    """The same as it is written to a connection."""
    headers, body = refusal(settings, status, kind, detail)
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode("ascii")
    return line + b"".join(b"%b: %b\r\n" % pair for pair in headers) + b"\r\n" + body
