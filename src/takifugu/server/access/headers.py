"""What every response says to browsers, and requests that are refused before a route sees them."""

import re
from collections.abc import Callable, Iterable
from urllib.parse import unquote_to_bytes, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.project.server_section import ServerSettings
from takifugu.server.access_rules import API
from takifugu.server.api.problems import Problem
from takifugu.server.api.responses import problem_response

SIGN_IN = "/sign-in"
_FOR_PROGRAMS = (f"{API}/", "/metrics", "/healthz", "/readyz", "/openapi.json")
CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
DRAWING = (  # for a picture that is opened by itself: it has its own styles, and can do nothing
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'; sandbox"
)
_OFF = ("camera", "microphone", "geolocation", "payment", "usb", "display-capture", "midi")
ALWAYS: dict[str, str] = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": ", ".join(f"{name}=()" for name in _OFF),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
HSTS = "max-age=31536000"
PUBLIC = ("/static/", "/favicon.ico")  # the same for everybody, so that browsers may keep it
_TOKEN = re.compile(rb"tf_[A-Za-z0-9_-]{32,}")  # most of one; names of datasets may begin so
_NAMED = re.compile(
    rb"(?:^|[&;])(?:access_?token|token|api_?key|auth|authorization|bearer|password|secret)=",
    re.IGNORECASE,
)
_BREAKS = re.compile(rb"[\r\n\0]")
_OF_A_DOCUMENT = ("sandbox", "style-src", "style-src-elem", "style-src-attr", "img-src")
_ENDED = "takifugu.ended"  # of a scope: what to call
_WITHOUT = "/(an address with a token)"


class AccessRefused(Problem):
    """A request that the server refuses before a route sees it.

    It is not authenticated, comes from another site, exceeds its rate, or its role is not allowed.
    """

    def response(self) -> Response:
        """The refusal as a response."""
        return problem_response(self.document(), self.headers)


async def answer_refusal(request: Request, error: Exception) -> Response:
    """A problem document; or, where a person is to sign in, the page for it."""
    if not isinstance(error, AccessRefused):
        raise error
    if error.status == 401 and error.reason == "missing" and for_people(request.url.path):
        return RedirectResponse(_sign_in(request), 303, {"Cache-Control": "no-store"})
    return error.response()


def _sign_in(request: Request) -> str:
    """The page to sign in, and to come back from: a form that was sent is not sent again."""
    wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method != "GET" or wanted == "/":
        return SIGN_IN
    return f"{SIGN_IN}?{urlencode({'next': wanted})}"


def for_people(path: str) -> bool:
    """Whether a path is a page, and not for programs."""
    return not path.startswith(_FOR_PROGRAMS)


def signed_out(detail: str, *, reason: str) -> AccessRefused:
    """The refusal of a request that says not who calls, or says it in a way that is not valid."""
    challenge = {"WWW-Authenticate": 'Bearer realm="takifugu"'}
    return AccessRefused(
        401, "signed-out", detail, field="Authorization", reason=reason, headers=challenge
    )


def too_often(seconds: float, detail: str) -> AccessRefused:
    """The refusal of a request that came too soon."""
    whole = str(max(1, -int(-seconds // 1)))
    return AccessRefused(
        429, "too-often", f"{detail}; wait {whole} s", reason="rate", headers={"Retry-After": whole}
    )


def security_headers(settings: ServerSettings) -> dict[str, str]:
    """The headers of every response, also of those that no app made."""
    return ALWAYS | ({"Strict-Transport-Security": HSTS} if settings.secure else {})


class SecurityHeaders:
    """The outermost middleware: headers of every response, and no token in an address.

    Args:
        app: What answers.
        settings: How the server is set up.
    """

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        fixed = security_headers(settings)
        self._app = app
        self._fixed = [(name.lower().encode(), value.encode()) for name, value in fixed.items()]
        self._names = {name for name, _ in self._fixed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _has_token(scope):
            scope["path"], scope["raw_path"] = _WITHOUT, _WITHOUT.encode()  # as logs will have it
            scope["query_string"] = b""
            await _token_refused().response()(scope, receive, self._sending(send, private=True))
            return
        private = not scope["path"].startswith(PUBLIC)
        ended: list[Callable[[], None]] = []
        scope[_ENDED] = ended
        try:
            await self._app(scope, receive, self._sending(send, private=private))
        finally:
            for call in ended:
                call()

    def _sending(self, send: Send, *, private: bool) -> Send:
        broken = False

        async def sending(message: Message) -> None:
            nonlocal broken
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if _split(headers):
                    broken = True
                    await self._send_broken(send)
                    return
                message = {**message, "headers": self._completed(headers, private=private)}
            if not broken:
                await send(message)

        return sending

    def _completed(
        self, headers: list[tuple[bytes, bytes]], *, private: bool
    ) -> list[tuple[bytes, bytes]]:
        own = [value for name, value in headers if name.lower() == b"content-security-policy"]
        fixed = self._fixed
        if len(own) == 1 and _shut(own[0].decode("latin-1")):
            changed = {b"content-security-policy": own[0]}
            fixed = [(name, changed.get(name, value)) for name, value in fixed]
        dropped = self._names | ({b"cache-control"} if private else set())
        remaining = [(name, value) for name, value in headers if name.lower() not in dropped]
        stored = [(b"cache-control", b"no-store")] if private else []  # also by shared computers
        return [*remaining, *stored, *fixed]

    async def _send_broken(self, send: Send) -> None:
        """Answer instead of a response whose header would have been two."""
        problem = Problem(500, "server", "a header could not be written")
        response = problem_response(problem.document())
        completed = self._completed(response.raw_headers, private=True)
        await send({"type": "http.response.start", "status": 500, "headers": completed})
        await send({"type": "http.response.body", "body": response.body})


def when_ended(scope: Scope, call: Callable[[], None]) -> None:
    """Call this when the response of a request was sent, or broke off."""
    scope[_ENDED].append(call)


def _shut(policy: str) -> bool:
    """Whether a response's own policy is for a document that can do nothing: a report, a figure.

    It runs no script, fetches nothing and sends nothing, and is in a sandbox: an origin of its own.
    Only its styles may be its own.
    """
    parts = [part.split() for part in policy.split(";") if part.strip()]
    rules = {part[0].lower(): part[1:] for part in parts}
    closed = ("default-src", "base-uri", "form-action", "frame-ancestors")
    return (
        len(rules) == len(parts)
        and all(rules.get(name) == ["'none'"] for name in closed)
        and rules.get("sandbox") == []
        and all(name in _OF_A_DOCUMENT or name in closed for name in rules)
        and rules.get("img-src", []) in ([], ["data:"])
    )


def _split(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether a header holds a line break: what follows it would be a header of its own."""
    return any(_BREAKS.search(name) or _BREAKS.search(value) for name, value in headers)


def _has_token(scope: Scope) -> bool:
    query: bytes = scope.get("query_string", b"")
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return bool(
        _NAMED.search(query) or any(_TOKEN.search(unquote_to_bytes(part)) for part in (path, query))
    )


def _token_refused() -> AccessRefused:
    return AccessRefused(
        400,
        "token-in-url",
        "the address holds a token, or a parameter for one; send it as `Authorization: Bearer tf_…`"
        " instead. If it was a token, revoke it: proxies and histories may have kept the address",
        field="Authorization",
        reason="token in URL",
    )
