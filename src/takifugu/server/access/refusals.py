"""Requests that are refused before a route sees them."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from takifugu.server.access_rules import API

SIGN_IN = "/sign-in"
TYPE = "urn:takifugu:problem:"
_FOR_PROGRAMS = (f"{API}/", "/metrics", "/healthz", "/readyz", "/openapi.json")


@dataclass(eq=False)
class AccessRefused(Exception):
    """A request that is refused: nobody calls, or not this way, or not so often, or not they.

    Attributes:
        status: 400, 401, 403 or 429.
        kind: A short, stable name of the cause: the end of the ``type`` of the problem document.
        detail: What was given, what is needed, what to do next.
        field: The header or parameter at fault.
        reason: The cause, where a kind has several.
        headers: Headers of the response.
    """

    status: int
    kind: str
    detail: str
    field: str = ""
    reason: str = ""
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__init__(self.detail)

    def response(self) -> Response:
        """The refusal as a problem document (RFC 9457)."""
        document = {
            "type": TYPE + self.kind,
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "field": self.field,
            "reason": self.reason,
        }
        headers = {"Cache-Control": "no-store", **self.headers}
        body = json.dumps(document).encode("ascii")
        return Response(body, self.status, headers, "application/problem+json")


async def answer_refusal(request: Request, error: Exception) -> Response:
    """A problem document; or, where a person is to sign in, the page for it."""
    if not isinstance(error, AccessRefused):
        raise error
    if error.status == 401 and error.reason == "missing" and for_people(request.url.path):
        return RedirectResponse(SIGN_IN, 303, {"Cache-Control": "no-store"})
    return error.response()


def for_people(path: str) -> bool:
    """Whether a path is a page, and not for programs."""
    return not path.startswith(_FOR_PROGRAMS)


def signed_out(detail: str, *, reason: str) -> AccessRefused:
    """The refusal of a request that says not who calls, or says it in a way that is not valid."""
    challenge = {"WWW-Authenticate": 'Bearer realm="takifugu"'}
    return AccessRefused(401, "signed-out", detail, "Authorization", reason, challenge)


def too_often(seconds: float, detail: str) -> AccessRefused:
    """The refusal of a request that came too soon."""
    whole = str(max(1, -int(-seconds // 1)))
    return AccessRefused(
        429, "too-often", f"{detail}; wait {whole} s", reason="rate", headers={"Retry-After": whole}
    )
