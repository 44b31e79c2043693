r"""Whether the rows of a table are what the entries of its priors are stated to be.

For an engine that is limited to a share of the entities, the whole table is compared.

``over = "household"``: whether the entities of a table are the households of a prior.

A public column groups the entities. In every household there must be exactly one entity for each
member of the prior, told apart by another public column; or, where the prior is the same whoever
is which, as many entities as it has members. Whenever one of them has a row, all must have one:
an entry of the prior is what everybody is at one place in the order. All of that is public by
declaration and is counted in the database; keys of households may be named in a message.

The rows of a household are the joint states in order, or the beginning of them: a prior may be
longer than a table, not shorter.

``over = "entities × sequence"``: one draw for all rows, of people who depend on each other.

An entry is called ``ann: 2``: the third row of ann. All rows of the table together are one draw, or
the part of one that is there. An entity may have fewer rows than the prior has positions: its rows
are then the beginning, and the entries that are missing are read by no query. A mechanism on the
rows is one on all entries that costs nothing on the others, so that the bound holds as it is.

A field that relates "ann: 2" to "bob: 2" is about two people at one time. So a position must be the
same place in the order for everybody who has it: were bob to begin a day later, his third row
would be another day than ann's, and whether the prior means the third row or the third day would be
a guess. It is refused.

The names of a prior beside the entities of a table.
"""

import re
from collections.abc import Mapping

from takifugu.binding.entries import (
    MAX_LISTED_NAMES,
    TYPES_DIFFER,
    Entries,
    both_lists,
    listed,
    numbers,
    only_here,
    typed,
    types_alone,
)
from takifugu.declarations import Category
from takifugu.errors import UnsoundRequest
from takifugu.priors import Name
from takifugu.priors.households import MAX_MEMBERS, is_exchangeable
from takifugu.priors.independent import IndependentEntries, Product
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.priors.time_of_day import HOURS
from takifugu.tables import Engine
from takifugu.tables.household_facts import (
    entities_without_one,
    household_sizes,
    households_of_others,
    uneven_households,
    uneven_positions,
)
from takifugu.tables.run_counting import refuse_irregular
from takifugu.tables.scope import EVERYTHING
from takifugu.translation.rows.household import household_chain


def matched_entities(name: str, names: tuple[Name, ...], engine: Engine) -> Mapping[Name, int]:
    """The rows of each entity, if entities and names are the same, in any order."""
    entity = engine.declaration.entity
    most = len(names) + MAX_LISTED_NAMES + 1
    rows = engine.whole.entities(most)
    if typed(rows) == typed(names):
        return rows
    differ = types_alone(tuple(rows), names)
    more = len(rows) == most  # than are listed
    raise UnsoundRequest(
        f"{name} and the table differ in names."
        f" {both_lists(names, entity, tuple(rows), more=more)}.{TYPES_DIFFER if differ else ''}"
        f" Every entry must be a {entity} of the table and every {entity} an entry, by the same"
        " name",
        field=name,
        reason="types-differ" if differ else "names-differ",
        given=() if more else only_here(names, tuple(rows)),
        needed=only_here(tuple(rows), names),
    )


def as_keys(names: tuple[Name, ...], engine: Engine) -> tuple[Name, ...]:
    """Names that a file holds as text, as the entities of the table have them."""
    keys = numbers(names) if engine.whole_entities else names
    return keys if len(set(keys)) == len(names) else names


NODE = re.compile(r"(?P<who>.*): (?P<position>0|[1-9][0-9]{0,15})", re.DOTALL)


def refuse_people_over_time(name: str, prior: Prior, engine: Engine) -> None:
    """Raise unless the rows of the table are the entries of the prior, by name and position."""
    lengths = people_and_positions(name, prior)
    people = tuple(lengths)
    keys = dict(zip(as_keys(people, engine), people, strict=True))
    entity = engine.declaration.entity
    for who, count in matched_entities(name, tuple(keys), engine).items():
        if count > lengths[keys[who]]:
            raise UnsoundRequest(
                f"{name} has {lengths[keys[who]]} positions of {entity} {who!r:.80}, who has"
                f" {count} rows; use a prior with a position for each",
                field=name,
                reason="too-short",
                given=lengths[keys[who]],
                needed=count,
            )
    engine.whole.refuse_disorder()
    uneven = uneven_positions(engine, MAX_LISTED_NAMES)
    if uneven:
        order = engine.declaration.order
        places = ", ".join((order.column, *order.ties))
        raise UnsoundRequest(
            f"{uneven.count} positions, the first {listed(uneven.first)}, are at different places"
            f" in the order ({places}) for some of `{entity}`; {name} relates people at one time,"
            f" and it is not stated whether its positions are rows or times: give everybody a row"
            " at each time from the first one on, and leave out only the last ones",
            field=name,
            reason="positions-differ",
            given=uneven.first,
        )


