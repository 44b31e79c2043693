"""One charge, inside its transaction: find the totals, compare them with the budgets, write.

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
from takifugu.ledger.accounts.books import WHOLE, charged
from takifugu.ledger.accounts.budget_limits import amount
from takifugu.ledger.accounts.standings import Limits, Standing, payers
from takifugu.ledger.charge_values import Charge, loss_of
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events import row_marks
from takifugu.ledger.events.accepted_terms import Terms
from takifugu.ledger.events.event_chain import Event, Head
from takifugu.ledger.snapshot import read_snapshot
from takifugu.ledger.storage import account_tables as tables
from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True)
class Untranslated:
    """Budgets that must be translated, without the lock, before the charge can be judged."""

    budgets: tuple[tuple[Fraction, Fraction], ...]


@dataclass(frozen=True)
class Refusal:
    """A charge that some budget does not admit; nothing was written."""

    standings: tuple[Standing, ...]

    def error(self, body: Mapping[str, Any]) -> BudgetExceeded:
        """What was needed, what is left and what to do."""
        loss = loss_of(body["loss"])
        currency, needs = amount(loss)
        rooms = [(standing.room(loss), standing.analyst) for standing in self.standings]
        left, analyst = min(rooms, key=lambda room: (room[0], room[1] is None))
        name = body["query"].get("name") or body["query_fingerprint"][:12]
        return BudgetExceeded(
            str(name),
            dataset=body["dataset"],
            analyst=analyst,
            currency=currency,
            needs=needs,
            left=left,
        )


def enter_charge(
    connection: Connection,
    last: Head,
    kind: str,
    body: Mapping[str, Any],
    translation: LossTranslation,
    limits: Limits,
    now: datetime,
    charge: Charge,
) -> Event | Untranslated | Refusal:
    """Write a charge or reuse and its totals, unless a budget or an owner's decision forbids it."""
    dataset = body["dataset"]
    found = tables.find(connection, dataset, body["analyst"] or WHOLE)
    whole = found.get(WHOLE)
    if whole is None or whole.epsilon is None:
        raise NoBudget(dataset)
    snapshot = read_snapshot(connection, dataset, body["analyst"], charge.cells, found)
    snapshot.refuse(Terms(body["prior"], body["secrets"]), charge.rules)
    marks = unknown_marks(connection, charge)
    names = charged({**body, "kind": kind})
    books = [found.get(name) or whole.of(name) for name in names]
    touch = whole.shape.touch(body["window"], body["groups"])
    translated = [limits.known(translation, book) for book in books]
    cold = tuple(
        (book.epsilon, book.delta)
        for book, limit in zip(books, translated, strict=True)
        if book.epsilon is not None and limit is None
    )
    if cold:
        return Untranslated(cold)
    loss, entries = loss_of(body["loss"]), []
    for book in books:
        if not touch.everything:
            tables.load(connection, book, touch)
        known = {(segment.start, cell) for segment in book.account.segments for cell in segment.own}
        entries.append((book, book.account.apply(touch, loss), known))
    for book, limit in zip(books, translated, strict=True):
        if limit is not None and not limit.admits(book.account.worst):
            stored = payers(connection, dataset, names, body["window"], body["groups"])
            return Refusal(
                tuple(
                    Standing(payer, limits.limit(translation, payer.epsilon, payer.delta))
                    for payer in stored
                )
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
    named = {**body, "naming": charge.cells.parts} if snapshot.first else body
    return chain.append(connection, last, kind, named, now)


def unknown_marks(connection: Connection, charge: Charge) -> Mapping[str, Any] | None:
    """What to file about a state of the data that is new; an error if another dataset has it."""
    if not charge.sources or row_marks.is_known(connection, charge.dataset, charge.data):
        return None
    row_marks.refuse_twins(connection, charge.dataset, charge.sources)
    return row_marks.marks_body(charge.dataset, charge.data, charge.sources)
