r"""Lower bounds for chains: randomised response on every entry, chosen to leak the most.

A product :math:`g(D) = \prod_j g_j(x_j)` with :math:`1 \le g_j \le e^{ε_j}` is admissible, since
changing entry j changes one factor. For all factors but one held fixed, E[g|s]/E[g|s′] is a ratio
of two linear functions of :math:`g_j`, so its best value takes two levels: e^ε on the values with
the greatest ratio, 1 on the others. Messages along the chain give both functions; sweeping to and
fro improves the ratio until it settles. What is reported is the ratio of the factors found,
computed once more and rounded down: it is a mechanism's, whether or not the search found the best.

For two states the best product is the worst mechanism of all, and it is known without a search
(`takifugu.translation.chain.binary_closed_form`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._rounding import UNIT
from takifugu.numeric import Floats, Integers

MOST = 600.0  # the total of ε over the neighbours used: e^MOST is a float, and so is its inverse
ROUNDS = 30
ENOUGH = 1e-13  # an improvement below this share ends the search


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The entries around a secret one.

    Attributes:
        ahead: For each step away from the entry, towards the end: ``[x, u]``, the law of the next.
        behind: The same towards the beginning: the backward rows.
        spent: ε of the entry itself.
        spent_ahead: ``[step]``: ε of the entries after it, nearest first.
        spent_behind: ``[step]``: ε of the entries before it, nearest first.
        slack: What rounding of the rows can do to a log-ratio, in total.
    """

    ahead: Sequence[Floats]
    behind: Sequence[Floats]
    spent: float
    spent_ahead: Floats
    spent_behind: Floats
    slack: float


@dataclass(frozen=True, eq=False)
class BestProduct:
    """The best product found: for which pair, its leak, and the factors of each side."""

    pair: int
    leak: float
    here: Floats
    ahead: Floats
    behind: Floats


def best_product(
    around: Neighbourhood, left: Floats, right: Floats, values: Integers | None = None
) -> BestProduct:
    """Maximise over products, for several secret pairs at once.

    ``left`` and ``right`` are ``[pair, x]``: the law of the entry given each side. ``values`` [x]
    is the value of the data that a state stands for: factors then depend on that alone.
    """
    sides = (
        _Side(around.ahead, _scaled(around, around.spent_ahead), left.shape, values),
        _Side(around.behind, _scaled(around, around.spent_behind), left.shape, values),
    )
    own = float(np.exp(min(around.spent, MOST))) * (1 - 4 * UNIT)
    here = np.where(left > 0, max(own, 1.0), 1.0)
    messages = [np.ones_like(left), np.ones_like(left)]
    best = np.full(len(left), -1.0)
    for _ in range(ROUNDS):
        for k, side in enumerate(sides):
            other = here * messages[1 - k]
            messages[k] = side.improve(left * other, right * other)
        weight = here * messages[0] * messages[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log((left * weight).sum(axis=1)) - np.log((right * weight).sum(axis=1))
        settled = bool((ratio <= best + ENOUGH * (1 + np.abs(best))).all())
        best = np.maximum(best, ratio)
        if settled:
            break
    pair = int(np.argmax(ratio))
    steps = len(around.ahead) + len(around.behind) + 2
    states = left.shape[1]
    rounding = 4 * steps * (states + 8) * UNIT + 16 * UNIT * abs(float(ratio[pair]))
    return BestProduct(
        pair,
        max(float(ratio[pair]) - rounding - around.slack, 0.0),
        here[pair],
        sides[0].factors[:, pair],
        sides[1].factors[:, pair],
    )


def _scaled(around: Neighbourhood, spent: Floats) -> Floats:
    """ε of some entries, reduced if all neighbours together are more than floats can hold."""
    total = float(around.spent_ahead.sum() + around.spent_behind.sum())
    return spent * min(1.0, MOST / total) if total > 0 else spent


class _Side:
    """One direction: the factors of its entries, nearest first, for every secret pair."""

    def __init__(
        self,
        rows: Sequence[Floats],
        spent: Floats,
        shape: tuple[int, ...],
        values: Integers | None,
    ) -> None:
        self._rows, self._values = rows, values
        self._high = np.exp(spent) * (1 - 4 * UNIT)  # at most e^ε
        self._high = np.maximum(self._high, 1.0)
        self.factors = np.ones((len(rows), *shape))

    def improve(self, left: Floats, right: Floats) -> Floats:
        """One sweep out with the factors as they are, one sweep in that improves each.

        ``left`` and ``right`` weigh the values of the secret entry. Returns ``[pair, x]``:
        the expectation of the product of all factors, given x, up to a common factor.
        """
        if not len(self._rows):
            return np.ones_like(left)
        reach = []
        a, b = left, right
        for step, rows in enumerate(self._rows):
            a, b = _unit(a @ rows), _unit(b @ rows)
            reach.append((a, b))
            a, b = a * self.factors[step], b * self.factors[step]
        message = np.ones_like(left)
        for step in reversed(range(len(self._rows))):
            a, b = reach[step]
            self.factors[step] = self._chosen(a * message, b * message, self._high[step])
            message = _unit((self.factors[step] * message) @ self._rows[step].T)
        return message

    def _chosen(self, a: Floats, b: Floats, high: float) -> Floats:
        if self._values is None:
            return _two_levels(a, b, high)
        of_value = np.eye(int(self._values.max()) + 1)[self._values]  # [state, value]
        return _two_levels(a @ of_value, b @ of_value, high)[:, self._values]


def _unit(rows: Floats) -> Floats:
    """Each row divided by its largest entry; only ratios within a row matter."""
    largest = np.maximum(rows.max(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    scaled: Floats = rows / largest
    return scaled


def _two_levels(a: Floats, b: Floats, high: float) -> Floats:
    """``[pair, u]``: the g in {1, high} with the largest Σ a·g / Σ b·g."""
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
