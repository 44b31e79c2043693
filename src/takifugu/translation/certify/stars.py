r"""Costs in the shape of a star: what changing u to v costs is what leaving u and entering v cost.

A *star* has :math:`c(u,v) = \mathrm{up}(u) + \mathrm{down}(v)` for u ≠ v, with up + down ≥ 0. Such
are per-entry DP and histograms, ε[u≠v] (ε/2 each); the count of one value (all of it on that
value); every sum of these; every cost on two values, and every symmetric one on three. The gains
are the lengths of the rays; shifting all of ``up`` by s and all of ``down`` by −s changes nothing.

Values between which nothing is charged, in either direction, form a *class*: a factor g with
g(u) ≤ e^{c(u,v)} g(v) is the same on all of them. The count of a set of values is a star on two
classes; those of several disjoint sets are one on as many.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from takifugu._core import rounding
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT

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
    rounding = max(float(missing), 0.0) + 8 * UNIT * (np.abs(up) + np.abs(down)).max()
    aside = np.arange(size) != hub
    up, down = up + rounding * aside, down + rounding * aside
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
