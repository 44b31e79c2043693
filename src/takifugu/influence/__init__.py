"""From a prior and the secrets to its influence curve."""

from typing import TYPE_CHECKING

from takifugu._core.lazy import lazy_names

if TYPE_CHECKING:
    from takifugu.influence.chain.chain_curves import chain_curve as chain_curve
    from takifugu.influence.chain.interval_curves import (
        interval_chain_curve as interval_chain_curve,
    )
    from takifugu.influence.curve import InfluenceCurve as InfluenceCurve
    from takifugu.influence.curve import Point as Point
    from takifugu.influence.curve import Splits as Splits
    from takifugu.influence.explicit_curves import Uncertainty as Uncertainty
    from takifugu.influence.explicit_curves import explicit_curve as explicit_curve
    from takifugu.influence.families import influence_curve as influence_curve
    from takifugu.influence.gaussian_curves import gaussian_curve as gaussian_curve
    from takifugu.influence.network.attractive_curves import attractive_curve as attractive_curve
    from takifugu.influence.network.network_curves import nearest_curve as nearest_curve
    from takifugu.influence.network.network_curves import network_curve as network_curve
    from takifugu.influence.presets import dependent as dependent
    from takifugu.influence.presets import group as group
    from takifugu.influence.presets import per_entry as per_entry
    from takifugu.influence.presets import uncertain as uncertain
    from takifugu.influence.presets import union as union
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
