"""The cells that a query reads, and what of a declaration names a cell.

The ledger adds up losses on the cells that a charge names, so a row that the engine reads must lie
in one of them. Both get the same bounds (`rows_of`). A local time that a change of clocks skips or
repeats is refused: only for the others is the order of local times that of instants, whichever of
the two the database keeps.

A part of a declaration names cells (`cells_of`) if an edit of it could make the same row answer to
another name: the ledger would then count two losses of that row on two cells. Lists count as sets,
since their order names nothing; texts count letter by letter, since 1 and "1", or two spellings of
one letter, may name different rows. Titles, and columns that the account is not about, are left
out.

Bounds and steps name no rows, but numbers: what was counted as 2 is another thing in other steps.
So does a prior whose states are only numbered: its state 1 need not be the label 1. Both are
recorded beside the rest (`values_read`), for costs by value are about them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from takifugu._core.atomic import real_path
from takifugu._core.fingerprint import fingerprint
from takifugu.binding.protected_values import Values
from takifugu.declarations import Amount, Category, Declaration, InvalidQuery, Order
from takifugu.declarations.columns import FROM_THE_FITTED_ROWS, FittedLabels
from takifugu.declarations.declaration import ORDER_IS_PUBLIC
from takifugu.errors import TooLarge, one_of
from takifugu.ledger import Cells, Groups, Window
from takifugu.priors import Name
from takifugu.session.query_options import Bound
from takifugu.tables import Engine, Scope


def cells_of(
    engine: Engine, columns: tuple[str, ...], home: Path | None, values: Values | None = None
) -> Cells:
    """What names the cells of ``columns`` in a table; paths count from ``home`` where they can.

    ``values`` are what the priors know of the columns; None if there are no priors.
    """
    declaration = engine.declaration
    order = declaration.order
    reading, format_ = declaration.source.reading, order.format
    return Cells.of(
        {
            "source": source_of(declaration, home),
            "entity": declaration.entity,
            "order": {
                "column": order.column,
                "kind": order.kind,
                "zone": order.zone,
                "ties": list(order.ties),
                "clock": engine.clock,
                **({} if format_ is None else {"format": format_}),
            },
            **({"reading": reading} if reading else {}),
            "public": {c.column: _labels(c) for c in declaration.public},
            **protected_cells(declaration, columns, values).parts,
        },
        values_read(declaration, columns, values),
    )


def protected_cells(
    declaration: Declaration, columns: tuple[str, ...], values: Values | None
) -> Cells:
    """What `cells_of` says of the protected columns: it needs no open table."""
    protected = {
        column.column: _numbers(column) if isinstance(column, Amount) else _labels(column)
        for column in declaration.protected
        if column.column in columns
    }
    return Cells.of({"protected": protected}, values_read(declaration, columns, values))


def values_read(
    declaration: Declaration, columns: tuple[str, ...], values: Values | None
) -> dict[str, Any]:
    """What else decides which raw cells a value of a column stands for, by column."""
    found: dict[str, Any] = {}
    for column in declaration.protected:
        if column.column not in columns:
            continue
        parts: dict[str, Any] = {}
        if isinstance(column, Amount):
            bounds = [str(column.low), str(column.high)]
            parts |= {"bounds": bounds, "step": str(column.step)}
        if values is not None and not values[column.column].by_name:
            parts["states"] = "not known by name"
        if parts:
            found[column.column] = parts
    return found


def declared(declaration: Declaration) -> str:
    """The fingerprint of how rows are read: under another one an answer has other keys."""
    read = (declaration.entity, declaration.order, declaration.protected, declaration.public)
    reading = declaration.source.reading
    return fingerprint(("declared", read, reading) if reading else ("declared", read))


def source_of(declaration: Declaration, home: Path | None) -> dict[str, Any]:
    """Where the rows are. Files count by their path from ``home``, so that a project may be moved.

    What is in them does not count: rows are added every day. A pattern counts as it is written.
    """
    source = declaration.source
    found: dict[str, Any] = {"kind": source.kind}
    if source.path is not None:
        whole = os.path.normpath(real_path(declaration.folder) / source.path)
        base = None if home is None else real_path(home)
        inside = base is not None and Path(whole).is_relative_to(base)
        found["path"] = Path(os.path.relpath(whole, base)).as_posix() if inside else whole
    if source.table is not None:
        found["table"] = source.table
    if source.url is not None:
        found["url"] = source.url
    return found


def _labels(column: Category) -> dict[str, Any]:
    if column.values is None:
        if isinstance(column, FittedLabels):  # no prior is there yet, and nothing is charged
            return {"values": FROM_THE_FITTED_ROWS, "other": column.other}
        return {"values": "from the data", "outside": column.outside}
    found: dict[str, Any] = {
        "values": sorted(column.values, key=_typed),
        "outside": column.outside,
    }
    if column.outside == "other":
        found["other"] = column.other
    if column.labels:  # stable: of "1" and "01" for a column of numbers the later one counts
        found["labels"] = [list(pair) for pair in sorted(column.labels, key=lambda p: _plain(p[0]))]
    return found


def _typed(value: Name) -> tuple[str, str]:
    return type(value).__name__, str(value)


def _plain(raw: Name) -> str:
    text = str(raw)
    return str(int(text)) if text.isascii() and text.removeprefix("-").isdigit() else text


def _numbers(column: Amount) -> Mapping[str, Any]:
    """Not the bounds and the step, which name no rows: see `values_read`."""
    missing = column.missing
    return {"missing": str(missing) if isinstance(missing, Fraction) else missing}


MAX_CHARGED_GROUPS = 10_000  # of one charge


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


def refuse_order(field: str, column: str, declaration: Declaration) -> None:
    """Raise if ``column`` is the order, which is asked about in other ways than a public column."""
    if column == declaration.order.column:
        raise InvalidQuery(
            field, given="is the order", needed=f"be left out: {ORDER_IS_PUBLIC}", reason="order"
        )


def _groups(declaration: Declaration, where: Mapping[str, Sequence[Name]]) -> Groups | None:
    if not where:
        return None
    public = [column.column for column in declaration.public]
    for column in where:
        if column not in public:
            refuse_order(f"where, {column}", column, declaration)
            raise InvalidQuery(
                f"where, {column}",
                given="is not a public column",
                needed=(one_of(public, column) if public else "be left out: no column is public")
                + "; rows may not be chosen by what is protected",
            )
    many = prod(len(keys) for keys in where.values())
    if many > MAX_CHARGED_GROUPS:
        raise TooLarge(
            f"`where` names more than {MAX_CHARGED_GROUPS:,} groups; leave a column out of it and"
            " use `by`, which costs the same",
            field="where",
            size=many,
            limit=MAX_CHARGED_GROUPS,
        )
    return Groups(where, product(*where.values()))


def _placed(bound: Bound, order: Order, name: str) -> int | datetime | None:
    """A bound as a whole step, or as the instant of a local time that happens exactly once."""
    if bound is None:
        return None
    if order.absent:
        raise InvalidQuery(
            name,
            given="is given, and the table has no order",
            needed="be left out",
            reason="no order",
        )
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
