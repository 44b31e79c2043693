"""The page that asks: a form, its price, and the release.

With scripts the price is shown while one types, and the release goes through the API. Without them
the form is sent as an address to see the price, and a second form releases what was priced.
"""

import asyncio
import json
import re
import secrets
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Literal

from fastapi import APIRouter, Request, Response

from takifugu.errors import TakifuguError
from takifugu.server.api import description_routes, query_routes
from takifugu.server.api.problems import Problem
from takifugu.server.api.query_routes import PlanRequest, ReleaseRequest
from takifugu.server.api.requests import form_fields, read_json, validated
from takifugu.server.pages.dataset_pages import WAITING, address_of, budget_of, dataset_view, moment
from takifugu.server.pages.page_rendering import (
    StillRunning,
    document_of,
    moved,
    refused,
    sentence,
    shown,
)
from takifugu.session.query_kinds import KINDS
from takifugu.session.query_options import OPTIONS, OptionType

As = Literal["text", "real", "whole", "list", "lines", "flag", "counts"]
READ_AS: Mapping[OptionType, As] = {
    "column": "text",
    "columns": "list",
    "amount": "text",
    "real": "real",
    "whole": "whole",
    "labels": "list",
    "counts": "counts",
    "text": "text",
    "flag": "flag",
}  # the types of options that have a field of the form
WHOLE = re.compile(r"[+-]?[0-9]{1,15}")
REAL = re.compile(r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
MAX_CHECKBOXES = 60  # labels that are boxes to check; more are written, one on a line
router = APIRouter(include_in_schema=False)
NOTHING: Mapping[str, Any] = defaultdict(str)  # the words of no plan
EMPTY = "Fill in the form to see what it costs."


@dataclass(frozen=True)
class FormField:
    """An option of some kinds of query, as a form shows it.

    Attributes:
        option: Its name.
        label: What people call it.
        hint: What to write.
        read_as: How what is written is read.
        choices: What there is to choose from; empty if it is written.
        kinds: The kinds of query that have it.
        required: Those that need it.
    """

    option: str
    label: str
    hint: str
    read_as: As
    choices: tuple[str, ...]
    kinds: tuple[str, ...]
    required: tuple[str, ...]


@dataclass(frozen=True)
class KindChoice:
    """A kind of query that a dataset answers.

    Attributes:
        name: Its name in the API.
        title: What people call it.
        words: What it answers.
        several: Whether it may be about several columns.
        ranking: Whether its error is a confidence, and not a distance.
    """

    name: str
    title: str
    words: str
    several: bool
    ranking: bool


def kinds_of(description: Mapping[str, Any]) -> tuple[KindChoice, ...]:
    """The kinds of query that the columns of a dataset have answers for.

    Which kinds a prior serves is for the plan to say, with the reason.
    """
    asked = [
        column for column in description["protected"] if column["column"] in description["about"]
    ]
    labels = sum(column["kind"] == "label" for column in asked)
    numbers = len(asked) - labels
    choices = []
    for kind in description["queries"]:
        name = kind["kind"]
        columns = numbers if KINDS[name].of_numbers else labels
        if columns < KINDS[name].least_columns or (name == "linear" and not description["linear"]):
            continue
        title, answers = KINDS[name].title, KINDS[name].answers
        ranking = KINDS[name].ranks
        choices.append(KindChoice(name, title, answers, bool(kind["several"]), ranking))
    return tuple(choices)


def fields_of(description: Mapping[str, Any]) -> tuple[FormField, ...]:
    """The fields for options that only some kinds have, each once."""
    shown = {kind.name for kind in kinds_of(description)}
    kinds = [kind for kind in description["queries"] if kind["kind"] in shown]
    names = dict.fromkeys(
        name
        for kind in kinds
        for name in (*kind["required"], *kind["optional"])
        if OPTIONS[name].label
    )
    return tuple(_field(name, kinds, description) for name in names)


def _field(name: str, kinds: Iterable[Any], description: Mapping[str, Any]) -> FormField:
    option = OPTIONS[name]
    hint, read_as, choices = option.hint or option.help, READ_AS[option.type], tuple[str, ...]()
    if option.type == "labels":
        labels = _labels(description)
        choices = labels if len(labels) <= MAX_CHECKBOXES else ()
        if not choices:
            read_as, hint = "lines", f"{hint} One on a line."
    if name == "query":
        choices = tuple(map(str, description["linear"]))
    return FormField(
        name,
        option.label,
        hint,
        read_as,
        choices,
        tuple(kind["kind"] for kind in kinds if name in (*kind["required"], *kind["optional"])),
        tuple(kind["kind"] for kind in kinds if name in kind["required"]),
    )


def _labels(description: Mapping[str, Any]) -> tuple[str, ...]:
    """The labels to choose from; none where there are several columns of them."""
    columns = [
        column["labels"]
        for column in description["protected"]
        if column["kind"] == "label" and column["column"] in description["about"]
    ]
    return tuple(map(str, columns[0])) if len(columns) == 1 else ()


def filled_in(form: Sequence[tuple[str, str]], fields: Sequence[FormField]) -> dict[str, Any]:
    """What a form was filled in with, as a document of query options.

    A field that is empty is not given. What is no number is passed on as it is: whoever reads the
    options refuses it by name.
    """
    read_as: dict[str, As] = {"columns": "list"}  # boxes to check, where there are several
    read_as |= {n: READ_AS[option.type] for n, option in OPTIONS.items() if option.type in READ_AS}
    read_as |= {field.option: field.read_as for field in fields}
    answers: dict[str, list[str]] = {}
    for name, value in form:
        if value.strip():
            answers.setdefault(name, []).append(value.strip())
    kind = answers.get("kind", [""])[0]
    other = {field.option for field in fields if kind not in field.kinds}
    left_out = ("within", "confidence") if answers.get("aim") != ["error"] else ("epsilon",)
    document: dict[str, Any] = {"kind": kind}
    for option, way in read_as.items():
        if option in answers and option not in other and option not in left_out:
            document["column" if option == "columns" else option] = _read(way, answers[option])
    where = {
        name.removeprefix("where:"): keys
        for name, keys in answers.items()
        if name.startswith("where:")
    }
    if where:
        document["where"] = where
    if "from" in answers or "to" in answers:
        document["window"] = [answers.get(end, [None])[0] for end in ("from", "to")]
    return document


def _read(way: As, given: list[str]) -> Any:
    match way:
        case "list":
            return given
        case "lines":
            return [line.strip() for line in given[0].splitlines() if line.strip()]
        case "flag":
            return True
        case "counts":
            rows = [
                [_number(number, float) for number in line.replace(",", " ").split()]
                for line in given[0].splitlines()
            ]
            return rows[0] if len(rows) == 1 else rows
        case "real":
            return _number(given[0], float)
        case "whole":
            return _number(given[0], int)
        case _:
            return given[0]


def _number(text: str, kind: type[int] | type[float]) -> Any:
    """A number as people write it; any other text as it is."""
    form = WHOLE if kind is int else REAL
    value = kind(text) if form.fullmatch(text) and len(text) < 40 else inf
    return value if isfinite(value) else text


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
        document = document_of(answer)
    except StillRunning:
        return moved("/releases", running="yes")
    except (Problem, TakifuguError) as error:
        return await _form(request, dataset, json_pairs(form.get("asked", "")), error=error)
    charge = document.get("charge")
    return moved("/approvals", done="asked") if charge is None else moved(f"/releases/{charge}")


async def _form(
    request: Request,
    dataset: str,
    filled: Sequence[tuple[str, str]],
    *,
    error: Exception | None = None,
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
    state, spoken, words, approval, digest = "empty", EMPTY, NOTHING, "", ""
    options: dict[str, Any] = {}
    if given["plan"]:
        options = filled_in([*filled, ("kind", chosen.name)], fields)
        try:
            body = PlanRequest(query=options)
            planned = document_of(await query_routes.plan(request, dataset, body))
            words, approval = planned["words"], sentence(planned["approval"] or "")
            digest = planned["plan"]["digest"]
            state = "over" if words["over"] else "noise" if words["confirm"] else "ready"
            spoken = _said(planned["plan"]["stored"], words)
        except (Problem, TakifuguError) as why:
            _, trouble = refused(request, why)
            state, spoken = "refused", f"Refused: {trouble['detail'] if trouble else ''}"
    shown_dataset = dataset_view(description)
    return await shown(
        *(request, "ask.html", "/"),
        status=409 if error else 200,
        dataset=shown_dataset,
        columns=[column["column"] for column in shown_dataset["asked"]],
        kinds=kinds,
        chosen=chosen,
        fields=fields,
        given=given,
        aim="error" if given["aim"] == ["error"] else "epsilon",
        narrowed=any(name.startswith("where:") for name in given),
        rows_hint=_rows_hint(description),
        bound_type=_bound_type(description),
        budget=budget,
        trouble=refused(request, error)[1],
        state=state,
        said=spoken,
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
