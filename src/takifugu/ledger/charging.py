"""One charge, inside its transaction: find the totals, hold them against the budgets, write.

The budget of the whole dataset bounds everybody's charges together; an analyst's own budget bounds
that analyst's charges. Both filters see the totals after the charge, under the ledger's lock, so
that no two charges can pass on the same remainder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection

from takifugu.errors import BudgetExceeded, NoBudget
from takifugu.ledger.accounts import budget_limits as view
from takifugu.ledger.accounts.account import Touch
from takifugu.ledger.accounts.books import WHOLE, Book, charged
from takifugu.ledger.accounts.budget_limits import Limit
from takifugu.ledger.accounts.frontier import Frontier, add, worst
from takifugu.ledger.charge_values import Charge, loss_of
from takifugu.ledger.events import accepted_terms as decisions
from takifugu.ledger.events import cell_naming as cells
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events import row_marks as sources
from takifugu.ledger.events.event_chain import Anchor, Event, Head
from takifugu.ledger.storage import account_tables as tables
from takifugu.losses import Loss
from takifugu.translation.protocol import LossTranslation

MOST_LIMITS = 64  # translated budgets that are remembered


@dataclass(frozen=True)
class Receipt:
    """Proof that a charge is written and durable: what gives the right to draw noise, once.

    Attributes:
        anchor: The event of the charge; noted elsewhere, it shows if the ledger is ever set back.
        may_release: False if an earlier call with the same key may already have been answered by
            a receipt: noise may have been drawn under it, and a second draw would be a second
            release. Pay again, with a new key.
    """

    anchor: Anchor
    key: str
    dataset: str
    analyst: str | None
    question: str
    at: datetime
    may_release: bool


class Limits:
    """Budgets, each translated once and outside the lock: a translation may be slow."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, Fraction, Fraction], Limit] = {}

    def known(self, translation: LossTranslation, book: Book) -> Limit | None:
        """The limit of an account, if it was translated before."""
        if book.epsilon is None:
            return None
        return self._known.get((id(translation), book.epsilon, book.delta))

    def learn(self, translation: LossTranslation, epsilon: Fraction, delta: Fraction) -> Limit:
        """Translate a budget and remember it. The limit holds the translation, so its id stays."""
        limit = Limit(translation, epsilon, delta)
        if len(self._known) >= MOST_LIMITS:
            self._known.clear()
        self._known[id(translation), epsilon, delta] = limit
        return limit


@dataclass(frozen=True)
class Untranslated:
    """Budgets that must be translated, without the lock, before the charge can be judged."""

    budgets: tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True)
class Standing:
    """An account with a budget, as a charge found it.

    Attributes:
        analyst: Whose own account it is; None for that of the whole dataset.
        overall: The worst total of all its cells.
        touched: The worst total of the cells that the charge would read.
    """

    analyst: str | None
    limit: Limit
    overall: Frontier
    touched: Frontier

    def admits(self, loss: Loss) -> bool:
        """Whether one more ``loss`` on the cells that are touched is within the budget."""
        after = (add(total, loss) for total in self.touched)
        return self.limit.admits(worst((*self.overall, *after)))

    def room(self, loss: Loss) -> Fraction:
        """How much of the currency of ``loss`` would be accepted, rounded down."""
        if not self.limit.admits(self.overall):
            return Fraction(0)
        return self.limit.room(self.touched, loss)


@dataclass(frozen=True)
class Refusal:
    """A charge that some budget does not admit; nothing was written."""

    standings: tuple[Standing, ...]

    def error(self, body: Mapping[str, Any]) -> BudgetExceeded:
        """What was asked, what is left and what to do."""
        loss = loss_of(body["loss"])
        currency, needs = view.amount(loss)
        rooms = [(standing.room(loss), standing.analyst or "") for standing in self.standings]
        left, analyst = min(rooms)
        name = body["query"].get("name") or body["query_fingerprint"][:12]
        return BudgetExceeded(
            str(name),
            dataset=body["dataset"],
            analyst=analyst or None,
            currency=currency,
            needs=needs,
            left=left,
        )


def enter(
    connection: Connection,
    last: Head,
    kind: str,
    body: Mapping[str, Any],
    translation: LossTranslation,
    limits: Limits,
    now: datetime,
    charge: Charge,
) -> Event | Untranslated | Refusal:
    """Write a charge or reuse and its totals, unless a budget or another declaration forbids it."""
    found = tables.find(connection, body["dataset"], body["analyst"] or WHOLE)
    whole = found.get(WHOLE)
    if whole is None or whole.epsilon is None:
        raise NoBudget(body["dataset"])
    mine = found.get(body["analyst"] or WHOLE)
    if body["analyst"] is None or mine is None or mine.epsilon is None:
        decisions.refuse_stranger(connection, body["dataset"], body["analyst"])
    terms = decisions.Terms(body["prior"], body["secrets"])
    decisions.refuse_terms(connection, body["dataset"], terms)
    decisions.refuse_rules(connection, body["dataset"], charge.rules)
    first = cells.refuse_other(connection, body["dataset"], charge.cells)
    marks = unknown_marks(connection, charge)
    names = charged({**body, "kind": kind})
    books = [found.get(name) or whole.of(name) for name in names]
    touch = whole.shape.touch(body["window"], body["groups"])
    cold = untranslated(books, translation, limits)
    if cold is not None:
        return cold
    loss, entries = loss_of(body["loss"]), []
    for book in books:
        if not touch.everything:
            tables.load(connection, book, touch)
        known = {(segment.start, cell) for segment in book.account.segments for cell in segment.own}
        entries.append((book, book.account.apply(touch, loss), known))
    for book in books:
        limit = limits.known(translation, book)
        if limit is not None and not limit.admits(book.account.worst):
            return Refusal(
                standings(connection, body["dataset"], names, touch, translation, limits)
            )
    if marks:
        chain.append(connection, last, "source", marks, now)
        last = chain.head(connection)
    for book, changed, known in entries:
        if not book.id:
            tables.open_book(connection, book)
        elif changed:
            tables.save_segments(connection, book, changed, touch, known)
    tables.save(connection, books)
    named = {**body, "naming": charge.cells.parts} if first else body
    return chain.append(connection, last, kind, named, now)


def unknown_marks(connection: Connection, charge: Charge) -> Mapping[str, Any] | None:
    """What to file about a state of the data that is new; an error if another dataset has it."""
    if not charge.sources or sources.is_known(connection, charge.dataset, charge.data):
        return None
    sources.refuse_twins(connection, charge.dataset, charge.sources)
    return sources.content(charge.dataset, charge.data, charge.sources)


def untranslated(
    books: list[Book], translation: LossTranslation, limits: Limits
) -> Untranslated | None:
    """The budgets of ``books`` that were never translated, if any."""
    cold = tuple(
        (book.epsilon, book.delta)
        for book in books
        if book.epsilon is not None and limits.known(translation, book) is None
    )
    return Untranslated(cold) if cold else None


def standings(
    connection: Connection,
    dataset: str,
    names: tuple[str, ...],
    touch: Touch,
    translation: LossTranslation,
    limits: Limits,
) -> tuple[Standing, ...]:
    """How the accounts in ``names`` that have a budget stand, as stored."""
    found = []
    stored = tables.find(connection, dataset, names[-1])
    for book in (stored[name] for name in names if name in stored):
        limit = limits.known(translation, book)
        if limit is None:
            continue
        if not touch.everything:
            tables.load(connection, book, touch)
        account = book.account
        found.append(Standing(book.analyst or None, limit, account.worst, account.on(touch)))
    return tuple(found)
