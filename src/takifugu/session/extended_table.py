"""A translation for sessions: looked up in a table, and computed where the table ends.

A plan may ask for far more than any budget allows. It is answered with its price and with what
would be accepted, not with where some table happens to end.
"""

from fractions import Fraction
from math import inf
from typing import Any

from takifugu.losses import Total
from takifugu.translation.accounting.table import TranslationTable
from takifugu.translation.accounting.totals import Filter
from takifugu.translation.translation import Translation


class ExtendedTable:
    """A table, with the translation that it was made from behind its end. All as sound as they."""

    def __init__(self, translation: Translation, table: TranslationTable) -> None:
        self._translation, self._table = translation, table
        self.least = float(table.loss[0])  # the smallest loss that an allowance is known for
        self._end = float(table.epsilon[-1])

    def to_pufferfish(self, dp: float, /) -> Any:
        """The Pufferfish loss of a per-entry loss, rounded up."""
        return (self._table if dp <= self._end else self._translation).to_pufferfish(dp)

    def to_dp(self, pufferfish: float, /) -> Any:
        """The per-entry loss that a Pufferfish loss allows, rounded down: 0 below the table."""
        return 0.0 if 0 <= pufferfish < self.least else self._table.to_dp(pufferfish)

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """The Pufferfish ε at δ of a total of ε, δ and ρ, rounded up."""
        found = self._table.total_to_pufferfish(total, delta)
        return found if found < inf else self._translation.total_to_pufferfish(total, delta)

    def filter(self, allowed: Fraction, epsilon: Fraction, delta: Fraction, /) -> Filter:
        """Which totals a budget (ε, δ) admits if ``allowed`` per entry loses at most ε."""
        return self._table.filter(allowed, epsilon, delta)
