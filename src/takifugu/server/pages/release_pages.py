"""Pages of releases, of requests for approval, of the ledger, and of reports."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from takifugu.errors import TakifuguError
from takifugu.server.access_rules import API
from takifugu.server.api import approval_routes, ledger_routes, release_routes
from takifugu.server.api.approval_routes import NewDecision
from takifugu.server.api.job_routes import run_task
from takifugu.server.api.problems import Problem
from takifugu.server.api.requests import form_fields, validated
from takifugu.server.api.responses import Paging
from takifugu.server.pages.page_rendering import document_of, moved, refused, sentence, shown, up
from takifugu.server.services import actor_of, services_of
from takifugu.session.query_kinds import is_ranking

router = APIRouter(include_in_schema=False)
PAGE_ITEMS = 50
MAX_TABLE_ROWS = 500  # of a table in a page; the downloads have them all
NUMBERS = ("estimate", "low", "high", "place", "probability")
MAX_SHOWN_REQUESTS = 20  # requests that a page shows at once; the oldest come first
TONES = {"released": "good", "approved": "warn", "withdrawn": ""}
DONE = {
    "approved": "Approved: it is being released under the analyst’s name.",
    "refused": "Refused: nothing was charged.",
    "withdrawn": "Withdrawn: nothing was charged.",
    "asked": "Your release waits for an owner. Nothing was charged yet.",
}
KINDS = (
    *("charge", "reuse", "answer", "budget", "approval", "access"),
    *("policy", "accepted", "partition", "cells", "source", "separate", "state", "loss"),
)


def _number(text: str) -> int:
    """A number in an address; 0, which names nothing, for anything else."""
    return int(text) if text.isdecimal() and len(text) < 16 else 0


@router.get("/releases")
async def releases_page(request: Request) -> Response:
    """The releases that the viewer may see, the latest first."""
    query = request.query_params
    dataset, cursor = query.get("dataset") or None, query.get("cursor") or None
    listed = document_of(
        await release_routes.releases(request, Paging(limit=PAGE_ITEMS, cursor=cursor), dataset)
    )
    filters = {"dataset": dataset} if dataset else {}
    return await shown(
        *(request, "releases.html", "/releases"),
        releases=[{**release, "loss": loss_words(release["loss"])} for release in listed["items"]],
        dataset=dataset,
        running=query.get("running") == "yes",
        **_neighbours("/releases", filters, cursor, listed["next"]),
    )


def _neighbours(
    path: str, filters: Mapping[str, str], cursor: str | None, following: str | None
) -> dict[str, Any]:
    """Where the first page of a list is, unless this is it, and the next one."""
    first = f"{path}?{urlencode(filters)}" if filters else path
    after = f"{path}?{urlencode({**filters, 'cursor': following})}" if following else None
    return {"first": first if cursor else None, "after": after}


def loss_words(loss: Mapping[str, Any]) -> str:
    """What each row loses, in a few letters.

    >>> loss_words({"currency": "epsilon", "epsilon": "1/3"})
    'ε = 0.3334 per entry'
    """
    names = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    parts = [f"{names[name]} = {up(loss[name])}" for name in names if loss.get(name)]
    return f"{', '.join(parts)} per entry" if parts else "by value"


@router.get("/releases/{charge}")
async def release_page(request: Request, charge: str) -> Response:
    """One result; or what the ledger has of a release whose result is not kept here."""
    number = _number(charge)
    if number < 1:
        raise release_routes.no_release()
    try:
        stored = await release_routes.kept_result(services_of(request), actor_of(request), number)
    except Problem:
        known = document_of(await release_routes.release(request, number))
        return await shown(request, "release_unkept.html", "/releases", release=known)
    document = dict(stored.document)
    words = document_of(await run_task(request, "result-words", None, document=document))
    result = result_view(stored.document, words)
    return await shown(request, "release.html", "/releases", charge=number, result=result)


def result_view(document: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    """A result as a page shows it; ``words`` are those of the task ``result-words``."""
    query = document["query"]
    columns = document["columns"]
    return {
        "title": words["title"],
        "asked": words["facts"]["query"],
        "dataset": document["dataset"],
        "at": document["at"],
        "caption": f"{words['facts']['expected error']}; low and high are 95 % intervals"
        if columns[-1] == "high"
        else words["facts"]["expected error"],
        "alt": _alt(document, query, words["title"]),
        "columns": [
            {"name": name, "number": _is_number(document["rows"], index)}
            for index, name in enumerate(columns)
        ],
        "rows": document["rows"][:MAX_TABLE_ROWS],
        "more": max(len(document["rows"]) - MAX_TABLE_ROWS, 0),
        "facts": [pair for pair in words["facts"].items() if pair[0] != "guarantee"],
        "guarantee": document["guarantee"],
    }


def _is_number(rows: list[list[Any]], index: int) -> bool:
    known = [row[index] for row in rows if row[index] is not None]
    return bool(known) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def _alt(document: Mapping[str, Any], query: Mapping[str, Any], title: str) -> str:
    rows, by = len(document["rows"]), query["by"]
    groups = f", for each {' and '.join(by)}" if by else ""
    kind = "A ranking" if is_ranking(query["name"]) else "Points with intervals"
    return f"{kind}: {rows:,} lines of {title}{groups}. The table has them."


@router.get("/approvals")
async def approvals_page(request: Request) -> Response:
    """The requests that the viewer may see."""
    return await _show_approvals(request)


@router.post("/approvals/{request}")
async def decide_form(http: Request, request: str) -> Response:
    """Approve or refuse a request."""
    form = await form_fields(http)
    number = _number(request)
    given = {"decision": form.get("decision", ""), "note": form.get("note", "").strip()}
    try:
        await approval_routes.decide_approval(http, number, validated(NewDecision, given))
    except (Problem, TakifuguError) as error:
        return await _show_approvals(http, error=error)
    return moved("/approvals", done=given["decision"])


@router.post("/approvals/{request}/withdrawal")
async def withdraw_form(http: Request, request: str) -> Response:
    """Withdraw a request of one's own."""
    await form_fields(http)
    number = _number(request)
    try:
        await approval_routes.withdraw_approval(http, number)
    except (Problem, TakifuguError) as error:
        return await _show_approvals(http, error=error)
    return moved("/approvals", done="withdrawn")


