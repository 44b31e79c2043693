"""How work that was given to a worker can end without a result."""

from collections.abc import Mapping
from typing import Any

from takifugu.errors import TakifuguError
from takifugu.server.work.tasks import Task

SPENT = (
    "if it was charged, what was charged stays charged; the same request with the same"
    " idempotency key takes it up again and is not charged twice"
)


def work_problem(
    status: int, title: str, detail: str, *, kind: str = "server", **fields: Any
) -> dict[str, Any]:
    """A problem as clients get it (RFC 9457), with ``field`` and ``reason`` like every error."""
    known = {"type": f"urn:takifugu:problem:{kind}", "title": title, "status": status}
    return known | {"detail": detail, "field": "", "reason": ""} | fields


def beside(task: Task) -> str:
    """What to say of a task that may have charged something; empty if it cannot have."""
    return f"; {SPENT}" if task.key is not None else ""


class WorkFailed(TakifuguError):
    """A task ended with an error.

    Attributes:
        problem: What went wrong, as the one who asked may see it.
    """

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(
            str(problem.get("detail") or problem.get("title") or "the task failed"),
            field=str(problem.get("field", "")),
            reason=str(problem.get("reason", "")),
        )
        self.problem = dict(problem)


class WorkerLost(WorkFailed):
    """The worker ended in the middle of a task: it was killed, or ran out of memory."""

    def __init__(self, task: Task) -> None:
        detail = "the process that worked on this ended before it was done; ask again"
        if task.key is not None:
            detail = f"{detail} with the same idempotency key: {SPENT}"
        super().__init__(
            work_problem(503, "Worker lost", detail, kind="WorkerLost", reason="worker-lost")
        )


class WorkTimedOut(WorkFailed):
    """A task ran for longer than a task may, or its plan took more processor time than one may."""

    def __init__(self, task: Task, seconds: float, *, planning: bool = False) -> None:
        detail = f"it took longer than {seconds:g} s and was ended"
        if planning:
            detail = (
                f"its plan took more than {seconds:g} s of processor time and was ended; ask for"
                " fewer groups, labels or places, or give a smaller `reference` or none; or have"
                " the owner raise `plan_time` in [server]"
            )
        reason = "plan-time" if planning else "work-time"
        problem = f"{detail}{beside(task)}"
        super().__init__(
            work_problem(503, "Took too long", problem, kind="WorkTimedOut", reason=reason)
        )


class WorkCancelled(WorkFailed):
    """A task was cancelled by the one who asked for it, or because the server stops."""

    def __init__(self, task: Task, why: str = "it was cancelled") -> None:
        super().__init__(
            work_problem(
                *(409, "Cancelled", f"{why}{beside(task)}"),
                kind="WorkCancelled",
                reason="cancelled",
            )
        )
