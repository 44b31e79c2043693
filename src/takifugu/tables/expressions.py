"""The queries as relations, the same for every database.

Each one is a single pass over the rows. A value becomes its place in the declared list, −1 or
NULL if it has none, only after the rows were counted by raw value: then the list is looked up once
for each raw value and not once for each row. The places of a long list are found by `Lookup`.
"""

from collections.abc import Mapping, Sequence
from math import ceil, inf, nextafter
from typing import Any

from takifugu.declarations.columns import Amount
from takifugu.declarations.declaration import Declaration
from takifugu.priors import Name
from takifugu.tables import relations as rel
from takifugu.tables.backends.backend import DATA, Kind
from takifugu.tables.label_lookup import Lookup
from takifugu.tables.relations import Column, Relation
from takifugu.tables.scope import Share

MAX_EARLY_LABELS = 100  # of a list that is looked through for each row, not for each group
INTEGER_LIMIT = 2**63  # no whole number of a database is as large


def relation(kinds: Mapping[str, Kind]) -> Relation:
    """The declared columns."""
    return rel.table(DATA, kinds)


def within(rows: Relation, column: str, start: Any, end: Any) -> Relation:
    """The rows from ``start`` on and before ``end``; a row without a place is in no window."""
    if start is not None:
        rows = rows.filter(rows[column] >= _bound(start, rows[column].type))
    if end is not None:
        rows = rows.filter(rows[column] < _bound(end, rows[column].type))
    return rows


def _bound(bound: Any, kind: rel.DataType) -> Any:
    """The first value of the column's own type that is not before ``bound``.

    Databases would make both sides real numbers, and 2**53 and 2**53 + 1 are then the same.
    """
    if isinstance(bound, int | float) and kind == "whole":
        return max(-INTEGER_LIMIT, min(ceil(bound), INTEGER_LIMIT))
    if isinstance(bound, int) and kind == "real":
        nearest = float(bound)
        return nearest if nearest >= bound else nextafter(nearest, inf)
    return bound


def among(rows: Relation, column: str, values: Sequence[Name]) -> Relation:
    """The rows whose raw value is one of ``values``."""
    return rows.filter(rows[column].isin(list(values)))


def not_among(rows: Relation, column: str, values: Sequence[Name]) -> Relation:
    """The rows whose raw value is missing or none of ``values``."""
    return rows.filter(rows[column].isnull() | ~rows[column].isin(list(values)))


def shared(rows: Relation, entity: str, share: Share) -> Relation:
    """The rows of the entities in ``share``."""
    point = rel.md5(share.salt, rows[entity].cast("text"))
    rows = rows.filter(point >= share.digits(share.low))
    return rows if share.high == 1 else rows.filter(point < share.digits(share.high))


def histogram(rows: Relation, codes: Mapping[str, Lookup]) -> Relation:
    """Rows of: one place for each column, and how many rows have them."""
    keys = _keys(codes)
    keyed = rows.select(**{key: rows[name] for key, name in zip(keys, codes, strict=True)})
    counted = keyed.group_by(list(keys)).aggregate(count=keyed.count())
    return by_place(counted, keys, {"count": "sum"})


def sums(rows: Relation, codes: Mapping[str, Lookup], amount: Amount, kind: Kind) -> Relation:
    """Rows of: places, how many values were added, their sum in steps, and how many are missing."""
    keys = _keys(codes)
    units, missing = clamped(rows[amount.column], amount, kind)
    added = rows.select(
        **{key: rows[name] for key, name in zip(keys, codes, strict=True)},
        units=units,
        missing=flag(missing),
    )
    measures = {
        "count": added.units.count(),
        "total": added.units.sum(),
        "missing": added.missing.sum(),
    }
    if not codes:
        return added.aggregate(**measures)
    counted = added.group_by(list(keys)).aggregate(**measures)
    return by_place(counted, keys, dict.fromkeys(measures, "sum"))


def distribution(
    rows: Relation, codes: Mapping[str, Lookup], amount: Amount, kind: Kind, every: int
) -> Relation:
    """Rows of: places, the cell of the clamped value (NULL if dropped), count, missing.

    A cell is ``every`` steps wide; the first one begins at the lower bound.
    """
    keys = _keys(codes)
    units, missing = clamped(rows[amount.column], amount, kind)
    steps = units - int(amount.low / amount.step)  # 0 or more, so that any division rounds down
    cells = rows.select(
        **{key: rows[name] for key, name in zip(keys, codes, strict=True)},
        cell=steps if every == 1 else steps // every,
        missing=flag(missing),
    )
    measures = {"count": cells.count(), "missing": cells.missing.sum()}
    counted = cells.group_by([*keys, "cell"]).aggregate(**measures)
    if not codes:
        return counted.select("cell", *measures)
    return by_place(counted, keys, dict.fromkeys(measures, "sum"), keep=("cell",))


