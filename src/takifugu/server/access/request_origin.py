"""Whether a browser sends a request because a page of this server made it do so.

A browser adds cookies to requests that other sites cause. It also says who caused them: ``Origin``
and ``Sec-Fetch-Site``, which no page can set. A request that changes something and comes with a
cookie must say that it comes from here, and also hold the token of its session's forms.
"""

from urllib.parse import urlsplit

from starlette.requests import Request

from takifugu.server.access.refusals import AccessRefused, for_people
from takifugu.server.settings import ServerSettings

SAFE = ("GET", "HEAD")
_ELSEWHERE = ("same-site", "cross-site")


def refuse_foreign(request: Request, settings: ServerSettings) -> None:
    """Raise if a request to change something may have been caused by another site."""
    origins = request.headers.getlist("origin")
    site = request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        raise _foreign("Sec-Fetch-Site", f"is {site!r:.40}", "other site")
    if len(origins) > 1:
        raise _foreign("Origin", "is there more than once", "twice")
    if not origins:
        if site is None:  # no browser of today; a program has a token to send
            raise _foreign("Origin", "is missing", "missing")
        return
    if origins[0] != own_origin(request, settings):
        raise _foreign("Origin", "is another site", "other site")


def refuse_embedded(request: Request) -> None:
    """Raise if another site makes a browser read what only its cookie allows, but for links.

    The other site could not see the answer; but how long it takes, and that work is done for it.
    """
    headers = request.headers
    if headers.get("sec-fetch-site") not in _ELSEWHERE:
        return
    followed = (
        headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest", "document") == "document"
    )
    if not (followed and request.method in SAFE and for_people(request.url.path)):
        raise _foreign("Sec-Fetch-Site", "is another site", "other site")


def own_origin(request: Request, settings: ServerSettings) -> str:
    """The origin of the pages of this server, as a browser writes it."""
    if settings.origin is not None:
        parts = urlsplit(settings.origin)
        return _written(parts.scheme, parts.netloc)
    return _written(request.scope.get("scheme", "http"), request.headers.get("host", ""))


def _written(scheme: str, host: str) -> str:
    default = {"http": ":80", "https": ":443"}.get(scheme, "")
    return f"{scheme}://{host.lower().removesuffix(default) if default else host.lower()}"


def _foreign(header: str, given: str, reason: str) -> AccessRefused:
    return AccessRefused(
        403,
        "other-site",
        f"`{header}` {given}; a request with a cookie must come from a page of this server."
        " Programs send a token: `Authorization: Bearer …`",
        field=header,
        reason=reason,
    )
