"""From a prior and the secrets to its influence curve."""

from takifugu.influence.curve import InfluenceCurve, Point, Splits

__all__ = ["InfluenceCurve", "Point", "Splits"]
