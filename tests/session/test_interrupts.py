"""Whatever stops a release, and at whichever line: what was counted cannot be reached from it."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, FunctionType, ModuleType, TracebackType
from typing import Any

import numpy as np
import pytest

import takifugu
from takifugu._core.numeric import Integers
from takifugu.declarations.table_errors import run_isolated
from takifugu.errors import TakifuguError
from takifugu.mechanisms import IntegerLaplace, Mechanism, PermuteAndFlip
from takifugu.session.cells import Rows
from takifugu.session.query.counts import HistogramQuery
from takifugu.session.query.query import draw
from takifugu.session.release_errors import ReleaseFailed
from takifugu.tables.scope import EVERYTHING
from tests.raising import raises

SECRET = 86_028_157_331  # a count that nothing else is equal to, and that noise hides
STOPS = [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError]
HERE = os.path.dirname(takifugu.__file__) + os.sep
QUERY = HistogramQuery("state", (), Rows(EVERYTHING, None, None))
NOISE = IntegerLaplace(1e9)


class Still:
    """As much of an engine as is needed here."""

    interrupted = 0

    def interrupt(self) -> None:
        """Nothing to give up."""
        Still.interrupted += 1


def exact(*_: Any) -> Integers:
    counted = np.array([SECRET, SECRET])
    return counted + 0


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HistogramQuery, "exact", exact)


def reached(error: BaseException) -> bool:
    """Whether the count is in anything that the error leads to: frames, contexts, what they hold.

    >>> try:
    ...     raise KeyError(SECRET)
    ... except KeyError as error:
    ...     reached(error)
    True
    """
    seen, left = set[int](), list[Any]([error])
    while left:
        one: Any = left.pop()
        if id(one) in seen or isinstance(one, ModuleType | type):
            continue
        seen.add(id(one))
        if isinstance(one, int | np.ndarray) and np.any(np.equal(one, SECRET)):
            return True
        if isinstance(one, BaseException):
            left += [one.__traceback__, one.__context__, one.__cause__, *one.args]
        elif isinstance(one, TracebackType):
            inside = one.tb_frame.f_code.co_filename.startswith(HERE)
            left += [one.tb_next, *(one.tb_frame.f_locals.values() if inside else ())]
        elif isinstance(one, FunctionType):
            left += [cell.cell_contents for cell in one.__closure__ or ()]
        elif not isinstance(one, FrameType):
            left += gc.get_referents(one)
    return False


def stopped_at(
    line: int, stop: type[BaseException], install: Callable[[Any], None], work: Callable[[], Any]
) -> tuple[BaseException | None, bool]:
    """Raise ``stop`` before the ``line``-th line of ours that is run; what came out, and if so."""
    left = [line]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise stop
        return trace

    install(trace)
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - it is what is looked at
        return error, left[0] <= 0
    finally:
        install(None)
    return None, left[0] <= 0


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("mechanism", [NOISE, PermuteAndFlip(1e9)], ids=lambda m: str(m.kind))
@pytest.mark.parametrize("install", [sys.settrace, threading.settrace])
def test_no_line_of_the_drawing_can_be_stopped_with_the_counts_in_its_frames(
    install: Callable[[Any], None],
    mechanism: Mechanism,
    stop: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine: Any = Still()
    escaped = list[bool]()  # errors that end the thread, before the work began
    monkeypatch.setattr(threading, "excepthook", lambda a: escaped.append(reached(a.exc_value)))
    lines = 0
    for line in range(1, 500):
        error, fired = stopped_at(line, stop, install, lambda: draw(QUERY, mechanism, engine))
        if not fired:
            break
        lines += 1
        if error is not None:
            assert not reached(error), line
            assert isinstance(error, stop | ReleaseFailed)
    assert not any(escaped)
    assert lines > (5 if install is sys.settrace else 15)


def test_what_is_looked_for_would_be_found() -> None:
    """Without a thread of its own the same interrupts lead to the counts."""
    engine: Any = Still()
    found = 0
    for line in range(1, 500):
        error, fired = stopped_at(
            line, KeyboardInterrupt, sys.settrace, lambda: QUERY.draw(NOISE, engine)
        )
        if not fired:
            break
        found += error is not None and reached(error)
    assert found > 5


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """SIGINT interrupts, also if a shell that runs the tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_of_the_terminal_and_a_second_one_reach_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting = threading.Event()

    def slow(*_: Any) -> Integers:
        counted = np.array([SECRET, SECRET])
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        waiting.wait(20)
        return counted

    def again() -> None:
        signal.raise_signal(signal.SIGINT)  # while the first one is being dealt with

    monkeypatch.setattr(HistogramQuery, "exact", slow)
    engine: Any = Still()
    monkeypatch.setattr(engine, "interrupt", again)
    with pytest.raises(KeyboardInterrupt) as told:
        draw(QUERY, NOISE, engine)
    waiting.set()
    assert not reached(told.value)


@pytest.mark.usefixtures("_interruptible")
def test_an_interrupt_has_the_engine_give_up_what_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up, ended = threading.Event(), threading.Event()

    def slow(*_: Any) -> Integers:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        if given_up.wait(20):  # as a database does whose query is interrupted
            ended.set()
        raise TimeoutError

    monkeypatch.setattr(HistogramQuery, "exact", slow)
    engine: Any = Still()
    monkeypatch.setattr(engine, "interrupt", given_up.set)
    with pytest.raises(KeyboardInterrupt):
        draw(QUERY, NOISE, engine)
    assert given_up.is_set() and ended.wait(20)


def test_a_thread_that_cannot_be_started_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    with raises(ReleaseFailed, trouble="RuntimeError"):
        run_isolated(lambda: 1, ReleaseFailed)


def test_errors_of_ours_are_told_and_others_are_not() -> None:
    class Ours(TakifuguError):
        pass

    def ours() -> int:
        raise Ours("one line") from ValueError(SECRET)

    def theirs() -> int:
        raise ValueError(SECRET)

    with pytest.raises(Ours, match="one line") as told:
        run_isolated(ours, ReleaseFailed)
    assert not reached(told.value)
    with raises(ReleaseFailed, trouble="ValueError") as hidden:
        run_isolated(theirs, ReleaseFailed)
    assert not reached(hidden.value)
