r"""One side of a chain against adversaries who know more, solved for costs in the shape of a star.

Let the cost of every entry be a star, :math:`c(u,v) = \mathrm{up}(u) + \mathrm{down}(v)`
(`takifugu.translation.chain.stars`), and let K be the kernel of a side: P for the entries after i,
the transpose of P for those before. For a pair (x, y) and τ > 0 carry

.. math:: e_1 = K(x,·) − τ\,K(y,·), \qquad e_{n+1} = G(e_n) K,\qquad
          G(e)(u) = e(u)\cdot\big(e^{\mathrm{up}(u)} \text{ if } e(u) > 0
                    \text{ else } e^{-\mathrm{down}(u)}\big).

By the theorem of `takifugu.translation.chain.coalescing`, applied to the law of the side that an
adversary holds (whose factors cancel in the signs), the loss of the side is at most log t if and
only if

* nothing is known, n entries after i: :math:`\sum_u G(e_n)(u) \le 0` at τ = t;
* the entry at distance d is known to be b: :math:`e_d(b) \le 0` at
  :math:`τ = t\,K^d(x,b)/K^d(y,b)`, on either side;
* the first entry, n before i, has the law μ: :math:`\langle μ, G(e_n)\rangle \le 0` at
  :math:`τ = t\,\langle K^n(x), μ\rangle / \langle K^n(y), μ\rangle`.

So one walk for a τ serves all of them. e falls as τ rises, since G and K are monotone. Hence on a
grid of τ each loss lies between the last point with a positive sum and the next one.

**Unknown start.** The largest loss over all μ is the largest, over τ, of τ times the largest
:math:`λ = \langle K^n(y), μ\rangle / \langle K^n(x), μ\rangle` among the laws μ with
:math:`\langle μ, G(e_n)\rangle \ge 0`: laws on two states are enough. Between two points of the
grid it is at most the larger τ times the λ of the smaller. This is exact, where a recursion that
takes the worst law at each step anew is not.

**All further entries.** If :math:`e_n \le 0` everywhere then so is every later one. So from n on
log t is at most log τ plus the largest logarithm of :math:`K^m(y,b)/K^m(x,b)`, m ≥ n, which falls
as m grows: rows of P^{m+1} are mixtures of those of P^m.

**Rounding.** Every e is an upper bound: what a step may be off by is added to it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from takifugu._rounding import UNIT
from takifugu.numeric import Booleans, Floats, Integers, distinct
from takifugu.translation.chain.stars import Star

SHORTEST, LONGEST = 24, 600  # entries that are walked
GRID = 24  # points of τ to begin with
SPLIT = 4  # pieces of an interval that is looked at more closely
MOST_POINTS = 3_000  # of τ
ROUNDS = 9  # of looking closer
NARROW = 1e-6  # the largest log K^n(y,b)/K^n(x,b), beside its limit, at which a walk ends
CHEAPEST, DEAREST = 1e-3, 100.0  # a smaller or greater cost is left to other bounds
FAINTEST = 1e-150  # and so is a smaller positive probability
LOST = 1e-280  # beside 1, at which underflow might hide that something is positive
NEVER = -np.inf


@dataclass(frozen=True, eq=False)
class StarWalk:
    """A side with one kernel and one cost.

    Attributes:
        kernel: ``[x, u]``: K.
        star: The cost of each entry, or one above it.
        steps: How many entries are walked; those further away are bounded together.
        whole: Whether there are no more.
        known: Whether an entry may be known.
        start: How the other end is weighed: ones after i; a law of the first entry; None for all.
        steady: Whether that law stays the same from entry to entry.
        slack: What the rounding of that law can do to a log-ratio.
    """

    kernel: Floats
    star: Star
    steps: int
    whole: bool
    known: bool
    start: Floats | None
    steady: bool = False
    slack: float = 0.0

    @cached_property
    def usable(self) -> bool:
        """Whether numbers stay in range."""
        rows = self.kernel[self.kernel > 0]
        dear = float(max(np.abs(self.star.up).max(), np.abs(self.star.down).max()))
        clear = self.start is not None or bool((self.kernel > 0).all())
        inside = CHEAPEST < dear < DEAREST  # a small loss needs too fine a grid
        if not clear or not inside or float(rows.min()) < FAINTEST or self.steps == 0:
            return False
        return not bool(np.isnan(self.powers).any())

    @classmethod
    def of(
        cls,
        kernel: Floats,
        star: Star,
        length: int | None,
        *,
        known: bool,
        start: Floats | None,
        steady: bool = False,
        slack: float = 0.0,
    ) -> "StarWalk":
        """A side with ``length`` entries, or without end: walked until those left are alike."""
        most = LONGEST if length is None else min(length, LONGEST)
        power, steps = kernel, min(1, most)
        while steps < most:
            if (power > 0).all():
                logs = np.log(power)
                apart = logs - logs[:1]
                if steps >= SHORTEST and float(np.ptp(apart, axis=1).max()) <= NARROW:
                    break
            power, steps = power @ kernel, steps + 1
            power = power / power.max()
        whole = steps == length
        return cls(kernel, star, steps, whole, known, start, steady, slack)

    @cached_property
    def powers(self) -> Floats:
        """``[n, x, u]``: the logarithm of K^n, from n = 1; −∞ for 0, NaN for what is too small."""
        found, power = [], self.kernel
        able = power > 0
        for _ in range(self.steps):
            with np.errstate(divide="ignore"):
                logs = np.where(power < LOST, np.nan, np.log(power))
            found.append(np.where(able, logs, NEVER))
            able = (able.astype(np.float64) @ (self.kernel > 0).astype(np.float64)) > 0
            power = power @ self.kernel
        return np.array(found)

    def search(self, x: int, y: int, cap: float) -> "SideSearch":
        """The losses of one pair; ``cap`` is at least all of them."""
        return SideSearch(self, x, y, cap)


class SideSearch:
    """The losses of one pair on a grid of τ.

    Attributes:
        points: ``[τ]``: log τ, rising.
        signs: ``[n, τ, b]``: whether e is positive, or may be.
        sums: ``[n, τ]``: whether the sum of the law of the first entry is, or may be.
        best: ``[n, τ]``: the largest log λ of a law μ with ⟨μ, G(e)⟩ ≥ 0; −∞ if there is none.
        some: ``[n, τ]``: whether e is positive anywhere, or may be.
    """

    def __init__(self, walk: StarWalk, x: int, y: int, cap: float) -> None:
        self._walk, self._x, self._y, self._cap = walk, x, y, cap
        logs = walk.powers
        with np.errstate(invalid="ignore"):
            ratio = logs[:, y] - logs[:, x]  # [n, b]
        both = np.isfinite(logs[:, y]) & np.isfinite(logs[:, x])
        self._ratio = np.where(both, ratio, np.nan)
        wide = np.abs(self._ratio if walk.start is None else self._ratio[1:])
        most = 0.0
        if walk.known or walk.start is None:
            most = float(wide[~np.isnan(wide)].max(initial=0.0))
        if walk.start is not None:
            one, other = (np.exp(logs[:, v]) @ walk.start for v in (x, y))
            self._never = one == 0
            with np.errstate(divide="ignore", invalid="ignore"):
                shift = np.log(other) - np.log(one)
            self._shift = np.where(np.isfinite(shift), shift, 0.0)
            most = max(most, float(np.abs(self._shift).max()))
        self.points = np.linspace(-most - 1e-9, cap + most + 1e-9, GRID)
        self.signs, self.sums, self.best, self.some = self._evaluate(self.points)

    @property
    def steps(self) -> int:
        """How many entries are walked."""
        return self._walk.steps

    def _walked(self, points: Floats, steps: int) -> Iterator[tuple[Floats, Floats]]:
        """``[τ, b]``: e and G(e) of each step, rounded up and scaled."""
        kernel, star = self._walk.kernel, self._walk.star
        error = 4 * (kernel.shape[1] + 16) * UNIT
        high, low = np.exp(star.up) * (1 + 8 * UNIT), np.exp(-star.down) * (1 - 8 * UNIT)
        able = (kernel[self._x] > 0) | (kernel[self._y] > 0)
        leads = (kernel > 0).astype(np.float64)
        tau = np.exp(points)[:, None]
        e = kernel[self._x] * (1 + error) - tau * kernel[self._y] * (1 - error)
        for _ in range(steps):
            scale = np.abs(e).max(axis=1, keepdims=True)
            e = e / np.where(scale > 0, scale, 1.0)
            e = np.where((np.abs(e) < LOST) & able, LOST, e)  # underflow may have hidden it
            after = np.where(e > 0, e * high, e * low)
            yield e, after
            e = after @ kernel + error * (np.abs(after) @ kernel)
            able = (able.astype(np.float64) @ leads) > 0

    def _evaluate(self, points: Floats) -> tuple[Booleans, Booleans, Floats, Booleans]:
        walk = self._walk
        size = walk.kernel.shape[1]
        signs, sums, best, some = [], [], [], []
        for n, (e, after) in enumerate(self._walked(points, walk.steps)):
            signs.append(e > 0)
            some.append(after.max(axis=1) > 0)
            if walk.start is None:
                best.append(self._freest(after, n))
                sums.append(some[-1])
            else:
                margin = 4 * (size + 4) * UNIT * (np.abs(after) @ walk.start)
                sums.append(after @ walk.start + margin > 0)
                best.append(np.full(len(points), NEVER))
        return np.array(signs), np.array(sums), np.array(best), np.array(some)

    def split(self, cells: Integers) -> None:
        """Look at some intervals of the grid more closely."""
        share = np.arange(1, SPLIT) / SPLIT
        low, high = self.points[cells], self.points[cells + 1]
        fresh = (low[:, None] + (high - low)[:, None] * share).ravel()
        parts = self._evaluate(fresh)
        order = np.argsort(np.concatenate([self.points, fresh]), kind="stable")
        self.points = np.concatenate([self.points, fresh])[order]
        known = self.signs, self.sums, self.best, self.some
        self.signs, self.sums, self.best, self.some = (
            np.concatenate([old, new], axis=1)[:, order]
            for old, new in zip(known, parts, strict=True)
        )

    def losses(self, close: float, near: Booleans | None = None) -> Floats:
        """``[n]``: at least the loss of the side of each number of entries, from 0 to ``steps``.

        The last one holds for all further ones too, if there are any. The search ends ``close`` to
        what is attained, for numbers of entries which are ``near`` [n]; by default for all.
        """
        wanted = np.ones(self._walk.steps, dtype=np.bool_) if near is None else near[1:]
        for _ in range(ROUNDS):
            cells = self.bounds(close, wanted)[1]
            if not len(cells) or len(self.points) + SPLIT * len(cells) > MOST_POINTS:
                break
            self.split(cells)
        upper = self.bounds(close, wanted)[0]
        capped: Floats = np.minimum(np.concatenate([[0.0], upper]), self._cap)
        return capped

    def worst_start(self, n: int) -> Floats | None:
        """A law of the first entry, n before, that loses about the most; None if there is none."""
        place = int(np.argmax(self.best[n - 1] + self.points))
        return self.law(place, n) if np.isfinite(self.best[n - 1, place]) else None

    def bounds(self, close: float, near: Booleans) -> tuple[Floats, Integers]:
        """``[n]``: upper bounds; and the intervals that may be worth a closer look."""
        walk, points, last = self._walk, self.points, len(self.points) - 1
        parts: list[tuple[Floats, Floats, Integers]] = []  # upper, lower, interval: [n, …]
        if walk.known and walk.steps > 1:
            shift = self._ratio.copy()
            shift[0] = np.nan  # next to the entry: nothing lies between
            parts.append(self._between(self.signs, shift))
        if walk.start is not None:
            shift = np.where(self._never, np.nan, self._shift)
            parts.append(self._between(self.sums[:, :, None], shift[:, None]))
        else:
            ends = np.append(points[1:], np.inf)
            free = np.isfinite(self.best)
            upper = np.where(free, np.where(free, self.best, 0.0) + ends, NEVER)
            place = np.broadcast_to(np.arange(len(points)), upper.shape)
            parts.append((np.minimum(upper, self._cap), self.best + points, place))
        top, lower = np.zeros(walk.steps), np.zeros(walk.steps)
        for upper, below, _ in parts:
            top = np.maximum(top, upper.max(axis=1))
            lower = np.maximum(lower, np.minimum(below, self._cap).max(axis=1))
        if walk.known:
            lower = np.maximum.accumulate(lower)
        wanted = [
            place[near[:, None] & (upper > lower[:, None] + close) & (place >= 0) & (place < last)]
            for upper, _, place in parts
        ]
        if not walk.whole:
            first = int(self.some[-1].sum())  # τ at which e is nowhere positive: no later one is
            tail = min(float(points[first]) + self._latest, self._cap) if first <= last else np.inf
            top[-1] = max(float(top[-1]), min(tail, self._cap))
            if near[-1] and 0 < first <= last and tail > float(lower[-1]) + close:
                wanted.append(np.array([first - 1]))
        steps = np.arange(1, walk.steps + 1)
        slack = 64 * (walk.kernel.shape[1] + 4) * (steps + 2) * UNIT + walk.slack
        top = np.where(top > 0, top + slack, top)
        if walk.known:
            top = np.maximum.accumulate(top)
        cells = distinct(np.concatenate(wanted)) if wanted else np.zeros(0, dtype=np.int64)
        return top, cells[np.diff(points)[cells] > 0.25 * close]

    def _between(self, positive: Booleans, shift: Floats) -> tuple[Floats, Floats, Integers]:
        """Both bounds of log τ + shift where a sum changes its sign, and the interval."""
        points, last = self.points, len(self.points) - 1
        above = positive.sum(axis=1)  # the first point at which it is not positive
        upper = np.where(above <= last, points[np.minimum(above, last)] + shift, self._cap)
        below = np.where(above > 0, points[np.maximum(above - 1, 0)] + shift, NEVER)
        never = np.isnan(shift)
        upper, below = (np.where(never, NEVER, part) for part in (upper, below))
        return np.minimum(upper, self._cap), below, above - 1

    @property
    def _latest(self) -> float:
        """At least log λ of every adversary whose other end is further away than was walked."""
        if self._walk.steady and not self._walk.known:
            return float(self._shift[-1])
        ratio = self._ratio[-1]
        return float(ratio.max()) if np.isfinite(ratio).all() else np.inf

    def _freest(self, after: Floats, n: int) -> Floats:
        """``[τ]``: the largest log λ of a law μ with ⟨μ, G(e)⟩ ≥ 0; −∞ if there is none."""
        best: Floats = self._mixtures(after, n).max(axis=(1, 2))
        return best

    def _mixtures(self, after: Floats, n: int) -> Floats:
        """``[τ, p, q]``: log λ of the law on p and q with ⟨μ, G(e)⟩ = 0; of p alone if p = q."""
        logs = self._walk.powers[n]
        top = float(logs[[self._x, self._y]].max())
        one, other = (np.exp(logs[v] - top) for v in (self._x, self._y))
        plus, minus = np.maximum(after, 0.0), np.maximum(-after, 0.0)
        upper = minus[:, None, :] * other[:, None] + plus[:, :, None] * other
        lower = minus[:, None, :] * one[:, None] + plus[:, :, None] * one
        mixed = (after[:, :, None] > 0) & (after[:, None, :] < 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(mixed, np.log(upper) - np.log(lower), NEVER)
            alone = np.where(after >= 0, np.log(other) - np.log(one), NEVER)
        places = np.arange(len(one))
        found[:, places, places] = alone
        return found

    def law(self, place: int, n: int) -> Floats:
        """The law μ that attains the largest λ at a point of the grid."""
        *_, (_, after) = self._walked(self.points[[place]], n)
        table = self._mixtures(after, n - 1)[0]
        p, q = (int(v) for v in np.unravel_index(int(np.argmax(table)), table.shape))
        found = np.zeros(len(table))
        if p == q:
            found[p] = 1.0
        else:
            found[p], found[q] = -after[0, q], after[0, p]
        return np.asarray(found / found.sum())
