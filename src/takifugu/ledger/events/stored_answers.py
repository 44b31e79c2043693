"""Answers kept beside the charges that paid for them: the same query again costs nothing.

An answer has the time of its charge. How long counting and drawing took may depend on what was
counted and drawn, and whoever reads both events could subtract: analysts see the time of a charge
in the history of a budget, that of an answer in its result, and reports and exports publish both.
A charge is paid before any row is read, so that its time says nothing about rows. The same holds
for an answer that is given up. In ledgers that were written before, the two times of a release
differ; what is shown of an answer is the time of its charge there, too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu.errors import LedgerConflict
from takifugu.ledger.canonical_text import canonical_json
from takifugu.ledger.charge_values import Receipt
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Anchor, Event, Head
from takifugu.ledger.storage.schema import EVENTS
from takifugu.ledger.storage.statement import Connection, Statement


@dataclass(frozen=True)
class Answer:
    """What was released, when, and the events that hold it.

    Attributes:
        value: What was released, as JSON.
        paid: The charge that paid for it.
        event: The answer itself.
        at: When it was paid for.
    """

    value: Any
    paid: Anchor
    event: Anchor
    at: datetime

    @property
    def charge(self) -> int:
        """The place of the charge that paid for it."""
        return self.paid.seq


_PAID_AND_SENT = (
    f"FROM {EVENTS} AS paid"
    f" JOIN {EVENTS} AS sent ON sent.charge = paid.charge AND sent.kind = 'answer'"
)
_ANSWERS = (
    f"SELECT sent.seq AS seq {_PAID_AND_SENT}"
    " WHERE paid.question = :identity AND paid.kind <> 'answer'"
)
_ANSWERED_TO = Statement(f"{_ANSWERS} AND paid.analyst = :analyst ORDER BY sent.seq")
_ANSWERED = Statement(f"{_ANSWERS} ORDER BY sent.seq")
_ANSWER_OF = Statement(f"SELECT seq FROM {EVENTS} WHERE charge = :paid AND kind = 'answer'")
_ABANDONED = Statement(f"SELECT seq FROM {EVENTS} WHERE charge = :paid AND kind = 'abandoned'")


def find(connection: Connection, identity: str, analyst: str | None) -> Answer | None:
    """The answer to a query that ``analyst`` has paid for; that anybody has, if None."""
    if analyst is None:
        row = _ANSWERED.one(connection, {"identity": identity})
    else:
        row = _ANSWERED_TO.one(connection, {"identity": identity, "analyst": analyst})
    return None if row is None else read(connection, chain.one(connection, row.seq))


_PAID_FOR = Statement(
    f"SELECT paid.seq AS seq {_PAID_AND_SENT}"
    " WHERE paid.dataset = :named AND paid.kind = 'charge' AND paid.body LIKE :query"
    " ORDER BY paid.seq"
)


def charges_for(connection: Connection, body: Mapping[str, Any]) -> list[Event]:
    """The answered charges of the query of ``body`` on the same data, by whatever mechanism."""
    query = f'%"query_fingerprint":"{body["query_fingerprint"]}"%'  # no index, but one statement
    rows = _PAID_FOR.all(connection, {"named": body["dataset"], "query": query})
    found = [chain.one(connection, row.seq) for row in rows]
    same = ("query_fingerprint", "data", "window", "groups", "cells", "declared")
    return [event for event in found if all(event.body.get(k) == body[k] for k in same)]


def read(connection: Connection, event: Event) -> Answer:
    """The answer in an event, to be shown, with the charge that paid for it."""
    chain.show(connection, event.seq)
    charge = chain.one(connection, event.body["charge"])
    paid, own = Anchor(charge.seq, charge.hash), Anchor(event.seq, event.hash)
    return Answer(event.body["answer"], paid, own, charge.at)


def answer_of(connection: Connection, charge: int) -> Answer | None:
    """The answer that was recorded under a charge; None if there is none."""
    known = _ANSWER_OF.one(connection, {"paid": charge})
    return None if known is None else read(connection, chain.one(connection, known.seq))


def is_answered(connection: Connection, charge: int) -> bool:
    """Whether an answer was recorded under a charge; it is not read."""
    return _ANSWER_OF.one(connection, {"paid": charge}) is not None


def is_abandoned(connection: Connection, charge: int) -> bool:
    """Whether the answer under a charge was lost in a way that may depend on it."""
    known = _ABANDONED.one(connection, {"paid": charge})
    if known is not None:
        chain.show(connection, known.seq)
    return known is not None


def abandon(connection: Connection, last: Head, receipt: Receipt, actor: str) -> None:
    """Write that no answer is drawn under ``receipt`` any more, unless one is recorded."""
    charge = _paid(connection, receipt)
    if not receipt.resumable:
        return  # nobody draws under it again
    if answer_of(connection, charge.seq) is None and not is_abandoned(connection, charge.seq):
        content = _filed(charge) | {"actor": actor}
        chain.append(connection, last, "abandoned", content, charge.at, dated_back=True)


def store(connection: Connection, last: Head, receipt: Receipt, value: Any, actor: str) -> Answer:
    """Write the answer that was released under ``receipt``: one, and only one.

    It carries the time of the charge, so that nobody learns what counting and drawing took. Of a
    charge that may be resumed, whoever comes second gets the answer that is there.
    """
    text = canonical_json(value, "answer")
    charge = _paid(connection, receipt)
    known = answer_of(connection, charge.seq)
    if known is not None:
        if not receipt.resumable and canonical_json(known.value, "answer") != text:
            raise LedgerConflict(
                f"charge {charge.seq} has another answer already; charge again",
                reason="answer",
                event=charge.seq,
            )
        return known
    if receipt.resumable and is_abandoned(connection, charge.seq):
        raise LedgerConflict(
            f"charge {charge.seq} was abandoned; charge again with a new key",
            reason="abandoned",
            event=charge.seq,
        )
    content = _filed(charge) | {"answer": value, "actor": actor}
    made = chain.append(connection, last, "answer", content, charge.at, dated_back=True)
    return read(connection, made)


class AnsweredCharges:
    """The answers of a chain, read from its beginning: one for a charge, none once abandoned."""

    def __init__(self) -> None:
        self._charges: set[int] = set()
        self._ended: set[int] = set()

    def fits(self, body: Mapping[str, Any]) -> bool:
        """Whether one more event keeps to that."""
        match body["kind"]:
            case "charge":
                self._charges.add(body["seq"])
            case "answer" | "abandoned":
                charge = body["charge"]
                fits = charge in self._charges and charge not in self._ended
                self._ended.add(charge)
                return fits
        return True


def _filed(charge: Event) -> dict[str, Any]:
    return {
        "charge": charge.seq,
        "dataset": charge.body["dataset"],
        "analyst": charge.body["analyst"],
    }


def _paid(connection: Connection, receipt: Receipt) -> Event:
    """The charge of a receipt that gives the right to release."""
    charge = chain.one(connection, receipt.anchor.seq)
    if charge.kind != "charge" or charge.hash != receipt.anchor.hash:
        raise LedgerConflict(
            "the receipt is not of this ledger; store the answer where it was paid",
            reason="receipt",
        )
    if not receipt.may_release:
        raise LedgerConflict(
            "the receipt gives no right to release; charge again with a new key",
            reason="receipt",
            event=charge.seq,
        )
    if receipt.resumable and charge.body.get("resumable") is not True:
        raise LedgerConflict(
            f"charge {charge.seq} was not made to be resumed; charge again with a new key",
            reason="receipt",
            event=charge.seq,
        )
    return charge
