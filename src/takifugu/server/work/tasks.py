"""Tasks: what workers do, by name.

A function that does one is registered by `task`, in a module that `TASK_MODULES` names; only
workers import these modules. It is given the worker and the task, and returns plain values: what
JSON knows, and bytes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from takifugu.server.roles import Actor

if TYPE_CHECKING:
    from takifugu.server.work.worker_host import WorkerHost

TASK_MODULES = (
    "takifugu.server.work.dataset_tasks",
    "takifugu.server.work.query_tasks",
    "takifugu.server.work.page_tasks",
    "takifugu.server.work.result_tasks",
    "takifugu.server.work.owner_tasks",
)


@dataclass(frozen=True)
class EncodedJson:
    """A result as the JSON that a response has, made in the worker: the server passes it on.

    Attributes:
        content: The JSON, in ASCII.
    """

    content: bytes

    def document(self) -> Any:
        """What it says."""
        return json.loads(self.content)


@dataclass(frozen=True)
class Task:
    """What a worker is to do.

    Attributes:
        name: Which of `TASKS`.
        dataset: The dataset that it is about; None if it is about none, or about several.
        actor: Who asked for it.
        options: What the task needs beside that, as plain values.
        encoded: Whether the result is wanted as `EncodedJson`.
    """

    name: str
    dataset: str | None
    actor: Actor
    options: Mapping[str, Any] = field(default_factory=dict)
    encoded: bool = False

    @property
    def key(self) -> str | None:
        """What makes a repeated request the same one; None if it has no such key."""
        found = self.options.get("key")
        return found if isinstance(found, str) else None

    def message(self) -> dict[str, Any]:
        """The task as plain values."""
        return {
            "name": self.name,
            "dataset": self.dataset,
            "actor": {**vars(self.actor)},
            "options": dict(self.options),
            "encoded": self.encoded,
        }

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> "Task":
        """The task that was sent."""
        return cls(**{**message, "actor": Actor(**message["actor"])})


Work = Callable[["WorkerHost", Task], Any]
TASKS: dict[str, Work] = {}


def task(name: str) -> Callable[[Work], Work]:
    """Register a function as the one that does the task ``name``."""

    def register(work: Work) -> Work:
        if TASKS.setdefault(name, work) is not work:
            raise ValueError(f"task {name!r} is registered twice")
        return work

    return register
