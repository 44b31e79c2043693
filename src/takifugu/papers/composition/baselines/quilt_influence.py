r"""The max-influence of the quilts of a stationary chain, for few pairs of values at first.

With :math:`l_a(x,y)` what a node a steps back and :math:`r_b(x,y)` what one b steps ahead tells of
x against y, a quilt has the influence :math:`e(a,b) = \max_{x,y} [l_a(x,y) + r_b(x,y)]`. Pairs that
were the worst of some quilt bound that of others from below, and cost a row of each power. Only a
quilt that may be the best by them is evaluated for all pairs. One side alone needs no pairs:

.. math:: \max_{x,y} r_b(x,y) = \max_z \Bigl[\max_x \log P^b_{xz} - \min_y \log P^b_{yz}\Bigr].
"""

from itertools import repeat
from math import inf

import numpy as np

from takifugu._core.numeric import Floats
from takifugu._core.rounding import UNIT
from takifugu.influence.rounded_ratios import (
    IMPOSSIBLE,
    LogProduct,
    largest_ratios,
    products,
    turned,
)
from takifugu.papers.composition.baselines.chain_laws import laws_over_time


class QuiltInfluence:
    """The powers of a stationary chain, as far as they were needed, and what they reveal.

    All numbers are upper bounds, except `least`'s own search, which compares lower ones.
    """

    def __init__(self, P: Floats, law: Floats, error: float) -> None:
        """``error`` is that of the law, relatively."""
        now = next(laws_over_time(law, error, P))
        self._law = now.log[0]
        self._odds = self._law[None, :] - self._law[:, None]  # [x, y]: log μ(y)/μ(x)
        self._odds_slack = 2 * now.error + 4 * UNIT * float(np.abs(self._law).max())
        self._powers = products(P, 0.0, repeat(P), 0.0)
        self._known: list[LogProduct] = []
        self._logs = np.zeros((0, *P.shape))  # [step − 1, x, z], with room for more
        self._slack = np.zeros(0)
        self._pairs: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        self._tables: dict[tuple[int, bool], Floats] = {}

    def reach(self, steps: int) -> None:
        """Compute the powers up to ``steps``."""
        if steps > len(self._logs):
            more = max(steps, 2 * len(self._logs))
            logs, slack = np.zeros((more, *self._odds.shape)), np.zeros(more)
            logs[: len(self._logs)], slack[: len(self._slack)] = self._logs, self._slack
            self._logs, self._slack = logs, slack
        while len(self._known) < steps:
            power = next(self._powers)
            k = len(self._known)
            finite = np.abs(power.log[power.possible]).max(initial=0.0)
            self._logs[k] = power.log
            self._slack[k] = 2 * power.error + 8 * UNIT * float(finite)
            self._known.append(power)

    def ends(self, steps: int) -> tuple[Floats, Floats]:
        """``[step − 1]``: the influence of the quilts on one side, behind and ahead."""
        self.reach(steps)
        logs = self._logs[:steps]
        below = np.maximum(logs, IMPOSSIBLE)
        behind = (logs - self._law).max(axis=2) - (below - self._law).min(axis=2)  # [step − 1, z]
        ahead = logs.max(axis=1) - below.min(axis=1)
        slack = self._slack[:steps]
        odds = self._odds_slack + 8 * UNIT * float(np.abs(self._law).max(initial=0.0))
        return _bounded(behind.max(axis=1, initial=-inf) + slack + odds), _bounded(
            ahead.max(axis=1, initial=-inf) + slack
        )

    def least(self, nearby: int, below: float) -> tuple[int, float] | None:
        """The best a, with a + b = ``nearby`` + 1, and its influence; None if not ``below``."""
        self.reach(nearby)
        lower = np.full(nearby, -inf)  # [a − 1]
        for pair in self._pairs:
            np.maximum(lower, self._of_pair(pair, nearby), out=lower)
        best, least = 0, below
        while True:
            a = int(np.argmin(lower)) + 1
            if not lower[a - 1] < least:
                return (best, least) if best else None
            table = self._table(a, behind=True) + self._table(nearby + 1 - a, behind=False)
            pair = divmod(int(np.argmax(table)), len(self._law))
            if table[pair] < least:
                best, least = a, float(table[pair])
            lower[a - 1] = inf
            if pair not in self._pairs and table[pair] < inf:
                self._pairs[pair] = np.zeros(0), np.zeros(0)
                np.maximum(lower, self._of_pair(pair, nearby), out=lower)

    def _of_pair(self, pair: tuple[int, int], nearby: int) -> Floats:
        """``[a − 1]``: l_a + r_b of one pair, with a + b = ``nearby`` + 1."""
        behind, ahead = self._pairs[pair]
        if len(behind) < nearby:
            x, y = pair
            logs = self._logs[len(behind) : len(self._known)]
            slack = self._slack[len(behind) : len(self._known)]
            back = (logs[:, :, x] - np.maximum(logs[:, :, y], IMPOSSIBLE)).max(axis=1)
            front = (logs[:, x] - np.maximum(logs[:, y], IMPOSSIBLE)).max(axis=1)
            odds = self._odds[pair] + self._odds_slack
            behind = np.append(behind, _bounded(back + slack + odds))
            ahead = np.append(ahead, _bounded(front + slack))
            self._pairs[pair] = behind, ahead
        found: Floats = behind[:nearby] + ahead[:nearby][::-1]
        return found

    def _table(self, steps: int, *, behind: bool) -> Floats:
        """``[x, y]``: l or r of all pairs."""
        key = steps, behind
        if key not in self._tables:
            power = self._known[steps - 1]
            x, y = (grid.ravel() for grid in np.indices(self._odds.shape))
            found = largest_ratios(turned(power) if behind else power, x, y)
            found = found.reshape(self._odds.shape)
            self._tables[key] = found + self._odds + self._odds_slack if behind else found
        return self._tables[key]


def _bounded(values: Floats) -> Floats:
    """The same, with infinity for what is possible under one value alone."""
    return np.where(values > -IMPOSSIBLE / 2, inf, values)
