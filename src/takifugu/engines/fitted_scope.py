"""Which rows a prior was fitted on, as values that outlive the engine: see `FittedRows`."""

from dataclasses import replace
from datetime import datetime
from pathlib import PurePath
from zoneinfo import ZoneInfo

from takifugu.engines.declarations.columns import Order, Source
from takifugu.engines.declarations.declaration import Declaration
from takifugu.engines.scope import Moment, Scope, as_moment
from takifugu.priors import FittedRows


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
    found = as_moment(moment, "end")
    if found.tzinfo is not None:
        found = found.astimezone(ZoneInfo(str(order.zone))).replace(tzinfo=None)
    return found.replace(fold=0)


def table_name(source: Source) -> str:
    """A table by the names it has, without the folder or the server that it is on."""
    file = None if source.path is None else PurePath(source.path).name
    return " ".join(part for part in (source.kind, file, source.table) if part)
