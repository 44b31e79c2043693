"""What an engine returns: small tables of exact counts and sums, never rows.

They are exact, so they are as confidential as the data. A mechanism stands between them and the
world.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, Integers
from takifugu.declarations.columns import Amount
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.errors import TooLarge
from takifugu.priors import Name
from takifugu.tables import expressions as ex
from takifugu.tables import relations as rel
from takifugu.tables.label_lookup import Lookup
from takifugu.tables.scope import Scope

if TYPE_CHECKING:
    from takifugu.tables.engine import Engine

Keys = tuple[tuple[Name, ...], ...]


@dataclass(frozen=True, eq=False)
class Histogram(ByContent):
    """How many rows have each combination of declared keys, those with none included.

    Replacing the content of one protected cell moves one row from one place to another, or in or
    out of the table where the rule is to drop: the counts change by at most 2 in total.

    Attributes:
        columns: The columns, one for each axis.
        keys: The keys along each axis.
        counts: ``[key of the first column, key of the second, …]``.
    """

    columns: tuple[str, ...]
    keys: Keys
    counts: Integers

    def at(self, *key: Name) -> int:
        """The count of one combination of keys."""
        return int(self.counts[_place(self.columns, self.keys, key)])


@dataclass(frozen=True, eq=False)
class ColumnSums(ByContent):
    """Sums of clamped numbers for each combination of keys, and how many were added.

    Replacing the content of one cell changes one of the ``units`` by at most
    ``amount.high/step − amount.low/step`` (`Amount.width`) if missing values count as a number or
    are refused. If they are dropped, the cell may also come or go: by at most the larger of that
    and ``max(|low|, |high|)/step``, and then one of the ``counts`` by 1.

    Attributes:
        amount: The column that was added, with its bounds and its step.
        columns: The columns of the groups, one for each axis; none for a single sum.
        keys: The keys along each axis.
        counts: How many values were added.
        units: Their sum in steps, exactly.
    """

    amount: Amount
    columns: tuple[str, ...]
    keys: Keys
    counts: Integers
    units: Integers

    @property
    def values(self) -> Floats:
        """The sums as numbers, to the nearest float64."""
        step: Fraction = self.amount.step
        flat = [float(int(units) * step) for units in self.units.ravel()]
        return np.array(flat, dtype=np.float64).reshape(self.units.shape)

    def at(self, *key: Name) -> Fraction:
        """The exact sum of one group."""
        return int(self.units[_place(self.columns, self.keys, key)]) * self.amount.step


@dataclass(frozen=True, eq=False)
class Distribution(ByContent):
    """How many clamped numbers lie in each cell of a public grid, for each combination of keys.

    Replacing the content of one protected cell moves one number from one place to another, or,
    where missing values are dropped, in or out of the table: the counts change by at most 2 in
    total.

    Attributes:
        amount: The column, with its bounds and its step.
        every: How many steps one cell of the grid is wide; the first begins at the lower bound.
        columns: The columns of the groups, one for each axis but the last.
        keys: The keys along each of these axes.
        counts: ``[key of the first column, …, cell]``.
    """

    amount: Amount
    every: int
    columns: tuple[str, ...]
    keys: Keys
    counts: Integers

    @property
    def edges(self) -> tuple[Fraction, ...]:
        """``[cell]``: the least number of each cell."""
        return self.amount.grid(self.every)

    def at(self, *key: Name) -> Integers:
        """``[cell]``: the counts of one group."""
        found: Integers = self.counts[_place(self.columns, self.keys, key)]
        return found


@dataclass(frozen=True, eq=False)
class Lengths(ByContent):
    """How many entities have how many rows: public, by declaration.

    Attributes:
        lengths: The lengths that occur, in order.
        entities: How many entities have each of them.
    """

    lengths: Integers
    entities: Integers

    @property
    def longest(self) -> int:
        """The number of rows of the entity with most of them; 0 if there are no rows."""
        return int(self.lengths[-1]) if self.lengths.size else 0

    @property
    def rows(self) -> int:
        """The number of all rows."""
        return int(self.lengths @ self.entities)


def _place(columns: Sequence[str], keys: Keys, key: Sequence[Name]) -> tuple[int, ...]:
    if len(key) != len(columns):
        raise InvalidQuery(
            "key", given=f"has {len(key)} parts", needed=f"have one for each of {columns}"
        )
    for column, known, part in zip(columns, keys, key, strict=True):
        if part not in known:
            raise InvalidQuery(
                column, given=f"has no declared key {part!r}", needed="be one of the declared keys"
            )
    return tuple(known.index(part) for known, part in zip(keys, key, strict=True))


MAX_TABLE_CELLS = 2**24  # of all tables together
MAX_SETS = 4_000  # in one statement, and so in one pass; PostgreSQL takes 4,096


def cross_tabulate(
    engine: "Engine", sets: Sequence[Sequence[str]], scope: Scope
) -> tuple[Histogram, ...]:
    """How many rows have each combination of the keys of each of ``sets``, zeros included.

    One pass over the rows (``GROUPING SETS``). Grouping by all columns at once and adding up would
    be simpler, but such groups of a wide table are its rows; only the small tables leave the
    database. Where the rule is to drop a value, a row is left out of the tables that its column is
    in.
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
