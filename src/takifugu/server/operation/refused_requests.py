"""Requests that are refused before the app sees them, as problem documents like all others."""

import json
from collections.abc import Iterable
from http import HTTPStatus

TYPE = "urn:takifugu:problem:"
Headers = list[tuple[bytes, bytes]]


def refusal(
    status: int, kind: str, detail: str, *, headers: Iterable[tuple[str, str]] = ()
) -> tuple[Headers, bytes]:
    """Headers and body of a response that refuses a request and closes its connection."""
    document = {
        "type": TYPE + kind,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "field": "",
        "reason": "",
    }
    body = json.dumps(document, separators=(",", ":")).encode("ascii")
    fixed = {
        "content-type": "application/problem+json",
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "connection": "close",
    }
    written = [*fixed.items(), *headers]
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in written], body


def refusal_bytes(status: int, kind: str, detail: str) -> bytes:
    """The same as it is written to a connection."""
    headers, body = refusal(status, kind, detail)
    line = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode("ascii")
    return line + b"".join(b"%b: %b\r\n" % pair for pair in headers) + b"\r\n" + body