async def _show_approvals(http: Request, error: Exception | None = None) -> Response:
    actor, query = actor_of(http), http.query_params
    cursor = query.get("cursor") or None
    status, trouble = refused(http, error)
    paging = Paging(limit=200, cursor=None)
    pending = document_of(await approval_routes.list_approvals(http, paging, "pending"))["items"][
        ::-1
    ]
    listed = document_of(
        await approval_routes.list_approvals(http, Paging(limit=PAGE_ITEMS, cursor=cursor))
    )
    if actor.role == "owner":
        details = (
            approval_routes.show_approval(http, approval["id"])
            for approval in pending[:MAX_SHOWN_REQUESTS]
        )
        pending = [document_of(answer) for answer in await asyncio.gather(*details)]
    return await shown(
        *(http, "approvals.html", "/approvals"),
        status=status,
        waiting=[_waiting(approval) for approval in pending[:MAX_SHOWN_REQUESTS]],
        decided=[
            _decided(approval) for approval in listed["items"] if approval["state"] != "pending"
        ],
        moving=bool(pending)
        or any(approval["state"] == "approved" for approval in listed["items"]),
        trouble=trouble,
        done=DONE.get(query.get("done", "")),
        **_neighbours("/approvals", {}, cursor, listed["next"]),
    )


