"""Many cross-tabulations of the same rows in one pass over them (``GROUPING SETS``).

Grouping by all columns at once and adding up would be simpler, but such groups of a wide table are
its rows; only the small tables leave the database.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import TooLarge
from takifugu.tables import expressions as ex
from takifugu.tables import relations as rel
from takifugu.tables.aggregates import Histogram
from takifugu.tables.label_lookup import Lookup
from takifugu.tables.scope import Scope

if TYPE_CHECKING:
    from takifugu.tables.engine import Engine

MAX_TABLE_CELLS = 2**24  # of all tables together
MAX_SETS = 4_000  # in one statement, and so in one pass; PostgreSQL takes 4,096


def cross_tabulate(
    engine: "Engine", sets: Sequence[Sequence[str]], scope: Scope
) -> tuple[Histogram, ...]:
    """How many rows have each combination of the keys of each of ``sets``, zeros included.

    Where the rule is to drop a value, a row is left out of the tables that its column is in.
    """
    wanted = tuple(tuple(names) for names in sets)
    if not wanted or any(not names or len(set(names)) < len(names) for names in wanted):
        raise InvalidQuery(
            "columns", given="are none, or repeat", needed="name each column of a table once"
        )
    if len({frozenset(names) for names in wanted}) < len(wanted):
        raise InvalidQuery("columns", given="make a table twice", needed="make each one once")
    columns = tuple(dict.fromkeys(name for names in wanted for name in names))
    keys = {name: engine.keys(name) for name in columns}
    codes = {name: engine.lookup(name) for name in columns}
    sizes = {names: prod(len(keys[name]) for name in names) for names in wanted}
    if sum(sizes.values()) > MAX_TABLE_CELLS:
        largest = max(sizes, key=lambda names: sizes[names])
        raise TooLarge(
            f"the tables have {sum(sizes.values()):,} cells together, the one of"
            f" {', '.join(largest)} has {sizes[largest]:,}; at most {MAX_TABLE_CELLS:,} are"
            " counted at once: merge labels of these columns, or name fewer columns",
            size=sum(sizes.values()),
            limit=MAX_TABLE_CELLS,
        )
    counts = {names: np.zeros([len(keys[name]) for name in names], np.int64) for names in wanted}
    groups: dict[tuple[str, ...], list[tuple[Any, ...]]] = {names: [] for names in wanted}
    for some in _batches(wanted):
        among = {name: codes[name] for name in columns if any(name in names for names in some)}
        for names, places, count in _groups(engine, some, among, scope):
            groups[names].append((*places, count))
    for names, found in groups.items():
        engine._add(counts[names], {name: codes[name] for name in names}, found)
    for table in counts.values():
        table.setflags(write=False)
    return tuple(
        Histogram(names, tuple(keys[name] for name in names), counts[names]) for names in wanted
    )


def _batches(wanted: Sequence[tuple[str, ...]]) -> Iterator[Sequence[tuple[str, ...]]]:
    """All sets at once, or as many as every database takes in one statement."""
    for begin in range(0, len(wanted), MAX_SETS):
        yield wanted[begin : begin + MAX_SETS]


def _groups(
    engine: "Engine",
    wanted: Sequence[tuple[str, ...]],
    codes: Mapping[str, Lookup],
    scope: Scope,
) -> Iterator[tuple[tuple[str, ...], list[Any], int]]:
    """Of each group its columns, the places of their values, and how many rows it has."""
    rows = engine._within(scope)
    named = {column: f"c{i}" for i, column in enumerate(codes)}
    chosen = rows.select(**{short: rows[column] for column, short in named.items()})
    flags = {f"out_{short}": rel.left_out(chosen[short]) for short in named.values()}
    sets = [[named[name] for name in names] for names in wanted]
    grouped = chosen.group_by(list(named.values())).by_sets(sets, **flags, many=chosen.count())
    lookups = {short: codes[column] for column, short in named.items()}
    tables = ex.by_place(grouped, lookups, {"many": "sum"}, keep=tuple(flags))
    by_columns = {frozenset(names): names for names in wanted}
    for found in engine._run(tables):
        places, left_out, many = found[: len(codes)], found[len(codes) : -1], int(found[-1])
        grouped_places = {
            column: place
            for column, place, out in zip(codes, places, left_out, strict=True)
            if not out
        }
        names = by_columns[frozenset(grouped_places)]
        yield names, [grouped_places[name] for name in names], many
