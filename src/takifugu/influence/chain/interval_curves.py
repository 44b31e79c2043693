r"""Curves of chains whose transitions are known only within bounds: upper bounds for all of them.

For the set of `IntervalMarkovChain`, every step may use another matrix. Write
:math:`M_d(x,z) = P(X_{i+d}=z \mid X_i=x)` under some member.

* *How likely.* The largest and smallest :math:`M_d(x,z)` follow from those of d − 1 by choosing
  the best row of the box that sums to 1 (a fractional knapsack); they are attained.
* *How different.* :math:`M_d(x,z) = \sum_k r_x(k)\,u(k)` with the first row :math:`r_x` from its
  box and :math:`u = M_{d-1}(\cdot,z)`, shared by all x. If no two values of u differ by more than
  a factor :math:`e^\alpha`, then :math:`\sum r_x u / \sum r_y u` is largest at a u of two values:

  .. math:: \max_A \frac{1 + (e^\alpha-1)\,\overline{r}_x(A)}{1 + (e^\alpha-1)\,\underline{r}_y(A)},
            \quad \overline{r}_x(A) = \min\{h_x(A),\, 1 - l_x(A^c)\},

  (for exact rows the recursion of Cao et al., ICDE 2017). Dropping either part of each minimum
  leaves an upper bound, whose best A is a prefix in the order of the ratios.

The right term is the smaller of the two bounds. Left of the entry, P(l | x)/P(l | y) is
:math:`[M_d(l,x)/M_d(l,y)]\cdot[P(y)/P(x)]`, and P(y)/P(x) is a mixture over the entry D ≤ i steps
before, hence at most :math:`\max_k M_D(k,y)/M_D(k,x)`, whatever the start. A chain that has been
running for ever allows every D, any other only D ≤ d. Also, with the spread α of d steps,
P(x | l)/P(x) and P(y)/P(y | l) are each at most :math:`e^\alpha`: the left term is at most 2α.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import TooLarge
from takifugu.influence.chain.splitting import (
    ALL_SECRETS,
    CurveRequest,
    EntryLeaks,
    PairLeaks,
    Pairs,
    assemble,
    curve_request,
)
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.rounded_ratios import (
    IntervalStep,
    interval_past_up,
    interval_powers,
    largest_ratios,
    turned,
)
from takifugu.priors.interval_chain import IntervalMarkovChain
from takifugu.priors.secrets import Secrets

MIN_STATIONARY_STEPS = 30  # back over which the stationary odds of two values are bounded
MAX_STATES = 128  # the orders of all pairs of rows are kept: n³ numbers, eight times


def interval_chain_curve(
    chain: IntervalMarkovChain,
    secrets: Secrets = ALL_SECRETS,
    *,
    max_exposed: int | None = None,
) -> InfluenceCurve:
    """An upper bound on the influence curve of every chain in the set.

    A group of values leaks at most as much as its worst pair of values, for each split.

    >>> chain = IntervalMarkovChain([[0.75, 0.15], [0.15, 0.75]], [[0.85, 0.25], [0.25, 0.85]])
    >>> interval_chain_curve(chain, max_exposed=3).leak[0].round(3)
    array([5.204, 3.879, 3.165])
    """
    request = curve_request(
        chain.states,
        chain.length,
        secrets,
        max_exposed=max_exposed,
        symmetric=False,
        by_entry=None,
    )
    if len(chain.states) > MAX_STATES:
        raise TooLarge(
            f"{len(chain.states)} states with intervals; at most {MAX_STATES} fit. Merge states,"
            " or give a list of chains",
            field="states",
            size=len(chain.states),
            limit=MAX_STATES,
        )
    before, after = _terms(chain, request.most)
    length, most = chain.length, request.most
    entries = request.entries
    if entries is None and length is not None and length <= 2 * most:
        entries = tuple(range(length))
    inside = entries is None or any(
        i >= most and (length is None or length - 1 - i >= most) for i in entries
    )
    if inside:
        return assemble(request, [_entry_parts(request, f"{most}+", (None, None), before, after)])
    entry_leaks = []
    for i in entries or ():
        reach = (i, None if length is None else length - 1 - i)
        entry_leaks.append(_entry_parts(request, str(i), reach, before, after))
    return assemble(request, entry_leaks)


@dataclass(frozen=True)
class _WorstMembers(EntryLeaks):
    """Groups of values, bounded by their worst members."""

    pairs: Pairs
    before: Sequence[Floats]  # [distance - 1][x, y]
    after: Sequence[Floats]

    def leaks(self, left: int, rights: range) -> Iterator[Floats]:
        """See `EntryLeaks`."""
        past = np.zeros_like(self.before[0])
        if self.reach[0] is None or left <= self.reach[0]:
            past = self.before[left - 1]
        for right in rights:
            seen = self.reach[1] is None or right <= self.reach[1]
            total = past + self.after[right - 1] if seen else past
            yield np.array([total[np.ix_(a, b)].max() for a, b in self.pairs])


def _entry_parts(
    request: CurveRequest,
    entry: str,
    reach: tuple[int | None, int | None],
    before: Sequence[Floats],
    after: Sequence[Floats],
) -> list[EntryLeaks]:
    parts: list[EntryLeaks] = []
    if request.single:
        x, y = request.left, request.right
        keep, exact = np.ones(len(x), dtype=bool), np.zeros(len(x), dtype=bool)
        past, future = ([table[x, y] for table in tables] for tables in (before, after))
        parts.append(PairLeaks(entry, reach, keep, exact, past, future, np.zeros(len(x))))
    if request.grouped:
        n = len(request.grouped)
        keep, exact = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        parts.append(_WorstMembers(entry, reach, keep, exact, request.grouped, before, after))
    return parts


def _terms(chain: IntervalMarkovChain, far: int) -> tuple[list[Floats], list[Floats]]:
    """``[distance - 1][x, y]``: bounds on what is seen to the left, and to the right."""
    n = len(chain.states)
    x, y = (grid.ravel() for grid in np.indices((n, n)))
    step_spread = IntervalStep(chain.lower, chain.upper)
    before: list[Floats] = []
    after: list[Floats] = []
    sides: list[Floats] = []  # [distance - 1][x, y]: max over l of log M(l, x) / M(l, y)
    alphas: list[float] = []
    for step, (most, least) in enumerate(
        interval_powers(chain.lower, chain.upper, max(far, MIN_STATIONARY_STEPS))
    ):
        sides.append(largest_ratios(turned(most), x, y, turned(least)).reshape(n, n))
        if step >= far:
            continue
        ahead = largest_ratios(most, x, y, least).reshape(n, n)
        if after:
            ahead = np.minimum(ahead, after[-1])  # what is further away leaks no more
            if alphas[-1] < 500:
                ahead = np.minimum(ahead, step_spread.after(alphas[-1]))
        after.append(np.maximum(ahead, 0.0))
        np.fill_diagonal(after[-1], 0.0)
        alphas.append(float(after[-1].max()))
    whole = np.minimum.reduce(sides)
    odds = np.full((n, n), np.inf)
    for side, alpha in zip(sides[:far], alphas, strict=True):
        odds = whole if chain.start == "stationary" else np.minimum(odds, side)
        past = interval_past_up(side, odds.T, alpha)
        before.append(np.minimum(past, before[-1]) if before else past)
    return before, after
