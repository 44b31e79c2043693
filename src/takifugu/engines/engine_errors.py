"""What can go wrong between a declaration and its data.

* Malformed
  x InvalidDeclaration    the declaration has no meaning, or does not fit the data
  x InvalidQuery          the query names something that was not declared
* TakifuguError
  x DatabaseFailed        the database gave up; what it said is not repeated
  x DriverMissing         the package that speaks to this database is not installed

A database puts the value that it stumbled over into its message. So none of its messages is
passed on, nor kept as the cause of ours: only the kind of trouble is.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
