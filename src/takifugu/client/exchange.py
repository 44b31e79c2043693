"""Requests to a server, and their answers: kept connections, time limits, and asking again.

Every request of this client may be repeated: reading, planning and cancelling change nothing that
matters twice, and a release carries its idempotency key, under which it is charged once. So after a
lost connection, or an answer that says "not now" (502, 503, 504, 429), the same request is sent
again, for as long as `patience` lasts.

Where a server is, and how it is reached: by TLS, or on this machine.

A token is sent with every request, and whoever reads it on the way can ask in its holder's name. So
plain http is for loopback alone, and there is no option that says otherwise: where TLS ends before
the server does (a proxy, an SSH tunnel), its near end is an address of loopback or of https. A
redirect is never followed, and no proxy of the environment is used, for the same reason.
"""

import http.client
import ipaddress
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, local
from time import monotonic, sleep
from typing import Any
from urllib.parse import quote, urlsplit

from takifugu.client.problem_errors import TYPE, ServerUnreachable, error_of
from takifugu.documents.reading import DocumentPart, listed, text
from takifugu.errors import InvalidFile, UnsoundRequest

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class ServerAddress:
    """The address of a server.

    Attributes:
        url: As it is shown, without an ending slash.
        secure: Whether it is reached by TLS.
        host: The name or number of the host.
        port: Its port.
        base: What every path begins with; empty, or the path that a proxy has it under.
    """

    url: str
    secure: bool
    host: str
    port: int
    base: str


def read_address(url: str) -> ServerAddress:
    """The address in a URL; refused where a token would travel in the clear, or stands in it."""
    if not isinstance(url, str):
        raise _refused(f"is a {type(url).__name__}", "be text, as 'https://stats.example.org'")
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _refused("is no address", "be one, as 'https://stats.example.org'") from None
    plain = url.strip().isascii() and url.strip().isprintable() and " " not in url.strip()
    if parts.scheme not in PORTS or not host or not plain:
        raise _refused(
            "has no scheme, no host, or letters that an address has not",
            "be an address, as 'https://stats.example.org' or 'http://127.0.0.1:8461'",
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise _refused(
            "holds a user, a query or a fragment",
            "be the address alone: give the token as `token`, or in TAKIFUGU_TOKEN",
            reason="token-in-url",
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise _refused(
            f"is http to {host!r:.80}, and the token would travel in the clear",
            "begin with https://, or be http to this machine (127.0.0.1): a tunnel or a proxy that"
            " does TLS has its near end there",
            reason="clear-text",
        )
    base = parts.path.rstrip("/")
    shown = f"{parts.scheme}://{parts.netloc}{base}"
    return ServerAddress(shown, parts.scheme == "https", host, port or PORTS[parts.scheme], base)


def _refused(given: str, needed: str, *, reason: str = "url") -> UnsoundRequest:
    return UnsoundRequest(f"the address {given}; it must {needed}", field="url", reason=reason)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its number or as ``localhost``.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("127.0.0.1.example.org")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def trust_of(address: ServerAddress, ca: str | Path | None) -> ssl.SSLContext | None:
    """What the certificate of a server is checked with; None where it has none.

    ``ca`` is the file of an authority of one's own, which alone is trusted then; by default those
    of the system are. Names are checked either way.
    """
    if not address.secure:
        if ca is not None:
            raise UnsoundRequest(
                "`ca` is given, and the address is http: nothing would be checked with it; leave it"
                " out, or use https://",
                field="ca",
            )
        return None
    if ca is None:
        return ssl.create_default_context()
    path = Path(ca)
    try:
        if path.is_dir():
            return ssl.create_default_context(capath=str(path))
        return ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError) as error:
        why = "cannot be read" if isinstance(error, OSError) and error.errno else "holds none"
        raise InvalidFile("ca", given=why, needed="be a file of certificates in PEM form") from None


MAX_ANSWER_BYTES = 256 * 1024 * 1024  # of an answer
FIRST_WAIT, MAX_WAIT = 0.05, 2.0  # seconds before asking again
NOT_NOW = frozenset({429, 502, 503, 504})
LASTING = frozenset({"DriverMissing", "DatabaseFailed", "LedgerUnwritable", "WorkTimedOut"})
CONNECTION_LOST = (OSError, http.client.HTTPException)
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
        seconds = self.headers.get("retry-after", "")
        return float(seconds) if seconds.isdecimal() and len(seconds) < 8 else None


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
            reused = getattr(self._mine, "connection", None) is not None
            lost: Exception | None = None
            try:
                reply = self._once(method, path, body, headers or {})
            except CONNECTION_LOST as error:
                self._refuse_hopeless(error)
                if reused and not again:  # the server closed an idle connection
                    again = True
                    continue
                lost, wait = error, pause
            else:
                if reply.status not in NOT_NOW or reply.problem in LASTING:
                    return self._checked(reply)
                wait = pause if reply.retry_after is None else reply.retry_after
            if monotonic() + wait > (until if lost is None or reach is None else began + reach):
                if lost is None:
                    return reply
                raise self._unreachable(lost)
            sleep(wait)
            again, pause = True, min(2 * pause, MAX_WAIT)

    def read(self, path: str) -> Any:
        """The document at a path; the error that the server answered with is raised."""
        return self.document(self.ask("GET", path))

    def items(self, path: str) -> Iterator[DocumentPart]:
        """The items of a list, page after page; ``path`` has a query."""
        cursor: str | None = ""
        while cursor is not None:
            more = f"&cursor={quote(cursor, safe='')}" if cursor else ""
            page = DocumentPart.of(self.read(path + more))
            yield from page.read("items", listed(DocumentPart.of))
            cursor = page.maybe("next", text)

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
                response.read(MAX_ANSWER_BYTES)
                return
            while line := response.readline(MAX_ANSWER_BYTES):
                yield line
            response.close()
        except BaseException:
            self._drop()
            raise

    def _once(
        self, method: str, path: str, sent: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        try:
            response = self._sent(method, path, sent, headers)
            body = response.read(MAX_ANSWER_BYTES + 1)
            if len(body) > MAX_ANSWER_BYTES:
                trouble = f"its answer is above {MAX_ANSWER_BYTES:,} bytes"
                raise ServerUnreachable(self.address.url, trouble, reason="size")
            if response.length:  # it promised more: `read` of a part says nothing of that
                raise http.client.IncompleteRead(body, response.length)
            if response.will_close:
                self._drop()
            pairs = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, pairs, body, self.address.url)
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
        connection: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if connection is not None:
            return connection
        place = (self.address.host, self.address.port)
        connection = (
            http.client.HTTPConnection(*place, timeout=self._timeout)
            if self._trust is None
            else http.client.HTTPSConnection(*place, timeout=self._timeout, context=self._trust)
        )
        connection.connect()
        if connection.sock is not None:
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._mine.connection = connection
        with self._lock:
            self._open.add(connection)
        return connection

    def _drop(self) -> None:
        """Close the connection of this thread; the next request opens another."""
        connection = getattr(self._mine, "connection", None)
        self._mine.connection = None
        if connection is not None:
            with self._lock:
                self._open.discard(connection)
            connection.close()

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
