"""Children of a warm process, each of which runs many cases; one that dies or hangs is replaced.

The parent has imported everything and opened nothing. A child tells what it begins and what became
of it over a pipe, so that the parent knows which case a lost child was at.
"""

import os
import pickle
import select
import shutil
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from torture.inputs.case import Case, Outcome
from torture.inputs.running import STARVED, Runner
from torture.inputs.workplace import Workplace

SLACK = 15.0  # seconds beyond the alarm until a child that does not answer is ended
Numbered = tuple[int, Case]
Make = Callable[[Workplace], Runner]


@dataclass(frozen=True)
class Ran:
    """A case that was run."""

    number: int
    case: Case
    outcome: Outcome


def run_cases(
    cases: Sequence[Numbered],
    template: Path,
    scratch: Path,
    make: Make = Runner,
    over: Callable[[], bool] = lambda: False,
) -> Iterator[Ran]:
    """Run cases in children, in order, until ``over``; a child that is lost costs one case."""
    waiting = list(cases)
    while waiting and not over():
        child = _Child(waiting, template, scratch, make)
        try:
            for outcome in child.outcomes():
                number, case = waiting.pop(0)
                yield Ran(number, case, outcome)
                if over():
                    return
        finally:
            child.end()
        if child.lost and waiting:
            number, case = waiting.pop(0)
            wrong = (child.lost,)
            yield Ran(number, case, Outcome(case.surface, False, "lost", 0, 0, case.size, wrong))


class _Child:
    """One child, from its start to its end.

    Attributes:
        lost: Why it did not come to its end; empty if it did.
    """

    def __init__(
        self, cases: Sequence[Numbered], template: Path, scratch: Path, make: Make
    ) -> None:
        self.lost = ""
        self._place = scratch / f"child-{os.getpid()}-{id(self):x}"
        reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = os.fork()
        if not self._process:
            os.close(reading)
            _live(cases, template, self._place, os.fdopen(writing, "wb"), make)
        os.close(writing)
        self._pipe = os.fdopen(reading, "rb", buffering=0)  # so that select knows

    def outcomes(self) -> Iterator[Outcome]:
        """What it tells, until its end; sets `lost` if that comes too early."""
        limit = SLACK + 60  # the first message comes after the study was copied
        while True:
            ready, _, _ = select.select([self._pipe], [], [], limit)
            if not ready:
                self.lost = "hangs, and cannot be interrupted"
                return
            found = _read(self._pipe)
            if found is None:
                _, status = os.waitpid(self._process, 0)
                self._process = 0
                self.lost = f"ended the process: {_ending(status)}"
                return
            if found == "end":
                return
            if isinstance(found, float):
                limit = STARVED * found + SLACK
            else:
                yield found

    def end(self) -> None:
        """End it and remove what it has left."""
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
            self._process = 0
        self._pipe.close()
        shutil.rmtree(self._place, ignore_errors=True)


def _live(
    cases: Sequence[Numbered], template: Path, place: Path, pipe: IO[bytes], make: Make
) -> None:
    """The life of a child; it does not return."""
    try:
        os.setsid()
        runner = make(Workplace(template, place))
        for _, case in cases:
            _write(pipe, runner.seconds)
            _write(pipe, runner.run(case))
        _write(pipe, "end")
    except BaseException:  # noqa: BLE001 - a fault of ours, which must be seen
        os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        os._exit(70)
    os._exit(0)


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return signal.Signals(os.WTERMSIG(status)).name
    return f"status {os.waitstatus_to_exitcode(status)}"


def _write(pipe: IO[bytes], what: Any) -> None:
    data = pickle.dumps(what)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def _read(pipe: IO[bytes]) -> Any:
    head = _exactly(pipe, 8)
    data = _exactly(pipe, struct.unpack("<Q", head)[0]) if head else b""
    return pickle.loads(data) if data else None  # noqa: S301 - our own child wrote it


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    """So many bytes; none if the pipe ends before."""
    found = b""
    while len(found) < size:
        more = pipe.read(size - len(found))
        if not more:
            return b""
        found += more
    return found
