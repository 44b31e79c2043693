"""Work with exact values, kept where no error of the caller can reach them.

A traceback holds the frames that it went through, and they hold all that was counted: a debugger,
a notebook or a log with local variables would show it. Dropping the frames when an error is caught
is not enough, since an interrupt may come at any line, twice, and one of them while the other is
being caught. Python raises interrupts in the main thread only. So exact values live in a thread of
their own, all of whose errors end there; the caller waits, and has nothing in its frames.
"""

from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from takifugu.errors import TakifuguError

Result = TypeVar("Result")


def run_isolated(
    work: Callable[[], Result],
    failed: Callable[[str], TakifuguError],
    *,
    stop: Callable[[], None] | None = None,
) -> Result:
    """What ``work`` returns, done in a thread of its own.

    Args:
        work: It may hold exact values while it runs; what it returns may be seen by the caller.
        failed: The error to raise, from the name of one whose message may hold values. Our own
            errors hold none and are raised as they are, without frames.
        stop: Called when the wait is interrupted, so that the work ends soon.
    """
    done, errors = list[Result](), list[TakifuguError]()
    thread = Thread(target=_do, args=(work, failed, done, errors), daemon=True)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(1.0)  # an interrupt is raised here, or a second later
    except RuntimeError:  # no thread could be started
        errors.append(failed("RuntimeError"))
    except BaseException:
        if stop is not None:
            stop()
        raise
    if done:
        return done[0]
    raise errors[0] if errors else failed("SystemError")


def _do(
    work: Callable[[], Result],
    failed: Callable[[str], TakifuguError],
    done: list[Result],
    errors: list[TakifuguError],
) -> None:
    try:
        done.append(work())
    except TakifuguError as error:  # these hold no value of the data
        bare: TakifuguError = error.with_traceback(None)
        bare.__context__ = bare.__cause__ = None
        errors.append(bare)
    except BaseException as error:  # noqa: BLE001 - whatever it is, its message may hold values
        errors.append(failed(type(error).__name__))
