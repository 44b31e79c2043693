"""Signing in with a token, and signing out."""

from urllib.parse import urlsplit

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from takifugu.server.access.authentication import keep_session, sign_in, sign_out
from takifugu.server.access.refusals import AccessRefused
from takifugu.server.api.bodies import form_fields
from takifugu.server.pages.page_responses import STORED_BY_NOBODY, moved, sentence
from takifugu.server.pages.page_templates import page

router = APIRouter(include_in_schema=False)
WRONG = {401: "That token is not valid", 403: "That token is not for pages", 429: "Too often"}


@router.get("/sign-in")
async def sign_in_page(request: Request) -> Response:
    """The form for a token."""
    query = request.query_params
    return _form(query.get("next", "/"), left=query.get("left") == "yes")


@router.post("/sign-in")
async def sign_in_form(request: Request) -> Response:
    """Begin a session with the token in the form, and go where the person wanted to."""
    form = await form_fields(request)
    following = local_path(form.get("next", "/"))
    try:
        session = await sign_in(request, form.get("token", ""))
    except AccessRefused as refused:
        wrong = {
            "title": WRONG.get(refused.status, "That did not work"),
            "detail": sentence(refused.detail),
        }
        return _form(following, wrong=wrong, status=refused.status, headers=dict(refused.headers))
    response = moved(following)
    keep_session(request, response, session)
    return response


@router.post("/sign-out")
async def sign_out_form(request: Request) -> Response:
    """End the session; browsers forget what they kept of it."""
    response = moved("/sign-in", left="yes")
    response.headers["Clear-Site-Data"] = '"cache"'
    await sign_out(request, response)
    return response


def _form(
    following: str,
    *,
    left: bool = False,
    wrong: dict[str, str] | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    values = {"next": local_path(following), "left": left, "wrong": wrong}
    text = page("sign_in.html", None, "/sign-in", values)
    kept = {name: value for name, value in (headers or {}).items() if name == "Retry-After"}
    return HTMLResponse(text, status, {**STORED_BY_NOBODY, **kept})


def local_path(address: str) -> str:
    r"""An address of this server, to go to after signing in; the first page for any other.

    >>> local_path("/releases?dataset=stays"), local_path("//elsewhere"), local_path("/\\elsewhere")
    ('/releases?dataset=stays', '/', '/')
    >>> local_path("//[")
    '/'
    """
    try:
        parts = urlsplit(address)
    except ValueError:  # half of an address in brackets
        return "/"
    odd = parts.scheme or parts.netloc or "\\" in address or not address.isprintable()
    fine = address.startswith("/") and not address.startswith("//") and not odd
    return address if fine and not address.startswith(("/sign-", "/api/")) else "/"
