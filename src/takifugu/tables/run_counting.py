"""Counts of runs of rows: the evidence that chains are fitted to, made where the rows are.

A run is some rows of one entity that follow one another in the declared order. As in
`takifugu.tables.expressions` values are looked up in their lists after the rows were counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Integers
from takifugu.declarations.columns import Amount, Order
from takifugu.declarations.declaration import Declaration
from takifugu.declarations.table_errors import InvalidDeclaration, InvalidQuery
from takifugu.errors import TooLarge
from takifugu.priors import Name
from takifugu.priors.labels import range_names, refuse_other_bounds
from takifugu.tables import expressions as ex
from takifugu.tables import relations as rel
from takifugu.tables.aggregates import Keys
from takifugu.tables.backends.backend import Kind
from takifugu.tables.expressions import (
    by_entity,
    by_place,
    clamped,
    flag,
    key_of,
    with_earlier,
)
from takifugu.tables.label_lookup import Lookup
from takifugu.tables.relations import Column, Relation
from takifugu.tables.scope import Scope

if TYPE_CHECKING:
    from takifugu.tables.engine import Engine

MAX_RUN_CELLS = 2**24
HOUR = 3600  # seconds
HOURS = 24  # of a day
State = Name | tuple[Name, ...]


@dataclass(frozen=True, eq=False)
class RunCounts(ByContent):
    """How many runs of rows of one entity have each sequence of states.

    Attributes:
        columns: The columns whose values a state has.
        keys: The values of each column: labels, or the names of ranges.
        counts: ``[state, …, state]``, the earliest first; by hour ``[hour, state, state]``, the
            hour of the day of the row before the last.
    """

    columns: tuple[str, ...]
    keys: Keys
    counts: Integers

    @property
    def states(self) -> tuple[State, ...]:
        """The states: the values of the column, or the tuples of values of several."""
        return self.keys[0] if len(self.keys) == 1 else tuple(product(*self.keys))


def count_runs(
    engine: "Engine",
    columns: Sequence[str],
    depth: int,
    scope: Scope,
    *,
    cuts: Sequence[Fraction] | None = None,
    by_hour: bool = False,
) -> RunCounts:
    """Count the runs of ``depth`` + 1 rows; the method `Engine.runs` says what they are."""
    rows, keys, codes, values, missing, amount = _cells(
        engine, columns, scope, cuts=cuts, by_hour=by_hour
    )
    shape = (*((HOURS,) if by_hour else ()), *([prod(map(len, keys))] * (depth + 1)))
    if prod(shape) > MAX_RUN_CELLS:
        raise TooLarge(
            f"{shape[-1]:,} states of {', '.join(columns)} make {prod(shape):,} runs of"
            f" {depth + 1} rows; at most {MAX_RUN_CELLS:,} are counted at once: merge labels, or"
            " take fewer columns or a lower order",
            size=prod(shape),
            limit=MAX_RUN_CELLS,
        )
    hour = _hour(engine, rows) if by_hour else None
    expression = runs(rows, engine.declaration, values, codes, depth, missing=missing, hour=hour)
    counts = np.zeros(shape, dtype=np.int64)
    for found in engine._run(expression):
        *at, whole, count, tie, gap, absent, jump = found
        engine.refuse_flags(tie, gap)
        if jump:
            raise not_hourly(engine.declaration.order)
        of_day = at.pop() if by_hour else None
        if not whole:  # every row is the last one of a run, so that refused values are noticed
            at = at[-len(codes) :]
        if amount is not None:  # any row of the run may have no number
            hole = any(codes[amount.column].code(place) < 0 for place in at)
            engine._refuse_missing(absent or hole, amount)
        cell = _states(engine, codes, keys, at)
        if whole and cell is not None:
            counts[(*(() if of_day is None else (int(of_day),)), *cell)] += int(count)
    counts.setflags(write=False)
    return RunCounts(tuple(columns), tuple(keys), counts)


def count_leavers(
    engine: "Engine",
    columns: Sequence[str],
    scope: Scope,
    *,
    cuts: Sequence[Fraction] | None = None,
) -> Integers:
    """``[state]``: how many entities have a row in that state with another row after it.

    So many people the row of a chain's matrix rests on. The states are those of `count_runs`.
    """
    rows, keys, codes, values, _, _ = _cells(engine, columns, scope, cuts=cuts)
    people = np.zeros(prod(map(len, keys)), dtype=np.int64)
    for *at, many in engine._run(leavers(rows, engine.declaration, values, codes)):
        cell = _states(engine, codes, keys, at)
        if cell is not None:
            people[cell] += int(many)
    people.setflags(write=False)
    return people


def _cells(
    engine: "Engine",
    columns: Sequence[str],
    scope: Scope,
    *,
    cuts: Sequence[Fraction] | None = None,
    by_hour: bool = False,
) -> tuple[
    Relation,
    list[tuple[Name, ...]],
    dict[str, Lookup],
    dict[str, Column],
    Column | None,
    Amount | None,
]:
    """The rows, and of each column keys, places and values; what is missing, and the numbers."""
    if not columns or len(set(columns)) < len(columns):
        raise InvalidQuery("columns", given="are none or repeat", needed="name each one once")
    rows = engine._within(scope)
    keys, codes, values = list[tuple[Name, ...]](), dict[str, Lookup](), dict[str, Column]()
    missing: Column | None = None
    amount: Amount | None = None
    for column in columns:
        declared = next((c for c in engine.declaration.protected if c.column == column), None)
        if isinstance(declared, Amount):
            if cuts is None or len(columns) > 1:
                raise InvalidQuery(
                    column,
                    given="is a column of numbers",
                    needed="come alone, with the cuts of its ranges",
                )
            amount = declared
            names, inner = _ranges(declared, cuts)
            kind = engine.kinds[column]
            values[column], missing = range_index(rows[column], declared, kind, inner)
            codes[column] = Lookup(
                {place: place for place in range(len(names))},
                finds_in_lists=engine._backend.finds_in_lists,
            )
            keys.append(names)
            if declared.missing == "drop":
                if by_hour or len(columns) > 1:
                    raise dropping_refused(column)
                rows = rows.filter(~missing)
                values[column], missing = range_index(rows[column], declared, kind, inner)
            continue
        if cuts is not None:
            raise InvalidQuery("cuts", given=f"are given for {column}", needed="cut numbers")
        category = engine.declaration.category(column)
        keys.append(engine.keys(column))
        codes[column] = engine.lookup(column)
        if category.outside == "drop":
            if by_hour or len(columns) > 1:
                raise dropping_refused(column)
            rows = ex.among(rows, column, tuple(codes[column].codes))
        values[column] = rows[column]
    return rows, keys, codes, values, missing, amount


def refuse_irregular(engine: "Engine", scope: Scope) -> None:
    """Raise unless every entity has one row for each hour from its first row to its last."""
    rows = engine._within(scope)
    ((jump,),) = engine._public(spacing(rows, engine.declaration, _hour(engine, rows)))
    if jump:
        raise not_hourly(engine.declaration.order)


def not_hourly(order: Order) -> InvalidDeclaration:
    """The error for rows that are not one an hour."""
    return InvalidDeclaration(
        "order",
        given=f"has rows of one entity that are not one for each hour of `{order.column}`",
        needed="have one row for every hour from the first to the last of an entity, for a chain"
        " by hour of the day; fill the gaps, or fit one chain for all hours",
        reason="not-hourly",
    )


def _hour(engine: "Engine", rows: Relation) -> Column:
    order = engine.declaration.order
    if order.kind == "number":
        raise InvalidQuery(
            "by hour",
            given=f"is given where the order, `{order.column}`, is a plain number",
            needed="be left out, or the order be times",
        )
    return hour_number(rows, order, engine.kinds[order.column])


def _ranges(amount: Amount, cuts: Sequence[Fraction]) -> tuple[tuple[str, ...], list[int]]:
    names = range_names(cuts)
    ranges = refuse_other_bounds(
        names, column=amount.column, low=amount.low, high=amount.high, step=amount.step
    )
    return names, [int(low / amount.step) for low, _ in ranges[1:]]


def dropping_refused(column: str) -> InvalidQuery:
    """The error for a column that drops rows: a hole in a joint state, or among the hours."""
    return InvalidQuery(
        column,
        given="drops rows that have other values, or none",
        needed="have a value in each row here: declare outside = 'other' or 'refuse', or for"
        " numbers what a missing one counts as",
        reason="drops",
    )


def _states(
    engine: "Engine",
    codes: Mapping[str, Lookup],
    keys: Sequence[tuple[Name, ...]],
    at: Sequence[Any],
) -> tuple[int, ...] | None:
    """The number of the state of each row of a run; None if some value counts nowhere."""
    width, sizes = len(codes), tuple(map(len, keys))
    cell = []
    for begin in range(0, len(at), width):
        part = engine._cell(codes, at[begin : begin + width])
        if part is None:
            return None
        cell.append(int(np.ravel_multi_index(part, sizes)))
    return tuple(cell)


# --- runs as relations ---


def range_index(
    value: Column, amount: Amount, kind: Kind, cuts: Sequence[int]
) -> tuple[Column, Column]:
    """The number of the range that a clamped number is in, and whether the number is missing.

    ``cuts`` are whole steps: the lower ends of all ranges but the first, in order. The number is
    NULL where a missing value counts as nothing.
    """
    units, missing = clamped(value, amount, kind)
    index: Column = rel.literal(0, "whole")
    for cut in cuts:
        index = index + flag(units >= cut)
    return rel.ifelse(units.isnull(), rel.null("whole"), index), missing


def hour_number(rows: Relation, order: Order, kind: Kind) -> Column:
    """The hours since 1970 of each row: by the clocks of local times, by UTC for instants."""
    place = rows[order.column]
    seconds = place.epoch_seconds() if kind in ("time", "zoned") else place
    return (seconds.cast("real") / HOUR).floor().cast("whole")


def runs(
    rows: Relation,
    declaration: Declaration,
    values: Mapping[str, Column],
    codes: Mapping[str, Lookup],
    depth: int,
    *,
    missing: Column | None = None,
    hour: Column | None = None,
) -> Relation:
    """Rows of: places of the values of a run, the earliest row first; then flags and counts.

    After the places come: the hour of the day of the row before the last, if ``hour`` is given;
    whether the run is whole, that is whether there are ``depth`` rows before its last one; how
    many such runs there are; and whether there are ties, gaps, missing values, and steps of
    anything else than one hour among them.
    """
    own = by_entity(
        rows,
        declaration,
        absent=rel.literal(0) if missing is None else flag(missing),
        hour=rel.literal(0, "whole") if hour is None else hour,
        **{f"value_{i}": value for i, value in enumerate(values.values())},
    )
    lagged = {
        f"value_{i}_{lag}": (f"value_{i}", lag)
        for lag in range(depth, -1, -1)
        for i in range(len(values))
    }
    beside = with_earlier(own, **lagged, hour_before=("hour", 1), start=("place_0", depth))
    jump = (beside["first"] == 0) & (beside.hour != beside.hour_before + 1)
    groups = ["whole"] if hour is None else ["of_day", "whole"]
    flagged = beside.mutate(
        whole=flag(beside.start.notnull()),
        of_day=((beside.hour_before % HOURS) + HOURS) % HOURS,
        jump=rel.literal(0) if hour is None else flag(jump),
    )
    counted = flagged.group_by([*lagged, *groups]).aggregate(
        count=flagged.count(),
        tie=flagged.tie.max(),
        gap=flagged.gap.max(),
        absent=flagged.absent.max(),
        jump=flagged.jump.max(),
    )
    per_row = list(codes.values())
    looked = {name: per_row[place % len(per_row)] for place, name in enumerate(lagged)}
    how = {"count": "sum", "tie": "max", "gap": "max", "absent": "max", "jump": "max"}
    return by_place(counted, looked, how, keep=groups)


def leavers(
    rows: Relation,
    declaration: Declaration,
    values: Mapping[str, Column],
    codes: Mapping[str, Lookup],
) -> Relation:
    """Rows of: places of the values of a row that another one follows; how many entities have it.

    Values that count as one are one before entities are counted, so that nobody counts twice.
    """
    raw = [f"value_{i}" for i in range(len(values))]
    own = by_entity(rows, declaration, **dict(zip(raw, values.values(), strict=True)))
    beside = with_earlier(own, **{name: (name, 1) for name in raw})
    left = beside.filter(beside["first"] == 0).select("who", *raw).distinct()
    keyed = left.select(
        "who", **{n: key_of(left[n], look) for n, look in zip(raw, codes.values(), strict=True)}
    ).distinct()
    counted = keyed.group_by(raw).aggregate(people=keyed.count())
    return by_place(counted, dict(zip(raw, codes.values(), strict=True)), {"people": "sum"})


def spacing(rows: Relation, declaration: Declaration, hour: Column) -> Relation:
    """One row of: whether a row of an entity is not one hour after the row before it."""
    here = rows.select(who=rows[declaration.entity], hour=hour)
    window = rel.Window(here.who, (here.hour,))
    beside = here.select("hour", before=here.hour.lag(1).over(window))
    jump = beside.before.notnull() & (beside.hour != beside.before + 1)
    flagged = beside.select(jump=flag(jump))
    return flagged.aggregate(jump=flagged.jump.max())
