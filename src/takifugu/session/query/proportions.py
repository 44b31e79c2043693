"""``proportions``: the share of the rows of a group that have each label."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from takifugu.engines import Engine
from takifugu.mechanisms import Mechanism
from takifugu.numeric import Floats, Integers
from takifugu.session.query.histogram import HistogramQuery
from takifugu.session.query.query import filled_groups


@dataclass(frozen=True)
class ProportionsQuery(HistogramQuery):
    """The share of the rows of a group that have each label: time in state, for even steps."""

    kind: ClassVar[str] = "proportions"

    def unit(self, engine: Engine) -> Fraction:
        """One row of the smallest group."""
        return Fraction(1, min(filled_groups(self, engine)))

    def interval(self, mechanism: Mechanism, engine: Engine) -> Floats:
        """The interval of the count, over the number of rows."""
        halves = super().interval(mechanism, engine)
        return np.asarray(halves / np.maximum(self._sizes(engine, len(halves)), 1))

    def shown(self, answer: list[Any], engine: Engine) -> list[Any]:
        """The count that was drawn, over a public number of rows."""
        sizes = self._sizes(engine, len(answer)).tolist()
        return [None if n == 0 else count / n for count, n in zip(answer, sizes, strict=True)]

    def _sizes(self, engine: Engine, cells: int) -> Integers:
        """``[number]``: how many rows its group has."""
        sizes = np.ravel(self.public_rows(engine))
        return np.repeat(sizes, cells // len(sizes))
