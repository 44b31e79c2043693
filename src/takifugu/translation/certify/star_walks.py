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

from takifugu._core.compiled import share_range
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT, up
from takifugu.translation.certify.stars import Star

LEAST_PROBABILITY = 1e-150  # a smaller positive probability is left to other bounds
LARGEST_RAY = 100.0  # and so is a longer ray
LARGEST_LOSS = 300.0  # and a loss that would be greater than this
MAX_STEPS = 2_000  # of an unbounded side
MIN_SHARED_WORK = 3_000_000  # of pairs × states², that is worth a thread


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
        if len(rows) != len(stars):
            raise ValueError("each step has its rows and its star")
        kinds = {id(matrix): matrix for matrix in rows}
        levels = {id(star): star for star in stars}
        matrices = np.ascontiguousarray(np.stack(list(kinds.values())), dtype=np.float64)
        positive = matrices[matrices > 0]
        tallest = max(float(np.abs([s.up, s.down]).max()) for s in levels.values())
        if positive.min() < LEAST_PROBABILITY or not tallest <= LARGEST_RAY:
            return None
        row_number = {key: place for place, key in enumerate(kinds)}
        star_number = {key: place for place, key in enumerate(levels)}
        row_at = np.array([row_number[id(matrix)] for matrix in rows], dtype=np.int64)
        cost_at = np.array([star_number[id(star)] for star in stars], dtype=np.int64)
        classes = np.array([split_classes(star) for star in levels.values()])
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
        return MAX_STEPS if self.unbounded else len(self.row_at)

    @property
    def steps(self) -> list[Any]:
        """The steps as the compiled loops take them."""
        walk = [self.rows, self.row_at, self.high, self.low, self.order, self.last]
        return [*walk, self.cost_at]

    def upper(self, pairs: Integers, losses: Floats) -> Floats:
        """``[pair]``: at least the loss of each: the given one if it is proven, else infinite.

        Never more than the sum of all dearest changes: every factor is at most that far apart.
        """
        limits = np.asarray(losses, dtype=np.float64)
        most = np.inf if self.unbounded else float(up(fsum(self.dearest[self.cost_at])))
        if limits.shape != (len(pairs),):
            return np.full(len(pairs), most)
        return np.minimum(np.where(self.proves(pairs, limits), limits, np.inf), most)

    def proves(self, pairs: Integers, limits: Floats) -> Booleans:
        """``[pair]``: whether the loss is proven to be at most its limit; none without one each."""
        from takifugu.translation.certify.star_loops import test

        proven = np.zeros(len(pairs), dtype=np.bool_)
        if np.shape(limits) != proven.shape:
            return proven
        capped = np.minimum(limits, LARGEST_LOSS)

        def work(begin: int, end: int) -> None:
            part = [self.unbounded, self.most, self.held, self.error, self.floor]
            test(*[*self.steps, *part, pairs, begin, end, capped, proven])

        share_range(work, len(pairs), worthwhile=len(pairs) * self.states**2 >= MIN_SHARED_WORK)
        return proven


def added(own: Floats, *sides: Floats) -> Floats:
    """The cost of the entry itself and what its sides reveal, rounded up; broadcasts."""
    total = own
    for side in sides:
        total = total + side
    return up(total)


def within(
    sides: Sequence[StarSide | None],
    own: Floats,
    pairs: Integers,
    shares: Sequence[Floats],
    limit: float,
) -> Booleans:
    """``[pair]``: whether it is proven to lose at most ``limit``.

    ``shares`` are what each side is claimed to reveal of each pair: any numbers; without one for
    each pair nothing is proven. A side that is None has no entries.
    """
    if any(np.shape(share) != (len(pairs),) for share in (own, *shares)):
        return np.zeros(len(pairs), dtype=np.bool_)
    proven: Booleans = added(own, *shares) <= limit
    for side, share in zip(sides, shares, strict=True):
        left = np.flatnonzero(proven)
        if side is None:
            proven[left] = share[left] >= 0
        else:
            proven[left] = side.proves(pairs[left], share[left])
    return proven


def split_classes(star: Star) -> Integers:
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
