"""Processes that are ended by SIGKILL at a moment of our choosing, and what they said before.

A child says what it does on a pipe, one line of JSON for each thing, and only after it was done:
what the parent has read is what was acknowledged. Three ways to choose the moment:

* ``delay``: the parent ends it a random time after it was started, or after its first charge;
* ``call``: the child ends itself at its n-th call or return of a Python or C function;
* ``syscall``: a tracer ends it before or after its n-th call to the kernel that may change
  something: every write, sync, lock, rename of SQLite, every message to a server (`syscalls`).
"""

import contextlib
import gc
import json
import os
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from torture.kills import syscalls

PATIENCE = 300.0  # seconds for a child to do its first thing, to be struck, or to come to its end
Note = list[Any]


class Notes:
    """Where a child says what it has done; nowhere if there is no handle."""

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    def __call__(self, *what: Any) -> None:
        """Say one thing: at once, and whole or not at all."""
        line = json.dumps(what, default=str).encode() + b"\n"
        if len(line) > select.PIPE_BUF:
            raise ValueError("what is said must fit into a pipe at once")
        if self._handle is not None:
            os.write(self._handle, line)


Job = Callable[[Notes], None]


@dataclass(frozen=True)
class Strike:
    """When a child is killed.

    Attributes:
        kind: One of "delay", "call", "syscall"; "none" for one that ends by itself.
        amount: Seconds, or a number of calls.
        first: Of a delay: whether it begins with the first thing that was done, and not at once.
    """

    kind: str
    amount: float = 0.0
    first: bool = False


def random_strike(rng: np.random.Generator, *, calls: int, kernel: int) -> Strike:
    """A moment at random; ``calls`` and ``kernel`` are about as many as a job makes in a while."""
    kind = rng.choice(["delay", "call", "syscall"], p=[0.6, 0.2, 0.2])
    if kind == "syscall" and syscalls.missing() is None:
        return Strike("syscall", int(rng.integers(1, kernel)))
    if kind == "call":
        return Strike("call", int(rng.integers(1, calls)))
    return Strike("delay", float(rng.uniform(0, 0.04)), first=bool(rng.random() < 0.8))


@dataclass
class Child:
    """One process: what it said, and how it ended.

    Attributes:
        name: What it was to do.
        strike: When it is killed.
        notes: What it said.
        killed: Whether it was killed before it came to its end.
    """

    name: str
    strike: Strike
    pid: int
    handle: int
    notes: list[Note] = field(default_factory=list)
    killed: bool = False
    due: float = 0.0
    begun: bool = False
    _rest: bytes = b""

    def read(self) -> bool:
        """Take what it has said; whether it may say more."""
        content = os.read(self.handle, 1 << 16)
        *lines, self._rest = (self._rest + content).split(b"\n")
        self.notes += [json.loads(line) for line in lines]
        if self.strike.first and not self.begun and any(note[0] != "now" for note in self.notes):
            self.begun, self.due = True, time.monotonic() + self.strike.amount
        return bool(content)

    def said(self, kind: str) -> list[Note]:
        """What it said of one kind."""
        return [note for note in self.notes if note[0] == kind]

    @property
    def moment(self) -> str:
        """What it was about to do when it ended."""
        return str(next((note[1] for note in reversed(self.notes) if note[0] == "now"), "start"))


def _behave(job: Job, notes: Notes, strike: Strike) -> None:
    """The life of a child: it never returns to the code of its parent."""
    status = 1
    try:
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if strike.kind == "call":
            _strike_at(int(strike.amount), notes)
        job(notes)
        status = 0
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent is told
        sys.setprofile(None)
        reason = getattr(error, "reason", "")
        notes("trouble", type(error).__name__, reason, str(error)[:1500], where(error))
    finally:
        os._exit(status)


def where(error: BaseException) -> str:
    """The last places of a traceback, without values."""
    places, trace = [], error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{os.path.basename(code.co_filename)}:{trace.tb_lineno} {code.co_name}")
        trace = trace.tb_next
    return " < ".join(reversed(places[-6:]))


def _strike_at(calls: int, notes: Notes) -> None:
    """Kill this process at its n-th call or return."""
    left = calls

    def profile(frame: Any, event: str, what: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            name = getattr(what, "__name__", frame.f_code.co_name)
            notes("struck", "call", f"{event} {name}")
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(profile)


def start(name: str, job: Job, strike: Strike) -> Child:
    """A child that does ``job``; under a tracer if it is to be killed at a call to the kernel."""
    ours, theirs = os.pipe()
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        notes = Notes(theirs)
        if strike.kind == "syscall":
            syscalls.trace(lambda: _behave(job, notes, strike), int(strike.amount), notes)
        _behave(job, notes, strike)
    os.close(theirs)
    at_once = strike.kind == "delay" and not strike.first
    due = time.monotonic() + (strike.amount if at_once else PATIENCE)
    return Child(name, strike, pid, ours, due=due, begun=at_once)


def storm(jobs: Iterable[tuple[str, Job, Strike]], at_once: int) -> Iterator[Child]:
    """Run children, so many at once, kill each at its moment, and give each once it is dead."""
    waiting, living = iter(jobs), list[Child]()
    more = True
    try:
        while more or living:
            while more and len(living) < at_once:
                one = next(waiting, None)
                more = one is not None
                if one is not None:
                    living.append(start(*one))
            for child in _turn(living):
                living.remove(child)
                yield child
    finally:
        for child in living:
            _end(child)


def _turn(living: list[Child]) -> list[Child]:
    """Read and kill what is due; the children that have ended."""
    now = time.monotonic()
    due = min((child.due for child in living), default=now)
    handles = [child.handle for child in living]
    readable, _, _ = select.select(handles, [], [], min(1.0, max(0.0, due - now)))
    ended = []
    for child in living:
        if child.handle in readable and not child.read():
            ended.append(child)
        elif time.monotonic() >= child.due:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            while child.read():
                pass
            if not child.begun:
                child.notes.append(["trouble", "Hang", "", "it had not ended", ""])
            ended.append(child)
    for child in ended:
        _reap(child)
    return ended


def _reap(child: Child) -> None:
    os.close(child.handle)
    _, status = os.waitpid(child.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    child.killed = code in (-signal.SIGKILL, syscalls.STRUCK)
    if code < 0 and not child.killed:
        child.notes.append(["trouble", "Signal", signal.Signals(-code).name, "it crashed", ""])


def _end(child: Child) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGKILL)
    _reap(child)


def alone(job: Job, *, patience: float = PATIENCE) -> Child:
    """A child that comes to its end by itself; killed, and told of, if it does not in time."""
    child = start("alone", job, Strike("none"))
    child.due = time.monotonic() + patience
    return finish(child)


def finish(child: Child) -> Child:
    """Wait for a child until it has ended, or is killed at its moment."""
    while not _turn([child]):
        pass
    return child
