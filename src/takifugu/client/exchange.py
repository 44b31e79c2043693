"""Requests to a server, and their answers: kept connections, time limits, and asking again.

Every request of this client may be repeated: reading, planning and cancelling change nothing that
matters twice, and a release carries its idempotency key, under which it is charged once. So after a
lost connection, or an answer that says "not now" (502, 503, 504, 429), the same request is sent
again, for as long as `patience` lasts.
"""

import http.client
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from threading import Lock, local
from time import monotonic, sleep
from typing import Any

from takifugu.client.problem_errors import TYPE, error_of
from takifugu.client.remote_errors import ServerUnreachable
from takifugu.client.server_address import ServerAddress

MOST_BYTES = 256 * 1024 * 1024  # of an answer
FIRST_WAIT, LONGEST_WAIT = 0.05, 2.0  # seconds before asking again
NOT_NOW = frozenset({429, 502, 503, 504})
NEVER = frozenset({"DriverMissing", "DatabaseFailed", "LedgerUnwritable", "WorkTimedOut"})
LOST = (OSError, http.client.HTTPException)
CUT_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)  # by a server that ended


@dataclass(frozen=True)
class Reply:
    """What a server answered.

    Attributes:
        status: The status.
        headers: The headers, by their names in small letters.
        body: The body.
        url: The address of the server, for messages.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    def document(self) -> Any:
        """The body as JSON; refused if it is none, as that of another kind of server."""
        try:
            return json.loads(self.body, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            raise ServerUnreachable(
                self.url,
                f"its answer (status {self.status}) is no JSON",
                reason="answer",
                advice="Is it a takifugu server, and its address right?",
            ) from None

    @property
    def problem(self) -> str:
        """The kind of the problem that it is; empty if it is none."""
        try:
            kind = json.loads(self.body)["type"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return ""
        return str(kind).removeprefix(TYPE)

    @property
    def retry_after(self) -> float | None:
        """After how many seconds to ask again; None if it does not say so in seconds."""
        found = self.headers.get("retry-after", "")
        return float(found) if found.isdecimal() and len(found) < 8 else None


def _no_constant(_: str) -> Any:
    raise ValueError("NaN and Infinity are no JSON")


class Exchange:
    """Requests of one token to one server, from any thread; each thread has its own connection.

    Args:
        address: Where the server is.
        token: The token; it is sent in a header, and shown nowhere.
        trust: What its certificate is checked with.
        timeout: How many seconds to wait for a part of an answer.
        patience: For how many seconds to ask again.
    """

    def __init__(
        self,
        address: ServerAddress,
        token: str,
        *,
        trust: ssl.SSLContext | None,
        timeout: float,
        patience: float,
    ) -> None:
        self.address, self.patience = address, patience
        self._trust, self._timeout = trust, timeout
        self._always = {
            "Authorization": f"Bearer {token}",
            "User-Agent": "takifugu",
        }
        self._mine, self._lock = local(), Lock()
        self._open: set[http.client.HTTPConnection] = set()

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            connections, self._open = self._open, set()
        for connection in connections:
            connection.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        document: Any = None,
        headers: Mapping[str, str] | None = None,
        patience: float | None = None,
        reach: float | None = None,
    ) -> Reply:
        """The answer to a request; asked again while the server is away, or says "not now".

        ``patience`` is for how long, by default that of all requests; ``reach`` for how long while
        there is no answer at all.

        Raises:
            ServerUnreachable: There was no answer in time.
        """
        began = monotonic()
        body = None if document is None else json.dumps(document, allow_nan=False).encode()
        until = began + (self.patience if patience is None else patience)
        pause, again = FIRST_WAIT, False
        while True:
            kept = getattr(self._mine, "connection", None) is not None
            lost: Exception | None = None
            try:
                reply = self._once(method, path, body, headers or {})
            except LOST as error:
                self._refuse_hopeless(error)
                if kept and not again:  # the server closed an idle connection
                    again = True
                    continue
                lost, wait = error, pause
            else:
                if reply.status not in NOT_NOW or reply.problem in NEVER:
                    return self._checked(reply)
                wait = pause if reply.retry_after is None else reply.retry_after
            if monotonic() + wait > (until if lost is None or reach is None else began + reach):
                if lost is None:
                    return reply
                raise self._unreachable(lost)
            sleep(wait)
            again, pause = True, min(2 * pause, LONGEST_WAIT)

    def read(self, path: str) -> Any:
        """The document at a path; the error that the server answered with is raised."""
        return self.document(self.ask("GET", path))

    def document(self, reply: Reply) -> Any:
        """The document of an answer; its error is raised."""
        if reply.status >= 400:
            raise error_of(reply.document(), status=reply.status, retry_after=reply.retry_after)
        return reply.document()

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of an answer, as they come; none if it is an error."""
        try:
            response = self._sent("GET", path, None, {"Accept": "text/event-stream"})
            if response.status != 200:
                response.read(MOST_BYTES)
                return
            while line := response.readline(MOST_BYTES):
                yield line
            response.close()
        except BaseException:
            self._drop()
            raise

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        try:
            response = self._sent(method, path, body, headers)
            found = response.read(MOST_BYTES + 1)
            if len(found) > MOST_BYTES:
                raise ServerUnreachable(
                    self.address.url, f"its answer is above {MOST_BYTES:,} bytes", reason="size"
                )
            if response.length:  # it promised more: `read` of a part says nothing of that
                raise http.client.IncompleteRead(found, response.length)
            if response.will_close:
                self._drop()
            pairs = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, pairs, found, self.address.url)
        except BaseException:  # also an interrupt: the connection is in the middle of something
            self._drop()
            raise

    def _sent(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        connection = self._connection()
        sent = {**self._always, "Accept": "application/json", **headers}
        if body is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, self.address.base + path, body=body, headers=sent)
        return connection.getresponse()

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if found is not None:
            return found
        place = (self.address.host, self.address.port)
        made = (
            http.client.HTTPConnection(*place, timeout=self._timeout)
            if self._trust is None
            else http.client.HTTPSConnection(*place, timeout=self._timeout, context=self._trust)
        )
        made.connect()
        if made.sock is not None:
            made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._mine.connection = made
        with self._lock:
            self._open.add(made)
        return made

    def _drop(self) -> None:
        """Close the connection of this thread; the next request opens another."""
        found = getattr(self._mine, "connection", None)
        self._mine.connection = None
        if found is not None:
            with self._lock:
                self._open.discard(found)
            found.close()

    def _checked(self, reply: Reply) -> Reply:
        if 300 <= reply.status < 400 and reply.status != 304:
            raise ServerUnreachable(
                self.address.url,
                "it answers with another address, and a token is not sent on",
                reason="redirect",
                advice="Give the address that the server has",
            )
        return reply

    def _refuse_hopeless(self, error: Exception) -> None:
        """Raise at once for what no patience mends."""
        if isinstance(error, ssl.SSLCertVerificationError):
            raise ServerUnreachable(
                self.address.url,
                f"its certificate is not trusted ({error.verify_message.rstrip('.')})",
                reason="certificate",
                advice="Name the file of its authority with `ca`, if it is one of your own",
            ) from None
        if isinstance(error, ssl.SSLError) and not isinstance(error, CUT_OFF):
            raise ServerUnreachable(
                self.address.url, "it does not speak TLS here", reason="tls"
            ) from None
        if isinstance(error, socket.gaierror):
            raise ServerUnreachable(
                self.address.url, "there is no such host", reason="host"
            ) from None

    def _unreachable(self, error: Exception) -> ServerUnreachable:
        refused = isinstance(error, ConnectionRefusedError)
        trouble = "nobody listens there" if refused else "the connection was lost"
        if isinstance(error, TimeoutError):
            trouble = "it gave no answer in time"
        return ServerUnreachable(
            self.address.url,
            trouble,
            reason="refused" if refused else "lost",
            sent=not refused,
        )
