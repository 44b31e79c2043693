"""How the accounts that pay for a charge stand: their budgets, and what was spent from them.

A translation bounds the Pufferfish loss of a per-entry loss on *every* entry. It grows with that
loss, and no entry has lost more than the worst cell, so translating the worst total bounds the loss
of all that was released (theory: the loss is monotone in each entry's ε). Another prior is another
translation of the same totals. Losses are rounded up, allowances down.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from takifugu._rounding import float_down, float_up
from takifugu.errors import NoBudget, UnsoundRequest
from takifugu.ledger.accounts.account import WHOLE, Book, Touch
from takifugu.ledger.accounts.frontier import Frontier, add, worst
from takifugu.ledger.storage import account_tables as tables
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


MOST_LIMITS = 64  # translated budgets that are remembered


class Limits:
    """Budgets, each translated once and outside the lock: a translation may be slow."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Fraction, Fraction], Limit] = {}

    def known(self, translation: LossTranslation, book: Book) -> Limit | None:
        """The limit of an account, if it was translated before."""
        if book.epsilon is None:
            return None
        return self._known.get((id(translation), book.epsilon, book.delta))

    def limit(self, translation: LossTranslation, epsilon: Fraction, delta: Fraction) -> Limit:
        """A translated budget, remembered. The limit holds the translation, so its id stays."""
        found = self._known.get((id(translation), epsilon, delta))
        if found is None:
            found = Limit(translation, epsilon, delta)
            if len(self._known) >= MOST_LIMITS:
                self._known.clear()
            self._known[id(translation), epsilon, delta] = found
        return found


@dataclass(frozen=True)
class Payer:
    """An account with a budget, as stored, before its budget is translated.

    Attributes:
        analyst: Whose own account it is; None for that of the whole dataset.
        epsilon: The budget.
        delta: The δ beside it.
        overall: The worst totals of all its cells.
        touched: The worst totals of the cells that the charge would read.
    """

    analyst: str | None
    epsilon: Fraction
    delta: Fraction
    overall: Frontier
    touched: Frontier


@dataclass(frozen=True)
class Standing:
    """An account with a translated budget, as a charge finds it."""

    payer: Payer
    limit: Limit

    @property
    def analyst(self) -> str | None:
        """Whose own account it is; None for that of the whole dataset."""
        return self.payer.analyst

    @property
    def epsilon(self) -> Fraction:
        """The budget."""
        return self.payer.epsilon

    @property
    def delta(self) -> Fraction:
        """The δ of the budget."""
        return self.payer.delta

    def admits(self, loss: Loss) -> bool:
        """Whether one more ``loss`` on the cells that are touched is within the budget."""
        return self.limit.admits(self._after(loss))

    def room(self, loss: Loss) -> Fraction:
        """How much of the currency of ``loss`` would be accepted, rounded down."""
        if not self.limit.admits(self.payer.overall):
            return Fraction(0)
        return self.limit.room(self.payer.touched, loss)

    @property
    def spent(self) -> float:
        """The Pufferfish ε of all that was released, at the δ of the budget, rounded up."""
        return self.limit.spent(self.payer.overall)

    def spent_after(self, loss: Loss) -> float:
        """The same after one more ``loss`` on the cells that are touched."""
        return self.limit.spent(self._after(loss))

    def _after(self, loss: Loss) -> Frontier:
        after = (add(total, loss) for total in self.payer.touched)
        return worst((*self.payer.overall, *after))


def payers(
    connection: Connection,
    dataset: str,
    names: tuple[str, ...],
    window: dict[str, Any] | None,
    groups: dict[str, Any] | None,
    books: Mapping[str, Book] | None = None,
) -> tuple[Payer, ...]:
    """The accounts among ``names`` that have a budget, on the cells of window and groups.

    ``books`` are the accounts as they are stored, if they were read already.
    """
    stored = tables.find(connection, dataset, names[-1]) if books is None else books
    whole = stored.get(WHOLE)
    if whole is None or whole.epsilon is None:
        raise NoBudget(dataset)
    touch: Touch = whole.shape.touch(window, groups)
    found = []
    for book in (stored[name] for name in names if name in stored):
        if book.epsilon is not None:
            if not touch.everything:
                tables.load(connection, book, touch)
            account, analyst = book.account, book.analyst or None
            found.append(Payer(analyst, book.epsilon, book.delta, account.worst, account.on(touch)))
    return tuple(found)


def paying(analyst: str | None) -> tuple[str, ...]:
    """The names of the accounts that pay for a charge of ``analyst``."""
    return (WHOLE,) if analyst is None else (WHOLE, analyst)
