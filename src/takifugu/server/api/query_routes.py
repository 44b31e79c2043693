"""Asking: plans, which spend nothing, and releases, which are charged before they are drawn.

The options of a query are checked by `QueryOptions.from_document`, as those of a local session are,
and refused with the same errors; `QueryDocument` describes them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model

from takifugu.server.access_rules import API
from takifugu.server.api.approval_routes import WaitingRelease
from takifugu.server.api.description_routes import DatasetName
from takifugu.server.api.job_routes import (
    LATER,
    JobView,
    PreferHeader,
    accepted,
    find_dataset,
    finished,
    job_document,
    new_task,
    run_task,
    waiting,
)
from takifugu.server.api.problems import Problem
from takifugu.server.api.requests import (
    KeyHeader,
    RequestBody,
    body_of,
    checked_key,
    described_as,
)
from takifugu.server.api.responses import json_response
from takifugu.server.services import actor_of, services_of
from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import (
    AMOUNTS,
    OPTIONS,
    READERS,
    Option,
    OptionType,
    QueryOptions,
)

EXAMPLE = {"kind": "histogram", "by": ["zone"], "epsilon": "0.5"}


Number = float | str
Bound = int | str | None
ANNOTATIONS: Mapping[OptionType, Any] = {
    "column": str | list[str] | None,
    "columns": str | list[str],
    "window": Annotated[list[Bound], Field(min_length=2, max_length=2)] | None,
    "keys": dict[str, Annotated[list[str | int], Field(min_length=1)]] | None,
    "amount": Number | None,
    "real": float | None,
    "whole": int | None,
    "labels": str | int | list[str | int],
    "counts": list[float] | list[list[float]] | None,
    "text": str | None,
    "flag": bool,
}
HINTS: Mapping[OptionType, str] = {
    "window": " Null leaves a side open.",
    "amount": " A number, read as the decimal that is written, or text: `0.1`, `1/3`.",
}


def _field(option: Option) -> Any:
    """An option as a field of `QueryDocument`."""
    default = READERS[option.type][1]
    description = Field(
        default=list(default) if isinstance(default, tuple) else default,
        description=option.help + HINTS.get(option.type, ""),
        examples=None if option.example is None else [option.example],
    )
    return ANNOTATIONS[option.type], description


FIELDS: dict[str, Any] = {
    "kind": (
        Literal[tuple(KINDS)],
        Field(description="The kind of query.", examples=["histogram"]),
    ),
    **{name: _field(option) for name, option in OPTIONS.items()},
}
QueryDocument = create_model(
    "QueryDocument",
    __config__=ConfigDict(extra="forbid"),
    __doc__="""A query: its kind, its rows, and either what it may cost or how good it must be.

