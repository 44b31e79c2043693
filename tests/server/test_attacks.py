"""Attacks on the real server: addresses, headers, bodies, framing, tokens and browsers.

What must not get out is in `tests.server.attacked`.
"""

import re
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.server.attacked import PLANS, Attacked, tells_nothing
from tests.server.raw_requests import status_of
from tests.server.running import running_server

pytestmark = pytest.mark.nightly

# --- addresses ---

UP = [
    *("..", "../..", "%2e%2e", "..%2f..", "%2e%2e%2f%2e%2e", "..%5c..", "....//....", "..;"),
    *("%252e%252e%252f", "..%c0%af..", "%uff0e%uff0e", "..%00", ".%0d./", "~root"),
]
WANTED = ["takifugu.toml", "stays.csv", "takifugu.ledger", "takifugu.server", "etc/passwd"]
BELOW = [
    *("/static/", "/api/v1/reports/", "/api/v1/datasets/", "/api/v1/jobs/", "/datasets/"),
    *("/api/v1/tokens/", "/api/v1/witness/", "/", "/api/v1/"),
]


@pytest.mark.nightly
@pytest.mark.parametrize("below", BELOW)
def test_no_address_leads_out_of_what_is_served(target: Attacked, below: str) -> None:
    for up in UP:
        for wanted in WANTED:
            for path in (f"{below}{up}/{wanted}", f"{below}{up}%2f{wanted.replace('/', '%2f')}"):
                for who in ("olga", None):
                    answer = target.get_raw(path, who)
                    assert status_of(answer) in (303, 400, 401, 403, 404, 405, 422), path
                    body = answer.partition(b"\r\n\r\n")[2]
                    assert b"root:" not in body and b"[dataset" not in body, path
                    assert b"SQLite" not in body and b"person,day" not in body, path


@pytest.mark.parametrize(
    "strange",
    [
        "http://evil.example/api/v1/me",
        "//evil.example/api/v1/me",
        "/api/v1//me",
        "/API/V1/ME",
        "/api/v1/me/",
        "/api/v1/me/.",
        "/api/v1/%6de/..",
        "/api/v1/me;x=y",
        "/api/v1/me%00",
        "/api/v1/me%20",
        "/api/v1/\u00e9",
        "/%",
        "/%zz",
        "/%ff%fe",
        "*",
        "?",
        "/" + "a" * 5000,
        "/" + "%2f" * 2000,
        "/api/v1/datasets/" + "x" * 3000,
        "/api/v1/datasets/%27%20OR%201=1--",
        "/api/v1/releases/1%27%3bDROP%20TABLE%20takifugu_events",
        "/api/v1/releases/99999999999999999999999",
        "/api/v1/releases/-1",
        "/api/v1/releases/1e3",
        "/api/v1/releases?cursor=%00&limit=1",
        "/api/v1/releases?limit=9999999999999999999",
        "/api/v1/releases?limit=1&limit=2",
        "/api/v1/releases?" + "a=b&" * 2000,
    ],
)
def test_a_strange_address_is_a_plain_refusal(target: Attacked, strange: str) -> None:
    for who in ("ana", None):
        answer = target.get_raw(strange, who)
        assert status_of(answer) in (200, 303, 400, 401, 404, 405, 414, 422, 431), strange
        tells_nothing(answer)


def test_nothing_of_the_host_that_was_named_comes_back(target: Attacked) -> None:
    for lines in (
        ("Host: evil.example",),
        ("Host: localhost", "X-Forwarded-Host: evil.example"),
        ("Host: localhost", "Forwarded: host=evil.example", "X-Original-URL: /api/v1/tokens"),
    ):
        for path in ("/", "/releases", "/api/v1/me"):
            answer = target.raw(f"GET {path} HTTP/1.1", *lines, "Connection: close")
            assert b"evil.example" not in answer
            assert status_of(answer) in ((421,) if "evil" in lines[0] else (303, 401))
    assert status_of(target.raw("GET /healthz HTTP/1.0")) == 400  # no host at all


# --- headers ---


