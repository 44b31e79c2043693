"""Pages of datasets: the list, and one with its guarantee, budget and declaration."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from takifugu.errors import TakifuguError
from takifugu.server.api import budget_routes
from takifugu.server.api import dataset_routes as owner
from takifugu.server.api import description_routes as api
from takifugu.server.api.bodies import form_fields, validated
from takifugu.server.api.pagination import MOST, Paging
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.api.running import finished, new_task, run_as_job
from takifugu.server.pages.dataset_views import (
    WAITING,
    askers,
    budget_view,
    change_view,
    dataset_view,
    waiting_view,
)
from takifugu.server.pages.page_responses import (
    document_of,
    moved,
    shown,
    trouble_of,
)
from takifugu.server.services import actor_of, services_of

router = APIRouter(include_in_schema=False)
PATIENCE = 3.0  # seconds that the list waits for datasets that are not open yet
UNKNOWN: Mapping[str, Any] = {
    "spent": None,
    "left": None,
    "analysts": [],
    "history": [],
    "most": None,
}
DONE = {
    "budget": "The budget is set.",
    "policy": "The policy is accepted.",
    "declaration": "The declaration is accepted.",
}


@router.get("/")
async def datasets_page(request: Request) -> Response:
    """The datasets, each with its budget as a gauge."""
    paging = Paging(limit=MOST, cursor=request.query_params.get("cursor"))
    found = document_of(await api.datasets(request, paging))
    policies = services_of(request).project().policy.datasets
    cards = await asyncio.gather(*(_card(request, item) for item in found["items"]))
    for card in cards:
        card["askers"] = askers(policies[card["name"]].analysts, actor_of(request).role)
    after = f"/?cursor={found['next']}" if found["next"] else None
    return await shown(request, "datasets.html", "/", datasets=cards, after=after)


async def _card(request: Request, item: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset of the list: in full if a worker can tell at once, else what the ledger has."""
    told = await asyncio.gather(
        *(_soon(request, task, item["name"]) for task in ("describe", "budget"))
    )
    (description, problem), (budget, _) = told
    waits = problem is not None and problem.kind in WAITING
    return {
        "name": item["name"],
        "words": dataset_view(description)["words"] if description else "",
        "budget": budget_view(budget) if budget else _stored_budget(item),
        "waits": waiting_view(problem.kind, actor_of(request).role) if problem and waits else None,
        "later": description is None and not waits,
    }


def _stored_budget(item: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger alone says of a budget: not what was spent."""
    return {**UNKNOWN, **(item["budget"] or {"epsilon": None, "delta": "0"})}


async def _soon(request: Request, task: str, dataset: str) -> tuple[Any, Problem | None]:
    """What a task says of a dataset, if it does so soon; None if not. Or why it cannot."""
    job = services_of(request).board.start(actor_of(request), new_task(request, task, dataset))
    try:
        return (job.result if await finished(job, PATIENCE) else None), None
    except Problem as problem:  # the page of the dataset says what is wrong with it
        return None, problem


@router.get("/datasets/{dataset}")
async def dataset_page(request: Request, dataset: str) -> Response:
    """One dataset."""
    return await show_dataset(request, dataset)


async def show_dataset(
    request: Request,
    dataset: str,
    *,
    trouble: Mapping[str, str] | None = None,
    given: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    """The page of a dataset, with what went wrong in a form of it."""
    common: dict[str, Any] = {
        "trouble": trouble,
        "done": DONE.get(request.query_params.get("done", "")),
        "given": {"epsilon": "", "delta": "", "analyst": "", **(given or {})},
        "status": status,
    }
    try:
        described, guaranteed, budget = await asyncio.gather(
            _document(api.dataset(request, dataset)),
            _document(api.guarantee(request, dataset)),
            budget_of(request, dataset),
        )
    except Problem as problem:
        if problem.kind not in WAITING:
            raise
        return await _show_waiting(request, dataset, problem.kind, common)
    return await shown(
        *(request, "dataset.html", "/"),
        **common,
        dataset=dataset_view(described),
        guarantee=guaranteed["guarantee"],
        budget=budget,
        change=await _change(request, dataset),
    )


async def _change(request: Request, dataset: str) -> list[dict[str, Any]] | None:
    """What there is to accept; None for those who accept nothing."""
    if actor_of(request).role != "owner":
        return None
    return change_view(document_of(await owner.policy_change(request, dataset)))


async def _show_waiting(
    request: Request, dataset: str, kind: str, common: Mapping[str, Any]
) -> Response:
    """The page of a dataset that nobody can ask until an owner has decided: why, and the forms."""
    listed = await services_of(request).of_ledger(lambda ledger: ledger.positions())
    found = next((one for one in listed if (one.dataset, one.analyst) == (dataset, None)), None)
    item: dict[str, Any] = {"budget": None}
    if found is not None and found.epsilon is not None:
        item = {"budget": {"epsilon": str(found.epsilon), "delta": str(found.delta)}}
    return await shown(
        *(request, "dataset_waiting.html", "/"),
        **common,
        dataset={"name": dataset},
        waits=waiting_view(kind, actor_of(request).role),
        budget=_stored_budget(item),
        change=await _change(request, dataset),
    )


async def _document(answering: Any) -> Any:
    return document_of(await answering)


async def budget_of(request: Request, dataset: str) -> Mapping[str, Any]:
    """The budget of a dataset as pages show it; also if there is none."""
    try:
        return budget_view(document_of(await api.budget(request, dataset)))
    except Problem as problem:
        if problem.kind != "NoBudget":
            raise
        return budget_view(None)


@router.get("/datasets/{dataset}/budget.svg")
async def budget_picture(request: Request, dataset: str) -> Response:
    """The history of the budget as a picture."""
    api.find_dataset(services_of(request), actor_of(request), dataset)
    task = new_task(request, "budget-figure", dataset)
    return await run_as_job(
        request, task, lambda drawn: Response(drawn, media_type="image/svg+xml")
    )


@router.post("/datasets/{dataset}/budget")
async def budget_form(request: Request, dataset: str) -> Response:
    """Set a budget."""
    form = await form_fields(request)
    given = {name: form.get(name, "").strip() for name in ("epsilon", "delta", "analyst")}
    sent = {name: value for name, value in given.items() if value or name == "epsilon"}
    try:
        await budget_routes.set_budget(request, dataset, validated(budget_routes.NewBudget, sent))
    except (Problem, TakifuguError) as error:
        return await _refused(request, dataset, error, given)
    return moved(address_of(dataset), done="budget")


@router.post("/datasets/{dataset}/policy-change")
async def policy_change_form(request: Request, dataset: str) -> Response:
    """Accept a policy or a declaration that changed, as it was shown."""
    form = await form_fields(request)
    given = {name: form.get(name, "") for name in ("accept", "shown")}
    try:
        body = validated(owner.Acceptance, given)
        document_of(await owner.accept_policy_change(request, dataset, body))
    except (Problem, TakifuguError) as error:
        return await _refused(request, dataset, error)
    return moved(address_of(dataset), done=given["accept"])


def address_of(dataset: str) -> str:
    """The address of the page of a dataset."""
    return f"/datasets/{quote(dataset, safe='')}"


async def _refused(
    request: Request, dataset: str, error: Exception, given: Mapping[str, str] | None = None
) -> Response:
    problem = problem_of(error, actor_of(request).role)
    if problem["status"] == 404:
        raise error
    return await show_dataset(
        request, dataset, trouble=trouble_of(problem), given=given, status=problem["status"]
    )
