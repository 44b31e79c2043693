"""The page that asks: a form, its price, and the release.

With scripts the price is shown while one types, and the release goes through the API. Without them
the form is sent as an address to see the price, and a second form releases what was priced.
"""

import asyncio
import json
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from takifugu.errors import TakifuguError
from takifugu.server.api import description_routes, query_routes
from takifugu.server.api.bodies import form_fields, validated
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.api.query_models import PlanRequest, ReleaseRequest
from takifugu.server.api.strict_json import read_json
from takifugu.server.pages.ask_form import fields_of, filled_in, kinds_of
from takifugu.server.pages.dataset_pages import address_of, budget_of
from takifugu.server.pages.dataset_views import WAITING, dataset_view, moment
from takifugu.server.pages.page_responses import (
    StillRunning,
    document_of,
    moved,
    sentence,
    shown,
    trouble_of,
)
from takifugu.server.services import actor_of

router = APIRouter(include_in_schema=False)
NOTHING: Mapping[str, Any] = defaultdict(str)  # the words of no plan
EMPTY = "Fill in the form to see what it costs."


@router.get("/datasets/{dataset}/ask")
async def ask_page(request: Request, dataset: str) -> Response:
    """The form; with the price of what is filled in, if that is asked for."""
    try:
        return await _form(request, dataset, list(request.query_params.multi_items()))
    except Problem as problem:
        if problem.kind not in WAITING:
            raise
        return moved(address_of(dataset))  # whose page says what it waits for


@router.post("/datasets/{dataset}/ask")
async def ask_form_sent(request: Request, dataset: str) -> Response:
    """Release what was priced: for browsers without scripts."""
    form = await form_fields(request)
    try:
        options = read_json(form.get("options", "").encode())
        sent = {"query": options, "accept_noise": form.get("accept_noise") == "yes"}
        body = validated(ReleaseRequest, {**sent, "plan": form.get("plan")})
        answer = await query_routes.release_query(request, dataset, body, form.get("key"))
        found = document_of(answer)
    except StillRunning:
        return moved("/releases", running="yes")
    except (Problem, TakifuguError) as error:
        trouble = trouble_of(problem_of(error, actor_of(request).role))
        asked = form.get("asked", "")
        return await _form(request, dataset, json_pairs(asked), trouble=trouble, status=409)
    charge = found.get("charge")
    return moved("/approvals", done="asked") if charge is None else moved(f"/releases/{charge}")


async def _form(
    request: Request,
    dataset: str,
    filled: Sequence[tuple[str, str]],
    *,
    trouble: Mapping[str, str] | None = None,
    status: int = 200,
) -> Response:
    answer, budget = await asyncio.gather(
        description_routes.dataset(request, dataset), budget_of(request, dataset)
    )
    description = document_of(answer)
    kinds, fields = kinds_of(description), fields_of(description)
    given: dict[str, list[str]] = defaultdict(list)
    for name, value in filled:
        given[name].append(value)
    chosen = next((kind for kind in kinds if [kind.name] == given["kind"]), kinds[0])
    state, said, words, approval, digest = "empty", EMPTY, NOTHING, "", ""
    options: dict[str, Any] = {}
    if given["plan"]:
        options = filled_in([*filled, ("kind", chosen.name)], fields)
        try:
            body = PlanRequest(query=options)
            found = document_of(await query_routes.plan(request, dataset, body))
            words, approval = found["words"], sentence(found["approval"] or "")
            digest = found["plan"]["digest"]
            state = "over" if words["over"] else "noise" if words["confirm"] else "ready"
            said = _said(found["plan"]["stored"], words)
        except (Problem, TakifuguError) as error:
            problem = problem_of(error, actor_of(request).role)
            state, said = "refused", f"Refused: {sentence(problem['detail'])}"
    shown_dataset = dataset_view(description)
    return await shown(
        *(request, "ask.html", "/"),
        status=status,
        dataset=shown_dataset,
        columns=[one["column"] for one in shown_dataset["asked"]],
        kinds=kinds,
        chosen=chosen,
        fields=fields,
        given=given,
        aim="error" if given["aim"] == ["error"] else "epsilon",
        narrowed=any(name.startswith("where:") for name in given),
        rows_hint=_rows_hint(description),
        bound_type=_bound_type(description),
        budget=budget,
        trouble=trouble,
        state=state,
        said=said,
        words=words,
        approval=approval,
        digest=digest,
        key=secrets.token_hex(16),
        options=json.dumps(options),
        asked=json.dumps([pair for pair in filled if pair[0] != "csrf"]),
    )


def json_pairs(text: str) -> list[tuple[str, str]]:
    """Names and values that a form was filled in with, from its hidden field."""
    try:
        pairs = json.loads(text)
        return [(str(name), str(value)) for name, value in pairs]
    except (ValueError, TypeError, RecursionError):
        return []


def _rows_hint(description: Mapping[str, Any]) -> str:
    order = description["order"]
    if order is None:
        return "The rows have no order."
    first, last = moment(order["first"]), moment(order["last"])
    text = f"By “{order['column']}”, from {first} to {last}."
    start = description["released_from"]
    if start is not None:
        text += f" Without a start, from {moment(start)}: earlier rows made the prior."
    return text


def _bound_type(description: Mapping[str, Any]) -> str:
    """How a bound of the window is typed: as a day, or as text where it is something else."""
    order = description["order"]
    days = order is not None and order["kind"] == "time" and _midnight(order["first"])
    return "date" if days else "text"


def _midnight(value: Any) -> bool:
    return isinstance(value, str) and value.partition("T")[2][:8] in ("", "00:00:00")


def _said(stored: bool, words: Mapping[str, Any]) -> str:
    """What a plan costs, in a line that is read out."""
    if stored:
        return f"Free; {words['verdict']}."
    if words["over"]:
        return f"Costs {words['cost']} alone: more than the budget admits."
    return f"Costs {words['cost']} alone, adds {words['adds']}; {words['verdict']}."
