"""Requests: strict JSON, bodies read into one model each after the caller is known, forms, keys.

Python's reader of JSON accepts NaN, numbers that are infinite once read, whole numbers of any
length, the same key twice, halves of characters, and as many brackets as the stack holds. None of
them means anything in a query, and each has broken a server somewhere.

FastAPI never reads a body here: it would do so before it knows who calls, and echo it in its
errors. A route declares its model as a dependency, of which the OpenAPI document is made, too:

    async def set_budget(body: Annotated[NewBudget, body_of(NewBudget)]) -> …

The same request twice is one charge: the ledger knows a charge by its idempotency key. A caller
chooses theirs without knowing those of others: the worker makes the ledger's key of the caller's
name and the one they chose, so that two people with the same key have two charges, and nobody
learns which keys others use.
"""

import json
import re
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Depends, Header, Request
from pydantic import BaseModel, ConfigDict, ValidationError, WithJsonSchema

from takifugu.errors import nearest
from takifugu.server.api.problems import Problem
from takifugu.visible import visible

MAX_DEPTH = 32  # brackets inside one another
MAX_DIGITS = 40  # of a whole number
Model = TypeVar("Model", bound="RequestBody")
BODIES: dict[str, type[BaseModel]] = {}  # by name, for the OpenAPI document
FORM = "application/x-www-form-urlencoded"
MAX_FIELDS = 1_000  # of a form
STANDS_FOR = "x-model"  # in a schema: the name of the model that describes it
KEY_HEADER = "Idempotency-Key"
KEY = re.compile(r"[\x21-\x7e]{1,128}")
KeyHeader = Annotated[
    str | None,
    Header(
        alias=KEY_HEADER,
        description="Names this release, in at most 128 visible ASCII characters: a new"
        " UUID for a new one, the same again to ask for the same one again. It is charged once.",
        examples=["8f14e45f-ceea-467f-a2d7-4a2bb1e6d6d5"],
    ),
]


def read_json(raw: bytes) -> Any:
    """The JSON value in the body of a request.

    Raises:
        Problem: It is not JSON (400), or holds what no query has (422).
    """
    try:
        value = _STRICT.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise _not_json("is not UTF-8") from None
    except RecursionError:
        raise too_deep() from None
    except json.JSONDecodeError as error:
        raise _not_json(f"is not JSON at line {error.lineno}, column {error.colno}") from None
    _check(value, MAX_DEPTH)
    return value


def _not_json(given: str) -> Problem:
    return Problem(400, "not-json", f"the body {given}; send one JSON object", reason="syntax")


def _invalid(detail: str, reason: str) -> Problem:
    return Problem(422, "invalid-body", detail, reason=reason)


def too_deep() -> Problem:
    """The problem of a body with too many brackets inside one another."""
    detail = f"the body has more than {MAX_DEPTH} brackets inside one another; none needs them"
    return _invalid(detail, "depth")


def _constant(_: str) -> float:
    raise _invalid("a number of the body is NaN or infinite; it must be finite", "number")


def _float(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise _invalid("a number of the body is infinite; it must be finite", "number")
    return value


def _int(text: str) -> int:
    if len(text) > MAX_DIGITS:
        detail = f"a whole number of the body has more than {MAX_DIGITS} digits; write less"
        raise _invalid(detail, "number")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _invalid("the body has a key twice; write each once", "twice")
    return members


_STRICT = json.JSONDecoder(
    parse_constant=_constant, parse_float=_float, parse_int=_int, object_pairs_hook=_object
)


def _check(value: Any, deep: int) -> None:
    """Refuse depth, and halves of characters, which no encoding has."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            detail = "a text of the body has half a character (a lone surrogate); write whole ones"
            raise _invalid(detail, "surrogate") from None
    elif isinstance(value, dict | list):
        if not deep:
            raise too_deep()
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(part, deep - 1)


class RequestBody(BaseModel):
    """A body: unknown keys are refused, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


def described_as(model: type[BaseModel], example: Any) -> WithJsonSchema:
    """For a part of a body that is checked elsewhere: the model that describes it."""
    BODIES[model.__name__] = model
    return WithJsonSchema({STANDS_FOR: model.__name__, "examples": [example]})


@dataclass(frozen=True)
class BodyReader:
    """The dependency that reads the body of a request as ``model``."""

    model: type[RequestBody]

    async def __call__(self, request: Request) -> RequestBody:
        """The body of a request."""
        return validated(self.model, await json_body(request))


def body_of(model: type[RequestBody]) -> Any:
    """Declares a body that is read as ``model``."""
    BODIES[model.__name__] = model
    return Depends(BodyReader(model))


async def json_body(request: Request) -> Any:
    """The JSON in the body of a request; an empty body is an empty object."""
    kind = media_type(request)
    raw = await request.body()
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
        raw = await request.body()
        try:
            text = raw.decode("ascii", "replace")
            pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            raise _invalid(f"the form has more than {MAX_FIELDS:,} fields", "fields") from None
        request.state.form_fields = dict(pairs)
    fields: dict[str, str] = request.state.form_fields
    return fields


def media_type(request: Request) -> str:
    """What a request says that its body is; empty if it does not."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def validated(model: type[Model], value: Any) -> Model:
    """``value`` as a model; a problem that says where it is wrong, and never what was sent."""
    if not isinstance(value, dict):
        raise _invalid("the body must be one JSON object, as {…}", "kind")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        messages = _errors(model, error)
        raise Problem(
            *(422, "invalid-body", "; ".join(message for _, message in messages)),
            field=messages[0][0],
            reason=error.errors(include_input=False, include_context=False)[0]["type"],
        ) from None
    except RecursionError:
        raise too_deep() from None


def _errors(model: type[RequestBody], error: ValidationError) -> list[tuple[str, str]]:
    """Where and what, of the first few errors."""
    messages = []
    for fault in error.errors(include_url=False, include_input=False)[:5]:
        location = visible(".".join(str(part)[:80] for part in fault["loc"]))
        message = str(fault["msg"])
        if fault["type"] == "extra_forbidden":
            near = nearest(fault["loc"][-1], model.model_fields)
            known = ", ".join(model.model_fields)
            message = f"is not known; the nearest is {near!r}" if near else f"keys are {known}"
        messages.append((location, f"`{location}`: {message}"))
    return messages


def checked_key(given: str | None) -> str:
    """The key that a caller gave.

    Raises:
        Problem: There is none, or it is not one.
    """
    if given is None or not KEY.fullmatch(given):
        raise Problem(
            *(422, "idempotency-key"),
            "`Idempotency-Key` "
            + ("is missing" if given is None else "is something else")
            + "; a release needs one: 1 to 128 visible ASCII characters, such as a new UUID, the"
            " same again when you ask for the same release again",
            field="Idempotency-Key",
            reason="missing" if given is None else "form",
        )
    return given
