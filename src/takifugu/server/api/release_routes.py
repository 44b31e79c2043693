"""Releases that were made: their list, what is known of each, its result in several formats."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, Field

from takifugu.server.access.headers import DRAWING
from takifugu.server.access_rules import API, Actor
from takifugu.server.api.job_routes import LATER, run_task
from takifugu.server.api.problems import Problem, json_bytes
from takifugu.server.api.query_routes import ResultDocument
from takifugu.server.api.responses import Page, PageOption, json_response, names_tag, page_response
from takifugu.server.services import Services, actor_of, services_of

if TYPE_CHECKING:
    from takifugu.ledger import Event, Ledger
    from takifugu.server.state.server_state import KeptResult

router = APIRouter(tags=["releases"])
AFTER_EVERY_EVENT = 2**53  # above every event
ChargeNumber = Annotated[
    int,
    Path(
        ge=1,
        le=AFTER_EVERY_EVENT,
        description="The event of the ledger that paid for it.",
        examples=[12],
    ),
]
FormatOption = Annotated[
    Literal["json", "csv", "csv-metadata", "parquet", "arrow", "xlsx"] | None,
    Query(description="The format; without it the header `Accept` decides, and JSON is sent."),
]


@dataclass(frozen=True)
class ResultFormat:
    """A format that a result can be had in.

    Attributes:
        name: What ``?format=`` calls it.
        media_type: What ``Accept`` calls it.
        ending: How the name of its file ends.
    """

    name: str
    media_type: str
    ending: str


BINARY = {"schema": {"type": "string", "format": "binary"}}
FORMATS = {
    form.name: form
    for form in (
        ResultFormat("json", "application/json", ".json"),
        ResultFormat("csv", "text/csv", ".csv"),
        ResultFormat("csv-metadata", "application/csvm+json", ".csv-metadata.json"),
        ResultFormat("parquet", "application/vnd.apache.parquet", ".parquet"),
        ResultFormat("arrow", "application/vnd.apache.arrow.stream", ".arrows"),
        ResultFormat(
            "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx"
        ),
    )
}
FIGURES = {
    "svg": ResultFormat("svg", "image/svg+xml", ".svg"),
    "png": ResultFormat("png", "image/png", ".png"),
}


def _files_of(description: str, content: Mapping[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The responses of a route that sends a file, or a job, or nothing that the caller lacks."""
    return {
        **LATER,
        304: {"description": "The caller has it already, by `If-None-Match`."},
        406: {"description": "None of the formats that the caller accepts can be had."},
        200: {
            "description": description,
            "content": dict(content),
            "headers": {"ETag": {"schema": {"type": "string"}, "description": "Names this file."}},
        },
    }


def chosen(request: Request, asked: str | None, formats: dict[str, ResultFormat]) -> ResultFormat:
    """The format that a request asks for; the first one if it does not care.

    Raises:
        Problem: None of those that it accepts can be had (406).
    """
    if asked is not None:
        return formats[asked]
    header = ",".join(request.headers.getlist("accept")) or "*/*"
    best = max(formats.values(), key=lambda form: accepted(header, form.media_type))  # the first
    if not accepted(header, best.media_type):
        media = ", ".join(form.media_type for form in formats.values())
        detail = f"`Accept` names no format that there is: {media}"
        raise Problem(406, "not-acceptable", detail, field="Accept")
    return best


def accepted(header: str, media_type: str) -> float:
    """How much a header ``Accept`` wants a media type: 0 for not at all (RFC 9110, 12.5.1).

    >>> accepted("text/*;q=0.5, text/csv", "text/csv"), accepted("text/*;q=0.5", "text/csv")
    (1.0, 0.5)
    """
    match: tuple[int, float] = (-1, 0.0)
    kind = media_type.partition("/")[0]
    for part in header.split(","):
        wanted, *parameters = (piece.strip().lower() for piece in part.split(";"))
        specific = {"*/*": 0, f"{kind}/*": 1, media_type: 2}.get(wanted)
        if specific is not None and specific > match[0]:
            match = specific, _quality(parameters)
    return match[1]


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                quality = float(value)
            except ValueError:
                return 0.0
            return quality if 0 <= quality <= 1 else 0.0
    return 1.0


def entity_tag(answer: str, *parts: str) -> str:
    """The ETag of a file that is made of an answer: its event, and whatever else decides it."""
    text = "\n".join((answer, *parts))
    return f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'


def unchanged(request: Request, tag: str) -> bool:
    """Whether the caller has the file with this tag already."""
    return names_tag(",".join(request.headers.getlist("if-none-match")), tag)


