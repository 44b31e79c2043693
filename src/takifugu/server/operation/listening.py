"""The socket that a server listens on, its address in words, and TLS."""

import socket
import ssl
from pathlib import Path

from takifugu._core.atomic import refuse_special
from takifugu.errors import InvalidFile, Malformed
from takifugu.project.server_section import ServerSettings

BACKLOG = 2_048


def listening_socket(settings: ServerSettings) -> socket.socket:
    """A socket that is bound to the address of the settings, and does not listen yet."""
    try:
        addresses = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        raise Malformed(
            "--host",
            given=f"is {settings.host!r:.80}, which is no address",
            needed="be an address of this machine, such as 127.0.0.1",
            reason="address",
        ) from None
    family, kind, _, _, where = addresses[0]
    bound = socket.socket(family, kind)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(where)
    except OSError as error:
        bound.close()
        raise _unbound(settings, error) from None
    return bound


def _unbound(settings: ServerSettings, error: OSError) -> Malformed:
    from errno import EACCES, EADDRINUSE

    if error.errno == EADDRINUSE:
        given, needed = f"{settings.port} is in use", "be a free one; 0 takes any that is free"
        return Malformed("--port", given=given, needed=needed, reason="in-use")
    if error.errno == EACCES:
        given = f"{settings.port} is not for this user"
        return Malformed("--port", given=given, needed="be 1024 or more", reason="permission")
    reason = (error.strerror or type(error).__name__).lower()
    return Malformed(
        "--host",
        given=f"is {settings.host!r:.80}, which cannot be listened on ({reason})",
        needed="be an address of this machine, such as 127.0.0.1",
        reason="address",
    )


def address_of(settings: ServerSettings, bound: socket.socket) -> str:
    """The address that a client on this machine or network can use."""
    host, port = bound.getsockname()[:2]
    if settings.host == "localhost":
        host = settings.host
    scheme = "http" if settings.certificate is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    """TLS 1.2 or newer with a certificate and its key, which must fit."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, certificate, key)
    return context


def load_certificate(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Use these files from the next connection on; an error leaves the context as it was."""
    for field, path in (("certificate", certificate), ("key", key)):
        try:
            refuse_special(path)  # a pipe that nobody writes to would keep us waiting
            path.open("rb").close()
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise InvalidFile(
                field,
                given=f"{str(path)!r} cannot be read ({reason})",
                needed="be a PEM file that this user may read",
                reason="unreadable",
            ) from None

    def ask() -> str:
        raise InvalidFile(
            "key",
            given=f"{str(key)!r} is encrypted",
            needed="have no passphrase: nobody is there to type it; protect the file by its mode",
            reason="encrypted",
        )

    try:
        rehearsal = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        for target in (rehearsal, context):
            target.load_cert_chain(certificate, key, password=ask)
    except (ssl.SSLError, OSError) as error:
        misfit = getattr(error, "reason", None) == "KEY_VALUES_MISMATCH"
        raise InvalidFile(
            "key" if misfit else "certificate",
            given=f"{str(key)!r} belongs to another certificate"
            if misfit
            else f"{str(certificate)!r} and {str(key)!r} are not a certificate and its key",
            needed="be PEM files of one certificate (with its chain) and its private key",
            reason="misfit" if misfit else "content",
        ) from None
