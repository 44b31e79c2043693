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

from takifugu._lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.ledger.accounts.standings import Standing
    from takifugu.ledger.charge_values import Cells, Charge, Receipt
    from takifugu.ledger.entries_read import Groups, Window
    from takifugu.ledger.events.accepted_terms import Review, Terms
    from takifugu.ledger.events.event_chain import Anchor, Event
    from takifugu.ledger.events.replay import Problem, Report
    from takifugu.ledger.events.stored_answers import Answer
    from takifugu.ledger.ledger import Ledger
    from takifugu.ledger.lifecycle import accept_loss, begin_witness, open_ledger, restore_ledger
    from takifugu.ledger.resumed_charges import EarlierCharge
    from takifugu.ledger.snapshot import Position, Quote, Snapshot
    from takifugu.ledger.views import Reading, Stretch
    from takifugu.ledger.witnesses.head_witness import LostWitness
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "accounts.standings": ("Standing",),
            "charge_values": ("Cells", "Charge", "Receipt"),
            "entries_read": ("Groups", "Window"),
            "events.accepted_terms": ("Review", "Terms"),
            "events.event_chain": ("Anchor", "Event"),
            "events.replay": ("Problem", "Report"),
            "events.stored_answers": ("Answer",),
            "ledger": ("Ledger",),
            "lifecycle": ("accept_loss", "begin_witness", "open_ledger", "restore_ledger"),
            "resumed_charges": ("EarlierCharge",),
            "snapshot": ("Position", "Quote", "Snapshot"),
            "views": ("Reading", "Stretch"),
            "witnesses.head_witness": ("LostWitness",),
        },
    )

__all__ = [
    "Anchor",
    "Answer",
    "Cells",
    "Charge",
    "EarlierCharge",
    "Event",
    "Groups",
    "Ledger",
    "LostWitness",
    "Position",
    "Problem",
    "Quote",
    "Reading",
    "Receipt",
    "Report",
    "Review",
    "Snapshot",
    "Standing",
    "Stretch",
    "Terms",
    "Window",
    "accept_loss",
    "begin_witness",
    "open_ledger",
    "restore_ledger",
]
