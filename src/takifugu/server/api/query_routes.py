"""Asking: plans, which spend nothing, and releases, which are charged before they are drawn."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request, Response

from takifugu.server.access_rules import API
from takifugu.server.api.approval_models import WaitingRelease
from takifugu.server.api.bodies import body_of, takes
from takifugu.server.api.description_routes import DatasetName, find_dataset
from takifugu.server.api.direct_route import DirectRoute
from takifugu.server.api.idempotency import KeyHeader, checked_key
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.api.query_models import (
    PlanRequest,
    PlanResponse,
    ReleaseRequest,
    ReleaseResponse,
)
from takifugu.server.api.release_jobs import begin_release, release_view
from takifugu.server.api.running import (
    LATER,
    JobView,
    PreferHeader,
    accepted,
    new_task,
    run_as_job,
    waiting,
)
from takifugu.server.services import actor_of, services_of

if TYPE_CHECKING:
    from takifugu.session.query_options import QueryOptions

router = APIRouter(route_class=DirectRoute)


def query_options(document: dict[str, Any]) -> "QueryOptions":
    """The options of a query, checked as those of a local session are."""
    from takifugu.session.query_options import QueryOptions

    return QueryOptions.from_document(document)


@router.post(
    f"{API}/datasets/{{dataset}}/plans",
    name="plan_query",
    response_model=PlanResponse,
    responses=LATER,
    tags=["plans"],
    **takes(PlanRequest),
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
    services, actor = services_of(request), actor_of(request)
    find_dataset(services, actor, dataset)
    if body.analyst is not None and actor.role == "analyst" and body.analyst != actor.name:
        raise Problem(
            403, "forbidden", "you plan in your own name; leave `analyst` out", field="analyst"
        )
    task = new_task(*(request, "plan", dataset), query=dict(body.query), analyst=body.analyst)
    return await run_as_job(request, task)  # the worker checks the options, as a session does


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
    **takes(ReleaseRequest),
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
    services, actor = services_of(request), actor_of(request)
    find_dataset(services, actor, dataset)
    key = checked_key(idempotency_key)
    options = query_options(body.query)
    job = begin_release(
        *(services, actor, dataset, options.document()),
        key=key,
        accept_noise=body.accept_noise,
        plan=body.plan,
    )
    outcome = await job.outcome(waiting(request))
    if outcome is None:
        return accepted(release_view(job.job, services))
    return json_response(outcome.document, outcome.status, {"Location": outcome.location})
