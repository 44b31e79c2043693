r"""One side of a chain whose rows are only known to lie in boxes, under star costs.

At every step the chain may use any matrix with rows :math:`l_u \le p_u \le h_u`, each a
distribution. As in `takifugu.translation.chain.coalescing`, F(x, y) ≤ log t if the walk
:math:`e_1 = P(x,·) − tP(y,·)`, :math:`e_{n+1} = G(e_n)P` ends with a sum of at most 0, now for
every choice of the matrices. Carry bounds :math:`\bar e_n \ge e_n` for all of them, *and* a bound
:math:`s_n` on the sum of :math:`e_n`: of the rows it is known that they sum to 1.

**Step.** Let :math:`D = \sum \bar e − s \ge 0`. An e ≤ ē with Σe ≤ s is ē − d with d ≥ 0 and
Σd ≥ D. G is increasing, with slopes of at least g⁻(u) = e^{−down(u)}, so
:math:`G(e)(u) \le G(\bar e)(u) − g^-(u) d(u)`, and w ↦ max over p in [l, h] of w·p has slopes of at
least l. Hence

.. math:: \sum e' = \sum G(e) \le \sum G(\bar e) − D \min_u g^-(u), \qquad
          e'(v) \le \sum_u \max_p G(\bar e)(u) p_u(v) − D \min_u g^-(u)\, l_u(v),

with the largest probability where G(ē) is positive and the least where it is negative. Both are
monotone in (ē, s), so every operation may be rounded up. The first sum is 1 − t, exactly. ∎
For p = q = .9 ± .005, T = 100, ε = .1 the side ahead is that of the worst member of the set.

**Backward.** Given the value of an entry, the one before has a law in a box too, if the law of the
entry before is bounded (`takifugu.translation.chain.interval_steps.backward_boxes`): the reversed
chain is one of a set of chains with boxes, and the same walk bounds it. The entries of a window
without a beginning all have laws within one pair of bounds. If the first entry may have any law,
entry k ≥ 1 has a law that is a mixture of rows k times over, with bounds that narrow as k grows,
and nothing is known of the step back to the first entry itself. A side of n entries then walks the
last n of a list of boxes: those of late entries, …, of entry 1, and the free one.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from takifugu._core.numeric import Floats
from takifugu._core.parallel import share_range
from takifugu._core.rounding import UNIT
from takifugu.translation.chain.coalescing import MIN_SHARED_WORK
from takifugu.translation.chain.stars import Star

LARGEST_RAY = 100.0  # a longer ray is left to other bounds
LEAST_PROBABILITY = 1e-151  # and so is a smaller positive probability
LARGEST_LOSS = 300.0  # and a larger loss
MAX_STEPS = 2_000  # entries of an unbounded side, after which nothing is proven


@dataclass(frozen=True, eq=False)
class BoxSide:
    """The entries to one side of the secret one.

    Attributes:
        below: ``[kind, x, u]``: the least probabilities of a step.
        above: ``[kind, x, u]``: the largest.
        star: The cost of each entry, or one above it.
        length: How many entries there are at most; None if they are unbounded.
        begins: Whether the kinds are those of the entries from a late one to the first; else there
            is one kind.
    """

    below: Floats
    above: Floats
    star: Star
    length: int | None
    begins: bool = False

    @property
    def usable(self) -> bool:
        """Whether numbers stay in range."""
        rays = np.abs([self.star.up, self.star.down])
        if self.below.shape != self.above.shape or self.below.ndim != 3 or self.length == 0:
            return False
        inside = (self.below >= 0) & (self.below <= self.above) & (self.above <= 2)
        positive = self.above[self.above > 0]
        fits = bool((rays <= LARGEST_RAY).all() and (self.star.up + self.star.down >= 0).all())
        return bool(fits and inside.all() and positive.min(initial=1.0) >= LEAST_PROBABILITY)

    def upper(self, caps: Floats) -> Floats:
        """``[x, y]``: at least what the side reveals; infinite where ``caps`` is not proven."""
        from takifugu.translation.certify.box_loops import least_proven

        size = self.below.shape[1]
        table = np.full((size, size), np.inf)
        np.fill_diagonal(table, 0.0)
        if not self.usable:
            return table
        pairs = np.argwhere(~np.eye(size, dtype=np.bool_))
        limits = caps[tuple(pairs.T)]
        limits = np.where((limits >= 0) & (limits < LARGEST_LOSS), limits, LARGEST_LOSS)
        losses = np.full(len(pairs), np.inf)
        kinds = np.arange(len(self.below))
        unbounded = self.length is None or self.length > MAX_STEPS
        most = MAX_STEPS if unbounded or self.length is None else self.length
        floor = 1e-230 / float(self.above[self.above > 0].min())
        star = [np.exp(self.star.up), np.exp(-self.star.down)]

        def work(begin: int, end: int) -> None:
            given: list[Any] = [self.below, self.above, kinds, self.begins, most, unbounded]
            given += [*star, pairs, begin, end, limits, 4 * (size + 16) * UNIT, floor, losses]
            least_proven(*given)

        share_range(work, len(pairs), worthwhile=len(pairs) * size**2 >= MIN_SHARED_WORK)
        table[tuple(pairs.T)] = np.where(losses >= 0, losses, np.inf)
        return table
