"""What an engine returns: small tables of exact counts and sums, never rows.

They are exact, so they are as confidential as the data. A mechanism stands between them and the
world.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import Floats, Integers
from takifugu.declarations.columns import Amount
from takifugu.declarations.table_errors import InvalidQuery
from takifugu.priors import Name

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
