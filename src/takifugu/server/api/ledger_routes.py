"""The ledger, as owners and auditors read it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from takifugu.server.access_rules import API
from takifugu.server.api.pagination import Page, PageOption, cursor_after
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.running import LATER, new_task, run_as_job
from takifugu.server.services import Services, actor_of, services_of

if TYPE_CHECKING:
    from takifugu.ledger import Ledger

router = APIRouter(tags=["ledger"])
Found = TypeVar("Found")
LAST = 2**53  # above every event
PART = 1000  # events that an export reads at a time
LINES = "application/x-ndjson"


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


async def _inspect(services: Services, work: "Callable[[Ledger], Found]") -> Found:
    """What ``work`` reads in the ledger, also if it is an older copy: that is what to find out."""

    def read() -> Found:
        with services.project().ledger(inspect=True) as ledger:
            return work(ledger)

    return await asyncio.to_thread(read)


@router.get(f"{API}/ledger", response_model=dict[str, Any])
async def ledger(request: Request) -> Response:
    """The head of the ledger, to be noted elsewhere, and its accounts."""
    from takifugu.ledger.ledger_documents import ledger_document

    places = actor_of(request).role == "owner"
    return json_response(
        await _inspect(services_of(request), lambda found: ledger_document(found, places=places))
    )


@router.get(f"{API}/ledger/events", response_model=Page[EventView])
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
    from takifugu.ledger.ledger_documents import event_document

    places = actor_of(request).role == "owner"
    newest, name = order == "newest", f"events-{order}"
    after = paging.after(name, LAST if newest else 0)

    def read(found: "Ledger") -> list[dict[str, Any]]:
        events = found.events(
            *(0 if newest else after, paging.limit + 1, kind, dataset, analyst),
            before=max(after, 1) if newest else None,
        )
        return [event_document(event, places=places) for event in events]

    items = await _inspect(services_of(request), read)
    more = len(items) > paging.limit
    items = items[: paging.limit]
    following = cursor_after(name, items[-1]["seq"]) if more else None
    return json_response({"items": items, "next": following})


@router.get(
    f"{API}/ledger/export",
    response_class=Response,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}}},
)
async def ledger_export(request: Request) -> Response:
    """Every event, one line each: its hash, and the body that was hashed.

    This is what `takifugu ledger export` writes; `takifugu report verify` reads it.
    """
    services = services_of(request)
    last = (await _inspect(services, lambda found: found.head())).seq

    async def parts() -> AsyncIterator[bytes]:
        from takifugu.ledger.ledger_documents import export_part

        after = 0
        while after < last:
            read = partial(export_part, after=after, last=last, most=PART)
            part, after = await _inspect(services, read)
            yield part

    name = 'attachment; filename="ledger.jsonl"'
    return StreamingResponse(
        parts(), media_type=LINES, headers={"Content-Disposition": name, "X-Ledger-Head": str(last)}
    )


@router.post(f"{API}/ledger/verification", response_model=dict[str, Any], responses=LATER)
async def verify_ledger(request: Request) -> Response:
    """Verify the chain from its beginning, every total against the events, and the witness."""
    return await run_as_job(request, new_task(request, "verify-ledger", None))
