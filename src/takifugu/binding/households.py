r"""``over = "household"``: whether the entities of a table are the households of a prior.

A public column groups the entities. In every household there must be exactly one entity for each
member of the prior, told apart by another public column; or, where the prior is the same whoever
is which, as many entities as it has members. Whenever one of them has a row, all must have one:
an entry of the prior is what everybody is at one place in the order. All of that is public by
declaration and is counted in the database; keys of households may be named in a message.

The rows of a household are the joint states in order, or the beginning of them: a prior may be
longer than a table, not shorter.
"""

from collections.abc import Mapping

from takifugu.binding.entries import Entries
from takifugu.binding.name_lists import (
    SHOWN,
    TYPES_DIFFER,
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
from takifugu.priors.households import MOST_MEMBERS, is_exchangeable
from takifugu.priors.markov import MarkovChain
from takifugu.priors.prior import Prior
from takifugu.tables import Engine
from takifugu.tables.household_facts import (
    entities_without_one,
    household_sizes,
    households_of_others,
    uneven_households,
)
from takifugu.translation.rows.household import household_chain


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
    longest = engine.lengths().longest
    if chain.length is not None and longest > chain.length:
        raise UnsoundRequest(
            f"{name} has {chain.length} entries but some {entity} has {longest} rows; use a prior"
            " that is as long, or an unbounded one",
            field=name,
            reason="too-short",
            given=chain.length,
            needed=longest,
        )
    _refuse_several(name, household, "household", engine)
    _refuse_sizes(name, household_sizes(engine, household), size, household, entity)
    if stated.member is None:
        _refuse_unlike(name, chain, household)
    else:
        _refuse_members(name, chain, household, stated.member, engine)
    uneven = uneven_households(engine, household, size, SHOWN)
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
    astray = entities_without_one(engine, column, SHOWN)
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
    if max(sizes) > MOST_MEMBERS:
        advice += (
            f" size up to {MOST_MEMBERS}; larger ones need a field over people and time"
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
    others = households_of_others(engine, household, column, members, SHOWN)
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
