"""The paper's translation by the influence curve, as printed and as it should be.

`InfluenceCurve.to_pufferfish` and `InfluenceCurve.to_dp` are Theorem 6 in both directions.
Here are the calibration of Algorithms 1 and 2, and composition by Theorem 7 and by the sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np

from takifugu._core.rounding import down, up
from takifugu.errors import UnsoundRequest
from takifugu.influence.curve import InfluenceCurve


def calibrate(curve: InfluenceCurve, epsilon: float, *, paper: bool = False) -> float:
    """The per-entry loss that a Pufferfish loss of ``epsilon`` allows, rounded down.

    Right: for each secret pair the best point of its curve, then the least over the pairs.
    ``paper=True`` is lines 1–9 of Algorithms 1 and 2 as printed: the least over *all* points,
    with ε/|I| wherever a ≥ ε. Fed with a curve, whose last point is (|I|, 0), that is never more
    than group DP: it is kept to show the difference.
    """
    if not 0 < epsilon < np.inf:  # also false for NaN
        raise UnsoundRequest(
            f"epsilon is {epsilon}; it must be positive and finite", field="epsilon", given=epsilon
        )
    if not paper:
        return float(curve.to_dp(epsilon))
    if curve.entries is None:
        raise UnsoundRequest(
            "the printed algorithm divides by |I|, and this curve is unbounded", field="curve"
        )
    room = (epsilon - curve.leak) / curve.exposed
    printed = np.where(curve.leak >= epsilon, epsilon / curve.entries, room)
    return float(down(printed.min()))


@dataclass(frozen=True)
class CurveComposition:
    """The Pufferfish loss of several releases on the same entries, three ways; upper bounds.

    Attributes:
        by_sum: The per-entry losses added, the sum translated once: the value to use.
        by_theorem_7: max a + Σ(ε − a) over the points used to calibrate each release.
        by_adding: Σ ε, what plain linear composition would say.
    """

    by_sum: float
    by_theorem_7: float
    by_adding: float


def compose_by_curve(curve: InfluenceCurve, epsilons: Sequence[float]) -> CurveComposition:
    """Releases calibrated one by one to Pufferfish losses ``epsilons`` by the pooled curve."""
    if not len(epsilons) or not all(0 < e < np.inf for e in epsilons):
        raise UnsoundRequest("every release needs a positive, finite epsilon", field="epsilons")
    pooled = curve.pooled()
    spent, leaks = [], []
    for epsilon in epsilons:
        room = np.where(pooled < epsilon, (epsilon - pooled) / curve.exposed, 0.0)
        best = int(np.argmax(room))
        if room[best] <= 0:
            raise UnsoundRequest(
                f"no point of the curve leaks less than ε = {epsilon}",
                field="curve",
                given=epsilon,
            )
        spent.append(float(room[best]))
        leaks.append(float(pooled[best]))
    by_theorem_7 = max(leaks) + fsum(e - a for e, a in zip(epsilons, leaks, strict=True))
    return CurveComposition(
        by_sum=float(curve.to_pufferfish(up(fsum(spent)))),
        by_theorem_7=float(up(by_theorem_7)),
        by_adding=float(up(fsum(epsilons))),
    )
