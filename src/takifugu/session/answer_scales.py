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
from functools import partial
from math import prod
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.priors import Name
from takifugu.session.query.count import CountQuery
from takifugu.session.query.quantiles import QuantileQuery
from takifugu.session.query.query import NumberQuery, Query
from takifugu.session.query.sum_and_mean import MeanQuery
from takifugu.tables import Engine

ASIDE = 0.05  # of the rows: the smallest groups that hold less together do not decide
OF_A_RANGE = 4  # numbers are to be told to this part of their range
DROWNED = 5  # times its size: an error of a count or a share that leaves next to nothing of it


ScalesOf = Callable[[Any, Engine, Floats, Integers], dict[str, Any]]


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
    scales_of: ScalesOf = SCALES.get(query.kind, _ranges)
    found = scales_of(query, engine, rows.astype(np.float64), filled)
    axes = query.groups(engine)

    def name(group: int) -> dict[str, Name]:
        at = np.unravel_index(filled[group], [len(keys) for _, keys in axes]) if axes else ()
        return {column: keys[int(place)] for (column, keys), place in zip(axes, at, strict=True)}

    scales: dict[str, Any] = {"many": "", "error": "interval", "per_row": False, **found}
    scales.setdefault("noise", scales["high"] - scales["low"])
    return AnswerScales(rows=rows, name=name, **scales)


def _counts(query: Query, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
    del filled
    share = 1 / prod(len(engine.keys(column)) for column in query.columns)
    if query.kind == "marginals":  # one column after the other
        share = 1 / max(len(engine.keys(column)) for column in query.columns)
    elif query.kind == "transitions":  # from each label to each
        share = share**2
    elif query.kind == "count" and isinstance(query, CountQuery):  # of these labels together
        share *= len(query.values)
    size = rows * share
    return {
        "one": "a count",
        "many": "counts",
        "low": np.zeros(len(rows)),
        "high": rows,
        "size": size,
        "noise": np.minimum(DROWNED * size, rows),
        "guessed": query.kind in ("count", "counts") and share < 1,
    }


def _shares(query: Query, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
    counted = _counts(query, engine, rows, filled)
    return {
        "one": "a share",
        "many": "shares",
        "low": counted["low"],
        "high": np.ones(len(rows)),
        "size": counted["size"] / rows,
        "noise": counted["noise"] / rows,
        "per_row": True,
    }


def _ranking(query: Query, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
    """A lead of many times the usual size may well be there: only the range is too much."""
    counted = _counts(query, engine, rows, filled)
    return {**counted, "one": "a lead", "error": "gap", "noise": rows}


def _ranges(
    query: NumberQuery, engine: Engine, rows: Floats, filled: Integers, one: str = "an answer"
) -> dict[str, Any]:
    """Numbers of which only the range is known: of each group, the least and the most of them."""
    del rows
    units, groups = query.units(engine), prod(len(keys) for _, keys in query.groups(engine))
    ends = [[units.shown(at, end) for at, end in enumerate(s)] for s in query.ranges(engine)]
    low, high = np.array(ends, dtype=np.float64).reshape(2, groups, -1)[:, filled]
    return _numbers(one, low.min(axis=1), high.max(axis=1))


def _means(query: MeanQuery, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
    return {**_ranges(query, engine, rows, filled, "a mean"), "per_row": True}


def _numbers(one: str, low: Floats, high: Floats) -> dict[str, Any]:
    return {"one": one, "low": low, "high": high, "size": (high - low) / OF_A_RANGE}


def _ranks(query: QuantileQuery, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
    """How far the rank of an answer may be from the requested one, at most."""
    del engine, filled
    level = float(query.level)
    return {
        "one": "a rank",
        "low": np.zeros(len(rows)),
        "high": rows * max(level, 1 - level),
        "size": rows * min(level, 1 - level) / 2,
        "error": "ranks",
    }


SCALES: Mapping[str, ScalesOf] = {
    "histogram": _counts,
    "count": _counts,
    "counts": _counts,
    "marginals": _counts,
    "transitions": _counts,
    "proportions": _shares,
    "top_k": _ranking,
    "sum": partial(_ranges, one="a sum"),
    "mean": _means,
    "linear": partial(_ranges, one="a weighted sum"),
    "quantile": _ranks,
}  # registry: a line for each kind that is no `NumberQuery`, or of which more than a range is known
