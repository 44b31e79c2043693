"""The head of another server's ledger, remembered here.

The answers are those of `takifugu.ledger.witnesses.head_witness.HeadWitness`: what is recorded now.
"""

import asyncio
import logging
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import BaseModel, Field

from takifugu.ledger.events.event_chain import Anchor
from takifugu.server.access_rules import API
from takifugu.server.api.bodies import RequestBody, body_of, takes
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.services import actor_of, services_of
from takifugu.server.state.state_errors import StateConflict

router = APIRouter(tags=["witness"])
log = logging.getLogger("takifugu.server.witness")
LedgerName = Annotated[
    str,
    Path(
        pattern="^[0-9a-f]{32}$",
        description="The ledger's own name, which its first event has.",
        examples=["0123456789abcdef0123456789abcdef"],
    ),
]


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


@router.get(f"{API}/witness/{{ledger}}", response_model=RecordedHead)
async def witnessed_head(request: Request, ledger: LedgerName) -> Response:
    """The event of a ledger that was recorded last."""
    state, by = services_of(request).state, actor_of(request).name
    return _answer(await _told(state.witnessed, ledger, by))


@router.put(f"{API}/witness/{{ledger}}", response_model=RecordedHead, **takes(NewHead))
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
        found: Anchor | None = await asyncio.to_thread(work, *given)
    except StateConflict as error:
        kind = (403, "another-witness")
        if error.reason == "earlier":
            kind = (409, "earlier-head")
            log.warning("the head of a ledger was to go back: %s", error)
        raise Problem(*kind, str(error), field=error.field, reason=error.reason) from None
    return found


def _answer(found: Anchor | None) -> Response:
    event = None if found is None else {"seq": found.seq, "hash": found.hash}
    return json_response({"event": event})
