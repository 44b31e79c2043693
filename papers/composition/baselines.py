"""The top-k releases compared in Tables 1 and 2, simulated; for comparison only.

All take ``counts[group, category]`` and the per-entry ``epsilon`` (one entry replaced: one count
goes down by 1 and another up by 1), and give ``[repetition, group, rank]``: which categories are
reported, best first. The noise is drawn with numpy, so nothing here may protect data.

"MQM" has two readings. Song, Wang and Chaudhuri's own code adds one Laplace of scale 2/ε to every
bar, as the L1-sensitivity of a histogram is 2. The printed columns fit about 78/ε: the budget
split over the 78 categories, each bar of sensitivity 1. The paper compares "Ours-Exp", peeling
with the exponential mechanism, with the second only.
"""

from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from takifugu.errors import Malformed, UnsoundRequest
from takifugu.numeric import Floats

Ranking = NDArray[np.int64]


def histogram_scale(epsilon: float) -> float:
    """The Laplace scale on every bar, by the L1-sensitivity 2 of the whole histogram."""
    return 2 / _checked(epsilon)


def split_scale(epsilon: float, categories: int) -> float:
    """The Laplace scale on every bar, each bar with its share ε/categories of the budget."""
    return categories / _checked(epsilon)


def peeling_scale(epsilon: float, k: int) -> float:
    """The Gumbel scale of one round of peeling: ε/k a round, and 2 for the sensitivity 1."""
    return 2 * k / _checked(epsilon)


def mqm_histogram_top_k(
    counts: ArrayLike, k: int, epsilon: float, *, repetitions: int, rng: np.random.Generator
) -> Ranking:
    """MQM as in Song et al.'s code: one Laplace of scale 2/ε per bar, then the k highest."""
    table = _counts(counts, k)
    shape = (repetitions, *table.shape)
    return _highest(table + rng.laplace(0, histogram_scale(epsilon), shape), k)


def mqm_split_top_k(
    counts: ArrayLike, k: int, epsilon: float, *, repetitions: int, rng: np.random.Generator
) -> Ranking:
    """MQM as the printed tables fit it: one Laplace of scale categories/ε per bar."""
    table = _counts(counts, k)
    shape = (repetitions, *table.shape)
    return _highest(table + rng.laplace(0, split_scale(epsilon, table.shape[1]), shape), k)


def exponential_top_k(
    counts: ArrayLike, k: int, epsilon: float, *, repetitions: int, rng: np.random.Generator
) -> Ranking:
    """Ours-Exp: the exponential mechanism k times, each time without the winners so far.

    One Gumbel of scale 2k/ε per bar and the k highest, in order, have the same law (Durfee and
    Rogers, NeurIPS 2019).
    """
    table = _counts(counts, k)
    shape = (repetitions, *table.shape)
    return _highest(table + rng.gumbel(0, peeling_scale(epsilon, k), shape), k)


def _highest(noisy: Floats, k: int) -> Ranking:
    """``[..., rank]``: the places of the k highest, best first."""
    some = np.argpartition(-noisy, k - 1, axis=-1)[..., :k]
    order = np.argsort(-np.take_along_axis(noisy, some, axis=-1), axis=-1)
    return np.take_along_axis(some, order, axis=-1)


def _counts(counts: ArrayLike, k: int) -> Floats:
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise Malformed(
            "counts", given=f"have shape {table.shape}", needed="be numbers [group, category]"
        )
    if not 1 <= k <= table.shape[1]:
        raise Malformed("k", given=f"is {k}", needed=f"be between 1 and {table.shape[1]}")
    return table


def _checked(epsilon: float) -> float:
    if not 0 < epsilon < inf:
        raise UnsoundRequest(f"epsilon is {epsilon}; it must be positive and finite")
    return epsilon