def _keys(codes: Mapping[str, Lookup]) -> dict[str, Lookup]:
    """The same by names of our own: a column of the data may be called as a measure is."""
    return {f"key_{i}": look for i, look in enumerate(codes.values())}


def clamped(value: Column, amount: Amount, kind: Kind) -> tuple[Column, Column]:
    """A number clamped, in whole steps, and whether it is missing.

    floor(x / step + 1/2) rounds alike on every database; ROUND does not. LEAST and GREATEST skip
    missing values, so those are taken out by hand; what is not a number counts as missing.
    """
    missing = value.isnull() if kind == "whole" else value.isnull() | value.isnan()
    low, high = int(amount.low / amount.step), int(amount.high / amount.step)
    if kind == "whole" and amount.step == 1:
        units = rel.least(rel.greatest(value, low), high)
    else:
        held = rel.least(rel.greatest(value.cast("real"), float(amount.low)), float(amount.high))
        nearest = (held / rel.literal(float(amount.step), "real") + 0.5).floor().cast("whole")
        units = rel.least(rel.greatest(nearest, low), high)
    nothing = (
        rel.null("whole")
        if isinstance(amount.missing, str)
        else rel.literal(int(amount.missing / amount.step), "whole")
    )
    return rel.ifelse(missing, nothing, units), missing


def transitions(
    rows: Relation,
    declaration: Declaration,
    column: str,
    codes: Lookup,
    by: Mapping[str, Lookup],
    *,
    early: bool = False,
) -> Relation:
    """Rows of: place before, place here, the place of each ``by``, first, count, ties, gaps.

    ``first`` is 1 if there was no row before. ``ties`` is 1 if rows of one entity share their whole
    place in the order; ``gaps`` if a row has no entity or no place. A step counts in the group of
    the row that it leads to. Rows are sorted for this: with ``early``, values of short lists become
    places before that, which are less to move about than texts.
    """
    values = {"here": (rows[column], codes)}
    values |= {f"by_{i}": (rows[name], look) for i, (name, look) in enumerate(by.items())}
    looked = {
        name for name, (_, look) in values.items() if early and len(look.raw) <= MAX_EARLY_LABELS
    }
    placed = {
        name: _place(value, look) if name in looked else value
        for name, (value, look) in values.items()
    }
    flagged = with_earlier(by_entity(rows, declaration, **placed), before=("here", 1))
    later = {name: None if name in looked else look for name, (_, look) in values.items()}
    groups = {"before": later["here"], **later}
    counted = flagged.group_by([*groups, "first"]).aggregate(
        count=flagged.count(), tie=flagged.tie.max(), gap=flagged.gap.max()
    )
    return by_place(counted, groups, {"count": "sum", "tie": "max", "gap": "max"}, keep=("first",))


def changes(rows: Relation, entity: str, codes: Mapping[str, Lookup]) -> Relation:
    """One row of: for each column, whether some entity has rows with different keys."""
    raw = {f"raw_{i}": rows[name] for i, name in enumerate(codes)}
    each = rows.select(who=rows[entity], **raw).distinct()
    keyed = each.select(
        "who",
        **{f"key_{i}": key_of(each[f"raw_{i}"], look) for i, look in enumerate(codes.values())},
    )
    ends = dict[str, Column]()
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
    changed = each.select(**differ)
    return changed.aggregate(**{name: changed[name].max() for name in differ})


def key_of(value: Column, codes: Lookup) -> Column:
    """One raw value for each key; missing for a value that has none."""
    if not codes.codes:
        return value
    of_key = dict[int, list[Name]]()
    for raw, code in codes.codes.items():
        of_key.setdefault(code, []).append(raw)
    key = value
    for first, *others in of_key.values():
        if others:
            key = rel.ifelse(value.isin(others), rel.literal(first), key)
    outside = of_key.get(codes.otherwise)
    rest = rel.null(value.type) if outside is None else rel.literal(outside[0])
    return rel.ifelse(value.isin(list(codes.raw)), key, rest)


