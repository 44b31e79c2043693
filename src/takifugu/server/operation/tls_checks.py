"""What is wrong with a certificate, found by shaking hands with it in memory."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from takifugu.server.operation.findings import Finding, ok, warning, wrong
from takifugu.server.operation.listening import tls_context

SOON = timedelta(days=14)
EXPIRED, NOT_YET, NAME = (10,), (9,), (62, 64)  # numbers of OpenSSL's verification


def certificate_findings(
    certificate: Path, key: Path, origin: str | None, now: datetime
) -> Iterator[Finding]:
    """Whether the files fit, for how long, and whether browsers find the right name in them."""
    context = tls_context(certificate, key)
    host = urlsplit(origin or "").hostname
    try:
        seen = _shake_hands(context, certificate, host)
    except ssl.SSLCertVerificationError as error:
        yield _refused(certificate, error, host)
        return
    except ssl.SSLError:
        yield wrong("tls", f"no connection can be made with {certificate}", "make a new one")
        return
    end = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(seen["notAfter"])), UTC)
    if end - now < SOON:
        yield warning(
            "tls",
            f"{certificate} ends on {end:%Y-%m-%d}",
            "renew it; `kill -HUP` then has the server read it again",
        )
    else:
        yield ok("tls", f"{certificate} fits its key and holds until {end:%Y-%m-%d}")


def _refused(certificate: Path, error: ssl.SSLCertVerificationError, host: str | None) -> Finding:
    if error.verify_code in EXPIRED:
        return wrong("tls", f"{certificate} has expired", "renew it")
    if error.verify_code in NOT_YET:
        return wrong("tls", f"{certificate} is not valid yet", "look at the clock, or wait")
    if error.verify_code in NAME:
        return wrong(
            "tls", f"{certificate} is not for {host}", "have one made for the name of `origin`"
        )
    return wrong("tls", f"{certificate} is refused ({error.verify_message})", "have a new one made")


def _shake_hands(
    server_context: ssl.SSLContext, certificate: Path, host: str | None
) -> dict[str, object]:
    """The certificate as a client sees it that trusts it, and looks for the host in it."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations(certificate)
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.check_hostname = host is not None
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
        found = client.getpeercert() if client.version() else None
        if found:
            return dict(found)
    raise ssl.SSLError("the handshake does not end")
