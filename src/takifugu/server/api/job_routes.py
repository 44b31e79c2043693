"""Tasks that routes run, waited for or answered with a job; and the routes of jobs."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from takifugu.server.access.authentication import still_allowed
from takifugu.server.access_rules import API
from takifugu.server.api.problems import Problem, find_policy, json_bytes
from takifugu.server.api.responses import json_response
from takifugu.server.services import actor_of, services_of
from takifugu.server.work.jobs import Job
from takifugu.server.work.tasks import EncodedJson, Task
from takifugu.visible import visible

if TYPE_CHECKING:
    from takifugu.project.policy import DatasetPolicy

WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|[,;])")
PreferHeader = Annotated[
    str | None,
    Header(
        description="`wait=N`: answer with a job after N seconds, if it is not done by then. The"
        " server has a limit of its own, which is the default.",
        examples=["wait=5"],
    ),
]
router = APIRouter(tags=["jobs"])
COMMENT_INTERVAL = 15.0  # seconds of silence before a comment says that the stream is alive
CANCEL_SECONDS = 2.0  # seconds that a cancelled job may take to end before it is answered
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


class JobView(BaseModel):
    """Something that runs in a worker, or has run."""

    kind: Literal["job"] = "job"
    id: str = Field(
        description="The name of the job.", examples=["c5d4318c6e6c4d9db25a519b0e026355"]
    )
    state: Literal["waiting", "running", "done", "failed", "cancelled"] = Field(
        description="Where it is.", examples=["running"]
    )
    result: Any = Field(
        default=None,
        description="What the request would have been answered with; null before it is done, and"
        " for files, which are fetched where they were asked for.",
    )
    problem: dict[str, Any] | None = Field(
        default=None,
        description="Why there is no result: a problem document; null if there is one.",
    )


LATER: dict[int | str, dict[str, Any]] = {
    202: {
        "model": JobView,
        "description": "It takes longer: the job, whose address is in `Location`.",
        "headers": {
            "Location": {"description": "The address of the job.", "schema": {"type": "string"}}
        },
    }
}


def job_document(job: Job) -> dict[str, Any]:
    """A job as the one who started it sees it."""
    result = job.result if job.state == "done" else None
    return {
        "kind": "job",
        "id": job.id,
        "state": job.state,
        "result": _shown(result),
        "problem": job.problem,
    }


def _shown(result: Any) -> Any:
    if isinstance(result, EncodedJson):
        return result.document()
    return None if isinstance(result, bytes) else result


def waiting(request: Request) -> float:
    """How many seconds the caller waits for an answer."""
    most = services_of(request).settings.wait
    match = WAIT.search(",".join(request.headers.getlist("prefer")))
    return most if match is None else min(float(match[1]), most)


def new_task(request: Request, name: str, dataset: str | None, **options: Any) -> Task:
    """A task of the caller."""
    return Task(name, dataset, actor_of(request), options)


async def finished(job: Job, seconds: float) -> bool:
    """Whether a job is done within ``seconds``.

    Raises:
        Problem: It failed, or was cancelled.
    """
    if not await job.wait(seconds):
        return False
    if job.problem is not None:
        raise Problem.from_document(job.problem)
    return True


async def run_task(
    request: Request,
    name: str,
    dataset: str | None,
    respond: Callable[[Any], Response] = json_response,
    **options: Any,
) -> Response:
    """Run a task as a job of the caller: its answer, or 202 and where to ask for it.

    Raises:
        Problem: There is no such dataset, or not for the caller; or what went wrong.
    """
    if dataset is not None:
        find_dataset(request, dataset)
    task = new_task(request, name, dataset, **options)
    if respond is json_response:
        task = replace(task, encoded=True)  # written once, where it was made
    board = services_of(request).board
    job = board.start(actor_of(request), task)
    try:
        done = await finished(job, waiting(request))
    except Problem:
        board.drop(job)  # nobody was told its name
        raise
    if not done:
        return accepted(job_document(job))
    board.drop(job)
    return respond(job.result)


def find_dataset(request: Request, name: str) -> "DatasetPolicy":
    """The policy of a dataset that the caller may see; 404 if there is none for them."""
    return find_policy(services_of(request).project(), actor_of(request), name)


def accepted(document: Mapping[str, Any]) -> Response:
    """202: the job goes on."""
    return json_response(document, 202, {"Location": f"{API}/jobs/{document['id']}"})


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
    return json_response(job_document(_own_job(request, job)))


@router.delete(f"{API}/jobs/{{job}}", response_model=JobView)
async def cancel_job(request: Request, job: JobName) -> Response:
    """End a job. One that has ended stays as it is, and what was charged stays charged."""
    own = _own_job(request, job)
    own.cancel()
    await own.wait(CANCEL_SECONDS)
    return json_response(job_document(own))


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
    own = _own_job(request, job)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = _while_allowed(request, _with_comments(_events(own)))
    return StreamingResponse(stream, headers=headers, media_type="text/event-stream")


def _event(kind: str, content: Any) -> bytes:
    """One event: JSON in ASCII has no line break that could end it."""
    return b"event: " + kind.encode() + b"\ndata: " + json_bytes(content) + b"\n\n"


async def _events(job: Job) -> AsyncIterator[bytes]:
    async for event in job.events():
        if event.kind == "progress":
            yield _event("progress", {"text": visible(event.text)})
    yield _event("end", job_document(job))


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
                await asyncio.wait({coming}, timeout=COMMENT_INTERVAL)
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
