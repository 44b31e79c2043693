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

**Costs in the shape of a star.** A *star* has :math:`c(u,v) = \mathrm{up}(u) + \mathrm{down}(v)`
for u ≠ v, with up + down ≥ 0: what changing u to v costs is what leaving u and entering v cost.
Such are per-entry DP and histograms, ε[u≠v] (ε/2 each); the count of one value (all of it on that
value); every sum of these; every cost on two values, and every symmetric one on three. The gains
are the lengths of the rays; shifting all of ``up`` by s and all of ``down`` by −s changes nothing.

Values between which nothing is charged, in either direction, form a *class*: a factor g with
g(u) ≤ e^{c(u,v)} g(v) is the same on all of them. The count of a set of values is a star on two
classes; those of several disjoint sets are one on as many.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import NamedTuple

import numpy as np

from takifugu._core import rounding
from takifugu._core.compiled import share_range
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT

LEAST_PROBABILITY = 1e-150  # a smaller positive probability is left to other bounds
LARGEST_RAY = 100.0  # and so is a longer ray
LARGEST_LOSS = 300.0  # and a loss that would be greater than this
MAX_STEPS = 2_000  # of an unbounded side
MIN_SHARED_WORK = 3_000_000  # of pairs × states², that is worth a thread
ALIKE = 1e-12  # relative difference up to which a cost counts as a star, which then is at least it


@dataclass(frozen=True, eq=False)
class Star:
    """A star that is at least a given cost.

    Attributes:
        up: ``[u]``: a factor is at most e^up(u) times the reference.
        down: ``[u]``: and at least e^−down(u) times it.
        classes: ``[u]``: values with the same number have the same factor.
        tight: Whether the star is the cost itself, up to rounding.
    """

    up: Floats
    down: Floats
    classes: Integers
    tight: bool

    @property
    def dearest(self) -> float:
        """The most that two factors are apart."""
        apart = self.up[:, None] + self.down[None, :]
        found = np.where(self.classes[:, None] != self.classes[None, :], apart, 0.0)
        return float(found.max(initial=0.0))

    @property
    def attained(self) -> bool:
        """Whether a class of several values has but one level: then the bound is attained."""
        sizes = np.bincount(self.classes)[self.classes]
        return self.tight and bool(((sizes == 1) | (self.up + self.down <= 0)).all())


class Rays(NamedTuple):
    """The factors that one star allows, as the compiled loops take them.

    Attributes:
        high: ``[u]``: e^up.
        low: ``[u]``: e^−down.
        order: ``[place]``: the states, class by class; a value that needs no class is its own.
        last: ``[place]``: whether a class ends there.
    """

    high: Floats
    low: Floats
    order: Integers
    last: Booleans

    @classmethod
    def of_star(cls, star: Star) -> "Rays":
        """Values whose factor has but one level need no class: each is one of its own."""
        free = star.up + star.down <= 0
        classes = np.where(free, len(free) + np.arange(len(free)), star.classes)
        order = np.argsort(classes, kind="stable")
        last = np.append(np.diff(classes[order]) != 0, [True])
        return cls(np.exp(star.up), np.exp(-star.down), order, last)


class StarSteps(NamedTuple):
    """The steps of one side of an entry, nearest first, as the compiled loops take them.

    Attributes:
        rows: ``[kind, x, u]``: the different laws of a next entry.
        row_at: ``[step]``: which of them leads to each entry.
        high: ``[level, u]``: as in `Rays`, for each of the different costs.
        low: ``[level, u]``: the same.
        order: ``[level, place]``: the same.
        last: ``[level, place]``: the same.
        cost_at: ``[step]``: which cost each entry has.
        unbounded: Whether the last step repeats for ever.
        held: ``[step]``: whether all is the same from there on.
        most: How many steps are walked at most.
        error: A relative error of rows, factors and sums.
        floor: The least positive weight.
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
    most: int
    error: float
    floor: float


class TerminalSteps(NamedTuple):
    """A side of `takifugu.translation.certify.terminals` as the compiled loops take it."""

    kernel: Floats
    rays: Rays
    law: Floats
    steps: int
    whole: bool
    known: bool
    unknown: bool
    stochastic: bool
    steady: bool
    slack: float
    close: float
    error: float
    floor: float


def star_of(cost: Floats) -> Star:
    """The star that is ``cost``, a closed matrix, if it is one; else one that is at least it."""
    classes = classes_of(cost)
    _, first = np.unique(classes, return_index=True)
    reduced = cost[np.ix_(first, first)]
    sizes = np.bincount(classes)
    size = len(reduced)
    scale = float(reduced.max(initial=0.0))
    if size == 1:
        nothing = np.zeros(len(cost))
        return Star(nothing, nothing, classes, tight=True)
    if size == 2:  # all of it on the class with fewer values: the other has but one level then
        small = int(np.argmin(sizes))
        up, down = np.zeros(2), np.zeros(2)
        up[small], down[small] = reduced[small, 1 - small], reduced[1 - small, small]
    else:
        up, down = _rays(reduced)
    off = ~np.eye(size, dtype=np.bool_)
    missing = (reduced - up[:, None] - down[None, :])[off].max()
    excess = (up[:, None] + down[None, :] - reduced)[off].max()
    tight = bool(max(missing, excess, -(up + down).min()) <= ALIKE * scale)
    if not tight:
        up, down = _around(reduced)
    hub = int(np.argmin(up + down))
    up, down = up - up[hub], down + up[hub]
    if down[hub] <= ALIKE * scale:
        down[hub] = 0.0
    # at least the cost, whatever rounding did; the hub, which may be a class of several, stays put
    missing = (reduced - up[:, None] - down[None, :])[off].max()
    margin = max(float(missing), 0.0) + 8 * UNIT * (np.abs(up) + np.abs(down)).max()
    aside = np.arange(size) != hub
    up, down = up + margin * aside, down + margin * aside
    up = np.maximum(up, -down)
    return Star(up[classes], down[classes], classes, tight)


def even_star(cost: Floats) -> Star:
    """The star of two values with rays of equal length: what boxes of rows bound best."""
    half = rounding.up(0.5 * np.array([cost[0, 1], cost[1, 0]]))
    return replace(star_of(cost), up=half, down=half[::-1].copy())


def classes_of(cost: Floats) -> Integers:
    """``[u]``: the number of u's class: a relation, since ``cost`` is closed."""
    same = (cost == 0) & (cost.T == 0)
    np.fill_diagonal(same, val=True)
    return np.unique(np.argmax(same, axis=1), return_inverse=True)[1].astype(np.int64)