def test_no_header_can_be_injected(target: Attacked) -> None:
    for bad in ("%0d%0aX-Injected:%20yes", "%0aX-Injected:yes", "%E5%98%8D%E5%98%8AX-Injected:yes"):
        for path in (
            f"/{bad}",
            f"/sign-in?next=/{bad}",
            f"/releases?dataset={bad}",
            f"/static/{bad}",
            f"/datasets/{bad}",
            f"/api/v1/datasets/{bad}",
            f"/api/v1/reports/{bad}",
            f"/api/v1/releases?cursor={bad}",
            f"/api/v1/releases/1/result?format={bad}",
        ):
            for who in ("olga", None):
                head = target.get_raw(path, who).partition(b"\r\n\r\n")[0]
                assert not re.search(rb"(?im)^x-injected", head), path


def test_what_a_client_sends_in_headers_is_not_sent_back(target: Attacked) -> None:
    sent = (
        "X-Request-Id: injected-value",
        "Origin: https://injected-value.example",
        "Accept: injected/value",
        "User-Agent: injected-value",
        "Cookie: takifugu=injected-value; x=injected-value",
        "Referer: https://injected-value.example",
        "If-None-Match: injected-value",
        "Prefer: wait=injected-value",
        "Range: bytes=0-1",
    )
    for path in ("/api/v1/me", "/", "/sign-in", "/nowhere"):
        answer = target.get_raw(path, "ana", *sent)
        assert b"injected" not in answer.lower()
        assert b"access-control-" not in answer.lower()  # no other site is let in
    assert "injected" not in target.server.log_text()


def test_a_name_of_a_token_cannot_break_a_header_or_a_page(target: Attacked) -> None:
    for name in ("a\r\nX-Injected: yes", "a\u2028b", "a\x00b", "a\x1b[2J"):
        document = {"name": name, "role": "analyst"}
        answer = target.server.post("/api/v1/tokens", document, token=target.tokens["olga"])
        assert answer.status == 422 and "x-injected" not in answer.headers
    odd = "<script>alert(1)</script>\"'&é"
    made = target.server.post(
        "/api/v1/tokens", {"name": odd, "role": "analyst"}, token=target.tokens["olga"]
    )
    assert made.status == 201
    me = target.server.get("/api/v1/me", token=made.json()["secret"])
    assert me.json()["name"] == odd and me.headers["content-type"] == "application/json"
    page = target.server.get("/tokens", token=target.tokens["olga"])
    assert b"<script>alert" not in page.body


# --- framing: one request must not be two ---


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: +5",),
        ("Content-Length: 0x5",),
        ("Content-Length: -1",),
        ("Content-Length: 5, 6",),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding:\x0bchunked",),
        ("X: a\x00b",),
        (" folded: yes",),
        ("no colon at all",),
    ],
)
def test_a_request_whose_end_is_unclear_is_refused_and_the_connection_ends(
    target: Attacked, lines: tuple[str, ...]
) -> None:
    inner = b"0\r\n\r\nGET /api/v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = target.raw(
        "POST /api/v1/ledger/verification HTTP/1.1",
        "Host: localhost",
        target.bearer("udo"),
        *lines,
        body=inner,
    )
    assert status_of(answer) == 400, answer[:200]
    assert answer.count(b"HTTP/1.1 ") == 1
    tells_nothing(answer)


@pytest.mark.parametrize(
    "first",
    [
        b"GET /api/v1/me",
        b"GET /api/v1/me HTTP/9.9",
        b"PRI * HTTP/2.0",
        b"CONNECT evil.example:443 HTTP/1.1",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100,
        b"GET  /api/v1/me  HTTP/1.1",
        b"G\xc3\x89T / HTTP/1.1",
    ],
)
def test_what_is_no_request_of_http_1_1_is_refused(target: Attacked, first: bytes) -> None:
    answer = target.raw(first, "Host: localhost", "Connection: close")
    assert status_of(answer) in (400, 401, 404, 405), answer[:200]
    tells_nothing(answer)


def test_an_upgrade_is_not_offered(target: Attacked) -> None:
    answer = target.raw(
        "GET /api/v1/me HTTP/1.1",
        "Host: localhost",
        "Upgrade: websocket",
        "Connection: Upgrade, close",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
    )
    assert status_of(answer) in (400, 401)


# --- bodies ---


