"""Responses: JSON documents, problem documents for whatever goes wrong, and lists by the page.

A list is ``{"items": […], "next": "…"}``, with an opaque cursor. It holds the place after which the
next page begins and the name of the list, so that one of another list is refused. It grants
nothing: who may see what is decided again for every page.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.errors import TakifuguError
from takifugu.server.access_rules import Role
from takifugu.server.api.problems import MEDIA_TYPE, TYPE, Problem, json_bytes, problem_of
from takifugu.server.work.tasks import EncodedJson
from takifugu.visible import visible

Item = TypeVar("Item")
MAX_PAGE_ITEMS = 200
DEFAULT_PAGE_ITEMS = 50


class ProblemDocument(BaseModel):
    """What went wrong (RFC 9457), with the fields of the Python error of the same name."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="A name that programs compare: `urn:takifugu:problem:` and the name of the"
        " Python error, or of a problem of the request.",
        examples=[f"{TYPE}OverBudget"],
    )
    title: str = Field(
        description="What went wrong, the same for every problem of the type.",
        examples=["The budget does not admit this release"],
    )
    status: int = Field(description="The status of the response.", examples=[409])
    detail: str = Field(
        description="What was given, what is needed, what to do next.",
        examples=["query 'histogram' asks for a Pufferfish epsilon of 3, which is more than …"],
    )
    field: str = Field(default="", description="The parameter at fault; empty if no single one is.")
    reason: str = Field(default="", description="The cause, where a type has several.")


def json_response(
    document: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON document that nobody stores; one that a worker has written is passed on as it is."""
    return Response(
        document.content if isinstance(document, EncodedJson) else json_bytes(document),
        status,
        {"Cache-Control": "no-store", **(headers or {})},
        "application/json",
    )


def problem_response(
    document: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    """The response of a problem document."""
    return Response(
        json_bytes(document),
        document["status"],
        {"Cache-Control": "no-store", **(headers or {})},
        MEDIA_TYPE,
    )


def role_of(request: Request) -> Role | None:
    """The role of the caller; None if nobody has signed in."""
    actor = getattr(request.state, "actor", None)
    return None if actor is None else actor.role


def add_handlers(app: FastAPI) -> None:
    """Answer every error with a problem document."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _parameters)
    app.add_exception_handler(TakifuguError, _error)


class ProblemsOnly:
    """Middleware: an error that nobody expected is a problem with a reference, and logged.

    The handlers of Starlette would answer it too, and then raise it again for the server to print,
    message and all: it may hold anything.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, sending)
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, a stranger gets no word of it
            document = problem_of(error, None)
        if started or scope["type"] != "http":
            raise ConnectionAbortedError("a response broke off; see the log") from None
        await problem_response(document)(scope, receive, send)


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - registered for it alone
    return problem_response(error.document(), error.headers)


async def _error(request: Request, error: Exception) -> Response:
    return problem_response(problem_of(error, role_of(request)))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            problem = Problem(404, "not-found", "there is nothing here; /openapi.json lists all")
        case 405:
            allowed = _methods(request)
            headers["Allow"] = ", ".join(allowed)
            problem = Problem(
                405, "method", f"this address answers {' and '.join(allowed)} and nothing else"
            )
        case status:
            problem = Problem(status, "http", HTTPStatus(status).description or "refused")
    return problem_response(problem.document(), headers)


def _methods(request: Request) -> list[str]:
    """The methods that the address of a request answers."""
    methods: set[str] = set()
    for route in request.app.state.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            methods |= route.methods
    return sorted(methods)


async def _parameters(_: Request, error: Exception) -> Response:
    """Parameters of the address and headers that have no meaning; what was sent is not echoed."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
    wrong = [
        (visible(str(fault["loc"][-1])[:80]), str(fault["msg"]), str(fault["type"]))
        for fault in error.errors()[:5]
    ]
    name, kind = wrong[0][0], wrong[0][2]
    detail = "; ".join(f"`{where}`: {message}" for where, message, _kind in wrong)
    problem = Problem(422, "invalid-parameter", detail, field=name, reason=kind)
    return problem_response(problem.document())


class Page(BaseModel, Generic[Item]):
    """A part of a list."""

    model_config = ConfigDict(json_schema_extra={"description": "A part of a list."})

    items: list[Item] = Field(description="The items of this page, in order.")
    next: str | None = Field(
        default=None,
        description="The cursor of the next page; null if this is the last one.",
        examples=["cmVsZWFzZXM6MTI"],
    )


class Paging(BaseModel):
    """Which page is asked for."""

    limit: int
    cursor: str | None

    def after(self, kind: str, start: int = 0) -> int:
        """The place that the page begins after; ``start`` if it is the first."""
        return start if self.cursor is None else place_of(kind, self.cursor)


def _paging(
    limit: Annotated[
        int,
        Query(
            ge=1,
            le=MAX_PAGE_ITEMS,
            description="The most items of a page.",
            examples=[DEFAULT_PAGE_ITEMS],
        ),
    ] = DEFAULT_PAGE_ITEMS,
    cursor: Annotated[
        str | None,
        Query(max_length=200, description="`next` of the page before; leave it out at first."),
    ] = None,
) -> Paging:
    return Paging(limit=limit, cursor=cursor)


PageOption = Annotated[Paging, Depends(_paging)]


def cursor_after(kind: str, position: int) -> str:
    """The cursor of the page that begins after ``position`` in the list ``kind``.

    >>> place_of("releases", cursor_after("releases", 12))
    12
    """
    return base64.urlsafe_b64encode(f"{kind}:{position}".encode()).decode().rstrip("=")


def place_of(kind: str, cursor: str) -> int:
    """The place in a cursor of the list ``kind``."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        named, _, position = text.decode("ascii").partition(":")
        if named == kind and position.isdecimal() and len(position) < 20:
            return int(position)
    except (ValueError, binascii.Error):
        pass
    raise Problem(
        422,
        "invalid-parameter",
        "`cursor` is not one of this list; it must be `next` of its page before, or left out",
        field="cursor",
        reason="cursor",
    )


def page_response(
    kind: str,
    items: list[dict[str, Any]],
    paging: Paging,
    position: Callable[[dict[str, Any]], int],
) -> Response:
    """The page that ``items`` begin, of which one more was looked for than the page has."""
    page = items[: paging.limit]
    more = len(items) > paging.limit
    following = cursor_after(kind, position(page[-1])) if more else None
    return json_response({"items": page, "next": following})


def slice_response(
    kind: str, items: Sequence[Item], paging: Paging, document: Callable[[Item], dict[str, Any]]
) -> Response:
    """A page of a list that is at hand as a whole; cursors are places in it."""
    start = paging.after(kind)
    chosen = items[start : start + paging.limit]
    end = start + len(chosen)
    following = cursor_after(kind, end) if end < len(items) else None
    return json_response({"items": [document(item) for item in chosen], "next": following})


def names_tag(header: str, tag: str) -> bool:
    """Whether a list of tags in a header has this one; weak ones are compared like strong ones."""
    tags = {name.strip().removeprefix("W/") for name in header.split(",")}
    return "*" in tags or tag.removeprefix("W/") in tags
