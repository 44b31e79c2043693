"""How the accounts that pay for a charge stand: their budgets, and what was spent from them."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from takifugu.errors import NoBudget
from takifugu.ledger.accounts.account import Touch
from takifugu.ledger.accounts.books import WHOLE, Book
from takifugu.ledger.accounts.budget_limits import Limit
from takifugu.ledger.accounts.frontier import Frontier, add, worst
from takifugu.ledger.storage import account_tables as tables
from takifugu.losses import Loss
from takifugu.translation.protocol import LossTranslation

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
) -> tuple[Payer, ...]:
    """The accounts among ``names`` that have a budget, on the cells of window and groups."""
    stored = tables.find(connection, dataset, names[-1])
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
