"""Clients that are slow by intent, send too much, or send what is no request."""

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.projects import small_project
from tests.server.raw_requests import kind_of, raw_connection, read_all, status_of
from tests.server.running import PATIENCE, RunningServer, read_answer, running_server

SECOND = 1.0  # for a request to arrive, and for a part of a response to be read
GUARDS = (
    *("content-security-policy", "x-content-type-options", "referrer-policy", "cache-control"),
    *("permissions-policy", "cross-origin-opener-policy", "cross-origin-resource-policy"),
    *("x-frame-options", "strict-transport-security"),
)
HEAD = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    project = small_project(tmp_path_factory.mktemp("slow") / "a study")
    limits: dict[str, Any] = {"request_time": SECOND, "response_time": SECOND, "keep_alive": SECOND}
    with running_server(project, request_bytes=4096, **limits) as running:
        yield running
        assert running.get("/healthz").status == 200  # whatever was done to it


@pytest.mark.nightly
def test_a_head_that_never_ends_is_refused(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: he")
        answer = read_all(raw)
    assert (status_of(answer), kind_of(answer)) == (408, "slow-request")


@pytest.mark.nightly
def test_one_byte_at_a_time_is_no_way_to_hold_a_connection(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        stop = threading.Event()

        def drip() -> None:
            raw.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
            while not stop.wait(0.05):
                try:
                    raw.sendall(b"x")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        answer = read_all(raw)
        stop.set()
        dripping.join()
    assert status_of(answer) == 408


@pytest.mark.nightly
def test_a_body_that_never_ends_is_refused(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        raw.sendall(HEAD + b"Content-Length: 100\r\n\r\nabc")
        answer = read_all(raw)
    assert (status_of(answer), kind_of(answer)) == (408, "slow-request")


@pytest.mark.nightly
def test_chunks_that_never_end_are_refused(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        raw.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        answer = read_all(raw)
    assert status_of(answer) == 408


@pytest.mark.nightly
def test_who_connects_and_says_nothing_is_let_go(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        assert read_all(raw) == b""


@pytest.mark.nightly
def test_a_connection_that_is_kept_without_use_is_closed(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = read_all(raw)  # until the server closes it
    assert status_of(answer) == 200


@pytest.mark.nightly
def test_a_second_request_on_a_connection_has_its_own_time(study: Path) -> None:
    with running_server(study, request_time=SECOND, keep_alive=600) as server:
        connection = server.connection()
        for _ in range(2):
            connection.request("GET", "/healthz")
            assert read_answer(connection).status == 200
            time.sleep(1.5 * SECOND)
        connection.sock.sendall(b"GET /hea")
        assert status_of(read_all(connection.sock)) == 408
        connection.close()


@pytest.mark.nightly
@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 40_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % k for k in range(4_000)) + b"\r\n",
        b"GET / HTTP/1.1\r\nX-Endless: " + b"a" * 200_000,
    ],
    ids=["address", "header", "headers", "endless"],
)
def test_a_head_that_is_too_large_is_refused(server: RunningServer, head: bytes) -> None:
    with raw_connection(server) as raw:
        _send(raw, head)
        answer = read_all(raw)
    assert (status_of(answer), kind_of(answer)) == (431, "headers-too-large")


@pytest.mark.nightly
def test_a_trailer_is_no_header_and_has_the_same_limit(server: RunningServer) -> None:
    token = server.token("owner", "trailing")
    head = HEAD.replace(b"POST /healthz", b"GET /api/v1/me")
    chunks = head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    with raw_connection(server) as raw:
        raw.sendall(chunks + b"Authorization: Bearer " + token.encode() + b"\r\n\r\n")
        assert status_of(read_all(raw)) == 401  # a token in a trailer is not seen
    with raw_connection(server) as raw:
        _send(raw, chunks + b"X-Endless: " + b"a" * 200_000)
        assert status_of(read_all(raw)) in (431, 408)


def test_a_body_that_is_too_large_is_refused_before_anybody_is_asked(server: RunningServer) -> None:
    answer = server.post("/healthz", {"x": "a" * 5_000})
    assert answer.status == 413 and answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:takifugu:problem:body-too-large"
    assert answer.headers["connection"] == "close" and answer.headers["x-request-id"]


def test_a_body_of_the_largest_size_is_read(server: RunningServer) -> None:
    assert server.ask("POST", "/healthz", body=b"a" * 4_096).status == 405  # read, and refused
    assert server.ask("POST", "/healthz", body=b"a" * 4_097).status == 413


def test_a_huge_body_is_refused_by_its_declared_length(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        raw.sendall(HEAD + b"Content-Length: 99999999999\r\n\r\n")
        answer = read_all(raw)
    assert (status_of(answer), kind_of(answer)) == (413, "body-too-large")


def test_chunks_without_end_are_refused(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        _send(raw, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1000\r\n%b\r\n" % (b"a" * 4096))
        for _ in range(600):
            if not _send(raw, b"1000\r\n%b\r\n" % (b"a" * 4096)):
                break
        answer = read_all(raw)
    assert not answer or status_of(answer) == 413  # a reset may overtake it


@pytest.mark.parametrize(
    "request_",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 this is TLS",
        b"GET / HTTP/9.9\r\n\r\n",
        b"not http at all\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: 1\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        HEAD + b"Content-Length: -1\r\n\r\n",
        b"CONNECT here:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_is_no_request_gets_a_problem(server: RunningServer, request_: bytes) -> None:
    with raw_connection(server) as raw:
        raw.sendall(request_)
        answer = read_all(raw)
    assert (status_of(answer), kind_of(answer)) == (400, "no-request")


@pytest.mark.nightly
@pytest.mark.parametrize("limit", ["connections", "address_connections"])
def test_connections_beyond_a_limit_are_refused_until_others_end(study: Path, limit: str) -> None:
    settings: dict[str, Any] = {"request_time": 600, limit: 20}
    with running_server(study, **settings) as server:
        where = server.host, server.port
        opened = [socket.create_connection(where, timeout=PATIENCE) for _ in range(35)]
        try:
            refused = _spoken_to(opened, 15)
            assert len(refused) == 15
            answer = read_all(refused[0])
            assert (status_of(answer), kind_of(answer)) == (503, "too-many-connections")
        finally:
            for one in opened:
                one.close()
        assert _in_the_end(lambda: server.get("/healthz").status == 200)


def _spoken_to(opened: list[socket.socket], least: int) -> list[socket.socket]:
    """The connections on which the server said something, once it did on so many."""
    for _ in range(10 * PATIENCE):
        found, _, _ = select.select(opened, (), (), 0)
        if len(found) >= least:
            break
        time.sleep(0.1)
    return found


@pytest.mark.nightly
def test_who_does_not_read_is_let_go(server: RunningServer) -> None:
    """A thousand requests at once, whose answers are never read, on a connection that stays."""
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        raw.connect((server.host, server.port))
        raw.settimeout(30)
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ended = False
        for _ in range(2_000):
            if not _send(raw, request * 10):
                ended = True
                break
            time.sleep(0.01)
    assert ended


def test_a_client_that_goes_away_while_it_sends_leaves_nothing(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        raw.sendall(HEAD + b"Content-Length: 1000\r\n\r\nabc")
    assert server.get("/healthz").status == 200


@pytest.mark.nightly
def test_nothing_of_it_is_in_the_log(server: RunningServer) -> None:
    with raw_connection(server) as raw:
        raw.sendall(
            b"GET /secret-of-somebody?name=secret-of-somebody HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        raw.recv(100)
    assert "secret-of-somebody" not in server.log_text()
    assert all("Traceback" not in line["message"] for line in server.log())


def _send(raw: socket.socket, data: bytes) -> bool:
    """Send, as far as the other side takes it."""
    try:
        raw.sendall(data)
    except OSError:
        return False
    return True


def _in_the_end(true: Callable[[], bool]) -> bool:
    for _ in range(10 * PATIENCE):
        try:
            if true():
                return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


@pytest.mark.nightly
def test_what_is_refused_before_the_app_has_the_headers_of_all_answers(study: Path) -> None:
    """Of a browser's view: no script, no guess at the type, no copy, and TLS from now on."""
    limits: dict[str, Any] = {"request_time": SECOND, "request_bytes": 1_024, "header_bytes": 4_096}
    with running_server(study, **limits, origin="https://stats.example.org") as server:
        usual = server.get("/healthz").headers
        refused = {
            408: b"GET /healthz HTTP/1.1\r\nHo",
            413: HEAD + b"Content-Length: 2000\r\n\r\n" + b"a" * 2_000,
            421: b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
            431: b"GET / HTTP/1.1\r\nX-Long: " + b"a" * 8_000 + b"\r\n\r\n",
            400: b"not http at all\r\n\r\n",
        }
        for status, sent in refused.items():
            with raw_connection(server) as raw:
                raw.sendall(sent)
                answer = read_all(raw)
            assert status_of(answer) == status
            assert _guards(answer) == {name: usual[name] for name in GUARDS}, status
    with running_server(study, connections=1) as server:
        holding = server.connection()
        holding.connect()
        with raw_connection(server) as raw:
            answer = read_all(raw)
        holding.close()
    assert status_of(answer) == 503
    plain = {name: usual[name] for name in GUARDS if name != "strict-transport-security"}
    assert _guards(answer) == plain  # in clear, on this machine


def _guards(answer: bytes) -> dict[str, str]:
    lines = answer.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    pairs = [line.split(": ", 1) for line in lines]
    found = {name.lower(): value for name, value in pairs if name.lower() in GUARDS}
    assert len(found) == sum(name.lower() in GUARDS for name, _ in pairs)  # each once
    return found
