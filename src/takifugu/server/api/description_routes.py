"""Who calls, and datasets: what can be asked, under which guarantee, from which budget."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from takifugu.server.access_rules import API, Role, may_see
from takifugu.server.api.job_routes import LATER, run_task
from takifugu.server.api.responses import Page, PageOption, json_response, slice_response
from takifugu.server.services import Services, actor_of, services_of

router = APIRouter()
DatasetName = Annotated[
    str, Path(description="The name of a dataset, exactly.", examples=["visits"])
]


class Me(BaseModel):
    """Who calls, as their token says."""

    name: str = Field(
        description="The name that events of the ledger carry, and that a budget has.",
        examples=["ana"],
    )
    role: Role = Field(description="What the holder may do.", examples=["analyst"])
    token: str = Field(
        description="The public identity of the token, which is not the token.", examples=["k3v9x2"]
    )


@router.get(f"{API}/me", tags=["me"], response_model=Me)
async def me(request: Request) -> Response:
    """The name and the role of the token that calls."""
    actor = actor_of(request)
    return json_response({"name": actor.name, "role": actor.role, "token": actor.token})


class BudgetView(BaseModel):
    """A lifetime budget. Exact numbers are text, as `1/2` or `0.5`."""

    epsilon: str = Field(description="The Pufferfish ε of everything together.", examples=["2"])
    delta: str = Field(description="The Pufferfish δ beside it.", examples=["0"])


class DatasetItem(BaseModel):
    """A dataset that the caller may see."""

    name: str = Field(description="Its name, in the ledger too.", examples=["stays"])
    budget: BudgetView | None = Field(description="Its lifetime budget; null before one is set.")
    own_budget: BudgetView | None = Field(
        description="The budget of the caller within it; null if they have none of their own."
    )


class OrderView(BaseModel):
    """What puts the rows of an entity in order."""

    column: str = Field(description="The column.", examples=["day"])
    kind: str = Field(description="`time`, or `number`.", examples=["time"])
    zone: str | None = Field(description="The time zone of its times.", examples=["UTC"])
    first: str | int | float | None = Field(description="Where the rows begin: public.")
    last: str | int | float | None = Field(description="Where they end: public.")


class ProtectedView(BaseModel):
    """A protected column: its labels, or the bounds of its numbers."""

    model_config = ConfigDict(extra="allow")

    column: str = Field(description="The column.", examples=["state"])
    kind: Literal["label", "number"] = Field(description="What it holds.")
    labels: list[str | int | bool] | None = Field(
        default=None, description="The labels that there are.", examples=[["home", "ward"]]
    )
    outside: str | None = Field(
        default=None, description="What becomes of other values: `refuse`, `other` or `drop`."
    )
    lower: str | None = Field(default=None, description="The least number, as exact text.")
    upper: str | None = Field(default=None, description="The greatest number, as exact text.")
    step: str | None = Field(default=None, description="The distance of two numbers, exactly.")


class PublicView(BaseModel):
    """A public column, and its keys."""

    column: str = Field(description="The column.", examples=["zone"])
    keys: list[str | int | bool] = Field(
        description="The keys that there are.", examples=[["north", "south"]]
    )


class KindView(BaseModel):
    """A kind of query, and its options."""

    kind: str = Field(description="The kind.", examples=["histogram"])
    required: list[str] = Field(description="Options that must be given.")
    optional: list[str] = Field(description="Options that may be given.")
    without: dict[str, str] = Field(description="Options that it lacks, each with the reason.")


class DatasetDescription(BaseModel):
    """What is public about a dataset, and what may be asked of it."""

    dataset: str = Field(description="Its name.", examples=["stays"])
    title: str | None = Field(description="Its title, as declared.", examples=["Stays"])
    entity: str | None = Field(description="The column that tells entities apart.")
    order: OrderView | None = Field(description="What puts rows in order; null for nothing.")
    rows: int = Field(description="How many rows there are: public.", examples=[3600])
    rows_of_an_entity: int | None = Field(description="The most rows of one entity: public.")
    entities: int | None = Field(description="How many entities there are: public.")
    released_from: str | int | None = Field(
        description="Where the rows begin that may be released from; null for all."
    )
    about: list[str] = Field(description="The protected columns that queries may be about.")
    protected: list[ProtectedView] = Field(description="The protected columns.")
    public: list[PublicView] = Field(description="The public columns.")
    linear: list[str] = Field(description="The weighted sums that the policy declares.")
    queries: list[KindView] = Field(description="The kinds of query.")


class GuaranteeView(BaseModel):
    """What is protected and what is not."""

    dataset: str = Field(description="The dataset.", examples=["stays"])
    guarantee: str = Field(description="The guarantee, in plain words, in lines.")


class SpentAt(BaseModel):
    """What was spent after one charge."""

    seq: int = Field(description="The event of the ledger.", examples=[12])
    at: str = Field(description="When.", examples=["2026-11-16T10:00:00+00:00"])
    spent: float | None = Field(description="The Pufferfish ε of all so far, rounded up.")


class StretchView(BaseModel):
    """What the entries of a stretch of time have lost."""

    start: str | int | None = Field(description="Where it begins; null for the beginning.")
    end: str | int | None = Field(description="Where it ends; null for the end.")
    spent: float | None = Field(description="Their Pufferfish ε, rounded up; null if infinite.")


class BudgetStandingView(BaseModel):
    """A budget, what was spent of it and what is left."""

    model_config = ConfigDict(extra="allow")

    analyst: str | None = Field(description="Whose; null for that of the whole dataset.")
    epsilon: str | None = Field(description="The Pufferfish ε, exactly; null for no limit.")
    delta: str = Field(description="The Pufferfish δ, exactly.", examples=["0"])
    spent: float | None = Field(
        description="The Pufferfish ε of all that was released, rounded up; null if infinite."
    )
    left: float | None = Field(
        description="What a release on all rows may still cost alone, rounded down."
    )
    most: str | None = Field(
        description="The most that a release on every row may cost alone now, rounded down."
    )
    by_column: dict[str, Any] | None = Field(
        description="Where rows have several protected columns: what each has lost."
    )
    history: list[SpentAt] = Field(description="What was spent after each of the last charges.")
    stretches: list[StretchView] = Field(description="What was spent on stretches of time.")


class BudgetsView(BaseModel):
    """The budgets of a dataset that the caller may see."""

    dataset: str = Field(description="The dataset.", examples=["stays"])
    budgets: list[BudgetStandingView] = Field(
        description="That of the dataset and, for an analyst, their own."
    )


@router.get(
    f"{API}/datasets", tags=["datasets"], name="list_datasets", response_model=Page[DatasetItem]
)
async def datasets(request: Request, paging: PageOption) -> Response:
    """The datasets that the caller may see, by name, with their budgets."""
    services, actor = services_of(request), actor_of(request)
    policies = services.project().policy.datasets
    budgets = await set_budgets(services)
    names = sorted(name for name, policy in policies.items() if may_see(actor, policy))

    def item(name: str) -> dict[str, Any]:
        own = budgets.get((name, actor.name)) if actor.role == "analyst" else None
        return {"name": name, "budget": budgets.get((name, None)), "own_budget": own}

    return slice_response("datasets", names, paging, item)


async def set_budgets(services: Services) -> dict[tuple[str, str | None], dict[str, str]]:
    """The budgets that are set, by dataset and analyst, as JSON."""
    return {
        (position.dataset, position.analyst): {
            "epsilon": str(position.epsilon),
            "delta": str(position.delta),
        }
        for position in await services.read_ledger(lambda ledger: ledger.positions())
        if position.epsilon is not None
    }


@router.get(
    f"{API}/datasets/{{dataset}}",
    tags=["datasets"],
    name="describe_dataset",
    response_model=DatasetDescription,
    responses=LATER,
)
async def dataset(request: Request, dataset: DatasetName) -> Response:
    """What the dataset has: columns, labels, public keys, kinds of query and their options."""
    return await run_task(request, "describe", dataset)


@router.get(
    f"{API}/datasets/{{dataset}}/guarantee",
    tags=["datasets"],
    name="dataset_guarantee",
    response_model=GuaranteeView,
    responses=LATER,
)
async def guarantee(request: Request, dataset: DatasetName) -> Response:
    """What is protected and what is not, in plain words."""
    return await run_task(request, "guarantee", dataset)


@router.get(
    f"{API}/datasets/{{dataset}}/budget",
    tags=["datasets"],
    name="dataset_budget",
    response_model=BudgetsView,
    responses=LATER,
)
async def budget(request: Request, dataset: DatasetName) -> Response:
    """The lifetime budget, what is spent and what is left, and how it came to be."""
    return await run_task(request, "budget", dataset)
