"""How a server is reached: addresses, tokens, TLS, lost connections, servers that are none."""

import json
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import takifugu as tf
from takifugu.client import ApprovalDeclined, ServerRefused, ServerUnreachable
from takifugu.client.exchange import Exchange, read_address
from takifugu.client.problem_errors import ERRORS, error_of
from takifugu.documents.reading import InvalidDocument
from takifugu.errors import (
    InvalidFile,
    LedgerUnavailable,
    NotAccepted,
    TakifuguError,
    UnsoundRequest,
)
from takifugu.server.api import problems
from takifugu.session import OverBudget
from tests.client.listening import Listening
from tests.raising import raises

ME = {"name": "ana", "role": "analyst", "token": "t1"}


# --- addresses and tokens ---


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://stats.example.org", "clear-text"),
        ("http://10.0.0.5:8461", "clear-text"),
        ("http://127.0.0.1.example.org", "clear-text"),
        ("http://[2001:db8::1]/", "clear-text"),
        ("http://0.0.0.0:8461", "clear-text"),
        ("https://ana:secret@stats.example.org", "token-in-url"),
        ("https://stats.example.org/?token=secret", "token-in-url"),
        ("https://stats.example.org/#secret", "token-in-url"),
        ("stats.example.org", "url"),
        ("ftp://stats.example.org", "url"),
        ("https://", "url"),
        ("https://a b", "url"),
        ("https://stats.example.org:99999", "url"),
        ("https://stats.example.org\r\nX: y", "url"),
        ("https://[::1", "url"),
        (b"https://x", "url"),
        (None, "url"),
    ],
)
def test_an_address_that_would_give_a_token_away_is_refused(url: Any, reason: str) -> None:
    with raises(UnsoundRequest, field="url", reason=reason) as caught:
        tf.connect(url, "the-token")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "host", "port", "base"),
    [
        ("https://stats.example.org", "stats.example.org", 443, ""),
        ("https://stats.example.org/takifugu/", "stats.example.org", 443, "/takifugu"),
        ("http://127.0.0.1:8461/", "127.0.0.1", 8461, ""),
        ("http://localhost:1", "localhost", 1, ""),
        ("http://[::1]:5", "::1", 5, ""),
        ("http://127.8.9.1", "127.8.9.1", 80, ""),
    ],
)
def test_addresses_by_tls_or_on_this_machine_are_read(
    url: str, host: str, port: int, base: str
) -> None:
    found = read_address(url)
    assert (found.host, found.port, found.base) == (host, port, base)
    assert found.secure == url.startswith("https")


@pytest.mark.parametrize(
    ("token", "reason"),
    [("", "form"), ("  ", "form"), ("a b", "form"), ("a\r\nX: y", "form"), ("é", "form"),
     (7, "form"), ("x" * 501, "form")],
)  # fmt: skip
def test_a_token_of_another_form_is_not_sent(token: Any, reason: str) -> None:
    with raises(UnsoundRequest, field="token", reason=reason):
        tf.connect("http://127.0.0.1:1", token)


