"""The ledger against sums that are added by hand: charges, decisions, crashes, two processes.

Two handles are open on one ledger, and charges are made by either of them or in a process of its
own. After every step: no cell has lost more than the ledger counts for it; what was acknowledged
is there; the chain is sound; budgets are what was set.
"""

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant

from takifugu.costs.losses import Total
from takifugu.errors import InvalidCharge, TakifuguError
from takifugu.ledger import Charge, Ledger, Receipt, Terms
from tests.ledger.charges import EVERY_PAIR
from tests.oracles.cell_sums import CellSum, CellSums, Pair
from torture.models.counted_machine import must
from torture.models.ledger_model import (
    DECLARED,
    KINDS,
    UNITS,
    WORTHS,
    Declared,
    Reads,
    Row,
    Tells,
    cell_of,
    planned,
)
from torture.models.two_handles import TwoHandles

ANALYSTS = (None, "ana", "bob")
DATASETS = ("ward", "annex")
NEARLY = Fraction(1001, 1000)  # bounds are searched for: one may end a little above another
Account = tuple[str, str | None]  # a dataset, and whose budget
USUAL = "usual"  # the unit that most windows of an example have


@dataclass(frozen=True)
class Asked:
    """A charge that was asked for, and what it tells if it is made."""

    charge: Charge
    rows: tuple[Row, ...]
    tells: Tells
    prior: int
    declared: Declared
    resume: bool = False


