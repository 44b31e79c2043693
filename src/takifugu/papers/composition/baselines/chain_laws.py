"""What the baselines on a Markov chain share: checked arguments, laws over time, group DP."""

from collections.abc import Iterator
from itertools import repeat
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats, distribution, frozen
from takifugu._core.rounding import down
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.rounded_ratios import LogProduct, products
from takifugu.translation.certify.laws import recurrent_law


def group_to_dp(length: int, epsilon: float) -> float:
    """Group DP: all ``length`` entries may follow from one, so each gets an equal share."""
    check_request(length, epsilon)
    return float(down(epsilon / length))


def stationary(transition: ArrayLike) -> Floats:
    """The stationary law of a chain that allows every state again and again."""
    return frozen(recurrent_law(np.array(square(transition))))


def laws_over_time(start: Floats, error: float, P: Floats) -> Iterator[LogProduct]:
    """The law of each entry, in logarithms: what is possible is never lost to underflow."""
    return products(start[None], error, repeat(P), 0.0)


def stationary_terms(states: int) -> int:
    """Operations behind an entry of the stationary law, and of a quotient of two."""
    return 8 * states**3 + 24 * states**2


def check_request(length: int, epsilon: float) -> None:
    """Refuse a length below 1 and a loss that is not positive and finite."""
    if length < 1:
        raise InvalidPrior("length", given=f"is {length}", needed="be 1 or more")
    if not 0 < epsilon < inf:  # also false for NaN
        raise UnsoundRequest(
            f"epsilon is {epsilon}; it must be positive and finite", field="epsilon", given=epsilon
        )


def square(transition: ArrayLike) -> Floats:
    """A transition matrix, checked."""
    P = distribution(transition, "transition", InvalidPrior)
    if P.ndim != 2 or P.shape[0] != P.shape[1]:
        raise InvalidPrior("transition", given=f"has shape {P.shape}", needed="be square")
    return P


def initial_law(start: ArrayLike, P: Floats) -> Floats:
    """The law of the first entry, checked against the states of ``P``."""
    law = distribution(start, "start", InvalidPrior)
    if law.shape != (len(P),):
        raise InvalidPrior(
            "start", given=f"has shape {law.shape}", needed=f"hold one number for {len(P)} states"
        )
    return law
