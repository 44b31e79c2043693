"""Public facts about who belongs together, and who has rows when: counted in the database.

Entities, the order and public columns are read, and nothing that is protected. Every fact is
about all rows of the table, whichever of them may be released from. What leaves the database is
how many are not as they should be, and the first of them by name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from takifugu.declarations.columns import Category
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.priors import Name
from takifugu.tables import relations as rel
from takifugu.tables.engine import Engine
from takifugu.tables.expressions import flag
from takifugu.tables.scope import EVERYTHING


@dataclass(frozen=True)
class Some:
    """How many there are, and the first of them by name."""

    count: int = 0
    first: tuple[Name, ...] = ()

    def __bool__(self) -> bool:
        return self.count > 0


def entities_without_one(engine: Engine, column: str, most: int) -> Some:
    """The entities that have no key of a public column in some row, or several keys."""
    rows = _rows(engine, column)
    each = rows.group_by("who").aggregate(
        low=rows.key.min(), high=rows.key.max(), missing=flag(rows.key.isnull()).sum()
    )
    astray = each.filter((each.missing > 0) | (each.low != each.high))
    return _some(engine, astray.select(name=astray.who), most)


def household_sizes(engine: Engine, household: str) -> Mapping[int, int]:
    """How many households have how many entities, by size; a row without one counts for none."""
    rows = _rows(engine, household)
    people = rows.filter(rows.key.notnull()).select("key", "who").distinct()
    each = people.group_by("key").aggregate(size=people.count())
    sizes = each.group_by("size").aggregate(households=each.count()).select("size", "households")
    return {int(size): int(many) for size, many in sorted(engine.whole._public(sizes))}


def households_of_others(
    engine: Engine, household: str, member: str, members: Sequence[Name], most: int
) -> Some:
    """The households that have not exactly one entity for each of ``members``, or others."""
    codes, keys = engine.whole.lookup(member), engine.whole.keys(member)
    rows = _rows(engine, household, member)
    people = rows.select("key", "who", "role").distinct()
    counts: dict[str, Any] = {}
    for k, name in enumerate(members):
        raw = [one for one, code in codes.codes.items() if keys[code] == name]
        counts[f"member_{k}"] = flag(people.role.isin(raw)).sum() if raw else people.count() * 0
    each = people.group_by("key").aggregate(people=people.count(), **counts)
    wrong = each.people != len(members)
    for name in counts:
        wrong = wrong | (each[name] != 1)
    astray = each.filter(wrong)
    return _some(engine, astray.select(name=astray.key), most)


def uneven_households(engine: Engine, household: str, size: int, most: int) -> Some:
    """The households in which not all ``size`` members have a row wherever one of them has."""
    order = engine.declaration.order
    rows = _rows(engine, household, None, order.column, *order.ties)
    places = [f"place_{k}" for k in range(1 + len(order.ties))]
    each = rows.group_by(["key", *places]).aggregate(rows=rows.count())
    uneven = each.filter(each["rows"] != size).select(name=each.key).distinct()
    return _cached(engine, "households are even", (household, str(size)), uneven, most)


def uneven_positions(engine: Engine, most: int) -> Some:
    """The positions in the rows of an entity that are at different places for some entities.

    The first row of everybody is at position 0. Positions are the same time for all if nobody
    begins later, and nobody skips a time at which others have a row.
    """
    order = engine.declaration.order
    rows = _rows(engine, engine.declaration.entity, None, order.column, *order.ties)
    places = [f"place_{k}" for k in range(1 + len(order.ties))]
    window = rel.Window(rows.who, tuple(rows[place] for place in places))
    numbered = rows.select(*places, position=rel.row_number().over(window))
    each = numbered.group_by("position").aggregate(
        **{f"low_{k}": numbered[place].min() for k, place in enumerate(places)},
        **{f"high_{k}": numbered[place].max() for k, place in enumerate(places)},
    )
    differ = each.low_0 != each.high_0
    for k in range(1, len(places)):
        differ = differ | (each[f"low_{k}"] != each[f"high_{k}"])
    uneven = each.filter(differ)
    names = uneven.select(name=uneven.position)
    return _cached(engine, "positions are even", (engine.declaration.entity,), names, most)


def _rows(engine: Engine, key: str, role: str | None = None, *places: str) -> Any:
    """The rows with who they belong to, a key, and what else is asked for, by fixed names."""
    rows = engine.whole._within(EVERYTHING)
    columns = {"who": rows[engine.declaration.entity], "key": rows[key]}
    if role is not None:
        columns["role"] = rows[role]
    columns |= {f"place_{k}": rows[name] for k, name in enumerate(places)}
    return rows.select(**columns)


def _some(engine: Engine, names: Any, most: int) -> Some:
    """How many rows ``names`` has; what it lists, up to ``most``, if it has any."""
    ((count,),) = engine.whole._public(names.aggregate(count=names.count()))
    if not count:
        return Some()
    listed = engine.whole._public(names.first(most, by=("name",)))
    return Some(int(count), tuple(name for (name,) in listed))


def _cached(engine: Engine, fact: str, about: tuple[str, ...], names: Any, most: int) -> Some:
    """The same of what is read row by row; that there is none in a large file is noted down.

    A note holds for the file as it is now, as that of `Engine.refuse_disorder` does.
    """
    source, order = engine.declaration.source, engine.declaration.order
    what = (source.kind, source.table, *about, order.column, *order.ties)
    note = engine.whole._backend.note(fact, *what)
    if note is not None and note.read() == fact:
        return Some()
    astray = _some(engine, names, most)
    if note is not None and not astray:
        note.write(fact)
    return astray


def public_labels(engine: Engine, column: str) -> Category:
    """A public column, as declared; an error if it is not one."""
    for category in engine.declaration.public:
        if category.column == column:
            return category
    names = ", ".join(category.column for category in engine.declaration.public) or "none"
    raise InvalidQuery(
        column, given="is not a public column", needed=f"be one; public columns: {names}"
    )
