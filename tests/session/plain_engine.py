"""A table in a list, counted in plain Python: what a query needs of an engine, and no more."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.session.cells import rows_of

ZONES, FLOORS, STATES = ("a", "b", "c"), (1, 2), ("home", "ward", "clinic")
WEIGHT = Amount("weight", Fraction(-1), Fraction(4), Fraction(1, 2), "refuse")
DECLARED = Declaration(
    Source("csv", path="none.csv"),
    "person",
    Order("step", "number"),
    (Category("state", STATES, "refuse"), Category("mood", ("low", "high"), "refuse"), WEIGHT),
    (Category("zone", ZONES, "refuse"), Category("floor", FLOORS, "refuse")),
)
NAMES = ("person", "step", "zone", "floor", "state", "mood", "weight")
ROWS: tuple[tuple[Any, ...], ...] = (
    ("Ann", 0, "a", 1, "home", "low", "0.5"),
    ("Ann", 1, "a", 1, "ward", "low", "2"),
    ("Ann", 2, "a", 1, "ward", "high", "4"),
    ("Ann", 3, "a", 2, "home", "low", "-1"),
    ("Bea", 0, "b", 1, "clinic", "high", "3"),
    ("Bea", 1, "b", 2, "clinic", "low", "0"),
    ("Cid", 0, "a", 2, "ward", "low", "1.5"),
)


class PlainEngine:
    """Counts of a list of rows."""

    def __init__(
        self, declaration: Declaration = DECLARED, rows: Sequence[tuple[Any, ...]] = ROWS
    ) -> None:
        self.declaration, self._rows = declaration, [dict(zip(NAMES, r, strict=True)) for r in rows]

    @property
    def whole(self) -> "PlainEngine":
        """All of it."""
        return self

    def interrupt(self) -> None:
        """Nothing to stop."""

    def keys(self, name: str) -> tuple[Any, ...]:
        """The declared keys."""
        return self.declaration.category(name).keys

    def _read(self, scope: Any) -> list[dict[str, Any]]:
        return [
            row
            for row in self._rows
            if (scope.start is None or row["step"] >= scope.start)
            and (scope.end is None or row["step"] < scope.end)
            and all(row[name] in keys for name, keys in scope.where.items())
        ]

    def count(self, scope: Any) -> int:
        """How many rows."""
        return len(self._read(scope))

    def histogram(self, by: Sequence[str], scope: Any) -> Any:
        """``[by]``."""
        counts = np.zeros([len(self.keys(name)) for name in by], dtype=np.int64)
        for row in self._read(scope):
            counts[tuple(self.keys(name).index(row[name]) for name in by)] += 1
        return SimpleNamespace(counts=counts)

    def cross_tabulations(self, sets: Sequence[Sequence[str]], scope: Any) -> list[Any]:
        """One table for each set."""
        return [self.histogram(by, scope) for by in sets]

    def _units(self, column: str, row: dict[str, Any]) -> int:
        return int(Fraction(row[column]) / self.declaration.amount(column).step)

    def sums(self, column: str, by: Sequence[str], scope: Any) -> Any:
        """``[by]``, in steps."""
        units = np.zeros([len(self.keys(name)) for name in by], dtype=np.int64)
        for row in self._read(scope):
            place = tuple(self.keys(name).index(row[name]) for name in by)
            units[place] += self._units(column, row)
        return SimpleNamespace(units=units)

    def distribution(self, column: str, by: Sequence[str], scope: Any, *, every: int = 1) -> Any:
        """``[by, cell]``."""
        amount = self.declaration.amount(column)
        shape = [*(len(self.keys(name)) for name in by), amount.cells(every)]
        counts = np.zeros(shape, dtype=np.int64)
        for row in self._read(scope):
            above = int((Fraction(row[column]) - amount.low) / amount.step) // every
            counts[(*(self.keys(name).index(row[name]) for name in by), above)] += 1
        return SimpleNamespace(counts=counts)

    def steps(self, column: str, by: Sequence[str], scope: Any) -> Any:
        """``[by, before, after]``."""
        labels = self.keys(column)
        shape = [*(len(self.keys(name)) for name in by), len(labels), len(labels)]
        counts = np.zeros(shape, dtype=np.int64)
        for _, rows in groupby(self._read(scope), key=lambda row: row["person"]):
            own = list(rows)
            for before, after in pairwise(own):
                place = [self.keys(name).index(after[name]) for name in by]
                ends = (labels.index(before[column]), labels.index(after[column]))
                counts[(*place, *ends)] += 1
        return SimpleNamespace(counts=counts)

    def lengths(self, scope: Any) -> Any:
        """How many entities have how many rows."""
        found: dict[str, int] = {}
        for row in self._read(scope):
            found[row["person"]] = found.get(row["person"], 0) + 1
        sizes = sorted(set(found.values()))
        many = [sum(1 for n in found.values() if n == size) for size in sizes]
        return SimpleNamespace(
            entities=np.array(many), lengths=np.array(sizes), longest=max(sizes, default=0)
        )


ENGINE: Any = PlainEngine()


def rows(where: Any = None, window: Any = None, declaration: Declaration = DECLARED) -> Any:
    """The rows of a query."""
    return rows_of(declaration, window, where)
