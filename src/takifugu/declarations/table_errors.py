"""What can go wrong between a declaration and its data.

* Malformed
  x InvalidDeclaration    the declaration has no meaning, or does not fit the data
  x InvalidQuery          the query names something that was not declared
* TakifuguError
  x DatabaseFailed        the database gave up; what it said is not repeated
  x DriverMissing         the package that speaks to this database is not installed

A database puts the value that it stumbled over into its message. So none of its messages is
passed on, nor kept as the cause of ours: only the kind of trouble is.

A traceback holds the frames that it went through, and they hold all that was counted: a debugger,
a notebook or a log with local variables would show it. Dropping the frames when an error is caught
is not enough, since an interrupt may come at any line, twice, and one of them while the other is
being caught. Python raises interrupts in the main thread only. So exact values live in a thread of
their own (`run_isolated`), all of whose errors end there; the caller waits, and has nothing in its
frames.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import TypeVar

from takifugu.errors import Malformed, TakifuguError

Result = TypeVar("Result")


class InvalidDeclaration(Malformed):
    """A declaration cannot be understood, or does not fit the data that it declares."""


class InvalidQuery(Malformed):
    """A query names a column, a key or a time that was not declared."""


class DatabaseFailed(TakifuguError):
    """The database could not answer; its own message may hold data and is left out."""

    def __init__(
        self, place: str, *, doing: str, trouble: str, advice: str, reason: str = ""
    ) -> None:
        super().__init__(f"{place} could not be {doing} ({trouble}); {advice}", reason=reason)
        self.place, self.doing, self.trouble = place, doing, trouble


class DriverMissing(TakifuguError):
    """A package that is needed for this kind of source or table is not installed.

    Attributes:
        package: The package.
        extra: The extra of takifugu that installs it; empty if none does.
    """

    def __init__(self, package: str, *, purpose: str, extra: str = "") -> None:
        install = f"'takifugu[{extra}]'" if extra else package
        super().__init__(f"{purpose} needs the package {package}: pip install {install}")
        self.package, self.extra = package, extra


def without_values(work: Callable[[], Result], place: str, *, doing: str, advice: str) -> Result:
    """Do ``work``; whatever a driver raises becomes one line that holds no value from the data."""
    try:
        return work()
    except TakifuguError:
        raise
    except Exception as error:  # noqa: BLE001 - drivers share no base class; the kind is reported
        trouble = type(error).__name__
    # outside the handler, so that the driver's message is not kept as context
    raise DatabaseFailed(place, doing=doing, trouble=trouble, advice=advice)


@contextmanager
def driver(package: str, *, purpose: str, extra: str = "") -> Iterator[None]:
    """Turn a failed import of a driver into one line that says what to install."""
    try:
        yield
    except ModuleNotFoundError:
        raise DriverMissing(package, purpose=purpose, extra=extra) from None


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
