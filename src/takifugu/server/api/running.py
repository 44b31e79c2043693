"""Tasks behind routes: wait a little, answer if it is done, and otherwise name the job.

``Prefer: wait=N`` says how many seconds a caller waits (RFC 7240); the server's own setting is the
default, and the most. A task that takes longer goes on as a job: 202, and `Location` names it.
"""

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel, Field

from takifugu.server.access_rules import API
from takifugu.server.api.problem_responses import json_response
from takifugu.server.api.problems import Problem
from takifugu.server.services import RunningJob, actor_of, services_of

WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,6})\"?\s*(?:$|[,;])")
ENDED = ("done", "failed", "cancelled")


class JobView(BaseModel):
    """Something that runs in a worker, or has run."""

    id: str = Field(description="The name of the job.", examples=["4f2c1d9e"])
    state: str = Field(
        description="`waiting`, `running`, `done`, `failed` or `cancelled`.", examples=["running"]
    )
    result: Any = Field(
        default=None, description="What the request would have been answered with; null before."
    )
    problem: dict[str, Any] | None = Field(
        default=None, description="Why it failed: a problem document; null if it did not."
    )


def job_document(job: RunningJob) -> dict[str, Any]:
    """A job as its caller sees it."""
    return {
        "id": job.id,
        "state": job.state,
        "result": job.result if job.state == "done" else None,
        "problem": job.problem if job.state == "failed" else None,
    }


def waiting(request: Request) -> float:
    """How many seconds the caller waits for an answer."""
    most = services_of(request).settings.wait
    found = WAIT.search(",".join(request.headers.getlist("prefer")))
    return most if found is None else min(float(found[1]), most)


def new_task(request: Request, name: str, dataset: str | None, **options: Any) -> Any:
    """A task of the caller."""
    made = import_module("takifugu.server.work.tasks").Task
    return made(name=name, dataset=dataset, actor=actor_of(request), options=options)


async def finished(job: RunningJob, seconds: float) -> bool:
    """Whether a job is done within ``seconds``; its problem is raised.

    Raises:
        Problem: It failed, or was cancelled.
    """
    if not await job.wait(seconds):
        return False
    if job.state == "failed":
        problem: Mapping[str, Any] = job.problem or {}
        raise Problem.of_document(problem)
    if job.state == "cancelled":
        raise Problem(409, "cancelled", "the job was cancelled; start it again if you need it")
    return True


async def run_as_job(
    request: Request, task: Any, respond: Callable[[Any], Response] = json_response
) -> Response:
    """Run a task as a job of the caller: its answer, or 202 and where to ask for it."""
    job: RunningJob = services_of(request).board.start(actor_of(request), task)
    if await finished(job, waiting(request)):
        return respond(job.result)
    return accepted(job)


def accepted(job: RunningJob) -> Response:
    """202: the job goes on."""
    return json_response(job_document(job), 202, {"Location": f"{API}/jobs/{job.id}"})
