"""A witness on a server: what it remembers, and what happens when it cannot be asked."""

import http.client
import json
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidFile, LedgerSetBack, LedgerUnavailable, LedgerUnwritable
from takifugu.ledger import Anchor, open_ledger
from takifugu.ledger.witnesses.http_witness import TOKEN, TOKEN_FILE, HttpWitness
from tests.ledger.charges import DOUBLING, charge
from tests.raising import raises

SECRET = "tf_only-for-tests"  # noqa: S105
LEDGER = "ab" * 16


class Peer(ThreadingHTTPServer):
    """A server that remembers heads, as the routes of a takifugu server do."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.heads: dict[str, Any] = {}
        self.answer: tuple[int, bytes] | None = None  # whatever is asked
        self.hang_up = False  # after each answer, without saying so
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        """Where to ask."""
        return f"http://127.0.0.1:{self.server_port}/api/v1/witness"


class Answering(BaseHTTPRequestHandler):
    """GET reads a head, PUT replaces the one that was seen."""

    server: Peer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Read."""
        self._answer(None)

    def do_PUT(self) -> None:
        """Replace."""
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _answer(self, body: Any) -> None:
        ledger = self.path.removeprefix("/api/v1/witness/")
        status, content = 200, b""
        if self.headers["Authorization"] != f"Bearer {SECRET}":
            status = 401
        with self.server.lock:
            heads = self.server.heads
            if body is not None and heads.get(ledger) == body["seen"]:
                heads[ledger] = body["event"]
            content = json.dumps({"event": heads.get(ledger)}).encode()
        if self.server.answer is not None:
            status, content = self.server.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
        self.close_connection = self.server.hang_up

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[Peer]:
    server = Peer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    monkeypatch.setenv(TOKEN, SECRET)
    with serving() as server:
        yield server


def test_a_head_is_recorded_read_and_replaced_only_as_seen(peer: Peer) -> None:
    witness = HttpWitness(peer.address, wait=5)
    first, second, third = (Anchor(n, f"{n:064x}") for n in (1, 2, 3))
    assert witness.read(LEDGER) is None
    assert witness.record(LEDGER, first, None) == first
    assert witness.record(LEDGER, third, None) == first  # others were here before
    assert witness.record(LEDGER, second, first) == second
    assert witness.record(LEDGER, second, first) == second  # sent again
    assert witness.read(LEDGER) == second and witness.read("cd" * 16) is None
    witness.close()


def test_a_connection_that_ended_meanwhile_is_made_again(peer: Peer) -> None:
    peer.hang_up = True
    witness = HttpWitness(peer.address, wait=5)
    seen = None
    for number in range(1, 20):
        event = Anchor(number, f"{number:064x}")
        assert witness.record(LEDGER, event, seen) == event
        seen = event
    witness.close()


def test_an_older_copy_is_refused(peer: Peer, tmp_path: Path) -> None:
    path = tmp_path / "ward.ledger"
    with open_ledger(path, witness=peer.address) as ledger:
        ledger.set_budget("ward", 2)
        assert ledger.witness == peer.address
    shutil.copy(path, tmp_path / "copy")
    with open_ledger(path, witness=peer.address) as ledger:
        ledger.charge(charge("0.5"), DOUBLING)
        assert ledger.verify().witness == ledger.head()
    shutil.copy(tmp_path / "copy", path)
    with raises(LedgerSetBack, reason="older"):
        open_ledger(path, witness=peer.address)


def test_nothing_is_charged_while_the_witness_is_away(peer: Peer, tmp_path: Path) -> None:
    with open_ledger(tmp_path / "ward.ledger", witness=peer.address) as ledger:
        ledger.set_budget("ward", 2)
        before = ledger.head()
        peer.answer = (503, b"")
        with raises(LedgerUnavailable, reason="witness"):
            ledger.charge(charge("0.5"), DOUBLING)
        with raises(LedgerUnavailable, reason="witness"):
            ledger.remaining("ward", DOUBLING)
        assert ledger.head() == before
        peer.answer = None
        ledger.charge(charge("0.5"), DOUBLING)


def test_a_server_that_does_not_run_is_said() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TOKEN, SECRET)
        with serving() as server:
            address = server.address
        with raises(LedgerUnavailable, reason="witness"):
            HttpWitness(address, wait=5).read(LEDGER)


HASHED = b'{"event": {"seq": %s, "hash": "%s"}}'


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"[]", b"{}", b"<html>", b"[" * 9_000, b"x" * 20_000),
        *(b'{"event": 3}', b'{"event": {"seq": 1}}'),
        *(HASHED % (b"true", b"a" * 64), HASHED % (b"1", b"g" * 64), HASHED % (b"0", b"a" * 64)),
    ],
)
def test_what_is_no_answer_of_a_witness_is_refused(peer: Peer, content: bytes) -> None:
    peer.answer = (200, content)
    witness = HttpWitness(peer.address, wait=5)
    with raises(LedgerUnavailable, reason="witness"):
        witness.read(LEDGER)
    witness.close()


def test_another_token_is_refused(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, "tf_another")
    witness = HttpWitness(peer.address, wait=5)
    with raises(LedgerUnwritable, reason="witness"):
        witness.read(LEDGER)
    witness.close()


def test_the_token_may_be_in_a_file(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TOKEN)
    (tmp_path / "token").write_text(f"{SECRET}\n")
    monkeypatch.setenv(TOKEN_FILE, str(tmp_path / "token"))
    witness = HttpWitness(peer.address, wait=5)
    assert witness.read(LEDGER) is None
    witness.close()


@pytest.mark.parametrize("token", ["", "  ", "two words", "a\nb", "ü"])
def test_a_token_is_needed(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, token)
    monkeypatch.delenv(TOKEN_FILE, raising=False)
    with raises(InvalidFile, field="witness", reason="token"):
        HttpWitness("https://example.org/api/v1/witness", wait=1)


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://example.org/witness", "tls"),
        ("http://127.0.0.1.example.org/witness", "tls"),
        ("http://localhost.example.org/", "tls"),
        ("https:///witness", "address"),
        ("https://me:pass@example.org/", "address"),
        ("https://example.org/?token=a", "address"),
        ("https://example.org:no/", "address"),
        ("https://[::1/", "address"),
    ],
)
def test_a_token_is_sent_nowhere_in_the_clear(
    address: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    with raises(InvalidFile, field="witness", reason=reason):
        HttpWitness(address, wait=1)


def test_a_file_without_a_token_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setenv(TOKEN_FILE, str(tmp_path / "none"))
    with raises(InvalidFile, field=TOKEN_FILE):
        HttpWitness("https://example.org/api/v1/witness", wait=1)


def test_the_certificate_of_another_machine_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN, SECRET)
    contexts: list[ssl.SSLContext] = []

    def unreachable(*_: Any, context: ssl.SSLContext, **__: Any) -> None:
        contexts.append(context)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(http.client, "HTTPSConnection", unreachable)
    with raises(LedgerUnavailable, reason="witness"):
        HttpWitness("https://example.org/heads", wait=1).read(LEDGER)
    (context,) = contexts
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
