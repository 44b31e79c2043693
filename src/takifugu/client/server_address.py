"""Where a server is, and how it is reached: by TLS, or on this machine.

A token is sent with every request, and whoever reads it on the way can ask in its holder's name. So
plain http is for loopback alone, and there is no option that says otherwise: where TLS ends before
the server does (a proxy, an SSH tunnel), its near end is an address of loopback or of https. A
redirect is never followed, and no proxy of the environment is used, for the same reason.
"""

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

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
