"""Requests for another host are refused: the name in a browser's address must be this server's.

A page of another site can have its own name resolved to this server, also to one that only this
machine can reach, and then counts as this server's own page to the browser ("DNS rebinding"). What
it cannot do is to send another ``Host`` than its own name. So where ``origin`` says what browsers
see, that name is answered; and names of loopback, which nobody can resolve elsewhere, so that this
machine can be asked by its address. Without ``origin``, a server on loopback answers to loopback
alone. One that is reached by TLS answers to any name: a browser goes on only if the certificate is
for that name. Ports are not compared, since a proxy may have another; `refuse_foreign` does that.
"""

import re
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from takifugu.server.operation.read_settings import is_loopback
from takifugu.server.operation.refused_requests import refusal
from takifugu.server.settings import ServerSettings

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,255})(?::[0-9]{0,5})?", re.IGNORECASE)


class KnownHosts:
    """Refuses requests whose ``Host`` is not a name of this server."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app, self._settings = app, settings
        self._own: str | None = None
        if settings.origin is not None:
            self._own = urlsplit(settings.origin).hostname
        self._any = settings.origin is None and not is_loopback(settings.host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or (fault := self._fault(scope)) is None:
            await self._app(scope, receive, send)
            return
        status, detail, reason = fault
        headers, body = refusal(
            self._settings, status, "other-host", detail, field="Host", reason=reason
        )
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _fault(self, scope: Scope) -> tuple[int, str, str] | None:
        """Status, words and reason of a refusal; None if there is nothing to refuse."""
        sent = [value for name, value in scope["headers"] if name == b"host"]
        if len(sent) != 1:
            how, reason = ("is missing", "missing") if not sent else ("is sent twice", "twice")
            return 400, f"`Host` {how}; send it once: the name in the address", reason
        host = host_of(sent[0].decode("latin-1"))
        if host is None:
            return 400, "`Host` is no name and no address of a machine", "form"
        if self._any or host == self._own or is_loopback(host):
            return None
        return 421, "`Host` is not a name of this server; owners set it as `origin`", "other host"


def host_of(text: str) -> str | None:
    """The name or address in a header ``Host``, in small letters; None if there is none.

    >>> host_of("Stats.Example.org.:8443"), host_of("[::1]:80"), host_of("a@b")
    ('stats.example.org', '::1', None)
    """
    found = _HOST.fullmatch(text.strip())
    if found is None:
        return None
    return found[1].strip("[]").lower().removesuffix(".") or None
