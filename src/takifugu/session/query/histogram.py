r"""``histogram`` and ``proportions``: how many rows have each label, or which share of them.

Of several columns a histogram is a cross-tabulation (a contingency table). A row is in one of its
cells, or in none if one of its values is dropped: whichever of its columns are replaced, one count
goes down and another up. So it is a histogram of joint values, with the sensitivity of any other,
and between rows that are equal in the columns that it counts it tells nothing: the cost is ε·[u≠v]
of these columns together (`takifugu.costs.shapes.Jointly`).

Where no value is dropped the counts of a group add up to its rows, which are public. Asked with
``sum_to_one`` the noisy ones do so as well. That is done to the numbers when they are shown, so it
is no part of what is asked, charged or stored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.declarations import Declaration
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import HISTOGRAM, Sensitivity
from takifugu.priors import Name
from takifugu.session.possible_answers import Units
from takifugu.session.query.query import (
    Axes,
    DeclaredKeys,
    NumberQuery,
    count_scales,
    filled_groups,
    labels_of,
)
from takifugu.tables import Engine


@dataclass(frozen=True)
class HistogramQuery(NumberQuery):
    """How many rows have each label, or each combination of labels.

    Attributes:
        sum_to_one: Whether the numbers of each group are shown so that they add up to its rows.
    """

    kind: ClassVar[str] = "histogram"
    several: ClassVar[bool] = True
    counts_rows: ClassVar[bool] = True
    summary: ClassVar[str] = "the counts of the values of {column}{by}"
    question: ClassVar[str] = "How many rows have each value of {column}{each}?"

    sum_to_one: bool = field(default=False, kw_only=True)

    @property
    def adds_up(self) -> bool:
        """As it was asked for."""
        return self.sum_to_one

    def check(self, declaration: Declaration) -> None:
        """The columns must hold labels; of numbers that add up, a label for every row."""
        for column in self.columns:
            labels = labels_of(declaration, self.kind, column)
            if self.sum_to_one and labels.outside == "drop":
                raise UnsoundRequest(
                    f"rows whose {column} is not in the declared list are dropped, so how many are"
                    " counted is protected, and the numbers have no public sum; leave `sum_to_one`"
                    ' out, or declare outside = "other"',
                    field="sum_to_one",
                    reason="no-public-size",
                )

    def axes(self, engine: Engine) -> Axes:
        """The groups and the labels of each column."""
        return (*self.groups(engine), *((name, engine.keys(name)) for name in self.columns))

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """Counts, of which each combination of labels has its share."""
        return count_scales(rows, 1 / prod(len(engine.keys(column)) for column in self.columns))

    @classmethod
    def stored_axes(
        cls, query: Mapping[str, Any], keys: DeclaredKeys
    ) -> list[tuple[str, Sequence[Name] | None]]:
        """The labels of each column."""
        about = query["column"]
        columns = about if isinstance(about, list) else [about]
        return [(column, keys(column)) for column in columns]

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up."""
        return HISTOGRAM

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``, with an axis for each column."""
        counted = engine.histogram((*self.by, *self.columns), self.rows.scope)
        return self._in_scope(engine, counted.counts)


@dataclass(frozen=True)
class ProportionsQuery(HistogramQuery):
    """The share of the rows of a group that have each label: time in state, for even steps."""

    kind: ClassVar[str] = "proportions"
    summary: ClassVar[str] = "the shares of the values of {column}{by}"
    question: ClassVar[str] = "What share of the rows has each value of {column}{each}?"
    stored_as: ClassVar[str] = "count as drawn"

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:
        """Shares of the rows of a group: less certain in the smaller ones."""
        counted = super().scales(engine, rows, filled)
        return {
            "one": "a share",
            "many": "shares",
            "low": counted["low"],
            "high": np.ones(len(rows)),
            "size": counted["size"] / rows,
            "noise": counted["noise"] / rows,
            "per_row": True,
        }

    def unit(self, engine: Engine) -> Fraction:
        """One row of the smallest group."""
        return Fraction(1, min(filled_groups(self, engine)))

    def drawn(self, answer: list[Any], engine: Engine) -> list[int | None]:
        """The counts that were drawn; a group without rows has no shares."""
        sizes = self._of_group(self.public_rows(engine), engine)
        return [None if n == 0 else count for count, n in zip(answer, sizes, strict=True)]

    def units(self, engine: Engine) -> Units:
        """One row of as many as the group has."""
        return Units(1, self._of_group(self.public_rows(engine), engine))
