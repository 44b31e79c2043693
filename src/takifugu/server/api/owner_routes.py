"""What owners change: budgets, datasets and their policies, fits of priors, tokens."""

import asyncio
from dataclasses import Field as DataclassField
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field, create_model

from takifugu._core.exact import exactly
from takifugu.fitting.fit_options import FIT_OPTIONS
from takifugu.server.access.tokens import DEFAULT_EXPIRY, end_token, expiry_of, make_token
from takifugu.server.access_rules import API, Role
from takifugu.server.api.description_routes import DatasetName
from takifugu.server.api.job_routes import LATER, find_dataset, run_task
from takifugu.server.api.problems import Problem
from takifugu.server.api.requests import RequestBody, body_of
from takifugu.server.api.responses import Page, PageOption, json_response, slice_response
from takifugu.server.services import actor_of, services_of
from takifugu.server.state.access_tokens import MAX_NAME_LENGTH, NewToken, TokenRecord

router = APIRouter()
ANSWERED_LATER: Any = {
    "tags": ["datasets"],
    "response_model": dict[str, Any],
    "responses": LATER,
}
EXACT = "an exact number as text: `2`, `0.5` or `1/3`"
TokenId = Annotated[
    str, Path(description="The public identity of a token.", examples=["26bcc3a76961e9eb"])
]
Text = Annotated[str, Field(min_length=1, max_length=500)]
Value = str | int | bool
Side = Value | list[Value]
Pair = Annotated[list[Side], Field(min_length=2, max_length=2)]
Whole = Annotated[int, Field(ge=1, le=10**9)]


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


@router.put(f"{API}/datasets/{{dataset}}/budget", tags=["datasets"], response_model=BudgetSet)
async def set_budget(
    request: Request, dataset: DatasetName, body: Annotated[NewBudget, body_of(NewBudget)]
) -> Response:
    """Set the lifetime budget of a dataset, or of one analyst on it: an event of the ledger."""
    services, actor = services_of(request), actor_of(request)
    find_dataset(request, dataset)

    def work() -> dict[str, Any]:
        amounts = {name: str(exactly(getattr(body, name), name)) for name in ("epsilon", "delta")}
        project = services.project().acting(actor.name)
        before = project.budget(dataset, body.analyst)
        event = project.set_budget(dataset, body.epsilon, analyst=body.analyst, delta=body.delta)
        return {
            "dataset": dataset,
            "analyst": body.analyst,
            **amounts,
            "before": None if before is None else str(before),
            "event": event.seq,
            "actor": event.body["actor"],
        }

    return json_response(await asyncio.to_thread(work))


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


@router.post(f"{API}/datasets", **ANSWERED_LATER)
async def add_dataset(
    request: Request, body: Annotated[NewDataset, body_of(NewDataset)]
) -> Response:
    """Enter a dataset into the project, if its data, priors and secrets fit.

    Nothing that is there is replaced. A budget is set, and a prior fitted, by requests of their
    own.
    """
    return await run_task(request, "add-dataset", None, given=body.model_dump())


@router.get(f"{API}/datasets/{{dataset}}/policy", **ANSWERED_LATER)
async def policy(request: Request, dataset: DatasetName) -> Response:
    """The policy of a dataset with the files that it names."""
    return await run_task(request, "policy", dataset)


@router.get(f"{API}/datasets/{{dataset}}/policy-change", **ANSWERED_LATER)
async def policy_change(request: Request, dataset: DatasetName) -> Response:
    """What waits to be accepted: another policy or declaration, and what is spent under both."""
    return await run_task(request, "policy-change", dataset)


@router.post(f"{API}/datasets/{{dataset}}/policy-change", **ANSWERED_LATER)
async def accept_policy_change(
    request: Request, dataset: DatasetName, body: Annotated[Acceptance, body_of(Acceptance)]
) -> Response:
    """Accept a change as it was shown: an event of the ledger."""
    return await run_task(request, "accept-change", dataset, **body.model_dump())


FIT_TYPES: dict[str, Any] = {
    "text": Text | None,
    "label": str | int | None,
    "whole": Whole | None,
    "number": float | None,
    "flag": bool,
    "names": Annotated[list[Text], Field(max_length=1000)] | None,
    "share": Text | None,
    "cuts": Annotated[
        list[Annotated[str, Field(max_length=100)] | int | float], Field(max_length=10_000)
    ]
    | None,
    "parents": dict[str, list[Text]] | None,
}


