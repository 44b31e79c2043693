"""Laws and backward kernels of a chain, with a bound on what rounding did to them."""

import numpy as np
from numpy.typing import ArrayLike

from takifugu.errors import InvalidPrior
from takifugu.numeric import UNIT, Booleans, Floats, distribution


def transition_rows(transition: ArrayLike, field: str = "transition") -> Floats:
    """A square matrix of distributions, each divided by its sum."""
    rows = distribution(transition, field, InvalidPrior)
    if rows.ndim != 2 or rows.shape[0] != rows.shape[1]:
        raise InvalidPrior(field, given=f"has shape {rows.shape}", needed="be square")
    return np.ascontiguousarray(rows / rows.sum(axis=1, keepdims=True))


def row_slack(states: int) -> float:
    """What dividing two rows by their sums can do to a log-ratio of expectations under them."""
    return 4 * (states + 8) * UNIT


def law_slack(states: int) -> float:
    """The same for backward rows made with `stationary_law`.

    Elimination without subtraction keeps every entry of the law to a relative error of about
    2m³ units (O'Cinneide, Numerische Mathematik 65, 1993); a backward row divides two of them.
    """
    return 16 * (states + 2) ** 3 * UNIT


def stationary_law(rows: Floats) -> Floats:
    """The law that ``rows`` leave unchanged (Grassmann, Taksar & Heyman: nothing is subtracted)."""
    size = len(rows)
    reach = rows > 0
    for w in range(size):
        reach = reach | (reach[:, w, None] & reach[None, w])
    if size > 1 and not reach.all():
        raise InvalidPrior(
            "transition",
            given="does not lead from every state to every other one",
            needed="do so for a chain at rest; give `start` if it begins somewhere",
        )
    work = rows.copy()
    for n in range(size - 1, 0, -1):
        work[:n, n] /= work[n, :n].sum()
        work[:n, :n] += np.outer(work[:n, n], work[n, :n])
    law = np.zeros(size)
    law[0] = 1.0
    for n in range(1, size):
        law[n] = law[:n] @ work[:n, n]
    return law / law.sum()


def backward_rows(rows: Floats, before: Floats, after: Floats) -> tuple[Floats, Booleans]:
    """``[x, u]``: P(u was before | x is now), and which x can happen at all.

    Where x cannot happen the row is the law before: any row would do, for no pair asks for it.
    """
    possible = after > 0
    joint = before[:, None] * rows  # [u, x]
    totals = joint.sum(axis=0)
    back = np.where(possible[:, None], joint.T / np.where(possible, totals, 1.0)[:, None], before)
    return np.ascontiguousarray(back), possible
