"""Pages of datasets: the list, and one with its guarantee, budget and declaration."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from takifugu.errors import TakifuguError
from takifugu.server.api import description_routes as api
from takifugu.server.api import owner_routes as owner
from takifugu.server.api.job_routes import finished, new_task, run_task
from takifugu.server.api.problems import Problem
from takifugu.server.api.requests import form_fields, validated
from takifugu.server.api.responses import MAX_PAGE_ITEMS, Paging
from takifugu.server.pages.page_rendering import document_of, moved, number, refused, shown, up
from takifugu.server.services import actor_of, services_of

MAX_LISTED_KEYS = 400  # keys that a page writes out
NO_BUDGET: Mapping[str, Any] = {
    "epsilon": None,
    "delta": "0",
    "spent": None,
    "left": None,
    "most": None,
    "history": [],
    "analysts": [],
}
WAITING = ("NotAccepted",)  # kinds of problems that an owner ends by deciding
router = APIRouter(include_in_schema=False)
CARD_SECONDS = 3.0  # seconds that the list waits for datasets that are not open yet
DONE = {
    "budget": "The budget is set.",
    "policy": "The policy is accepted.",
    "declaration": "The declaration is accepted.",
}


def dataset_view(document: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset: a line of words, facts, and its columns."""
    return {
        "name": document["dataset"],
        "words": _words(document),
        "facts": list(_facts(document).items()),
        "protected": [_protected(column, document["about"]) for column in document["protected"]],
        "public": [_public(column) for column in document["public"]],
        "asked": [
            column for column in document["protected"] if column["column"] in document["about"]
        ],
    }


def _words(document: Mapping[str, Any]) -> str:
    text = f"{document['rows']:,} rows"
    if document["entity"] and document["entities"] is not None:
        text += f" of {document['entities']:,} entities (“{document['entity']}”)"
    order = document["order"]
    if order is not None and order["first"] is not None:
        text += f", from {moment(order['first'])} to {moment(order['last'])}"
    title = document["title"]
    return f"{title}: {text}" if title and title != document["dataset"] else text


def _facts(document: Mapping[str, Any]) -> dict[str, str]:
    facts = {"rows": f"{document['rows']:,}"}
    if document["entity"]:
        facts["whose rows"] = f"those of each “{document['entity']}” belong together"
    if document["entities"] is not None:
        facts[f"number of “{document['entity']}”"] = f"{document['entities']:,}"
    if document["rows_of_an_entity"] is not None:
        facts["rows of each"] = f"up to {document['rows_of_an_entity']:,}"
    order = document["order"]
    if order is not None:
        zone = f" ({order['zone']})" if order.get("zone") else ""
        facts["order"] = f"by “{order['column']}”{zone}"
    if document["released_from"] is not None:
        facts["released from"] = f"{moment(document['released_from'])}: earlier rows made the prior"
    return facts


def moment(value: Any) -> str:
    """A day or a time in a few letters; a step as it is.

    >>> moment("2026-01-01T00:00:00+00:00"), moment("2026-01-01T10:30:00+00:00"), moment(3)
    ('2026-01-01', '2026-01-01 10:30', '3')
    """
    if not isinstance(value, str):
        return str(value)
    day, _, time = value.partition("T")
    return day if not time or time.startswith("00:00:00") else f"{day} {time[:5]}"


def _protected(column: Mapping[str, Any], about: Sequence[str]) -> dict[str, Any]:
    aside = "" if column["column"] in about else "; not asked about here: it is in no prior"
    if column["kind"] == "number":
        words = f"a number from {number(column['lower'])} to {number(column['upper'])}"
        words += f", in steps of {number(column['step'])}"
        return {"name": column["column"], "words": words + aside, "labels": ()}
    labels = column["labels"]
    return {
        "name": column["column"],
        "words": f"one of {len(labels):,} labels{aside}",
        "labels": labels[:MAX_LISTED_KEYS],
    }


def _public(column: Mapping[str, Any]) -> dict[str, Any]:
    keys = column["keys"]
    words = "one key" if len(keys) == 1 else f"one of {len(keys):,} keys"
    return {"name": column["column"], "words": words, "labels": keys[:MAX_LISTED_KEYS]}


