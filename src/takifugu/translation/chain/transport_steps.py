r"""One step of the recursion for every ordered pair of rows: couplings, and what they prove.

For rows p, q and costs c the step is :math:`T(p,q,c) = \log\max_g E_p[g]/E_q[g]` over g > 0 with
:math:`g(u) \le e^{c(u,v)} g(v)`. A *flow* x(u, v) ≥ 0 on arcs proves an upper bound,

.. math:: T \le \log\max_u \Big[p(u) + \sum_w x(w,u)\,e^{c(w,u)} - \sum_v x(u,v)\Big]\Big/ q(u),

because with t the maximum, :math:`E_p g \le t E_q g + \sum x(u,v)[g(u) - e^{c(u,v)}g(v)]` and the
last sum is not positive. It is the coupling of theory with γ(u, v) = x(u, v) off the diagonal, but
needs neither the triangle inequality nor row sums, so it remains a proof when c or p changes.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from takifugu._rounding import UNIT
from takifugu.errors import TooLarge
from takifugu.numeric import Booleans, Floats

LARGE = 300.0  # a greater cost is not exponentiated: the step is then bounded by the cost itself
NUDGE = 1e-9  # relative perturbation of costs, so that no two trees tie
MOST_STATES = 256  # beyond it the couplings of all pairs would take gigabytes


@dataclass(frozen=True, eq=False)
class Couplings:
    """One sparse coupling for each ordered pair of rows: a tree of arcs with a mass on each.

    Attributes:
        parent: ``[x, y, v]``: the other end of v's arc; −1 at the root.
        leaves: ``[x, y, v]``: whether that arc goes from v to its parent, or the other way.
        order: ``[x, y, k]``: the states from the root down.
        mass: ``[x, y, v]``: how much moves along it.
    """

    parent: NDArray[np.int16]
    leaves: Booleans
    order: NDArray[np.int16]
    mass: Floats


def off_diagonal(size: int, value: float = 1.0) -> Floats:
    """``value`` between different states, 0 between a state and itself."""
    return np.where(np.eye(size) > 0, 0.0, value)  # no product: value may be infinite


def entry_cost(given: float | Floats, size: int) -> Floats:
    """``[u, v]``: what a change of one entry costs: a matrix, or ε for any change."""
    return off_diagonal(size, float(given)) if np.ndim(given) == 0 else np.asarray(given)


def closed(cost: Floats) -> Floats:
    """The shortest-path closure: no detour is cheaper; rounded up."""
    best = cost.copy()
    for w in range(len(best)):
        np.minimum(best, best[:, w, None] + best[None, w], out=best)
    np.fill_diagonal(best, 0.0)
    return best * (1 + 2 * len(best) * UNIT)


def gains(cost: Floats) -> Floats:
    """e^cost, rounded up, with 1 on the diagonal."""
    value: Floats = np.exp(cost) * (1 + 8 * UNIT)
    np.fill_diagonal(value, 1.0)
    return value


def improve(
    numerator: Floats,
    denominator: Floats,
    cost: Floats,
    *,
    guess: Floats,
    known: Couplings | None = None,
) -> tuple[Floats, Couplings]:
    """The best coupling of row x of ``numerator`` with row y of ``denominator``, all x ≠ y.

    ``cost`` is closed and at most `LARGE`. Returns log t for each pair, to about 1e-8 and rounded
    neither way (use `bound`), and the couplings. ``known`` couplings are where the search starts;
    without them it starts from ``guess`` [x, y], roughly log t.
    """
    from takifugu.translation.chain import tree_simplex as kernel

    n, m = numerator.shape
    if m > MOST_STATES:
        raise TooLarge(
            f"the transport bound of {m} states needs a coupling for each of {n * n} pairs; "
            f"merge states until there are at most {MOST_STATES}, or use the influence curve",
            field="states",
            size=m,
            limit=MOST_STATES,
        )
    apart = 0.5 + 0.5 * np.modf(np.arange(1, m * m + 1) * 0.6180339887498949)[0].reshape(m, m)
    top = float(cost.max(initial=0.0))
    nudged = cost + off_diagonal(m) * apart * max(NUDGE * top, 1e-12)  # still closed: ½+½ ≥ 1
    gain = np.exp(nudged)
    shape = (n, n, m)
    if known is None:
        parent, leaves = np.zeros(shape, dtype=np.int16), np.zeros(shape, dtype=np.bool_)
    else:
        parent, leaves = known.parent.copy(), known.leaves.copy()
    order = np.zeros(shape, dtype=np.int16)
    mass, value = np.zeros(shape), np.zeros((n, n))
    turned = np.ascontiguousarray(gain.T)
    above, below = _plain(numerator), _plain(denominator)
    start = _plain(np.minimum(guess, LARGE))

    def work(begin: int, end: int) -> None:
        kernel.improve(
            *(above, below, gain, turned, start, known is None, begin, end),
            *(parent, leaves, order, mass, value),
        )

    _share(work, n, m)
    return value, Couplings(parent, leaves, order, mass)


def bound(numerator: Floats, denominator: Floats, cost: Floats, couplings: Couplings) -> Floats:
    """``[x, y]``: the loss that the couplings prove under ``cost``: an upper bound, at least 0."""
    from takifugu.translation.chain import tree_simplex as kernel

    n, m = numerator.shape
    value, gain = np.zeros((n, n)), gains(cost)
    above, below = _plain(numerator), _plain(denominator)

    def work(begin: int, end: int) -> None:
        kernel.evaluate(
            *(above, below, gain, begin, end),
            *(couplings.parent, couplings.leaves, couplings.mass, value),
        )

    _share(work, n, m)
    return value


def follow(
    numerator: Floats, denominator: Floats, cost: Floats, couplings: Couplings, *, lower: bool
) -> Floats:
    """``[x, y]``: log t under ``cost`` if the trees of the couplings stayed the best ones.

    With ``lower`` the potentials of the trees are first made admissible (``cost`` must be closed);
    what they show is then a loss that happens, rounded down.
    """
    from takifugu.translation.chain import tree_simplex as kernel

    n, m = numerator.shape
    value, gain = np.zeros((n, n)), np.exp(cost)
    above, below = _plain(numerator), _plain(denominator)

    def work(begin: int, end: int) -> None:
        kernel.follow(
            *(above, below, gain, lower, begin, end),
            *(couplings.parent, couplings.leaves, couplings.order, value),
        )

    _share(work, n, m)
    return np.maximum(value - 8 * (m + 8) * UNIT * (1 + value), 0.0) if lower else value


def _plain(array: Floats) -> Floats:
    """One kind of array for the compiled loops: they are compiled anew for every other kind."""
    return np.require(array, dtype=np.float64, requirements=["C", "W"])


def _share(work: Callable[[int, int], None], rows: int, states: int) -> None:
    """Run ``work`` over the first rows, in threads when there is enough of it."""
    workers = min(os.cpu_count() or 1, rows)
    if rows * rows * states < 20_000 or workers == 1:
        work(0, rows)
        return
    cuts = np.linspace(0, rows, min(8 * workers, rows) + 1).astype(int)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, cuts[:-1].tolist(), cuts[1:].tolist()))
