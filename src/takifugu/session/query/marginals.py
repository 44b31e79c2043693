r"""``marginals``: how many rows have each label, for several columns in one release.

One-way marginals: a histogram of each column, counted together in one pass over the rows, with
noise of one scale b on all their counts. A change of column c alone moves one count of its own
histogram down and another up, whatever the rest of the row is: it costs 2/b. A change of several
columns moves the histogram of each: it costs 2/b for each of them, and 2m/b for all m. So the cost
on a row is

.. math:: \tfrac{2}{b} \sum_c [u_c \ne v_c],

the sum of what separate histograms with this noise would cost, and the per-entry loss is 2m/b. A
value that is dropped leaves the histogram of its own column alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import NOTHING, Cost
from takifugu.declarations import Declaration
from takifugu.mechanisms import HISTOGRAM, Mechanism, Sensitivity
from takifugu.priors import Name
from takifugu.session.possible_answers import AnswerTable, Rows
from takifugu.session.query.query import Axes, NumberQuery, count_scales, labels_of, own_columns
from takifugu.tables import Engine


@dataclass(frozen=True)
class MarginalsQuery(NumberQuery):
    """A histogram of each of some columns."""

    kind: ClassVar[str] = "marginals"
    several: ClassVar[bool] = True
    all_labels: ClassVar[bool] = True
    between: ClassVar[str] = ", "
    summary: ClassVar[str] = "the counts of the values of each of {column}{by}"
    question: ClassVar[str] = "How many rows have each value of each of {column}{each}?"

    def check(self, declaration: Declaration) -> None:
        """The columns must hold labels."""
        for column in self.columns:
            labels_of(declaration, self.kind, column)

    def axes(self, engine: Engine) -> Axes:
        """The groups, and the labels of all columns one after the other, by number."""
        return (*self.groups(engine), ("label", tuple(range(len(self._labels(engine))))))

    def _labels(self, engine: Engine) -> list[tuple[str, Name]]:
        """Each label with its column, in the order of the answer."""
        return [(column, label) for column in self.columns for label in engine.keys(column)]

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """In the histogram of each column one count down, another up."""
        many = len(self.columns)
        return Sensitivity(
            self.kind,
            l1=many * HISTOGRAM.l1,
            l2_squared=many * HISTOGRAM.l2_squared,
            linf=HISTOGRAM.linf,
        )

    def scales(self, engine: Engine, rows: Floats, filled: Integers) -> dict[str, Any]:  # noqa: ARG002
        """Counts, of one column after the other."""
        return count_scales(rows, 1 / max(len(engine.keys(column)) for column in self.columns))

    def whole_cost(self, values: Values) -> Cost:
        """A change of each column costs its share; a change of all of them, everything."""
        share = Fraction(1, len(self.columns))
        return sum((values[column].wholly * share for column in self.columns), NOTHING)

    def exact(self, engine: Engine) -> Integers:
        """``[by, label of the first column, …, label of the last]``."""
        sets = [(*self.by, column) for column in self.columns]
        counted = engine.cross_tabulations(sets, self.rows.scope)
        tables = [self._in_scope(engine, one.counts) for one in counted]
        return np.concatenate(tables, axis=-1)

    def tabulated(
        self, mechanism: Mechanism, answer: list[Any], engine: Engine, error: Mapping[str, Any]
    ) -> AnswerTable:
        """The keys, the column, its label, the number and both ends of its interval."""
        found = super().tabulated(mechanism, answer, engine, error)
        *names, _, estimate, low, high = found.columns
        labels, place = self._labels(engine), len(names)

        def named(rows: Rows) -> Rows:
            return tuple((*row[:place], *labels[row[place]], *row[place + 1 :]) for row in rows)

        ours = own_columns(tuple(names), "column", "label")
        raw = None if found.raw is None else named(found.raw)
        columns = (*names, *ours, estimate, low, high)
        return replace(found, columns=columns, rows=named(found.rows), raw=raw)
