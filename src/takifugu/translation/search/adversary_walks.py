"""Grids for the walks of `takifugu.translation.certify.terminals`, and the pairs that need them.

Every pair of values gets a coarse grid on both sides of an entry. The pair with the largest bound
gets a finer one, where its bound is attained, and so on until the largest is a settled one. Nothing
here needs to be believed: every grid proves a bound.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.translation.certify.stars import added
from takifugu.translation.certify.terminals import LARGEST_POINT, TerminalSide

SPREAD_POINTS = 7  # over the ratios that the far end can have
MULTIPLES = (0.125, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 24.0, 48.0, 96.0)
WIDEST_RATIO = 30.0  # of the far end, in logarithms, that is looked at
COARSE = 2e-2  # share of a cost by which all further entries may lose more, in a first look
CLOSE = 1e-8  # and in a settled one, as a share of the loss
SETTLED = 5e-9  # a smaller relative gain of a finer grid counts as none
MAX_REFINEMENT_ROUNDS = 30
MAX_CELLS = 16  # that are split in a round
MAX_ENTRY_WORK = 1e8  # the same, up to which entries that are not the worst are settled
MAX_SETTLED_WORK = 2e10  # of points × entries × states²: ten seconds or so


class SideGrids:
    """The grids of many pairs on one side, and what they prove.

    Attributes:
        upper: ``[pair, n]``: at least the loss of a side of n entries; the last one holds for all
            further ones.
    """

    def __init__(self, side: TerminalSide, pairs: Integers) -> None:
        self.side, self.pairs = side, pairs
        self._dear = max(float(side.star.dearest), 1e-12)
        self._points = [self._first(x, y) for x, y in pairs.tolist()]
        self.work = 0.0
        self.upper, self.cells = self._walk(np.arange(len(pairs)), COARSE * self._dear)

    def _ratios(self, x: int, y: int) -> tuple[float, float]:
        """The logarithms of the least and the largest ratio that the far end can have."""
        side = self.side
        if side.stochastic and not side.known:
            return 0.0, 0.0
        one, other = side.kernel[x], side.kernel[y]
        both = (one > 0) & (other > 0)
        ratio = np.log(other[both]) - np.log(one[both])
        low = float(ratio.min(initial=0.0)) if both[one > 0].all() else -WIDEST_RATIO
        high = float(ratio.max(initial=0.0)) if both[other > 0].all() else WIDEST_RATIO
        return max(low, -WIDEST_RATIO), min(high, WIDEST_RATIO)

    def _first(self, x: int, y: int) -> Floats:
        """The first grid of a pair."""
        side = self.side
        low, high = self._ratios(x, y)
        most = min(self._dear * side.steps, LARGEST_POINT / 2)
        above = [self._dear * m for m in MULTIPLES if self._dear * m < most]
        parts = [np.array([0.0, *above, most]) + 1e-9]
        if high - low > self._dear:
            parts.append(np.linspace(-high, -low, SPREAD_POINTS))
            parts.append(np.array([*above, most]) - low)
            parts.append(np.array([-2 * self._dear, -0.5 * self._dear, -0.1 * self._dear]))
        else:
            parts.append(np.array([-high, -low, *(np.array(above) - low), -0.5 * self._dear]))
        points: Floats = np.unique(np.concatenate(parts).round(14))
        return points

    def _walk(self, rows: Integers, close: float) -> tuple[Floats, Integers]:
        widest = max((len(self._points[row]) for row in rows), default=0)
        grid = np.full((len(rows), widest), np.nan)
        for place, row in enumerate(rows.tolist()):
            grid[place, : len(self._points[row])] = self._points[row]
        upper, cells, walked = self.side.upper(self.pairs[rows], grid, close=close)
        self.work += float(walked.sum()) * widest * len(self.side.kernel) ** 2
        return upper, cells

    def refine(self, row: int, wanted: Integers) -> float:
        """Split the cells in which the bounds of ``wanted`` [n] are attained; the largest gain."""
        wanted = np.minimum(wanted, self.side.steps)
        before = self.upper[row, wanted].copy()
        ranked = wanted[np.argsort(-before, kind="stable")]
        cells = list(dict.fromkeys(self.cells[row, ranked].tolist()))[:MAX_CELLS]
        if self.side.law is None:  # near the worst law the bound is flat: split the neighbours too
            cells = list(dict.fromkeys(cell + d for cell in cells for d in (0, -1, 1)))
        points = self._points[row]
        fresh: list[float] = []
        for cell in cells:
            if not 0 <= cell <= len(points):
                continue
            low = points[cell - 1] if cell > 0 else points[0] - 8 * self._dear
            high = points[cell] if cell < len(points) else points[-1] + 8 * self._dear
            if high - low > 1e-12:
                fresh += [low + (high - low) * share for share in (0.25, 0.5, 0.75)]
        self._points[row] = np.unique(np.append(points, fresh))
        rows = np.array([row])
        close = CLOSE * max(float(before.max()), 0.0)
        upper, self.cells[rows] = self._walk(rows, close)
        self.upper[rows] = np.minimum(self.upper[rows], upper)
        after = self.upper[row, wanted]
        with np.errstate(invalid="ignore"):
            gain = np.where(after < before, before - after, 0.0)
        return float(gain.max(initial=0.0))

    def worst_law(self, row: int, n: int) -> Floats:
        """A law of the first entry, n before, under which the pair loses about the most."""
        side = self.side
        kernel, (x, y) = side.kernel, self.pairs[row].tolist()
        high, low = np.exp(side.star.up), np.exp(-side.star.down)
        tau = np.exp(self._points[row])
        e = kernel[x] - tau[:, None] * kernel[y]  # [τ, u]
        one, other = kernel[x], kernel[y]
        for step in range(n):
            gained = np.where(e > 0, e * high, e * low)
            if step < n - 1:
                e = gained @ kernel
                e = e / np.abs(e).max(axis=1, keepdims=True)
                one, other = one @ kernel, other @ kernel
                one, other = one / max(one.max(), other.max()), other / max(one.max(), other.max())
        plus, minus = np.maximum(gained, 0.0), np.maximum(-gained, 0.0)
        above = minus[:, None, :] * other[:, None] + plus[:, :, None] * other  # [τ, p, q]
        below = minus[:, None, :] * one[:, None] + plus[:, :, None] * one
        mixed = (gained[:, :, None] > 0) & (gained[:, None, :] < 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = np.where(mixed, tau[:, None, None] * above / below, -np.inf)
            alone = np.where(gained >= 0, tau[:, None] * other / one, -np.inf)
        places = np.arange(len(one))
        loss[:, places, places] = alone
        loss = np.where(np.isfinite(loss), loss, -np.inf)
        at, p, q = (int(v) for v in np.unravel_index(int(np.argmax(loss)), loss.shape))
        law = np.zeros(len(one))
        law[q], law[p] = gained[at, p], -gained[at, q]
        if p == q:
            law[p] = 1.0
        return np.asarray(law / law.sum())


@dataclass(eq=False)
class SettledSides:
    """Both sides of an entry, and what each pair of values loses through them.

    Attributes:
        after: The entries after it.
        before: Those before it.
        cost: ``[x, y]``: what a change of the entry costs.
        pairs: The pairs that are asked about.
    """

    after: TerminalSide
    before: TerminalSide
    cost: Floats
    pairs: Integers

    @property
    def usable(self) -> bool:
        """Whether numbers stay in range."""
        return self.after.usable and self.before.usable

    @cached_property
    def grids(self) -> list[SideGrids]:
        """Those of the sides after and before."""
        return [SideGrids(self.after, self.pairs), SideGrids(self.before, self.pairs)]

    def losses(
        self,
        length: int | None,
        secret: Booleans | None = None,
        known: Floats | None = None,
    ) -> Floats:
        """``[pair, entry]``: at least what each pair loses; the worst are settled.

        Without a ``length`` there is one column, for every entry of a chain of any length. Only
        ``secret`` entries count for which pair is the worst. ``known`` [entry, x, y] are bounds
        that hold anyhow.
        """
        ceiling = np.inf if known is None else known[:, self.pairs[:, 0], self.pairs[:, 1]].T
        own = self.cost[tuple(self.pairs.T)]
        grids = self.grids
        ahead = np.zeros(1) if length is None else length - 1 - np.arange(length)
        counts = [np.asarray(part, dtype=np.int64) for part in (ahead, ahead[::-1])]

        def total_of(row: int | slice) -> Floats:
            """``[…, entry]``: the cost of the entry itself, and both sides."""
            if length is None:
                sides = [grid.upper[row].max(axis=-1, keepdims=True) for grid in grids]
            else:
                sides = [
                    grid.upper[row][..., np.minimum(count, grid.side.steps)]
                    for grid, count in zip(grids, counts, strict=True)
                ]
            return added(own[row, None], *sides)

        total = np.minimum(total_of(slice(None)), ceiling)
        unsettled = np.ones(total.shape[1], dtype=np.bool_) if secret is None else secret.copy()
        settled = np.zeros(total.shape, dtype=np.bool_)
        most = MAX_SETTLED_WORK
        while unsettled.any() and sum(grid.work for grid in grids) < most:
            worst = np.argmax(total, axis=0)  # [entry]
            largest = np.where(unsettled, total[worst, np.arange(len(worst))], -np.inf)
            top = int(np.argmax(largest))
            row = int(worst[top])
            if settled[row, top]:  # the other entries are settled as far as that is quick
                most = MAX_ENTRY_WORK
            unsettled &= ~settled[worst, np.arange(len(worst))] & (largest > 0)
            here = np.flatnonzero(unsettled & (worst == row))
            if most == MAX_SETTLED_WORK:
                here = np.array([top])
            if not len(here):
                continue
            for _ in range(MAX_REFINEMENT_ROUNDS):
                if length is None:
                    wanted = [np.array([int(np.argmax(grid.upper[row]))]) for grid in grids]
                else:
                    wanted = [np.unique(count[here]) for count in counts]
                gain = sum(grid.refine(row, n) for grid, n in zip(grids, wanted, strict=True))
                total[row] = np.minimum(total[row], total_of(row))
                if gain <= SETTLED * total[row, here].max():
                    break
            settled[row, here] = True
        return total

    def worst_start(self, length: int | None, entry: int | None) -> tuple[int, Floats] | None:
        """An entry, and a law of the first one that makes the only pair lose about the most there.

        None if the law of the first entry is known, or if nothing lies before.
        """
        if self.before.law is not None:
            return None
        total = self.losses(length)
        behind = self.grids[1].upper[0]
        if entry is None:
            entry = int(np.argmax(behind if length is None else total[0]))
        if not 0 < entry <= self.before.steps:
            return None
        return entry, self.grids[1].worst_law(0, entry)


def pair_table(
    sides: SettledSides, length: int | None, secret: Booleans | None, known: Floats | None = None
) -> Floats:
    """``[entry, x, y]``: the bound of every pair that is asked about; ``known`` for others."""
    losses = sides.losses(length, secret, known)
    shape = losses.shape[1], *sides.cost.shape
    table = np.full(shape, np.inf) if known is None else known.copy()
    table[:, sides.pairs[:, 0], sides.pairs[:, 1]] = losses.T
    return table
