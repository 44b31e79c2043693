"""The cookie of a browser session.

Scripts cannot read it, other sites cannot have it sent, and over TLS its name (``__Host-``) makes
browsers refuse one that another host of the same domain, or a page without TLS, has set.
"""

from starlette.requests import Request
from starlette.responses import Response

from takifugu.server.settings import ServerSettings
from takifugu.server.state.browser_sessions import BrowserSession


def cookie_name(settings: ServerSettings) -> str:
    """The name of the cookie."""
    return "__Host-takifugu" if settings.secure else "takifugu"


def sent_cookie(request: Request, settings: ServerSettings) -> str | None:
    """The value of the cookie; None if there is none, or if there are two.

    Of two with the same name, one was set by somebody else; which of them cannot be seen.
    """
    name = cookie_name(settings)
    found = [
        value.strip()
        for header in request.headers.getlist("cookie")
        for key, _, value in (part.partition("=") for part in header.split(";"))
        if key.strip() == name
    ]
    return found[0] if len(found) == 1 and found[0] else None


def set_cookie(response: Response, session: BrowserSession, settings: ServerSettings) -> None:
    """Have the browser keep a session until it ends."""
    seconds = int((session.ends - session.begun).total_seconds())
    response.set_cookie(
        cookie_name(settings),
        session.secret,
        max_age=seconds,
        path="/",
        secure=settings.secure,
        httponly=True,
        samesite="strict",
    )


def clear_cookie(response: Response, settings: ServerSettings) -> None:
    """Have the browser forget its session."""
    response.delete_cookie(
        cookie_name(settings),
        path="/",
        secure=settings.secure,
        httponly=True,
        samesite="strict",
    )
