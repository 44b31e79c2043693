r"""``histogram``: how many rows have each label, or each combination of labels of some columns.

Of several columns it is a cross-tabulation (a contingency table). A row is in one of its cells, or
in none if one of its values is dropped: whichever of its columns are replaced, one count goes down
and another up. So it is a histogram of joint values, with the sensitivity of any other, and between
rows that are equal in the columns that it counts it tells nothing: the cost is ε·[u≠v] of these
columns together (`takifugu.costs.shapes.Jointly`).

Where no value is dropped the counts of a group add up to its rows, which are public. Asked with
``sum_to_one`` the noisy ones do so as well. That is done to the numbers when they are shown, so it
is no part of what is asked, charged or stored.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Self

from takifugu._core.numeric import Integers
from takifugu.declarations import Declaration
from takifugu.errors import UnsoundRequest
from takifugu.mechanisms import HISTOGRAM, Sensitivity
from takifugu.session.cells import Rows
from takifugu.session.query.query import Axes, NumberQuery, labels_of
from takifugu.session.query_options import QueryOptions
from takifugu.tables import Engine


@dataclass(frozen=True)
class HistogramQuery(NumberQuery):
    """How many rows have each label, or each combination of labels.

    Attributes:
        sum_to_one: Whether the numbers of each group are shown so that they add up to its rows.
    """

    kind: ClassVar[str] = "histogram"
    several: ClassVar[bool] = True

    sum_to_one: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls,
        options: QueryOptions,
        declaration: Declaration,  # noqa: ARG003
        columns: tuple[str, ...],
        rows: Rows,
    ) -> Self:
        """With how it is shown."""
        return cls(columns[0], options.by, rows, beside=columns[1:], sum_to_one=options.sum_to_one)

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

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up."""
        return HISTOGRAM

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``, with an axis for each column."""
        counted = engine.histogram((*self.by, *self.columns), self.rows.scope)
        return self._in_scope(engine, counted.counts)
