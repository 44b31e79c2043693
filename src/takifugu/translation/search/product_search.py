r"""Lower bounds for chains: randomised response on every entry, chosen to leak the most.

For all factors of a product but one held fixed, E[g|s]/E[g|s′] is a ratio of two linear functions
of that factor, and the best one is known (`BestResponse`): two levels for a scalar loss. Messages
along the chain give both functions; sweeping to and fro improves the ratio until it settles. What
the product leaks is certified by `takifugu.translation.certify.product`, whether or not the search
found the best.

**The best factor of one entry.** With weights a, b ≥ 0 on the values of an entry, find g > 0 with
:math:`g(u) \le e^{c(u,v)} g(v)` and the largest :math:`\sum a g / \sum b g`. Values between which a
change costs nothing share one g. Between the classes that remain it is two levels if all changes
cost the same, and otherwise the small transport of a step, whose potentials are the g.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from takifugu._core.numeric import Booleans, Floats
from takifugu.translation.certify.flow import off_diagonal
from takifugu.translation.certify.product import (
    MAX_RANGE,
    FactorCost,
    Neighbourhood,
    Product,
    lower,
)
from takifugu.translation.search.couplings import NUDGE, nudges

MAX_SWEEPS = 30
ENOUGH = 1e-13  # an improvement below this share ends the search
CLOSE = 1e-6  # and so does this one where every factor takes a search of its own
MAX_WORK = 2e8  # pairs × entries × classes² of such searches in a round

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


@dataclass(frozen=True, eq=False)
class BestProduct:
    """The best product found: for which pair, its leak, and the factors of each side."""

    pair: int
    leak: float
    here: Floats
    ahead: Floats
    behind: Floats


def best_product(around: Neighbourhood, left: Floats, right: Floats) -> BestProduct:
    """Maximise over products, for several secret pairs at once, the likeliest first.

    ``left`` and ``right`` are ``[pair, x]``: the law of the entry given each side.
    """
    known = _responses(around)
    searched = max((r.classes**2 for r in known.values() if not r.alike), default=0)
    steps = len(around.ahead) + len(around.behind) + 2
    if searched:
        kept = max(1, int(MAX_WORK / (steps * searched)))
        left, right = left[:kept], right[:kept]
    sides = [
        _Side(rows, [known[id(cost)] for cost in costs], left.shape)
        for rows, costs in (
            (around.ahead, around.costs_ahead),
            (around.behind, around.costs_behind),
        )
    ]
    own = BestResponse(around.cost, min(1.0, MAX_RANGE / max(float(around.cost.max()), 1.0)))
    trees, here = own.trees(len(left)), np.ones_like(left)
    messages = [np.ones_like(left), np.ones_like(left)]
    best = np.full(len(left), -1.0)
    for turn in range(MAX_SWEEPS):
        about = messages[0] * messages[1]
        here = own.choose(left * about, right * about, trees, fresh=turn == 0)
        for k, side in enumerate(sides):
            other = here * messages[1 - k]
            messages[k] = side.improve(left * other, right * other)
        ratio = _ratio(left, right, here * messages[0] * messages[1])
        close = CLOSE if searched else ENOUGH
        settled = bool((ratio <= best + close * (1 + np.abs(best))).all())
        best = np.maximum(best, ratio)
        if settled:
            break
    pair = int(np.argmax(_ratio(left, right, here * messages[0] * messages[1])))
    product = Product(here[pair], sides[0].factors[:, pair], sides[1].factors[:, pair])
    leak, product = lower(around, left[pair], right[pair], product)
    return BestProduct(pair, leak, product.here, product.ahead, product.behind)


def _ratio(left: Floats, right: Floats, weight: Floats) -> Floats:
    """``[pair]``: the logarithm of the ratio of two expectations of ``weight``."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Floats = np.log((left * weight).sum(axis=1)) - np.log((right * weight).sum(axis=1))
    return ratio


def _responses(around: Neighbourhood) -> dict[int, BestResponse]:
    """By identity of the cost; reduced if all neighbours together exceed what floats can hold."""
    costs = [*around.costs_ahead, *around.costs_behind]
    total = sum(float(cost.max(initial=0.0)) for cost in costs)
    share = min(1.0, MAX_RANGE / total) if total > 0 else 1.0
    return {key: BestResponse(cost, share) for key, cost in {id(c): c for c in costs}.items()}


class _Side:
    """One direction: the factors of its entries, nearest first, for every secret pair."""

    def __init__(
        self, rows: Sequence[Floats], responses: Sequence[BestResponse], shape: tuple[int, ...]
    ) -> None:
        self._rows, self._responses = rows, responses
        self._trees = [response.trees(shape[0]) for response in responses]
        self._fresh = True
        self.factors = np.ones((len(rows), *shape))

    def improve(self, left: Floats, right: Floats) -> Floats:
        """One sweep out with the factors as they are, one sweep in that improves each.

        ``left`` and ``right`` weigh the values of the secret entry. Returns ``[pair, x]``:
        the expectation of the product of all factors, given x, up to a common factor.
        """
        reach = []
        a, b = left, right
        for step, rows in enumerate(self._rows):
            a, b = _unit(a @ rows), _unit(b @ rows)
            reach.append((a, b))
            a, b = a * self.factors[step], b * self.factors[step]
        message = np.ones_like(left)
        for step in reversed(range(len(self._rows))):
            a, b = reach[step]
            self.factors[step] = self._responses[step].choose(
                a * message, b * message, self._trees[step], fresh=self._fresh
            )
            message = _unit((self.factors[step] * message) @ self._rows[step].T)
        self._fresh = False
        return message


def _unit(rows: Floats) -> Floats:
    """Each row divided by its largest entry; only ratios within a row matter."""
    largest = np.maximum(rows.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scaled: Floats = rows / largest
    return scaled
