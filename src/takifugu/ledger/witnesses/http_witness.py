"""A witness on another server: ``takifugu serve`` remembers the heads of others' ledgers.

The address is that of the server's witness, ``https://host/api/v1/witness``. The token, of role
``witness``, is in $TAKIFUGU_WITNESS_TOKEN, or in the file that $TAKIFUGU_WITNESS_TOKEN_FILE names:
a project file is read by many, and an address is logged. Without TLS only this machine is spoken
to, since a token must not travel in the clear.
"""

import http.client
import ipaddress
import json
import os
import re
import ssl
import threading
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from takifugu._core.atomic import read_whole
from takifugu.errors import InvalidFile, LedgerUnavailable, LedgerUnwritable
from takifugu.ledger.events.event_chain import Anchor

TOKEN, TOKEN_FILE = "TAKIFUGU_WITNESS_TOKEN", "TAKIFUGU_WITNESS_TOKEN_FILE"
MAX_ANSWER_BYTES = 10_000  # bytes of an answer
_HASH = re.compile(r"[0-9a-f]{64}")
_LOST = (OSError, http.client.HTTPException)  # a refused connection, or one that ended


class HttpWitness:
    """The heads of ledgers, remembered by another server. Threads share one connection."""

    def __init__(self, address: str, *, wait: float) -> None:
        self._parts = _checked(address)
        self.name, self._wait = address.rstrip("/"), wait
        self._token = _token()
        self._lock = threading.Lock()
        self._connection: http.client.HTTPConnection | None = None

    def read(self, ledger: str) -> Anchor | None:
        """The event that was recorded last."""
        return self._call("GET", ledger, None)

    def record(self, ledger: str, event: Anchor, seen: Anchor | None) -> Anchor | None:
        """Record ``event`` unless others have recorded something since.

        Sent again after a connection broke it does no harm: the event is then there already.
        """
        return self._call("PUT", ledger, {"event": _body(event), "seen": _body(seen)})

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._drop()

    def _call(self, method: str, ledger: str, body: Any) -> Anchor | None:
        """What is recorded now, as the server answers."""
        text = None if body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {self._token}", "Accept": "application/json"}
        if text is not None:
            headers["Content-Type"] = "application/json"
        path = f"{self._parts.path.rstrip('/')}/{ledger}"
        with self._lock:
            for fresh in (False, True):
                reused = self._connection is not None
                try:
                    status, answer = self._ask(method, path, text, headers)
                except _LOST as error:
                    self._drop()
                    if reused and not fresh:  # the server ended a connection that was not in use
                        continue
                    raise LedgerUnavailable(
                        f"the witness {self.name!r} cannot be reached ({_why(error)}); nothing was"
                        " released. See whether its server runs, then try again",
                        reason="witness",
                    ) from None
                break
        if status in (401, 403):
            raise self._unwritable(
                "does not accept the token",
                "Have its owner make one (`takifugu token create --role witness`), and put it in"
                f" ${TOKEN}",
            )
        if status == http.client.CONFLICT:
            raise self._unwritable(
                "does not go back to an earlier event",
                "Restore the newer copy of the ledger; if it is lost and that was accepted, have an"
                f" owner of the witness run `takifugu witness forget {ledger}`",
            )
        try:
            if status == http.client.OK:
                return _event(answer)
        except (ValueError, KeyError, TypeError, RecursionError):
            pass  # it is no answer of a witness
        raise LedgerUnavailable(
            f"the witness {self.name!r} answered with status {status}, and not with an event;"
            " nothing was released. See whether it is the address of a witness",
            reason="witness",
        )

    def _unwritable(self, why: str, advice: str) -> LedgerUnwritable:
        return LedgerUnwritable(
            f"the witness {self.name!r} {why}; nothing was released. {advice}", reason="witness"
        )

    def _ask(
        self, method: str, path: str, text: str | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._new()
        self._connection.request(method, path, text, headers)
        response = self._connection.getresponse()
        answer = response.read(MAX_ANSWER_BYTES + 1)
        if len(answer) > MAX_ANSWER_BYTES or response.will_close:
            self._drop()
        return response.status, answer

    def _new(self) -> http.client.HTTPConnection:
        host, port = str(self._parts.hostname), self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self._wait)
        trusted = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=self._wait, context=trusted)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _checked(address: str) -> SplitResult:
    """The parts of an address that a token may be sent to."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    if not parts.hostname or parts.query or parts.fragment or parts.username is not None:
        raise InvalidFile(
            "witness",
            given="is not the address of a witness",
            needed="be like https://host/api/v1/witness",
            reason="address",
        )
    if parts.scheme == "http" and not _is_here(parts.hostname):
        raise InvalidFile(
            "witness",
            given="is an address without TLS on another machine",
            needed="begin with https://: a token must not travel in the clear",
            reason="tls",
        )
    return parts


def _is_here(host: str) -> bool:
    """Whether a host is this machine, by its very name."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token() -> str:
    token, place = os.environ.get(TOKEN, ""), os.environ.get(TOKEN_FILE, "")
    if not token and place:
        token = read_whole(Path(place), field=TOKEN_FILE, needed="hold a token of a witness")
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidFile(
            "witness",
            given=f"is a server, and neither ${TOKEN} nor ${TOKEN_FILE} gives a token",
            needed="have one of role witness",
            reason="token",
        )
    return token


def _body(event: Anchor | None) -> dict[str, Any] | None:
    return None if event is None else {"seq": event.seq, "hash": event.hash}


def _event(answer: bytes) -> Anchor | None:
    """The event of an answer, which may be none; an error if it is no answer of a witness."""
    event = json.loads(answer)["event"]
    if event is None:
        return None
    seq, hash_ = event["seq"], event["hash"]
    if type(seq) is not int or seq < 1 or not _HASH.fullmatch(hash_):
        raise ValueError
    return Anchor(seq, hash_)


def _why(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted"
    text = getattr(error, "strerror", None) or type(error).__name__
    return str(text).lower()
