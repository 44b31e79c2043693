"""Wilson's interval by its meaning: the chances that a score test would not reject."""

from scipy.optimize import brentq
from scipy.stats import norm


def wilson_by_search(hits: int, tries: int, confidence: float = 0.95) -> tuple[float, float]:
    """The least and largest probability that is, standardised, not too far from the rate."""
    z = float(norm.ppf(0.5 + confidence / 2))
    rate = hits / tries

    def distance(probability: float) -> float:
        return (rate - probability) ** 2 * tries - z * z * probability * (1 - probability)

    tiny, near = 1e-15, 1 - 1e-6
    below, above = rate * near, 1 - (1 - rate) * near
    low = 0.0 if hits == 0 else float(brentq(distance, tiny, below, xtol=1e-15))
    high = 1.0 if hits == tries else float(brentq(distance, above, 1 - tiny, xtol=1e-15))
    return low, high
