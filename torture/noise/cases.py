"""Every kind of query with every mechanism that a session chooses for it, at its worst case.

Each has two datasets of a few rows that differ in one entry by as much as the declaration allows:
where the answer moves most, in the direction that a mechanism shows best.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from takifugu.costs.cost import Value
from takifugu.session import Plan
from torture.noise.leakage import Charged, entry_charge
from torture.noise.trial_tables import COLUMNS, FINE, LABELS, NUMBERS, Rows, Setting, rows_of

PURE: Mapping[str, Any] = {"epsilon": 2}
MIXED: Mapping[str, Any] = {"epsilon": 3, "delta": "0.05"}  # paid in ρ


@dataclass(frozen=True)
class Case:
    """A query, two neighbouring datasets, and the mechanism that is to answer it.

    Attributes:
        name: The query in a few words.
        kind: Its kind.
        mechanism: The kind of mechanism that a session chooses.
        setting: Table and prior.
        first: The rows of one dataset …
        second: … and of its neighbour: one row differs.
        options: Of the query, beside its kind.
        alone: Whether every group is released about on its own, and not by groups.
    """

    name: str
    kind: str
    mechanism: str
    setting: Setting
    first: Rows
    second: Rows
    options: Mapping[str, Any] = field(default_factory=dict)
    alone: bool = False

    @property
    def changed(self) -> tuple[Value, Value]:
        """The values of the entry that differs, before and after."""
        ((before, after),) = [
            (one, other) for one, other in zip(self.first, self.second, strict=True) if one != other
        ]
        columns = self.setting.columns
        if len(columns) == 1:
            return before[columns[0]], after[columns[0]]
        return tuple(before[c] for c in columns), tuple(after[c] for c in columns)

    @property
    def query(self) -> dict[str, Any]:
        """All options of the query."""
        return {"kind": self.kind, **self.options}

    def datasets(self, groups: int, rng: np.random.Generator) -> list[Rows]:  # noqa: ARG002
        """The first dataset in the groups of even number, its neighbour in the others."""
        return [self.second if group % 2 else self.first for group in range(groups)]

    def charged(self, plan: Plan) -> Charged:
        """What the charge says of these two datasets."""
        return entry_charge(plan, self.changed, self.setting.columns)


ADMITTED = rows_of("state", "home", "home"), rows_of("state", "ward", "home")
MOVED = rows_of("state", "ward", "home"), rows_of("state", "out", "home")
PASSING = rows_of("state", "out", "out", "out"), rows_of("state", "out", "ward", "out")
TIED = (
    rows_of("state", "home", "home", "ward", "ward"),
    rows_of("state", "home", "ward", "ward", "ward"),
)
LOADED = rows_of("load", 0, 2), rows_of("load", 4, 2)
SLIGHTLY = rows_of("load", 1, 2), rows_of("load", 3, 2)
PEAK = rows_of("load", 0, 2, hour=1), rows_of("load", 4, 2, hour=1)
MIDDLE = rows_of("load", 60, 60, 60, 70), rows_of("load", 60, 60, 60, 0)
BOTH = (
    ({"state": "home", "mood": "well"}, {"state": "out", "mood": "ill"}),
    ({"state": "ward", "mood": "ill"}, {"state": "out", "mood": "ill"}),
)
ONE = (
    ({"state": "home", "mood": "well"}, {"state": "out", "mood": "ill"}),
    ({"state": "ward", "mood": "well"}, {"state": "out", "mood": "ill"}),
)
TOTALS: Mapping[str, Any] = {"sum_to_one": True}
PLACES: Mapping[str, Any] = {"column": ("state", "mood")}

CASES = (
    Case("count", "count", "integer-laplace", LABELS, *ADMITTED, {"values": ["ward"], **PURE}),
    Case("count", "count", "integer-gaussian", LABELS, *ADMITTED, {"values": ["ward"], **MIXED}),
    Case(
        "count, one group after another",
        *("count", "integer-laplace", LABELS, *ADMITTED, {"values": ["ward"], **PURE}),
        alone=True,
    ),
    Case(
        "counts", "counts", "integer-laplace", LABELS, *MOVED, {"values": ["ward", "out"], **PURE}
    ),
    Case(
        "counts, one label listed",
        *("counts", "integer-laplace", LABELS, *ADMITTED, {"values": ["ward", "out"], **PURE}),
    ),
    Case(
        "counts", "counts", "integer-gaussian", LABELS, *MOVED, {"values": ["ward", "out"], **MIXED}
    ),
    Case("histogram", "histogram", "integer-laplace", LABELS, *ADMITTED, PURE),
    Case("histogram", "histogram", "integer-gaussian", LABELS, *ADMITTED, MIXED),
    Case(
        "histogram that adds up",
        "histogram",
        "integer-laplace",
        LABELS,
        *ADMITTED,
        {**TOTALS, **PURE},
    ),
    Case(
        "histogram of two columns",
        "histogram",
        "integer-laplace",
        COLUMNS,
        *BOTH,
        {**PLACES, **PURE},
    ),
    Case("histogram within ±3", "histogram", "integer-laplace", LABELS, *ADMITTED, {"within": 3}),
    Case("proportions", "proportions", "integer-laplace", LABELS, *ADMITTED, {**TOTALS, **PURE}),
    Case("proportions", "proportions", "integer-gaussian", LABELS, *ADMITTED, MIXED),
    Case("top 1", "top_k", "laplace-top-k", LABELS, *TIED, {"k": 1, **PURE}),
    Case("top 2", "top_k", "laplace-top-k", LABELS, *TIED, {"k": 2, **PURE}),
    Case("top 1", "top_k", "gaussian-top-k", LABELS, *TIED, {"k": 1, **MIXED}),
    Case("top 1 of a gap", "top_k", "permute-and-flip", LABELS, *TIED, {"k": 1, "gap": 2, **PURE}),
    Case("top 1 of a gap", "top_k", "exponential", LABELS, *TIED, {"k": 1, "gap": 2, **MIXED}),
    Case("sum", "sum", "bounded-sum", NUMBERS, *LOADED, PURE),
    Case("sum, values half as far apart", "sum", "bounded-sum", NUMBERS, *SLIGHTLY, PURE),
    Case("sum", "sum", "bounded-sum", NUMBERS, *LOADED, MIXED),
    Case("mean", "mean", "bounded-mean", NUMBERS, *LOADED, PURE),
    Case("mean", "mean", "bounded-mean", NUMBERS, *LOADED, MIXED),
    Case("linear", "linear", "integer-laplace", NUMBERS, *PEAK, {"query": "peak", **PURE}),
    Case("linear", "linear", "integer-gaussian", NUMBERS, *PEAK, {"query": "peak", **MIXED}),
    Case("median", "quantile", "permute-and-flip", FINE, *MIDDLE, {"level": "0.5", **PURE}),
    Case("median", "quantile", "exponential", FINE, *MIDDLE, {"level": "0.5", **MIXED}),
    Case("transitions", "transitions", "integer-laplace", LABELS, *PASSING, PURE),
    Case("transitions", "transitions", "integer-gaussian", LABELS, *PASSING, MIXED),
    Case("marginals, a row", "marginals", "integer-laplace", COLUMNS, *BOTH, {"epsilon": 1}),
    Case("marginals, a column", "marginals", "integer-laplace", COLUMNS, *ONE, PURE),
    Case("marginals, a row", "marginals", "integer-gaussian", COLUMNS, *BOTH, MIXED),
)