def budget_view(document: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The budget of a dataset, with those of analysts; None stands for none."""
    budgets = [] if document is None else document["budgets"]
    whole = next((budget for budget in budgets if budget["analyst"] is None), None)
    if whole is None:
        return NO_BUDGET
    theirs = [budget for budget in budgets if budget["analyst"] is not None]
    return {**whole, "analysts": [b for b in theirs if b["epsilon"] is not None]}


def askers(analysts: Sequence[str], role: str) -> str:
    """Who may ask, in words; an analyst does not learn who else there is.

    >>> askers((), "analyst"), askers(("ana", "bo"), "analyst"), askers(("ana",), "owner")
    ('Any analyst may ask.', 'You are one of those who may ask.', 'Only ana may ask.')
    >>> askers(("ana", "bo", "cy", "di"), "owner")
    'Only ana, bo and 2 more may ask.'
    """
    if not analysts:
        return "Any analyst may ask."
    if role == "analyst":
        return "You are one of those who may ask."
    shown = list(analysts[:3])
    if len(analysts) > 3:
        shown = [*analysts[:2], f"{len(analysts) - 2} more"]
    words = " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    return f"Only {words} may ask."


def waiting_view(kind: str, role: str) -> dict[str, str]:
    """Why nobody can ask of a dataset now, for those who look at it.

    >>> waiting_view("NotAccepted", "analyst")["title"]
    'It waits for its owner'
    """
    if kind not in WAITING:
        raise ValueError(f"{kind!r} is no kind of waiting")
    why, then = "The policy of this dataset was changed", "an owner has yet to accept the change"
    title = "It waits for its owner"
    if role == "owner":
        title, then = "It waits for an owner", "its page has what is to be compared and accepted"
    words = f"{why}, and {then}. Until then nothing can be planned or released."
    return {"title": title, "words": f"{words} What was released before stays."}


def change_view(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What waits for the owner to accept it: another policy, another declaration."""
    kinds = (
        ("policy", "The policy is not the one that was accepted", "words"),
        ("declaration", "The declaration is not the one that was charged under", "changes"),
    )
    return [
        {
            "accept": kind,
            "title": title,
            "lines": document[kind][lines],
            "spent": _spent(document[kind]),
            "shown": document[kind]["shown"],
        }
        for kind, title, lines in kinds
        if document[kind]["needed"]
    ]


def _spent(change: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = (("spent until now", "spent_before"), ("spent once accepted", "spent_after"))
    return [(words, f"ε = {up(change[name])}") for words, name in pairs if change[name] is not None]


@router.get("/")
async def datasets_page(request: Request) -> Response:
    """The datasets, each with its budget as a gauge."""
    paging = Paging(limit=MAX_PAGE_ITEMS, cursor=request.query_params.get("cursor"))
    listed = document_of(await api.datasets(request, paging))
    policies = services_of(request).project().policy.datasets
    cards = await asyncio.gather(*(_card(request, item) for item in listed["items"]))
    for card in cards:
        card["askers"] = askers(policies[card["name"]].analysts, actor_of(request).role)
    after = f"/?cursor={listed['next']}" if listed["next"] else None
    return await shown(request, "datasets.html", "/", datasets=cards, after=after)


async def _card(request: Request, item: Mapping[str, Any]) -> dict[str, Any]:
    """A dataset of the list: in full if a worker can tell at once, else what the ledger has."""
    told = await asyncio.gather(
        *(_soon(request, task, item["name"]) for task in ("describe", "budget"))
    )
    (description, problem), (budget, _) = told
    waits = problem is not None and problem.kind in WAITING
    return {
        "name": item["name"],
        "words": dataset_view(description)["words"] if description else "",
        "budget": budget_view(budget) if budget else _stored_budget(item),
        "waits": waiting_view(problem.kind, actor_of(request).role) if problem and waits else None,
        "later": description is None and not waits,
    }


def _stored_budget(item: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger alone says of a budget: not what was spent."""
    return {**NO_BUDGET, **(item["budget"] or {})}


async def _soon(request: Request, task: str, dataset: str) -> tuple[Any, Problem | None]:
    """What a task says of a dataset, if it does so soon; None if not. Or why it cannot."""
    job = services_of(request).board.start(actor_of(request), new_task(request, task, dataset))
    try:
        return (job.result if await finished(job, CARD_SECONDS) else None), None
    except Problem as problem:  # the page of the dataset says what is wrong with it
        return None, problem


@router.get("/datasets/{dataset}")
async def dataset_page(request: Request, dataset: str) -> Response:
    """One dataset."""
    return await show_dataset(request, dataset)


async def show_dataset(
    request: Request,
    dataset: str,
    *,
    error: Exception | None = None,
    given: Mapping[str, str] | None = None,
) -> Response:
    """The page of a dataset, with what went wrong in a form of it."""
    status, trouble = refused(request, error)
    if error is not None and status == 404:
        raise error
    common: dict[str, Any] = {
        "trouble": trouble,
        "done": DONE.get(request.query_params.get("done", "")),
        "given": {"epsilon": "", "delta": "", "analyst": "", **(given or {})},
        "status": status,
    }
    try:
        described, guaranteed, budget = await asyncio.gather(
            _document(api.dataset(request, dataset)),
            _document(api.guarantee(request, dataset)),
            budget_of(request, dataset),
        )
    except Problem as problem:
        if problem.kind not in WAITING:
            raise
        return await _show_waiting(request, dataset, problem.kind, common)
    return await shown(
        *(request, "dataset.html", "/"),
        **common,
        dataset=dataset_view(described),
        guarantee=guaranteed["guarantee"],
        budget=budget,
        change=await _change(request, dataset),
    )


async def _change(request: Request, dataset: str) -> list[dict[str, Any]] | None:
    """What there is to accept; None for those who accept nothing."""
    if actor_of(request).role != "owner":
        return None
    return change_view(document_of(await owner.policy_change(request, dataset)))


async def _show_waiting(
    request: Request, dataset: str, kind: str, common: Mapping[str, Any]
) -> Response:
    """The page of a dataset that nobody can ask until an owner has decided: why, and the forms."""
    budgets = await api.set_budgets(services_of(request))
    return await shown(
        *(request, "dataset_waiting.html", "/"),
        **common,
        dataset={"name": dataset},
        waits=waiting_view(kind, actor_of(request).role),
        budget=_stored_budget({"budget": budgets.get((dataset, None))}),
        change=await _change(request, dataset),
    )


async def _document(answering: Any) -> Any:
    return document_of(await answering)


async def budget_of(request: Request, dataset: str) -> Mapping[str, Any]:
    """The budget of a dataset as pages show it; also if there is none."""
    try:
        return budget_view(document_of(await api.budget(request, dataset)))
    except Problem as problem:
        if problem.kind != "NoBudget":
            raise
        return budget_view(None)


@router.get("/datasets/{dataset}/budget.svg")
async def budget_picture(request: Request, dataset: str) -> Response:
    """The history of the budget as a picture."""
    respond = partial(Response, media_type="image/svg+xml")
    return await run_task(request, "budget-figure", dataset, respond)


@router.post("/datasets/{dataset}/budget")
async def budget_form(request: Request, dataset: str) -> Response:
    """Set a budget."""
    form = await form_fields(request)
    given = {name: form.get(name, "").strip() for name in ("epsilon", "delta", "analyst")}
    sent = {name: value for name, value in given.items() if value or name == "epsilon"}
    try:
        await owner.set_budget(request, dataset, validated(owner.NewBudget, sent))
    except (Problem, TakifuguError) as error:
        return await show_dataset(request, dataset, error=error, given=given)
    return moved(address_of(dataset), done="budget")


@router.post("/datasets/{dataset}/policy-change")
async def policy_change_form(request: Request, dataset: str) -> Response:
    """Accept a policy or a declaration that changed, as it was shown."""
    form = await form_fields(request)
    given = {name: form.get(name, "") for name in ("accept", "shown")}
    try:
        body = validated(owner.Acceptance, given)
        document_of(await owner.accept_policy_change(request, dataset, body))
    except (Problem, TakifuguError) as error:
        return await show_dataset(request, dataset, error=error)
    return moved(address_of(dataset), done=given["accept"])


def address_of(dataset: str) -> str:
    """The address of the page of a dataset."""
    return f"/datasets/{quote(dataset, safe='')}"
