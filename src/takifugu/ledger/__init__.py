"""A budget ledger that cannot be overspent and survives crashes.

For example::

    with open_ledger("ward.ledger") as ledger:
        ledger.set_budget("ward", 1)
        receipt = ledger.charge(charge, translation)   # durable, or an error
        answer = ...                                    # only now draw noise
        ledger.record_answer(receipt, answer)

It stores per-entry DP losses and which entries they touched; the Pufferfish loss is a view of
them, translated once.
"""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.ledger.charge_values import Cells as Cells
    from takifugu.ledger.charge_values import Charge as Charge
    from takifugu.ledger.charge_values import Groups as Groups
    from takifugu.ledger.charge_values import Receipt as Receipt
    from takifugu.ledger.charge_values import Window as Window
    from takifugu.ledger.charging import Position as Position
    from takifugu.ledger.charging import Quote as Quote
    from takifugu.ledger.charging import Snapshot as Snapshot
    from takifugu.ledger.charging import Standing as Standing
    from takifugu.ledger.events.decisions import Review as Review
    from takifugu.ledger.events.decisions import Terms as Terms
    from takifugu.ledger.events.event_chain import Anchor as Anchor
    from takifugu.ledger.events.event_chain import Event as Event
    from takifugu.ledger.events.replay import Problem as Problem
    from takifugu.ledger.events.replay import Report as Report
    from takifugu.ledger.events.stored_answers import Answer as Answer
    from takifugu.ledger.events.stored_answers import EarlierCharge as EarlierCharge
    from takifugu.ledger.ledger import Ledger as Ledger
    from takifugu.ledger.ledger import Reading as Reading
    from takifugu.ledger.ledger import Stretch as Stretch
    from takifugu.ledger.lifecycle import accept_loss as accept_loss
    from takifugu.ledger.lifecycle import begin_witness as begin_witness
    from takifugu.ledger.lifecycle import open_ledger as open_ledger
    from takifugu.ledger.lifecycle import restore_ledger as restore_ledger
    from takifugu.ledger.witnesses.head_witness import LostWitness as LostWitness
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
