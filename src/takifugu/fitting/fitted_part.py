"""Which rows a prior is fitted on, so that others are left to be protected."""

from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from fractions import Fraction

from takifugu._core.exact import exactly, shown
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import UnsoundRequest
from takifugu.priors import FittedRows
from takifugu.tables.engine import Engine
from takifugu.tables.scope import Scope, Share, fitted_rows


@dataclass(frozen=True)
class FirstDays:
    """Fit on the first days, protect the rest: the paper fits on 400 of 500 days.

    Days are days of the calendar in the declared zone, and the first is that of the first row.
    Where the order is a plain number, a day is one unit from the first number on.
    """

    days: int

    def __post_init__(self) -> None:
        if isinstance(self.days, bool) or not isinstance(self.days, int) or self.days < 1:
            raise InvalidQuery("days", given=f"is {self.days!r}", needed="be a whole number, ≥ 1")


@dataclass(frozen=True)
class ByEntity:
    """Fit on a share of the entities, protect the others; who is in it depends on a hash alone.

    Attributes:
        share: How large a share of the entities to fit on, about.
        salt: Any public text; another salt deals the entities out anew.
    """

    share: Fraction
    salt: str = "takifugu"

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise InvalidQuery(
                "share", given=f"is {shown(self.share)}", needed="be between 0 and 1"
            )


Split = FirstDays | ByEntity | None  # None fits on all rows, and none is left


def parts(engine: Engine, split: Split, scope: Scope) -> tuple[Scope, Scope | None]:
    """The rows to fit on, and those that are kept apart."""
    match split:
        case None:
            return scope, None
        case FirstDays() if engine.declaration.order.absent:
            raise InvalidQuery(
                "first days",
                given="are of a table without an order, one row for each entity",
                needed="be a share of the entities instead: share = '1/5' (--share 1/5)",
                reason="no order",
            )
        case FirstDays(days):
            cut = _days_after(engine.span(scope)[0], days)
            return replace(scope, end=cut), replace(scope, start=cut)
        case ByEntity(share, salt):
            if scope.entities is not None:
                raise InvalidQuery(
                    "scope, entities", given="is given", needed="be left out of a split by entity"
                )
            train, test = Share(salt, Fraction(0), share), Share(salt, share, Fraction(1))
            return replace(scope, entities=train), replace(scope, entities=test)


def rows_of(engine: Engine, train: Scope, split: Split) -> FittedRows:
    """The rows of ``train`` as a published policy names them."""
    rows = fitted_rows(engine.declaration, train)
    return replace(rows, days=split.days) if isinstance(split, FirstDays) else rows


def share_of_entities(given: Fraction | float | str) -> Fraction:
    """A share by its digits: 0.2 is a fifth."""
    try:
        return exactly(str(given), "share")
    except UnsoundRequest:
        raise InvalidQuery(
            "share", given=f"is {given!r:.40}", needed="be between 0 and 1, as 0.2 or '1/5'"
        ) from None


def _days_after(first: datetime | float, days: int) -> datetime | float:
    if not isinstance(first, datetime):
        return first + days
    try:
        return datetime.combine(first.date(), time()) + timedelta(days=days)
    except OverflowError:
        raise InvalidQuery(
            "days", given=f"is {days}", needed="end before the last day of the calendar"
        ) from None