def people_and_positions(name: str, prior: Prior) -> dict[str, int]:
    """How many positions each person of the prior has: 0 to one less, in any order."""
    names: tuple[Name, ...] = tuple(prior.entry_names or ())
    found: dict[str, set[int]] = {}
    for node in names:
        parts = NODE.fullmatch(node) if isinstance(node, str) else None
        if parts is None:
            raise UnsoundRequest(
                f"{name} has the entries {listed(names)}, and {node!r:.80} is not a person and a"
                ' position: over = "entities × sequence" needs names such as "ann: 0", "ann: 1"',
                field=name,
                reason="no-positions",
                given=node,
            )
        found.setdefault(parts["who"], set()).add(int(parts["position"]))
    if not found:
        raise UnsoundRequest(f"{name} has no entries by name", field=name, reason="no-positions")
    for who, positions in found.items():
        missing = sorted(set(range(max(positions) + 1)) - positions)
        if missing:
            raise UnsoundRequest(
                f"{name} has no entry {f'{who}: {missing[0]}'!r:.80}, but one for a later position"
                f" of {who!r:.80}; the positions of each person are 0, 1, 2, … without a gap",
                field=name,
                reason="position-missing",
                given=f"{who}: {missing[0]}",
            )
    return {who: len(positions) for who, positions in found.items()}


def refuse_households(name: str, prior: Prior, stated: Entries, engine: Engine) -> None:
    """Raise unless the entities of the table are households as the prior has them."""
    chain = household_chain(name, prior)
    household = _grouping(name, str(stated.household), engine)
    if engine.whole is not engine:
        raise UnsoundRequest(
            f"{name} was fitted on a share of the entities, which parts people of one"
            f" {household}; fit it on the first days",
            field=name,
            reason="share",
        )
    engine.refuse_disorder()
    entity, size = engine.declaration.entity, len(chain.columns or ())
    _refuse_short(name, chain.length, f"some {entity}", engine.lengths().longest)
    _refuse_several(name, household, "household", engine)
    _refuse_sizes(name, household_sizes(engine, household), size, household, entity)
    if stated.member is None:
        _refuse_unlike(name, chain, household)
    else:
        _refuse_members(name, chain, household, stated.member, engine)
    uneven = uneven_households(engine, household, size, MAX_LISTED_NAMES)
    if uneven:
        order = engine.declaration.order
        raise UnsoundRequest(
            f"{uneven.count} of `{household}`, the first {listed(uneven.first)}, have rows at a"
            f" place in the order ({', '.join((order.column, *order.ties))}) where not all members"
            f" have exactly one; {name} says what all of them are at one time, so each {entity}"
            " needs a row wherever the others have one",
            field=name,
            reason="uneven",
            given=uneven.first,
        )


def _grouping(name: str, column: str, engine: Engine, what: str = "household") -> str:
    """The column, if it is public and its raw values are its keys."""
    public: dict[str, Category] = {c.column: c for c in engine.declaration.public}
    if column not in public:
        raise UnsoundRequest(
            f"{what} is {column!r:.80}, which is not a public column; public columns:"
            f" {listed(tuple(public))}. Who belongs together must be public",
            field=what,
            reason="not-public",
            given=column,
            needed=tuple(public),
        )
    merged = public[column].labels or public[column].outside == "other"
    if what == "household" and merged:
        raise UnsoundRequest(
            f"{column!r:.80} merges raw values into labels, and it is not stated which of them is"
            f" a household of {name}; declare it with values read from the data",
            field=what,
            reason="labels",
            given=column,
        )
    return column


def _refuse_several(name: str, column: str, what: str, engine: Engine) -> None:
    """Raise if an entity has no key of a column, or not always the same."""
    entity = engine.declaration.entity
    astray = entities_without_one(engine, column, MAX_LISTED_NAMES)
    if astray:
        raise UnsoundRequest(
            f"{astray.count} of `{entity}`, the first {listed(astray.first)}, have no `{column}` in"
            f" some row, or not the same in all; {name} needs one {what} for each {entity}: leave"
            f" out the rows of those who move, or give them another {entity} for each {what}",
            field=what,
            reason="not-constant",
            given=astray.first,
        )


def _refuse_sizes(
    name: str, sizes: Mapping[int, int], size: int, household: str, entity: str
) -> None:
    others = {people: many for people, many in sizes.items() if people != size}
    if not others:
        return
    found = ", ".join(f"{many:,} of {people:,}" for people, many in sorted(sizes.items()))
    advice = f"keep those of {size} in a table of their own, with a prior and a dataset for each"
    if max(sizes) > MAX_MEMBERS:
        advice += (
            f" size up to {MAX_MEMBERS}; larger ones need a field over people and time"
            ' (over = "entities × sequence")'
        )
    else:
        advice += " size"
    raise UnsoundRequest(
        f"{name} is about {size} people, and `{household}` has households of other sizes:"
        f" {found} {entity}; {advice}",
        field=name,
        reason="sizes-differ",
        given=dict(sizes),
        needed=size,
    )


