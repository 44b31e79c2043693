"""How a charge is judged and written, inside the one transaction that holds the ledger's lock.

A charge reads the totals, compares them with the budgets and writes. The budget of the whole
dataset bounds everybody's charges together; an analyst's own budget bounds that analyst's charges.
Both filters see the totals after the charge, under the ledger's lock, so that no two charges can
pass on the same remainder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from takifugu.costs.losses import Metric
from takifugu.errors import BudgetExceeded, NoBudget, UnsoundRequest
from takifugu.ledger.account import WHOLE, charged
from takifugu.ledger.charge_values import Charge, Receipt, loss_of
from takifugu.ledger.events import cell_naming, decisions
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.decisions import Terms
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.events.stored_answers import RESUMABLE
from takifugu.ledger.frontier import Frontier
from takifugu.ledger.limits import Limit, Limits
from takifugu.ledger.snapshot import Standing, amount, payers, read_snapshot
from takifugu.ledger.storage import account_tables as tables
from takifugu.ledger.storage.database import Connection
from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True)
class Untranslated:
    """What must be translated, without the lock, before the charge can be judged.

    Attributes:
        budgets: ε and δ of budgets.
        totals: What entries would have lost, beside the limit that must judge it.
    """

    budgets: tuple[tuple[Fraction, Fraction], ...] = ()
    totals: tuple[tuple[Limit, Frontier], ...] = ()

    def translate(self, translation: LossTranslation, limits: Limits) -> None:
        """Translate it, and remember that in ``limits``."""
        for epsilon, delta in self.budgets:
            limits.limit(translation, epsilon, delta)
        for limit, totals in self.totals:
            limit.translate(totals)


@dataclass(frozen=True)
class Refusal:
    """A charge that some budget does not admit; nothing was written."""

    standings: tuple[Standing, ...]

    def error(self, body: Mapping[str, Any]) -> BudgetExceeded:
        """What was needed, what is left and what to do."""
        loss = loss_of(body["loss"])
        currency, needs = amount(loss)
        unit = needs if isinstance(loss, Metric) else Fraction(1)  # room for a cost is a factor
        rooms = [(standing.room(loss) * unit, standing.analyst) for standing in self.standings]
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
    kind: str,
    body: Mapping[str, Any],
    translation: LossTranslation,
    limits: Limits,
    now: datetime,
    charge: Charge,
    *,
    wait: bool = False,
) -> Event | Untranslated | Refusal:
    """Write a charge or reuse and its totals, unless a budget or an owner's decision forbids it.

    With ``wait`` costs are translated here, under the lock, if they were not before.
    """
    dataset = body["dataset"]
    stored = tables.find(connection, dataset, body["analyst"] or WHOLE)
    whole = stored.get(WHOLE)
    if whole is None or whole.epsilon is None:
        raise NoBudget(dataset)
    snapshot = read_snapshot(connection, dataset, body["analyst"], charge.cells, stored)
    snapshot.refuse(Terms(body["prior"], body["secrets"]), charge.rules)
    decisions.refuse_unfit(connection, body)
    marks = unknown_marks(connection, charge)
    names = charged({**body, "kind": kind})
    books = [stored.get(name) or whole.for_analyst(name) for name in names]
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
    judged = [
        (limit, book.account.worst)
        for book, limit in zip(books, translated, strict=True)
        if limit is not None
    ]
    verdicts = [limit.admits(totals) if wait else limit.decided(totals) for limit, totals in judged]
    if not all(verdicts):
        if False in verdicts:
            accounts = payers(connection, dataset, names, body["window"], body["groups"])
            return Refusal(
                tuple(
                    Standing.under(payer, limits.limit(translation, payer.epsilon, payer.delta))
                    for payer in accounts
                )
            )
        unknown = (pair for pair, known in zip(judged, verdicts, strict=True) if known is None)
        return Untranslated(totals=tuple(unknown))
    if marks:
        chain.append(connection, "source", {**marks, "actor": body["actor"]}, now)
    for book, changed, known in entries:
        if not book.id:
            tables.open_book(connection, book)
        elif changed:
            tables.save_segments(connection, book, changed, touch, known)
    tables.save(connection, dict.fromkeys((whole, *books)))  # a reuse may be what fixes its shape
    named = {**body, "naming": charge.cells.parts} if snapshot.first else body
    return chain.append(connection, kind, named, now)


def unknown_marks(connection: Connection, charge: Charge) -> Mapping[str, Any] | None:
    """What to file about a state of the data that is new; an error if another dataset has it."""
    if not charge.sources or cell_naming.is_known(connection, charge.dataset, charge.data):
        return None
    cell_naming.refuse_twins(connection, charge.dataset, charge.sources)
    return cell_naming.marks_body(charge.dataset, charge.data, charge.sources)


def receipt_of(event: Event, *, may_release: bool, resume: bool) -> Receipt:
    """The receipt of a charge that is written."""
    return Receipt(
        anchor=event.anchor,
        key=event.body["key"],
        dataset=event.body["dataset"],
        analyst=event.body["analyst"],
        at=event.at,
        may_release=may_release,
        resumable=resume and event.body.get(RESUMABLE) is True,
    )


def refuse_other_translation(charge: Charge, translation: LossTranslation) -> None:
    """A translation that knows its fingerprint must be the one that the charge names."""
    mark = translation.fingerprint
    if mark is not None and mark != charge.translation:
        raise UnsoundRequest(
            f"the charge names translation {charge.translation[:12]} but {mark[:12]} was given",
            field="translation",
            given=mark,
            needed=charge.translation,
        )
