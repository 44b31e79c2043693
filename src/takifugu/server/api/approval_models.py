"""Requests for approval, as the OpenAPI document describes them."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from takifugu.server.api.bodies import RequestBody

STATES = Literal["pending", "approved", "refused", "withdrawn", "released", "failed"]


class ApprovalView(BaseModel):
    """A request for approval, and its outcome."""

    id: int = Field(description="Its number.", examples=[3])
    state: STATES = Field(
        description="`pending`; then `approved`, `refused` or `withdrawn`; an approved one becomes"
        " `released` or `failed` by itself."
    )
    dataset: str = Field(description="The dataset.", examples=["stays"])
    analyst: str = Field(description="Who asks.", examples=["ana"])
    words: str = Field(description="The query in words.", examples=["histogram of state by zone"])
    epsilon: str = Field(
        description="The Pufferfish ε that it costs alone, rounded up.", examples=["0.5"]
    )
    why: str = Field(description="Why it needs an owner.")
    query: dict[str, Any] | None = Field(description="The query, as it was asked.")
    accept_noise: bool = Field(description="Whether an answer that is mostly noise is wanted.")
    plan: dict[str, Any] = Field(
        description="Cost, expected error and budget, as the analyst saw them when they asked."
    )
    asked: str = Field(description="When it was asked.", examples=["2026-11-16T10:00:00+00:00"])
    decided: str | None = Field(description="When it was decided or withdrawn.")
    decided_by: str | None = Field(description="By whom.", examples=["olga"])
    note: str = Field(description="What they wrote about it.")
    event: int | None = Field(description="The event of the ledger with the decision.")
    charge: int | None = Field(description="The event of the ledger that paid for the release.")
    result: str | None = Field(description="Where its result is, once it is released.")
    problem: dict[str, Any] | None = Field(
        description="Why the approved release failed: a problem document."
    )


class ApprovalNow(ApprovalView):
    """A request with what it would cost now, for the owner who decides."""

    now: dict[str, Any] | None = Field(
        default=None,
        description="For an owner, while it is pending: the `plan` as it is now, `same` (whether"
        " the request is still about the same rows and data; otherwise an approval would be void),"
        " and the `guarantee`; or the `problem` that makes it impossible.",
    )


class NewDecision(RequestBody):
    """A decision on a request."""

    decision: Literal["approved", "refused"] = Field(description="What is decided.")
    note: str = Field(
        default="",
        max_length=2000,
        description="For the analyst to read.",
        examples=["agreed with the ward"],
    )


class WaitingRelease(BaseModel):
    """A release that waits for an owner, or was approved and is released now."""

    kind: Literal["approval"] = "approval"
    approval: ApprovalView