def _rays(cost: Floats) -> tuple[Floats, Floats]:
    """The only rays that a star of three values or more can have, with down(0) = 0; then halved."""
    up, down = np.zeros(len(cost)), np.zeros(len(cost))
    up[1:] = cost[1:, 0]
    down[2:] = cost[1, 2:] - up[1]
    down[1] = cost[2, 1] - up[2]
    up[0] = cost[0, 1] - down[1]
    shift = (up.min() - down.min()) / 2
    return up - shift, down + shift


def _around(cost: Floats) -> tuple[Floats, Floats]:
    """Rays from the value that is least far from the others, shortened while they suffice."""
    centre = int(np.argmin(np.maximum(cost, cost.T).max(axis=1)))
    up, down = cost[:, centre].copy(), cost[centre].copy()
    away = np.where(np.eye(len(cost)) > 0, -np.inf, 0.0)
    for u in np.argsort(-(up + down)):
        up[u] = max(float((cost[u] - down + away[u]).max()), -down[u])
        down[u] = max(float((cost[:, u] - up + away[u]).max()), -up[u])
    return up, down


@dataclass(frozen=True, eq=False)
class StarSide:
    """The entries to one side of the secret one, nearest first.

    Attributes:
        steps: The steps as the compiled loops take them.
        dearest: ``[level]``: the dearest change.
    """

    steps: StarSteps
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
        rays = [Rays.of_star(star) for star in levels.values()]
        steps = StarSteps(
            rows=matrices,
            row_at=row_at,
            high=np.array([star.high for star in rays]),
            low=np.array([star.low for star in rays]),
            order=np.array([star.order for star in rays]),
            last=np.array([star.last for star in rays]),
            cost_at=cost_at,
            unbounded=unbounded,
            held=_held(row_at, cost_at),
            most=MAX_STEPS if unbounded else len(row_at),
            error=2 * (matrices.shape[1] + 16) * UNIT + slack,
            floor=1e-230 / float(positive.min()),
        )
        return cls(steps, np.array([star.dearest for star in levels.values()]))

    def nearest(self, steps: int) -> "StarSide | None":
        """The nearest entries alone, of a side that is not unbounded; None if there are none."""
        return self._part(slice(0, steps))

    def beyond(self, steps: int) -> "StarSide | None":
        """What is left when the nearest ``steps`` entries are passed; None if nothing is."""
        return self._part(slice(steps, None))

    def _part(self, taken: slice) -> "StarSide | None":
        row_at, cost_at = self.steps.row_at[taken], self.steps.cost_at[taken]
        if not len(row_at):
            return None
        most = MAX_STEPS if self.steps.unbounded else len(row_at)
        held = _held(row_at, cost_at)
        part = self.steps._replace(row_at=row_at, cost_at=cost_at, held=held, most=most)
        return replace(self, steps=part)

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.steps.rows[0])

    def upper(self, pairs: Integers, losses: Floats) -> Floats:
        """``[pair]``: at least the loss of each: the given one if it is proven, else infinite.

        Never more than the sum of all dearest changes: every factor is at most that far apart.
        """
        limits = np.asarray(losses, dtype=np.float64)
        most = (
            np.inf
            if self.steps.unbounded
            else float(rounding.up(fsum(self.dearest[self.steps.cost_at])))
        )
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
            test(self.steps, pairs, begin, end, capped, proven)

        share_range(work, len(pairs), worthwhile=len(pairs) * self.states**2 >= MIN_SHARED_WORK)
        return proven


def added(own: Floats, *sides: Floats) -> Floats:
    """The cost of the entry itself and what its sides reveal, rounded up; broadcasts."""
    total = own
    for side in sides:
        total = total + side
    return rounding.up(total)


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


def _held(row_at: Integers, cost_at: Integers) -> Booleans:
    """``[n]``: whether the maps of entries n (from 0: the first after the secret) on are equal.

    The map of the entry before n takes the cost before n and the rows of step n.
    """
    same_rows = np.append(row_at[1:] == row_at[:-1], [True])
    same_cost = np.append([True], cost_at[1:] == cost_at[:-1])
    held: Booleans = np.logical_and.accumulate((same_rows & same_cost)[::-1])[::-1]
    return held
