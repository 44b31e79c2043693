r"""Charges that may be resumed: one charge, several attempts to answer it, one answer.

An ordinary receipt is the right to draw noise once. If the process dies before it has recorded an
answer, the noise may have been seen, and the same query pays again. A server can do better: it
shows nothing that `Ledger.record_answer` has not returned. So a caller who keeps to that may charge
with ``resume=True``; the event then says ``"resumable": true``. The same key with the same charge
gives, as long as no answer is recorded, another receipt, which draws anew.

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
from typing import Any

from takifugu.errors import LedgerConflict
from takifugu.ledger.canonical_text import check_name, encode_json, sha256
from takifugu.ledger.charge_values import Receipt
from takifugu.ledger.events import event_chain as chain
from takifugu.ledger.events import stored_answers
from takifugu.ledger.events.event_chain import Event
from takifugu.ledger.events.stored_answers import Answer
from takifugu.ledger.storage.statement import Connection

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
        and stored_answers.answer_of(connection, event.seq) is None
        and not stored_answers.is_abandoned(connection, event.seq)
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
