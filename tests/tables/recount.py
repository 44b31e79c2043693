"""The slow truth about a table: plain loops over rows, nothing of the package."""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

Row = Mapping[str, Any]
Fold = Callable[[Any], Any]  # the label of a raw value; None to leave the row out


def fold(values: Iterable[Any], outside: str, labels: Mapping[Any, Any] | None = None) -> Fold:
    """What a raw value is counted as."""
    known = list(values)

    def label(raw: Any) -> Any:
        shown = (labels or {}).get(raw, raw)
        if shown in known:
            return shown
        return "other" if outside == "other" else None

    return label


def histogram(rows: Iterable[Row], folds: Mapping[str, Fold]) -> Counter[tuple[Any, ...]]:
    found = Counter[tuple[Any, ...]]()
    for row in rows:
        key = tuple(label(row[column]) for column, label in folds.items())
        if None not in key:
            found[key] += 1
    return found


def sequences(
    rows: Sequence[Row], entity: str, places: Sequence[str], column: str, label: Fold
) -> list[list[Any]]:
    """The labels of each entity in order, rows that are left out skipped."""
    found = []
    for person in sorted({row[entity] for row in rows}):
        mine = sorted(
            (row for row in rows if row[entity] == person),
            key=lambda row: tuple(row[place] for place in places),
        )
        kept = [label(row[column]) for row in mine]
        found.append([value for value in kept if value is not None])
    return found


def steps(paths: Iterable[Sequence[Any]]) -> Counter[tuple[Any, Any]]:
    return Counter(pair for path in paths for pair in pairwise(path))


def total(
    values: Iterable[float | int | None],
    low: Fraction,
    high: Fraction,
    step: Fraction,
    missing: Any,
) -> tuple[int, int]:
    """How many values were added, and their sum in steps."""
    count = units = 0
    for value in values:
        gone = value is None or (isinstance(value, float) and math.isnan(value))
        if gone:
            if missing == "drop":
                continue
            exact = Fraction(missing)
        elif isinstance(value, float) and math.isinf(value):
            exact = low if value < 0 else high
        else:
            assert value is not None
            exact = min(max(Fraction(value), low), high)
        count += 1
        units += math.floor(exact / step + Fraction(1, 2))
    return count, units


def cells(
    values: Iterable[float | int | None],
    low: Fraction,
    high: Fraction,
    step: Fraction,
    missing: Any,
    every: int,
) -> list[int]:
    """How many values fall in each cell of ``every`` steps, value by value."""
    count = math.floor((high - low) / step / every) + 1
    found = [0] * count
    for value in values:
        added, units = total([value], low, high, step, missing)
        if added:
            found[(units - math.floor(low / step)) // every] += 1
    return found


def point(salt: str, entity: Any) -> Fraction:
    """Where an entity falls in [0, 1)."""
    digest = hashlib.md5(f"{salt}{entity}".encode(), usedforsecurity=False).hexdigest()
    return Fraction(int(digest, 16), 16**32)
