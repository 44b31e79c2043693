"""Which rows a query reads, for the engine and for the ledger alike.

The ledger adds up losses on the cells that a charge names, so a row that the engine reads must lie
in one of them. Both get the same bounds. A local time that a change of clocks skips or repeats is
refused: only for the others is the order of local times that of instants, whichever of the two the
database keeps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from itertools import product
from math import prod
from zoneinfo import ZoneInfo

from takifugu.engines import Declaration, InvalidQuery, Order, Scope
from takifugu.errors import TooLarge, one_of
from takifugu.ledger import Groups, Window
from takifugu.priors import Name

Bound = datetime | date | str | int | None
MOST_GROUPS = 10_000  # of one charge


@dataclass(frozen=True)
class Rows:
    """The rows of a query: for the engine, and as the cells that are charged.

    Attributes:
        scope: What the engine reads.
        window: The times that are charged; None for all.
        groups: The public groups that are charged; None for all.
    """

    scope: Scope
    window: Window | None
    groups: Groups | None


def rows_of(
    declaration: Declaration,
    window: tuple[Bound, Bound] | None,
    where: Mapping[str, Sequence[Name]] | None,
) -> Rows:
    """The rows in [start, end) whose public columns hold the keys in ``where``."""
    start, end = window or (None, None)
    first = _placed(start, declaration.order, "window, start")
    last = _placed(end, declaration.order, "window, end")
    if first is not None and last is not None and not first < last:  # type: ignore[operator]
        raise InvalidQuery("window", given="ends before it begins", needed="be (start, end)")
    charged = None if first is None and last is None else Window(first, last)
    kept = {column: tuple((where or {})[column]) for column in sorted(where or {})}
    scope = Scope(start=first, end=last, where=kept)
    return Rows(scope, charged, _groups(declaration, kept))


def _groups(declaration: Declaration, where: Mapping[str, Sequence[Name]]) -> Groups | None:
    if not where:
        return None
    public = [column.column for column in declaration.public]
    for column in where:
        if column not in public:
            raise InvalidQuery(
                f"where, {column}",
                given="is not a public column",
                needed=f"{one_of(public) if public else 'be left out: no column is public'};"
                " rows may not be chosen by what is protected",
            )
    many = prod(len(keys) for keys in where.values())
    if many > MOST_GROUPS:
        raise TooLarge(
            f"`where` names more than {MOST_GROUPS:,} groups; leave a column out of it and use"
            " `by`, which costs the same",
            field="where",
            size=many,
            limit=MOST_GROUPS,
        )
    return Groups(where, product(*where.values()))


def _placed(bound: Bound, order: Order, name: str) -> int | datetime | None:
    """A bound as a whole step, or as the instant of a local time that happens exactly once."""
    if bound is None:
        return None
    if order.kind == "number":
        if isinstance(bound, bool) or not isinstance(bound, int):
            raise InvalidQuery(
                name, given="is not a whole number", needed="be one, as the order is"
            )
        return bound
    zone = ZoneInfo(str(order.zone))
    found = _moment(bound, name)
    local = found.replace(tzinfo=zone, fold=0) if found.tzinfo is None else found.astimezone(zone)
    if local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset():  # PEP 495
        raise InvalidQuery(
            name,
            given=f"is {local.replace(tzinfo=None).isoformat(' ')} in {order.zone}, when clocks"
            " change: that hour is skipped or happens twice",
            needed="be before or after that hour",
        )
    return local.astimezone(UTC)


def _moment(bound: Bound, name: str) -> datetime:
    needed = "be a day or a time, as '2012-04-03T18:00'"
    if isinstance(bound, str):
        try:
            return datetime.fromisoformat(bound)
        except ValueError:
            raise InvalidQuery(name, given=f"is {bound!r}", needed=needed) from None
    if isinstance(bound, datetime):
        return bound
    if isinstance(bound, date):
        return datetime.combine(bound, time())
    raise InvalidQuery(name, given="is a number", needed=needed)
