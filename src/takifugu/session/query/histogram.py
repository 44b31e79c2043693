r"""``histogram``: how many rows have each label, or each combination of labels of some columns.

Of several columns it is a cross-tabulation (a contingency table). A row is in one of its cells, or
in none if one of its values is dropped: whichever of its columns are replaced, one count goes down
and another up. So it is a histogram of joint values, with the sensitivity of any other, and between
rows that are equal in the columns that it counts it tells nothing: the cost is ε·[u≠v] of these
columns together (`takifugu.cost_shapes.Jointly`).
"""

from dataclasses import dataclass
from typing import ClassVar

from takifugu.engines import Declaration, Engine
from takifugu.mechanisms import HISTOGRAM, Sensitivity
from takifugu.numeric import Integers
from takifugu.session.query.query import Axes, NumberQuery, labels_of


@dataclass(frozen=True)
class HistogramQuery(NumberQuery):
    """How many rows have each label, or each combination of labels."""

    kind: ClassVar[str] = "histogram"
    several: ClassVar[bool] = True

    def check(self, declaration: Declaration) -> None:
        """The columns must hold labels."""
        for column in self.columns:
            labels_of(declaration, self.kind, column)

    def axes(self, engine: Engine) -> Axes:
        """The groups and the labels of each column."""
        return (*self.groups(engine), *((name, engine.keys(name)) for name in self.columns))

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up."""
        return HISTOGRAM

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``, with an axis for each column."""
        counted = engine.histogram((*self.by, *self.columns), self.rows.scope)
        return self._in_scope(engine, counted.counts)
