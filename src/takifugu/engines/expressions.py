"""The queries as Ibis expressions, the same for every database.

Each one is a single pass over the rows. A value becomes its place in the declared list, −1 or
NULL if it has none, only after the rows were counted by raw value: then the list is looked up once
for each raw value and not once for each row. The places of a long list are found by `Lookup`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from takifugu.engines.backends.backend import DATA, Kind
from takifugu.engines.declarations.columns import Amount
from takifugu.engines.declarations.declaration import Declaration
from takifugu.engines.label_lookup import Lookup
from takifugu.engines.scope import Share
from takifugu.priors import Name

TYPES = {
    "text": "string",
    "whole": "int64",
    "real": "float64",
    "time": "timestamp",
    "zoned": "timestamp('UTC')",
    "unknown": "binary",
}


def relation(kinds: Mapping[str, Kind]) -> Any:
    """The declared columns as an Ibis table that is bound to no database."""
    import ibis

    return ibis.table({name: TYPES[kind] for name, kind in kinds.items()}, name=DATA)


def sql(expression: Any, dialect: str) -> str:
    """The expression as SQL."""
    import ibis

    return str(ibis.to_sql(expression, dialect=dialect, pretty=False))


def within(rows: Any, column: str, start: Any, end: Any) -> Any:
    """The rows from ``start`` on and before ``end``; a row without a place is in no window."""
    import ibis

    if start is not None:
        rows = rows.filter(rows[column] >= ibis.literal(start))
    if end is not None:
        rows = rows.filter(rows[column] < ibis.literal(end))
    return rows


def among(rows: Any, column: str, values: Sequence[Name]) -> Any:
    """The rows whose raw value is one of ``values``."""
    return rows.filter(rows[column].isin(list(values)))


def not_among(rows: Any, column: str, values: Sequence[Name]) -> Any:
    """The rows whose raw value is missing or none of ``values``."""
    return rows.filter(rows[column].isnull() | ~rows[column].isin(list(values)))


def shared(rows: Any, entity: str, share: Share) -> Any:
    """The rows of the entities in ``share``."""
    import ibis

    @ibis.udf.scalar.builtin(name="md5", signature=(("string",), "string"))
    def md5(text):  # type: ignore[no-untyped-def]  # Ibis takes the signature
        """The hash as 32 digits, which every database here has under this name."""

    point = md5(ibis.literal(share.salt) + rows[entity].cast("string"))
    rows = rows.filter(point >= share.digits(share.low))
    return rows if share.high == 1 else rows.filter(point < share.digits(share.high))


def histogram(rows: Any, codes: Mapping[str, Lookup]) -> Any:
    """Rows of: one place for each column, and how many rows have them."""
    counted = rows.group_by(list(codes)).aggregate(count=rows.count())
    return by_place(counted, codes, {"count": "sum"})


def sums(rows: Any, codes: Mapping[str, Lookup], amount: Amount, kind: Kind) -> Any:
    """Rows of: places, how many values were added, their sum in steps, and how many are missing."""
    units, missing = clamped(rows[amount.column], amount, kind)
    added = rows.select(*codes, units=units, missing=flag(missing))
    measures = {
        "count": added.units.count(),
        "total": added.units.sum(),
        "missing": added.missing.sum(),
    }
    grouped = added.group_by(list(codes)) if codes else added
    counted = grouped.aggregate(**measures)
    return by_place(counted, codes, dict.fromkeys(measures, "sum")) if codes else counted


def distribution(
    rows: Any, codes: Mapping[str, Lookup], amount: Amount, kind: Kind, every: int
) -> Any:
    """Rows of: places, the cell of the clamped value (NULL if dropped), count, missing.

    A cell is ``every`` steps wide; the first one begins at the lower bound.
    """
    units, missing = clamped(rows[amount.column], amount, kind)
    steps = units - int(amount.low / amount.step)  # 0 or more, so that any division rounds down
    cells = rows.select(*codes, cell=steps if every == 1 else steps // every, missing=flag(missing))
    measures = {"count": cells.count(), "missing": cells.missing.sum()}
    counted = cells.group_by([*codes, "cell"]).aggregate(**measures)
    if not codes:
        return counted.select("cell", *measures)
    return by_place(counted, codes, dict.fromkeys(measures, "sum"), keep=("cell",))


def clamped(value: Any, amount: Amount, kind: Kind) -> tuple[Any, Any]:
    """A number clamped, in whole steps, and whether it is missing.

    floor(x / step + 1/2) rounds alike on every database; ROUND does not. LEAST and GREATEST skip
    missing values, so those are taken out by hand; what is not a number counts as missing.
    """
    import ibis

    missing = value.isnull() if kind == "whole" else value.isnull() | value.isnan()
    low, high = int(amount.low / amount.step), int(amount.high / amount.step)
    if kind == "whole" and amount.step == 1:
        units = ibis.least(ibis.greatest(value, low), high)
    else:
        held = ibis.least(
            ibis.greatest(value.cast("float64"), float(amount.low)), float(amount.high)
        )
        nearest = (held / ibis.literal(float(amount.step), "float64") + 0.5).floor().cast("int64")
        units = ibis.least(ibis.greatest(nearest, low), high)
    nothing = (
        ibis.null("int64")
        if isinstance(amount.missing, str)
        else ibis.literal(int(amount.missing / amount.step), "int64")
    )
    return ibis.ifelse(missing, nothing, units), missing


def transitions(
    rows: Any, declaration: Declaration, column: str, codes: Lookup, by: Mapping[str, Lookup]
) -> Any:
    """Rows of: place before, place here, the place of each ``by``, first, count, ties, gaps.

    ``first`` is 1 if there was no row before. ``ties`` is 1 if rows of one entity share their whole
    place in the order; ``gaps`` if a row has no entity or no place. A step counts in the group of
    the row that it leads to.
    """
    flagged = _steps(rows, declaration, column, by)
    groups = {f"by_{i}": lookup for i, lookup in enumerate(by.values())}
    counted = flagged.group_by(["before", "here", *groups, "first"]).aggregate(
        count=flagged.count(), tie=flagged.tie.max(), gap=flagged.gap.max()
    )
    places = {"before": codes, "here": codes, **groups}
    return by_place(counted, places, {"count": "sum", "tie": "max", "gap": "max"}, keep=("first",))


def changes(rows: Any, entity: str, codes: Mapping[str, Lookup]) -> Any:
    """One row of: for each column, whether some entity has rows with different keys."""
    each = rows.group_by([entity, *codes]).aggregate(count=rows.count())
    keyed = each.select(
        who=each[entity],
        **{f"key_{i}": _key(each[name], codes[name]) for i, name in enumerate(codes)},
    )
    ends = dict[str, Any]()
    for i in range(len(codes)):
        key = keyed[f"key_{i}"]
        ends |= {f"low_{i}": key.min(), f"high_{i}": key.max()}
        ends |= {f"some_{i}": flag(key.isnull()).max(), f"all_{i}": flag(key.isnull()).min()}
    each = keyed.group_by("who").aggregate(**ends)
    differ = {
        f"change_{i}": flag(
            (each[f"some_{i}"] != each[f"all_{i}"]) | (each[f"low_{i}"] < each[f"high_{i}"])
        )
        for i in range(len(codes))
    }
    found = each.select(**differ)
    return found.aggregate(**{name: found[name].max() for name in differ})


def _key(value: Any, codes: Lookup) -> Any:
    """One raw value for each key; missing for a value that has none."""
    import ibis

    if not codes.codes:
        return value
    of_key = dict[int, list[Name]]()
    for raw, code in codes.codes.items():
        of_key.setdefault(code, []).append(raw)
    kind = "int64" if isinstance(codes.raw[0], int) else "string"
    key = value
    for first, *others in of_key.values():
        if others:
            key = ibis.ifelse(value.isin(others), ibis.literal(first, kind), key)
    outside = of_key.get(codes.otherwise)
    rest = ibis.null(kind) if outside is None else ibis.literal(outside[0], kind)
    return ibis.ifelse(value.isin(list(codes.raw)), key, rest)


def disorder(rows: Any, declaration: Declaration) -> Any:
    """One row of: whether rows tie, and whether one has no entity or no place."""
    flagged = _steps(rows, declaration, declaration.entity, ())
    return flagged.aggregate(tie=flagged.tie.max(), gap=flagged.gap.max())


def _steps(rows: Any, declaration: Declaration, column: str, by: Iterable[str]) -> Any:
    """Each row beside the one before it: both values, and whether it is first, tied or astray."""
    import ibis

    places = (declaration.order.column, *declaration.order.ties)
    window = ibis.window(group_by=declaration.entity, order_by=[rows[name] for name in places])
    gap = rows[declaration.entity].isnull()
    for name in places:
        gap = gap | rows[name].isnull()
    groups = {f"by_{i}": rows[name] for i, name in enumerate(by)}
    steps = rows.select(
        here=rows[column],
        before=rows[column].lag().over(window),
        **groups,
        gap=flag(gap),
        **{f"place_{i}": rows[name] for i, name in enumerate(places)},
        **{f"place_before_{i}": rows[name].lag().over(window) for i, name in enumerate(places)},
    )
    tie = steps.place_0 == steps.place_before_0
    for i in range(1, len(places)):
        tie = tie & (steps[f"place_{i}"] == steps[f"place_before_{i}"])
    return steps.select(
        "before",
        "here",
        *groups,
        "gap",
        first=flag(steps.place_before_0.isnull()),
        tie=flag(tie),
    )


def lengths(rows: Any, entity: str) -> Any:
    """Rows of: a length, how many entities have it, and whether one of them has no name."""
    each = rows.group_by(entity).aggregate(length=rows.count())
    each = each.select("length", nameless=flag(each[entity].isnull()))
    found = each.group_by("length").aggregate(entities=each.count(), nameless=each.nameless.max())
    return found.select("length", "entities", "nameless")


def entities(rows: Any, entity: str, most: int) -> Any:
    """Rows of: an entity and how many rows it has, at most so many, the first by name.

    A row without an entity comes first of all, wherever a database puts what is missing.
    """
    owned = rows.select(who=rows[entity], named=flag(rows[entity].notnull()))
    each = owned.group_by(["named", "who"]).aggregate(length=owned.count())
    return each.order_by(["named", "who"]).limit(most).select("who", "length")


def distinct(rows: Any, column: str) -> Any:
    """Rows of: one value."""
    return rows.select(column).distinct()


def span(rows: Any, column: str, kind: Kind) -> Any:
    """One row of: the first and the last place, as a number; times as seconds since 1970."""
    place = rows[column]
    first, last = place.min(), place.max()
    if kind in ("time", "zoned"):
        first, last = first.epoch_seconds(), last.epoch_seconds()
    return rows.aggregate(first=first, last=last)


def count(rows: Any) -> Any:
    """One row of: how many rows there are."""
    return rows.aggregate(count=rows.count())


def by_place(
    counted: Any,
    codes: Mapping[str, Lookup],
    measures: Mapping[str, str],
    *,
    keep: Sequence[str] = (),
) -> Any:
    """Groups by raw value become groups by the place of that value in its list."""
    coded = counted.select(
        **{f"place_{i}": _place(counted[name], codes[name]) for i, name in enumerate(codes)},
        **{name: counted[name] for name in (*keep, *measures)},
    )
    groups = [*(f"place_{i}" for i in range(len(codes))), *keep]
    found = coded.group_by(groups).aggregate(
        **{name: getattr(coded[name], how)() for name, how in measures.items()}
    )
    return found.select(*groups, *measures)


def flag(condition: Any) -> Any:
    """1 or 0; PostgreSQL does not cast one to the other."""
    import ibis

    return ibis.ifelse(condition, 1, 0)


def _place(value: Any, codes: Lookup) -> Any:
    """Where a raw value stands in its list, which is one literal: Ibis is slow with many.

    A raw value of a long list stands for itself: looking each up in it would take too long.
    """
    import ibis

    if codes.long:
        return value

    if not codes.raw:  # keys from the data, and there are none
        return ibis.null("int64")
    kind = "int64" if isinstance(codes.raw[0], int) else "string"
    return ibis.literal(list(codes.raw), type=f"array<{kind}>").index(value)