def _fit_field(declared: "DataclassField[Any]") -> tuple[Any, Any]:
    """The type and the description of an option of a fit."""
    form, example = declared.metadata["form"], declared.metadata["example"]
    return FIT_TYPES[form], Field(
        default=declared.default if form == "flag" else None,
        description=declared.metadata["help"],
        examples=None if example is None else [example],
    )


_fit_fields: dict[str, Any] = {name: _fit_field(each) for name, each in FIT_OPTIONS.items()}
NewFit: Any = create_model(
    "NewFit",
    __base__=RequestBody,
    __doc__="A prior to fit. Exactly one of first_days, first_steps, share and all_rows names the"
    " rows.",
    **_fit_fields,
)


@router.post(f"{API}/datasets/{{dataset}}/prior-fits", **ANSWERED_LATER)
async def fit_prior(
    request: Request, dataset: DatasetName, body: Annotated[RequestBody, body_of(NewFit)]
) -> Response:
    """Fit a prior to a dataset, in its database, and enter it into the policy.

    A fitted prior is part of the published policy: fit it on other rows than those to be released
    from. If the policy was in force already, nothing is released until the change is accepted.
    """
    options = body.model_dump(exclude_defaults=True)
    return await run_task(request, "fit-prior", dataset, **options)


class TokenRequest(RequestBody):
    """A token to make."""

    name: str = Field(
        min_length=1,
        max_length=MAX_NAME_LENGTH,
        description="Whose it is: the analyst of charges, and the actor of events. One name has"
        " one role.",
        examples=["ana"],
    )
    role: Role = Field(description="What the holder may do.", examples=["analyst"])
    expires: str = Field(
        default=DEFAULT_EXPIRY,
        max_length=40,
        description="When it ends: `90d`, `12h`, `2027-06-30` (the day it no longer works, in UTC),"
        " a time with its zone, or `never`.",
        examples=["90d"],
    )


class TokenView(BaseModel):
    """What is known of a token: everything but the token."""

    id: str = Field(description="Its public identity.", examples=["26bcc3a76961e9eb"])
    name: str = Field(description="Whose it is.", examples=["ana"])
    role: Role = Field(description="What the holder may do.", examples=["analyst"])
    state: str = Field(description="`live`, `expired` or `revoked`.", examples=["live"])
    made: str = Field(description="When it was made.", examples=["2026-11-16T09:00:00+00:00"])
    made_by: str = Field(description="By whom.", examples=["olga"])
    expires: str | None = Field(description="When it ends by itself; null for never.")
    revoked: str | None = Field(description="When it was revoked; null if it was not.")
    revoked_by: str | None = Field(description="By whom.")
    used: str | None = Field(description="When it was last used, to a minute; null if never.")


class MadeToken(TokenView):
    """A token that was just made."""

    secret: str = Field(
        description="The token. It is sent this once, and only its hash is stored.",
        examples=["tf_…"],
    )


@router.get(f"{API}/tokens", tags=["tokens"], response_model=Page[TokenView])
async def tokens(request: Request, paging: PageOption) -> Response:
    """Every token that was ever made, the oldest first."""
    services = services_of(request)
    records = await asyncio.to_thread(services.state.tokens)
    now = services.state.now()
    return slice_response("tokens", records, paging, lambda record: record.document(now))


@router.post(f"{API}/tokens", tags=["tokens"], response_model=MadeToken, status_code=201)
async def create_token(
    request: Request, body: Annotated[TokenRequest, body_of(TokenRequest)]
) -> Response:
    """Make a token. The answer has it this once; the ledger has an event that it was made."""
    services, actor = services_of(request), actor_of(request)

    def make() -> NewToken:
        state = services.state
        ends = expiry_of(body.expires, state.now())
        project = services.project()
        return make_token(project, state, body.name, body.role, ends, by=actor.name)

    token = await asyncio.to_thread(make)
    document = token.record.document(services.state.now()) | {"secret": token.secret}
    return json_response(document, 201)


@router.delete(f"{API}/tokens/{{token}}", tags=["tokens"], response_model=TokenView)
async def revoke_token(request: Request, token: TokenId) -> Response:
    """Revoke a token: it is refused from now on, and so are browsers that signed in with it."""
    services, actor = services_of(request), actor_of(request)

    def end() -> TokenRecord:
        if services.state.token(token) is None:
            raise Problem(404, "no-token", "there is no such token here", field="token")
        return end_token(services.project(), services.state, token, by=actor.name)

    ended = await asyncio.to_thread(end)
    return json_response(ended.document(services.state.now()))
