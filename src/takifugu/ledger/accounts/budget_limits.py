"""The Pufferfish loss of per-entry totals, and the totals that a Pufferfish budget admits.

A translation bounds the Pufferfish loss of a per-entry loss on *every* entry. It grows with that
loss, and no entry has lost more than the worst cell, so translating the worst total bounds the loss
of all that was released (theory: the loss is monotone in each entry's ε). Another prior is another
translation of the same totals. Losses are rounded up, allowances down.
"""

import math
from fractions import Fraction

from takifugu._rounding import float_down, float_up
from takifugu.errors import UnsoundRequest
from takifugu.ledger.accounts.frontier import Frontier
from takifugu.losses import Concentrated, Loss, Total
from takifugu.translation.protocol import LossTranslation


def to_pufferfish(translation: LossTranslation, totals: Frontier, delta: Fraction) -> float:
    """The Pufferfish ε of the worst of ``totals`` at ``delta``, rounded up; may be infinite."""
    return max(_translated(translation, total, delta) for total in totals)


def spent_epsilon(
    translation: LossTranslation, totals: Frontier, epsilon: Fraction | None, delta: Fraction
) -> float:
    """`to_pufferfish`, and no more than a budget of ``epsilon`` if that admits all of ``totals``.

    A budget that admits them bounds what they reveal. Bounds are searched for: that of a smaller
    loss may end a little above that of a larger one, and so may the reading of δ and ρ.
    """
    value = to_pufferfish(translation, totals, delta)
    if epsilon is None or _at_most(value, epsilon):
        return value
    return Limit(translation, epsilon, delta).capped(value, totals)


def _at_most(value: float, epsilon: Fraction) -> bool:
    return Fraction(min(value, 2.0**64)) <= epsilon


def _translated(translation: LossTranslation, total: Total, delta: Fraction) -> float:
    if total == Total():
        return 0.0  # nothing was read
    if total.delta or total.rho:
        value = float(translation.total_to_pufferfish(total, delta))
    else:
        spent = float_up(total.epsilon)
        value = math.inf if spent == math.inf else float(translation.to_pufferfish(spent))
    if not value >= 0:  # also true for NaN
        raise UnsoundRequest(
            f"the translation of a loss is {value}; it must be 0 or more",
            reason="broken translation",
            given=value,
        )
    return value


class Limit:
    """Which totals a Pufferfish budget admits, by one translation.

    Attributes:
        allowed: The per-entry ε that the budget allows on every entry, proven in both directions.
    """

    def __init__(self, translation: LossTranslation, epsilon: Fraction, delta: Fraction) -> None:
        self.translation, self.epsilon, self.delta = translation, epsilon, delta
        self.allowed = self._allowance()
        self._filter = translation.filter(self.allowed, epsilon, delta)
        self._known: tuple[Frontier, bool] = ((), True)

    def _allowance(self) -> Fraction:
        allowed = float(self.translation.to_dp(float_down(self.epsilon)))
        if not 0 <= allowed < math.inf:
            raise UnsoundRequest(
                f"the translation allows ε = {allowed}; it must be 0 or more, and finite",
                reason="broken translation",
                given=allowed,
            )
        shrink = 2.0**-50
        while allowed > 0 and not self._within(allowed):
            allowed = max(0.0, allowed * (1 - shrink))  # a rounding apart at most, if it is honest
            shrink = min(1.0, shrink * 16)
        return Fraction(allowed)

    def _within(self, spent: float) -> bool:
        value = _translated(self.translation, Total(Fraction(spent)), self.delta)
        return value < math.inf and Fraction(value) <= self.epsilon

    def admits(self, totals: Frontier) -> bool:
        """Whether entries that lost ``totals`` are still within the budget."""
        known, answer = self._known
        if known != totals:
            answer = all(map(self._filter.admits, totals))
            self._known = (totals, answer)
        return answer

    def spent(self, totals: Frontier) -> float:
        """The Pufferfish ε of ``totals``, rounded up; as `spent_epsilon`."""
        return self.capped(to_pufferfish(self.translation, totals, self.delta), totals)

    def capped(self, value: float, totals: Frontier) -> float:
        """``value``, or the budget where that is less and admits ``totals``."""
        if _at_most(value, self.epsilon) or not self.admits(totals):
            return value
        return float_up(self.epsilon)

    def room(self, spent: Frontier, loss: Loss) -> Fraction:
        """How much of the currency of ``loss`` still fits on top of ``spent``, rounded down.

        For (ε, δ) that is ε beside the same δ.
        """
        return min(self._filter.room(total, loss) for total in spent)


def amount(loss: Loss) -> tuple[str, Fraction]:
    """The currency of a loss and its amount: ε, or ρ."""
    if isinstance(loss, Concentrated):
        return "rho", loss.rho
    return "epsilon", loss.epsilon
