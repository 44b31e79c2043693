"""Requests that are refused before a route sees them."""

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from takifugu.server.access_rules import API
from takifugu.server.api.problem_responses import problem_response
from takifugu.server.api.problems import Problem

SIGN_IN = "/sign-in"
_FOR_PROGRAMS = (f"{API}/", "/metrics", "/healthz", "/readyz", "/openapi.json")


class AccessRefused(Problem):
    """A request that is refused: nobody calls, or not this way, or not so often, or not they."""

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
