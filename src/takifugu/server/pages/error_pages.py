"""Problems as pages: what goes wrong while a person looks is told in the look of the pages.

Routes, handlers and guards answer with problem documents, whoever asks. Where a browser asked for
a page, this middleware makes a page of the document; it sees every response, so that none is
forgotten.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.server.access.refusals import for_people
from takifugu.server.api.problems import MEDIA_TYPE
from takifugu.server.pages.page_responses import STORED_BY_NOBODY, StillRunning, sentence
from takifugu.server.pages.page_templates import Viewer, page

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
AGAIN = "3"  # seconds until a page that waits asks again


def add_pages(app: FastAPI) -> None:
    """Let an app answer browsers with pages when something goes wrong, or takes long."""
    app.add_exception_handler(StillRunning, _waiting)
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
    kept = {name: headers[name] for name in ("retry-after", "allow") if name in headers}
    return HTMLResponse(text, status, {**STORED_BY_NOBODY, **kept})


def _viewer(scope: Scope) -> Viewer | None:
    """Who sees it, if that was found out before it went wrong."""
    state = scope.get("state", {})
    actor, session = state.get("actor"), state.get("session")
    return None if actor is None or session is None else Viewer.of(actor, session.csrf)


async def _waiting(request: Request, _: Exception) -> Response:
    text = page("waiting.html", _viewer(request.scope), "", {"again": AGAIN})
    return HTMLResponse(text, 200, {**STORED_BY_NOBODY, "Refresh": AGAIN})
