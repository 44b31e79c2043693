"""An influence curve as a translation of its own (the paper, Theorem 6)."""

from dataclasses import dataclass

from takifugu._core.fingerprint import ByContent
from takifugu.influence.curve import InfluenceCurve
from takifugu.translation.protocol import LossTranslation


@dataclass(frozen=True, eq=False)
class CurveTranslation(ByContent, LossTranslation):
    """What an influence curve says, and nothing else: no tighter method is tried.

    >>> curve = InfluenceCurve(exposed=[1, 3, 9], leak=[[2.0, 0.5, 0.0]], entries=9)
    >>> round(CurveTranslation(curve).to_pufferfish(0.1), 3)
    0.8
    """

    curve: InfluenceCurve

    def to_pufferfish(self, dp: float, /) -> float:
        """The loss by the curve, rounded up."""
        return float(self.curve.to_pufferfish(dp))

    def to_dp(self, pufferfish: float, /) -> float:
        """The largest per-entry loss within ``pufferfish`` by the curve, rounded down."""
        return float(self.curve.to_dp(pufferfish))
