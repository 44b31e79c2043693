"""Pages of releases: the list, and one result with its plot, table and provenance."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from takifugu.server.api import release_routes as api
from takifugu.server.api.pagination import Paging
from takifugu.server.api.problems import Problem
from takifugu.server.api.running import new_task, run_as_job
from takifugu.server.pages.page_responses import document_of, shown
from takifugu.server.pages.page_templates import up
from takifugu.server.services import actor_of, services_of

router = APIRouter(include_in_schema=False)
A_PAGE = 50
MOST_ROWS = 500  # of a table in a page; the downloads have them all
NUMBERS = ("estimate", "low", "high", "place", "probability")


@router.get("/releases")
async def releases_page(request: Request) -> Response:
    """The releases that the viewer may see, the latest first."""
    query = request.query_params
    dataset, cursor = query.get("dataset") or None, query.get("cursor") or None
    found = document_of(await api.releases(request, Paging(limit=A_PAGE, cursor=cursor), dataset))
    kept = {"dataset": dataset} if dataset else {}
    following = {**kept, "cursor": found["next"]} if found["next"] else None
    return await shown(
        *(request, "releases.html", "/releases"),
        releases=[{**one, "loss": loss_words(one["loss"])} for one in found["items"]],
        dataset=dataset,
        running=query.get("running") == "yes",
        first=_address(kept) if cursor else None,
        after=_address(following) if following else None,
    )


def _address(query: Mapping[str, str]) -> str:
    return f"/releases?{urlencode(query)}" if query else "/releases"


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
    number = int(charge) if charge.isdecimal() and len(charge) < 16 else 0
    if number < 1:
        raise api.no_release()
    try:
        kept = await api.kept_result(services_of(request), actor_of(request), number)
    except Problem:
        known = document_of(await api.release(request, number))
        return await shown(request, "release_unkept.html", "/releases", release=known)
    task = new_task(request, "result-words", None, document=dict(kept.document))
    words = document_of(await run_as_job(request, task))
    result = result_view(kept.document, words)
    return await shown(request, "release.html", "/releases", charge=number, result=result)


def result_view(document: Mapping[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    """A result as a page shows it; ``words`` are those of the task ``result-words``."""
    query = document["query"]
    columns = document["columns"]
    return {
        "title": words["title"],
        "asked": words["facts"]["query"].replace("top_k", "top k", 1),
        "dataset": document["dataset"],
        "at": document["at"],
        "caption": f"{words['facts']['expected error']}; low and high are 95 % intervals"
        if columns[-1] == "high"
        else words["facts"]["expected error"],
        "alt": _alt(document, query, words["title"]),
        "columns": [
            {"name": name, "number": _is_number(document["rows"], place)}
            for place, name in enumerate(columns)
        ],
        "rows": document["rows"][:MOST_ROWS],
        "more": max(len(document["rows"]) - MOST_ROWS, 0),
        "facts": [pair for pair in words["facts"].items() if pair[0] != "guarantee"],
        "guarantee": document["guarantee"],
    }


def _is_number(rows: list[list[Any]], place: int) -> bool:
    known = [row[place] for row in rows if row[place] is not None]
    return bool(known) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in known
    )


def _alt(document: Mapping[str, Any], query: Mapping[str, Any], title: str) -> str:
    rows, by = len(document["rows"]), query["by"]
    groups = f", for each {' and '.join(by)}" if by else ""
    kind = "A ranking" if query["name"] == "top_k" else "Points with intervals"
    return f"{kind}: {rows:,} lines of {title}{groups}. The table has them."
