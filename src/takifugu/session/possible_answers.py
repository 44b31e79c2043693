r"""What a result shows of noisy numbers: values that the exact ones can have.

Noise takes a count below 0, or above the number of rows. What is *published* is possible: a number
is shown as the nearest one that the exact number can be, and its interval stays in the same range.
The range is public: it follows from the numbers of rows, which are public by declaration, and
from declared bounds and weights. So this is post-processing of what was drawn, and costs nothing.
The ledger keeps what was drawn; a result has it as ``raw``.

*Why intervals stay valid.* Let t be the exact number, K = [a, b] a range that holds it, x what was
drawn, and let x ± h hold t with probability 0.95 or more. What is shown is P(x), the number of K
that is nearest to x, and the part of P(x) ± h that is in K. A projection onto a convex set makes no
distance longer and leaves t where it is, so that :math:`|P(x) - t| \le |x - t|` for every x: no
number gets worse, and where x ± h holds t, P(x) ± h does so as well, and so does its part in K. (To
cut x ± h to K would also do. But the further noise has taken x out of K, the shorter that interval
is, down to a single number: it would look most certain where the noise was largest.)

*Numbers that add up.* The labels of a group share its rows, where no value is dropped: the exact
counts are on the simplex of vectors of at least 0 that add up to n. On request the estimates are
projected onto it (`takifugu.mechanisms.post.nearest_with_total`): again a convex set that holds the
exact vector, so that the whole vector is no further from it than before. One number may move away
by that, and out of its interval; the interval is then widened to hold it, and stays valid.

All of this is computed in whole units, the unit of the noise, and each number is turned into what
is shown at the end, rounded to the nearest float: that keeps the order of numbers, and so what an
interval holds. Columns of counts hold whole numbers.

The order in which a result shows groups whose keys are read from the data.

An engine sorts such keys as the database has them: hours that are text come as 0, 1, 10, 11, …, 2.
That order is part of every stored answer, whose numbers have no names, and stays. Rows are put in
the order in which people count when they are shown: whole numbers first, by value, and other text
by its letters, with the numbers in it by value ("ward 2" before "ward 10").
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.mechanisms.post import nearest_with_total, whole_with_total
from takifugu.priors import Name

Rows = tuple[tuple[Any, ...], ...]
CUT = "numbers and intervals are kept to what is possible; `raw` has them as they were drawn"
SUM_TO_ONE = "the numbers of each group are the nearest ones that add up to all of its rows"


@dataclass(frozen=True)
class AnswerTable:
    """The table of a result.

    Attributes:
        columns: The names of the columns.
        rows: What is published.
        raw: The same rows as they were drawn; None if they are no others.
        notes: What was done to the numbers, in words.
    """

    columns: tuple[str, ...]
    rows: Rows
    raw: Rows | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Units:
    """What whole units of noise are, in what is shown: ``units`` × numerator / denominator.

    Attributes:
        numerator: The same for every number.
        denominators: One for each number; None for whole numbers, which are shown as they are. 0
            for a number that is not shown, as the share of no rows.
    """

    numerator: int = 1
    denominators: Sequence[int] | None = None

    def shown(self, place: int, units: int) -> int | float | None:
        """A number as it is shown: the nearest float, or a whole number."""
        if self.denominators is None:
            return units
        below = self.denominators[place]
        return None if below == 0 else units * self.numerator / below


@dataclass(frozen=True)
class Shown:
    """A drawn number with its interval: each of them in the form in which it is published."""

    estimate: int | float | None
    low: int | float | None
    high: int | float | None

    @property
    def cells(self) -> tuple[Any, Any, Any]:
        """Three cells of a row."""
        return self.estimate, self.low, self.high


NOT_SHOWN = Shown(None, None, None)


def possible(
    drawn: Sequence[int | None],
    half: int,
    ranges: tuple[Sequence[int], Sequence[int]],
    units: Units,
) -> tuple[list[Shown], list[Shown]]:
    """Each number in its range, with as much of ± ``half`` as is in it; and as they were drawn.

    ``drawn`` and ``ranges``, the least and the most that each exact number can be, are in whole
    units.
    """
    found, raw = list[Shown](), list[Shown]()
    for place, (x, least, most) in enumerate(zip(drawn, *ranges, strict=True)):
        if x is None:
            found.append(NOT_SHOWN)
            raw.append(NOT_SHOWN)
            continue
        away = half + (abs(x) >> 50)  # what was stored as a float may be off by that much
        near = min(max(x, least), most)
        raw.append(Shown(*(units.shown(place, end) for end in (x, x - away, x + away))))
        cut = (near, max(near - away, least), min(near + away, most))
        found.append(Shown(*(units.shown(place, end) for end in cut)))
    return found, raw


def adding_up(
    drawn: Sequence[int | None], found: Sequence[Shown], sizes: Sequence[int], units: Units
) -> list[Shown]:
    """Estimates that add up to ``sizes[group]``, in intervals that hold them.

    ``drawn`` and ``found`` have the numbers of one group after those of another.
    """
    many, shown = len(drawn) // max(len(sizes), 1), list[Shown]()
    for group, total in enumerate(sizes):
        part = slice(group * many, (group + 1) * many)
        if units.denominators is not None and total == 0:  # no rows, no shares
            shown.extend([NOT_SHOWN] * many)
            continue
        numbers: Integers = np.array(drawn[part], dtype=np.int64)
        if units.denominators is None:
            exact: list[Any] = whole_with_total(numbers, total).tolist()
        else:
            above, below = nearest_with_total(numbers, total)
            exact = [x / (below * total) for x in above]
        for estimate, old in zip(exact, found[part], strict=True):
            low, high = (estimate if end is None else end for end in (old.low, old.high))
            shown.append(Shown(estimate, min(low, estimate), max(high, estimate)))
    return shown


WHOLE = re.compile(r"[+-]?[0-9]+")
PARTS = re.compile(r"([0-9]+)")
MAX_NUMBER_DIGITS = 300  # digits that are read as a number
Part = tuple[int, int, str]


def counting_order(key: Name) -> tuple[Part, ...]:
    """Sorts keys as people count; keys that differ are never equal.

    >>> sorted(["10", "9", "ward 10", "-1", "ward 9"], key=counting_order)
    ['-1', '9', '10', 'ward 9', 'ward 10']
    """
    text = str(key)
    if len(text) <= MAX_NUMBER_DIGITS and WHOLE.fullmatch(text):
        return (0, int(text), ""), (0, 0, text)
    parts = (part for part in PARTS.split(text) if part)
    return (
        (1, 0, ""),
        *(
            (0, int(p), "") if p[0] in "0123456789" and len(p) <= MAX_NUMBER_DIGITS else (1, 0, p)
            for p in parts
        ),
        (0, -1, text),
    )


def in_counting_order(
    table: AnswerTable, keys: Sequence[Sequence[Name]], read: Sequence[bool]
) -> AnswerTable:
    """The table with its groups in order, by the keys of its first columns.

    ``keys`` are those of each public column, in the order of the engine; ``read`` says for which of
    them they were read from the data. Others keep the order of their declaration, and rows of one
    group their order.
    """
    places: list[Mapping[Name, int]] = []
    for column, from_data in zip(keys, read, strict=True):
        ordered = sorted(column, key=counting_order) if from_data else column
        places.append({key: place for place, key in enumerate(ordered)})
    if all(list(place) == list(column) for place, column in zip(places, keys, strict=True)):
        return table
    order = sorted(
        range(len(table.rows)),
        key=lambda row: [place[table.rows[row][i]] for i, place in enumerate(places)],
    )

    def sorted_rows(rows: Rows) -> Rows:
        return tuple(rows[row] for row in order)

    raw = None if table.raw is None else sorted_rows(table.raw)
    return replace(table, rows=sorted_rows(table.rows), raw=raw)
