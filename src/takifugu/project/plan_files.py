"""Plan files: a plan that is released later, perhaps by somebody else.

A plan file is never trusted: its options are planned anew, and must come to the same price.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from takifugu.errors import InvalidFile
from takifugu.priors.documents import read_json
from takifugu.session.query_options import QueryOptions
from takifugu.session.release_plan import Plan

PLAN_FORM = "takifugu-plan-1"
SAME_PLAN_PARTS = (
    "dataset",
    "query",
    "window",
    "groups",
    "mechanism",
    "cells",
)  # must not differ in a plan
SAME_COST_PARTS = ("currency", "per_entry", "delta", "by_value")  # nor in its cost: the rest moves


@dataclass(frozen=True)
class PlanFile:
    """What a plan file holds.

    Attributes:
        dataset: The dataset of the project.
        options: The options of the query; a key of a column may be given as text.
        analyst: Who asks.
        document: The plan as the file has it.
    """

    dataset: str
    options: QueryOptions
    analyst: str | None = None
    document: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def differences(self, made: Plan) -> tuple[str, ...]:
        """The parts in which the file is not the plan that was made from its options now."""
        now, cost = made.describe(), self.document.get("cost")
        then = cost if isinstance(cost, dict) else {}
        parts = [key for key in SAME_PLAN_PARTS if self.document.get(key) != now[key]]
        return (*parts, *(key for key in SAME_COST_PARTS if then.get(key) != now["cost"][key]))


def plan_document(dataset: str, analyst: str | None, plan: Plan, guarantee: str) -> dict[str, Any]:
    """A plan as JSON, ready to be released from later."""
    options = plan.options.document()
    query = {"dataset": dataset, "kind": options.pop("kind"), "analyst": analyst, "how": options}
    return {"form": PLAN_FORM, "asked": query, **plan.describe(), "guarantee": guarantee}


def read_plan(path: Path) -> PlanFile:
    """What a plan file holds."""
    document = read_json(path, needed="be a plan: `takifugu plan … --out FILE` writes one")
    if not isinstance(document, dict) or document.get("form") != PLAN_FORM:
        raise InvalidFile(
            str(path),
            given="is not a plan",
            needed="be one: `takifugu plan … --out FILE` writes it",
            reason="not-a-plan",
        )
    try:
        query = document["asked"]
        dataset, kind, analyst, how = (query[key] for key in ("dataset", "kind", "analyst", "how"))
        if not (isinstance(dataset, str) and isinstance(kind, str) and isinstance(how, dict)):
            raise TypeError
        if not isinstance(analyst, str | None) or "kind" in how:
            raise TypeError
    except (KeyError, TypeError):
        raise InvalidFile(
            str(path),
            given="was changed",
            needed="be as `takifugu plan` wrote it",
            reason="changed",
        ) from None
    return PlanFile(dataset, QueryOptions.from_document({"kind": kind} | how), analyst, document)
