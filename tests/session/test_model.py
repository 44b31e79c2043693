"""Random histories of careless owners and hostile analysts, against a plain count of every row.

The model knows the rows of a small table by where they stand, reads each declaration with a loop of
its own, and adds up for every row what was really released about it. Whatever is edited, accepted,
restored, lost or renamed in between: no row has lost more than the ledger counts for it, no analyst
has learnt more than their account says, and nothing is released beyond the budget.
"""

import os
import shutil
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu._core.keys import state_folder
from takifugu.binding.prior_reading import terms_of
from takifugu.costs.losses import Total
from takifugu.declarations import Category, Declaration, Order, Source
from takifugu.errors import LedgerSetBack, TakifuguError
from takifugu.ledger import (
    Groups,
    Ledger,
    Window,
    accept_loss,
    begin_witness,
    open_ledger,
    restore_ledger,
)
from takifugu.ledger.witnesses.lost_history import LossTerms
from takifugu.priors import MarkovChain
from takifugu.session import Session
from takifugu.session.cells import cells_of
from takifugu.session.release_plan import Plan
from takifugu.tables import open_engine
from takifugu.translation.translation import Translation
from tests.ledger.folders import in_memory
from tests.session.zone_namings import ZONE_NAMINGS

DEEP = bool(os.environ.get("DEEP"))
STATES = ("home", "ward")
# person, step, slot, zone, state: slot is another order of the same rows
ROWS = tuple(
    (person, step, (step * 3 + place) % 4, "ab"[(step + place) % 2], STATES[(step * place) % 2])
    for place, person in enumerate(("Ann", "Bea", "Cid"))
    for step in range(4)
)
PRIORS = tuple(
    Translation(
        MarkovChain(np.array([[stay, 1 - stay], [1 - stay, stay]]), states=STATES, length=4)
    )
    for stay in (0.6, 0.9)
)
ORDERS = ("step", "slot")
ANALYSTS = (None, "ana", "Ana", "bob")
OPERATIONS = (
    *("release",) * 8,
    *("edit", "edit", "edit", "accept", "unchanged", "prior", "terms"),
    *("budget", "own", "keep", "late", "copy", "back", "restore", "lossy", "witness", "key"),
    *("move", "again", "apart", "grow"),
)


