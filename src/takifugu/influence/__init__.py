"""From a prior and the secrets to its influence curve."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.influence.chain.chain_curves import chain_curve
    from takifugu.influence.chain.interval_curves import interval_chain_curve
    from takifugu.influence.curve import InfluenceCurve, Point, Splits
    from takifugu.influence.explicit_curves import Uncertainty, explicit_curve
    from takifugu.influence.families import influence_curve
    from takifugu.influence.gaussian_curves import gaussian_curve
    from takifugu.influence.network.attractive_curves import attractive_curve
    from takifugu.influence.network.network_curves import (
        nearest_curve,
        network_curve,
        sampled_curve,
    )
    from takifugu.influence.presets import (
        dependent,
        group,
        per_entry,
        uncertain,
        union,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "chain.chain_curves": ("chain_curve",),
            "chain.interval_curves": ("interval_chain_curve",),
            "curve": ("InfluenceCurve", "Point", "Splits"),
            "explicit_curves": ("Uncertainty", "explicit_curve"),
            "families": ("influence_curve",),
            "gaussian_curves": ("gaussian_curve",),
            "network.attractive_curves": ("attractive_curve",),
            "network.network_curves": ("nearest_curve", "network_curve", "sampled_curve"),
            "presets": ("dependent", "group", "per_entry", "uncertain", "union"),
        },
    )

__all__ = [
    "InfluenceCurve",
    "Point",
    "Splits",
    "Uncertainty",
    "attractive_curve",
    "chain_curve",
    "dependent",
    "explicit_curve",
    "gaussian_curve",
    "group",
    "influence_curve",
    "interval_chain_curve",
    "nearest_curve",
    "network_curve",
    "per_entry",
    "sampled_curve",
    "uncertain",
    "union",
]
