"""Clients that do not behave: bytes on a socket."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from tests.server.running import PATIENCE, RunningServer


@contextmanager
def raw_connection(server: RunningServer) -> Iterator[socket.socket]:
    """A socket that is connected to a server."""
    with socket.create_connection((server.host, server.port), timeout=PATIENCE) as raw:
        if server.trust is None:
            yield raw
            return
        with server.trust.wrap_socket(raw, server_hostname=server.host) as wrapped:
            yield wrapped


def read_all(raw: socket.socket) -> bytes:
    """All that a server sends until it ends the connection, in order or not."""
    found = b""
    try:
        while part := raw.recv(65_536):
            found += part
    except (ConnectionResetError, ssl.SSLEOFError):
        pass
    return found


def status_of(answer: bytes) -> int:
    """The status in the first line of an answer."""
    version, _, rest = answer.partition(b" ")
    assert version == b"HTTP/1.1", answer[:100]
    return int(rest[:3])


def kind_of(answer: bytes) -> str:
    """The kind of the problem that an answer is."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head.lower(), answer[:200]
    _, _, rest = body.partition(b'"urn:takifugu:problem:')
    return rest.partition(b'"')[0].decode()
