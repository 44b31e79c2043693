"""Tasks: what workers do, by name; and the messages between the server and a worker.

A function that does one is registered by `task`, in a module that `TASK_MODULES` names; only
workers import these modules. It is given the worker and the task, and returns plain values: what
JSON knows, and bytes.

A message is pickled, with its length before it, since that keeps bytes, tuples and every float as
they are and is fast; but only values of Python's own plain types are written, and nothing else is
read: a pickle that names a class or a function is refused before it is looked up. So reading a
message runs no code and imports nothing, whatever it holds. The pipe is a pair of sockets without a
name: the server made it, and no process but its own worker has the other end.
"""

import asyncio
import io
import json
import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

from takifugu.server.access_rules import Actor
from takifugu.server.api.problems import WorkFailed

if TYPE_CHECKING:
    from takifugu.server.work.worker_host import WorkerHost

TASK_MODULES = ("takifugu.server.work.dataset_tasks", "takifugu.server.work.owner_tasks")
SPENT = (
    "if it was charged, what was charged stays charged; the same request with the same"
    " idempotency key takes it up again and is not charged twice"
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
        key = self.options.get("key")
        return key if isinstance(key, str) else None

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
    def from_message(cls, message: Mapping[str, Any]) -> "Task":
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


def beside(task: Task) -> str:
    """What to say of a task that may have charged something; empty if it cannot have."""
    return f"; {SPENT}" if task.key is not None else ""


class WorkerLost(WorkFailed):
    """The worker ended in the middle of a task: it was killed, or ran out of memory."""

    def __init__(self, task: Task) -> None:
        detail = "the process that worked on this ended before it was done; ask again"
        if task.key is not None:
            detail = f"{detail} with the same idempotency key: {SPENT}"
        super().__init__(503, "WorkerLost", detail, title="Worker lost", reason="worker-lost")


class WorkTimedOut(WorkFailed):
    """A task ran for longer than a task may, or its plan took more processor time than one may."""

    def __init__(self, task: Task, seconds: float, *, planning: bool = False) -> None:
        detail, reason = f"it took longer than {seconds:g} s and was ended", "work-time"
        if planning:
            reason = "plan-time"
            detail = (
                f"its plan took more than {seconds:g} s of processor time and was ended; ask for"
                " fewer groups, labels or places, or give a smaller `reference` or none; or have"
                " the owner raise `plan_time` in [server]"
            )
        detail += beside(task)
        super().__init__(503, "WorkTimedOut", detail, title="Took too long", reason=reason)


class WorkCancelled(WorkFailed):
    """A task was cancelled by the one who asked for it, or because the server stops."""

    def __init__(self, task: Task, why: str = "it was cancelled") -> None:
        detail = f"{why}{beside(task)}"
        super().__init__(409, "WorkCancelled", detail, title="Cancelled", reason="cancelled")


# --- messages ---

HEAD = struct.Struct("!Q")
MAX_MESSAGE_BYTES = 2**30  # bytes of one message: a larger one is a mistake


class NotPlain(TypeError):
    """A message holds something else than plain values."""


class _Writer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Refuse whatever is not one of the plain types, which never come here."""
        raise NotPlain(f"a message has a {type(value).__name__}; it must hold plain values only")


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Refuse every class and function."""
        raise NotPlain(f"a message names {module}.{name}; it must hold plain values only")


def packed(message: Any) -> bytes:
    """A message as it is sent.

    >>> unpacked(packed({"rows": [(1, 0.1, None)], "file": b"..."})[HEAD.size :])
    {'rows': [(1, 0.1, None)], 'file': b'...'}
    """
    content = io.BytesIO()
    content.write(bytes(HEAD.size))
    _Writer(content, protocol=5).dump(message)
    size = content.tell() - HEAD.size
    if size > MAX_MESSAGE_BYTES:
        raise NotPlain(f"a message has {size} bytes; at most {MAX_MESSAGE_BYTES} are sent")
    content.seek(0)
    content.write(HEAD.pack(size))
    return content.getvalue()


def unpacked(content: bytes) -> Any:
    """The message that was sent; `NotPlain` if it holds anything but plain values."""
    return _Reader(io.BytesIO(content)).load()


def _size(head: bytes) -> int:
    (size,) = HEAD.unpack(head)
    if size > MAX_MESSAGE_BYTES:
        raise NotPlain(f"a message has {size} bytes; at most {MAX_MESSAGE_BYTES} are read")
    return int(size)


def receive(pipe: BinaryIO) -> Any:
    """The next message, in a worker; `EOFError` if the server is gone."""
    head = pipe.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    size = _size(head)
    content = pipe.read(size)
    if len(content) < size:
        raise EOFError
    return unpacked(content)


async def receive_async(pipe: asyncio.StreamReader) -> Any:
    """The next message, in the server; `EOFError` if the worker is gone."""
    return unpacked(await pipe.readexactly(_size(await pipe.readexactly(HEAD.size))))
