"""Jobs: where they are, what they say, and how to end them. Everybody sees their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import StreamingResponse

from takifugu.server.access.authentication import still_allowed
from takifugu.server.access_rules import API
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.api.release_jobs import LONGEST, release_of, release_view
from takifugu.server.api.running import JobView
from takifugu.server.api.strict_json import json_bytes
from takifugu.server.services import Services, actor_of, services_of
from takifugu.server.work.jobs import Job
from takifugu.visible import visible

router = APIRouter(tags=["jobs"])
ALIVE = 15.0  # seconds of silence before a comment says that the stream is alive
SOON = 2.0  # seconds that a cancelled job may take to end before it is answered
EVENT = {
    "type": "object",
    "description": "One event. `data` is JSON: of `progress` an object with `text`, of `end` the"
    " job.",
    "properties": {
        "event": {"type": "string", "enum": ["progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
JobName = Annotated[
    str, Path(description="The name of the job.", examples=["c5d4318c6e6c4d9db25a519b0e026355"])
]


def _own_job(request: Request, name: str) -> Job:
    """The job with this name, if the caller started it; 404 otherwise."""
    job, actor = services_of(request).board.get(name), actor_of(request)
    if job is None or (job.actor.name, job.actor.role) != (actor.name, actor.role):
        raise Problem(
            *(404, "no-job"),
            "there is no such job here; jobs are forgotten some minutes after their end",
            field="job",
        )
    return job


@router.get(f"{API}/jobs/{{job}}", name="show_job", response_model=JobView)
async def job(request: Request, job: JobName) -> Response:
    """Where a job is, and its result once it is done."""
    return json_response(release_view(_own_job(request, job), services_of(request)))


@router.delete(f"{API}/jobs/{{job}}", response_model=JobView)
async def cancel_job(request: Request, job: JobName) -> Response:
    """End a job. One that has ended stays as it is, and what was charged stays charged."""
    found, services = _own_job(request, job), services_of(request)
    found.cancel()
    await found.wait(SOON)
    release = release_of(services, found)
    if release is not None and found.ended:
        await asyncio.wait({release.ending}, timeout=SOON)
    return json_response(release_view(found, services))


@router.get(
    f"{API}/jobs/{{job}}/events",
    name="watch_job",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: `progress` with a line of text, and at last `end`"
            " with the job.",
            "content": {"text/event-stream": {"schema": EVENT}},
        }
    },
)
async def job_events(request: Request, job: JobName) -> Response:
    """What a job says while it runs, as server-sent events; the stream ends with the job."""
    found = _own_job(request, job)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = _while_allowed(request, _with_comments(_events(services_of(request), found)))
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


def _event(kind: str, content: Any) -> bytes:
    """One event: JSON in ASCII has no line break that could end it."""
    return b"event: " + kind.encode() + b"\ndata: " + json_bytes(content) + b"\n\n"


async def _events(services: Services, job: Job) -> AsyncIterator[bytes]:
    async for event in job.events():
        if event.kind == "progress":
            yield _event("progress", {"text": visible(event.text)})
    release = release_of(services, job)
    if release is not None:
        await asyncio.wait({release.ending}, timeout=LONGEST)
    yield _event("end", release_view(job, services))


async def _while_allowed(request: Request, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events until the caller's token ends: then nothing more is told, not even the end."""
    async with aclosing(events) as following:  # type: ignore[type-var]
        async for event in following:
            if not await still_allowed(request):
                return
            yield event


async def _with_comments(events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The events, and a comment where nothing is said for long: proxies end silent streams."""
    async with aclosing(events) as following:  # type: ignore[type-var]
        coming = asyncio.ensure_future(anext(following, None))
        try:
            while True:
                await asyncio.wait({coming}, timeout=ALIVE)
                if not coming.done():
                    yield b": still running\n\n"
                    continue
                event = coming.result()
                if event is None:
                    return
                yield event
                coming = asyncio.ensure_future(anext(following, None))
        finally:
            coming.cancel()
