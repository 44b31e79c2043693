r"""What a release tells about a row, sorted by the columns that have to change.

The cost of a change from row u to row v is a sum of three kinds of terms:

.. math:: c(u, v) = ε_0 [u ≠ v] + \sum_J ε_J [u_J ≠ v_J] + \sum_j c_j(u_j, v_j):

any change of the row, cross-tabulations of sets J of columns, and single columns.

*What is constant.* For a secret about column i let u be a row on its left side and v one on its
right. They differ in column i, so that the first term and every ε_J with i in J are paid by all
moves alike. The worst loss is log t for the least t of a transport with gains :math:`e^{c(u,v)}`
from the left side to the right, and a factor that all gains have in common is a factor of t. So
the constant adds itself to the worst loss, exactly, and only the rest has to be coupled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from takifugu.cost_shapes import column_and_shape
from takifugu.costs import ANY, Cost, Jointly, Shape
from takifugu.errors import UnsoundRequest


@dataclass(frozen=True, eq=False)
class RowSpending:
    """The terms of a cost on rows.

    Attributes:
        whole: ε of any change of the row.
        together: ε of any change of some columns, by these columns.
        alone: The cost on the values of each column that is read by itself.
    """

    whole: Fraction
    together: Mapping[tuple[str, ...], Fraction]
    alone: Mapping[str, Cost]

    @classmethod
    def of(cls, cost: Cost) -> "RowSpending":
        """Of a cost whose shapes name their columns; a bare `AnyValue` is any change of the row."""
        whole, together = Fraction(0), dict[tuple[str, ...], Fraction]()
        alone: dict[str, dict[Shape, Fraction]] = {}
        for shape, value in cost.terms:
            column, inner = column_and_shape(shape)
            if isinstance(inner, Jointly):
                together[inner.columns] = value
            elif column is not None:
                alone.setdefault(column, {})[inner] = value
            elif inner == ANY:
                whole = value
            else:
                raise UnsoundRequest(
                    "a cost names no column, and rows have several; say which column it is about",
                    field="columns",
                )
        return cls(whole, together, {column: Cost.of(terms) for column, terms in alone.items()})

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that some term names."""
        return tuple(sorted({*self.alone, *(c for columns in self.together for c in columns)}))

    def constant(self, column: str) -> Fraction:
        """What every move between two values of ``column`` costs, whatever else changes."""
        return sum(
            (value for columns, value in self.together.items() if column in columns), self.whole
        )

    def beside(self, column: str) -> "RowSpending":
        """All but what is `constant` for ``column``."""
        rest = {columns: value for columns, value in self.together.items() if column not in columns}
        return RowSpending(Fraction(0), rest, self.alone)

    def by_column(self, column: str) -> Cost:
        """What a change of ``column`` alone costs."""
        return self.alone.get(column, Cost()) + Cost.any(self.constant(column))

    @property
    def at_once(self) -> Fraction:
        """What a change of all columns of cross-tabulations costs."""
        return sum(self.together.values(), self.whole)
