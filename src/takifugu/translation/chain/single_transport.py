r"""One transport problem with gains: an upper and a lower bound, each with its proof.

For distributions p, q and costs c(u, v) ≥ 0, c(u, u) = 0, the least t for which some γ ≥ 0 has

.. math:: \sum_v γ(u,v) = p(u), \qquad \sum_u γ(u,v)\,e^{c(u,v)} \le t\,q(v)

is the largest ratio E_p[g] / E_q[g] over g > 0 with g(u) ≤ e^{c(u,v)} g(v) (LP duality). Every
feasible γ proves log t from above, every admissible g from below.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from takifugu._rounding import UNIT
from takifugu.errors import InvalidPrior, Malformed
from takifugu.numeric import Floats, Integers, distribution, frozen
from takifugu.translation.chain.steps import LARGE, bound, closed, follow, improve


@dataclass(frozen=True, eq=False)
class Transport:
    """The loss between two distributions under given costs.

    Attributes:
        upper: At least log t, proven by the arcs.
        lower: At most log t, proven by an admissible g.
        source: ``[k]``: where the mass of arc k comes from.
        sink: ``[k]``: where it goes.
        mass: ``[k]``: how much of p moves there; the rest of p stays where it is.
    """

    upper: float
    lower: float
    source: Integers
    sink: Integers
    mass: Floats


def transport(p: ArrayLike, q: ArrayLike, cost: ArrayLike) -> Transport:
    """Bound log t from both sides, to about 1e-8 of each other, by a dual simplex on trees."""
    above, below, costs = _checked(p, q, cost)
    rows = np.stack([above, below])
    if len(costs) == 1:
        none = np.zeros(0, dtype=np.int64)
        return Transport(_slack(1), 0.0, none, none, np.zeros(0))
    close = closed(costs)
    if not close.max() < LARGE:
        raise Malformed(
            "cost",
            given=f"reaches {close.max():g} after taking shortest paths",
            needed=f"stay below {LARGE:g}, for e^cost to be a float",
        )
    _, couplings = improve(rows, rows, close, guess=np.zeros((2, 2)), only_first=True)
    upper = float(bound(rows, rows, close, couplings)[0, 1]) + _slack(len(costs))
    lower = float(follow(rows, rows, close, couplings, lower=True)[0, 1]) - _slack(len(costs))
    used = np.flatnonzero(couplings.mass[0, 1] > 0)
    ends = couplings.parent[0, 1, used].astype(np.int64)
    leaves = couplings.leaves[0, 1, used]
    return Transport(
        upper,
        max(lower, 0.0),
        np.where(leaves, used, ends),
        np.where(leaves, ends, used),
        frozen(couplings.mass[0, 1, used]),
    )


def transport_lp(p: ArrayLike, q: ArrayLike, cost: ArrayLike) -> float:
    """The reference: log t by a general linear-programming solver (HiGHS), to about 1e-9.

    It rounds neither way and is slow: one variable for each of the m² moves.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, hstack

    above, below, costs = _checked(p, q, cost)
    m = len(costs)
    gain = np.exp(closed(costs))
    source, sink = np.divmod(np.arange(m * m), m)
    arriving = coo_array((gain.ravel(), (sink, np.arange(m * m))), shape=(m, m * m))
    leaving = coo_array((np.ones(m * m), (source, np.arange(m * m))), shape=(m, m * m))
    answer = linprog(
        np.r_[np.zeros(m * m), 1.0],
        A_ub=hstack([arriving, coo_array(-below[:, None])]),
        b_ub=np.zeros(m),
        A_eq=hstack([leaving, coo_array(np.zeros((m, 1)))]),
        b_eq=above,
        method="highs",
    )
    if not answer.success:
        raise ArithmeticError(f"the linear program was not solved: {answer.message}")
    return max(float(np.log(answer.x[-1])), 0.0)


def _checked(p: ArrayLike, q: ArrayLike, cost: ArrayLike) -> tuple[Floats, Floats, Floats]:
    above = distribution(p, "p", InvalidPrior)
    below = distribution(q, "q", InvalidPrior)
    costs = frozen(cost)
    m = above.size
    if above.ndim != 1 or below.shape != (m,) or costs.shape != (m, m):
        raise Malformed(
            "cost",
            given=f"has shape {costs.shape} beside rows of shapes {above.shape} and {below.shape}",
            needed="have one row and one column for each state of p and q",
        )
    if not (costs >= 0).all() or np.diag(costs).any():
        raise Malformed(
            "cost", given="has a negative or undefined entry", needed="be 0 or more, 0 to stay"
        )
    return above / above.sum(), below / below.sum(), costs


def _slack(states: int) -> float:
    """The rounding of two rows that were divided by their sums."""
    return 4 * (states + 8) * UNIT
