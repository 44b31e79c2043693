r"""Lower bounds on ε and on ρ, the concentrated loss, from counts; with a stated confidence.

ρ-zCDP (Bun and Steinke, 2016) bounds the Rényi divergence of the outputs of two neighbours by αρ at
every order α > 1, both ways. What an event tells is no more than what the output tells: so, with p
and q the probabilities of the event under the two sides,

.. math:: \frac{1}{α − 1} \log\left(p^α q^{1−α} + (1−p)^α (1−q)^{1−α}\right) ≤ α ρ.

The left side grows with p and falls with q where p ≥ q. A lower bound on p and an upper bound on q
then give a lower bound on ρ, whatever the mechanism. No δ is involved.
"""

from dataclasses import dataclass
from math import exp, inf, log, log1p

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu._core.rounding import UNIT
from takifugu.errors import UnsoundRequest

SLACK = 1e-9  # relative; the inverse beta function is good to about 1e-13


@dataclass(frozen=True)
class Claim:
    """The guarantee that is claimed: (ε, δ), for all neighbours or secret pairs, both ways."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.epsilon < inf:  # also false for NaN
            raise UnsoundRequest(
                f"epsilon is {self.epsilon}; it must be 0 or more and finite",
                field="epsilon",
                given=self.epsilon,
            )
        if not 0 <= self.delta < 1:
            raise UnsoundRequest(
                f"delta is {self.delta}; it must be 0 or more and below 1",
                field="delta",
                given=self.delta,
            )


def checked_confidence(confidence: float) -> float:
    """The ``confidence``, if it is at least 0.5 and below 1."""
    if not 0.5 <= confidence < 1:
        raise UnsoundRequest(
            f"confidence is {confidence}; it must be at least 0.5 and below 1",
            field="confidence",
            given=confidence,
        )
    return confidence


def refuse_impossible(hits: ArrayLike, draws: ArrayLike) -> None:
    """Raise `UnsoundRequest` unless there are draws, and from 0 to as many hits."""
    counted = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(draws, dtype=float))
    k, n = (np.ravel(part) for part in counted)
    wrong = np.flatnonzero(~((n >= 1) & (n < inf) & (k >= 0) & (k <= n)))  # also those of NaN
    if wrong.size:
        at = wrong[0]
        raise UnsoundRequest(
            f"an event cannot have happened {k[at]:g} times in {n[at]:g} draws; needed are at least"
            " one draw, and from 0 to as many hits",
            field="hits" if n[at] >= 1 else "draws",
            given=float(k[at] if n[at] >= 1 else n[at]),
        )


def probability_below(hits: ArrayLike, draws: ArrayLike, *, error: float) -> Floats:
    """A lower bound on a probability (Clopper-Pearson); fails with probability ≤ ``error``."""
    from scipy.special import betaincinv

    k, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(draws, dtype=float))
    some = k > 0
    bound = betaincinv(np.where(some, k, 1.0), np.where(some, n - k + 1, 1.0), error)
    return np.asarray(np.where(some, bound * (1 - SLACK), 0.0))


def probability_above(hits: ArrayLike, draws: ArrayLike, *, error: float) -> Floats:
    """An upper bound on a probability; fails with probability ≤ ``error``."""
    from scipy.special import betainccinv

    k, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(draws, dtype=float))
    room = k < n
    bound = betainccinv(np.where(room, k + 1, 1.0), np.where(room, n - k, 1.0), error)
    wider = bound + SLACK * np.minimum(bound, 1 - bound) + 8 * UNIT * bound
    return np.asarray(np.where(room, np.minimum(wider, 1.0), 1.0))


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

    (ε, δ)-privacy means P(E) ≤ e^ε·P′(E) + δ, so ε ≥ log[(P(E) − δ)/P′(E)]. Half of the allowed
    error goes to a lower bound on P(E), half to an upper bound on P′(E). The event must not have
    been chosen by looking at these counts.
    """
    error = (1 - confidence) / 2
    refuse_impossible(hits, draws)
    refuse_impossible(other_hits, other_draws)
    low = probability_below(hits, draws, error=error) - delta
    high = probability_above(other_hits, other_draws, error=error)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log(low) - np.log(high) - SLACK
    return np.asarray(np.where(low > 0, np.maximum(bound, 0.0), 0.0))


