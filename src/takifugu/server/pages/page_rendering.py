"""Pages: templates, responses, problems in the look of the pages, and files that never change.

A page shows what the API answers: its routes call those of the API as functions, with the same
request, and read the document that these would have sent. Problem documents that a browser would
get become pages in a middleware, which sees every response, so that none is forgotten.
"""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from functools import cache, partial
from http import HTTPStatus
from math import isfinite
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.reports.html_style import PALETTE
from takifugu.server.access.headers import for_people
from takifugu.server.access_rules import BY_ROUTE, allowed
from takifugu.server.api.problems import MEDIA_TYPE, Problem, problem_of
from takifugu.server.services import actor_of, services_of
from takifugu.visible import Rounded, four_digits, visible

FOLDER = Path(__file__).parent
MENU = (
    ("/", "Datasets"),
    ("/releases", "Releases"),
    ("/approvals", "Approvals"),
    ("/ledger", "Ledger"),
    ("/reports", "Reports"),
    ("/tokens", "Tokens"),
)
GUARANTEE_WIDTH = 100  # letters that a line of a guarantee has at most
SHORT_HASH = 12  # digits of a hash that people read
STORED_BY_NOBODY = {"Cache-Control": "no-store"}
MAX_MENU_COUNT = 99  # requests beside an entry of the menu
TITLES = {
    400: "The request has no meaning",
    403: "Not for you",
    404: "Not found",
    405: "Not found",
    413: "Too large",
    429: "Too often",
    500: "Something is wrong on the server",
    503: "Not now",
}
WORDS = {404: "There is no such page, or it is not for you.", 405: "There is no such page."}
RELOAD_SECONDS = "3"  # seconds until a page that waits asks again
router = APIRouter(include_in_schema=False)
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
ICON = "icon.svg"


@dataclass(frozen=True)
class Viewer:
    """Who sees a page.

    Attributes:
        name: The name of their token.
        role: What they may do.
        csrf: What forms of theirs send along, so that no other site can send them.
    """

    name: str
    role: str
    csrf: str

    def may(self, method: Literal["GET", "POST", "PUT", "DELETE"], path: str) -> bool:
        """Whether the table of routes lets them call a route."""
        return allowed(BY_ROUTE.get((method, path)), self.role)  # type: ignore[arg-type]


