"""Run one case in this process, under limits, and judge it."""

import contextlib
import io
import logging
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from takifugu._core import atomic as _atomic
from takifugu.cli import main
from takifugu.cli.exit_status import DONE, FAILED
from takifugu.errors import TakifuguError
from takifugu.session.releases import STAYS_CHARGED
from torture.inputs.case import Case, Outcome, is_hang
from torture.inputs.effects import Done, Effect, effect_of
from torture.inputs.judging import (
    Said,
    chain_text,
    left_behind,
    same_database,
    told,
    wrong_words,
)
from torture.inputs.overheard import Descriptors, Heard
from torture.inputs.readers import READERS
from torture.inputs.workplace import Workplace

SECONDS = 10.0
MACHINE = 30.0  # seconds more where a command is told to start Spark, whose work is not seen here
STARVED = 12.0
IDLE = 0.02  # of the time: a process that works less waits for something
GROWTH = 1 << 30
ROOM = 1 << 28  # above `GROWTH`, until memory is refused
PATIENCE = 0.05  # seconds for a pipe that nobody writes to


_GIVEN = re.compile(r"`[^`]*`|'[^']*'|\"[^\"]*\"|[-+.\d]+|\S*[./\\]\S*")


class Hung(BaseException):
    """It took too long."""


@dataclass
class Runner:
    """Runs cases in a workplace.

    Attributes:
        place: Where.
        main: The command line.
        seconds: How long a case may take.
        growth: Bytes by which memory may grow.
    """

    place: Workplace
    main: Callable[[], None] = main
    seconds: float = SECONDS
    growth: int = GROWTH
    _heard: Heard = field(default_factory=Heard)
    _beside: Descriptors = field(default_factory=Descriptors)
    _bases: dict[tuple[str, ...], list[Done]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _atomic.PIPE_TIMEOUT = PATIENCE
        logging.lastResort = None
        os.chdir(self.place.folder)

    def run(self, case: Case) -> Outcome:
        """Run a case and put everything right after it."""
        self.place.put(case.files)
        before = self.place.facts()
        limit_memory(self.growth)
        base, began, worked = reset_peak(), time.perf_counter(), time.process_time()
        wrong, said = self._tried(case)
        seconds, growth = time.perf_counter() - began, max(0, peak() - base)
        work = time.process_time() - worked
        if growth > self.growth:
            wrong.append(f"memory grew by {growth >> 20} MiB")
        changed = self.place.changed(before, self.place.facts())
        put = {
            name: one.content for name, one in case.files.items() if one.kind in ("bytes", "locked")
        }
        really = [name for name in changed if not self._only_opened(name, put)]
        if STAYS_CHARGED in said.err:  # the ledger has changed, and the message says so
            really = [name for name in really if not name.endswith(".ledger")]
        if not any(map(is_hang, wrong)):  # what an interruption leaves is not the command's doing
            wrong += left_behind(said.status, really)
        places: list[tuple[str, str | bytes]] = [
            ("its output", said.out),
            ("its message", said.err),
            ("the log", said.log),
            ("what it wrote past Python's streams", said.beside),
            ("the error and what it came from", chain_text(said.error)),
        ]
        places += [(f"the file {name}", self.place.contents(name)) for name in changed]
        places += [("the name of a file", "\n".join(changed))]
        wrong += told(case, places)
        done = self._done(said, changed) if case.ignored else None
        self.place.put_right()
        effect = "seen"
        if done is not None and not wrong and not said.status:
            effect = self._effect(case, done)
        if effect == "none":
            wrong.append(f"{case.ignored} is ignored: nothing is different with it")
        return Outcome(
            surface=case.surface,
            accepted=said.status in (DONE, FAILED),
            reached=_reached(said),
            seconds=seconds,
            growth=growth,
            size=case.size,
            wrong=tuple(wrong),
            work=work,
            unjudged=case.ignored if effect == "unknown" else "",
        )

    def _only_opened(self, name: str, put: Mapping[str, bytes]) -> bool:
        before = put.get(name, self.place.kept.get(name, b""))
        return same_database(before, self.place.contents(name))

    def _tried(self, case: Case) -> tuple[list[str], Said]:
        out, err = io.StringIO(), io.StringIO()
        error: BaseException | None = None
        wrong: list[str] = []
        status = 0
        seconds = self.seconds + MACHINE * any("spark" in word.lower() for word in case.words)
        self._heard.listen()
        try:
            with (
                self._beside.kept(),
                _limits(seconds),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                status, error = self._called(case)
        except Hung:
            wrong.append(f"hangs for {seconds:g} s: {_where()}")
            status = 2
        except BaseException as escaped:  # noqa: BLE001 - what is looked for
            kind = type(escaped).__name__
            wrong.append(f"{kind} escaped: {_last(escaped)}")
            status = 2
        said = Said(
            *(status, out.getvalue(), err.getvalue(), error),
            *(self._heard.taken(), self._beside.taken()),
        )
        if not wrong and not case.reader:
            wrong = wrong_words(case, said)
        return wrong, said

    def _called(self, case: Case) -> tuple[int, BaseException | None]:
        if case.reader:
            try:
                READERS[case.reader](self.place.folder)
            except TakifuguError as error:
                return 2, error
            return 0, None
        sys.argv, sys.stdin = ["takifugu", *case.words], io.StringIO()
        try:
            self.main()
        except SystemExit as stop:
            code = stop.code or 0
            return (code if isinstance(code, int) else 99), stop.__cause__
        return 0, None

    def _done(self, said: Said, changed: list[str]) -> Done:
        """All that a command has said and written."""
        files = {name: self.place.contents(name) for name in changed}
        return Done(f"{said.out}\n{said.err}", files)

    def _effect(self, case: Case, done: Done) -> Effect:
        """What the option changed, although its value means nothing."""
        if case.base not in self._bases:
            self._bases[case.base] = [self._without(case) for _ in range(2)]
        return effect_of(done, *self._bases[case.base])

    def _without(self, case: Case) -> Done:
        before = self.place.facts()
        _, said = self._tried(Case(case.surface, case.base))
        done = self._done(said, self.place.changed(before, self.place.facts()))
        self.place.put_right()
        return done


@contextlib.contextmanager
def _limits(seconds: float) -> Iterator[None]:
    """Raise `Hung` in the block after so many seconds of work, or of waiting without any.

    On a busy machine a process that works gets less than a second for a second; it may take
    `STARVED` times as long.
    """
    began, worked = time.monotonic(), time.process_time()

    def hung(_: int, frame: Any) -> None:
        work, whole = time.process_time() - worked, time.monotonic() - began
        if IDLE * whole < work < seconds and whole < STARVED * seconds:
            return
        _FRAME[:] = [f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"] if frame else []
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


_FRAME: list[str] = []


def _where() -> str:
    return _FRAME[0] if _FRAME else "in C"


def _last(error: BaseException) -> str:
    """Where an error came from, without its words."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [one for one in frames if "takifugu" in one.filename] or list(frames)
    shown = own[-1] if own else None
    place = f"{Path(shown.filename).name}:{shown.lineno}" if shown else "nowhere"
    return f"{place} {str(error)[:160]!r}"


def _reached(said: Said) -> str:
    """The status, the kind of error and its words, without names, numbers and what was given."""
    kind = "" if said.error is None else type(said.error).__name__
    words = _GIVEN.sub("#", said.err) if said.status else ""
    return f"{said.status} {kind} {words[:100]}".strip()


def limit_memory(growth: int = GROWTH) -> None:
    """Refuse this process memory beyond what it has now, ``growth`` and some room."""
    soft = _status("VmData") + growth + ROOM
    resource.setrlimit(resource.RLIMIT_DATA, (soft, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def reset_peak() -> int:
    """Forget the peak of memory; what is used now."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return peak()
    return _status("VmRSS")


def peak() -> int:
    """The most memory since the last `reset_peak`, in bytes."""
    return _status("VmHWM")


def _status(name: str, process: str = "self") -> int:
    with open(f"/proc/{process}/status") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) << 10
    return 0
