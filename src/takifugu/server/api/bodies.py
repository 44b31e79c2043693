"""Bodies of requests: read after the caller is known, strictly, into one model each.

A route names its model twice, for FastAPI never reads a body here: it would do so before it knows
who calls, and echo it in its errors.

    @router.put(path, **takes(BudgetRequest))
    async def set_budget(body: Annotated[BudgetRequest, body_of(BudgetRequest)]) -> …
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, ValidationError, WithJsonSchema

from takifugu.errors import nearest
from takifugu.server.api.problems import Problem
from takifugu.server.api.strict_json import read_json, too_deep
from takifugu.visible import visible

Model = TypeVar("Model", bound="RequestBody")
BODIES: dict[str, type[BaseModel]] = {}  # by name, for the OpenAPI document
FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 1_000  # of a form
STANDS_FOR = "x-model"  # in a schema: the name of the model that describes it


class RequestBody(BaseModel):
    """A body: unknown keys are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def takes(model: type[RequestBody], *, required: bool = True) -> dict[str, Any]:
    """What a route declares of its body, for the OpenAPI document."""
    BODIES[model.__name__] = model
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    body = {"required": required, "content": {"application/json": {"schema": schema}}}
    return {"openapi_extra": {"requestBody": body}}


def described_as(model: type[BaseModel], example: Any) -> WithJsonSchema:
    """For a part of a body that is checked elsewhere: the model that describes it."""
    BODIES[model.__name__] = model
    return WithJsonSchema({STANDS_FOR: model.__name__, "examples": [example]})


def body_of(model: type[Model]) -> Any:
    """The dependency that reads the body of a request as ``model``."""

    async def read(request: Request) -> Model:
        return validated(model, await json_body(request))

    reading: Callable[[Request], Awaitable[Model]] = read
    return Depends(reading)


async def json_body(request: Request) -> Any:
    """The JSON in the body of a request; an empty body is an empty object."""
    kind = media_type(request)
    raw = await raw_body(request)
    if not raw and not kind:
        return {}
    if kind != "application/json":
        raise Problem(
            *(415, "media-type"),
            "the body must be JSON, and say so: Content-Type: application/json",
            field="Content-Type",
        )
    return read_json(raw)


async def form_fields(request: Request) -> dict[str, str]:
    """The fields of a form in the body, as browsers send it; of equal names the last.

    Only this one encoding is read: others, such as that of files, take much longer to.
    """
    if not hasattr(request.state, "form_fields"):
        kind = media_type(request)
        if kind not in ("", FORM):
            detail = f"the body must be a form, and say so: Content-Type: {FORM}"
            raise Problem(415, "media-type", detail, field="Content-Type")
        raw = await raw_body(request)
        try:
            text = raw.decode("ascii", "replace")
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            detail = f"the form has more than {MAX_FIELDS:,} fields"
            raise Problem(422, "invalid-body", detail, reason="fields") from None
        request.state.form_fields = dict(pairs)
    fields: dict[str, str] = request.state.form_fields
    return fields


def media_type(request: Request) -> str:
    """What a request says that its body is; empty if it does not."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def raw_body(request: Request) -> bytes:
    """The body, if it is not larger than the server takes."""
    most: int = request.app.state.services.settings.request_bytes
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Problem(
                *(413, "too-large"),
                f"the body is larger than {most:,} bytes, the most that this server takes",
                extra={"limit": most},
                headers={"Connection": "close"},
            )
        parts.append(part)
    return b"".join(parts)


def validated(model: type[Model], value: Any) -> Model:
    """``value`` as a model; a problem that says where it is wrong, and never what was sent."""
    if not isinstance(value, dict):
        raise Problem(
            422, "invalid-body", "the body must be one JSON object, as {…}", reason="kind"
        )
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise Problem(
            422,
            "invalid-body",
            "; ".join(message for _, message in _errors(model, error)),
            field=_errors(model, error)[0][0],
            reason=error.errors(include_input=False, include_context=False)[0]["type"],
        ) from None
    except RecursionError:
        raise too_deep() from None


def _errors(model: type[RequestBody], error: ValidationError) -> list[tuple[str, str]]:
    """Where and what, of the first few errors."""
    found = []
    for one in error.errors(include_url=False, include_input=False)[:5]:
        place = visible(".".join(str(part)[:80] for part in one["loc"]))
        message = str(one["msg"])
        if one["type"] == "extra_forbidden":
            near = nearest(one["loc"][-1], model.model_fields)
            known = ", ".join(model.model_fields)
            message = f"is not known; the nearest is {near!r}" if near else f"keys are {known}"
        found.append((place, f"`{place}`: {message}"))
    return found