def test_a_body_that_is_too_large_is_refused_to_everybody(target: Attacked) -> None:
    large = b"x" * 30_000
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": target.server.url}
    for path, headers in (
        (PLANS, {"Content-Type": "application/json"}),
        ("/sign-in", form),
        ("/tokens", form),
        ("/nowhere", {}),
    ):
        for token in (target.tokens["ana"], None):
            answer = target.server.ask("POST", path, token=token, headers=headers, body=large)
            assert answer.status == 413, path
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    chunked = target.raw(
        f"POST {PLANS} HTTP/1.1",
        "Host: localhost",
        target.bearer("ana"),
        "Transfer-Encoding: chunked",
        "Connection: close",
        body=chunk * 8 + b"0\r\n\r\n",
    )
    assert status_of(chunked) == 413


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (b"", {400}),
        (b"null", {422}),
        (b"[]", {422}),
        (b"{", {400}),
        (b"\xff\xfe", {400}),
        (b"[" * 9_000 + b"]" * 9_000, {422}),
        (b'{"query": ' + b'{"a":' * 1500 + b"1" + b"}" * 1501, {422}),
        (b'{"query": {"kind": "histogram", "epsilon": NaN}}', {400, 422}),
        (b'{"query": {"kind": "histogram", "epsilon": 1e999}}', {422}),
        (b'{"query": {"kind": "histogram", "epsilon": ' + b"9" * 5000 + b"}}", {422}),
        (b'{"query": {"kind": "histogram"}, "query": {}}', {422}),
        (b'{"query": {"kind": "\\ud800"}}', {422}),
        (b'{"query": {"kind": "' + b"k" * 15_000 + b'"}}', {422}),
        (b'{"query": {"kind": "histogram", "by": ["\\u0000"], "epsilon": "1"}}', {422}),
        (b'{"query": {"kind": "histogram", "by": ["../../etc/passwd"], "epsilon": "1"}}', {422}),
        (b'{"query": {"kind": "histogram", "where": {"zone": "\'; DROP TABLE t"}}}', {422}),
        (b'{"query": {"kind": "__class__", "epsilon": "1"}}', {422}),
        (b'{"query": {"kind": "histogram", "epsilon": "1/0"}}', {422}),
        (b'{"query": {"kind": "histogram", "epsilon": "1e-999999999"}}', {422}),
    ],
)
def test_a_body_without_meaning_is_a_problem_and_echoes_nothing(
    target: Attacked, body: bytes, statuses: set[int]
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = target.server.ask(
        "POST", PLANS, token=target.tokens["ana"], headers=headers, body=body
    )
    assert answer.status in statuses, answer.body[:300]
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.body) < 3_000
    tells_nothing(answer.body)


def test_compressed_bodies_are_not_unpacked(target: Attacked) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    body = bytes.fromhex("1f8b08000000000000ff") + b"\x00" * 50
    answer = target.server.ask(
        "POST", PLANS, token=target.tokens["ana"], headers=headers, body=body
    )
    assert answer.status in (400, 415, 422)


# --- tokens and browsers ---


def test_a_token_in_an_address_is_refused_and_in_no_log(target: Attacked) -> None:
    secret = target.tokens["olga"]
    for path in (
        f"/api/v1/me?token={secret}",
        f"/sign-in?token={secret}",
        f"/{secret}",
        f"/api/v1/tokens/{secret}",
        f"/api/v1/me?x=%74%66_{secret[3:]}",
    ):
        for method in ("GET", "POST", "DELETE"):
            answer = target.server.ask(method, path)
            assert (answer.status, answer.json()["reason"]) == (400, "token in URL"), path
            assert secret[3:].encode() not in answer.body
    assert secret[3:] not in target.server.log_text()


@pytest.mark.nightly
def test_a_revoked_token_is_refused_by_the_running_server_at_once(study: Path) -> None:
    """Revoked by another process, on the command line."""
    folder = study.parent
    with running_server(study) as server:
        make = ("token", "create", "--role", "auditor", "--name", "eva", "--json")
        made = run(folder, *make).json()
        assert server.get("/api/v1/me", token=made["secret"]).json()["name"] == "eva"
        assert run(folder, "token", "revoke", made["id"]).status == 0
        assert server.get("/api/v1/me", token=made["secret"]).status == 401
        listed = run(folder, "token", "list", "--all", "--json").json()["tokens"]
        assert [(one["state"], one["used"] is None) for one in listed] == [("revoked", False)]
