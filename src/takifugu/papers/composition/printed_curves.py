"""Influence curves as the paper prints them: binary chains in closed form, mis-specified curves."""

from dataclasses import dataclass

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT, up
from takifugu.errors import InvalidPrior, UnsoundRequest
from takifugu.influence.curve import InfluenceCurve
from takifugu.priors.markov import MarkovChain


def binary_chain(stay_0: float, stay_1: float, *, length: int | None = None) -> MarkovChain:
    """The stationary chain that stays at 0 with probability ``stay_0``, at 1 with ``stay_1``."""
    table = np.array([[stay_0, 1 - stay_0], [1 - stay_1, stay_1]])
    return MarkovChain(table, length=length)


def printed_binary_curve(
    stay_0: float, stay_1: float, *, max_exposed: int, length: int | None = None
) -> InfluenceCurve:
    r"""The paper's closed form, as printed: an upper bound, not always tight.

    With :math:`\lambda = p + q - 1`, :math:`\pi_0 = (1-q)/(2-p-q)`, the middle split
    :math:`d_L = \lfloor (b+1)/2 \rfloor, d_R = \lceil (b+1)/2 \rceil` and s = 0 if q > p, else 1,

    .. math:: a(b) = \sum_{d \in \{d_L, d_R\}}
              \Big|\log\frac{\pi_s + \lambda^d (1-\pi_s)}{\pi_s - \lambda^d \pi_s}\Big|.

    It is the leak of one split, hence an upper bound, as each side's largest absolute log-ratio is
    at s. It is tight, in the paper's reading of a pair, for λ ≥ 0 and b small against the length.
    For λ < 0 it is not: with b even the two sides need different values ((.1, .3), b = 2: 2.77259
    against 2.63906), and with b odd another split may be better ((.01, .39), b = 5: 1.25442
    against 1.23611). Near the ends of a chain one-sided splits win. See `chain_curve` for the
    true curve.
    """
    for field, value in (("stay_0", stay_0), ("stay_1", stay_1)):
        if not 0 < value < 1:  # also false for NaN
            raise InvalidPrior(field, given=f"is {value}", needed="be above 0 and below 1")
    if max_exposed < 1 or (length is not None and max_exposed > length):
        raise UnsoundRequest(
            f"max_exposed is {max_exposed}; it must be from 1 to the length",
            field="max_exposed",
            given=max_exposed,
            needed=length,
        )
    exposed = np.arange(1, max_exposed + 1, dtype=np.int64)
    leak = up(
        _printed(stay_0, stay_1, (exposed + 1) // 2) + _printed(stay_0, stay_1, exposed // 2 + 1)
    )
    if length == max_exposed:
        leak[-1] = 0.0
    return InfluenceCurve(exposed, leak[None], length, ("0 / 1, both ways",), exact=np.array(False))


def _printed(p: float, q: float, distance: Integers) -> Floats:
    """One side of the printed formula, rounded up; 1 ± t is formed without cancellation."""
    here = (1 - q) / (2 - p - q) if q > p else (1 - p) / (2 - p - q)
    step: Floats = np.power(p - (1 - q), distance.astype(np.float64))
    other = (1 - p) / (2 - p - q) if q > p else (1 - q) / (2 - p - q)
    inner = step * other / here
    value = np.abs(np.log1p(inner) - np.log1p(-step))
    # λ is off by a unit roundoff, hence λ^d by at most d of them; then by the slope of each log
    slope = (1 + other / here) / np.minimum(1 + inner, 1.0) + 1 / (1 - np.abs(step))
    found: Floats = value + UNIT * (8 * value + (8 + 4 * distance) * slope)
    return found


@dataclass(frozen=True)
class Misspecified:
    """What a guarantee is worth when one curve was assumed and another one holds (§6.3.3).

    Attributes:
        dp: The per-entry loss that was calibrated by the assumed curve.
        achieved: The Pufferfish loss that this has under the curve that holds.
        bound: The paper's bound on it, ε + a₂(b*) − a₁(b*), where b* calibrated ``dp``.
    """

    dp: float
    achieved: float
    bound: float


def misspecified(assumed: InfluenceCurve, actual: InfluenceCurve, epsilon: float) -> Misspecified:
    """Calibrate to ``epsilon`` by the pooled ``assumed`` curve, then ask the ``actual`` one."""
    pooled = InfluenceCurve(assumed.exposed, assumed.pooled()[None, :], assumed.entries)
    dp = float(pooled.to_dp(epsilon))
    if dp == 0:
        raise UnsoundRequest(
            f"the assumed curve allows no loss at ε = {epsilon}", field="epsilon", given=epsilon
        )
    room = (epsilon - assumed.pooled()) / assumed.exposed
    best = int(np.argmax(room))
    at = int(np.searchsorted(actual.exposed, assumed.exposed[best], side="right")) - 1
    holds = float(actual.pooled()[at]) if at >= 0 else float("inf")
    bound = float(up(epsilon + holds - float(assumed.pooled()[best])))
    return Misspecified(dp, float(actual.to_pufferfish(dp)), bound)
