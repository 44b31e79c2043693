"""Fits of priors, as jobs."""

from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from takifugu.server.access_rules import API
from takifugu.server.api.bodies import RequestBody, body_of, takes
from takifugu.server.api.description_routes import DatasetName, find_dataset
from takifugu.server.api.running import LATER, new_task, run_as_job
from takifugu.server.services import actor_of, services_of

router = APIRouter(tags=["datasets"])
Text = Annotated[str, Field(min_length=1, max_length=500)]
Whole = Annotated[int, Field(ge=1, le=10**9)]
KINDS = "markov, interval, higher-order, household, network or gaussian"


class NewFit(RequestBody):
    """A prior to fit. Exactly one of first_days, first_steps, share and all_rows names the rows."""

    kind: Text | None = Field(
        default=None, description=f"What to fit: {KINDS}; by default a Markov chain."
    )
    first_days: Whole | None = Field(
        default=None, description="Fit on the first days; release from later ones only."
    )
    first_steps: Whole | None = Field(
        default=None, description="The same where the order is a number."
    )
    share: Text | None = Field(
        default=None,
        description="Fit on a share of the entities; release from the others only.",
        examples=["1/5"],
    )
    all_rows: bool = Field(
        default=False, description="Fit on all rows, including those to be protected."
    )
    replace: bool = Field(default=False, description="Replace the priors that the dataset has.")
    add: bool = Field(default=False, description="Add to the priors that the dataset has.")
    publish_rows: Text | None = Field(
        default=None,
        description="Where releases were made from the rows that are fitted on: their name, which"
        " confirms that these are given up.",
        examples=["before 30"],
    )
    columns: list[Text] | None = Field(
        default=None, max_length=1000, description="The columns that the prior is about."
    )
    at_least: Whole | None = Field(
        default=None, description="How many entities a label needs that is found on fitted rows."
    )
    other: str | int | None = Field(
        default=None, description="markov: the state for values that do not occur."
    )
    tau: float | None = Field(default=None, description="Chains: smooth zeros to this probability.")
    length: Whole | None = Field(default=None, description="The number of entries.")
    confidence: float | None = Field(
        default=None, description="interval: all chains within the intervals at this confidence."
    )
    order: Whole | None = Field(
        default=None, description="higher-order: how many entries before it an entry depends on."
    )
    cuts: list[Annotated[str, Field(max_length=100)] | int | float] | None = Field(
        default=None,
        max_length=10_000,
        description="Chains over ranges of a number: where they begin, and the upper bound.",
        examples=[["0", "0.5", "1", "2"]],
    )
    by_hour: bool = Field(default=False, description="markov: a matrix for each hour of the day.")
    structure: dict[str, list[Text]] | None = Field(
        default=None, description="network: the parents of each column; by default a tree."
    )
    smoothing: float | None = Field(
        default=None, description="network: what is added to every count."
    )
    kernel: Text | None = Field(default=None, description="gaussian: the family of its kernel.")
    lags: Whole | None = Field(default=None, description="gaussian: how many lags it is fitted to.")
    margin: float | None = Field(
        default=None, description="gaussian: raise the correlation by so many standard errors."
    )
    profile: Text | None = Field(
        default=None, description="gaussian: a public column, each of whose keys has a mean."
    )
    own_levels: bool = Field(
        default=False, description="gaussian: each entity has a mean of its own."
    )
    household: Text | None = Field(
        default=None, description="household: the public column that groups entities."
    )
    member: Text | None = Field(
        default=None, description="household: the public column that says who is which member."
    )
    goodness: bool = Field(
        default=True, description="Test whether a prior of this kind describes the fitted rows."
    )
    advice: bool = Field(
        default=True, description="Compute what the budget allows under it, and what would more."
    )


@router.post(
    f"{API}/datasets/{{dataset}}/prior-fits",
    response_model=dict[str, Any],
    responses=LATER,
    **takes(NewFit),
)
async def fit_prior(
    request: Request, dataset: DatasetName, body: Annotated[NewFit, body_of(NewFit)]
) -> Response:
    """Fit a prior to a dataset, in its database, and enter it into the policy.

    A fitted prior is part of the published policy: fit it on other rows than those to be released
    from. If the policy was in force already, nothing is released until the change is accepted.
    """
    find_dataset(services_of(request), actor_of(request), dataset)
    options = body.model_dump(exclude_defaults=True)
    return await run_as_job(request, new_task(request, "fit-prior", dataset, **options))