class LedgerState(TwoHandles):
    """Charges and decisions, and what must be true after each."""

    machine: ClassVar[str] = "ledger"

    def __init__(self) -> None:
        super().__init__()
        self.sums = CellSums[Account, Row]()
        self.asked = dict[str, Asked]()
        self.there, self.gone = set[str](), set[str]()  # keys: acknowledged; in a lost part
        self.drawn = dict[
            str, int
        ]()  # by key: how often noise was drawn, of one that is not resumed
        self.shown = dict[str, set[Any]]()  # by key: what was shown, of one that is resumed
        self.lost_attempts = dict[str, int]()  # by key: the handle that got no receipt
        self.budgets = dict[Account, Fraction]()
        self.highest = dict.fromkeys(DATASETS, Fraction(0))
        self.worth, self.delta, self.prior, self.data = "sums", Fraction(0), 0, 0
        self.declared = DECLARED[0]
        self.named = dict.fromkeys(DATASETS, DECLARED[0])  # what the ledger calls their cells
        self.marked: dict[str, set[int]] = {name: set() for name in DATASETS}
        self.apart, self.unit = False, "step"
        self.numbers = itertools.count(1)

    @initialize(
        worth=st.sampled_from(("sums", "chains", "chains")),
        delta=st.booleans(),
        unit=st.sampled_from(UNITS),
    )
    def begin(self, worth: str, delta: bool, unit: str) -> None:
        """A ledger with a budget."""
        self.worth, self.unit = worth, unit
        self.delta = Fraction(1, 10**6) if delta and worth == "chains" else Fraction(0)
        self.reopen()
        for name, factor in (("ward", 1), ("annex", Fraction(1, 2))):
            self.enter_budget(0, name, None, WORTHS[worth].generous * factor)
        self.open[0].backup(self.folder / "copy0")  # an older copy, to be put back some time

    def reopen(self) -> None:
        """Both handles anew."""
        super().reopen()
        self.lost_attempts.clear()  # only the handle that made them may repeat them

    # --- charges ---

    def ask(
        self, reads: Reads, kind: int, size: Fraction, analyst: str | None, **others: Any
    ) -> Asked:
        """A charge under what is declared and believed now."""
        tells = WORTHS[self.worth].tells(self.kind(kind), size, self.declared)
        if reads.unit == USUAL:
            reads = replace(reads, unit=self.unit)
        made = planned(
            *(self.worth, self.prior, self.declared, reads, tells),
            analyst=analyst,
            data=f"data {self.data}",
            sources=(f"content key:{self.data}",),
            query={"name": "stays", "number": next(self.numbers) % 3},
            **({"key": f"charge {next(self.numbers)}"} | others),
        )
        rows = tuple(reads.rows(self.declared.naming))
        asked = Asked(made, rows, tells, self.prior, self.declared)
        self.asked[made.key] = asked
        return asked

    def made(self, key: str) -> None:
        """A charge was made, and told by its noise what it tells."""
        asked = self.asked[key]
        if key in self.there:
            return
        self.there.add(key)
        charge, tells = asked.charge, asked.tells
        self.marked[charge.dataset].add(self.data)
        self.named[charge.dataset] = asked.declared  # the last charge decides it
        for who in {None, charge.analyst}:
            account = (charge.dataset, who)
            self.sums.add(account, asked.rows, tells.pairs, tells.delta, tells.rho)
            self.within(account, asked.prior)

    def within(self, account: Account, prior: int) -> None:
        """What was told must be within the budget of an account, as an adversary reads it."""
        budget = self.budgets.get(account)
        if budget is None or self.delta:
            return
        told, most = self.told_so_far(account, prior), self.admitted(budget, prior)
        most *= NEARLY if self.worth == "chains" else 1
        must(told <= most, f"{told} of {most} was told from {budget} of {account}")

    def told_so_far(self, account: Account, prior: int) -> Fraction:
        """What is compared with `admitted`: what all rows together have told, or one of them.

        An adversary of "sums" adds up what is told about each pair of values at worst.
        """
        if self.worth == "chains":
            return self.sums.most(account)
        worst = dict[Pair, Fraction]()
        for row in self.sums.of(account).values():
            for pair, told in row.pairs.items():
                worst[pair] = max(worst.get(pair, Fraction(0)), told)
        return (1 + prior) * sum(worst.values(), Fraction(0))

    def admitted(self, budget: Fraction, prior: int) -> Fraction:
        """How much of that a budget admits.

        Of "chains", whose two values tell all that a charge tells: an ε of every row.
        """
        if self.worth == "chains":
            return Fraction(float(WORTHS["chains"].priors[prior].to_dp(float(budget))))
        return budget

    def filling(self, kind: int, who: str | None, part: Fraction) -> Fraction | None:
        """How large a charge on all rows may be to come to a part of the smaller budget.

        None if no budget says so.
        """
        sizes = []
        for account in {("ward", None), ("ward", who)} & set(self.budgets):
            told = self.told_so_far(account, self.prior)
            unit = WORTHS[self.worth].tells(self.kind(kind), Fraction(1)).pairs.values()
            each = max(unit) if self.worth == "chains" else (1 + self.prior) * sum(unit)
            most = self.admitted(self.budgets[account], self.prior)
            sizes.append((most * part - told) / each)
        return None if self.delta or not sizes else min(sizes)

    def kind(self, number: int) -> str:
        """One of the kinds of charges."""
        kinds = KINDS[self.worth]
        return kinds[number % len(kinds)]

    def twin(self, dataset: str) -> bool:
        """Whether another dataset has the same rows, and a budget of its own for them."""
        (other,) = (name for name in DATASETS if name != dataset)
        return not self.apart and self.data in self.marked[other]

    def pay(self, step: str, handle: int, asked: Asked, *, resume: bool = False) -> Receipt | None:
        """Charge, as was foretold; None if it was refused."""
        ledger, translation = self.open[handle], WORTHS[self.worth].priors[asked.prior]
        key = asked.charge.key
        try:
            quote = ledger.quote(asked.charge, translation)
            foretold = all(one.admits(asked.charge.loss) for one in quote.standings)
        except TakifuguError:
            foretold = False
        receipt = None
        with self.attempt(step, self.state):
            receipt = ledger.charge(asked.charge, translation, resume=resume)
        must((receipt is not None) == foretold, "a charge did not meet what its quote said")
        if receipt is not None:
            must(not self.twin(asked.charge.dataset), "the same rows have two budgets")
            must(receipt.may_release, "a new charge may not be released")
            self.made(key)
        return receipt

    # --- what must be true ---

    @invariant()
    def no_cell_has_lost_more_than_is_counted(self) -> None:
        """The sums by hand against the ledger, cell by cell; the chain, budgets, keys."""
        if not self.open:
            return
        ledger = self.open[next(self.numbers) % 2]
        self.sound(ledger)
        keys = {event.body.get("key") for event in self.events() if event.kind == "charge"}
        must(self.there - self.gone <= keys, "a charge that was acknowledged is not there")
        found = {(p.dataset, p.analyst): p.epsilon for p in ledger.positions()}
        for account, budget in self.budgets.items():
            must(found.get(account) == budget, f"the budget of {account} is {found.get(account)}")
        for account in self.sums:
            self.compare(ledger, *account)

    def compare(self, ledger: Ledger, dataset: str, analyst: str | None) -> None:
        """One account."""
        worst = ledger.lost(dataset, analyst=analyst)
        for row, lost in self.sums.of((dataset, analyst)).items():
            worse = f"{dataset}, {analyst}: {row} lost more than the worst"
            must(self.covers(dataset, worst, lost), worse)
            counted = None
            for unit in UNITS:
                try:
                    window, groups = cell_of(row, self.named[dataset].naming, unit)
                    counted = ledger.lost(dataset, analyst=analyst, window=window, groups=groups)
                    break
                except InvalidCharge:  # windows of this dataset have another unit
                    continue
            must(counted is not None, "no unit of windows is admitted")
            more = f"{dataset}, {analyst}: {row} lost more than counted"
            must(self.covers(dataset, counted, lost), more)

    def covers(self, dataset: str, totals: Any, lost: CellSum) -> bool:
        """Whether one of the totals is as large as a sum, in every currency.

        Totals are about labels, a sum is about values, whatever labels they had when it was made.
        """
        values, label = WORTHS[self.worth].values, self.named[dataset].label

        def enough(total: Total) -> bool:
            return (
                total.delta >= lost.delta
                and total.rho >= lost.rho
                and all(
                    total.cost.between(values[label(u)], values[label(v)]) >= told
                    for (u, v), told in lost.pairs.items()
                )
            )

        return any(map(enough, totals))

    def enter_budget(self, handle: int, dataset: str, analyst: str | None, most: Fraction) -> None:
        """Set a budget, and remember the highest."""
        self.open[handle].set_budget(dataset, most, analyst=analyst, delta=self.delta)
        self.budgets[dataset, analyst] = most
        self.highest[dataset] = max(self.highest[dataset], most)

    def terms(self, prior: int) -> Terms:
        """A prior, and what it protects."""
        return Terms(f"prior {prior}", EVERY_PAIR)