Each kind has options of its own: `GET /datasets/{dataset}` lists them. Either `epsilon` is
given, or the error to keep to: `within`, or `confidence` for a ranking.""",
    **FIELDS,
)


def decimal_amounts(query: dict[str, Any]) -> dict[str, Any]:
    """A query whose amounts are exact: a JSON number is the decimal that was written.

    So 0.1 and "0.1" are one tenth, and one query. JSON has no more digits than a double holds for
    certain, so that the shortest decimal that is read as the same double is taken; whoever needs
    more digits writes text.

    >>> decimal_amounts({"kind": "histogram", "epsilon": 0.1})
    {'kind': 'histogram', 'epsilon': '0.1'}
    """
    return {
        name: repr(value) if name in AMOUNTS and isinstance(value, float) else value
        for name, value in query.items()
    }


QueryField = Annotated[
    dict[str, Any], AfterValidator(decimal_amounts), described_as(QueryDocument, EXAMPLE)
]


class PlanRequest(RequestBody):
    """What to plan."""

    query: QueryField
    analyst: str | None = Field(
        default=None,
        max_length=100,
        description="For owners: the analyst whose budget counts too. Analysts leave it out.",
        examples=["ana"],
    )


class ReleaseRequest(RequestBody):
    """What to release."""

    query: QueryField
    accept_noise: bool = Field(
        default=False,
        description="Whether to release an answer that is mostly noise; otherwise it is refused,"
        " and nothing is charged.",
    )

    plan: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="The `digest` of the plan that was seen: if something else would be released"
        " now, it is refused as stale, and nothing is charged. Leave it out to release whatever"
        " the query leads to.",
    )


class PlanDocument(BaseModel):
    """A priced query. Nothing was spent, and nothing protected was read."""

    model_config = ConfigDict(extra="allow")

    form: str = Field(description="The form of the document.", examples=["takifugu-plan-2"])
    dataset: str = Field(description="The dataset.", examples=["stays"])
    digest: str = Field(description="Names all that would be released, for `plan` of a release.")
    text: str = Field(description="The plan as people read it, in lines.")
    price: str = Field(description="What it costs, in words.")
    cost: dict[str, Any] = Field(
        description="What it costs: `alone` if nothing else were ever released, `before` and"
        " `after` of all together, `fits` whether the ledger would accept it now. Exact numbers"
        " are text."
    )
    error: dict[str, Any] = Field(description="What is predicted of the answer.")
    usefulness: dict[str, Any] = Field(description="Whether the answer will be worth having.")
    stored: bool = Field(description="Whether the answer is stored already, and so free.")
    needs_confirmation: bool = Field(
        description="Whether it is mostly noise: a release then needs `accept_noise`."
    )
    options: dict[str, Any] = Field(description="The query that was planned.")


class PlanResponse(BaseModel):
    """A plan, and whether its release would wait for an owner."""

    plan: PlanDocument
    words: dict[str, Any] = Field(
        description="The plan in words and rounded numbers, each by itself, for a page: `cost`,"
        " `adds`, `spent`, `verdict`, `useful`, `error`, `odds`, `notes`, `over`, `most`, `needed`."
    )
    approval: str | None = Field(
        default=None,
        description="Why a release would wait for an owner's approval; null if it would not.",
        examples=["it is the first release of ana on stays"],
    )


class ResultDocument(BaseModel):
    """A released answer, and everything that it needs to be understood."""

    model_config = ConfigDict(extra="allow")

    dataset: str = Field(description="The dataset.", examples=["stays"])
    query: dict[str, Any] = Field(description="What was asked.")
    columns: list[str] = Field(
        description="The columns of the table.", examples=[["state", "estimate", "low", "high"]]
    )
    rows: list[list[Any]] = Field(
        description="The table: keys, `estimate`, and `low` and `high` of a 95 % interval.",
        examples=[[["home", 1603, 1590, 1616]]],
    )
    cost: dict[str, Any] = Field(description="What it cost; exact numbers are text.")
    free: bool = Field(description="Whether it was stored, and cost nothing.")
    at: str = Field(description="When it was charged.", examples=["2026-11-16T10:00:00+00:00"])
    mechanism: dict[str, Any] = Field(description="How it was protected.")
    guarantee: str = Field(description="What is protected and what is not.")
    provenance: dict[str, Any] | None = Field(
        description="Where it came from: query, priors, events of the ledger, software."
    )


class ReleaseResponse(BaseModel):
    """A release: paid, drawn, recorded."""

    charge: int = Field(
        description="The event of the ledger that paid for the answer; the name of the release.",
        examples=[12],
    )
    result: ResultDocument


router = APIRouter()


@router.post(
    f"{API}/datasets/{{dataset}}/plans",
    name="plan_query",
    response_model=PlanResponse,
    responses=LATER,
    tags=["plans"],
)
async def plan(
    request: Request,
    dataset: DatasetName,
    body: Annotated[PlanRequest, body_of(PlanRequest)],
    prefer: PreferHeader = None,  # noqa: ARG001 - read by `waiting`
) -> Response:
    """What a query would cost and how good its answer would be. Nothing is spent.

    Nothing protected is read either: plan as often as you like.
    """
    actor = actor_of(request)
    if body.analyst is not None and actor.role == "analyst" and body.analyst != actor.name:
        raise Problem(
            403, "forbidden", "you plan in your own name; leave `analyst` out", field="analyst"
        )
    query = dict(body.query)  # which the worker checks, as a session does
    return await run_task(request, "plan", dataset, query=query, analyst=body.analyst)


@router.post(
    f"{API}/datasets/{{dataset}}/releases",
    status_code=201,
    response_model=ReleaseResponse,
    responses={
        202: {
            "model": JobView | WaitingRelease,
            "description": "It takes longer: the job; or an owner has to approve it: the request."
            " `Location` is its address.",
            "headers": LATER[202]["headers"],
        },
        201: {
            "description": "It was charged, drawn and recorded, or was stored and is free.",
            "headers": {
                "Location": {
                    "description": "The address of the release.",
                    "schema": {"type": "string"},
                }
            },
        },
    },
    tags=["releases"],
)
async def release_query(
    request: Request,
    dataset: DatasetName,
    body: Annotated[ReleaseRequest, body_of(ReleaseRequest)],
    idempotency_key: KeyHeader = None,
    prefer: PreferHeader = None,  # noqa: ARG001 - read by `waiting`
) -> Response:
    """Pay for a query, then answer it; for free if the same was answered before.

    The same request with the same `Idempotency-Key` is one charge, however often it is sent. Where
    the policy wants an owner's approval, the response is 202 with the request for it, and
    `Location` is its address.
    """
    find_dataset(request, dataset)
    key = checked_key(idempotency_key)
    query = QueryOptions.from_document(body.query).document()
    options = {"query": query, "key": key, "accept_noise": body.accept_noise}
    if body.plan is not None:
        options["plan"] = body.plan
    job = services_of(request).board.start(
        actor_of(request), new_task(request, "release", dataset, **options)
    )
    if not await finished(job, waiting(request)):
        return accepted(job_document(job))
    if approval := job.result.get("approval"):
        place = {"Location": f"{API}/approvals/{approval['id']}"}
        return json_response(job.result, 202, place)
    return json_response(job.result, 201, {"Location": f"{API}/releases/{job.result['charge']}"})
