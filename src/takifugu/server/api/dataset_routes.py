"""Datasets, as owners enter and change them: declarations, policies, changes to accept."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from takifugu.server.access_rules import API
from takifugu.server.api.bodies import RequestBody, body_of, takes
from takifugu.server.api.description_routes import DatasetName, find_dataset
from takifugu.server.api.running import LATER, new_task, run_as_job
from takifugu.server.services import actor_of, services_of

router = APIRouter(tags=["datasets"])
Text = Annotated[str, Field(min_length=1, max_length=500)]
Value = str | int | bool
Side = Value | list[Value]
Pair = Annotated[list[Side], Field(min_length=2, max_length=2)]


class NewDataset(RequestBody):
    """A dataset to enter. Files lie inside the folder of the project, by their paths from there."""

    name: Text = Field(
        description="What to call it: letters a-z, digits, - and _.", examples=["visits"]
    )
    declaration: Text = Field(
        description="The declaration of its table, a .toml file.", examples=["visits.toml"]
    )
    about: Text | None = Field(
        default=None, description="The protected column that the priors are about, if one of many."
    )
    priors: list[Text] = Field(
        default_factory=list,
        max_length=20,
        description="Files of priors (.json, .bif); a prior can also be fitted later.",
        examples=[["visits.prior.json"]],
    )
    over: Text | None = Field(
        default=None, description="What the entries of the priors are, where it is not plain."
    )
    household: Text | None = Field(
        default=None, description='With `over = "household"`: the public column that groups people.'
    )
    member: Text | None = Field(
        default=None, description="With that: the public column with the members."
    )
    pairs: list[Pair] | dict[str, list[Pair]] | None = Field(
        default=None,
        description="The secret pairs, by column if there are several; left out: all pairs.",
        examples=[[["ward", ["home", "work"]]]],
    )
    entries: list[Value] | None = Field(
        default=None, description="The entries that have secrets; left out: all."
    )
    secrets_within: Text | None = Field(
        default=None,
        description="For numbers: how far apart two of them are at most that are a secret pair.",
    )
    uncertainty: float = Field(
        default=0.0, ge=0, lt=1, description="How far every joint probability may be off."
    )
    analysts: list[Text] = Field(
        default_factory=list,
        max_length=1000,
        description="Who may ask; left out: every analyst.",
        examples=[["ana"]],
    )


class Acceptance(RequestBody):
    """The acceptance of a change, as it was shown."""

    accept: Literal["policy", "declaration"] = Field(
        description="`policy` for priors, secrets and rules; `declaration` for other cells."
    )
    shown: str = Field(
        pattern="^[0-9a-f]{64}$",
        description="`shown` of what was read: anything else than that is not accepted.",
    )
    unchanged: bool = Field(
        default=False,
        description="For a declaration: the owner states that it is the one used before.",
    )


@router.post(f"{API}/datasets", response_model=dict[str, Any], responses=LATER, **takes(NewDataset))
async def add_dataset(
    request: Request, body: Annotated[NewDataset, body_of(NewDataset)]
) -> Response:
    """Enter a dataset into the project, if its data, priors and secrets fit.

    Nothing that is there is replaced. A budget is set, and a prior fitted, by requests of their
    own.
    """
    task = new_task(request, "add-dataset", None, given=body.model_dump())
    return await run_as_job(request, task)


@router.get(f"{API}/datasets/{{dataset}}/policy", response_model=dict[str, Any], responses=LATER)
async def policy(request: Request, dataset: DatasetName) -> Response:
    """The policy of a dataset with the files that it names."""
    find_dataset(services_of(request), actor_of(request), dataset)
    return await run_as_job(request, new_task(request, "policy", dataset))


@router.get(
    f"{API}/datasets/{{dataset}}/policy-change", response_model=dict[str, Any], responses=LATER
)
async def policy_change(request: Request, dataset: DatasetName) -> Response:
    """What waits to be accepted: another policy or declaration, and what is spent under both."""
    find_dataset(services_of(request), actor_of(request), dataset)
    return await run_as_job(request, new_task(request, "policy-change", dataset))


@router.post(
    f"{API}/datasets/{{dataset}}/policy-change",
    response_model=dict[str, Any],
    responses=LATER,
    **takes(Acceptance),
)
async def accept_policy_change(
    request: Request, dataset: DatasetName, body: Annotated[Acceptance, body_of(Acceptance)]
) -> Response:
    """Accept a change as it was shown: an event of the ledger."""
    find_dataset(services_of(request), actor_of(request), dataset)
    options = body.model_dump()
    return await run_as_job(request, new_task(request, "accept-change", dataset, **options))
