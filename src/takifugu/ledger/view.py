"""The Pufferfish loss of a ledger: a view of its per-entry totals, translated once.

A translation says what a per-entry loss on *every* entry amounts to. It grows with that loss, and
no entry has lost more than the worst cell, so translating the worst total bounds the loss of all
that was released (theory: the loss is monotone in each entry's ε). Another prior, another
translation, is another view of the same ledger. Losses are rounded up, allowances down.
"""

import math
from fractions import Fraction
from typing import Any, Protocol, SupportsFloat, runtime_checkable

from takifugu.errors import UnsoundRequest
from takifugu.ledger.frontier import Frontier
from takifugu.losses import Approximate, Concentrated, Loss, Pure, Total


class Translation(Protocol):
    """Anything that turns a per-entry ε into a Pufferfish ε, rounded up.

    If it also has ``to_dp``, the inverse rounded down, budgets are compared in exact
    rationals; without it the filter asks ``to_pufferfish`` every time.
    """

    def to_pufferfish(self, epsilon: float, /) -> SupportsFloat:
        """The Pufferfish loss of a per-entry ε-DP release on every entry, rounded up."""


@runtime_checkable
class TotalTranslation(Protocol):
    """A translation that also reads δ and ρ."""

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> SupportsFloat:
        """The least ε, rounded up, at which ``total`` is (ε, ``delta``)-Pufferfish private."""


class Filter(Protocol):
    """Which totals of ε, δ and ρ an entry may reach, whatever is asked after whichever answer."""

    def admits(self, total: Total, /) -> bool:
        """Whether an entry may have lost ``total``."""

    def room(self, total: Total, loss: Loss, /) -> Fraction:
        """How much of the currency of ``loss`` fits on top of ``total``, rounded down."""


@runtime_checkable
class Filters(Protocol):
    """A translation that makes a filter of a budget."""

    def filter(self, allowed: Fraction, epsilon: Fraction, delta: Fraction, /) -> Filter:
        """The filter of a budget (ε, δ) under which ``allowed`` per entry loses at most ε."""


def float_up(value: Fraction) -> float:
    """The least float that is not below ``value``."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def float_down(value: Fraction) -> float:
    """The largest float that is not above ``value`` ≥ 0."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, 0.0)


def to_pufferfish(translation: Translation, totals: Frontier, delta: Fraction) -> float:
    """The Pufferfish ε of the worst of ``totals`` at ``delta``, rounded up; may be infinite."""
    return max(_translated(translation, total, delta) for total in totals)


def read(
    translation: Translation, totals: Frontier, epsilon: Fraction | None, delta: Fraction
) -> float:
    """`to_pufferfish`, and no more than a budget of ``epsilon`` if that admits all of ``totals``.

    A budget that admits them bounds what they reveal. Bounds are searched for: that of a smaller
    loss may end a little above that of a larger one, and so may the reading of δ and ρ.
    """
    value = to_pufferfish(translation, totals, delta)
    if epsilon is None or Fraction(min(value, 2.0**64)) <= epsilon:
        return value
    return float_up(epsilon) if Limit(translation, epsilon, delta).admits(totals) else value


def _translated(translation: Translation, total: Total, delta: Fraction) -> float:
    if total == Total():
        return 0.0  # nothing was read
    if total.delta or total.rho:
        if not isinstance(translation, TotalTranslation):
            raise UnsoundRequest(
                "the entries have lost δ or ρ, which this translation does not read; use one with"
                " `total_to_pufferfish(total, delta)`",
                reason="currency",
            )
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
    """Which totals a Pufferfish budget admits, by one translation."""

    def __init__(self, translation: Translation, epsilon: Fraction, delta: Fraction) -> None:
        self.translation, self.epsilon, self.delta = translation, epsilon, delta
        self.allowed = self._allowance() if hasattr(translation, "to_dp") else None
        self._filter: Filter | None = None
        if self.allowed is not None and delta > 0 and isinstance(translation, Filters):
            self._filter = translation.filter(self.allowed, epsilon, delta)
        self._known: tuple[Frontier, bool] = ((), True)

    def _allowance(self) -> Fraction:
        """The per-entry ε that the budget allows on every entry, proven in both directions."""
        inverse: Any = self.translation
        allowed = float(inverse.to_dp(float_down(self.epsilon)))
        if not 0 <= allowed < math.inf:
            raise UnsoundRequest(
                f"the translation allows ε = {allowed}; it must be 0 or more, and finite",
                reason="broken translation",
                given=allowed,
            )
        shrink = 2.0**-50
        while allowed > 0 and not self._within(Total(Fraction(allowed))):
            allowed = max(0.0, allowed * (1 - shrink))  # a rounding apart at most, if it is honest
            shrink = min(1.0, shrink * 16)
        return Fraction(allowed)

    def _within(self, total: Total) -> bool:
        value = _translated(self.translation, total, self.delta)
        return value < math.inf and Fraction(value) <= self.epsilon

    def admits(self, totals: Frontier) -> bool:
        """Whether entries that lost ``totals`` are still within the budget."""
        known, answer = self._known
        if known != totals:
            answer = all(map(self._admits, totals))
            self._known = (totals, answer)
        return answer

    def _admits(self, total: Total) -> bool:
        if self.allowed is not None and not (total.delta or total.rho):
            return total.epsilon <= self.allowed
        return self.judges(total)

    def judges(self, total: Total) -> bool:
        """Whether ``total`` is within the budget as one among totals of several currencies."""
        return self._within(total) if self._filter is None else self._filter.admits(total)

    def room(self, spent: Frontier, loss: Loss) -> Fraction:
        """How much of the currency of ``loss`` still fits on top of ``spent``, rounded down.

        For (ε, δ) that is ε beside the same δ. Exact for ε where the allowance is known;
        else found by halving, and proven admissible.
        """
        pure = isinstance(loss, Pure) and all(not (t.delta or t.rho) for t in spent)
        if self.allowed is not None and pure:
            return max(Fraction(0), self.allowed - max(t.epsilon for t in spent))
        if self._filter is not None:
            return min(self._filter.room(total, loss) for total in spent)
        low, high = Fraction(0), Fraction(1)
        if not self._fits(spent, loss, low):
            return low
        while self._fits(spent, loss, high):
            low, high = high, 2 * high
            if high > 2**20:  # no more than this can be of use
                return low
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._fits(spent, loss, middle) else (low, middle)
        return low

    def _fits(self, spent: Frontier, loss: Loss, amount: Fraction) -> bool:
        return all(self._admits(total.plus(resized(loss, amount))) for total in spent)


def amount(loss: Loss) -> tuple[str, Fraction]:
    """The currency and the number that an analyst would turn down: ε, or ρ."""
    if isinstance(loss, Concentrated):
        return "rho", loss.rho
    return "epsilon", loss.epsilon


def resized(loss: Loss, to: Fraction) -> Loss:
    """The same kind of loss with ``to`` as its amount."""
    match loss:
        case Approximate(delta=delta):
            return Approximate(to, delta)
        case Concentrated():
            return Concentrated(to)
    return Pure(to)
