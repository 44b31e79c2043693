"""Wilson's interval by its meaning: the chances that a score test would not reject."""

from scipy.optimize import brentq
from scipy.stats import norm


def wilson_by_search(hits: int, tries: int, confidence: float = 0.95) -> tuple[float, float]:
    """The least and largest chance whose standardised distance to the rate is not too large."""
    z = float(norm.ppf(0.5 + confidence / 2))
    rate = hits / tries

    def distance(chance: float) -> float:
        return (rate - chance) ** 2 * tries - z * z * chance * (1 - chance)

    tiny, near = 1e-15, 1 - 1e-6
    below, above = rate * near, 1 - (1 - rate) * near
    low = 0.0 if hits == 0 else float(brentq(distance, tiny, below, xtol=1e-15))
    high = 1.0 if hits == tries else float(brentq(distance, above, 1 - tiny, xtol=1e-15))
    return low, high
