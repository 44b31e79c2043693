"""What routes of pages share: the viewer of a request, responses, documents of the API.

A page shows what the API answers: its routes call those of the API as functions, with the same
request, and read the document that these would have sent.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from takifugu.server.api.problems import Problem
from takifugu.server.pages.page_templates import Viewer, page
from takifugu.server.services import actor_of, services_of

STORED_BY_NOBODY = {"Cache-Control": "no-store"}
MOST_COUNTED = 99  # requests beside an entry of the menu


class StillRunning(Exception):
    """Work for a page takes longer than a request waits; the page asks again by itself."""


def viewer_of(request: Request) -> Viewer:
    """Who sees a page. Forms need a browser session: a token has no use for them."""
    session = getattr(request.state, "session", None)
    return Viewer.of(actor_of(request), "" if session is None else session.csrf)


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
    found = await asyncio.to_thread(state.approvals, "pending", limit=MOST_COUNTED + 1)
    return f"{MOST_COUNTED}+" if len(found) > MOST_COUNTED else str(len(found) or "")


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


def trouble_of(problem: Problem | Mapping[str, Any] | None) -> dict[str, str] | None:
    """A problem as a page shows it, beside the form that it is about."""
    if problem is None:
        return None
    document = problem.document() if isinstance(problem, Problem) else problem
    return {"title": document["title"], "detail": sentence(document["detail"])}


def sentence(text: str) -> str:
    """A message as a sentence: it begins with a capital letter and ends with a full stop."""
    text = text.strip()
    if not text:
        return ""
    end = "" if text[-1] in ".!?" else "."
    return text[0].upper() + text[1:] + end if text[0].isalpha() else text + end
