"""The ledger for owners and auditors, reports of it, and the heads of other servers' ledgers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from takifugu.ledger.events.event_chain import Anchor
from takifugu.server.access_rules import API
from takifugu.server.api.job_routes import LATER, new_task, run_task
from takifugu.server.api.problems import Problem
from takifugu.server.api.requests import RequestBody, body_of
from takifugu.server.api.responses import Page, PageOption, json_response, names_tag, page_response
from takifugu.server.services import actor_of, services_of
from takifugu.server.state.state_store import StateConflict

if TYPE_CHECKING:
    from takifugu.ledger import Ledger

router = APIRouter()
AFTER_EVERY_EVENT = 2**53  # above every event
EXPORT_EVENTS = 1000  # events that an export reads at a time
LINES = "application/x-ndjson"
REPORT_FILES = ("report.html", "report.pdf", "report.html.sig", "report.pdf.sig")
log = logging.getLogger("takifugu.server.witness")
LedgerName = Annotated[
    str,
    Path(
        pattern="^[0-9a-f]{32}$",
        description="The ledger's own name, which its first event has.",
        examples=["0123456789abcdef0123456789abcdef"],
    ),
]


class EventView(BaseModel):
    """An event of the ledger. Keyed marks of the data are left out; the export has everything."""

    seq: int = Field(description="Its number.", examples=[12])
    at: str = Field(description="When it was written.", examples=["2026-11-16T09:00:00+00:00"])
    kind: str = Field(description="What it is.", examples=["charge"])
    hash: str = Field(description="Its hash, and so that of all events before it.")
    actor: str | None = Field(description="Who acted; null in events of earlier versions.")
    dataset: str | None = Field(description="The dataset that it is about, if one.")
    analyst: str | None = Field(description="The analyst that it is about, if one.")
    words: str = Field(description="What happened, in one line.")
    body: dict[str, Any] = Field(description="All of it but marks of the data.")


@router.get(f"{API}/ledger", tags=["ledger"], response_model=dict[str, Any])
async def ledger(request: Request) -> Response:
    """The head of the ledger, to be noted elsewhere, and its accounts."""
    from takifugu.ledger.event_documents import ledger_document

    places = actor_of(request).role == "owner"
    document = await services_of(request).read_ledger(
        lambda opened: ledger_document(opened, places=places), inspect=True
    )
    return json_response(document)


@router.get(f"{API}/ledger/events", tags=["ledger"], response_model=Page[EventView])
async def ledger_events(
    request: Request,
    paging: PageOption,
    kind: Annotated[
        str | None, Query(max_length=50, description="Only events of this kind.")
    ] = None,
    dataset: Annotated[
        str | None, Query(max_length=500, description="Only those about this dataset.")
    ] = None,
    analyst: Annotated[
        str | None, Query(max_length=500, description="Only those about this analyst.")
    ] = None,
    order: Annotated[
        Literal["oldest", "newest"], Query(description="Which come first.")
    ] = "oldest",
) -> Response:
    """The events of the ledger, a page at a time."""
    from takifugu.ledger.event_documents import event_document

    places = actor_of(request).role == "owner"
    newest, name = order == "newest", f"events-{order}"
    after = paging.after(name, AFTER_EVERY_EVENT if newest else 0)

    def read(opened: "Ledger") -> list[dict[str, Any]]:
        events = opened.events(
            *(0 if newest else after, paging.limit + 1, kind, dataset, analyst),
            before=max(after, 1) if newest else None,
        )
        return [event_document(event, places=places) for event in events]

    items = await services_of(request).read_ledger(read, inspect=True)
    return page_response(name, items, paging, lambda item: item["seq"])


@router.get(
    f"{API}/ledger/export",
    tags=["ledger"],
    response_class=Response,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}}},
)
async def ledger_export(request: Request) -> Response:
    """Every event, one line each: its hash, and the body that was hashed.

    This is what `takifugu ledger export` writes; `takifugu report verify` reads it.
    """
    services = services_of(request)
    last = (await services.read_ledger(lambda opened: opened.head(), inspect=True)).seq

    async def parts() -> AsyncIterator[bytes]:
        from takifugu.ledger.event_documents import export_part

        after = 0
        while after < last:
            read = partial(export_part, after=after, last=last, most=EXPORT_EVENTS)
            part, after = await services.read_ledger(read, inspect=True)
            yield part

    name = 'attachment; filename="ledger.jsonl"'
    return StreamingResponse(
        parts(), media_type=LINES, headers={"Content-Disposition": name, "X-Ledger-Head": str(last)}
    )


@router.post(
    f"{API}/ledger/verification", tags=["ledger"], response_model=dict[str, Any], responses=LATER
)
async def verify_ledger(request: Request) -> Response:
    """Verify the chain from its beginning, every total against the events, and the witness."""
    return await run_task(request, "verify-ledger", None)


@router.get(
    f"{API}/reports/{{name}}",
    tags=["reports"],
    response_class=Response,
    responses={
        200: {
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "application/pdf": {"schema": {"type": "string", "format": "binary"}},
                "text/plain": {"schema": {"type": "string"}},
            },
            "headers": {
                "ETag": {
                    "description": "The report by its ledger's head and its bytes.",
                    "schema": {"type": "string"},
                }
            },
        },
        304: {"description": "The report is the one that `If-None-Match` names."},
        412: {"description": "The report is not the one that `If-Match` names."},
    },
)
async def report(
    request: Request,
    name: Annotated[
        str, Path(description=f"One of {', '.join(REPORT_FILES)}.", examples=[REPORT_FILES[0]])
    ],
    dataset: Annotated[
        list[Annotated[str, Query(max_length=100)]] | None,
        Query(max_length=20, description="Only these datasets; repeatable."),
    ] = None,
    download: Annotated[
        bool, Query(description="Whether browsers save it instead of showing it.")
    ] = False,
) -> Response:
    """What was released under which guarantee, as of the ledger's head: a file to sign and keep.

    The same project gives the same bytes. A signature is over these bytes; `If-Match` with the
    `ETag` of the report makes sure that it is of that very file.
    """
    services = services_of(request)
    if name not in REPORT_FILES:
        raise Problem(404, "no-report", f"reports are {', '.join(REPORT_FILES)}", field="name")
    key = services.settings.signing_key
    if name.endswith(".sig") and key is None:
        raise Problem(
            *(404, "no-signature"),
            "this server has no key to sign with (`signing_key`); download the report and sign it"
            " with `takifugu report sign`",
            field="name",
            reason="signing_key",
        )
    datasets = tuple(dict.fromkeys(dataset or ()))
    known = set(services.project().policy.datasets)
    if not known.issuperset(datasets):
        raise Problem(404, "no-dataset", "there is no such dataset here", field="dataset")
    options: dict[str, Any] = {"file": name, "datasets": list(datasets)}
    if name.endswith(".sig"):
        options["signing_key"] = str(key)
    written = await services.pool.run(new_task(request, "report", None, **options))
    head = written["head"]
    tag = f'"{head["seq"]}-{head["hash"][:16]}-{written["sha256"][:32]}"'
    headers = {"ETag": tag}
    wanted = request.headers.get("if-match")
    if wanted is not None and not names_tag(wanted, tag):
        raise Problem(
            *(412, "report-changed"),
            "the report is not the one that `If-Match` names any more: the ledger or the policy"
            " changed. Download the report again",
            field="If-Match",
            headers=headers,
        )
    seen = request.headers.get("if-none-match")
    if seen is not None and names_tag(seen, tag) and not name.endswith(".sig"):
        return Response(status_code=304, headers=headers)
    way = "attachment" if download or name.endswith(".sig") else "inline"
    headers["Content-Disposition"] = f'{way}; filename="{name}"'
    headers["X-Ledger-Sound"] = "true" if written["sound"] else "false"
    if written["policy"] is not None:
        headers["Content-Security-Policy"] = written["policy"]
    return Response(written["content"], headers=headers, media_type=written["type"])


class EventMark(RequestBody):
    """The number and the hash of an event."""

    seq: int = Field(ge=1, lt=2**63, description="Its number.", examples=[12])
    hash: str = Field(
        pattern="^[0-9a-f]{64}$", description="Its hash.", examples=["0123456789abcdef" * 4]
    )

    def anchor(self) -> Anchor:
        """The same, as ledgers have it."""
        return Anchor(self.seq, self.hash)


class NewHead(RequestBody):
    """A head to record, if the record still is what was seen."""

    event: EventMark = Field(description="The last event of the ledger.")
    seen: EventMark | None = Field(
        default=None, description="What was recorded when it was last read; null if nothing was."
    )


class RecordedHead(BaseModel):
    """What is recorded now."""

    event: dict[str, Any] | None = Field(
        description="`seq` and `hash` of the last event; null if none is recorded."
    )


@router.get(f"{API}/witness/{{ledger}}", tags=["witness"], response_model=RecordedHead)
async def witnessed_head(request: Request, ledger: LedgerName) -> Response:
    """The event of a ledger that was recorded last."""
    state, by = services_of(request).state, actor_of(request).name
    return _answer(await _told(state.witnessed, ledger, by))


@router.put(f"{API}/witness/{{ledger}}", tags=["witness"], response_model=RecordedHead)
async def record_head(
    request: Request, ledger: LedgerName, body: Annotated[NewHead, body_of(NewHead)]
) -> Response:
    """Record the head of a ledger, durably, if the record still is what was seen.

    The answer is what is recorded now: the event, or what was recorded meanwhile. An event that is
    not later than the recorded one is refused (409): the ledger was put back.
    """
    state, by = services_of(request).state, actor_of(request).name
    event, seen = body.event.anchor(), None if body.seen is None else body.seen.anchor()
    return _answer(await _told(state.record_head, ledger, event, seen, by))


async def _told(work: Any, *given: Any) -> Anchor | None:
    try:
        anchor: Anchor | None = await asyncio.to_thread(work, *given)
    except StateConflict as error:
        kind = (403, "another-witness")
        if error.reason == "earlier":
            kind = (409, "earlier-head")
            log.warning("the head of a ledger was to go back: %s", error)
        raise Problem(*kind, str(error), field=error.field, reason=error.reason) from None
    return anchor


def _answer(anchor: Anchor | None) -> Response:
    event = None if anchor is None else {"seq": anchor.seq, "hash": anchor.hash}
    return json_response({"event": event})
