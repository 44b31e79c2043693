"""What a witness on a server is asked, letter by letter, and how each of its answers is read."""

import http.client
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from takifugu.errors import InvalidFile, LedgerUnavailable, LedgerUnwritable
from takifugu.ledger import Anchor
from takifugu.ledger.witnesses.http_witness import TOKEN, TOKEN_FILE, HttpWitness
from tests.raising import raises

pytestmark = pytest.mark.nightly

SECRET = "tf_only-for-tests"  # noqa: S105
LEDGER = "ab" * 16
EVENT = Anchor(7, "c" * 64)
HERE = "http://127.0.0.1:8470/api/v1/witness"
READ = {"Authorization": f"Bearer {SECRET}", "Accept": "application/json"}


def answer_of(event: Any, **others: Any) -> bytes:
    return json.dumps({"event": event, **others}).encode()


NOTED = answer_of({"seq": 7, "hash": "c" * 64})


@dataclass
class Server:
    """Stands for `http.client`: what is asked of it, and what it answers.

    Attributes:
        answers: What the next requests get: a status, a text and whether the server ends the
            connection; or an error. Without any: an event that is noted.
        made: The connections: how each was made, and what was asked on it.
        read: How many bytes of an answer were asked for.
    """

    answers: list[tuple[int, bytes, bool] | Exception] = field(default_factory=list)
    made: list["Fake"] = field(default_factory=list)
    read: list[int] = field(default_factory=list)
    watched: Callable[[], None] = lambda: None


class Fake:
    """A connection."""

    server: Server

    def __init__(self, *place: Any, **how: Any) -> None:
        self.place, self.how = place, how
        self.asked: list[tuple[Any, ...]] = []
        self.closed = 0
        self.server.made.append(self)

    def request(self, *given: Any) -> None:
        """Noted."""
        self.server.watched()
        self.asked.append(given)

    def getresponse(self) -> "Fake":
        """The next answer."""
        found = self.server.answers.pop(0) if self.server.answers else (200, NOTED, False)
        if isinstance(found, Exception):
            raise found
        self.status, self.text, self.will_close = found
        return self

    def read(self, size: int) -> bytes:
        """As much as is asked for."""
        self.server.read.append(size)
        return self.text[:size]

    def close(self) -> None:
        """Noted."""
        self.server.watched()
        self.closed += 1


class Plain(Fake):
    """Without TLS."""