def disposition(dataset: str, charge: int, ending: str, *, inline: bool = False) -> str:
    r"""The header ``Content-Disposition``: a name of letters, digits, ``-`` and ``_`` alone.

    >>> disposition('a"\r\nSet-Cookie: b', 12, ".csv")
    'attachment; filename="aSet-Cookieb-12.csv"'
    """
    name = "".join(c for c in dataset if c.isascii() and (c.isalnum() or c in "-_"))[:80]
    how = "inline" if inline else "attachment"
    return f'{how}; filename="{name or "result"}-{charge}{ending}"'


class ReleaseView(BaseModel):
    """A release, as the ledger has it."""

    charge: int = Field(description="The event of the ledger that paid.", examples=[12])
    kind: Literal["charge", "reuse"] = Field(
        description="`reuse`: an answer that somebody else had paid for, charged to this analyst's"
        " own budget alone, and free if they have none."
    )
    dataset: str = Field(description="The dataset.", examples=["stays"])
    analyst: str | None = Field(description="Who asked.", examples=["ana"])
    at: str = Field(description="When.", examples=["2026-11-16T10:00:00+00:00"])
    asked: str = Field(description="The query in words.", examples=["histogram of state by zone"])
    query: dict[str, Any] = Field(description="The query.")
    mechanism: dict[str, Any] = Field(description="How it is protected.")
    loss: dict[str, Any] = Field(description="What each row that is read loses; exact, as text.")
    paid_by: int = Field(
        description="The event that paid for the answer: for `reuse`, that of the other analyst.",
        examples=[12],
    )
    result: bool = Field(
        description="Whether the result can be fetched here; one that was released elsewhere"
        " cannot."
    )
    answered: bool = Field(
        description="Whether the ledger has the answer. A charge without one counts as spent: its"
        " release is still running, or was stopped; a request to this server can be sent again"
        " under its `Idempotency-Key`, which resumes it."
    )


def release_document(event: "Event", stored: bool, answered: bool) -> dict[str, Any]:
    """A charge as its analyst may see it: no mark of the data, and no key."""
    from takifugu.ledger.event_documents import asked_words

    body = event.body
    return {
        "charge": event.seq,
        "kind": event.kind,
        "dataset": body["dataset"],
        "analyst": body["analyst"],
        "at": event.at.isoformat(),
        "asked": asked_words(body),
        "query": body["query"],
        "mechanism": body["mechanism"],
        "loss": body["loss"],
        "paid_by": _paying(event),
        "result": stored,
        "answered": answered,
    }


def _paying(event: "Event") -> int:
    """The number of the charge that paid for the answer of a release."""
    number: int = event.body["charge"] if event.kind == "reuse" else event.seq
    return number


def _own(actor: Actor) -> str | None:
    """Whose releases the caller may see; None for everybody's."""
    return actor.name if actor.role == "analyst" else None


async def kept_result(services: Services, actor: Actor, charge: int) -> "KeptResult":
    """The stored result of a charge, if the caller may see it: an analyst sees their own.

    Raises:
        Problem: There is none, or not for them: 404 for both.
    """

    def read(ledger: "Ledger") -> "tuple[Event | None, Event | None]":
        event = ledger.event(charge)
        reused = event is not None and event.kind == "reuse"
        return event, ledger.event(_paying(event)) if event is not None and reused else event

    event, paying = await services.read_ledger(read)  # the answer is that of the one that paid
    whose = own = _own(actor)
    if event is not None and event.kind == "reuse":
        whose = event.body["analyst"]
        if own not in (None, whose):
            raise no_release()
    if paying is None or paying.kind != "charge":
        raise no_release()
    result: KeptResult | None = await asyncio.to_thread(services.state.result, paying.anchor, whose)
    if result is None:
        raise no_release()
    return result


def no_release() -> Problem:
    """The problem of a release that does not exist, or not for the caller."""
    return Problem(404, "no-release", "there is no such release here", field="charge")


@router.get(f"{API}/releases", name="list_releases", response_model=Page[ReleaseView])
async def releases(
    request: Request,
    paging: PageOption,
    dataset: Annotated[
        str | None, Query(max_length=200, description="Only those of this dataset.")
    ] = None,
) -> Response:
    """The releases that the caller may see, the latest first: analysts see their own.

    An answer that somebody else had paid for is among them, as `reuse`.
    """
    services, actor = services_of(request), actor_of(request)
    before = paging.after("releases", AFTER_EVERY_EVENT)
    events = await services.read_ledger(
        lambda ledger: ledger.events(
            limit=paging.limit + 1,
            kind=("charge", "reuse"),
            dataset=dataset,
            analyst=_own(actor),
            before=max(before, 1),
        )
    )
    items = await _documents(services, events)
    return page_response("releases", items, paging, lambda item: item["charge"])


