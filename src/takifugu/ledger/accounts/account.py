"""How much every entry has lost: totals by public group and stretch of time.

An account holds the losses of one dataset, or of one analyst's share of it. Time is cut into
segments wherever a window began or ended; within a segment each public group is a cell, and

    total(cell) = always + base(segment) + own(cell),

where `always` are releases that read everything, `base` those that read all groups in a window,
and `own` those that read the group. Releases on different cells read disjoint entries, so that
each entry's loss is the total of its own cell (parallel composition of per-entry DP; which entry
lies where is public). Totals never shrink: the worst is carried along instead of searched for.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from takifugu.errors import InvalidCharge
from takifugu.ledger.accounts.frontier import ZERO, Frontier, add, joined, worst
from takifugu.ledger.entries_read import BEGINNING, END, cell_names
from takifugu.ledger.storage.digest_tree import EMPTY, Tree
from takifugu.losses import Loss, Total


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

    def everywhere(self) -> None:
        """Count on every entry what the worst of them has lost, in every currency."""
        self.always = Total(
            max(total.epsilon for total in self.worst),
            max(total.delta for total in self.worst),
            max(total.rho for total in self.worst),
        )
        self.worst = (self.always,)
        self.segments = [Segment(BEGINNING, END)]

    def on(self, touch: Touch) -> Frontier:
        """The worst total of the cells of ``touch``, as they stand."""
        if touch.everything:
            return self.worst
        found: list[Total] = []
        first = bisect_right(self.segments, touch.start, key=_start) - 1
        last = bisect_left(self.segments, touch.end, key=_start)
        for segment in self.segments[first:last]:
            own: Iterable[Total] = segment.peak
            if touch.cells is not None:
                own = [segment.own.get(cell, ZERO) for cell in touch.cells]
            found += self.totals(segment, own)
        return worst(found)

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


def _start(segment: Segment) -> int:
    return segment.start
