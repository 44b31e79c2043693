"""Tasks behind routes: wait a little, answer if it is done, and otherwise name the job.

``Prefer: wait=N`` says how many seconds a caller waits (RFC 7240); the server's own setting is the
default, and the most. A task that takes longer goes on as a job: 202, and `Location` names it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import Header, Request, Response
from pydantic import BaseModel, Field

from takifugu.server.access_rules import API
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.services import actor_of, services_of
from takifugu.server.work.jobs import Job
from takifugu.server.work.tasks import EncodedJson, Task

WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|[,;])")
PreferHeader = Annotated[
    str | None,
    Header(
        description="`wait=N`: answer with a job after N seconds, if it is not done by then. The"
        " server has a limit of its own, which is the default.",
        examples=["wait=5"],
    ),
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
    found = WAIT.search(",".join(request.headers.getlist("prefer")))
    return most if found is None else min(float(found[1]), most)


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
        raise Problem.of_document(job.problem)
    return True


async def run_as_job(
    request: Request, task: Task, respond: Callable[[Any], Response] = json_response
) -> Response:
    """Run a task as a job of the caller: its answer, or 202 and where to ask for it."""
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


def accepted(document: Mapping[str, Any]) -> Response:
    """202: the job goes on."""
    return json_response(document, 202, {"Location": f"{API}/jobs/{document['id']}"})
