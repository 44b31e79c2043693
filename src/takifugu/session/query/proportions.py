"""``proportions``: the share of the rows of a group that have each label."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from takifugu.session.possible_answers import Units
from takifugu.session.query.histogram import HistogramQuery
from takifugu.session.query.query import filled_groups
from takifugu.tables import Engine


@dataclass(frozen=True)
class ProportionsQuery(HistogramQuery):
    """The share of the rows of a group that have each label: time in state, for even steps."""

    kind: ClassVar[str] = "proportions"

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
