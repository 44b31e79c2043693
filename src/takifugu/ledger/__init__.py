"""A budget ledger that cannot be overspent and survives crashes.

    with open_ledger("ward.ledger") as ledger:
        ledger.set_budget("ward", 1)
        receipt = ledger.charge(charge, translation)   # durable, or an error
        answer = ...                                    # only now draw noise
        ledger.record_answer(receipt, answer)

It stores per-entry DP losses and which entries they touched; the Pufferfish loss is a view of
them, translated once.
"""

from takifugu.ledger.answers import Answer
from takifugu.ledger.chain import Anchor, Event
from takifugu.ledger.charging import Receipt
from takifugu.ledger.decisions import Review, Terms
from takifugu.ledger.ledger import Ledger, accept_loss, open_ledger, restore_ledger
from takifugu.ledger.reading import Position, Reading, Stretch
from takifugu.ledger.replay import Report
from takifugu.ledger.values import Cells, Charge, Groups, Window
from takifugu.ledger.witness import LostWitness

__all__ = [
    "Anchor",
    "Answer",
    "Cells",
    "Charge",
    "Event",
    "Groups",
    "Ledger",
    "LostWitness",
    "Position",
    "Reading",
    "Receipt",
    "Report",
    "Review",
    "Stretch",
    "Terms",
    "Window",
    "accept_loss",
    "open_ledger",
    "restore_ledger",
]
