"""Budgets, as owners set them."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from takifugu.server.access_rules import API
from takifugu.server.api.bodies import RequestBody, body_of, takes
from takifugu.server.api.description_routes import DatasetName, find_dataset
from takifugu.server.api.problem_responses import json_response
from takifugu.server.services import actor_of, services_of

router = APIRouter(tags=["datasets"])
EXACT = "an exact number as text: `2`, `0.5` or `1/3`"


class NewBudget(RequestBody):
    """A lifetime budget. What was spent stays spent."""

    epsilon: str = Field(
        min_length=1,
        max_length=100,
        description=f"The Pufferfish ε of all releases together, {EXACT}.",
        examples=["2"],
    )
    delta: str = Field(
        default="0",
        min_length=1,
        max_length=100,
        description=f"The Pufferfish δ beside it, {EXACT}.",
        examples=["0"],
    )
    analyst: str | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="For releases to this analyst, within the budget of the dataset; null for the"
        " dataset as a whole.",
        examples=["ana"],
    )


class BudgetSet(BaseModel):
    """A budget that was set, and the event of the ledger that says so."""

    dataset: str = Field(description="The dataset.", examples=["visits"])
    analyst: str | None = Field(description="Whose it is; null for the dataset as a whole.")
    epsilon: str = Field(description="The Pufferfish ε, exactly.", examples=["2"])
    delta: str = Field(description="The Pufferfish δ, exactly.", examples=["0"])
    before: str | None = Field(description="The ε before; null if there was none.")
    event: int = Field(description="The number of the event in the ledger.", examples=[12])
    actor: str = Field(description="Who set it, as the event says.", examples=["olga"])


@router.put(f"{API}/datasets/{{dataset}}/budget", response_model=BudgetSet, **takes(NewBudget))
async def set_budget(
    request: Request, dataset: DatasetName, body: Annotated[NewBudget, body_of(NewBudget)]
) -> Response:
    """Set the lifetime budget of a dataset, or of one analyst on it: an event of the ledger."""
    services, actor = services_of(request), actor_of(request)
    find_dataset(services, actor, dataset)

    def work() -> dict[str, object]:
        from takifugu.server.work import owner_decisions

        return owner_decisions.set_budget(
            services.project().acting(actor.name),
            *(dataset, body.epsilon),
            delta=body.delta,
            analyst=body.analyst,
        )

    return json_response(await asyncio.to_thread(work))
