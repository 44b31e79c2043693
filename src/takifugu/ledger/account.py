"""How much every entry has lost: totals by public group and stretch of time.

An account holds the losses of one dataset, or of one analyst's share of it. Time is cut into
segments wherever a window began or ended; within a segment each public group is a cell, and

    total(cell) = always + base(segment) + own(cell),

where `always` are releases that read everything, `base` those that read all groups in a window,
and `own` those that read the group. Releases on different cells read disjoint entries, so that
each entry's loss is the total of its own cell (parallel composition of per-entry DP; which entry
lies where is public). Totals never shrink: the worst is carried along instead of searched for.

A `Book` is an account with its budget; `Books` are all of them, by replay of the events.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from takifugu.costs.losses import Loss, Total
from takifugu.errors import InvalidCharge, LedgerDamaged
from takifugu.ledger.charge_values import BEGINNING, END, cell_names, cost_of, loss_of
from takifugu.ledger.events.event_chain import KINDS
from takifugu.ledger.frontier import (
    ZERO,
    Frontier,
    add,
    covering,
    joined,
    regardless_of_values,
    worst,
)
from takifugu.ledger.storage.digest_tree import EMPTY, Tree

# What becomes of costs by value when cells are named anew: they stay, where values keep their
# names; they count as their largest entry; or as the sum of these, if they have several meanings.
BY_VALUE, AS_SCALARS, AS_SUMS = "by value", "scalars", "sums"


@dataclass(frozen=True)
class Touch:
    """The cells that a release reads: a stretch of time, and groups in it (None: all groups)."""

    start: int = BEGINNING
    end: int = END
    cells: tuple[str, ...] | None = None

    @property
    def everything(self) -> bool:
        """Whether no entry is left out."""
        return self.cells is None and self.start == BEGINNING and self.end == END


@dataclass(eq=False)
class Segment:
    """A stretch of time in which every cell has one total.

    Attributes:
        own: What each group lost by releases on groups; from storage, only those that were read.
        peak: The worst of all groups' own totals, and of a group never named.
        cut_from: Where the stored segment begins from which this one was cut and not yet written.
        root: The digest of all its groups' own totals, as stored.
        tree: The digests that it is the root of, once they were read.
    """

    start: int
    end: int
    base: Total = ZERO
    peak: Frontier = (ZERO,)
    own: dict[str, Total] = field(default_factory=dict)
    cut_from: int | None = None
    root: str = EMPTY
    tree: Tree | None = None


@dataclass
class Shape:
    """What distinguishes a dataset's entries: the unit of its windows, the columns of its groups.

    Both are fixed by their first use and never change: cells of two shapes could overlap unseen.
    """

    unit: str | None = None
    partition: tuple[str, ...] | None = None

    def touch(self, window: Mapping[str, Any] | None, groups: Mapping[str, Any] | None) -> Touch:
        """The cells that a charge reads, from the window and groups of its event."""
        start, end, cells = BEGINNING, END, None
        if window is not None:
            if self.unit is None:
                self.unit = window["unit"]
            if self.unit != window["unit"]:
                raise InvalidCharge(
                    "window",
                    given=f"is in {window['unit']}s",
                    needed=f"be in {self.unit}s, as the earlier windows of this dataset",
                    reason="unit",
                )
            start = BEGINNING if window["start"] is None else window["start"]
            end = END if window["end"] is None else window["end"]
        if groups is not None:
            if self.partition is None:
                self.partition = tuple(sorted(groups["columns"]))
            cells = cell_names(groups["columns"], groups["keys"], self.partition)
        return Touch(start, end, cells)


@dataclass(eq=False)
class Account:
    """The totals of one dataset or of one analyst on it. ``segments`` are in order of time."""

    always: Total = ZERO
    worst: Frontier = (ZERO,)
    segments: list[Segment] = field(default_factory=lambda: [Segment(BEGINNING, END)])

    def apply(self, touch: Touch, loss: Loss) -> list[Segment]:
        """Add ``loss`` to every cell of ``touch``; the segments that changed, new ones included."""
        if touch.everything:
            self.always = add(self.always, loss)
            self.worst = worst(add(total, loss) for total in self.worst)
            return []
        changed = self._cut(touch.start) + self._cut(touch.end)
        for segment in self._within(touch):
            if touch.cells is None:
                segment.base = add(segment.base, loss)
            else:
                for cell in touch.cells:
                    segment.own[cell] = add(segment.own.get(cell, ZERO), loss)
                reached = (segment.own[cell] for cell in touch.cells)
                segment.peak = worst((*segment.peak, *reached))
            changed.append(segment)
            self.worst = worst((*self.worst, *self.totals(segment, segment.peak)))
        return list({id(segment): segment for segment in changed}.values())

    def everywhere(self, costs: str = BY_VALUE) -> None:
        """Count on every entry what the worst of them has lost, in every currency."""
        self.always = on_every_entry(self.worst, costs)
        self.worst = (self.always,)
        self.segments = [Segment(BEGINNING, END)]

    def on(self, touch: Touch) -> Frontier:
        """The worst total of the cells of ``touch``, as they stand."""
        if touch.everything:
            return self.worst
        totals: list[Total] = []
        first = bisect_right(self.segments, touch.start, key=_start) - 1
        last = bisect_left(self.segments, touch.end, key=_start)
        for segment in self.segments[first:last]:
            own: Iterable[Total] = segment.peak
            if touch.cells is not None:
                own = [segment.own.get(cell, ZERO) for cell in touch.cells]
            totals += self.totals(segment, own)
        return worst(totals)

    def totals(self, segment: Segment, own: Iterable[Total]) -> Frontier:
        """The totals in ``segment`` of cells that lost ``own`` by releases on groups."""
        ground = joined(self.always, segment.base)
        return tuple(joined(ground, total) for total in own)

    def _within(self, touch: Touch) -> list[Segment]:
        first = bisect_left(self.segments, touch.start, key=_start)
        return self.segments[first : bisect_left(self.segments, touch.end, key=_start)]

    def _cut(self, moment: int) -> list[Segment]:
        """Make ``moment`` a boundary; the two halves if there was none."""
        place = bisect_right(self.segments, moment, key=_start) - 1
        old = self.segments[place]
        if not old.start < moment < old.end:
            return []
        origin = old.start if old.cut_from is None else old.cut_from
        new = Segment(moment, old.end, old.base, old.peak, dict(old.own), origin, old.root)
        old.end = moment
        self.segments.insert(place + 1, new)
        return [old, new]


def on_every_entry(totals: Frontier, costs: str) -> Total:
    """What every entry counts as having lost once cells are named anew; ``costs`` says how."""
    if costs == BY_VALUE:
        return covering(totals)
    return regardless_of_values(totals, renamed_before=costs == AS_SUMS)


def _start(segment: Segment) -> int:
    return segment.start


WHOLE = ""  # the analyst of the account that everybody's charges are added to


@dataclass(eq=False)
class Book:
    """One account with its budget. ``id`` is 0 until it is stored.

    ``lost``, of a whole dataset: what any analyst may have learnt in a part of the history that was
    lost; accounts of analysts begin with it.
    """

    dataset: str
    analyst: str
    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    shape: Shape = field(default_factory=Shape)  # of the whole dataset; analysts use that one
    account: Account = field(default_factory=Account)
    id: int = 0
    lost: Total | None = None

    def for_analyst(self, analyst: str) -> "Book":
        """A new account of ``analyst`` on this dataset."""
        if self.lost is None:
            return Book(self.dataset, analyst)
        return Book(self.dataset, analyst, account=flat(self.lost))

    def everywhere(self, costs: str = BY_VALUE) -> None:
        """Count all that was lost on every row; cells may then get new names."""
        self.account.everywhere(costs)
        self.shape.unit = self.shape.partition = None


class Books:
    """All accounts, by replay of the events."""

    def __init__(self) -> None:
        self.books: dict[tuple[str, str], Book] = {}

    def book(self, dataset: str, analyst: str) -> Book:
        """The account of ``analyst`` on ``dataset``; opened if there is none."""
        book = self.books.get((dataset, analyst))
        if book is None:
            whole = self.books.get((dataset, WHOLE)) or Book(dataset, WHOLE)
            book = self.books[dataset, analyst] = whole.for_analyst(analyst)
        return book

    def apply(self, body: Mapping[str, Any]) -> None:
        """Take one more event into account."""
        match body["kind"]:
            case "budget":
                book = self.book(body["dataset"], body["analyst"] or WHOLE)
                book.epsilon, book.delta = Fraction(body["epsilon"]), Fraction(body["delta"])
            case "partition":
                self.book(body["dataset"], WHOLE).shape.partition = tuple(body["columns"])
            case "charge" | "reuse":
                shape = self.book(body["dataset"], WHOLE).shape
                touch = shape.touch(body["window"], body["groups"])
                for analyst in charged(body):
                    account = self.book(body["dataset"], analyst).account
                    account.apply(touch, loss_of(body["loss"]))
            case "loss":
                for lost in body["accounts"]:
                    book = self.book(lost["dataset"], lost["analyst"] or WHOLE)
                    total = Total(
                        Fraction(lost["epsilon"]),
                        Fraction(lost["delta"]),
                        Fraction(lost["rho"]),
                        cost_of(lost.get("costs", [])),
                    )
                    book.account = flat(total)
                    if book.analyst == WHOLE:
                        book.lost = total
            case "cells":
                if body["how"] == "everywhere":
                    for (dataset, _), book in self.books.items():
                        if dataset == body["dataset"]:
                            book.everywhere(body.get("costs", BY_VALUE))
            case kind if kind not in KINDS:
                raise LedgerDamaged(f"unknown kind of event {kind!r}", reason="unknown kind")


def flat(total: Total) -> Account:
    """An account in which every entry has lost ``total``."""
    return Account(always=total, worst=(total,))


def charged(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Whose accounts a charge or reuse is added to. What was released before costs the whole 0."""
    whole = () if body["kind"] == "reuse" else (WHOLE,)
    return whole if body["analyst"] is None else (*whole, body["analyst"])


def contents(book: Book) -> dict[str, Any]:
    """The contents of an account, to compare two of them by."""
    account = book.account
    return {
        "budget": (book.epsilon, book.delta),
        "shape": (book.shape.unit, book.shape.partition),
        "totals": (account.always, account.worst, book.lost),
        "segments": [(s.start, s.end, s.base, s.peak, s.own) for s in account.segments],
    }
