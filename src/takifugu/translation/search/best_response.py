r"""The best factor of one entry, all others held fixed: for a witness that obeys a cost.

With weights a, b ≥ 0 on the values of an entry, find g > 0 with
:math:`g(u) \le e^{c(u,v)} g(v)` and the largest :math:`\sum a g / \sum b g`. Values between which a
change costs nothing share one g. Between the classes that remain it is two levels if all changes
cost the same, and otherwise the small transport of a step, whose potentials are the g.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from takifugu._core.numeric import Booleans, Floats
from takifugu.translation.certify.flow import off_diagonal
from takifugu.translation.certify.product import FactorCost
from takifugu.translation.search.couplings import NUDGE, nudges

Trees = tuple[NDArray[np.int16], Booleans]


class BestResponse:
    """The best factors under one cost ``[u, v]``, times a ``share`` of at most 1."""

    def __init__(self, cost: Floats, share: float = 1.0) -> None:
        factors = FactorCost(cost)
        self._cost, self._class_of = factors.cost * share, factors.class_of
        self._members = np.eye(len(factors.heads))[self._class_of]  # [value, class]

    @property
    def classes(self) -> int:
        """How many classes of values there are."""
        return len(self._cost)

    @cached_property
    def alike(self) -> bool:
        """Whether every change from class to class costs the same."""
        apart = self._cost[off_diagonal(self.classes) > 0]
        return self.classes < 2 or bool(apart.min() == apart.max())

    @cached_property
    def high(self) -> float:
        """e^c of the dearest change."""
        return float(np.exp(self._cost.max(initial=0.0)))

    @cached_property
    def _gains(self) -> tuple[Floats, Floats]:
        m, top = self.classes, float(self._cost.max())
        gain = np.exp(self._cost + off_diagonal(m) * nudges(m) * NUDGE * top)  # no two trees tie
        return gain, np.ascontiguousarray(gain.T)

    def trees(self, rows: int) -> Trees:
        """Room for the trees from which a search starts again."""
        shape = (rows, self.classes)
        return np.zeros(shape, dtype=np.int16), np.zeros(shape, dtype=np.bool_)

    def choose(self, a: Floats, b: Floats, trees: Trees, *, fresh: bool) -> Floats:
        """``[row, u]``: g for each row of weights; admissible up to rounding."""
        if self.classes < 2:
            return np.ones_like(a)
        a, b = a @ self._members, b @ self._members
        if self.alike:
            return two_levels(a, b, self.high)[:, self._class_of]
        if self.classes == 2:
            rise = a[:, 1] * b[:, 0] > a[:, 0] * b[:, 1]
            g = np.ones_like(a)
            g[rise, 1] = float(np.exp(self._cost[1, 0]))
            g[~rise, 0] = float(np.exp(self._cost[0, 1]))
            return g[:, self._class_of]
        from takifugu.translation.search import tree_simplex as kernel

        potentials = np.ones_like(a)
        # a factor of a row changes nothing, and tiny weights times tiny potentials would vanish
        kernel.respond(_scaled(a), _scaled(b), *self._gains, fresh, *trees, potentials)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            scaled: Floats = potentials / potentials.min(axis=1, keepdims=True)
        most = float(self._gains[0].max())  # a chain of gains may leave float64
        return np.nan_to_num(scaled, nan=1.0, posinf=most)[:, self._class_of]


def _scaled(weights: Floats) -> Floats:
    """Each row divided by its largest number."""
    largest = weights.max(axis=1, keepdims=True)
    return weights / np.where(largest > 0, largest, 1.0)


def two_levels(a: Floats, b: Floats, high: float) -> Floats:
    """``[row, u]``: the g in {1, high} with the largest Σ a·g / Σ b·g."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(a > 0, a / b, 0.0)
    order = np.argsort(-ratio, axis=1, kind="stable")
    sorted_a = np.take_along_axis(a, order, axis=1)
    sorted_b = np.take_along_axis(b, order, axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = (a.sum(axis=1, keepdims=True) + (high - 1) * np.cumsum(sorted_a, axis=1)) / (
            b.sum(axis=1, keepdims=True) + (high - 1) * np.cumsum(sorted_b, axis=1)
        )
    size = np.argmax(value, axis=1)
    chosen = np.arange(a.shape[1])[None, :] <= size[:, None]
    chosen[chosen.all(axis=1)] = False  # the same factor everywhere reveals nothing
    g = np.ones_like(a)
    np.put_along_axis(g, order, np.where(chosen, high, 1.0), axis=1)
    return g
