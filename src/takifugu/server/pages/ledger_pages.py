"""The pages of owners and auditors: the ledger, its verification, and reports."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request, Response

from takifugu.server.access_rules import API
from takifugu.server.api import ledger_routes as api
from takifugu.server.api.pagination import Paging
from takifugu.server.pages.page_responses import document_of, sentence, shown
from takifugu.server.services import services_of

router = APIRouter(include_in_schema=False)
A_PAGE = 50
KINDS = (
    *("charge", "reuse", "answer", "budget", "approval", "access"),
    *("policy", "accepted", "partition", "cells", "source", "separate", "state", "loss"),
)


@router.get("/ledger")
async def ledger_page(request: Request) -> Response:
    """The head, and the events in words."""
    return await _show(request)


@router.post("/ledger")
async def verify_form(request: Request) -> Response:
    """Verify the ledger, and say what was found."""
    found = document_of(await api.verify_ledger(request))
    return await _show(request, verified=_verified(found))


async def _show(request: Request, verified: Mapping[str, Any] | None = None) -> Response:
    query = request.query_params
    chosen = {name: query.get(name, "") for name in ("kind", "dataset")}
    kept = {name: value for name, value in chosen.items() if value}
    cursor = query.get("cursor") or None
    ledger = document_of(await api.ledger(request))
    events = document_of(
        await api.ledger_events(
            *(request, Paging(limit=A_PAGE, cursor=cursor)),
            kind=chosen["kind"] or None,
            dataset=chosen["dataset"] or None,
            order="newest",
        )
    )
    datasets = list(services_of(request).project().policy.datasets)
    following = {**kept, "cursor": events["next"]} if events["next"] else None
    return await shown(
        *(request, "ledger.html", "/ledger"),
        trouble=None,
        verified=verified,
        head=ledger["head"],
        events=events["items"],
        kinds=KINDS,
        datasets=datasets,
        chosen=chosen,
        first=f"/ledger?{urlencode(kept)}" if cursor else None,
        after=f"/ledger?{urlencode(following)}" if following else None,
    )


def _verified(found: Mapping[str, Any]) -> dict[str, Any]:
    """What a verification found, in words."""
    head, witness = found["head"], found["witness"]
    lines = [f"{found['events']:,} events; the head is event {head['seq']}, {head['hash'][:12]}…"]
    if witness["noted"] is not None:
        lines.append(f"The witness has seen event {witness['noted']['seq']}.")
    elif witness["kept"]:
        lines.append("The witness has seen nothing yet.")
    else:
        lines.append("There is no witness: a ledger that was put back as a whole looks sound.")
    if found["sound"]:
        return {"sound": True, "title": "The ledger is sound.", "lines": lines}
    lines += [sentence(one["message"]) for one in found["problems"]]
    return {"sound": False, "title": "The ledger is not sound.", "lines": lines}


@router.get("/reports")
async def reports_page(request: Request) -> Response:
    """The reports, to view and to download."""
    services = services_of(request)
    names = list(services.project().policy.datasets)
    signed = services.settings.signing_key is not None
    reports = [_report("All datasets", "What was released of every dataset.", (), signed)]
    if len(names) > 1:
        reports += [
            _report(name, f"What was released of “{name}” alone.", (name,), signed)
            for name in names
        ]
    return await shown(
        request, "reports.html", "/reports", reports=reports, signed=signed, trouble=None
    )


def _report(title: str, words: str, datasets: tuple[str, ...], signed: bool) -> dict[str, Any]:
    chosen = [("dataset", name) for name in datasets]

    def file(text: str, name: str, download: bool = True) -> dict[str, Any]:
        query = urlencode([*chosen, *([("download", "true")] if download else [])])
        address = f"{API}/reports/{name}" + (f"?{query}" if query else "")
        return {"title": text, "href": address, "download": name if download else None}

    files = [
        file("View", "report.html", download=False),
        file("HTML", "report.html"),
        file("PDF", "report.pdf"),
    ]
    if signed:
        files += [
            file("Signature of the HTML", "report.html.sig"),
            file("Signature of the PDF", "report.pdf.sig"),
        ]
    return {"title": title, "words": words, "files": files}
