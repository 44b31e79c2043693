"""Datasets, guarantees and budgets as the OpenAPI document describes them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


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
