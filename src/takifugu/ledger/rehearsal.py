"""Whether several charges would be admitted one after another. Nothing is written.

A single charge is judged against what is spent now. A batch, or the periods of a schedule to come,
must be judged together: each is added to the accounts as the ledger adds them, on its own entries,
and each budget that pays is asked again.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass

from takifugu.ledger.accounts.account import WHOLE, Books, charged
from takifugu.ledger.accounts.limits import Limits, spent_epsilon
from takifugu.ledger.charge_values import Charge
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.events.replay import take
from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True)
class Rehearsed:
    """What a charge would meet after those before it.

    Attributes:
        charge: The charge.
        admitted: Whether every budget that pays admits it; then it counts for those after it.
        spent: The Pufferfish ε of the dataset with it, rounded up; without it, if not admitted.
    """

    charge: Charge
    admitted: bool
    spent: float


def rehearse(
    events: Iterable[Event],
    charges: Sequence[tuple[Charge, LossTranslation]],
    limits: Limits,
) -> tuple[Rehearsed, ...]:
    """Each charge after ``events`` and the admitted charges before it, by the ledger's own sums."""
    books = Books()
    for event in events:
        take(books, event)
    found = []
    for charge, translation in charges:
        body = {**charge.body(), "kind": "charge"}
        shape = books.book(charge.dataset, WHOLE).shape
        touch, loss = shape.touch(body["window"], body["groups"]), charge.loss
        payers = [books.book(charge.dataset, analyst) for analyst in charged(body)]
        before = [deepcopy(book.account) for book in payers]
        for book in payers:
            book.account.apply(touch, loss)
        admitted = payers[0].epsilon is not None and all(
            limits.limit(translation, book.epsilon, book.delta).admits(book.account.worst)
            for book in payers
            if book.epsilon is not None
        )
        if not admitted:
            for book, account in zip(payers, before, strict=True):
                book.account = account
        whole = payers[0]
        spent = spent_epsilon(translation, whole.account.worst, whole.epsilon, whole.delta, limits)
        found.append(Rehearsed(charge, admitted, spent))
    return tuple(found)