def _waiting(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request that waits, with what it would cost now where that is known."""
    now = request.get("now") or {}
    plan = now.get("plan") or request["plan"] or {}
    warning = ""
    if now.get("problem"):
        warning = f"It cannot be released now: {sentence(now['problem']['detail'])}"
    elif now.get("same") is False:
        warning = "The data or the policy changed since it was asked: an approval would be void."
    return {
        **request,
        "why": sentence(request["why"]),
        "price": plan.get("price"),
        "useful": (plan.get("usefulness") or {}).get("words"),
        "warning": warning,
    }


def _decided(request: Mapping[str, Any]) -> dict[str, Any]:
    problem = request["problem"]
    note = request["note"] if problem is None else sentence(problem["detail"])
    return {**request, "note": note, "tone": TONES.get(request["state"], "bad")}


@router.get("/ledger")
async def ledger_page(request: Request) -> Response:
    """The head, and the events in words."""
    return await _show_ledger(request)


@router.post("/ledger")
async def verify_form(request: Request) -> Response:
    """Verify the ledger, and say what was found."""
    verification = document_of(await ledger_routes.verify_ledger(request))
    return await _show_ledger(request, verified=_verified(verification))


async def _show_ledger(request: Request, verified: Mapping[str, Any] | None = None) -> Response:
    query = request.query_params
    chosen = {name: query.get(name, "") for name in ("kind", "dataset")}
    filters = {name: value for name, value in chosen.items() if value}
    cursor = query.get("cursor") or None
    ledger = document_of(await ledger_routes.ledger(request))
    events = document_of(
        await ledger_routes.ledger_events(
            *(request, Paging(limit=PAGE_ITEMS, cursor=cursor)),
            kind=chosen["kind"] or None,
            dataset=chosen["dataset"] or None,
            order="newest",
        )
    )
    datasets = list(services_of(request).project().policy.datasets)
    return await shown(
        *(request, "ledger.html", "/ledger"),
        trouble=None,
        verified=verified,
        head=ledger["head"],
        events=events["items"],
        kinds=KINDS,
        datasets=datasets,
        chosen=chosen,
        **_neighbours("/ledger", filters, cursor, events["next"]),
    )


def _verified(verification: Mapping[str, Any]) -> dict[str, Any]:
    """What a verification found, in words."""
    head, witness = verification["head"], verification["witness"]
    lines = [
        f"{verification['events']:,} events; the head is event {head['seq']}, {head['hash'][:12]}…"
    ]
    if witness["noted"] is not None:
        lines.append(f"The witness has seen event {witness['noted']['seq']}.")
    elif witness["kept"]:
        lines.append("The witness has seen nothing yet.")
    else:
        lines.append("There is no witness: a ledger that was put back as a whole looks sound.")
    if verification["sound"]:
        return {"sound": True, "title": "The ledger is sound.", "lines": lines}
    lines += [sentence(problem["message"]) for problem in verification["problems"]]
    return {"sound": False, "title": "The ledger is not sound.", "lines": lines}


@router.get("/reports")
async def reports_page(request: Request) -> Response:
    """The reports, to view and to download."""
    services = services_of(request)
    names = list(services.project().policy.datasets)
    signed = services.settings.signing_key is not None
    reports = [_report("All datasets", "What was released of every dataset.", "", signed)]
    if len(names) > 1:
        reports += [
            _report(name, f"What was released of “{name}” alone.", name, signed) for name in names
        ]
    return await shown(
        request, "reports.html", "/reports", reports=reports, signed=signed, trouble=None
    )


def _report(title: str, words: str, dataset: str, signed: bool) -> dict[str, Any]:
    files = [("View", "report.html"), ("HTML", "report.html"), ("PDF", "report.pdf")]
    if signed:
        files.append(("Signature of the HTML", "report.html.sig"))
        files.append(("Signature of the PDF", "report.pdf.sig"))

    def link(text: str, name: str) -> dict[str, Any]:
        query = {"dataset": dataset} if dataset else {}
        if text != "View":
            query["download"] = "true"
        address = f"{API}/reports/{name}" + (f"?{urlencode(query)}" if query else "")
        return {"title": text, "href": address, "download": None if text == "View" else name}

    return {"title": title, "words": words, "files": [link(*file) for file in files]}
