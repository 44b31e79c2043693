"""How the budgets of a dataset stand, in Pufferfish units, by the present policy."""

from collections import deque
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any

from takifugu.engines import Scope
from takifugu.errors import UnsoundRequest
from takifugu.ledger import Ledger, Position, Reading
from takifugu.ledger.accounts.budget_limits import float_down, read
from takifugu.ledger.charge_values import EPOCH
from takifugu.losses import Pure, Total
from takifugu.session.cost import Prices
from takifugu.session.rows import Rows
from takifugu.translation.accounting.table import TranslationTable
from takifugu.translation.accounting.totals import Filter
from takifugu.translation.translation import Translation


@dataclass(frozen=True)
class Spell:
    """A stretch of the order, and the Pufferfish ε that its rows have lost at worst.

    Attributes:
        start: In ticks of the ledger; None for no beginning.
        end: In the same; None for no end.
        spent: Rounded up.
    """

    start: int | None
    end: int | None
    spent: float


@dataclass(frozen=True)
class Standing:
    """A budget, and what became of it.

    Attributes:
        analyst: Whose it is; None for the dataset as a whole.
        budget: The Pufferfish ε that is allowed; None if nobody has set one.
        delta: The δ beside it.
        spent: The Pufferfish ε of all releases together, rounded up; None without a prior.
        left: What the budget leaves of it, rounded down; None without a prior or a budget.
        most: A Pufferfish ε that would be accepted on all rows now, rounded down.
        history: The odometer after each of the latest charges.
        stretches: What each stretch of the order has lost.
    """

    analyst: str | None
    budget: Fraction | None
    delta: Fraction
    spent: float | None = None
    left: float | None = None
    most: Decimal | None = None
    history: tuple[Reading, ...] = ()
    stretches: tuple[Spell, ...] = ()


class Looked:
    """A translation for views: looked up where a table reaches, else computed."""

    def __init__(self, translation: Translation, table: TranslationTable | None) -> None:
        self._translation, self._table = translation, table

    def to_pufferfish(self, dp: float, /) -> Any:
        """The Pufferfish loss of a per-entry loss, rounded up."""
        try:
            return (self._table or self._translation).to_pufferfish(dp)
        except UnsoundRequest:
            return self._translation.to_pufferfish(dp)

    def to_dp(self, loss: float, /) -> Any:
        """The per-entry loss that a Pufferfish loss allows, rounded down."""
        try:
            return (self._table or self._translation).to_dp(loss)
        except UnsoundRequest:
            return self._translation.to_dp(loss)

    def total_to_pufferfish(self, total: Total, delta: Fraction, /) -> float:
        """The Pufferfish ε at δ of a total of ε, δ and ρ, rounded up."""
        found = inf if self._table is None else self._table.total_to_pufferfish(total, delta)
        return found if found < inf else self._translation.total_to_pufferfish(total, delta)

    def filter(self, allowed: Fraction, epsilon: Fraction, delta: Fraction, /) -> Filter:
        """Which totals a budget (ε, δ) admits if ``allowed`` per entry loses at most ε."""
        return self._translation.filter(allowed, epsilon, delta)


def standings(
    ledger: Ledger, dataset: str, translation: Looked | None, *, last: int
) -> tuple[Standing, ...]:
    """The budget of the whole dataset, then that of each analyst who has one or has spent."""
    found = [position for position in ledger.positions() if position.dataset == dataset]
    whole = next((p.epsilon for p in found if p.analyst is None), None)
    ordered = sorted(found, key=lambda position: position.analyst or "")
    return tuple(_standing(ledger, position, whole, translation, last) for position in ordered)


def _standing(
    ledger: Ledger, position: Position, whole: Fraction | None, view: Looked | None, last: int
) -> Standing:
    dataset, analyst, budget = position.dataset, position.analyst, position.epsilon
    if view is None:
        return Standing(analyst, budget, position.delta)
    spent = ledger.spent(dataset, view, analyst=analyst)
    left = most = None
    if budget is not None:
        left = 0.0 if budget <= 0 or spent > budget else float_down(budget - Fraction(spent))
    if whole is not None:
        everything = Rows(Scope(), None, None)
        most = Prices(ledger, dataset, view, analyst).of(Pure(0), everything, Fraction(0)).most
    history = deque(ledger.odometer(dataset, view, analyst=analyst), maxlen=last)
    stretches = tuple(
        Spell(part.start, part.end, read(view, part.worst, budget, position.delta))
        for part in ledger.over_time(dataset, analyst=analyst)
    )
    return Standing(analyst, budget, position.delta, spent, left, most, tuple(history), stretches)


def at_tick(tick: int | None, *, instants: bool) -> datetime | int | None:
    """A tick of the ledger as an instant, or as the step that it is."""
    return EPOCH + timedelta(microseconds=tick) if instants and tick is not None else tick
