r"""A lower bound on ρ, the concentrated loss, from counts of one event.

ρ-zCDP (Bun and Steinke, 2016) bounds the Rényi divergence of the outputs of two neighbours by αρ at
every order α > 1, both ways. What an event tells is no more than what the output tells: so, with p
and q the probabilities of the event under the two sides,

.. math:: \frac{1}{α − 1} \log\left(p^α q^{1−α} + (1−p)^α (1−q)^{1−α}\right) ≤ α ρ.

The left side grows with p and falls with q where p ≥ q. A lower bound on p and an upper bound on q
then give a lower bound on ρ, whatever the mechanism. No δ is involved.
"""

from math import exp, inf, log, log1p

from takifugu.auditing.epsilon_bounds import (
    SLACK,
    checked_confidence,
    probability_above,
    probability_below,
    refuse_impossible,
)

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
