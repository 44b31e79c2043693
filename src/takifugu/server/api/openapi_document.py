"""The OpenAPI document: what FastAPI finds, and who may call what, the bodies and the problems."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from takifugu.server.access_rules import API, BY_ROUTE, Rule
from takifugu.server.api.problems import MEDIA_TYPE
from takifugu.server.api.requests import BODIES, KEY_HEADER, STANDS_FOR, BodyReader
from takifugu.server.api.responses import ProblemDocument, json_response

if TYPE_CHECKING:
    from pydantic import BaseModel

GENERIC = re.compile(r"\b(Page)_(\w+?)_(?=\W)")  # names of models such as Page[DatasetItem]
REF = "#/components/schemas/{model}"
DESCRIPTION = """\
Statistics of protected tables, released under Pufferfish privacy and paid from one ledger.

A *plan* says what a release would cost and how good it would be; it spends nothing. A *release* is
charged before it is drawn, and its result can be fetched again. What takes long is a *job*: the
response is 202, and its `Location` is the job's.

Every error is a problem document (RFC 9457) with the fields of the Python error of the same name.
"""
TAGS = {
    "me": "Who calls.",
    "datasets": "What can be asked, under which guarantee, from which budget.",
    "plans": "What a release would cost, and how good its answer would be. Nothing is spent.",
    "releases": "Charged, then drawn; and the results of earlier ones.",
    "jobs": "What takes longer than a request: progress, results, cancelling.",
    "approvals": "Releases that wait for an owner.",
    "tokens": "Who may call.",
    "ledger": "The record of every charge and every decision, and its verification.",
    "reports": "What was released under which guarantee, for people.",
    "witness": "The head of another server's ledger, remembered here.",
    "operation": "Whether the server runs and is ready, and what it counts.",
}
STATUSES = {
    400: "The request is not what HTTP or JSON allow.",
    401: "No token, or one that is unknown, expired or revoked.",
    403: "The role of the token may not do this.",
    404: "There is no such thing, or not for the caller.",
    405: "The address does not answer this method.",
    409: "The budget, the owner or the state of things refuses; nothing was released.",
    412: "What is there is not what the caller has, by `If-Match`.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "`Host` is not a name of this server.",
    422: "The request has no meaning: which field, what it is, what it must be.",
    429: "Too many requests; `Retry-After` says when to go on.",
    431: "The head of the request, its address among it, is too large.",
    500: "Something is wrong on the server; the owner finds the reference in the log.",
    503: "The ledger, the data or a worker cannot be reached now; nothing more was spent.",
}
router = APIRouter()


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """The document, made once."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            summary="Pufferfish privacy for correlated data.",
            description=DESCRIPTION,
            routes=app.routes,
            tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        )
        _components(document)
        bodies = dict(_bodies(app.state.routes))
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if model := bodies.get((method.upper(), path)):
                    schema = {"$ref": REF.format(model=model)}
                    content = {"application/json": {"schema": schema}}
                    operation["requestBody"] = {"required": True, "content": content}
                _complete(operation, BY_ROUTE[method.upper(), path])
        app.openapi_schema = json.loads(GENERIC.sub(r"\1Of\2", json.dumps(document)))
    return app.openapi_schema


def _bodies(routes: Iterable[APIRoute]) -> Iterator[tuple[tuple[str, str], str]]:
    """By method and path, the models of bodies that routes declare."""
    for route in routes:
        for dependency in route.dependant.dependencies:
            if isinstance(dependency.call, BodyReader):
                for method in route.methods or ():
                    yield (method, route.path), dependency.call.model.__name__


def _components(document: dict[str, Any]) -> None:
    """The models that FastAPI does not know of, and how callers say who they are."""
    models: list[type[BaseModel]] = [ProblemDocument, *BODIES.values()]
    _, definitions = models_json_schema(
        [(model, "validation") for model in models], ref_template=REF
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    schemas |= _referring(definitions["$defs"])
    components["securitySchemes"] = {
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token that `takifugu token create` or an owner made.",
        },
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": "takifugu",
            "description": "The session of a browser that has signed in; over TLS its name is"
            " `__Host-takifugu`. Requests that change something also need the header"
            " `X-CSRF-Token`.",
        },
    }


def _referring(part: Any) -> Any:
    """A schema in which the models that parts stand for are named as references."""
    if isinstance(part, list):
        return [_referring(item) for item in part]
    if not isinstance(part, dict):
        return part
    schema = {key: _referring(value) for key, value in part.items()}
    if model := schema.pop(STANDS_FOR, None):
        schema["$ref"] = REF.format(model=model)
    return schema


def _written_out(parameter: dict[str, Any]) -> None:
    """A parameter as it is sent: it has no null, and a header its capital letters."""
    schema = parameter["schema"]
    choices = [choice for choice in schema.pop("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        schema |= choices[0]
    elif choices:
        schema["anyOf"] = choices
    if parameter["in"] == "header":
        parameter["name"] = "-".join(part.capitalize() for part in parameter["name"].split("-"))
    if parameter["name"] == KEY_HEADER:  # read by us, so that its absence is explained
        parameter["required"] = True
        schema |= {"minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$"}


def _complete(operation: dict[str, Any], rule: Rule) -> None:
    """Who may call an operation, and what can go wrong with it."""
    responses = operation["responses"]
    problem = {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="ProblemDocument")}}}
    for code in [code for code in responses if code >= "400"]:
        if "HTTPValidationError" in str(responses[code]):
            del responses[code]
        else:  # which the route has declared
            responses[code]["content"] = problem
    operation["summary"] = operation.get("description", "").partition("\n")[0]
    possible = {400, 404, 405, 421, 429, 431, 500, 503}
    if not rule.anybody:
        operation["security"] = [{"token": []}, {"session": []}]
        possible |= {401, 403}
        operation["description"] = (
            f"{operation.get('description', '').rstrip()}\n\nRoles: {', '.join(rule.roles)}."
        ).strip()
    for parameter in operation.get("parameters", ()):
        possible |= {422}
        _written_out(parameter)
    for response in responses.values():
        if response["description"] == "Successful Response":
            response["description"] = "It is answered."
    if "requestBody" in operation:
        possible |= {409, 413, 415, 422}
    if rule.path.startswith(f"{API}/datasets/"):
        possible |= {409}
    for status in sorted(possible):
        response = {"description": STATUSES[status], "content": problem}
        responses.setdefault(str(status), response)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """The OpenAPI document of this server."""
    return json_response(request.app.openapi())
