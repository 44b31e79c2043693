"""Fit a chain on the joint states of households: what everybody is, step by step.

The joint state of a household at one place in the order is put together in the database, from one
row of each member, and steps from one to the next are counted there. Without a column that says who
is which member, people count as they come by name and the counts are summed over all ways to name
them: the chain is then the same whatever order its members are put in, exactly.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import factorial
from typing import Any

import numpy as np

from takifugu.engines.engine import Engine
from takifugu.engines.engine_errors import InvalidQuery
from takifugu.engines.expressions import by_place, flag
from takifugu.engines.fit_kinds import Estimate, FitOptions
from takifugu.engines.fit_report import steps_estimate, the_one
from takifugu.engines.household_facts import (
    Some,
    entities_without_one,
    household_sizes,
    households_of_others,
    public_labels,
    uneven_households,
)
from takifugu.engines.scope import Scope
from takifugu.numeric import Floats, Integers
from takifugu.priors import Name, Transitions
from takifugu.priors.fitting import TAU
from takifugu.priors.households import refuse_large_household

SHOWN = 5  # households or entities that a message lists


def fit_household(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """The stationary chain of relative frequencies of joint states, smoothed."""
    column = the_one(columns, "household")
    if options.household is None:
        raise InvalidQuery(
            "household", given="is missing", needed="name the public column that groups entities"
        )
    if options.share is not None:
        raise InvalidQuery(
            "share",
            given="is given",
            needed="be left out for households, whose people it would part; fit on the first days",
            reason="share",
        )
    category = engine.declaration.category(column)
    if category.outside == "drop":
        raise InvalidQuery(
            column,
            given="drops rows that have other values, or none",
            needed="have a value in each row here: declare outside = 'other' or 'refuse'",
            reason="drops",
        )
    members = _members(engine, options.household, options.member)
    labels = engine.keys(column)
    refuse_large_household(len(members), len(labels) ** len(members))
    counts = joint_steps(engine, column, options.household, options.member, members, train)
    states = tuple(product(labels, repeat=len(members)))
    steps = Transitions(counts, states, columns=members)
    if options.member is None:
        steps = replace(steps, counts=_summed(counts, states))
    tau = TAU if options.tau is None else options.tau
    chain = steps.chain(unseen="uniform", tau=tau or None, length=options.length)
    if options.member is None:
        chain = replace(chain, transition=_alike(chain.transition, states))
    found = steps_estimate(chain, states, counts)
    stated = {"household": options.household}
    if options.member is not None:
        stated["member"] = options.member
    people = f"It is about households of {len(members)} by `{options.household}`."
    return replace(found, rests=(*found.rests, people), over="household", stated=stated)


def joint_steps(
    engine: Engine,
    column: str,
    household: str,
    member: str | None,
    members: Sequence[str],
    scope: Scope,
) -> Integers:
    """``[state, next state]``: how many times one joint state of a household followed another."""
    expression = _steps(engine, column, household, member, members, scope)
    size, labels = len(members), len(engine.keys(column))
    counts = np.zeros((labels**size, labels**size), dtype=np.int64)
    codes = {column: engine.lookup(column)}

    def state(at: Sequence[Any]) -> int:
        values = [engine._cell(codes, (place,)) for place in at]
        found = [0 if value is None else value[0] for value in values]  # none: nothing is dropped
        return int(np.ravel_multi_index(found, [labels] * size))

    for *at, whole, count in engine._run(expression):
        here = state(at[size:])
        if whole:
            counts[state(at[:size]), here] += int(count)
    return counts


def _steps(
    engine: Engine,
    column: str,
    household: str,
    member: str | None,
    members: Sequence[str],
    scope: Scope,
) -> Any:
    """Rows of: places of the values before, places of the values here, whether both are, count."""
    import ibis

    order = engine.declaration.order
    rows = engine._within(scope)
    places = {f"at_{i}": rows[name] for i, name in enumerate((order.column, *order.ties))}
    who = rows[engine.declaration.entity]
    if member is None:
        owned = rows.select(home=rows[household], who=who, value=rows[column], **places)
        slot = ibis.dense_rank().over(ibis.window(group_by="home", order_by=owned.who))
    else:
        owned = rows.select(
            home=rows[household], who=who, value=rows[column], role=rows[member], **places
        )
        codes, keys = engine.lookup(member).codes, engine.keys(member)
        slot = ibis.literal(0, "int64")
        for k, name in enumerate(_as_keys(members, keys)):
            raw = [one for one, code in codes.items() if keys[code] == name]
            slot = slot + k * flag(owned.role.isin(raw))
    put = owned.select("home", "value", *places, slot=slot)
    nothing = ibis.null(put.value.type())
    each = put.group_by(["home", *places]).aggregate(
        **{
            f"here_{k}": ibis.ifelse(put.slot == k, put.value, nothing).max()
            for k in range(len(members))
        }
    )
    window = ibis.window(group_by="home", order_by=[each[name] for name in places])
    heres = [f"here_{k}" for k in range(len(members))]
    beside = each.select(
        *heres,
        whole=flag(each.at_0.lag().over(window).notnull()),
        **{f"before_{k}": each[name].lag().over(window) for k, name in enumerate(heres)},
    )
    befores = [f"before_{k}" for k in range(len(members))]
    counted = beside.group_by([*befores, *heres, "whole"]).aggregate(count=beside.count())
    look = engine.lookup(column)
    return by_place(
        counted, dict.fromkeys((*befores, *heres), look), {"count": "sum"}, keep=("whole",)
    )


def _members(engine: Engine, household: str, member: str | None) -> tuple[str, ...]:
    """The names of the members, if every household has one of each, all at the same times."""
    public_labels(engine, household)

    def refuse(found: Some, field: str, given: str, needed: str) -> None:
        if found:
            shown = ", ".join(repr(name)[:60] for name in found.first)
            raise InvalidQuery(
                field,
                given=f"{given} ({found.count:,}, the first {shown})",
                needed=needed,
                reason="households",
            )

    engine.refuse_disorder()
    one = "have one household in all rows"
    refuse(entities_without_one(engine, household, SHOWN), household, "parts entities", one)
    sizes = household_sizes(engine, household)
    if len(sizes) != 1:
        listed = ", ".join(f"{many:,} of {size}" for size, many in sorted(sizes.items()))
        raise InvalidQuery(
            household,
            given=f"has households of several sizes: {listed or 'none'}",
            needed="have as many people in each; keep each size in a dataset of its own",
            reason="sizes-differ",
        )
    (size,) = sizes
    refuse_large_household(size, 1)
    names: tuple[Name, ...] = tuple(f"member {k}" for k in range(1, size + 1))
    if member is not None:
        public_labels(engine, member)
        names = engine.keys(member)
        one = "have one key in all rows"
        refuse(entities_without_one(engine, member, SHOWN), member, "changes for entities", one)
        others = households_of_others(engine, household, member, names, SHOWN)
        refuse(
            others,
            member,
            "has households without exactly one of each key",
            f"have one of {', '.join(map(str, names))} in each",
        )
    uneven = uneven_households(engine, household, size, SHOWN)
    refuse(
        uneven,
        household,
        "has households in which not everybody has a row at the same place in the order",
        "have a row of everybody wherever one has",
    )
    return tuple(map(str, names))


def _as_keys(members: Sequence[str], keys: Sequence[Name]) -> tuple[Name, ...]:
    """The keys that the members are called by: a prior has text for whole numbers."""
    named = {str(key): key for key in keys}
    return tuple(named[name] for name in members)


def _orbits(states: Sequence[tuple[Name, ...]]) -> tuple[list[list[int]], int]:
    """``[state][next state]``: the number of a step, whoever makes it; how many such there are."""
    place = {label: k for k, label in enumerate(dict.fromkeys(v for s in states for v in s))}
    coded = [[place[value] for value in state] for state in states]
    known: dict[tuple[tuple[int, int], ...], int] = {}
    orbits = [
        [known.setdefault(tuple(sorted(zip(x, y, strict=True))), len(known)) for y in coded]
        for x in coded
    ]
    return orbits, len(known)


def _summed(counts: Integers, states: Sequence[tuple[Name, ...]]) -> Integers:
    """The counts summed over all ways to name the members, each as often as it leads there."""
    orbits, many = _orbits(states)
    at = np.array(orbits)
    total, size = np.zeros(many, dtype=np.int64), np.bincount(at.ravel(), minlength=many)
    np.add.at(total, at, counts)
    ways = factorial(len(states[0])) // size  # that leave a step as it is
    found: Integers = (total * ways)[at]
    return found


def _alike(transition: Floats, states: Sequence[tuple[Name, ...]]) -> Floats:
    """The same to a few units of roundoff, and exactly the same whoever is called the first."""
    orbits, many = _orbits(states)
    at = np.array(orbits)
    value = np.zeros(many)
    value[at.ravel()[::-1]] = transition.ravel()[::-1]  # of each the first
    found: Floats = value[at]
    return found
