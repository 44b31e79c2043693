"""Which rows a query is about, or a prior was fitted on. All of it is public.

That is: times, entities, public columns. `fitted_rows` names rows in a form that outlives the
engine (`FittedRows`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from fractions import Fraction
from math import floor
from pathlib import PurePath
from typing import Any
from zoneinfo import ZoneInfo

from takifugu._core.exact import is_finite, shown
from takifugu.declarations.columns import Order, Source
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.priors import FittedRows, Name

Moment = datetime | date | str | int | float

HEX = 16**32  # how many values an MD5 hash has


@dataclass(frozen=True)
class Share:
    """The entities whose hash falls between two points of [0, 1): the same ones every time.

    The hash is MD5 of ``salt`` followed by the entity as text, on every database. It shares out,
    it does not hide: who is in which share is public.

    Attributes:
        salt: Any public text; another salt deals the entities out anew.
        low: The first point, included.
        high: The last point, not included.
    """

    salt: str
    low: Fraction
    high: Fraction

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise InvalidQuery(
                "entities",
                given=f"are from {shown(self.low)} to {shown(self.high)}",
                needed="be a share, from 0 to 1, that is not empty",
            )

    def digits(self, point: Fraction) -> str:
        """The first hash at or after ``point``, as 32 digits; hashes compare as text."""
        return f"{-(-point.numerator * HEX // point.denominator):032x}"


@dataclass(frozen=True)
class Scope:
    """The rows that a query is about; by default all.

    Attributes:
        start: Rows at or after this; a day stands for its first moment, in the declared zone.
        end: Rows before this.
        where: For public columns, the keys to keep.
        entities: A share of the entities.
    """

    start: Moment | None = None
    end: Moment | None = None
    where: Mapping[str, Sequence[Name]] = field(default_factory=dict)
    entities: Share | None = None

    def __post_init__(self) -> None:
        for column, keys in self.where.items():
            if isinstance(keys, str) or not keys:
                raise InvalidQuery(
                    f"where, {column}",
                    given="is not a list of keys",
                    needed="list at least one key",
                )


EVERYTHING = Scope()


def place_in_order(moment: Moment, order: Order, *, zoned: bool, what: str) -> datetime | float:
    """A bound of a window as the order column has it.

    A bound without a zone is local time in the declared zone. A column of timestamps without
    zone holds local times too, so the bound becomes one; the hour that is repeated when clocks
    go back stays as ambiguous as the column has it.
    """
    if order.kind == "number":
        if isinstance(moment, bool) or not isinstance(moment, int | float) or not is_finite(moment):
            raise InvalidQuery(what, given="is not a number", needed="be a number, as the order is")
        return moment
    local = ZoneInfo(str(order.zone))
    instant = as_moment(moment, what)
    if order.kind == "time" and not zoned:
        return instant if instant.tzinfo is None else instant.astimezone(local).replace(tzinfo=None)
    aware = instant.replace(tzinfo=local) if instant.tzinfo is None else instant
    return aware.astimezone(ZoneInfo("UTC")) if order.kind == "time" else aware.timestamp()


def first_moment(seconds: Any, order: Order, *, zoned: bool) -> datetime:
    """The moment of ``seconds`` since 1970 as local time; of local clocks if not ``zoned``."""
    utc = datetime.fromtimestamp(floor(seconds), tz=ZoneInfo("UTC"))
    if order.kind == "time" and not zoned:
        return utc.replace(tzinfo=None)
    return utc.astimezone(ZoneInfo(str(order.zone))).replace(tzinfo=None)


def as_moment(moment: Moment, what: str) -> datetime:
    """A day or a time, as it was given; a day stands for its first moment."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError:
            raise InvalidQuery(
                what, given=f"is {moment!r}", needed="be a day or a time, as '2012-04-03T18:00'"
            ) from None
    if isinstance(moment, datetime):
        return moment
    if isinstance(moment, date):
        return datetime.combine(moment, time())
    raise InvalidQuery(what, given="is a number", needed="be a day or a time, as the order is")


def fitted_rows(declaration: Declaration, scope: Scope) -> FittedRows:
    """All rows that ``scope`` may hold, and maybe more, as a published policy names them.

    One limit is enough to know rows that are not among them. Where the rows that are left out
    cannot be said by a share from 0 on or by an end, all rows count as seen.
    """
    order, share = declaration.order, scope.entities
    rows = FittedRows(table_name(declaration.source), declaration.entity, order.column, order.zone)
    if share is not None and share.low == 0 and share.high < 1:
        return replace(rows, share=share.high, salt=share.salt)
    if scope.end is not None:
        return replace(rows, before=local_place(scope.end, order))
    return rows


def local_place(moment: Moment, order: Order) -> datetime | float:
    """A bound as a number, or as a time on the clocks of the declared zone."""
    if isinstance(moment, int | float) and order.kind == "number":
        return moment
    instant = as_moment(moment, "end")
    if instant.tzinfo is not None:
        instant = instant.astimezone(ZoneInfo(str(order.zone))).replace(tzinfo=None)
    return instant.replace(fold=0)


def table_name(source: Source) -> str:
    """A table by the names it has, without the folder or the server that it is on."""
    file = None if source.path is None else PurePath(source.path).name
    return " ".join(part for part in (source.kind, file, source.table) if part)
