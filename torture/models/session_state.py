"""A table, a ledger and what every cell has lost by releases: what machines of sessions begin with.

What a release tells is known from its noise, never from its charge. After every step: no cell
(person, time, column) has lost more than the ledger counts for it.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import ClassVar
from zoneinfo import ZoneInfo

from hypothesis.stateful import invariant

from takifugu.costs.losses import Total
from takifugu.ledger import Groups, Ledger, Window
from takifugu.session import Session
from takifugu.tables import open_engine
from tests.oracles.cell_sums import CellSum, CellSums
from tests.oracles.ledger_sums import PlainEvent
from tests.session.zone_namings import ZONE_NAMINGS
from torture.models.counted_machine import must
from torture.models.table_model import (
    BELIEVED,
    CLOCKS,
    FIRST,
    STEP,
    VALUES,
    Asked,
    Cell,
    TableModel,
    told,
)
from torture.models.two_handles import TwoHandles

SLACK = 1 - Fraction(1, 10**12)  # a scale that is shown as a float may be an ulp off
DATASET = "visits"


@contextmanager
def opened_session(
    folder: Path, table: TableModel, ledger: Ledger, prior: int, analyst: str | None
) -> Iterator[Session]:
    """A session on the table as it is declared now."""
    believed = BELIEVED["row" if len(table.columns) > 1 else "sequence"]
    with open_engine(table.declaration(folder / "visits.csv"), threads=1) as engine:
        yield Session(
            *(engine, believed.priors[prior]),
            ledger=ledger,
            dataset=DATASET,
            analyst=analyst,
            over=believed.over,
        )


class TableSums:
    """A table, what its cells are called, and the sums of its cells by account.

    Attributes:
        dataset: The name of its budget.
        table: The table as it is now.
        named: Naming and clock that the ledger knows.
        sums: What every cell has lost: for everybody, and for each analyst.
        budgets: That of everybody, and those of analysts.
    """

    dataset = DATASET

    def begin_sums(self, table: TableModel) -> None:
        """Nothing is lost yet."""
        self.table, self.named = table, (table.naming, table.clock)
        self.sums = CellSums[str | None, Cell]()
        self.budgets = dict[str | None, Fraction]()

    def note(self, asked: Asked, scale: float, analyst: str | None) -> None:
        """A charge was written, and its noise may have been seen."""
        for who in {None, analyst}:
            self.add(who, asked, scale)
        self.named = (self.table.naming, self.table.clock)

    def add(self, who: str | None, asked: Asked, scale: float) -> None:
        """What somebody may have learnt by noise of this scale."""
        rows = self.table.read(asked)
        for column, pairs in told(asked, scale).items():
            self.sums.add(who, [(person, time, column) for person, time in rows], pairs)
        if who in self.budgets:
            most = self.sums.most(who) * SLACK
            must(most <= self.budgets[who], f"{float(most)} was told from a budget of {who}")

    def reused(self, before: Sequence[PlainEvent], new: Sequence[PlainEvent]) -> bool:
        """Whether what was not charged was another analyst's answer, by the events that it left."""
        kinds = [event.kind for event in new if event.kind != "state"]
        must(
            kinds in ([], ["reuse"], ["source", "reuse"], ["answer"]),
            f"nothing was charged, and there is {kinds}",
        )
        if "reuse" in kinds:
            compared_when_due(before, new)
        return "reuse" in kinds

    def compare(self, ledger: Ledger, who: str | None) -> None:
        """One account; by cell where its rows still have the places that the ledger knows."""
        worst = ledger.lost(self.dataset, analyst=who)
        counted: dict[tuple[str, int], tuple[Total, ...]] = {}
        for (person, time, column), lost in self.sums.of(who).items():
            must(
                self.covers(worst, column, lost),
                f"{who}: {person} at {time} lost more than the worst",
            )
            held = self.table.rows.get((person, time))
            if held is None:  # removed: its cell is still there, and cannot be named any more
                continue
            zone = ZONE_NAMINGS[self.named[0]][1][held.zone]
            if (zone, time) not in counted:
                first, end = (
                    (FIRST + place * STEP).replace(tzinfo=ZoneInfo(CLOCKS[self.named[1]]))
                    for place in (time, time + 1)
                )
                counted[zone, time] = ledger.lost(
                    self.dataset,
                    analyst=who,
                    window=Window(first, end),
                    groups=Groups(["zone"], [(zone,)]),
                )
            must(
                self.covers(counted[zone, time], column, lost),
                f"{who}: {column} of {person} at {time} lost more than is counted",
            )

    def covers(self, totals: tuple[Total, ...], column: str, lost: CellSum) -> bool:
        """Whether a total is as large as a sum, for every pair of values of the column."""
        columns = self.table.columns
        place = columns.index(column)

        def between(total: Total, u: int, v: int) -> Fraction:
            if len(columns) == 1:
                return total.cost.between(VALUES[column][u], VALUES[column][v])
            one, other = ([VALUES[name][0] for name in columns] for _ in range(2))
            one[place], other[place] = VALUES[column][u], VALUES[column][v]
            return total.cost.between(tuple(one), tuple(other), columns)

        return any(
            all(between(total, u, v) >= sum_ * SLACK for (u, v), sum_ in lost.pairs.items())
            for total in totals
        )


def compared_when_due(before: Sequence[PlainEvent], new: Sequence[PlainEvent]) -> None:
    """Rows are compared with those of other datasets once, and again when cells are named anew."""
    named = max((event.seq for event in before if event.kind == "cells"), default=0)
    known = {e.body["question"] for e in before if e.kind == "source" and e.seq > named}
    filed = {event.body["question"] for event in new if event.kind == "source"}
    must(known.isdisjoint(filed), "rows that were known were compared again")
    must(bool(known or filed), "rows whose cells were named anew were not compared again")


class SessionState(TwoHandles, TableSums):
    """The table, and the sums of its cells by account: that of everybody, and of analysts."""

    machine: ClassVar[str] = "session"

    def __init__(self) -> None:
        super().__init__()
        self.path = self.folder / "visits.ledger"
        self.begin_sums(TableModel(("place",)))
        self.prior = 0
        self.there = set[int]()  # charges that were acknowledged, by number
        self.numbers = itertools.count(1)

    @property
    def file(self) -> Path:
        """The table."""
        return self.folder / "visits.csv"

    def charges(self, after: int = 0) -> list[int]:
        """The numbers of charges, by plain SQL."""
        return [e.seq for e in self.events() if e.kind == "charge" and e.seq > after]

    @invariant()
    def no_cell_has_lost_more_than_is_counted(self) -> None:
        """The sums by hand against the ledger, cell by cell; charges, budgets."""
        if not self.open:
            return
        ledger = self.open[next(self.numbers) % 2]
        self.sound(ledger)
        must(self.there <= set(self.charges()), "a charge that was acknowledged is not there")
        found = {p.analyst: p.epsilon for p in ledger.positions() if p.dataset == DATASET}
        for who, budget in self.budgets.items():
            must(found.get(who) == budget, f"the budget of {who} is {found.get(who)}")
        for who in self.sums:
            self.compare(ledger, who)

    @property
    def environment(self) -> str:
        """Where witnesses are."""
        return os.environ["XDG_STATE_HOME"]