@pytest.mark.nightly
def test_a_token_comes_from_the_environment(
    server: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TAKIFUGU_TOKEN", raising=False)
    with raises(UnsoundRequest, field="token", reason="missing"):
        tf.connect(server.url)
    monkeypatch.setenv("TAKIFUGU_TOKEN", server.tokens["bo"] + "\n")
    with tf.connect(server.url) as connection:
        assert (connection.name, connection.role) == ("bo", "analyst")
        assert repr(connection) == f"<Connection to {server.url} as analyst 'bo'>"
    with tf.connect(server.url, server.tokens["ana"]) as connection:  # one that is given counts
        assert connection.name == "ana"


@pytest.mark.parametrize(
    "options",
    [{"progress": "yes"}, {"patience": -1}, {"patience": "1"}, {"patience": float("nan")},
     {"patience": True}],
)  # fmt: skip
def test_options_of_another_kind_are_refused(options: dict[str, Any]) -> None:
    with raises(UnsoundRequest, field=next(iter(options))):
        tf.connect("http://127.0.0.1:1", "x", **options)


@pytest.mark.nightly
def test_a_token_that_is_unknown_or_may_not_is_refused(server: Listening) -> None:
    with raises(ServerRefused, status=401, code="signed-out"):
        tf.connect(server.url, "nobody")
    with tf.connect(server.url, server.tokens["olga"]) as connection:
        assert connection.role == "owner"
        dataset = connection.dataset("stays")
        plan = dataset.plan.histogram(epsilon="0.5")
        with raises(ServerRefused, status=403):
            dataset.release(plan)
        with raises(ServerRefused, status=404, code="no-dataset"):
            connection.dataset("stay").plan.histogram(epsilon=1)
        with raises(ServerRefused, status=404):
            connection.dataset("../stays").plan.histogram(epsilon=1)
        with raises(UnsoundRequest, field="dataset"):
            connection.dataset("")


# --- TLS ---


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "own.pem", folder / "own.key"
    subprocess.run(  # noqa: S603
        ["/usr/bin/env", "openssl",
         "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(made),
         "-keyout", str(key)],
        check=True, capture_output=True,
    )  # fmt: skip
    return made, key


def test_a_certificate_is_trusted_by_its_authority_alone(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with scripted([answer(200, ME)] * 3, tls=context) as port:
        url = f"https://127.0.0.1:{port}"
        with raises(ServerUnreachable, reason="certificate"):
            tf.connect(url, "the-token")
        with tf.connect(url, "the-token", ca=certificate[0]) as connection:
            assert connection.name == "ana"
        with raises(ServerUnreachable, reason="certificate"):  # of another name
            tf.connect(f"https://localhost:{port}", "the-token", ca=certificate[0])
    with raises(InvalidFile, field="ca"):
        tf.connect(url, "x", ca=tmp_path / "nothing.pem")
    (tmp_path / "empty.pem").write_text("no certificate\n")
    with raises(InvalidFile, field="ca"):
        tf.connect(url, "x", ca=tmp_path / "empty.pem")
    with raises(UnsoundRequest, field="ca"):
        tf.connect("http://127.0.0.1:1", "x", ca=certificate[0])


# --- a server that answers what a test tells it to ---


def answer(status: int, document: Any = None, *headers: str, body: bytes | None = None) -> bytes:
    content = json.dumps(document).encode() if body is None else body
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


CUT = b""  # the connection is closed without a word
LAST = b"\0last"  # at the end of an answer: the connection is closed after it


@contextmanager
def scripted(
    answers: Sequence[bytes], *, tls: ssl.SSLContext | None = None, seen: list[bytes] | None = None
) -> Iterator[int]:
    """A server that gives one answer after another; an empty one cuts the connection."""
    left, requests = list(answers), [] if seen is None else seen
    listener = socket.create_server(("127.0.0.1", 0))

    def talk(connection: socket.socket) -> None:
        with connection:
            try:
                speaking = (
                    connection if tls is None else tls.wrap_socket(connection, server_side=True)
                )
                with speaking:
                    while left and (request := _request(speaking)):
                        requests.append(request)
                        if not (found := left.pop(0)):
                            return
                        speaking.sendall(found.removesuffix(LAST))
                        if found.endswith(LAST):
                            return
            except OSError:
                return

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(10)


def _request(connection: socket.socket) -> bytes:
    found = b""
    while b"\r\n\r\n" not in found:
        part = connection.recv(65536)
        if not part:
            return b""
        found += part
        if not found[:1].isalpha():  # the beginning of TLS, for one
            return found
    head, _, body = found.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def exchange(port: int, patience: float = 20.0) -> Iterator[Exchange]:
    address = read_address(f"http://127.0.0.1:{port}")
    made = Exchange(address, "the-token", trust=None, timeout=20.0, patience=patience)
    yield made
    made.close()


def problem(status: int, kind: str, *headers: str, **fields: Any) -> bytes:
    document = {"type": f"urn:takifugu:problem:{kind}", "title": "x", "status": status}
    return answer(
        status, document | {"detail": "said", "field": "", "reason": ""} | fields, *headers
    )


@pytest.mark.nightly
def test_a_lost_connection_and_a_server_that_is_away_are_asked_again() -> None:
    seen: list[bytes] = []
    away = [CUT, problem(503, "server"), answer(502, {}), problem(503, "WorkerLost")]
    with scripted([*away, answer(200, {"ok": 1})], seen=seen) as port, exchange(port) as asking:
        key = {"Idempotency-Key": "k1"}
        reply = asking.ask("POST", "/x", document={"a": 1}, headers=key)
        assert reply.document() == {"ok": 1}
    assert len(seen) == 5 and all(b"Idempotency-Key: k1" in one for one in seen)
    assert all(one.endswith(b'{"a": 1}') and b"Bearer the-token" in one for one in seen)


def test_half_an_answer_is_none() -> None:
    half = b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{"
    chunk = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"
    for cut in (half, chunk):
        seen: list[bytes] = []
        script = [cut + LAST, answer(200, {"ok": 1})]
        with scripted(script, seen=seen) as port, exchange(port) as asking:
            assert asking.read("/x") == {"ok": 1}
        assert len(seen) == 2


@pytest.mark.nightly
def test_what_stays_away_is_an_error_in_the_end() -> None:
    with (
        scripted([CUT] * 50) as port,
        exchange(port, 0.3) as asking,
        raises(ServerUnreachable, reason="lost", sent=True),
    ):
        asking.ask("GET", "/x")
    with exchange(port, 0.2) as asking, raises(ServerUnreachable, reason="refused", sent=False):
        asking.ask("GET", "/x")
    with raises(ServerUnreachable, reason="refused"):
        tf.connect(f"http://127.0.0.1:{port}", "x")
    with raises(ServerUnreachable, reason="host"):
        tf.connect("https://no-such-host.invalid", "x")
    unavailable = problem(503, "LedgerUnavailable", dataset="stays", event=None)
    with (
        scripted([unavailable] * 50) as port,
        exchange(port, 0.3) as asking,
        raises(LedgerUnavailable, dataset="stays"),
    ):
        asking.read("/x")
    seen: list[bytes] = []
    with (
        scripted([problem(503, "WorkTimedOut")] * 3, seen=seen) as port,
        exchange(port) as asking,
        raises(ServerRefused, code="WorkTimedOut", status=503),
    ):
        asking.read("/x")
    assert len(seen) == 1  # patience mends nothing here


@pytest.mark.nightly
def test_too_often_is_waited_for_as_long_as_patience_lasts() -> None:
    soon, late = (problem(429, "too-often", f"Retry-After: {n}") for n in (1, 3600))
    with scripted([soon, answer(200, {"ok": 1})]) as port, exchange(port) as asking:
        began = time.monotonic()
        assert asking.read("/x") == {"ok": 1}
        assert time.monotonic() - began >= 1
    with (
        scripted([late] * 3) as port,
        exchange(port) as asking,
        raises(ServerRefused, status=429, retry_after=3600.0),
    ):
        asking.read("/x")


@pytest.mark.nightly
def test_an_idle_connection_that_was_closed_is_opened_again() -> None:
    script = [answer(200, 1), CUT, answer(200, 2), answer(200, 3)]
    with scripted(script) as port, exchange(port, 0.0) as asking:
        assert [asking.read("/x") for _ in range(3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (answer(302, None, "Location: https://elsewhere.example.org/"), "redirect"),
        (answer(200, body=b"<html>"), "answer"),
        (answer(200, body=b"[NaN]"), "answer"),
        (answer(200, body=b"[" * 100_000), "answer"),
        (answer(200, body=b"9" * 10_000), "answer"),
        (answer(404, body=b"not here"), "answer"),
    ],
)
def test_what_is_no_takifugu_server_is_named(reply: bytes, reason: str) -> None:
    with scripted([reply] * 3) as port, raises(ServerUnreachable, reason=reason):
        tf.connect(f"http://127.0.0.1:{port}", "x")


@pytest.mark.parametrize("me", [{}, [], {"name": 1, "role": "x"}, {"name": "a"}])
def test_a_server_that_does_not_say_who_asks_is_refused(me: Any) -> None:
    with scripted([answer(200, me)]) as port, pytest.raises(InvalidDocument):
        tf.connect(f"http://127.0.0.1:{port}", "x")


def test_a_server_without_tls_is_named() -> None:
    with scripted([answer(400, {})] * 3) as port, raises(ServerUnreachable, reason="tls"):
        tf.connect(f"https://127.0.0.1:{port}", "x")


# --- errors made again ---


def kinds(base: type[TakifuguError]) -> Iterator[type[TakifuguError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def test_every_error_that_a_server_may_send_is_made_again() -> None:
    sent = dict(problems.ERRORS)
    bases = {"Malformed", "LedgerError", "TakifuguError"}  # raised as one of their kinds
    bases |= {"BudgetConflict"}  # of those who open a session with a budget: no analyst of a server
    of_servers = {k.__name__ for k in kinds(TakifuguError) if ".server." in k.__module__}
    assert {"StateConflict"} < of_servers  # of owners, who do not ask: `ServerRefused`
    assert not set(sent) - bases - of_servers - {kind.__name__ for kind in ERRORS}
    for kind, fields in ERRORS.items():
        if kind is ApprovalDeclined:  # no error of a local session
            continue
        told = {*sent[kind.__name__].fields}
        assert told <= {*fields}, kind


def test_an_error_with_wrong_fields_is_what_it_says_and_no_more() -> None:
    whole = {"type": "urn:takifugu:problem:OverBudget", "detail": "too much", "status": 409}
    with raises(ServerRefused, status=409, code="OverBudget"):
        raise error_of(whole)
    fields = {"query": "q", "dataset": "d", "analyst": None, "currency": "epsilon", "needs": "1/3",
              "left": "0", "alone": 2.5, "most": "0.25"}  # fmt: skip
    with raises(OverBudget, needs=1 / 3, alone=2.5, dataset="d", analyst=None) as caught:
        error = error_of(whole | fields)
        assert isinstance(error, OverBudget)
        error.needs = float(error.needs)
        raise error
    assert str(caught.value) == "too much" and caught.value.whose == "dataset 'd'"
    for wrong in (None, [], "x", {"detail": 3}, {"type": 1, "detail": "x"}):
        assert isinstance(error_of(wrong, status=500), ServerRefused)
    accepted = {"type": "urn:takifugu:problem:NotAccepted", "detail": "x", "changed": ["prior"]}
    with raises(NotAccepted, changed=("prior",), keys=(), dataset=""):
        raise error_of(accepted)
