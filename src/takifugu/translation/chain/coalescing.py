r"""One side of a chain under costs in the shape of a star: solved, not only bounded.

Let h > 0 be a function of the entries after i that obeys the costs, entry n's being a star,
:math:`c_n(u,v) = \mathrm{up}_n(u) + \mathrm{down}_n(v)` for u ≠ v. The side's loss is the largest
:math:`F(x,y) = \log E[h|X_i=x]/E[h|X_i=y]`. For t > 0 carry a signed measure along the chain,

.. math:: e_1 = P(x,·) − t\,P(y,·), \qquad e_{n+1} = (g_n e_n) P,\qquad
          g_n(u) = e^{\mathrm{up}_n(u)} \text{ if } e_n(u) > 0,
          \text{ else } e^{-\mathrm{down}_n(u)}.

**Theorem.** F(x, y) ≤ log t if and only if :math:`\sum_u g_N(u) e_N(u) \le 0` at the last entry N;
and at the least such t the product :math:`\prod_n g_n(x_n)`, a mechanism, attains it.

*Proof.* Write h(u, r) with u the next entry and r those after it. :math:`\hat h(r) = \min_v
e^{\mathrm{down}(v)} h(v,r)` obeys the costs of r, being a minimum of functions that do, and

.. math:: e^{-\mathrm{down}(u)}\,\hat h(r) \le h(u,r) \le e^{\mathrm{up}(u)}\,\hat h(r).

So :math:`\sum_u e_n(u) E[h|X_n=u] \le \sum_u g_n(u) e_n(u) E[\hat h|X_n=u] = \sum_v e_{n+1}(v)
E[\hat h|X_{n+1}=v]`; after the last entry the sum itself is left. The first sum is
:math:`E[h|x] − t E[h|y]`. Conversely the sum is that of the product, whose factors obey the costs:
up(u) + down(v) apart at most. ∎ (With ε → 0 it is Griffeath's maximal coupling, *Z. Wahrsch. verw.
Gebiete* 31, 1975: paths that have not met pay for every entry until they do.)

*Classes.* Where values of a class share one factor with two levels, h(u, ·) is one function for all
of them, and the sign is taken of their *sum*, for each state of the next entry:
:math:`e_{n+1}(v) = \sum_C \max_g g \sum_{u∈C} e_n(u) P(u,v)`. The same proof gives an upper bound;
the factors may then depend on the next entry, and no mechanism need attain it.

**Endless sides.** The map Φ: e_n → e_{n+1} is monotone and homogeneous. If e ≤ 0 everywhere it
stays so. If Φ is the same from here on, e_n ≤ r·e_{n−1} for some r > 0, and the sum at n is at
most 0, then e_{n+j} ≤ r^j e_n, and so is every later sum. Either ends the walk with a proof.

**Rounding.** What is certified is an upper bound on e_n, every operation rounded up (Φ is
monotone), with rows that may be off by ``slack``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.parallel import share_range
from takifugu._core.rounding import UNIT, up
from takifugu.translation.chain.stars import Star

FAINTEST = 1e-150  # a smaller positive probability is left to other bounds
DEAREST = 100.0  # and so is a longer ray
TALLEST = 300.0  # and a loss that would be greater than this
LONGEST = 2_000  # steps of an unbounded side
MARGIN = 1e-7  # share of a long side's loss that is first put on top of it
GLANCED = 5  # steps by which pairs are ranked
REACH = 128  # steps of a product
PRODUCTS = 4  # of which the best is taken
MIN_SHARED_WORK = 3_000_000  # of pairs × states², that is worth a thread
BATCH = 64  # pairs that are solved before the target is raised


@dataclass(frozen=True, eq=False)
class StarSide:
    """The entries to one side of the secret one, nearest first, ready for the compiled loops.

    Attributes:
        rows: ``[kind, x, u]``: the different laws of a next entry.
        row_at: ``[step]``: which of them leads to each entry.
        high: ``[level, u]``: e^up of the different costs.
        low: ``[level, u]``: e^−down.
        order: ``[level, place]``: the states, class by class.
        last: ``[level, place]``: whether a class ends there.
        cost_at: ``[step]``: which cost each entry has.
        unbounded: Whether the last step repeats for ever.
        held: ``[step]``: whether all is the same from there on.
        error: A relative error of rows, factors and sums.
        floor: The least positive weight.
        dearest: ``[level]``: the dearest change.
    """

    rows: Floats
    row_at: Integers
    high: Floats
    low: Floats
    order: Integers
    last: Booleans
    cost_at: Integers
    unbounded: bool
    held: Booleans
    error: float
    floor: float
    dearest: Floats

    @classmethod
    def of(
        cls,
        rows: Sequence[Floats],
        stars: Sequence[Star],
        *,
        slack: float,
        unbounded: bool = False,
    ) -> "StarSide | None":
        """Steps with their rows and the star of the entry stepped to; None if out of range."""
        kinds = {id(matrix): matrix for matrix in rows}
        levels = {id(star): star for star in stars}
        matrices = np.ascontiguousarray(np.stack(list(kinds.values())), dtype=np.float64)
        positive = matrices[matrices > 0]
        tallest = max(float(np.abs([s.up, s.down]).max()) for s in levels.values())
        if positive.min() < FAINTEST or not tallest <= DEAREST:
            return None
        row_number = {key: place for place, key in enumerate(kinds)}
        star_number = {key: place for place, key in enumerate(levels)}
        row_at = np.array([row_number[id(matrix)] for matrix in rows], dtype=np.int64)
        cost_at = np.array([star_number[id(star)] for star in stars], dtype=np.int64)
        classes = np.array([_split(star) for star in levels.values()])
        order = np.argsort(classes, axis=1, kind="stable")
        sorted_classes = np.take_along_axis(classes, order, axis=1)
        last = np.ones(classes.shape, dtype=np.bool_)
        last[:, :-1] = sorted_classes[:, 1:] != sorted_classes[:, :-1]
        k = matrices.shape[1]
        return cls(
            matrices,
            row_at,
            np.exp(np.array([star.up for star in levels.values()])),
            np.exp(-np.array([star.down for star in levels.values()])),
            np.ascontiguousarray(order, dtype=np.int64),
            last,
            cost_at,
            unbounded,
            _held(row_at, cost_at),
            2 * (k + 16) * UNIT + slack,
            1e-230 / float(positive.min()),
            np.array([star.dearest for star in levels.values()]),
        )

    def nearest(self, steps: int) -> "StarSide | None":
        """The nearest entries alone, of a side that is not unbounded; None if there are none."""
        if steps == 0:
            return None
        row_at, cost_at = self.row_at[:steps], self.cost_at[:steps]
        return replace(self, row_at=row_at, cost_at=cost_at, held=_held(row_at, cost_at))

    def beyond(self, steps: int) -> "StarSide | None":
        """What is left when the nearest ``steps`` entries are passed; None if nothing is."""
        if steps >= len(self.row_at):
            return None
        row_at, cost_at = self.row_at[steps:], self.cost_at[steps:]
        return replace(self, row_at=row_at, cost_at=cost_at, held=_held(row_at, cost_at))

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.rows[0])

    @property
    def most(self) -> int:
        """How many steps are walked at most."""
        return LONGEST if self.unbounded else len(self.row_at)

    def _walk(self) -> list[Any]:
        walk = [self.rows, self.row_at, self.high, self.low, self.order, self.last]
        return [*walk, self.cost_at]

    def _proof(self) -> list[Any]:
        return [*self._walk(), self.unbounded, self.most, self.held, self.error, self.floor]

    def solve(
        self, pairs: Integers, guess: Floats, *, margin: float = MARGIN
    ) -> tuple[Floats, Floats]:
        """``[pair]``: the loss from below, not rounded, and a proven upper bound on it.

        The second is within about ``margin`` of the first, as a share, and infinite where nothing
        was proven. ``guess`` is where the search starts.
        """
        from takifugu.translation.chain import coalescing_loops as kernel

        below, above = np.zeros(len(pairs)), np.zeros(len(pairs))
        start = np.minimum(guess, TALLEST)

        def work(begin: int, end: int) -> None:
            part = [margin, pairs, begin, end, start, below, above]
            kernel.solve(*[*self._proof(), *part])

        share_range(work, len(pairs), worthwhile=len(pairs) * self.states**2 >= MIN_SHARED_WORK)
        # every factor is at most the dearest change apart: so is the product of all
        most = np.inf if self.unbounded else float(up(fsum(self.dearest[self.cost_at])))
        return below, np.minimum(np.where(above < TALLEST, above, np.inf), most)

    def table(self, *, margin: float = MARGIN) -> Floats:
        """``[x, y]``: a proven upper bound on the loss of every pair; infinite where there is none.

        One solution for each pair: for more than a few dozen states that takes long.
        """
        pairs = np.argwhere(~np.eye(self.states, dtype=np.bool_))
        found = np.zeros((self.states, self.states))
        found[tuple(pairs.T)] = self.solve(pairs, self.glance(pairs), margin=margin)[1]
        return found

    def prove(self, pairs: Integers, limits: Floats) -> Booleans:
        """``[pair]``: whether the loss is proven to be at most its limit."""
        from takifugu.translation.chain import coalescing_loops as kernel

        proven = np.zeros(len(pairs), dtype=np.bool_)
        capped = np.minimum(limits, TALLEST)

        def work(begin: int, end: int) -> None:
            part = [pairs, begin, end, capped, proven]
            kernel.test(*[*self._proof(), *part])

        share_range(work, len(pairs), worthwhile=len(pairs) * self.states**2 >= MIN_SHARED_WORK)
        return proven

    def glance(self, pairs: Integers) -> Floats:
        """``[pair]``: about the loss of a few entries, to rank pairs by."""
        return self._glanced(pairs, np.zeros(len(pairs)), GLANCED, whole=False)

    def product(self, pairs: Integers, guess: Floats) -> Floats:
        """``[pair]``: about what a good product of factors attains, not rounded.

        Where classes have several values it may be less than the loss.
        """
        best, found = np.zeros(len(pairs)), guess
        for _ in range(PRODUCTS):
            found = self._glanced(pairs, found, REACH, whole=True)
            best = np.maximum(best, found)
        return best

    def _glanced(self, pairs: Integers, guess: Floats, steps: int, *, whole: bool) -> Floats:
        from takifugu.translation.chain import coalescing_loops as kernel

        found = np.minimum(guess, TALLEST)
        taken = steps if self.unbounded else min(steps, len(self.row_at))

        def work(begin: int, end: int) -> None:
            part = [pairs, begin, end, taken, whole, found]
            kernel.glance(*[*self._walk(), *part])

        share_range(work, len(pairs), worthwhile=len(pairs) * self.states**2 >= MIN_SHARED_WORK)
        return found


@dataclass(frozen=True, eq=False)
class WorstPair:
    """The pair with the largest loss.

    Attributes:
        loss: At least the loss of every pair that was examined; infinite if none was proven.
        pair: The number of the worst in the list of pairs; −1 if there is none.
        sides: What each side adds to its loss, proven: ahead, behind.
        rivals: The numbers of the pairs that may lose more than ``others``.
        others: At least the loss of every pair that is no rival.
    """

    loss: float
    pair: int
    sides: tuple[float, float]
    rivals: Integers
    others: float


def worst_pair(
    ahead: StarSide | None,
    behind: StarSide | None,
    own: Floats,
    pairs: Integers,
    *,
    margin: float = MARGIN,
    leeway: float = 1.0,
    guesses: tuple[Floats, Floats] | None = None,
) -> WorstPair:
    """The largest of own + ahead + behind over ``pairs`` [pair, 2], whose own loss is ``own``.

    Few pairs are solved. The others are shown to lose no more than those, which takes but a few
    steps where they lose much less. With a ``leeway`` below 1 most are shown to lose no more than
    that share of the first one solved; those that cannot be are the rivals. ``guesses`` of what
    each side of each pair loses save a first look at them. A side that is None has no entries.
    """
    if not len(pairs):
        return WorstPair(0.0, -1, (0.0, 0.0), np.zeros(0, dtype=np.int64), 0.0)
    sides = [ahead, behind]
    glances = guesses or tuple(
        np.zeros(len(own)) if side is None else side.glance(pairs) for side in sides
    )
    score = own + glances[0] + glances[1]
    left = np.argsort(-score, kind="stable")
    loss, pair, each = -1.0, -1, (0.0, 0.0)
    rivals, others = left, 0.0
    while len(left):
        taken, left = (left[:1], left[1:]) if pair < 0 else (left[:BATCH], left[BATCH:])
        found = [
            np.zeros(len(taken))
            if side is None
            else side.solve(pairs[taken], glance[taken], margin=margin)[1]
            for side, glance in zip(sides, glances, strict=True)
        ]
        upper = up(own[taken] + found[0] + found[1])
        place = int(np.argmax(upper))
        first = pair < 0
        if upper[place] > loss:
            loss, pair = float(upper[place]), int(taken[place])
            each = float(found[0][place]), float(found[1][place])
        if not loss < np.inf:
            break
        if first and leeway < 1:
            others = leeway * loss
            proven = _bounded(sides, pairs[left], own[left], [g[left] for g in glances], others)
            left = left[~proven]
            rivals = np.append(taken, left)
        if first or len(left) > BATCH:
            proven = _bounded(sides, pairs[left], own[left], [g[left] for g in glances], loss)
            left = left[~proven]
    return WorstPair(loss, pair, each, np.sort(rivals), others)


def _bounded(
    sides: Sequence[StarSide | None],
    pairs: Integers,
    own: Floats,
    glances: list[Floats],
    limit: float,
) -> Booleans:
    """Which pairs are proven to lose no more than ``limit``; the room is split by the glances."""
    total = glances[0] + glances[1]
    room = limit * (1 - 16 * UNIT) - 16 * UNIT - own - total
    proven: Booleans = room >= 0
    for side, glance in zip(sides, glances, strict=True):
        if side is None:
            continue
        share = np.where(total > 0, glance / np.where(total > 0, total, 1.0), 0.5)
        kept = np.flatnonzero(proven)
        proven[kept] = side.prove(pairs[kept], (glance + share * room)[kept])
    return proven


def _split(star: Star) -> Integers:
    """The classes of a star; values whose factor has but one level need none."""
    free = star.up + star.down <= 0
    return np.where(free, len(free) + np.arange(len(free)), star.classes)


def _held(row_at: Integers, cost_at: Integers) -> Booleans:
    """``[n]``: whether the maps of entries n (from 0: the first after the secret) on are equal.

    The map of the entry before n takes the cost before n and the rows of step n.
    """
    same_rows = np.append(row_at[1:] == row_at[:-1], [True])
    same_cost = np.append([True], cost_at[1:] == cost_at[:-1])
    held: Booleans = np.logical_and.accumulate((same_rows & same_cost)[::-1])[::-1]
    return held
