"""Releases as jobs: what is kept when one is done.

What a release takes depends on how many rows and cells there are, which is public, on whether the
answer was stored, which the answer says, on how busy the server is; and on the values that are
counted and drawn. The last is told in steps of `ServerSettings.time_step` and no finer, since the
worker itself holds what it has drawn until a step is over (`takifugu.session.time_steps`): nothing
that happens here, to the job, its key, its stream or its cancelling, comes before that.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from takifugu.errors import TakifuguError
from takifugu.server.access_rules import API
from takifugu.server.api.problems import Problem, problem_of
from takifugu.server.api.running import job_document
from takifugu.server.roles import Actor
from takifugu.server.services import Services
from takifugu.server.state.kept_results import charge_of
from takifugu.server.work.jobs import Job
from takifugu.server.work.tasks import Task

log = logging.getLogger("takifugu.server.releases")
RECORDED = ("cost", "saving", "guarantee")  # of a result: what depends on when it was paid for
LONGEST = 10 * 365 * 86_400.0  # seconds: the pool ends a job long before


@dataclass(frozen=True)
class Outcome:
    """What a release came to.

    Attributes:
        status: The status of the response.
        document: Its body.
        location: Where it can be found.
    """

    status: int
    document: Mapping[str, Any]
    location: str


@dataclass(frozen=True, eq=False)
class ReleaseJob:
    """A release that runs or has run.

    Attributes:
        job: The job.
        ending: What becomes of it; raises `Problem` if nothing is released.
    """

    job: Job
    ending: "asyncio.Future[Outcome]"

    async def outcome(self, seconds: float) -> Outcome | None:
        """What it came to, if that is known within ``seconds``; None otherwise.

        Raises:
            Problem: It was refused, failed, or was cancelled.
        """
        await asyncio.wait({self.ending}, timeout=seconds)
        return self.ending.result() if self.ending.done() else None


def begin_release(
    services: Services,
    actor: Actor,
    dataset: str,
    query: Mapping[str, Any],
    *,
    key: str,
    accept_noise: bool = False,
    plan: str | None = None,
) -> ReleaseJob:
    """Start a release, or join the one that runs under the same key."""
    options = {"query": dict(query), "key": key, "accept_noise": accept_noise}
    if plan is not None:
        options["plan"] = plan
    job = services.board.start(actor, Task("release", dataset, actor, options))
    return release_of(services, job) or _begin(services, job)


def release_of(services: Services, job: Job) -> ReleaseJob | None:
    """The release that a job is; None if it is something else."""
    found: ReleaseJob | None = services.releases.get(job)
    return found


def _begin(services: Services, job: Job) -> ReleaseJob:
    ending = asyncio.ensure_future(_end(services, job))
    ending.add_done_callback(lambda done: done.cancelled() or done.exception())
    made = ReleaseJob(job, ending)
    services.releases[job] = made
    return made


async def _end(services: Services, job: Job) -> Outcome:
    """Wait for a release, and keep its result."""
    await job.wait(LONGEST)
    if job.problem is not None:
        raise Problem.of_document(job.problem)
    return await asyncio.to_thread(_kept, services, job)


def _kept(services: Services, job: Job) -> Outcome:
    """Keep what was released, so that it can be fetched again; or say what it waits for."""
    result: Mapping[str, Any] = job.result
    if "approval" in result:
        return Outcome(202, result, f"{API}/approvals/{result['approval']['id']}")
    charge: int = result["charge"]
    released: Mapping[str, Any] = result["result"]
    try:
        kept = services.state.keep_result(
            charge_of(released), str(job.task.dataset), job.actor.name, released
        )
        released = _as_recorded(released, kept.document)
    except TakifuguError as error:  # it is in the ledger; the same request keeps it again
        log.error("the result of charge %d was not kept: %s", charge, type(error).__name__)
    document = {"charge": charge, "result": released}
    return Outcome(201, document, f"{API}/releases/{charge}")


def _as_recorded(now: Mapping[str, Any], kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """A result whose release was paid for, with the price that was recorded when it was.

    The same request sent again later is the same charge; what it would add to all that was spent
    since is not what it cost.
    """
    if now["free"] or kept["free"]:
        return now
    return {**now, **{name: kept[name] for name in RECORDED}}


def release_view(job: Job, services: Services) -> dict[str, Any]:
    """A job as the one who started it sees it: a release ends when its result is kept."""
    document = job_document(job)
    found = release_of(services, job)
    if found is None:
        return document
    if not found.ending.done():
        state = document["state"] if document["state"] == "waiting" else "running"
        return document | {"state": state, "result": None, "problem": None}
    error = found.ending.exception()
    if error is None:
        return document | {"result": found.ending.result().document, "problem": None}
    state = "cancelled" if job.state == "cancelled" else "failed"
    problem = problem_of(error, job.actor.role)
    return document | {"state": state, "result": None, "problem": problem}
