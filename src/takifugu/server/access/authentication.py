"""Who calls, and whether they may: before every route, by the table of rules.

A program sends its token, ``Authorization: Bearer tf_…``; a browser a cookie, which it got for a
token in the form of the sign-in page. Nothing else says who calls, and never the address: addresses
are written to logs and histories, and shown to other sites.

A browser adds cookies to requests that other sites cause. It also says who caused them: ``Origin``
and ``Sec-Fetch-Site``, which no page can set. A request that changes something and comes with a
cookie must say that it comes from here, and also hold the token of its session's forms.
"""

import asyncio
import hmac
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from takifugu.errors import LedgerError
from takifugu.project.server_section import ServerSettings
from takifugu.server.access.headers import (
    AccessRefused,
    SecurityHeaders,
    answer_refusal,
    for_people,
    signed_out,
    too_often,
    when_ended,
)
from takifugu.server.access.rate_limits import neighbourhood
from takifugu.server.access_rules import PEOPLE, Actor, allowed, rule_of
from takifugu.server.api.requests import FORM, form_fields, media_type
from takifugu.server.state.access_tokens import BrowserSession, TokenRecord
from takifugu.server.state.server_state import ServerState

SAFE = ("GET", "HEAD")
_ELSEWHERE = ("same-site", "cross-site")
log = logging.getLogger("takifugu.server.access")
CSRF_HEADER, CSRF_FIELD = "X-CSRF-Token", "csrf"
Value = TypeVar("Value")


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


def cookie_name(settings: ServerSettings) -> str:
    """The name of the cookie."""
    return "__Host-takifugu" if settings.secure else "takifugu"


def sent_cookie(request: Request, settings: ServerSettings) -> str | None:
    """The value of the cookie; None if there is none, or if there are two.

    Of two with the same name, one was set by somebody else; which of them cannot be seen.
    """
    name = cookie_name(settings)
    values = [
        value.strip()
        for header in request.headers.getlist("cookie")
        for key, _, value in (part.partition("=") for part in header.split(";"))
        if key.strip() == name
    ]
    return values[0] if len(values) == 1 and values[0] else None


if TYPE_CHECKING:
    from takifugu.server.services import Services


async def authorize(request: Request) -> None:
    """The dependency of the whole app: raise `AccessRefused`, or set ``request.state.actor``.

    ``request.state.session`` is the session of a browser; None if a token calls.
    """
    services: Services = request.app.state.services
    request.state.actor = request.state.session = None
    rule = rule_of(request.method, getattr(request.scope.get("route"), "path", ""))
    if rule is not None and rule.anybody:
        if request.method not in SAFE:  # before anything that was sent is read
            refuse_foreign(request, services.settings)
            if seconds := services.limiter.failures.wait(neighbourhood(_address(request))):
                raise too_often(seconds, "too many sign-ins have failed from this address")
        return
    actor = await authenticate(request, services)
    if actor is None:
        raise signed_out(
            "nobody has signed in; send a token: `Authorization: Bearer tf_…`", reason="missing"
        )
    request.state.actor = actor  # also of what is refused below: the log names them
    if seconds := services.limiter.tokens.take(actor.token):
        raise too_often(seconds, "this token calls too often")
    if not services.limiter.at_once.begin(actor.token):
        raise too_often(1.0, "too many calls of this token run at the same time")
    when_ended(request.scope, partial(services.limiter.at_once.end, actor.token))
    if actor.by_page:
        refuse_embedded(request)
        if request.method not in SAFE:
            refuse_foreign(request, services.settings)
            await _refuse_forged(request)
    if not allowed(rule, actor.role):
        raise AccessRefused(
            403, "forbidden", f"this is not for the role {actor.role!r}", reason="role"
        )


async def authenticate(request: Request, services: "Services") -> Actor | None:
    """Who calls; None if the request does not say, `AccessRefused` if it says it wrongly.

    A token that is not valid is an error, also if there is a cookie. Where a browser session
    calls, ``request.state.session`` has it.
    """
    headers = request.headers.getlist("authorization")
    if headers:
        record = await _of_header(headers, services)
        if record is None:
            raise _failed(request, services, "the token is unknown, has ended or was revoked")
        by_page = False
    else:
        cookie = sent_cookie(request, services.settings)
        if cookie is None:
            return None
        session = await _call(services.state, services.state.session_of, cookie)
        if session is None:
            return None  # it has ended: to sign in again is no mistake
        request.state.session, record, by_page = session, session.token, True
    await _note_use(services.state, record)
    return Actor(record.name, record.role, record.id, by_page)