def _refuse_unlike(name: str, chain: MarkovChain, household: str) -> None:
    """Raise if it matters who is which member, and no column says so."""
    if not is_exchangeable(chain):
        raise UnsoundRequest(
            f"{name} tells its members {listed(chain.columns or ())} apart, and it is not stated"
            f" who in a {household} is which; name the public column that says so as `member`, or"
            " use a prior that is the same whatever order its members are put in",
            field="member",
            reason="missing",
            needed=chain.columns,
        )


def _refuse_members(
    name: str, chain: MarkovChain, household: str, member: str, engine: Engine
) -> None:
    """Raise unless every household has exactly one entity for each member, by name."""
    column = _grouping(name, member, engine, "member")
    keys = engine.keys(column)
    members: tuple[Name, ...] = chain.columns or ()
    if keys and all(isinstance(key, int) for key in keys):
        members = numbers(members)  # a file has them as text
    if not typed(members) <= typed(keys):
        differ = types_alone(members, keys)
        raise UnsoundRequest(
            f"{name} and `{column}` differ in members."
            f" {both_lists(members, f'keys of {column}', keys)}.{TYPES_DIFFER if differ else ''}"
            " Every member of the prior must be a key of that column, by the same name",
            field="member",
            reason="types-differ" if differ else "names-differ",
            given=only_here(members, keys),
            needed=only_here(keys, members),
        )
    _refuse_several(name, column, "member", engine)
    others = households_of_others(engine, household, column, members, MAX_LISTED_NAMES)
    if others:
        raise UnsoundRequest(
            f"{others.count} of `{household}`, the first {listed(others.first)}, have not exactly"
            f" one {engine.declaration.entity} for each of {listed(members)} by `{column}`; {name}"
            " needs one of each in every household",
            field="member",
            reason="members-differ",
            given=others.first,
            needed=members,
        )


def refuse_unmatched(
    priors: Mapping[str, Prior], read: Mapping[str, Entries], engine: Engine
) -> None:
    """Raise unless the rows of the table are what the entries of every prior are stated to be."""
    entity = engine.declaration.entity
    longest: int | None = None
    for name, prior in priors.items():
        over = read[name].over
        parts = prior.parts.values() if isinstance(prior, Product) else (prior,)
        for part in parts:
            if (period := part.period) is not None:
                _refuse_hours(name, period, engine)
        if isinstance(prior, Product):
            _refuse_parts(name, prior, engine)
        elif over == "entities":
            _refuse_entities(name, prior, engine)
        elif over == "household":
            refuse_households(name, prior, read[name], engine)
        elif over == "entities × sequence":
            refuse_people_over_time(name, prior, engine)
        elif over == "row":
            continue  # every row is a draw, and columns are matched by `columns_read`
        elif (size := prior.size) is not None:
            longest = engine.whole.lengths().longest if longest is None else longest
            _refuse_short(name, size, f"some {entity}", longest)


def _refuse_short(name: str, size: int | None, whose: str, rows: int) -> None:
    """Raise if a prior has fewer entries than somebody has rows."""
    if size is not None and rows > size:
        raise UnsoundRequest(
            f"{name} has {size} entries but {whose} has {rows} rows; use a prior that is as long,"
            " or an unbounded one",
            field=name,
            reason="too-short",
            given=size,
            needed=rows,
        )


def _refuse_hours(name: str, period: int, engine: Engine) -> None:
    """Raise unless rows are one an hour, and the prior repeats after the hours of a day."""
    if period != HOURS:
        raise UnsoundRequest(
            f"{name} repeats after {period} steps; rows have days of {HOURS} hours: give a matrix"
            " for each hour",
            field=name,
            reason="hours",
            given=period,
            needed=HOURS,
        )
    refuse_irregular(engine.whole, EVERYTHING)


def _refuse_entities(name: str, prior: Prior, engine: Engine) -> None:
    names = tuple(prior.entry_names or ())
    if isinstance(prior, IndependentEntries):
        names = as_keys(names, engine)
    rows = matched_entities(name, names, engine)
    many = [who for who, count in rows.items() if count != 1]
    if many:
        raise UnsoundRequest(
            f"{name} has one entry for each {engine.declaration.entity}, but {listed(many)} have"
            ' more rows than one; over = "entities" needs exactly one row for each',
            field=name,
            reason="several-rows",
            given=tuple(many),
        )


def _refuse_parts(name: str, prior: Product, engine: Engine) -> None:
    parts = dict(zip(as_keys(tuple(prior.parts), engine), prior.parts.values(), strict=True))
    for who, count in matched_entities(name, tuple(parts), engine).items():
        whose = f"that {engine.declaration.entity}"
        _refuse_short(f"{name}, {who}", parts[who].size, whose, count)
