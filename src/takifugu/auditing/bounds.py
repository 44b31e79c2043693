"""From counts to a lower bound on ε that holds with a stated confidence."""

from dataclasses import dataclass
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike

from takifugu.errors import UnsoundRequest
from takifugu.numeric import Floats

SLACK = 1e-9  # relative; the inverse beta function is good to about 1e-13


@dataclass(frozen=True)
class Claim:
    """What a mechanism says of itself: (ε, δ), for every neighbour or secret pair, both ways."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < inf:  # also false for NaN
            raise UnsoundRequest(f"epsilon is {self.epsilon}; it must be 0 or more and finite")
        if not 0 <= self.delta < 1:
            raise UnsoundRequest(f"delta is {self.delta}; it must be 0 or more and below 1")


def checked_confidence(confidence: float) -> float:
    """The ``confidence`` itself, if it is one."""
    if not 0.5 <= confidence < 1:
        raise UnsoundRequest(f"confidence is {confidence}; it must be at least 0.5 and below 1")
    return confidence


def chance_below(hits: ArrayLike, draws: ArrayLike, *, error: float) -> Floats:
    """A lower bound on a chance, wrong with probability at most ``error`` (Clopper and Pearson)."""
    from scipy.special import betaincinv

    k, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(draws, dtype=float))
    some = k > 0
    bound = betaincinv(np.where(some, k, 1.0), np.where(some, n - k + 1, 1.0), error)
    return np.asarray(np.where(some, bound * (1 - SLACK), 0.0))


def chance_above(hits: ArrayLike, draws: ArrayLike, *, error: float) -> Floats:
    """An upper bound on a chance, wrong with probability at most ``error``."""
    from scipy.special import betainccinv

    k, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(draws, dtype=float))
    room = k < n
    bound = betainccinv(np.where(room, k + 1, 1.0), np.where(room, n - k, 1.0), error)
    return np.asarray(np.where(room, np.minimum(bound * (1 + SLACK), 1.0), 1.0))


def epsilon_below(
    hits: ArrayLike,
    draws: ArrayLike,
    other_hits: ArrayLike,
    other_draws: ArrayLike,
    *,
    delta: float = 0.0,
    confidence: float,
) -> Floats:
    """The least ε that explains the counts of one event, with this confidence; at least 0.

    (ε, δ)-privacy says P(E) ≤ e^ε·P′(E) + δ, so ε ≥ log[(P(E) − δ)/P′(E)]. Half of the allowed
    error goes to a lower bound on P(E), half to an upper bound on P′(E). The event must not have
    been chosen by looking at these counts.
    """
    error = (1 - confidence) / 2
    low = chance_below(hits, draws, error=error) - delta
    high = chance_above(other_hits, other_draws, error=error)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log(low) - np.log(high) - SLACK
    return np.asarray(np.where(low > 0, np.maximum(bound, 0.0), 0.0))


def power(
    chance: float, other: float, claim: Claim, *, tests: int, confidence: float = 0.99
) -> float:
    """The chance that an event refutes ``claim``; a lower bound.

    ``chance`` and ``other`` are the true chances of the event under the two sides, and ``tests``
    outputs of either side are counted. For any cut c on the other side the audit refutes when
    that count is at most c and the first count passes what c requires; the best c is taken.
    """
    from scipy.stats import binom

    if not (0 <= chance <= 1 and 0 <= other <= 1):
        raise UnsoundRequest("the chance of an event must be between 0 and 1")
    if tests < 1:
        raise UnsoundRequest(f"tests is {tests}; at least one output a side must be counted")
    error = (1 - checked_confidence(confidence)) / 2
    cuts = np.unique(binom.isf(np.logspace(-15, -0.01, 200), tests, other))
    high = chance_above(cuts, np.full(cuts.shape, tests), error=error)
    needed = (exp(claim.epsilon) * high + claim.delta) * (1 + 10 * SLACK)
    cuts, needed = cuts[needed < 1], needed[needed < 1]
    if not cuts.size:
        return 0.0
    passing = binom.isf(error, tests, needed) + 2
    found = binom.cdf(cuts, tests, other) * binom.sf(passing - 1, tests, chance)
    return float(max(found.max() * (1 - SLACK), 0.0))


def largest_finding(tests: int, *, confidence: float = 0.99) -> float:
    """The largest ε that ``tests`` outputs a side can show at all: every hit against none."""
    sure = checked_confidence(confidence)
    return float(epsilon_below(tests, tests, 0, tests, confidence=sure))
