"""A translation that is read from its table, and computed where the table ends."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf

from takifugu._rounding import float_up
from takifugu.costs import NOTHING, Cost
from takifugu.losses import Total
from takifugu.translation.accounting.translation_table import TranslationTable
from takifugu.translation.protocol import LossTranslation
from takifugu.translation.translation import Translation


class TabledTranslation(LossTranslation):
    """A table, and the translation that it was made from for what the table does not hold.

    A query may ask for far more than any budget allows. It gets its price, and what would be
    accepted, wherever the table happens to end. Both parts are sound, and so is every mixture.

    Attributes:
        least: Below this Pufferfish loss `to_dp` allows nothing. By default it is where the table
            begins, so that no allowance has to be searched for; 0 computes what lies below.
    """

    def __init__(
        self, translation: Translation, table: TranslationTable, *, least: float | None = None
    ) -> None:
        self._translation, self._table = translation, table
        self._first, self._last = float(table.loss[0]), float(table.epsilon[-1])
        self._least = self._first if least is None else least

    @property
    def computed(self) -> Translation:
        """The translation that the table was made from."""
        return self._translation

    @property
    def least(self) -> float:
        """The smallest positive Pufferfish loss that `to_dp` is meant for."""
        return self._least

    @property
    def fingerprint(self) -> str:
        """That of the table, which pins the translation that it was made from."""
        return self._table.fingerprint

    @property
    def every_pair(self) -> bool:
        """Whether each pair of values of each entry is secret."""
        return self._translation.every_pair

    def to_pufferfish(self, dp: float, /) -> float:
        """The Pufferfish loss of a per-entry loss, rounded up."""
        part = self._table if dp <= self._last else self._translation
        return float(part.to_pufferfish(dp))

    def to_dp(self, pufferfish: float, /) -> float:
        """The per-entry loss that a Pufferfish loss allows, rounded down; 0 below ``least``."""
        if 0 <= pufferfish < self.least:
            return 0.0
        part = self._translation if 0 < pufferfish < self._first else self._table
        return float(part.to_dp(pufferfish))

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """The Pufferfish ε of a total at ``delta``, rounded up; computed if the table ends."""
        found = self._table.total_to_pufferfish(total, delta)
        return found if found < inf else self._translation.total_to_pufferfish(total, delta)

    def cost_to_pufferfish(self, *costs: Cost) -> float:
        """The loss if every entry has lost at most one of ``costs``, rounded up; computed.

        From the table where every cost is a scalar one.
        """
        if all(cost.is_scalar for cost in costs):
            top = max((cost.scalar for cost in costs), default=Fraction(0))
            return self.to_pufferfish(float_up(top)) if top else 0.0
        return self._translation.cost_to_pufferfish(*costs)

    def to_cost(
        self,
        unit: Cost,
        pufferfish: float,
        *,
        spent: Sequence[Cost] = (NOTHING,),
        beside: Sequence[Cost] = (),
    ) -> Fraction:
        """The largest factor of ``unit`` that a Pufferfish loss allows, rounded down; computed."""
        if all(cost.is_scalar for cost in (unit, *spent, *beside)):
            return super().to_cost(unit, pufferfish, spent=spent, beside=beside)
        return self._translation.to_cost(unit, pufferfish, spent=spent, beside=beside)
