"""``counts``: how many rows have each of some labels."""

from dataclasses import dataclass
from typing import ClassVar

from takifugu._core.numeric import Integers
from takifugu.binding.protected_values import Values
from takifugu.costs.cost import Cost
from takifugu.declarations import Declaration
from takifugu.mechanisms import COUNT, HISTOGRAM, Sensitivity
from takifugu.session.query.count import CountQuery
from takifugu.session.query.query import Axes
from takifugu.tables import Engine


@dataclass(frozen=True)
class CountsQuery(CountQuery):
    """How many rows have each of some labels: one number for each, with noise of its own.

    The numbers are those of a histogram, with the same noise, of which the others are never drawn.
    So it costs no more than the histogram, and less between labels that are not listed: the plan
    is made both ways, and the less noise (or the lower price) is used.
    """

    kind: ClassVar[str] = "counts"

    def axes(self, engine: Engine) -> Axes:
        """The groups and the listed labels, in the order of the declaration."""
        listed = frozenset(self.values)
        kept = tuple(key for key in engine.keys(self.column) if key in listed)
        return (*self.groups(engine), (self.column, kept))

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up; with one label, one row more or less."""
        return HISTOGRAM if len(self.values) > 1 else COUNT

    def unit_cost(self, values: Values) -> Cost:
        """Whether a value is listed, and which it is."""
        return values[self.column].counts(self.values)

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``."""
        counted = engine.histogram((*self.by, self.column), self.rows.scope)
        listed = frozenset(self.values)
        chosen = [value in listed for value in engine.keys(self.column)]
        return self._in_scope(engine, counted.counts[..., chosen])
