"""From a prior and the secrets to its influence curve."""

from takifugu.influence.attractive import attractive_curve
from takifugu.influence.binary_chain import binary_chain, printed_binary_curve
from takifugu.influence.chains import chain_curve, chains_curve
from takifugu.influence.curve import InfluenceCurve, Point, Splits
from takifugu.influence.explicit import Uncertainty, explicit_curve
from takifugu.influence.families import influence_curve
from takifugu.influence.gaussian import gaussian_curve
from takifugu.influence.interval_chains import interval_chain_curve
from takifugu.influence.presets import (
    Misspecified,
    dependent,
    group,
    misspecified,
    per_entry,
    uncertain,
    union,
)
from takifugu.influence.search import nearest_curve, network_curve, sampled_curve

__all__ = [
    "InfluenceCurve",
    "Misspecified",
    "Point",
    "Splits",
    "Uncertainty",
    "attractive_curve",
    "binary_chain",
    "chain_curve",
    "chains_curve",
    "dependent",
    "explicit_curve",
    "gaussian_curve",
    "group",
    "influence_curve",
    "interval_chain_curve",
    "misspecified",
    "nearest_curve",
    "network_curve",
    "per_entry",
    "printed_binary_curve",
    "sampled_curve",
    "uncertain",
    "union",
]
