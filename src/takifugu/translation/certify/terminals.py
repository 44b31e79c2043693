r"""One side of a chain under star costs, against adversaries who know more: what a grid proves.

Let the cost of every entry be a star, :math:`c(u,v) = \mathrm{up}(u) + \mathrm{down}(v)`, and let K
be the kernel of a side: P for the entries after the secret one, the transpose of P for those
before. For a pair (x, y) and a direction (a, b) carry

.. math:: e_1 = a\,K(x,·) − b\,K(y,·), \qquad e_{n+1} = G(e_n) K,\qquad
          G(e)(u) = e(u)\cdot\big(e^{\mathrm{up}(u)} \text{ if } e(u) > 0
                    \text{ else } e^{-\mathrm{down}(u)}\big).

By the theorem of `takifugu.translation.certify.stars`, applied to the law of the side that an
adversary holds (whose factors cancel in the signs), the loss of the side is at most log t if and
only if, with τ = b/a,

* *sum*: nothing is known of n entries: :math:`\sum_u G(e_n)(u) \le 0` at τ = t;
* *known*: the entry at distance d is known to be v: :math:`e_d(v) \le 0` at
  :math:`τ = t\,K^d(x,v)/K^d(y,v)`, on either side;
* *law*: the first entry, n before, has the law μ: :math:`\langle μ, G(e_n)\rangle \le 0` at
  :math:`τ = t\,\langle K^n(x), μ\rangle / \langle K^n(y), μ\rangle`;
* *unknown*: the same holds for every law μ.

**Between two directions.** G and K are monotone, convex and homogeneous, so :math:`e_n` is convex
and homogeneous in (a, b). Hence where a function is at most f > 0 at one direction and at most
f′ ≤ 0 at the next, it is at most 0 at −f′ times the first plus f times the second: the *chord*
bounds the crossing from above, with an error of the second order in the distance.

**Unknown start.** For one direction, no law μ has both :math:`\langle μ, G(e_n)\rangle > 0` and
:math:`b\langle μ, K^n(y)\rangle \ge a\,t\langle μ, K^n(x)\rangle` if some β > 0 has

.. math:: β\,G(e_n)(u) + b\,K^n(y,u) \le a\,t\,K^n(x,u) \quad\text{for all } u.

For a fixed β the left side is convex and homogeneous in (a, b), and the right side is linear: if
one β serves two directions it serves all between them. So a grid from (1, 0) to (0, 1), with one β
for each pair of neighbours, proves t for every law. The least t of a cell is the minimum of a
maximum of lines in β. (Conversely, if t is the loss, a β exists at every direction, by duality:
the grid can be as close as one likes.)

**All further entries.** If :math:`e_n \le 0` everywhere at τ, then so is every later one, and
log t is at most log τ plus the largest logarithm of :math:`K^m(y,v)/K^m(x,v)`, m ≥ n, which falls
as m grows, since :math:`K^m = K^n K^{m-n}`. That ratio is the same for all m under a law that stays
the same.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from takifugu._core.compiled import share_range
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT
from takifugu.translation.certify.stars import MIN_SHARED_WORK, Rays, Star, TerminalSteps

LARGEST_RAY = 100.0  # a longer ray is left to other bounds
LEAST_PROBABILITY = 1e-150  # and so is a smaller positive probability
LARGEST_POINT = 300.0  # of log τ
MAX_STEPS = 600  # entries that are walked


@dataclass(frozen=True, eq=False)
class TerminalSide:
    """A side with one kernel and one cost: a problem.

    Attributes:
        kernel: ``[x, u]``: K, each entry within ``slack`` of what it stands for, as a share.
        star: The cost of each entry, or one above it.
        length: How many entries there are at most; None if they are unbounded.
        law: ``[u]``: the weights of the far end: ones after the secret entry, a law of the first
            one before it; None if that may be any.
        known: Whether any entry may be known.
        stochastic: Whether the rows of K sum to 1, and the weights are ones. A side that is not
            so, up to rounding, is not usable.
        steady: Whether the law is the same at every entry. The same.
        law_slack: What the rounding of the law can do to a log-ratio.
    """

    kernel: Floats
    star: Star
    length: int | None
    law: Floats | None
    known: bool = False
    stochastic: bool = False
    steady: bool = False
    law_slack: float = 0.0

    @property
    def steps(self) -> int:
        """How many entries are walked at most."""
        return MAX_STEPS if self.length is None else min(self.length, MAX_STEPS)

    @cached_property
    def usable(self) -> bool:
        """Whether numbers stay in range."""
        kernel, star = np.asarray(self.kernel), self.star
        k = len(kernel)
        rays = np.abs([star.up, star.down])
        law = np.ones(k) if self.law is None else np.asarray(self.law)
        if kernel.shape != (k, k) or rays.shape != (2, k) or law.shape != (k,) or not self.steps:
            return False
        if not (rays <= LARGEST_RAY).all() or not (star.up + star.down >= 0).all():
            return False
        inside = ((kernel >= 0) & (kernel <= 1)).all() and ((law >= 0) & (law <= 1)).all()
        positive = kernel[kernel > 0]
        if not (inside and len(positive) and positive.min() >= LEAST_PROBABILITY):
            return False
        return (not self.stochastic or self._sums_to_one) and (not self.steady or self._stays)

    @property
    def _sums_to_one(self) -> bool:
        """Whether the rows sum to 1, up to rounding, and the weights are ones."""
        ones, error = np.ones(len(self.kernel)), self._error
        law = np.zeros_like(ones) if self.law is None else self.law
        return bool((law == 1).all() and (np.abs(self.kernel @ ones - 1) <= error).all())

    @property
    def _stays(self) -> bool:
        """Whether a step leaves the law as it is, up to rounding."""
        if self.law is None:
            return False
        moved = np.abs(self.kernel @ self.law - self.law)
        return bool((moved <= (self._error + self.law_slack) * self.law).all())

    @property
    def _error(self) -> float:
        """At least the relative error of a row, of a factor and of a sum of products."""
        return 4 * (len(self.kernel) + 16) * UNIT

    def upper(
        self,
        pairs: Integers,
        walks: Floats,
        *,
        enough: Floats | float = 0.0,
        close: float = 0.0,
    ) -> tuple[Floats, Integers, Integers]:
        """``[pair, n]``: at least the loss of each pair on a side of n entries.

        ``walks`` [pair, point] are the grids: log τ, with NaN for none; without a grid for each
        pair nothing is proven. A walk ends early where all
        further entries lose at most ``enough`` [pair], or ``close`` more than the last one. From
        there on the bound is that of all further entries. Also ``[pair, n]``: the cell of the grid
        in which the bound is attained, and ``[pair]``: how many entries were walked.
        """
        from takifugu.translation.certify.star_loops import all_bounds

        count, k, steps = len(pairs), len(self.kernel), self.steps
        upper = np.full((count, steps + 1), np.inf)
        cells = np.full((count, steps + 1), -1, dtype=np.int64)
        walked = np.zeros(count, dtype=np.int64)
        walks = np.asarray(walks, dtype=np.float64)
        if not self.usable or not count or walks.ndim != 2 or len(walks) != count:
            return upper, cells, walked
        kernel = np.ascontiguousarray(self.kernel, dtype=np.float64)
        side = TerminalSteps(
            kernel,
            Rays.of_star(self.star),
            np.ones(k) if self.law is None else np.ascontiguousarray(self.law, dtype=np.float64),
            steps,
            whole=self.length is not None and steps == self.length,
            known=self.known,
            unknown=self.law is None,
            stochastic=self.stochastic,
            steady=self.steady,
            slack=float(self.law_slack),
            close=float(close),
            error=self._error,
            floor=1e-230 / float(kernel[kernel > 0].min()),
        )
        grid = _checked_grid(walks)
        limits = np.broadcast_to(np.asarray(enough, dtype=np.float64), (count,)).copy()

        def work(begin: int, end: int) -> None:
            all_bounds(side, pairs, begin, end, grid, limits, upper, cells, walked)

        share_range(work, count, worthwhile=count * k**2 >= MIN_SHARED_WORK)
        for pair, n in enumerate(walked.tolist()):
            upper[pair, n:] = upper[pair, n]
            cells[pair, n:] = cells[pair, n]
        return np.where(np.isnan(upper), np.inf, upper), cells, walked


def _checked_grid(walks: Floats) -> Floats:
    """Rising points in range, then NaN: whatever was given."""
    inside = np.abs(walks) <= LARGEST_POINT
    grid: Floats = np.sort(np.where(inside, walks, np.nan), axis=1)  # NaN last
    return np.ascontiguousarray(grid)
