"""Fit a chain on the joint states of households: what everybody is, step by step.

The joint state of a household at one place in the order is put together in the database, from one
row of each member, and steps from one to the next are counted there. Without a column that says who
is which member, people count as they come by name and the counts are summed over all ways to name
them: the chain is then the same whatever order its members are put in, exactly.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.fitting.fit_kinds import Estimate, single_column, steps_estimate
from takifugu.fitting.fit_options import FitOptions
from takifugu.priors import Name, Transitions
from takifugu.priors.fitting import TAU
from takifugu.priors.households import refuse_large_household
from takifugu.tables import relations as rel
from takifugu.tables.engine import Engine
from takifugu.tables.expressions import by_place, flag, with_earlier
from takifugu.tables.household_facts import (
    Some,
    entities_without_one,
    household_sizes,
    households_of_others,
    public_labels,
    uneven_households,
)
from takifugu.tables.run_counting import dropping_refused
from takifugu.tables.scope import Scope

if TYPE_CHECKING:
    from takifugu.fitting.goodness import GoodnessOfFit

MAX_TRIPLE_CELLS = 2**24  # of counts of three joint states that follow one another
MAX_LISTED_HOUSEHOLDS = 5  # households or entities that a message lists


def fit_household(
    engine: Engine, columns: tuple[str, ...], train: Scope, options: FitOptions
) -> Estimate:
    """The stationary chain of relative frequencies of joint states, smoothed."""
    column = single_column(columns, "household")
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
        raise dropping_refused(column)
    members = _members(engine, options.household, options.member)
    labels = engine.keys(column)
    refuse_large_household(len(members), len(labels) ** len(members))
    people = People(engine, column, options.household, options.member, members)
    counts = joint_runs(people, train)
    states = tuple(product(labels, repeat=len(members)))
    steps = Transitions(counts, states, columns=members)
    if options.member is None:
        steps = replace(steps, counts=_summed(counts, states))
    tau = TAU if options.tau is None else options.tau
    chain = steps.chain(unseen="uniform", tau=tau or None, length=options.length)
    if options.member is None:
        chain = replace(chain, transition=_alike(chain.transition, states))
    estimate = steps_estimate(chain, states, counts, tau or None)
    stated = {"household": options.household}
    if options.member is not None:
        stated["member"] = options.member
    about = f"It is about households of {len(members)} by `{options.household}`."
    return replace(
        estimate,
        rests=(*estimate.rests, about),
        over="household",
        stated=stated,
        goodness=lambda: _goodness(people, states, train),
    )


@dataclass(frozen=True)
class People:
    """Whose joint states are counted.

    Attributes:
        engine: The table.
        column: The protected column.
        household: The public column that groups entities.
        member: The public column that says who is which member; None if they count by name.
        members: What the members are called, in the order of a joint state.
    """

    engine: Engine
    column: str
    household: str
    member: str | None
    members: tuple[str, ...]


def joint_runs(people: People, scope: Scope, depth: int = 1) -> Integers:
    """``[state, …, state]``: how often joint states of a household followed one another."""
    engine, size = people.engine, len(people.members)
    labels = len(engine.keys(people.column))
    counts = np.zeros([labels**size] * (depth + 1), dtype=np.int64)
    codes = {people.column: engine.lookup(people.column)}

    def state(at: Sequence[Any]) -> int:
        values = [engine._cell(codes, (place,)) for place in at]
        codes_of_values = [
            0 if value is None else value[0] for value in values
        ]  # none: nothing is dropped
        return int(np.ravel_multi_index(codes_of_values, [labels] * size))

    for *at, whole, count in engine._run(_runs(people, scope, depth)):
        last = state(at[depth * size :])  # every row is the last of a run: values are checked
        if whole:
            path = [state(at[k * size : (k + 1) * size]) for k in range(depth)]
            counts[(*path, last)] += int(count)
    return counts


def _runs(people: People, scope: Scope, depth: int) -> Any:
    """Rows of: places of the values of a run, the earliest first, whether it is whole, count."""
    engine, members = people.engine, people.members
    order = engine.declaration.order
    rows = engine._within(scope)
    places = {f"place_{i}": rows[name] for i, name in enumerate((order.column, *order.ties))}
    columns = {"home": rows[people.household], "value": rows[people.column], **places}
    if people.member is None:
        owned = rows.select(**columns, who=rows[engine.declaration.entity])
        slot = rel.dense_rank().over(rel.Window(owned.home, (owned.who,)))
    else:
        owned = rows.select(**columns, role=rows[people.member])
        codes, keys = engine.lookup(people.member).codes, engine.keys(people.member)
        slot = rel.literal(0, "whole")
        for k, name in enumerate(_as_keys(members, keys)):
            raw = [one for one, code in codes.items() if keys[code] == name]
            slot = slot + k * flag(owned.role.isin(raw))
    put = owned.select("value", *places, who=owned.home, slot=slot)
    nothing = rel.null(put.value.type)
    each = put.group_by(["who", *places]).aggregate(
        **{
            f"here_{k}": rel.ifelse(put.slot == k, put.value, nothing).max()
            for k in range(len(members))
        }
    )
    lagged = {
        f"value_{lag}_{k}": (f"here_{k}", lag)
        for lag in range(depth, -1, -1)
        for k in range(len(members))
    }
    beside = with_earlier(each, **lagged, start=("place_0", depth))
    beside = beside.mutate(whole=flag(beside.start.notnull()))
    counted = beside.group_by([*lagged, "whole"]).aggregate(count=beside.count())
    look = engine.lookup(people.column)
    return by_place(counted, dict.fromkeys(lagged, look), {"count": "sum"}, keep=("whole",))


def _goodness(people: People, states: Sequence[tuple[Name, ...]], train: Scope) -> "GoodnessOfFit":
    """Whether one chain on joint states, of order one, describes the rows."""
    from takifugu.fitting.goodness import (
        FitTest,
        GoodnessOfFit,
        order_test,
        parts_of,
        stationarity_test,
    )

    remedy = "State a prior of your own that is as sure as you are of it (uncertainty)."
    order = FitTest("order", "not tested", "Whether order one suffices was not tested.", {})
    if len(states) ** 3 <= MAX_TRIPLE_CELLS:
        order = order_test(joint_runs(people, train, 2), states, 1, remedy=remedy)
    parts = list(parts_of(people.engine, train))
    tables = np.array([joint_runs(people, part) for _, part in parts])
    named = [name for name, _ in parts]
    remedy_over_time = "give several priors, one for each part"
    return GoodnessOfFit((order, stationarity_test(tables, named, states, remedy=remedy_over_time)))


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
    refuse(
        entities_without_one(engine, household, MAX_LISTED_HOUSEHOLDS),
        household,
        "parts entities",
        one,
    )
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
        refuse(
            entities_without_one(engine, member, MAX_LISTED_HOUSEHOLDS),
            member,
            "changes for entities",
            one,
        )
        others = households_of_others(engine, household, member, names, MAX_LISTED_HOUSEHOLDS)
        refuse(
            others,
            member,
            "has households without exactly one of each key",
            f"have one of {', '.join(map(str, names))} in each",
        )
    uneven = uneven_households(engine, household, size, MAX_LISTED_HOUSEHOLDS)
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
    numbers: dict[tuple[tuple[int, int], ...], int] = {}
    orbits = [
        [numbers.setdefault(tuple(sorted(zip(x, y, strict=True))), len(numbers)) for y in coded]
        for x in coded
    ]
    return orbits, len(numbers)


def _summed(counts: Integers, states: Sequence[tuple[Name, ...]]) -> Integers:
    """The counts summed over all ways to name the members, each as often as it leads there."""
    orbits, many = _orbits(states)
    at = np.array(orbits)
    total, size = np.zeros(many, dtype=np.int64), np.bincount(at.ravel(), minlength=many)
    np.add.at(total, at, counts)
    ways = factorial(len(states[0])) // size  # that leave a step as it is
    summed: Integers = (total * ways)[at]
    return summed


def _alike(transition: Floats, states: Sequence[tuple[Name, ...]]) -> Floats:
    """The same to a few units of roundoff, and exactly the same whoever is called the first."""
    orbits, many = _orbits(states)
    at = np.array(orbits)
    value = np.zeros(many)
    value[at.ravel()[::-1]] = transition.ravel()[::-1]  # of each the first
    alike: Floats = value[at]
    return alike
