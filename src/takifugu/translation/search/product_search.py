r"""Lower bounds for chains: randomised response on every entry, chosen to leak the most.

For all factors of a product but one held fixed, E[g|s]/E[g|s′] is a ratio of two linear functions
of that factor, and the best one is known (`takifugu.translation.search.best_response`): two levels
for a scalar loss. Messages along the chain give both functions; sweeping to and fro improves the
ratio until it settles. What the product leaks is certified by
`takifugu.translation.certify.product`, whether or not the search found the best.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.translation.certify.product import MAX_RANGE, Neighbourhood, Product, lower
from takifugu.translation.search.best_response import BestResponse

MAX_SWEEPS = 30
ENOUGH = 1e-13  # an improvement below this share ends the search
CLOSE = 1e-6  # and so does this one where every factor takes a search of its own
MAX_WORK = 2e8  # pairs × entries × classes² of such searches in a round


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
