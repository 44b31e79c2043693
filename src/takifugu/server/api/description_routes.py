"""Datasets: what can be asked, under which guarantee, from which budget."""

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Request, Response

from takifugu.server.access_rules import API
from takifugu.server.api.description_models import (
    BudgetsView,
    DatasetDescription,
    DatasetItem,
    GuaranteeView,
)
from takifugu.server.api.pagination import Page, PageOption, cursor_after
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.api.running import LATER, new_task, run_as_job
from takifugu.server.roles import Actor
from takifugu.server.services import Services, actor_of, services_of

if TYPE_CHECKING:
    from takifugu.project.policy import DatasetPolicy

router = APIRouter(tags=["datasets"])
DatasetName = Annotated[
    str, Path(description="The name of a dataset, exactly.", examples=["visits"])
]


def may_see(actor: Actor, policy: "DatasetPolicy") -> bool:
    """Whether a dataset exists for the caller: a policy may list its analysts."""
    return actor.role != "analyst" or not policy.analysts or actor.name in policy.analysts


def find_dataset(services: Services, actor: Actor, name: str) -> "DatasetPolicy":
    """The policy of the dataset with exactly this name.

    Raises:
        Problem: There is none, or the policy lists analysts and the caller is not among them: 404
            for both.
    """
    found = services.project().policy.datasets.get(name)
    if found is None or not may_see(actor, found):
        raise Problem(404, "no-dataset", "there is no such dataset here", field="dataset")
    return found


@router.get(f"{API}/datasets", name="list_datasets", response_model=Page[DatasetItem])
async def datasets(request: Request, paging: PageOption) -> Response:
    """The datasets that the caller may see, by name, with their budgets."""
    services, actor = services_of(request), actor_of(request)
    policies = services.project().policy.datasets
    budgets = {
        (found.dataset, found.analyst): _budget(found.epsilon, found.delta)
        for found in await services.of_ledger(lambda ledger: ledger.positions())
        if found.epsilon is not None
    }
    names = sorted(name for name, policy in policies.items() if may_see(actor, policy))
    start = paging.after("datasets")
    chosen = names[start : start + paging.limit]
    items = [
        {
            "name": name,
            "budget": budgets.get((name, None)),
            "own_budget": budgets.get((name, actor.name)) if actor.role == "analyst" else None,
        }
        for name in chosen
    ]
    end = start + len(chosen)
    more = cursor_after("datasets", end) if end < len(names) else None
    return json_response({"items": items, "next": more})


def _budget(epsilon: Fraction, delta: Fraction) -> dict[str, str]:
    return {"epsilon": str(epsilon), "delta": str(delta)}


@router.get(
    f"{API}/datasets/{{dataset}}",
    name="describe_dataset",
    response_model=DatasetDescription,
    responses=LATER,
)
async def dataset(request: Request, dataset: DatasetName) -> Response:
    """What the dataset has: columns, labels, public keys, kinds of query and their options."""
    return await _told(request, "describe", dataset)


@router.get(
    f"{API}/datasets/{{dataset}}/guarantee",
    name="dataset_guarantee",
    response_model=GuaranteeView,
    responses=LATER,
)
async def guarantee(request: Request, dataset: DatasetName) -> Response:
    """What is protected and what is not, in plain words."""
    return await _told(request, "guarantee", dataset)


@router.get(
    f"{API}/datasets/{{dataset}}/budget",
    name="dataset_budget",
    response_model=BudgetsView,
    responses=LATER,
)
async def budget(request: Request, dataset: DatasetName) -> Response:
    """The lifetime budget, what is spent and what is left, and how it came to be."""
    return await _told(request, "budget", dataset)


async def _told(request: Request, task: str, dataset: str) -> Response:
    find_dataset(services_of(request), actor_of(request), dataset)
    return await run_as_job(request, new_task(request, task, dataset))