def power(
    probability: float, other: float, claim: Claim, *, tests: int, confidence: float = 0.99
) -> float:
    """The probability that an event refutes ``claim``; a lower bound.

    ``probability`` and ``other`` are those of the event under the two sides, and ``tests`` outputs
    of either side are counted. For any cut c on the other side the audit fails to refute
    only when that count exceeds c or the first count misses what c requires; the best c is taken.
    """
    from scipy.stats import binom

    if not (0 <= probability <= 1 and 0 <= other <= 1):
        raise UnsoundRequest(
            "the probability of an event must be between 0 and 1", field="probability"
        )
    if tests < 1:
        raise UnsoundRequest(
            f"tests is {tests}; at least one output of either side must be counted",
            field="tests",
            given=tests,
        )
    checked_confidence(confidence)
    spread = np.sqrt(tests * other * (1 - other))
    around = np.concatenate([np.arange(40), tests * other + np.linspace(0, 9, 60) * spread])
    cuts = np.unique(np.clip(np.ceil(around), 0, tests))
    low, high = np.zeros(cuts.shape), np.full(cuts.shape, tests + 1.0)  # all hits may not do
    while (high - low > 1).any():  # the least first count that refutes, for every cut
        middle = np.floor((low + high) / 2)
        bound = epsilon_below(middle, tests, cuts, tests, delta=claim.delta, confidence=confidence)
        enough = bound > claim.epsilon
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    missed = binom.sf(cuts, tests, other) + binom.cdf(high - 1, tests, probability)
    return float(max(1 - missed.min() * (1 + 1e-6), 0.0))


def largest_finding(tests: int, *, confidence: float = 0.99) -> float:
    """The largest bound that ``tests`` outputs of either side can give: all hits against none."""
    sure = checked_confidence(confidence)
    return float(epsilon_below(tests, tests, 0, tests, confidence=sure))


ORDERS = (1.01, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0)


def rho_below(
    hits: int, draws: int, other_hits: int, other_draws: int, *, confidence: float
) -> float:
    """The least ρ that explains the counts of one event, with this confidence; at least 0.

    Half of the allowed error goes to a lower bound on the probability of the event on the first
    side, half to an upper bound on the second. The event must not have been chosen by looking at
    these counts.
    """
    error = (1 - checked_confidence(confidence)) / 2
    refuse_impossible(hits, draws)
    refuse_impossible(other_hits, other_draws)
    low = float(probability_below(hits, draws, error=error))
    high = float(probability_above(other_hits, other_draws, error=error))
    if low <= high:
        return 0.0
    ways = ((low, high), (high, low))
    found = max(renyi(p, q, order) / order for p, q in ways for order in ORDERS)
    return max(found * (1 - SLACK) - SLACK, 0.0)


def renyi(p: float, q: float, order: float) -> float:
    """The Rényi divergence of two coins that show heads with probability p and q.

    >>> round(renyi(0.75, 0.25, 2.0), 6)  # log(.75²/.25 + .25²/.75)
    0.847298
    """
    terms = (_term(p, q, order), _term(1 - p, 1 - q, order))
    largest = max(terms)
    if largest in (inf, -inf):
        return largest
    return (largest + log1p(exp(min(terms) - largest))) / (order - 1)


def _term(p: float, q: float, order: float) -> float:
    """log(p^α q^(1−α))."""
    if p == 0:
        return -inf
    if q == 0:
        return inf
    return order * log(p) + (1 - order) * log(q)