def disorder(rows: Relation, declaration: Declaration) -> Relation:
    """One row of: whether rows tie, and whether one has no entity or no place."""
    flagged = with_earlier(by_entity(rows, declaration))
    return flagged.aggregate(tie=flagged.tie.max(), gap=flagged.gap.max())


def by_entity(rows: Relation, declaration: Declaration, **columns: Column) -> Relation:
    """Some columns of the rows, with whose they are, their places in the order, and gaps in these.

    The names beside those of ``columns`` are ``who``, ``place_0`` and so on, and ``gap``.
    """
    entity, order = rows[declaration.entity], declaration.order
    places = {f"place_{i}": rows[name] for i, name in enumerate((order.column, *order.ties))}
    gap = entity.isnull()
    for place in places.values():
        gap = gap | place.isnull()
    return rows.select(who=entity, **columns, **places, gap=flag(gap))


def with_earlier(own: Relation, **earlier: tuple[str, int]) -> Relation:
    """The rows of `by_entity`, each beside what earlier rows of its entity have.

    ``earlier`` names a column and how many rows before; 0 for the row itself. ``first`` says
    whether a row is the first of its entity, and ``tie`` whether the one before has its place.
    """
    places = [name for name in own.types if name.startswith("place_")]
    window = rel.Window(own.who, tuple(own[name] for name in places))
    reached = {f"before_{name}": (name, 1) for name in places} | earlier
    beside = own.mutate(
        **{
            name: own[column].lag(many).over(window) if many else own[column]
            for name, (column, many) in reached.items()
        }
    )
    tie = beside.place_0 == beside.before_place_0
    for name in places[1:]:
        tie = tie & (beside[name] == beside[f"before_{name}"])
    return beside.mutate(first=flag(beside.before_place_0.isnull()), tie=flag(tie))


def lengths(rows: Relation, entity: str) -> Relation:
    """Rows of: a length, how many entities have it, and whether one of them has no name."""
    owned = rows.select(who=rows[entity])
    each = owned.group_by("who").aggregate(length=owned.count())
    each = each.select("length", nameless=flag(each.who.isnull()))
    counted = each.group_by("length").aggregate(entities=each.count(), nameless=each.nameless.max())
    return counted.select("length", "entities", "nameless")


def entities(rows: Relation, entity: str, most: int) -> Relation:
    """Rows of: an entity and how many rows it has, at most so many, the first by name.

    A row without an entity comes first of all, wherever a database puts what is missing.
    """
    owned = rows.select(who=rows[entity], named=flag(rows[entity].notnull()))
    each = owned.group_by(["named", "who"]).aggregate(length=owned.count())
    return each.first(most, by=("named", "who")).select("who", "length")


def distinct(rows: Relation, column: str) -> Relation:
    """Rows of: one value."""
    return rows.select(column).distinct()


def span(rows: Relation, column: str, kind: Kind) -> Relation:
    """One row of: the first and the last place, as a number; times as seconds since 1970."""
    place = rows[column]
    first, last = place.min(), place.max()
    if kind in ("time", "zoned"):
        first, last = first.epoch_seconds(), last.epoch_seconds()
    return rows.aggregate(first=first, last=last)


def count(rows: Relation) -> Relation:
    """One row of: how many rows there are."""
    return rows.aggregate(count=rows.count())


def by_place(
    counted: Relation,
    codes: Mapping[str, Lookup | None],
    measures: Mapping[str, str],
    *,
    keep: Sequence[str] = (),
) -> Relation:
    """Groups by raw value become groups by the place of that value in its list.

    A column without a list holds places already.
    """
    coded = counted.select(
        **{f"place_{i}": _place(counted[name], codes[name]) for i, name in enumerate(codes)},
        **{name: counted[name] for name in (*keep, *measures)},
    )
    groups = [*(f"place_{i}" for i in range(len(codes))), *keep]
    grouped = coded.group_by(groups).aggregate(
        **{name: getattr(coded[name], how)() for name, how in measures.items()}
    )
    return grouped.select(*groups, *measures)


def flag(condition: Column) -> Column:
    """1 or 0; PostgreSQL does not cast one to the other."""
    return rel.ifelse(condition, 1, 0)


def _place(value: Column, codes: Lookup | None) -> Column:
    """Where a raw value stands in its list, if it has one there.

    A raw value of a long list stands for itself: looking each up in it would take too long.
    """
    if codes is None or codes.long:
        return value
    if not codes.raw:  # keys from the data, and there are none
        return rel.null("whole")
    return rel.place_in(codes.raw, value)
