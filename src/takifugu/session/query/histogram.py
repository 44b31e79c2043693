"""``histogram``: how many rows have each label."""

from dataclasses import dataclass
from typing import ClassVar

from takifugu.engines import Declaration, Engine
from takifugu.mechanisms import HISTOGRAM, Sensitivity
from takifugu.numeric import Integers
from takifugu.session.query.query import Axes, NumberQuery


@dataclass(frozen=True)
class HistogramQuery(NumberQuery):
    """How many rows have each label."""

    kind: ClassVar[str] = "histogram"

    def check(self, declaration: Declaration) -> None:
        """The column must hold labels."""
        declaration.category(self.column)

    def axes(self, engine: Engine) -> Axes:
        """The groups and the labels."""
        return (*self.groups(engine), (self.column, engine.keys(self.column)))

    def sensitivity(self, declaration: Declaration) -> Sensitivity:  # noqa: ARG002
        """One count down, another up."""
        return HISTOGRAM

    def exact(self, engine: Engine) -> Integers:
        """``[by, label]``."""
        counted = engine.histogram((*self.by, self.column), self.rows.scope)
        return self._in_scope(engine, counted.counts)
