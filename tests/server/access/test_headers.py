"""What every response says to browsers, and addresses that hold a token."""

import asyncio
import logging
from typing import Any

import pytest

from takifugu.project.server_section import ServerSettings
from takifugu.server.access.headers import CSP, SecurityHeaders
from takifugu.server.work.owner_tasks import page_policy
from tests.server.access.conftest import Running

PATHS = ["/", "/api/v1/me", "/nowhere", "/static/site.css", "/sign-in", "/healthz"]


@pytest.mark.parametrize("path", PATHS)
def test_every_response_has_the_headers_whatever_it_is(
    running: Running, secure: Running, path: str
) -> None:
    for one in (running, secure):
        got = one.client().get(path).headers
        assert got["content-security-policy"] == CSP
        assert got["x-content-type-options"] == "nosniff"
        assert got["referrer-policy"] == "no-referrer"
        assert got["cross-origin-opener-policy"] == "same-origin"
        assert got["cross-origin-resource-policy"] == "same-origin"
        assert got["x-frame-options"] == "DENY"
        assert "camera=()" in got["permissions-policy"]
        assert ("strict-transport-security" in got) == (one is secure)
        assert (got.get("cache-control") == "no-store") == (not path.startswith("/static"))


def test_the_policy_allows_nothing_from_elsewhere_and_nothing_inline() -> None:
    parts = dict(part.split(" ", 1) for part in CSP.split("; "))
    assert parts["default-src"] == "'none'" and parts["frame-ancestors"] == "'none'"
    assert parts["base-uri"] == "'none'" and parts["form-action"] == "'self'"
    assert parts["script-src"] == parts["style-src"] == parts["connect-src"] == "'self'"
    assert parts["img-src"] == "'self' data:"
    assert "unsafe" not in CSP and "*" not in CSP and "http" not in CSP


def answered(scope_changes: dict[str, Any], headers: list[tuple[bytes, bytes]]) -> Any:
    """What the middleware sends for an app that answers with these headers, and its scope."""
    sent: list[Any] = []
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [],
    } | scope_changes
    called: list[bool] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        called.append(True)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"private"})

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(SecurityHeaders(app, ServerSettings())(scope, receive, send))
    return sent, scope, bool(called)


@pytest.mark.parametrize("bad", [b"a\r\nSet-Cookie: x=y", b"a\nb", b"a\rb", b"a\0b"])
def test_a_header_that_would_be_two_is_never_sent(bad: bytes) -> None:
    for header in ((b"location", bad), (bad, b"value")):
        sent, _, _ = answered({}, [header])
        assert sent[0]["status"] == 500 and len(sent) == 2
        assert not any(
            b"\n" in part or b"\r" in part for pair in sent[0]["headers"] for part in pair
        )
        assert b"private" not in sent[1]["body"]


def test_a_response_cannot_weaken_the_headers() -> None:
    weak = [
        (b"Content-Security-Policy", b"default-src *"),
        (b"cache-control", b"public, max-age=60"),
        (b"X-Frame-Options", b"ALLOWALL"),
        (b"content-type", b"text/html"),
    ]
    sent, _, _ = answered({}, weak)
    found = sent[0]["headers"]
    names = [name for name, _ in found]
    assert len(names) == len(set(names)) and (b"content-type", b"text/html") in found
    assert (b"content-security-policy", CSP.encode()) in found
    assert (b"cache-control", b"no-store") in found


SHUT = (
    "default-src 'none'; style-src 'none'; style-src-elem 'sha256-x='; style-src-attr"
    " 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
)


def test_a_document_that_can_do_nothing_may_have_styles_of_its_own() -> None:
    sent, _, _ = answered({}, [(b"content-security-policy", SHUT.encode())])
    policies = [value for name, value in sent[0]["headers"] if name == b"content-security-policy"]
    assert policies == [SHUT.encode()]


def test_the_policy_of_a_report_is_such_a_one() -> None:
    policy = page_policy(b"<html><head><style>p { color: red }</style></head></html>")
    sent, _, _ = answered({}, [(b"Content-Security-Policy", policy.encode())])
    assert (b"content-security-policy", policy.encode()) in sent[0]["headers"]


@pytest.mark.parametrize(
    "policy",
    [
        "",
        "sandbox",
        SHUT.replace("; sandbox", ""),
        SHUT + " allow-scripts",
        SHUT + "; script-src 'self'",
        SHUT + "; script-src-elem 'unsafe-inline'",
        SHUT + "; connect-src *",
        SHUT + "; img-src https://evil.example",
        SHUT + "; default-src *",
        SHUT + "; frame-src 'self'",
        SHUT.replace("form-action 'none'", "form-action 'self'"),
        SHUT.replace("default-src 'none'", "default-src 'self'"),
        SHUT.replace("frame-ancestors 'none'", "frame-ancestors *"),
        "sandbox allow-scripts; " + SHUT,
    ],
)
def test_any_other_policy_is_replaced(policy: str) -> None:
    sent, _, _ = answered({}, [(b"content-security-policy", policy.encode())])
    policies = [value for name, value in sent[0]["headers"] if name == b"content-security-policy"]
    assert policies == [CSP.encode()]


TOKEN = "tf_" + "Ab-_9" * 8 + "xyz"


@pytest.mark.parametrize(
    "query",
    [
        f"token={TOKEN}",
        f"x={TOKEN}",
        f"a=1&access_token={TOKEN}",
        TOKEN,
        "token=tf%5F" + TOKEN[3:],
        f"x=%74f_{TOKEN[3:]}",
        "token=anything",
        "Access_Token=x",
        "api_key=1",
    ],
)
def test_a_token_in_an_address_is_refused_and_is_never_logged(
    running: Running, caplog: pytest.LogCaptureFixture, query: str
) -> None:
    made = running.token()
    caplog.set_level(logging.DEBUG)
    for client in (running.client(made.secret), running.client()):
        for path in ("/api/v1/me", "/", "/nowhere", "/sign-in", "/healthz"):
            got = client.get(f"{path}?{query}")
            assert (got.status_code, got.json()["reason"]) == (400, "token in URL")
            assert got.headers["cache-control"] == "no-store"
            assert TOKEN[5:] not in got.text
    ours = [record for record in caplog.records if record.name.startswith(("takifugu", "uvicorn"))]
    assert not any(TOKEN[5:] in record.getMessage() for record in ours)


def test_what_a_log_would_write_of_such_a_request_has_no_token() -> None:
    for changes in (
        {"query_string": f"token={TOKEN}".encode()},
        {"path": f"/api/v1/tokens/{TOKEN}", "raw_path": f"/api/v1/tokens/{TOKEN}".encode()},
        {"path": f"/x/{TOKEN}", "raw_path": f"/x/%74f_{TOKEN[3:]}".encode()},
    ):
        sent, scope, called = answered(changes, [])
        assert sent[0]["status"] == 400 and not called
        written = f"{scope['path']}{scope['raw_path']!r}{scope['query_string']!r}"
        assert TOKEN not in written and TOKEN[3:] not in written


@pytest.mark.parametrize(
    "query",
    [
        *("", "limit=5", "after=tf_", "name=tokens", "mytoken2=1&x=token"),
        "dataset=tf_transport_flows_2026",
    ],
)
def test_other_addresses_are_read(running: Running, query: str) -> None:
    client = running.client(running.token().secret)
    assert client.get(f"/api/v1/me?{query}").status_code == 200
