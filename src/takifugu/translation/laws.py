"""Laws and backward kernels of a chain, with a bound on what rounding did to them."""

import numpy as np
from numpy.typing import ArrayLike

from takifugu.errors import InvalidPrior
from takifugu.numeric import UNIT, Booleans, Floats, distribution
from takifugu.priors.stationary import reachable
from takifugu.priors.stationary import stationary_law as law_at_rest


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

    Every entry of the law has a relative error of at most m²(m + 4) + 2m(m + 1) units (see
    `takifugu.priors.stationary`); a backward row divides two of them.
    """
    return 16 * (states + 2) ** 3 * UNIT


def stationary_law(rows: Floats) -> Floats:
    """The law that ``rows`` leave unchanged, for a chain that allows every state again and again.

    Its relative error is far below `law_slack`: rows are within (m + 1) units of what they were.
    """
    if not reachable(rows > 0).all():
        raise InvalidPrior(
            "transition",
            given="does not lead from every state to every other one",
            needed="do so for a chain at rest; give `start` if it begins somewhere",
        )
    return law_at_rest(rows, entry_error=(len(rows) + 1) * UNIT)[0]


def backward_rows(rows: Floats, before: Floats, after: Floats) -> tuple[Floats, Booleans]:
    """``[x, u]``: P(u was before | x is now), and which x can happen at all.

    Where x cannot happen the row is the law before: any row would do, for no pair asks for it.
    """
    possible = after > 0
    joint = before[:, None] * rows  # [u, x]
    totals = joint.sum(axis=0)
    back = np.where(possible[:, None], joint.T / np.where(possible, totals, 1.0)[:, None], before)
    return np.ascontiguousarray(back), possible
