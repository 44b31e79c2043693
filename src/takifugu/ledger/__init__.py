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
    from takifugu.ledger.charge_values import Cells, Charge, Groups, Receipt, Window
    from takifugu.ledger.events.decisions import Review, Terms
    from takifugu.ledger.events.event_chain import Anchor, Event
    from takifugu.ledger.events.replay import Problem, Report
    from takifugu.ledger.events.stored_answers import Answer, EarlierCharge
    from takifugu.ledger.ledger import Ledger, Reading, Stretch
    from takifugu.ledger.lifecycle import accept_loss, begin_witness, open_ledger, restore_ledger
    from takifugu.ledger.snapshot import Position, Quote, Snapshot, Standing
    from takifugu.ledger.witnesses.head_witness import LostWitness
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "charge_values": ("Cells", "Charge", "Groups", "Receipt", "Window"),
            "events.decisions": ("Review", "Terms"),
            "events.event_chain": ("Anchor", "Event"),
            "events.replay": ("Problem", "Report"),
            "events.stored_answers": ("Answer", "EarlierCharge"),
            "ledger": ("Ledger", "Reading", "Stretch"),
            "lifecycle": ("accept_loss", "begin_witness", "open_ledger", "restore_ledger"),
            "snapshot": ("Position", "Quote", "Snapshot", "Standing"),
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
