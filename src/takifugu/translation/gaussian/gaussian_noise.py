r"""μ-GDP as (ε, δ), rounded the safe way.

μ-GDP is (ε, δ(ε)) for every ε ≥ 0, with
:math:`δ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)` (Dong, Roth & Su, 2022, Corollary 1).
"""

import math

from takifugu._rounding import UNIT
from takifugu.errors import UnsoundRequest

ROUNDS = 200  # of a bisection
FAR = -1e5  # Φ of it is below LEAST by far
MOST = 1e150  # a larger μ protects nothing
LEAST = 2.0**-1000  # a δ that is not 0 is never rounded below this


def gdp_delta(mu: float, epsilon: float) -> float:
    """A δ such that μ-GDP is (ε, δ)-DP, rounded up."""
    if not 0 <= epsilon < math.inf:  # also false for NaN
        raise UnsoundRequest(
            f"epsilon is {epsilon}; it must be 0 or more, and finite", field="epsilon"
        )
    _check(mu)
    if mu == 0:
        return 0.0
    if not mu < MOST:
        return 1.0
    ahead, behind = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    if ahead < FAR:
        return LEAST
    from scipy.special import log_ndtr

    first, second = float(log_ndtr(ahead)), float(log_ndtr(behind)) + epsilon
    # the ends are off by a few units of their size, which moves log Φ by about that times the end
    off = 64 * UNIT * (1 + ahead * ahead + behind * behind + epsilon)
    value = math.exp(first) * (1 + off) - math.exp(second) * (1 - off)
    return min(max(value * (1 + 8 * UNIT), LEAST), 1.0)


def gdp_epsilon(mu: float, delta: float) -> float:
    """An ε such that μ-GDP is (ε, δ)-DP, rounded up; to a relative 1e-12."""
    if not 0 < delta < 1:  # also false for NaN
        raise UnsoundRequest(
            f"delta is {delta}; it must be above 0 and below 1", field="delta", given=delta
        )
    _check(mu)
    if mu == 0:
        return 0.0
    if not mu < MOST:
        return math.inf
    if gdp_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2 + mu
    while gdp_delta(mu, high) > delta:
        low, high = high, 2 * high
        if not high < 1e300:
            return math.inf
    for _ in range(ROUNDS):
        if high - low <= 1e-12 * high:
            break
        middle = (low + high) / 2
        if gdp_delta(mu, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _check(mu: float) -> None:
    if not mu >= 0:  # also false for NaN
        raise UnsoundRequest(f"mu is {mu}; it must be 0 or more", field="mu", given=mu)
