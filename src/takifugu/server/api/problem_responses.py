"""What goes wrong in a request, as responses: always a problem document, never a stack trace."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from takifugu.errors import TakifuguError
from takifugu.server.api.problems import MEDIA_TYPE, TYPE, Problem, problem_of
from takifugu.server.api.strict_json import json_bytes
from takifugu.server.roles import Role
from takifugu.server.work.tasks import EncodedJson
from takifugu.visible import visible


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
    found: set[str] = set()
    for route in request.app.state.routes:
        if route.matches(request.scope)[0] is not Match.NONE:
            found |= route.methods
    return sorted(found)


async def _parameters(_: Request, error: Exception) -> Response:
    """Parameters of the address and headers that have no meaning; what was sent is not echoed."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
    wrong = [
        (visible(str(one["loc"][-1])[:80]), str(one["msg"]), str(one["type"]))
        for one in error.errors()[:5]
    ]
    name, kind = wrong[0][0], wrong[0][2]
    detail = "; ".join(f"`{where}`: {message}" for where, message, _kind in wrong)
    problem = Problem(422, "invalid-parameter", detail, field=name, reason=kind)
    return problem_response(problem.document())