async def still_allowed(request: Request) -> bool:
    """Whether who called may still hear more: a stream may outlive its token or its session."""
    services: Services = request.app.state.services
    session: BrowserSession | None = request.state.session
    state = services.state
    if session is not None:
        return await _call(state, state.session_of, session.secret) is not None
    record = await _call(state, state.token, request.state.actor.token)
    return record is not None and record.live(state.now())


async def sign_in(request: Request, secret: str) -> BrowserSession:
    """A new session for a token that was pasted into the form; `AccessRefused` if it is not valid.

    The session that the browser had before ends. Give the response its cookie with `keep_session`.
    """
    services: Services = request.app.state.services
    state = services.state
    record = await _call(state, state.token_of, secret.strip())
    if record is None:
        raise _failed(request, services, "the token is unknown, has ended or was revoked")
    if record.role not in PEOPLE:
        raise AccessRefused(
            403, "forbidden", f"there are no pages for the role {record.role!r}", reason="role"
        )
    if seconds := services.limiter.tokens.take(record.id):  # each sign-in is written down
        raise too_often(seconds, "this token signs in too often")
    before = sent_cookie(request, services.settings)
    if before is not None:
        await asyncio.to_thread(state.end_session, before)
    session = await asyncio.to_thread(state.begin_session, record)
    await _note_use(state, record)
    return session


async def sign_out(request: Request, response: Response) -> None:
    """End the session of the browser, here and there."""
    services: Services = request.app.state.services
    cookie = sent_cookie(request, services.settings)
    if cookie is not None:
        await asyncio.to_thread(services.state.end_session, cookie)
    response.delete_cookie(cookie_name(services.settings), **_cookie_rules(services.settings))


def keep_session(request: Request, response: Response, session: BrowserSession) -> None:
    """Give the response of a sign-in the cookie of its session, until that ends."""
    settings = request.app.state.services.settings
    seconds = int((session.ends - session.begun).total_seconds())
    rules = _cookie_rules(settings)
    response.set_cookie(cookie_name(settings), session.secret, max_age=seconds, **rules)


def _cookie_rules(settings: ServerSettings) -> dict[str, Any]:
    """For this server alone, never for scripts, and over TLS where there is TLS."""
    return {"path": "/", "secure": settings.secure, "httponly": True, "samesite": "strict"}


async def _of_header(headers: list[str], services: "Services") -> TokenRecord | None:
    scheme, _, secret = headers[0].strip().partition(" ")
    if len(headers) > 1 or scheme.lower() != "bearer" or not secret.strip():
        raise signed_out(
            "`Authorization` is not understood; send it once: `Authorization: Bearer tf_…`",
            reason="form",
        )
    return await _call(services.state, services.state.token_of, secret.strip())


async def _call(state: ServerState, function: Callable[[str], Value], argument: str) -> Value:
    """Look something up: at once in a file, in a thread where a database server is asked."""
    if state.in_file:
        return function(argument)
    return await asyncio.to_thread(function, argument)


async def _note_use(state: ServerState, record: TokenRecord) -> None:
    if state.use_is_due(record):
        try:
            await asyncio.to_thread(state.note_use, record)
        except LedgerError as error:  # who calls is known; that they did is not worth a refusal
            log.warning("the last use of token %s was not written: %s", record.id, error.reason)


def _failed(request: Request, services: "Services", detail: str) -> AccessRefused:
    """A token that is not valid: refused, and counted by address."""
    if seconds := services.limiter.failures.take(neighbourhood(_address(request))):
        return too_often(seconds, f"{detail}, and too many from this address were not valid")
    return signed_out(f"{detail}; ask an owner for another", reason="invalid")


def _address(request: Request) -> str | None:
    return None if request.client is None else request.client.host


async def _refuse_forged(request: Request) -> None:
    """Raise unless the request holds the token of its session's forms."""
    session: BrowserSession = request.state.session
    sent: Any = request.headers.get(CSRF_HEADER)
    if sent is None and media_type(request) == FORM:
        sent = (await form_fields(request)).get(CSRF_FIELD)
    if not isinstance(sent, str) or not hmac.compare_digest(sent.encode(), session.csrf.encode()):
        raise AccessRefused(
            403,
            "forged",
            f"the form has no `{CSRF_FIELD}`, or that of another session; load the page again",
            field=CSRF_FIELD,
            reason="missing" if sent is None else "other session",
        )


def add_access(app: Any, settings: ServerSettings) -> None:
    """Answer refusals, and add the headers: for an app whose dependency is `authorize`."""
    app.add_exception_handler(AccessRefused, answer_refusal)
    app.add_middleware(SecurityHeaders, settings=settings)