class Trusted(Fake):
    """With TLS."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv(TOKEN, SECRET)
    monkeypatch.setattr(http.client, "HTTPConnection", Plain)
    monkeypatch.setattr(http.client, "HTTPSConnection", Trusted)
    Fake.server = Server()
    return Fake.server


# --- what is asked ---


def test_a_head_is_asked_for_by_its_ledger(server: Server) -> None:
    witness = HttpWitness(HERE + "/", wait=3)
    assert witness.name == HERE and not server.made  # nothing is asked before it is needed
    assert witness.read(LEDGER) == EVENT
    (made,) = server.made
    assert isinstance(made, Plain) and made.place == ("127.0.0.1", 8470)
    assert made.how == {"timeout": 3}
    assert made.asked == [("GET", f"/api/v1/witness/{LEDGER}", None, READ)]


@pytest.mark.parametrize("seen", [None, Anchor(5, "d" * 64)])
def test_a_head_is_recorded_with_what_was_seen(server: Server, seen: Anchor | None) -> None:
    assert HttpWitness(HERE, wait=3).record(LEDGER, EVENT, seen) == EVENT
    (made,) = server.made
    ((method, path, text, headers),) = made.asked
    assert (method, path) == ("PUT", f"/api/v1/witness/{LEDGER}")
    assert headers == READ | {"Content-Type": "application/json"}
    assert json.loads(text) == {
        "event": {"seq": 7, "hash": "c" * 64},
        "seen": None if seen is None else {"seq": 5, "hash": "d" * 64},
    }


def test_another_machine_is_asked_with_a_certificate_that_is_checked(server: Server) -> None:
    witness = HttpWitness("https://example.org/heads", wait=7)
    assert witness.read(LEDGER) == EVENT
    (made,) = server.made
    assert isinstance(made, Trusted) and made.place == ("example.org", None)
    context = made.how.pop("context")
    assert made.how == {"timeout": 7}
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
    assert made.asked == [("GET", f"/heads/{LEDGER}", None, READ)]


# --- connections that end ---


def test_an_answer_that_is_too_long_ends_the_connection(server: Server) -> None:
    witness = HttpWitness(HERE, wait=3)
    server.answers = [(200, NOTED.ljust(10_000), False)]
    assert witness.read(LEDGER) == EVENT and [one.closed for one in server.made] == [0]
    server.answers = [(200, b"[" * 10_001, False)]
    with raises(LedgerUnavailable, reason="witness"):
        witness.read(LEDGER)
    assert [one.closed for one in server.made] == [1] and server.read == [10_001] * 2
    assert witness.read(LEDGER) == EVENT and len(server.made) == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "(connection refused)"),
        (http.client.RemoteDisconnected("gone"), "(remotedisconnected)"),
        (TimeoutError("timed out"), "(timeouterror)"),
        (ssl.SSLCertVerificationError(1, "verify failed"), "(its certificate is not trusted)"),
        (ssl.SSLError(1, "Wrong Version"), "(wrong version)"),
    ],
)
def test_why_a_server_cannot_be_reached_is_told(
    server: Server, error: Exception, words: str
) -> None:
    server.answers = [error]
    with raises(LedgerUnavailable, reason="witness") as told:
        HttpWitness(HERE, wait=3).read(LEDGER)
    assert words in str(told.value) and HERE in str(told.value)


# --- answers ---


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (400, LedgerUnavailable, "answered with status 400"),
        (401, LedgerUnwritable, "does not accept the token"),
        (402, LedgerUnavailable, "answered with status 402"),
        (403, LedgerUnwritable, "does not accept the token"),
        (404, LedgerUnavailable, "answered with status 404"),
        (409, LedgerUnwritable, f"`takifugu witness forget {LEDGER}`"),
        (410, LedgerUnavailable, "answered with status 410"),
        (201, LedgerUnavailable, "answered with status 201"),
        (503, LedgerUnavailable, "answered with status 503"),
    ],
)
def test_an_answer_counts_only_with_its_status(
    server: Server, status: int, kind: type[LedgerUnavailable | LedgerUnwritable], words: str
) -> None:
    server.answers = [(status, NOTED, False)]
    with raises(kind, reason="witness") as told:
        HttpWitness(HERE, wait=3).record(LEDGER, EVENT, None)
    assert words in str(told.value)


@pytest.mark.parametrize(
    "event",
    [
        {"seq": 0, "hash": "c" * 64},
        {"seq": -1, "hash": "c" * 64},
        {"seq": True, "hash": "c" * 64},
        {"seq": 7.0, "hash": "c" * 64},
        {"seq": "7", "hash": "c" * 64},
        {"seq": None, "hash": "c" * 64},
        {"hash": "c" * 64},
        {"seq": 7},
        {"seq": 7, "hash": None},
        {"seq": 7, "hash": 7},
        {"seq": 7, "hash": "c" * 63},
        {"seq": 7, "hash": "c" * 65},
        {"seq": 7, "hash": "C" * 64},
        {"seq": 7, "hash": "c" * 64 + "\n"},
        [7, "c" * 64],
        "c" * 64,
    ],
)
def test_what_is_no_event_is_no_answer(server: Server, event: Any) -> None:
    server.answers = [(200, answer_of(event), False)]
    with raises(LedgerUnavailable, reason="witness") as told:
        HttpWitness(HERE, wait=3).read(LEDGER)
    assert "answered with status 200" in str(told.value)


# --- addresses and tokens ---


@pytest.mark.parametrize(
    "address",
    [
        "http://LOCALHOST:1/witness",
        "http://[::1]:8470/witness",
        "https://10.0.0.1/witness",
        "HTTPS://example.org",
    ],
)
def test_addresses_that_a_token_may_be_sent_to(server: Server, address: str) -> None:
    witness = HttpWitness(address, wait=1)
    assert witness.name == address and witness.read(LEDGER) == EVENT
    (made,) = server.made
    assert isinstance(made, Plain) == address.startswith("http:")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("https://example.org/#part", "address"),
        ("https://@example.org/", "address"),
        ("https://me@example.org/", "address"),
        ("https://example.org:99999/", "address"),
        ("https://example.org/?", None),
        ("example.org/witness", "address"),
        ("", "address"),
        ("HTTP://10.0.0.1/", "tls"),
        ("http://me@example.org/", "address"),
    ],
)
def test_addresses_that_no_token_is_sent_to(
    server: Server, address: str, reason: str | None
) -> None:
    if reason is None:  # an empty query is none
        HttpWitness(address, wait=1)
    else:
        with raises(InvalidFile, field="witness", reason=reason):
            HttpWitness(address, wait=1)
    assert not server.made


def test_a_token_that_is_given_comes_before_one_in_a_file(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("tf_in-the-file\n")
    monkeypatch.setenv(TOKEN_FILE, str(tmp_path / "token"))
    monkeypatch.setenv(TOKEN, f" {SECRET} ")
    for sent in (SECRET, "tf_in-the-file"):
        HttpWitness(HERE, wait=1).read(LEDGER)
        assert server.made[-1].asked[0][3]["Authorization"] == f"Bearer {sent}"
        monkeypatch.delenv(TOKEN, raising=False)


@pytest.mark.parametrize("token", ["tab\tbed", "two words", "ü", "\x7f", ""])
def test_a_file_without_a_token_gives_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    (tmp_path / "token").write_text(token, encoding="utf-8")
    monkeypatch.setenv(TOKEN_FILE, str(tmp_path / "token"))
    with raises(InvalidFile, field="witness", reason="token"):
        HttpWitness(HERE, wait=1)
    (tmp_path / "token").unlink()
    with raises(InvalidFile, field=TOKEN_FILE, needed="hold a token of a witness"):
        HttpWitness(HERE, wait=1)