async def _documents(services: Services, events: "Sequence[Event]") -> list[dict[str, Any]]:
    """Releases, with whether each is answered, and whether its result is kept here."""
    known = {event.seq: event for event in events}

    def read(ledger: "Ledger") -> "tuple[dict[int, Event | None], Set[int]]":
        paying = {_paying(event) for event in events}
        return {seq: known.get(seq) or ledger.event(seq) for seq in paying}, ledger.answered(
            list(paying)
        )

    paying, answered = await services.read_ledger(read)
    results = {
        event.seq: (paid.anchor, event.body["analyst"])
        for event in events
        if (paid := paying[_paying(event)]) is not None
    }
    stored = await asyncio.to_thread(services.state.kept_charges, list(results.values()))
    return [
        release_document(event, results.get(event.seq) in stored, _paying(event) in answered)
        for event in events
    ]


@router.get(f"{API}/releases/{{charge}}", name="show_release", response_model=ReleaseView)
async def release(request: Request, charge: ChargeNumber) -> Response:
    """What the ledger has of a release."""
    services, actor = services_of(request), actor_of(request)
    event = await services.read_ledger(lambda ledger: ledger.event(charge))
    if event is None or event.kind not in ("charge", "reuse"):
        raise no_release()
    own = _own(actor)
    if own is not None and event.body["analyst"] != own:
        await kept_result(services, actor, charge)  # an answer that was stored, and free
    (document,) = await _documents(services, [event])
    return json_response(_seen_by(actor, document))


def _seen_by(actor: Actor, document: dict[str, Any]) -> dict[str, Any]:
    """A release of somebody else, whose answer was given to this analyst too."""
    if actor.role == "analyst" and document["analyst"] != actor.name:
        return document | {"analyst": None, "result": True}
    return document


@router.get(
    f"{API}/releases/{{charge}}/result",
    name="fetch_result",
    response_model=ResultDocument,
    responses=_files_of(
        "The result.",
        {
            form.media_type: BINARY
            for form in FORMATS.values()
            if form.name not in ("json", "csv-metadata")
        }
        | {FORMATS["csv-metadata"].media_type: {"schema": {"type": "object"}}},
    ),
)
async def result(request: Request, charge: ChargeNumber, format: FormatOption = None) -> Response:
    """The result of a release, as JSON, CSV (and its metadata), Parquet, Arrow or Excel."""
    stored = await kept_result(services_of(request), actor_of(request), charge)
    form = chosen(request, format, FORMATS)
    headers = _headers(stored, form)
    if form.name == "csv":
        beside = f"{API}/releases/{charge}/result?format=csv-metadata"
        headers["Link"] = f'<{beside}>; rel="describedby"; type="application/csvm+json"'
    if unchanged(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    if form.name == "json":
        return _file(json_bytes(dict(stored.document)), form, headers)
    options = {"document": dict(stored.document), "format": form.name}
    options["file"] = f"{stored.dataset}-{charge}.csv"
    respond = partial(_file, form=form, headers=headers)
    return await run_task(request, "result file", None, respond, **options)


@router.get(
    f"{API}/releases/{{charge}}/figure",
    name="fetch_figure",
    response_class=Response,
    responses=_files_of("The figure.", {form.media_type: BINARY for form in FIGURES.values()}),
)
async def figure(
    request: Request,
    charge: ChargeNumber,
    format: Annotated[
        Literal["svg", "png"] | None,
        Query(description="The format; without it the header `Accept` decides, and SVG is sent."),
    ] = None,
) -> Response:
    """The figure of a release: its intervals, or a table for a ranking."""
    stored = await kept_result(services_of(request), actor_of(request), charge)
    form = chosen(request, format, FIGURES)
    headers = _headers(stored, form, inline=True) | {"Content-Security-Policy": DRAWING}
    if unchanged(request, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    options = {"document": dict(stored.document), "format": form.name}
    respond = partial(_file, form=form, headers=headers)
    return await run_task(request, "figure", None, respond, **options)


def _headers(stored: "KeptResult", form: ResultFormat, *, inline: bool = False) -> dict[str, str]:
    from takifugu import __version__

    provenance: Mapping[str, Any] = stored.document.get("provenance") or {}
    answer = str(provenance.get("answer", {}).get("hash", ""))
    tag = entity_tag(answer, str(stored.analyst), form.name, __version__)
    return {
        "ETag": f"W/{tag}" if form.name == "xlsx" else tag,  # a workbook holds when it was made
        "Cache-Control": "no-store",  # a caller that keeps it by itself asks with `If-None-Match`
        "Vary": "Accept, Authorization, Cookie",
        "Content-Disposition": disposition(
            stored.dataset, stored.charge.seq, form.ending, inline=inline
        ),
    }


def _file(content: bytes, form: ResultFormat, headers: Mapping[str, str]) -> Response:
    media = f"{form.media_type}; charset=utf-8" if form.name == "csv" else form.media_type
    return Response(content, headers={**headers, "Content-Type": media})
