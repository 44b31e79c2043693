"""Runs of rows as relations: what follows what, hour by hour, on any columns, in one pass.

A run is some rows of one entity that follow one another in the declared order. As in
`takifugu.tables.expressions` values are looked up in their lists after the rows were counted.
"""

from collections.abc import Mapping, Sequence

from takifugu.declarations.columns import Amount, Order
from takifugu.declarations.declaration import Declaration
from takifugu.tables import relations as rel
from takifugu.tables.backends.backend import Kind
from takifugu.tables.expressions import by_place, clamped, flag, key_of
from takifugu.tables.label_lookup import Lookup
from takifugu.tables.relations import Column, Relation

HOUR = 3600  # seconds
HOURS = 24  # of a day


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
    entity, order = declaration.entity, declaration.order
    places = (order.column, *order.ties)
    gap = rows[entity].isnull()
    for name in places:
        gap = gap | rows[name].isnull()
    here = rows.select(
        who=rows[entity],
        gap=flag(gap),
        absent=rel.literal(0) if missing is None else flag(missing),
        hour=rel.literal(0, "whole") if hour is None else hour,
        **{f"at_{i}": rows[name] for i, name in enumerate(places)},
        **{f"value_{i}": value for i, value in enumerate(values.values())},
    )
    window = rel.Window(here.who, tuple(here[f"at_{i}"] for i in range(len(places))))
    lagged = {
        f"value_{i}_{lag}": here[f"value_{i}"].lag(lag).over(window) if lag else here[f"value_{i}"]
        for lag in range(depth, -1, -1)
        for i in range(len(values))
    }
    beside = here.select(
        "gap",
        "absent",
        "hour",
        hour_before=here.hour.lag(1).over(window),
        whole=flag(here.at_0.lag(depth).over(window).notnull()) if depth else rel.literal(1),
        **{f"at_{i}": here[f"at_{i}"] for i in range(len(places))},
        **{f"before_{i}": here[f"at_{i}"].lag(1).over(window) for i in range(len(places))},
        **lagged,
    )
    tie = beside.at_0 == beside.before_0
    for i in range(1, len(places)):
        tie = tie & (beside[f"at_{i}"] == beside[f"before_{i}"])
    jump = beside.before_0.notnull() & (beside.hour != beside.hour_before + 1)
    groups = ["whole"] if hour is None else ["of_day", "whole"]
    of_day = ((beside.hour_before % HOURS) + HOURS) % HOURS
    flagged = beside.select(
        "gap",
        "absent",
        "whole",
        *lagged,
        of_day=of_day,
        tie=flag(tie),
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
    order = declaration.order
    places = {f"at_{i}": rows[name] for i, name in enumerate((order.column, *order.ties))}
    raw = [f"value_{i}" for i in range(len(values))]
    here = rows.select(
        who=rows[declaration.entity], **places, **dict(zip(raw, values.values(), strict=True))
    )
    window = rel.Window(here.who, tuple(here[name] for name in places))
    beside = here.select(
        "who",
        followed=here.at_0.lag().over(window).notnull(),
        **{name: here[name].lag().over(window) for name in raw},
    )
    left = beside.filter(beside.followed).select("who", *raw).distinct()
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
