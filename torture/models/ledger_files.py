"""The whole machine of the ledger: beside all else, history that is lost for good."""

from fractions import Fraction
from typing import Any

from hypothesis.stateful import precondition, rule

from takifugu.errors import TakifuguError
from takifugu.ledger import accept_loss
from tests.oracles.ledger_sums import events_of
from torture.models.ledger_decisions import LedgerDecisions
from torture.models.ledger_model import DECLARED, WORTHS
from torture.models.two_handles import copies


class LedgerMachine(LedgerDecisions):
    """The whole machine."""

    @precondition(lambda self: self.older)
    @rule(number=copies)
    def lose(self, number: int) -> None:
        """The newest state is lost for good, and the owner, who knows the budgets, accepts it."""
        copy = self.copy(self.older[number % len(self.older)])
        newest = self.set_aside()
        self.put(copy)
        priors = {self.asked[key].prior for key in self.there}
        given: dict[str, Any] = {}
        if len(priors) == 1:  # in all of it, the lost part included
            given = dict.fromkeys(("ward", "annex"), WORTHS[self.worth].priors[priors.pop()])
        most: dict[str, Any] = {
            name: (highest, self.delta) if self.delta else highest
            for name, highest in self.highest.items()
        }
        try:
            accept_loss(self.path, budgets=most, translations=given)
        except TakifuguError as error:  # what was admitted is not known: the owner finds it again
            self.took("loss of history accepted", type(error).__name__)
            self.put(newest)
        else:
            self.took("loss of history accepted")
            self.after_loss()
        self.reopen()

    def after_loss(self) -> None:
        """What is known of the ledger that is left."""
        events = events_of(str(self.path))
        kept = {event.body.get("key") for event in events}
        self.gone |= self.there - kept
        self.known = self.edited_at = self.set_back_at = 0
        self.budgets = {
            (event.body["dataset"], event.body["analyst"]): Fraction(event.body["epsilon"])
            for event in events
            if event.kind == "budget"
        }
        for dataset in self.named:
            read = [
                (event.body["cells"], event.body.get("values", {}))
                for event in events
                if event.body.get("dataset") == dataset
                and event.kind in ("charge", "reuse", "cells")
            ]
            if read:
                self.named[dataset] = next(
                    one
                    for one in DECLARED
                    if (one.cells.fingerprint, one.cells.value_parts) == read[-1]
                )
        self.apart = any(event.kind == "separate" for event in events)
        marks = [event.body for event in events if event.kind == "source"]
        for dataset in self.marked:
            self.marked[dataset] = {
                int(mark.rpartition(":")[2])
                for body in marks
                if body["dataset"] == dataset
                for mark in body["marks"]
            }
        for number in (0, 1):  # copies of what came after are of another history now
            if self.copy(number).exists() and events_of(str(self.copy(number)))[-1].seq > 0:
                self.copy(number).unlink()