def _shown(value: Any) -> Any:
    """What a template prints: marks that do not show are written out."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible(value, keep="\n")


def number(value: Any, rounded: Rounded = "nearest") -> str:
    """A number with four digits; exact ones come as text, and null is unknown."""
    if value is None:
        return "unknown"
    exact = Fraction(value) if isinstance(value, str) else value
    return four_digits(exact, rounded)


up = partial(number, rounded="up")  # losses
down = partial(number, rounded="down")  # allowances


def cell(value: Any) -> str:
    """A cell of a table of results."""
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1000 and isfinite(value) else four_digits(value)


def when(value: Any) -> Markup:
    """An instant as a time element, in UTC."""
    if value is None:
        return Markup("never")
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    words = f"{at:%Y-%m-%d %H:%M}"
    return Markup('<time datetime="{}">{} UTC</time>').format(at.isoformat(), words)


def part(value: Any, whole: Any) -> str:
    """A share of a whole in percent, as an attribute of a drawing; from 0 to 100."""
    if value is None or whole is None or not Fraction(whole) > 0:
        return "0%"
    if isinstance(value, float) and not isfinite(value):
        return "100%"
    share = min(max(Fraction(value) / Fraction(whole), Fraction(0)), Fraction(1))
    return f"{float(100 * share):.2f}%"


def prose(text: str) -> list[list[Markup]]:
    r"""A guarantee as blocks: a paragraph is one text, a list several, of which the first leads.

    Lines are joined where the next word had no room, at `GUARANTEE_WIDTH` letters; a line that ends
    before that ends its paragraph. Names in backticks become code.

    >>> [list(map(str, one)) for one in prose("Known:\n  - that a row\n    is;\n  - `it`.\nNo.")]
    [['Known:', 'that a row is;', '<code>it</code>.'], ['No.']]
    """
    blocks: list[list[str]] = []
    last, listed = "", False
    for line in text.splitlines():
        words = line.strip()
        if words.startswith("- ") and blocks:
            blocks[-1].append(words.removeprefix("- "))
            listed = True
        elif words and last and (line[:1] == " " if listed else _goes_on(last, words)):
            blocks[-1][-1] += f" {words}"
        elif words:
            blocks.append([words])
            listed = False
        last = line.rstrip()
    return [[coded(text) for text in block] for block in blocks]


def _goes_on(line: str, following: str) -> bool:
    """Whether a line was broken for want of room, and not because something ends there."""
    return len(line) + 1 + len(following.split()[0]) > GUARANTEE_WIDTH


def coded(text: str) -> Markup:
    """Text in which names in backticks are code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return escape(_shown(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(_shown(part)) if index % 2 else _shown(part)
        for index, part in enumerate(parts)
    )


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters |= {"up": up, "down": down}
    environment.filters |= {
        filter.__name__: filter for filter in (number, cell, when, part, prose, coded)
    }
    environment.filters |= {
        "short": lambda text: str(text)[:SHORT_HASH],
        "kind": lambda name: str(name).replace("_", " "),
    }
    return environment


ENVIRONMENT = _environment()


def page(name: str, viewer: Viewer | None, here: str, values: Mapping[str, Any]) -> str:
    """A page as HTML.

    Args:
        name: The template.
        viewer: Who sees it; None before signing in.
        here: The entry of the menu that it belongs to.
        values: What the template prints.
    """
    menu = [(path, title) for path, title in MENU if viewer and viewer.may("GET", path)]
    return ENVIRONMENT.get_template(name).render(**values, viewer=viewer, here=here, menu=menu)


class StillRunning(Exception):
    """Work for a page takes longer than a request waits; the page asks again by itself."""


def viewer_of(request: Request) -> Viewer:
    """Who sees a page. Forms need a browser session: a token has no use for them."""
    actor, session = actor_of(request), getattr(request.state, "session", None)
    return Viewer(actor.name, actor.role, "" if session is None else session.csrf)


async def shown(
    request: Request, template: str, here: str, *, status: int = 200, **values: Any
) -> Response:
    """A page for the viewer of a request."""
    viewer = viewer_of(request)
    counts = {"/approvals": await _waiting(request)} if viewer.role == "owner" else {}
    text = page(template, viewer, here, {**values, "counts": counts})
    return HTMLResponse(text, status, STORED_BY_NOBODY)


async def _waiting(request: Request) -> str:
    """How many requests wait for an owner, for the menu; empty if none does."""
    state = services_of(request).state
    pending = await asyncio.to_thread(state.approvals, "pending", limit=MAX_MENU_COUNT + 1)
    return f"{MAX_MENU_COUNT}+" if len(pending) > MAX_MENU_COUNT else str(len(pending) or "")


def moved(path: str, **query: str) -> Response:
    """Go on to another page, after a form was sent."""
    address = f"{path}?{urlencode(query)}" if query else path
    return RedirectResponse(address, 303, STORED_BY_NOBODY)


def document_of(response: Response) -> Any:
    """The document that a route of the API answered with.

    Raises:
        StillRunning: It answered with a job.
    """
    document = json.loads(bytes(response.body))
    if response.status_code == 202 and "Location" in response.headers:
        raise StillRunning
    return document


def refused(request: Request, error: Exception | None) -> tuple[int, dict[str, str] | None]:
    """The status of a page whose form met an error, and the error as the page shows it."""
    if error is None:
        return 200, None
    problem = problem_of(error, actor_of(request).role)
    return problem["status"], {"title": problem["title"], "detail": sentence(problem["detail"])}


def sentence(text: str) -> str:
    """A message as a sentence: it begins with a capital letter and ends with a full stop."""
    text = text.strip()
    if not text:
        return ""
    end = "" if text[-1] in ".!?" else "."
    return text[0].upper() + text[1:] + end if text[0].isalpha() else text + end


def add_pages(app: FastAPI) -> None:
    """Let an app answer browsers with pages when something goes wrong, or takes long."""
    app.add_exception_handler(StillRunning, _still_running)
    app.add_middleware(ProblemPages)


class ProblemPages:
    """Middleware: problem documents for browsers become pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http" or not _wants_page(scope):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        parts: list[bytes] = []

        async def sending(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                if Headers(raw=message["headers"]).get("content-type", "") == MEDIA_TYPE:
                    start = message
                    return
            elif start is not None:
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    await _page(scope, start, b"".join(parts))(scope, receive, send)
                return
            await send(message)

        await self._app(scope, receive, sending)


def _wants_page(scope: Scope) -> bool:
    return for_people(scope["path"]) and "text/html" in Headers(scope=scope).get("accept", "")


def _page(scope: Scope, start: Message, body: bytes) -> Response:
    """The page of a problem document."""
    problem: Mapping[str, Any] = json.loads(body)
    headers = Headers(raw=start["headers"])
    status = start["status"]
    values = {
        "status": status,
        "title": TITLES.get(status) or problem["title"] or HTTPStatus(status).phrase,
        "detail": WORDS.get(status) or sentence(problem["detail"]),
        "retry": headers.get("retry-after"),
    }
    text = page("trouble.html", _viewer(scope), "", values)
    passed_on = {name: headers[name] for name in ("retry-after", "allow") if name in headers}
    return HTMLResponse(text, status, {**STORED_BY_NOBODY, **passed_on})


def _viewer(scope: Scope) -> Viewer | None:
    """Who sees it, if that was found out before it went wrong."""
    state = scope.get("state", {})
    actor, session = state.get("actor"), state.get("session")
    signed_in = actor is not None and session is not None
    return Viewer(actor.name, actor.role, session.csrf) if signed_in else None


async def _still_running(request: Request, _: Exception) -> Response:
    text = page("waiting.html", _viewer(request.scope), "", {"again": RELOAD_SECONDS})
    return HTMLResponse(text, 200, {**STORED_BY_NOBODY, "Refresh": RELOAD_SECONDS})


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """By name the content, the kind and the mark of every file that is served."""
    files = {}
    for path in sorted((FOLDER / "static").iterdir()):
        content = path.read_bytes()
        if path.suffix == ".css":
            content = PALETTE.encode() + content
        if path.suffix in KINDS:
            mark = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            files[path.name] = (content, KINDS[path.suffix], mark)
    return files


def _file(request: Request, name: str) -> Response:
    known = _files().get(name)
    if known is None:
        raise Problem(404, "not-found", "there is no such file")
    content, kind, mark = known
    headers = {"Cache-Control": "no-cache", "ETag": mark}  # kept, and asked about each time
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)


@router.get("/static/{name}")
async def static_file(request: Request, name: str) -> Response:
    """A file by its name; there are no folders."""
    return _file(request, name)


@router.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    """The icon, for browsers that ask for it there."""
    return _file(request, ICON)
