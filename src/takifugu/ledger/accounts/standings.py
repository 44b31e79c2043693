"""How the accounts that pay for a charge stand: their budgets, and what was spent from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from takifugu.errors import NoBudget
from takifugu.ledger.accounts.account import WHOLE, Book, Touch
from takifugu.ledger.accounts.frontier import Frontier
from takifugu.ledger.accounts.limits import Limit, after
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.statement import Connection
from takifugu.losses import Concentrated, Loss


def amount(loss: Loss) -> tuple[str, Fraction]:
    """The currency of a loss and its amount: ε, or ρ."""
    if isinstance(loss, Concentrated):
        return "rho", loss.rho
    return "epsilon", loss.epsilon


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
        """How much of the currency of ``loss`` would be accepted, rounded down.

        Of a cost, the largest factor: 1 is the cost itself.
        """
        if not self.limit.admits(self.payer.overall):
            return Fraction(0)
        return self.limit.room(self.payer.touched, loss, self.payer.overall)

    @property
    def spent(self) -> float:
        """The Pufferfish ε of all that was released, at the δ of the budget, rounded up."""
        return self.limit.spent(self.payer.overall)

    def spent_after(self, loss: Loss) -> float:
        """The same after one more ``loss`` on the cells that are touched."""
        return self.limit.spent(self._after(loss))

    def _after(self, loss: Loss) -> Frontier:
        return after(self.payer.touched, loss, self.payer.overall)


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
