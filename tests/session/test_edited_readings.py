"""Any key of declaration or prior is edited between two releases: what is claimed covers the truth.

Every release is compared with an enumeration of raw tables (`tests.oracles.raw_readings`): under
the reading and the prior that were accepted last, all releases together tell no more than the
ledger says, or the release was refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from takifugu.binding.prior_reading import terms_of
from takifugu.declarations import Amount, Category, Declaration, Order, Source
from takifugu.errors import CellsChanged, UnsoundRequest
from takifugu.ledger import Ledger, open_ledger
from takifugu.priors import MarkovChain
from takifugu.project.owner_changes import cell_change
from takifugu.session import Session
from takifugu.tables import open_engine
from takifugu.translation.translation import Translation
from tests.ledger.folders import example_folder
from tests.oracles.raw_readings import NoisySums, leakage

LENGTH = 3
RAW: dict[str, tuple[Any, ...]] = {  # every state of every reading has one of them
    "text": ("a", "b", "c", "v", "w"),
    "whole": (0, 1, 2, 3, 4),
    "number": (0, 0.4, 0.6, 1.2, 1.6, 2),
}
HELD = {"text": ("a", "c", "b"), "whole": (0, 2, 1), "number": (0.4, 1.2, 0.6)}


@dataclass(frozen=True)
class Situation:
    """How a table is read and what is believed of it, at the time of one release."""

    column: Category | Amount
    numbered: bool  # whether the states of the prior have no names
    ranges: bool  # whether they are ranges of numbers, where they can be
    stay: float  # how probably a state is followed by itself
    left: bool  # whether the last state is left at once and never entered again
    entity: str = "person"
    order: str = "step"
    public: tuple[str, ...] = ("x", "y")

    def declaration(self, folder: Path) -> Declaration:
        """The declaration of the table in ``folder``."""
        return Declaration(
            Source("csv", path=str(folder / "cells.csv")),
            self.entity,
            Order(self.order, "number"),
            (self.column,),
            (Category("zone", self.public, "other"),),
        )

    @property
    def numbers(self) -> list[Fraction]:
        """The numbers that a column of numbers is rounded to."""
        assert isinstance(self.column, Amount)
        low, high, step = self.column.low, self.column.high, self.column.step
        return [low + step * k for k in range(int((high - low) / step) + 1)]

    def read(self, raw: Any) -> Any:
        """The label or number that a raw value counts as; None if it is refused."""
        if isinstance(self.column, Amount):
            clamped = min(max(Fraction(str(raw)), self.column.low), self.column.high)
            return min(self.numbers, key=lambda number: abs(number - clamped))
        found = dict(self.column.labels).get(raw, raw)
        other = self.column.other if self.column.outside == "other" else None
        return found if found in (self.column.values or ()) else other

    @property
    def cut(self) -> Fraction | None:
        """Where two ranges of numbers meet."""
        if not isinstance(self.column, Amount) or not self.ranges or len(self.numbers) < 3:
            return None
        return self.numbers[len(self.numbers) // 2]

    @property
    def states(self) -> list[list[Any]]:
        """What each state of the prior stands for: labels or numbers."""
        if isinstance(self.column, Category):
            values = list(self.column.values or ())
            folds = self.column.outside == "other" and self.column.other not in values
            return [[value] for value in (*values, *([self.column.other] if folds else []))]
        if self.cut is None:
            return [[number] for number in self.numbers]
        return [
            [n for n in self.numbers if n < self.cut],
            [n for n in self.numbers if n >= self.cut],
        ]

    @property
    def names(self) -> list[Any]:
        """What the prior calls its states; nothing if they are only numbered."""
        if self.numbered:
            return []
        if isinstance(self.column, Category):
            return [label for (label,) in self.states]
        if self.cut is None:
            return [f"{float(number):g}" for number in self.numbers]
        ends = [f"{float(end):g}" for end in (self.column.low, self.cut, self.column.high)]
        return [f"[{ends[0]}, {ends[1]})", f"[{ends[1]}, {ends[2]}]"]

    @property
    def law(self) -> tuple[list[float], list[list[float]]]:
        """The probabilities of first states and of steps."""
        size = len(self.states)
        step = np.full((size, size), (1 - self.stay) / (size - 1))
        np.fill_diagonal(step, self.stay)
        if self.left and size > 2:
            step[:-1] += step[:-1, [-1]] / (size - 1)
            step[:, -1] = 0
            step[-1] = [1 / (size - 1)] * (size - 1) + [0]
        return [1 / size] * size, (step / step.sum(axis=1, keepdims=True)).tolist()

    @property
    def prior(self) -> MarkovChain:
        """The same as a prior."""
        start, step = map(np.array, self.law)
        return MarkovChain(step, states=tuple(self.names), start=start, length=LENGTH)

    def raw_of_states(self, kind: str) -> list[list[list[Any]]]:
        """The raw values of each state: by every reading of the states that is possible.

        Numbered states may be the labels in their order, or the labels that are these numbers.
        """
        read = {raw: self.read(raw) for raw in RAW[kind]}
        by_place = [[r for r in RAW[kind] if read[r] in values] for values in self.states]
        labels = [values[0] for values in self.states]
        if not self.numbered or sorted(map(str, labels)) != [str(k) for k in range(len(labels))]:
            return [by_place]
        by_number = [[r for r in RAW[kind] if read[r] == k] for k in range(len(labels))]
        return [by_place, by_number]


def released(
    session: Session, now: Situation, kind: str, query: tuple[Any, ...]
) -> NoisySums | None:
    """Release one query; the release as the oracle takes it, or None if the answer was stored."""
    choice, window, epsilon = query
    asked: dict[str, Any] = {"epsilon": epsilon, "window": window}
    read = {raw: now.read(raw) for raw in RAW[kind]}
    if isinstance(now.column, Amount):
        plan = session.plan.sum(**asked)
        step = now.column.step
        numbers: dict[Any, tuple[int, ...]] = {
            raw: (int(value / step),) for raw, value in read.items()
        }
    elif choice == "histogram":
        plan = session.plan.histogram(**asked)
        labels = [label for (label,) in now.states]
        numbers = {raw: tuple(int(v == label) for label in labels) for raw, v in read.items()}
    else:
        label = now.states[choice % len(now.states)][0]
        plan = session.plan.count(values=[label], **asked)
        numbers = {raw: (int(value == label),) for raw, value in read.items()}
    if session.release(plan, accept_noise=True).free:
        return None
    places = range(LENGTH) if now.order == "step" else reversed(range(LENGTH))
    start, end = window or (0, LENGTH)
    rows = tuple(row for row, place in enumerate(places) if start <= place < end)
    return NoisySums(rows, numbers, plan.mechanism.describe()["scale"])


def sequences(now: Situation) -> list[list[int]]:
    if now.entity == "row":
        return [[row] for row in range(LENGTH)]
    rows = list(range(LENGTH))
    return [rows if now.order == "step" else rows[::-1]]


@contextmanager
def opened(folder: Path, ledger: Ledger, now: Situation, kind: str) -> Iterator[Session]:
    """A session whose owner has accepted the prior and the declaration, as the commands do."""
    with open_engine(now.declaration(folder), threads=1) as engine:
        translation = Translation(now.prior)
        terms = terms_of(translation)
        if ledger.snapshot("cells").terms not in (None, terms):
            ledger.accept(terms, ledger.review("cells", translation))
        session = Session(engine, translation, ledger=ledger, dataset="cells")
        shown = cell_change(ledger, "cells", session.cells, translation)
        if shown.changes:
            with pytest.raises(CellsChanged):
                released(session, now, kind, ("histogram", None, "1"))
            ledger.accept_cells("cells", session.cells)
            assert session.spent() == shown.after  # what the owner was told
        yield session


NAMES = {"text": ("a", "b", "c"), "whole": (0, 1, 2)}


def labelled(kind: str) -> st.SearchStrategy[Category]:
    names, extra = NAMES[kind], RAW[kind][3]
    other: Any = "other" if kind == "text" else 7
    lists = st.sampled_from([names, names[::-1], (names[2], names[0], names[1]), names[:2]])
    maps = st.sampled_from([(), ((extra, names[0]),), ((extra, names[1]),)])
    return st.builds(
        lambda values, labels, outside: Category(
            "cell", values, "other" if len(values) < 3 else outside, other, labels
        ),
        lists,
        maps,
        st.sampled_from(["refuse", "other"]),
    )


def amount(low: int, high: int, step: str) -> Amount:
    return Amount("cell", Fraction(low), Fraction(high), Fraction(step), "refuse")


BOUNDED = st.builds(
    lambda bounds, step: amount(bounds[0], bounds[1], step),
    st.sampled_from([(0, 2), (0, 1), (1, 2)]),
    st.sampled_from(["1", "1/2"]),
)
COLUMNS = {
    "text": labelled("text"),
    "whole": labelled("whole") | st.sampled_from([amount(0, 3, "1"), amount(1, 3, "1")]),
    "number": BOUNDED,
}
KEYS: dict[str, st.SearchStrategy[Any]] = {
    "numbered": st.booleans(),
    "ranges": st.booleans(),
    "stay": st.sampled_from([0.5, 0.95]),
    "left": st.booleans(),
    "entity": st.sampled_from(["person", "row"]),
    "order": st.sampled_from(["step", "back"]),
    "public": st.sampled_from([("x", "y"), ("x",)]),
}
QUERIES = st.tuples(
    st.sampled_from(["histogram", 0, 1, 2, 3]),
    st.sampled_from([None, (0, 2), (1, 3)]),
    st.sampled_from(["0.5", "1"]),
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[str, list[tuple[Situation, tuple[Any, ...]]]]:
    """A kind of table, and situations that differ in a key or two, with a query each."""
    kind = draw(st.sampled_from(list(RAW)))
    keys = {"column": COLUMNS[kind], **KEYS}
    now = Situation(**{name: draw(values) for name, values in keys.items()})
    found = [(now, draw(QUERIES))]
    for _ in range(draw(st.integers(1, 2))):
        edited = draw(st.lists(st.sampled_from(["column", *keys]), min_size=1, max_size=2))
        now = replace(now, **{name: draw(keys[name]) for name in edited})
        found.append((now, draw(QUERIES)))
    return kind, found


NAMED = Category("cell", ("a", "b", "c"), "refuse", labels=(("v", "b"),))
USUAL = Situation(NAMED, False, False, 0.95, True)
MOVED = replace(USUAL, column=replace(NAMED, labels=(("v", "a"),)))
SUMMED = Situation(amount(0, 2, "1"), False, False, 0.95, False)
WHOLE = Situation(Category("cell", (0, 1, 2), "refuse"), False, False, 0.95, True)
TURNED = replace(WHOLE, numbered=True, column=Category("cell", (2, 0, 1), "refuse"))
COUNT, ALL = (1, None, "1"), ("histogram", None, "0.5")


@pytest.mark.costly
@settings(max_examples=8, deadline=None)
@example(history=("text", [(USUAL, COUNT), (MOVED, ALL)]))  # a raw value moves to another label
@example(history=("number", [(SUMMED, ALL), (replace(SUMMED, column=amount(0, 2, "1/2")), ALL)]))
@example(history=("number", [(SUMMED, ALL), (replace(SUMMED, column=amount(1, 2, "1")), ALL)]))
@example(
    history=(  # only the step is edited, under a prior over ranges
        "number",
        [(s := replace(SUMMED, ranges=True), ALL), (replace(s, column=amount(0, 2, "1/2")), ALL)],
    )
)
# state 0 of a prior without names is the label 2
@example(history=("whole", [(WHOLE, (2, None, "1")), (TURNED, ALL)]))
@given(history=histories())
def test_edits_between_releases_leave_every_claim_above_the_truth(
    history: tuple[str, list[tuple[Situation, tuple[Any, ...]]]],
) -> None:
    kind, situations = history
    with example_folder() as name, open_ledger(Path(name) / "a.ledger") as ledger:
        ledger.set_budget("cells", 1000)
        held = [f"p,r{k},{k},{LENGTH - 1 - k},x,{raw}" for k, raw in enumerate(HELD[kind])]
        (Path(name) / "cells.csv").write_text(
            "\n".join(["person,row,step,back,zone,cell", *held]) + "\n"
        )
        releases: list[NoisySums] = []
        for now, query in situations:
            with opened(Path(name), ledger, now, kind) as session:
                try:
                    made = released(session, now, kind, query)
                except UnsoundRequest:  # an epsilon that nothing allows, say
                    continue
                claimed = session.spent()
            releases += [] if made is None else [made]
            start, step = now.law
            for raw in now.raw_of_states(kind):
                truth = leakage(sequences(now), start, step, raw, releases)
                assert truth <= claimed + 1e-9, (now, claimed, releases)
        assert ledger.verify().sound
