"""Ends that a process may find in the middle of a charge, and processes to find them in.

A crash is an exception that nothing handles, or `SIGKILL` in a process of its own. The points are
before and after each thing that makes a charge durable, and between charge, draw and record.
"""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, Literal, NoReturn
from unittest import mock

Point = Literal["begun", "written", "committed", "witnessed", "drawn", "stored", "recorded"]
CHARGING: tuple[Point, ...] = ("begun", "written", "committed", "witnessed")
POINTS: tuple[Point, ...] = (*CHARGING, "drawn", "stored", "recorded")
UNTOLD: tuple[Point, ...] = ("committed", "stored")  # what is written is not witnessed
PATIENCE = 300.0  # seconds: only what hangs takes as long


class Crash(BaseException):
    """The end of a process, as far as one exception can be it."""


def raise_crash() -> NoReturn:
    """End by an exception."""
    raise Crash


def kill_self() -> NoReturn:
    """End as by a power cut."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


@contextmanager
def crashing(point: Point | None, end: Callable[[], NoReturn] = raise_crash) -> Iterator[None]:
    """Come to an ``end`` the first time that ``point`` is reached; never, if None.

    begun and written: before and after the event is written, in its transaction. committed and
    witnessed: after the transaction, before and after the witness knows. drawn: noise is drawn and
    not recorded. stored: the answer is stored, and the witness does not know. recorded: it knows,
    and the answer is not shown.
    """
    if point is None:
        yield
        return
    owner, name, after = _place(point)
    inner = getattr(owner, name)

    def until_then(*given: Any, **named: Any) -> Any:
        if point == "stored":  # the witness is told within
            with crashing("committed", end):
                return inner(*given, **named)
        if not after:
            end()
        found = inner(*given, **named)
        if after:
            end()
        return found

    with mock.patch.object(owner, name, until_then):
        yield


def _place(point: Point) -> tuple[Any, str, bool]:
    """The function that is about the point, and whether the point is after it."""
    from takifugu.ledger import Ledger
    from takifugu.ledger.events import event_chain
    from takifugu.ledger.witnesses.head_witness import Guard
    from takifugu.session import releases

    places: dict[str, tuple[Any, str, bool]] = {
        "begun": (event_chain, "append", False),
        "written": (event_chain, "append", True),
        "committed": (Guard, "advance", False),
        "witnessed": (Guard, "advance", True),
        "drawn": (releases, "draw", True),
        "stored": (Ledger, "record_answer", False),
        "recorded": (Ledger, "record_answer", True),
    }
    return places[point]


class Elsewhere:
    """Runs things in processes of their own, forked from one that has no threads and no files."""

    def __init__(self, *modules: str) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(list(modules))

    def run(self, work: Callable[..., Any], *given: Any) -> tuple[int, list[Any]]:
        """What ``work(tell, *given)`` told before it ended, and the status that it ended with."""
        ours, theirs = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_work, args=(work, theirs, given), daemon=True)
        process.start()
        theirs.close()
        told = []
        try:
            while True:
                if not ours.poll(PATIENCE):
                    process.kill()
                    raise TimeoutError("another process hangs")
                told.append(ours.recv())
        except EOFError:
            pass
        finally:
            ours.close()
            process.join(PATIENCE)
        status = process.exitcode
        process.close()
        return -signal.SIGKILL if status is None else status, told


def _work(work: Callable[..., Any], out: Connection, given: tuple[Any, ...]) -> None:
    work(out.send, *given)
    out.close()
