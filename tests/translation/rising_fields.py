"""How far log odds rise, by pinning."""

from collections.abc import Sequence

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.translation.certify.fields import PairwiseField, RisingField
from takifugu.translation.search.fields import CLOSE, narrow


def log_odds_rise(
    field: PairwiseField,
    epsilon: Floats,
    entries: Sequence[int],
    *,
    visits: int,
    close: float = CLOSE,
) -> tuple[Floats, Floats]:
    """``[entry]`` twice: bounds from below and above on the rise of each of ``entries``."""
    rising = RisingField(field, np.asarray(epsilon, dtype=np.float64), entries)
    narrow([rising], visits=visits, close=close)
    return rising.lower, rising.upper
