r"""What an answer may be and how large it is likely to be, from what is public alone.

How good an answer is can be said before it is paid for only by facts that everybody may know: how
many rows a group has, how many labels there are, between which bounds numbers are declared. From
them follow, for each kind of query,

* the *range* of the possible answers: a count of n rows is from 0 to n, a share from 0 to 1, a mean
  between the declared bounds, a sum n times as far, the rank of a quantile from 0 to n;
* the *size* that the error should stay below for the answer to say something: for counts and shares
  what each label would have if all had the same, n/L; for numbers, where nothing is known of their
  size, a quarter of the range; for a quantile half of the way to the nearer end;
* the *noise* from which on it is not worth its price unless somebody says so: the range, and for
  counts and shares already five times their size.

No protected value is read here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.priors import Name
from takifugu.session.query.query import Query
from takifugu.tables import Engine

ASIDE = 0.05  # of the rows: the smallest groups that hold less together do not decide


@dataclass(frozen=True, eq=False)
class AnswerScales:
    """The range and the size of the answers of each group that has rows.

    Attributes:
        one: What one answer is: "a count".
        many: What several are called, where their size is known: "counts"; empty if it is not.
        rows: ``[group]``: how many rows it has.
        low: ``[group]``: the least possible answer.
        high: ``[group]``: the greatest.
        size: ``[group]``: an error below this leaves something to be told.
        noise: ``[group]``: an error from this on is mostly noise; at most the range.
        error: Which number of a predicted error is compared with them: ``interval``, ``ranks`` of
            a quantile or ``gap`` of a ranking.
        per_row: Whether that number is about the smallest group, and is less in larger ones.
        name: The keys of the group with a number, by column.
        guessed: Whether the size is that of labels that are equally common, and the answer is about
            some of them only: others make up for nothing.
    """

    one: str
    many: str
    rows: Integers
    low: Floats
    high: Floats
    size: Floats
    noise: Floats
    error: str
    per_row: bool
    name: Callable[[int], Mapping[str, Name]]
    guessed: bool = False

    @property
    def half_widths(self) -> Floats:
        """``[group]``: the error there if the predicted one is 1."""
        if not self.per_row:
            return np.ones(len(self.rows))
        return np.asarray(self.rows.min() / self.rows)

    @property
    def by_size(self) -> Integers:
        """The groups, first those whose answers stand the least noise."""
        return np.argsort(self.size / self.half_widths, kind="stable")

    @property
    def deciding(self) -> int:
        """The smallest group but for those that together hold less than `ASIDE` of the rows."""
        order = self.by_size
        held = np.cumsum(self.rows[order])
        return int(order[np.searchsorted(held, ASIDE * held[-1])])


def answer_scales(query: Query, engine: Engine) -> AnswerScales:
    """What the answers of a query may be, by group; reads public columns only."""
    sizes = np.ravel(query.public_rows(engine)).astype(np.int64)
    filled = np.flatnonzero(sizes > 0)
    rows = sizes[filled]
    of_kind = query.scales(engine, rows.astype(np.float64), filled)
    axes = query.groups(engine)

    def name(group: int) -> dict[str, Name]:
        at = np.unravel_index(filled[group], [len(keys) for _, keys in axes]) if axes else ()
        return {column: keys[int(place)] for (column, keys), place in zip(axes, at, strict=True)}

    scales: dict[str, Any] = {"many": "", "error": "interval", "per_row": False, **of_kind}
    scales.setdefault("noise", scales["high"] - scales["low"])
    return AnswerScales(rows=rows, name=name, **scales)
