"""What owners and servers do to a ledger beside charging it."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from takifugu.errors import BudgetExceeded, LedgerConflict, TakifuguError
from torture.models.counted_machine import CRASHED, must
from torture.models.crash_points import CHARGING, POINTS, Crash, Point, crashing
from torture.models.ledger_machine import SIZES, LedgerSteps, readings, tens
from torture.models.ledger_model import DECLARED, WORTHS, Declared, Reads
from torture.models.ledger_state import ANALYSTS, DATASETS
from torture.models.two_handles import handles

BUDGETS = tuple(map(Fraction, ("0", "1/4", "1", "3/2", "2")))  # of what is generous
keys = st.sampled_from(("first", "second", "third"))


class LedgerDecisions(LedgerSteps):
    """Budgets, declarations, priors and data that change; requests that are resumed."""

    @rule(handle=handles, factor=st.sampled_from(BUDGETS), dataset=st.sampled_from(DATASETS))
    def budget(self, handle: int, factor: Fraction, dataset: str) -> None:
        """The owner raises or lowers a budget."""
        lower = factor * WORTHS[self.worth].generous < self.budgets[dataset, None]
        self.enter_budget(handle, dataset, None, factor * WORTHS[self.worth].generous)
        self.took("budget lowered" if lower else "budget raised")

    @rule(
        handle=handles, factor=st.sampled_from(BUDGETS[1:]), analyst=st.sampled_from(("ana", "bob"))
    )
    def own_budget(self, handle: int, factor: Fraction, analyst: str) -> None:
        """An analyst gets a budget of their own: from then on only such analysts may ask."""
        with self.attempt("budget of an analyst", self.state):
            self.enter_budget(handle, "ward", analyst, factor * WORTHS[self.worth].generous)

    @rule(
        handle=handles, declared=st.sampled_from(DECLARED), dataset=st.sampled_from(DATASETS),
        how=st.sampled_from(("edit", "unchanged", "groups")),
    )  # fmt: skip
    def declare(self, handle: int, declared: Declared, dataset: str, how: str) -> None:
        """The declaration is edited, or somebody denies it; or groups are decided.

        What is charged before the owner accepts the edit is refused.
        """
        ledger = self.open[handle]
        if how == "groups":
            with self.attempt("groups decided", self.state):
                columns = (("country",), ("floor",), ("country", "floor"))
                ledger.set_partition(dataset, columns[declared.naming % 3])
            return
        self.declared = declared
        if how == "edit":
            self.took("declaration edited")
        else:
            charged = any(self.asked[key].charge.dataset == dataset for key in self.there)
            with self.attempt("edit denied", self.state):
                ledger.accept_cells(dataset, declared.cells, unchanged=True)
                same = self.named[dataset].cells.text == declared.cells.text
                must(not charged or same, "an edit was taken for none")
                self.named[dataset] = declared

    @rule(
        handle=handles,
        declared=st.sampled_from(DECLARED),
        dataset=st.sampled_from(("ward", "ward", "annex")),
    )
    def accept_edit(self, handle: int, declared: Declared, dataset: str) -> None:
        """The owner accepts an edit: all that was charged counts on every row from then on."""
        self.declared = declared
        with self.attempt("edit accepted", self.state):
            self.open[handle].accept_cells(dataset, declared.cells)
            self.named[dataset] = declared

    @rule(handle=handles, prior=st.integers(0, 1), accept=st.booleans())
    def replace_prior(self, handle: int, prior: int, accept: bool) -> None:
        """Another prior, which the owner accepts or not."""
        self.prior = prior
        translation = WORTHS[self.worth].priors[prior]
        if not accept:
            self.took("prior replaced, not accepted")
            return
        for dataset in DATASETS:
            with self.attempt("prior replaced", self.state):
                seen = self.open[handle].review(dataset, translation)
                self.open[1 - handle].accept(self.terms(prior), seen)

    @rule(handle=handles, what=st.sampled_from(("data", "data", "apart", "rebuild", "reopen")))
    def change(self, handle: int, what: str) -> None:
        """Rows are added; the owner lets both datasets have the same rows; or something is anew."""
        match what:
            case "data":
                self.data += 1
            case "apart":
                self.open[handle].count_separately(*DATASETS)
                self.apart = True
            case "rebuild":
                self.open[handle].rebuild()
            case "reopen":
                self.reopen()
        words = {"data": "data changed", "apart": "counted separately"}
        self.took(words.get(what) or {"rebuild": "totals rebuilt"}.get(what, "opened again"))

    # --- requests that are resumed, and answers that are used again ---

    @rule(
        handle=handles, key=keys, reads=readings(), kind=tens, size=st.sampled_from(SIZES[:3]),
        point=st.sampled_from((None, None, *POINTS)),
    )  # fmt: skip
    def request(
        self, handle: int, key: str, reads: Reads, kind: int, size: Fraction, point: Point | None
    ) -> None:  # fmt: skip
        """A request under a key of its own, which is made again until it has an answer."""
        if key not in self.asked:
            self.asked[key] = replace(
                self.ask(reads, kind, size, self.somebody(), key=key), resume=True
            )
        asked, ledger = self.asked[key], self.open[handle]
        translation = WORTHS[self.worth].priors[asked.prior]
        known = key in self.keys()
        before = self.state()
        if known and kind % 2 and self.answered_before(handle, key):
            return
        charging = point if point in CHARGING and not known else None
        try:
            if not known:
                ledger.quote(asked.charge, translation)
            with crashing(charging):
                receipt = ledger.charge(asked.charge, translation, resume=True)
        except Crash:
            self.took("request", CRASHED)
            self.died(charging)
            if key in self.keys():
                self.made(key)
            return
        except TakifuguError as error:
            must(self.state() == before, "a request was refused and left a trace")
            self.took("request", type(error).__name__)
            if key not in self.there and not (isinstance(error, BudgetExceeded) and known):
                del self.asked[key]  # a charge that was lost with its history is still counted
            return
        self.made(key)
        self.told(receipt.anchor.seq)
        if known:
            must(self.state() == before, "a request was paid twice")
        self.answer(handle, key, receipt, point)

    def answer(self, handle: int, key: str, receipt: Any, point: Point | None) -> None:
        """Draw, record and show; or come to an end in between."""
        shown = self.shown.setdefault(key, set())
        if not receipt.may_release:
            if not self.answered_before(handle, key):
                must(key in self.gone or bool(self.gone), "a request can never be answered")
                self.took("request", "lost")
        else:
            drawn = next(self.numbers)
            if point == "drawn":
                self.took("request", CRASHED)
                return
            ledger = self.open[1 - handle if point is None else handle]
            try:
                with crashing("stored" if point == "stored" else None):
                    stored = ledger.record_answer(receipt, drawn)
            except Crash:
                self.took("request", CRASHED)
                self.died(point)
                return
            if point == "recorded":
                self.took("request", CRASHED)
                return
            shown.add(stored.value)
            self.took("request")
        must(len(shown) <= 1, "a request has two answers")

    def answered_before(self, handle: int, key: str) -> bool:
        """Whether a request that was charged has an answer, which is shown then."""
        earlier = self.open[handle].earlier(self.asked[key].charge)
        must(earlier is not None, "a charge has no earlier call")
        if earlier is None or earlier.answer is None:
            return False
        shown = self.shown.setdefault(key, set())
        shown.add(earlier.answer.value)
        self.told(earlier.answer.event.seq)
        must(len(shown) <= 1, "a request has two answers")
        self.took("request answered before")
        return True

    @precondition(lambda self: self.there)
    @rule(handle=handles, which=st.integers(0, 99), analyst=st.sampled_from(ANALYSTS[1:]))
    def use_again(self, handle: int, which: int, analyst: str) -> None:
        """Somebody else asks what was answered before: it costs their own budget alone."""
        keys_there = sorted(self.there)
        asked = self.asked[keys_there[which % len(keys_there)]]
        charge = replace(asked.charge, analyst=analyst, key=f"reuse {next(self.numbers)}")
        ledger, before = self.open[handle], self.open[handle].head()
        try:
            ledger.reuse(charge, WORTHS[self.worth].priors[asked.prior])
        except TakifuguError as error:
            must(not isinstance(error, LedgerConflict), "a new key is not new")
            must(ledger.head() == before, "a refused reuse left a trace")
            self.took("answer used again", type(error).__name__)
            return
        new = [event for event in self.events() if event.seq > before.seq]
        kinds = [event.kind for event in new]  # first which data it read, if that was not noted yet
        must(kinds in ([], ["reuse"], ["source", "reuse"]), "more than a reuse")
        if new:
            account = (charge.dataset, analyst)
            self.named[charge.dataset] = asked.declared
            tells = asked.tells
            self.sums.add(account, asked.rows, tells.pairs, tells.delta, tells.rho)
            self.within(account, asked.prior)
        self.took("answer used again" if new else "answer that is free, or none")