class World:
    """One ledger, its table, what its owner has done to them, and what is known of every row."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "visits.ledger"
        self.file, self.zone, self.order, self.prior = "visits.csv", 0, 0, 0
        self.people = 3
        self.lost: dict[tuple[str, str | None], dict[Any, Fraction]] = {}
        self.seen: dict[str, set[int]] = {"visits": set(), "again": set()}
        self.budget = self.highest = Fraction(0)
        self.plan: Plan | None = None
        self.apart = False
        self.write()
        self.set_budget(Fraction(6))

    # --- the table ---

    def write(self) -> None:
        """Write the table."""
        lines = [",".join(map(str, row)) for row in self.rows()]
        text = "\n".join(["person,step,slot,zone,state", *lines]) + "\n"
        (self.folder / self.file).write_text(text, encoding="utf-8")

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows in the file: those of some people more, once it has grown."""
        more = [(f"more{n}", *row[1:]) for n in range(self.people - 3) for row in ROWS[:4]]
        return [*ROWS, *more]

    def declaration(self, file: str | None = None) -> Declaration:
        """The declaration as it is edited now."""
        return Declaration(
            source=Source("csv", path=str(self.folder / (file or self.file))),
            entity="person",
            order=Order(ORDERS[self.order], "number"),
            protected=(Category("state", STATES, "refuse"),),
            public=(ZONE_NAMINGS[self.zone][0],),
        )

    def read(self, window: tuple[int, int] | None, keys: list[Any] | None) -> frozenset[Any]:
        """The rows that a query reads, by a loop: each by its person and its true step."""
        place, named = 1 + self.order, ZONE_NAMINGS[self.zone][1]
        return frozenset(
            row[:2]
            for row in self.rows()
            if (window is None or window[0] <= row[place] < window[1])
            and (keys is None or named[row[3]] in keys)
        )

    # --- releasing ---

    def release(self, number: int, *, dataset: str = "visits", file: str | None = None) -> bool:
        """Ask something; whether anything new was released."""
        window = (None, (0, 2), (2, 4), (1, 3))[number % 4]
        zone = ZONE_NAMINGS[self.zone][0]
        names: list[Any] = [
            *(zone.values or ()),
            *([zone.other] if zone.outside == "other" else []),
        ]
        keys = (None, names[:1], names[1:], None)[number // 4 % 4]
        analyst = ANALYSTS[number // 16 % 4]
        epsilon = ("0.5", "1", "2")[number // 64 % 3]
        where = None if keys is None else {"zone": keys}
        with open_engine(self.declaration(file), threads=1) as engine, self.opened() as ledger:
            session = Session(
                engine, PRIORS[self.prior], ledger=ledger, dataset=dataset, analyst=analyst
            )
            if number // 192 % 2:  # what a count of one of two labels tells, it tells of both
                plan = session.plan.count("ward", window=window, where=where, epsilon=epsilon)
            else:
                plan = session.plan.histogram(window=window, where=where, epsilon=epsilon)
            before = ledger.head()
            result = session.release(plan, accept_noise=True)
            return self.note(ledger, before.seq, self.read(window, keys), analyst, dataset, result)

    def note(
        self,
        ledger: Ledger,
        before: int,
        rows: frozenset[Any],
        analyst: str | None,
        dataset: str,
        result: Any,
    ) -> bool:
        """Add up what a release told; whether it told anything new."""
        events = [event for event in ledger.history(dataset) if event.seq > before]
        charges = [event for event in events if event.kind == "charge"]
        assert len(charges) <= 1
        if not charges:
            assert result.free or [event.kind for event in events] == ["reuse"]
            return False
        loss = _told(charges[0].body["loss"])
        for who in {None, analyst}:
            account = self.lost.setdefault((dataset, who), defaultdict(Fraction))
            for row in rows:
                account[row] += loss
        self.seen[dataset].add(self.people)
        if dataset == "visits":
            assert Fraction(ledger.spent("visits", PRIORS[self.prior])) <= self.budget
        return True

    # --- the ledger ---

    def opened(self) -> Ledger:
        """The ledger."""
        return open_ledger(self.path)

    def set_budget(self, epsilon: Fraction, analyst: str | None = None) -> None:
        """Set a budget, and remember the highest."""
        with self.opened() as ledger:
            ledger.set_budget("visits", epsilon, analyst=analyst)
        if analyst is None:
            self.budget, self.highest = epsilon, max(self.highest, epsilon)

    def cells(self) -> Any:
        """What names the cells now."""
        with open_engine(self.declaration(), threads=1) as engine:
            return cells_of(engine, ("state",), self.folder)

    def give_up(self) -> None:
        """The owner accepts the loss of history, and names the largest budget there was."""
        terms = self.terms()
        accept_loss(self.path, budgets=terms.budgets, translations=terms.translations)
        self.gave_up()

    def terms(self) -> LossTerms:
        """What the owner states about a part that is lost."""
        priors = dict.fromkeys(("visits", "again"), PRIORS[self.prior])
        return LossTerms(priors, {"visits": self.highest, "again": 3})

    def gave_up(self) -> None:
        """History was lost, and that was accepted."""
        self.seen = {"visits": set(), "again": set()}  # what was compared is lost as well
        self.budget = next(
            p.epsilon or Fraction(0)
            for p in self.positions()
            if p.dataset == "visits" and p.analyst is None
        )

    def positions(self) -> Any:
        """Every account."""
        with self.opened() as ledger:
            return ledger.positions()

    # --- one thing that somebody does ---

    def act(self, what: str, number: int) -> None:
        """Do one thing; ``number`` says how."""
        copy = self.folder / f"copy{number % 2}"
        match what:
            case "release":
                self.release(number)
            case "edit":
                self.zone = number % 4
                if number // 4 % 3 == 0:
                    self.order = number // 16 % 2
            case "accept" | "unchanged":
                with self.opened() as ledger:
                    ledger.accept_cells("visits", self.cells(), unchanged=what == "unchanged")
            case "prior":
                self.prior = number % 2
            case "terms":
                with self.opened() as ledger:
                    translation = PRIORS[self.prior]
                    ledger.accept(terms_of(translation), ledger.review("visits", translation))
            case "budget":
                self.set_budget(Fraction(number % 9))
            case "own":
                self.set_budget(Fraction(number % 5), ANALYSTS[1 + number % 3])
            case "keep":
                with open_engine(self.declaration(), threads=1) as engine, self.opened() as ledger:
                    session = Session(engine, PRIORS[self.prior], ledger=ledger, dataset="visits")
                    self.plan = session.plan.histogram(epsilon="0.25")
            case "late":
                self.late()
            case "copy":
                copy.unlink(missing_ok=True)
                with self.opened() as ledger:
                    ledger.backup(copy)
            case "back":
                self.set_back(copy)
            case "restore" | "lossy" if copy.exists():
                lossy, terms = what == "lossy", self.terms()
                if restore_ledger(copy, self.path, lossy=lossy, terms=terms).loss is not None:
                    self.gave_up()
            case "witness":
                shutil.rmtree(state_folder())
                begin_witness(self.path)
            case "key":
                (self.folder / "visits.key").unlink(missing_ok=True)
            case "move":
                old, self.file = self.file, f"moved{number % 3}.csv"
                if old != self.file:
                    (self.folder / old).unlink()
                self.write()
            case "again":
                self.again(number)
            case "apart":
                with self.opened() as ledger:
                    ledger.count_separately("visits", "again")
                self.apart = True
            case "grow":
                self.people = min(self.people + 1, 6)
                self.write()

    def late(self) -> None:
        """Release a plan that was made before whatever has happened since."""
        if self.plan is None:
            return
        with open_engine(self.declaration(), threads=1) as engine, self.opened() as ledger:
            session = Session(engine, PRIORS[self.prior], ledger=ledger, dataset="visits")
            before = ledger.head()
            result = session.release(self.plan, accept_noise=True)
            self.note(ledger, before.seq, self.read(None, None), None, "visits", result)

    def set_back(self, copy: Path) -> None:
        """Somebody copies an older file over the ledger: it is refused until put right."""
        if not copy.exists():
            return
        newest = self.folder / "newest"
        with self.opened() as ledger:
            head = ledger.head()
        shutil.copy(self.path, newest)
        shutil.copy(copy, self.path)
        try:
            with open_ledger(self.path) as ledger:
                assert ledger.head() == head
        except LedgerSetBack:
            shutil.copy(newest, self.path)

    def again(self, number: int) -> None:
        """The same rows under another name."""
        shutil.copy(self.folder / self.file, self.folder / "again.csv")
        charged = self.people in self.seen["visits"]
        with self.opened() as ledger:
            if not any(p.dataset == "again" for p in ledger.positions()):
                ledger.set_budget("again", 3)
        released = self.release(number, dataset="again", file="again.csv")
        assert not (released and charged and not self.apart), "a second budget for the same rows"

    # --- what must be true ---

    def check(self, *, by_cell: bool = False) -> None:
        """Hold what is known of every row against the ledger."""
        with self.opened() as ledger:
            report = ledger.verify()
            assert report.sound, report.problems
            for (dataset, analyst), rows in self.lost.items():
                counted = max(map(_between, ledger.lost(dataset, analyst=analyst)))
                assert max(rows.values(), default=Fraction(0)) <= counted
            named = ZONE_NAMINGS[self.zone][1]
            if by_cell and ledger.snapshot("visits", cells=self.cells()).changes is None:
                for row in self.rows():
                    place = row[1 + self.order]
                    window = Window(place, place + 1)
                    groups = Groups(["zone"], [(named[row[3]],)])
                    (cell,) = ledger.lost("visits", window=window, groups=groups)
                    mine = self.lost.get(("visits", None), {})
                    assert mine.get(row[:2], 0) <= _between(cell)


def _told(loss: Mapping[str, Any]) -> Fraction:
    """What a charge tells about one state against the other, from the words of its event."""
    if loss["currency"] == "pure":
        return Fraction(loss["epsilon"])
    told = Fraction(0)
    for weight, shape in loss["cost"]:
        match shape:
            case ["any"] | ["member", ["ward"] | ["home"]]:
                told += Fraction(weight)
            case _:
                raise AssertionError(f"a histogram or a count has the shape {shape}")
    return told


def _between(total: Total) -> Fraction:
    return max(total.cost.between(*STATES), total.cost.between(*STATES[::-1]))


histories = st.lists(
    st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 767)),
    min_size=4,
    max_size=40 if DEEP else 12,
)


# Rows of one zone by two names; a copy, a charge and a loss; a budget, a key and a second name.
@pytest.mark.nightly
@example([("release", 68), ("edit", 1), ("release", 72), ("accept", 0), ("release", 72)])
@example(
    [("copy", 0), ("release", 64), ("witness", 0), ("lossy", 0), ("budget", 8), ("release", 0)]
)
@example([("release", 0), ("key", 0), ("again", 0), ("apart", 0), ("again", 0), ("release", 64)])
@settings(max_examples=300 if DEEP else 4, deadline=None)
@given(histories)
def test_no_row_ever_loses_more_than_the_ledger_counts(history: list[tuple[str, int]]) -> None:
    with in_memory() as folder, in_memory() as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(state))
        world = World(folder)
        for what, number in history:
            with suppress(TakifuguError):  # refused: what is counted must still be right
                world.act(what, number)
            world.check()
        world.check(by_cell=True)
