r"""Answers kept beside the charges that paid for them: the same query again costs nothing.

An answer has the time of its charge. How long counting and drawing took may depend on what was
counted and drawn, and whoever reads both events could subtract: analysts see the time of a charge
in the history of a budget, that of an answer in its result, and reports and exports publish both.
A charge is paid before any row is read, so that its time says nothing about rows. The same holds
for an answer that is given up. In ledgers that were written before, the two times of a release
differ; what is shown of an answer is the time of its charge there, too.

**A charge that is resumed.** An ordinary receipt is the right to draw noise once. If the process
dies before it has recorded an answer, the noise may have been seen, and the same query pays again.
A server can do better: it shows nothing that `Ledger.record_answer` has not returned. So a caller
who keeps to that may charge with ``resume=True``; the event then says ``"resumable": true``. The
same key with the same charge gives, as long as no answer is recorded, another receipt, which draws
anew.

**Why one charge is enough.** Let :math:`M(D)` be the law of the mechanism that the charge paid for
and :math:`Y_1, Y_2, \ldots` what its attempts draw: independent, each by :math:`M(D)`, since every
attempt has fresh noise and the charge pins the data, the query and the mechanism. At most one of
them is ever seen: an answer is written under the ledger's lock, the charge has a unique index of
answers, and an attempt that finds one there gets that one and drops its own. Say it is
:math:`Y_N`. If the number :math:`N` does not depend on the draws, then

.. math:: \Pr[Y_N = y] = \sum_n \Pr[N = n] \Pr[Y_n = y] = \Pr[M(D) = y],

which is the law that was paid for; that nothing is seen (no attempt gets there) is independent of
the draws as well. Drawing again is then no second release.

**What has to hold.** :math:`N` must not depend on the draws: choosing among draws by their values
would cost up to one more :math:`\varepsilon` for each. Three things are done for it.

* Only what ends an attempt from outside may be resumed after a draw: a process or a machine that
  is killed, a ledger that cannot be reached, a lock that somebody else holds. Nobody who could
  cause it has seen the draw.
* An attempt that fails by itself once it has drawn *abandons* the charge (`Ledger.abandon`): a
  program that could not store some answers would choose among them. An abandoned charge stays
  spent, is never resumed, and never has an answer.
* A charge without ``"resumable": true`` is never resumed, whoever asks: its maker may have shown a
  draw before it was recorded.

And the ledger must know of the answer: where an owner accepted that history was lost
(`takifugu.ledger.accept_loss`), the answer may be in the part that is lost, and no charge before
that is resumed.

What remains is time: sampling takes some nanoseconds more or less by what it draws, and a kill at a
chosen moment, or the faster of two attempts at once, prefers the quicker draw by as much. If
surviving until the record depends on the draw by a factor of at most :math:`e^{\tau}`, the answer
loses at most :math:`2\tau` more, however often it is tried: its law is
:math:`M(D)` weighted by something between :math:`e^{-\tau}` and 1, and normalised. The moment of a
kill varies by milliseconds and the time of a draw by microseconds at most, so that :math:`\tau` is
a few thousandths at worst, for somebody who kills at will; it is the timing channel that every
release has, and it is stated, not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from takifugu.errors import LedgerConflict
from takifugu.ledger.canonical_text import canonical_json, check_name, encode_json, sha256
from takifugu.ledger.charge_values import Receipt
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events.event_chain import Anchor, Event
from takifugu.ledger.storage.database import Connection, Statement
from takifugu.ledger.storage.schema import EVENTS, select


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
_ONE_SEQ = {"seq": (int,)}
_ANSWERED_TO = Statement(
    f"{_ANSWERS} AND paid.analyst = :analyst ORDER BY sent.seq", types=_ONE_SEQ
)
_ANSWERED = Statement(f"{_ANSWERS} ORDER BY sent.seq", types=_ONE_SEQ)
_ANSWER_OF, _ABANDONED = (
    select(EVENTS, "seq", where=f"charge = :paid AND kind = '{kind}'")
    for kind in ("answer", "abandoned")
)
_PAID_FOR = Statement(
    f"SELECT paid.seq AS seq {_PAID_AND_SENT}"
    " WHERE paid.dataset = :named AND paid.kind = 'charge' AND paid.body LIKE :query"
    " ORDER BY paid.seq",
    types=_ONE_SEQ,
)


def find(connection: Connection, identity: str, analyst: str | None) -> Answer | None:
    """The answer to a query that ``analyst`` has paid for; that anybody has, if None."""
    if analyst is None:
        row = _ANSWERED.one(connection, {"identity": identity})
    else:
        row = _ANSWERED_TO.one(connection, {"identity": identity, "analyst": analyst})
    return None if row is None else read(connection, chain.one(connection, row.seq))


def charges_for(connection: Connection, body: Mapping[str, Any]) -> list[Event]:
    """The answered charges of the query of ``body`` on the same data, by whatever mechanism."""
    query = f'%"query_fingerprint":"{body["query_fingerprint"]}"%'  # no index, but one statement
    rows = _PAID_FOR.all(connection, {"named": body["dataset"], "query": query})
    charges = [chain.one(connection, row.seq) for row in rows]
    same = ("query_fingerprint", "data", "window", "groups", "cells", "declared")
    return [event for event in charges if all(event.body.get(k) == body[k] for k in same)]


def read(connection: Connection, event: Event) -> Answer:
    """The answer in an event, to be shown, with the charge that paid for it."""
    chain.show(connection, event.seq)
    charge = chain.one(connection, event.body["charge"])
    return Answer(event.body["answer"], charge.anchor, event.anchor, charge.at)


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


def abandon(connection: Connection, receipt: Receipt, actor: str) -> None:
    """Write that no answer is drawn under ``receipt`` any more, unless one is recorded."""
    charge = _paid(connection, receipt)
    if not receipt.resumable:
        return  # nobody draws under it again
    if answer_of(connection, charge.seq) is None and not is_abandoned(connection, charge.seq):
        content = _filed(charge) | {"actor": actor}
        chain.append(connection, "abandoned", content, charge.at, dated_back=True)


def store(connection: Connection, receipt: Receipt, value: Any, actor: str) -> Answer:
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
    event = chain.append(connection, "answer", content, charge.at, dated_back=True)
    return read(connection, event)


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


RESUMABLE = "resumable"
NOT_COMPARED = (
    *("attempt", "actor", RESUMABLE, "request"),  # of a call, not of what is charged
    "values",  # earlier versions did not write it; what it says is in `declared` or in the prior
)
LEFT_OUT = ("approval",)  # of a body that has none: it must then have been left out before


def request_key(analyst: str | None, key: str) -> str:
    """The key of a charge that an analyst asks for under a key of their own.

    Two analysts who choose the same one do not meet, and neither learns of the other.
    """
    check_name(key, "key")
    return f"request {sha256(encode_json([analyst, key]))}"


@dataclass(frozen=True)
class EarlierCharge:
    """What an earlier call with the same key has left.

    Attributes:
        receipt: Its receipt; it may release if the charge may be resumed.
        answer: The answer, if one is recorded.
    """

    receipt: Receipt
    answer: Answer | None


def may_resume(connection: Connection, event: Event) -> bool:
    """Whether noise may be drawn under a charge that was made before."""
    return (
        event.kind == "charge"
        and event.body.get(RESUMABLE) is True
        and answer_of(connection, event.seq) is None
        and not is_abandoned(connection, event.seq)
        and chain.last_loss(connection) < event.seq
    )


def refuse_other(event: Event, kind: str | None, body: Mapping[str, Any]) -> None:
    """Raise unless an event with the key of a charge is that charge; of any kind if None."""
    named = (*(name for name in body if name not in NOT_COMPARED), *LEFT_OUT)
    same = all(event.body.get(name) == body.get(name) for name in named)
    if kind not in (None, event.kind) or not same:
        raise LedgerConflict(
            f"key {body['key']!r} was used for another charge; use a new key",
            reason="key",
            event=event.seq,
        )
