"""The best couplings of a step, for every ordered pair of rows, in plain floats.

What they prove is computed by `takifugu.translation.certify.flow`.
"""

import numpy as np

from takifugu._core.compiled import share_range
from takifugu._core.numeric import Floats
from takifugu.errors import TooLarge
from takifugu.translation.certify.flow import (
    LARGE,
    Couplings,
    Step,
    off_diagonal,
    plain_floats,
)

NUDGE = 1e-9  # relative perturbation of costs, so that no two trees tie
MAX_STATES = 256  # beyond it the couplings of all pairs would take gigabytes
GOLDEN = 0.6180339887498949  # its multiples are spread evenly over 0 to 1, whatever their number


def nudges(size: int) -> Floats:
    """``[u, v]``: numbers from ½ to 1 that differ: costs remain closed if these are added."""
    fractions = np.modf(np.arange(1, size * size + 1) * GOLDEN)[0]
    found: Floats = 0.5 + 0.5 * fractions.reshape(size, size)
    return found


def solve_step(step: Step, *, guess: Floats, known: Couplings | None = None) -> Couplings | None:
    """The best couplings of a step; None if it is as dear as its dearest move in any case."""
    if not step.needs_flows:
        return None
    rows = step.numerator, step.denominator
    return improve(*rows, step.cost, guess=guess, known=known, crossed=step.crossed)[1]


def improve(
    numerator: Floats,
    denominator: Floats,
    cost: Floats,
    *,
    guess: Floats,
    known: Couplings | None = None,
    crossed: bool = False,
) -> tuple[Floats, Couplings]:
    """The best coupling of row x of ``numerator`` with row y of ``denominator``, all x ≠ y.

    ``crossed``, also for x = y. ``cost`` is closed and at most `LARGE`. Returns log t for each
    pair, to about 1e-8 and rounded neither way, and the couplings. ``known`` couplings are where
    the search starts; without them it starts from ``guess`` [x, y], roughly log t.
    """
    from takifugu.translation.search import tree_simplex as kernel

    n, m = numerator.shape
    if m > MAX_STATES:
        raise TooLarge(
            f"the transport bound of {m} states needs a coupling for each of {n * n} pairs; "
            f"merge states until there are at most {MAX_STATES}, or use the influence curve",
            field="states",
            size=m,
            limit=MAX_STATES,
        )
    top = float(cost.max(initial=0.0))
    nudged = cost + off_diagonal(m) * nudges(m) * max(NUDGE * top, 1e-12)  # still closed: ½+½ ≥ 1
    gain = np.exp(nudged)
    shape = (n, n, m)
    if known is None:
        parent, leaves = np.zeros(shape, dtype=np.int16), np.zeros(shape, dtype=np.bool_)
    else:
        parent, leaves = known.parent.copy(), known.leaves.copy()
    order = np.zeros(shape, dtype=np.int16)
    mass, value = np.zeros(shape), np.zeros((n, n))
    turned = np.ascontiguousarray(gain.T)
    above, below = plain_floats(numerator), plain_floats(denominator)
    start = plain_floats(np.minimum(guess, LARGE))

    def work(begin: int, end: int) -> None:
        kernel.improve(
            *(above, below, gain, turned, start, known is None, crossed, begin, end),
            *(parent, leaves, order, mass, value),
        )

    share_range(work, n, worthwhile=n * n * m >= 20_000)
    return value, Couplings(parent, leaves, order, mass)


def follow(numerator: Floats, denominator: Floats, cost: Floats, couplings: Couplings) -> Floats:
    """``[x, y]``: log t under ``cost`` if the trees of the couplings stayed the best ones."""
    from takifugu.translation.search import tree_simplex as kernel

    n, m = numerator.shape
    value, gain = np.zeros((n, n)), np.exp(cost)
    above, below = plain_floats(numerator), plain_floats(denominator)

    def work(begin: int, end: int) -> None:
        kernel.follow(
            *(above, below, gain, begin, end),
            *(couplings.parent, couplings.leaves, couplings.order, value),
        )

    share_range(work, n, worthwhile=n * n * m >= 20_000)
    return value
