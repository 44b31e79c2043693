"""Losses of fields, and how far log odds rise by pinning, in one call."""

from collections.abc import Sequence

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.priors.networks import NetworkPrior
from takifugu.priors.secrets import Secrets
from takifugu.translation.certify.fields import PairwiseField, RisingField
from takifugu.translation.entry_costs import EntrySpending
from takifugu.translation.models.tree import NetworkLosses
from takifugu.translation.search.fields import (
    CLOSE_BOUNDS,
    MAX_CLIQUE_STATES,
    WALK_DEPTH,
    WALK_VISITS,
    AttractiveModel,
    PairwiseWalks,
    narrow,
)


def attractive_losses(
    model: NetworkPrior,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    largest: int = MAX_CLIQUE_STATES,
    visits: int | None = None,
) -> NetworkLosses:
    """The losses of an attractive field, by sums or by pinning."""
    return AttractiveModel(model, secrets, largest=largest).losses(epsilon, visits=visits)


def walk_losses(
    model: NetworkPrior,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    depth: int = WALK_DEPTH,
    visits: int = WALK_VISITS,
) -> NetworkLosses:
    """The losses of a pairwise field, by walks."""
    return PairwiseWalks(model, secrets).losses(epsilon, depth=depth, visits=visits)


def log_odds_rise(
    field: PairwiseField,
    epsilon: Floats,
    entries: Sequence[int],
    *,
    visits: int,
    close: float = CLOSE_BOUNDS,
) -> tuple[Floats, Floats]:
    """``[entry]`` twice: bounds from below and above on the rise of each of ``entries``."""
    rising = RisingField(field, np.asarray(epsilon, dtype=np.float64), entries)
    narrow([rising], visits=visits, close=close)
    return rising.lower, rising.upper
