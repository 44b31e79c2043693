r"""What a ranking will get right, before anything is spent: for public or synthetic scores.

Every top-k mechanism of this package but one has the law of "noise on each score, then sort":
integer Laplace or Gaussian noise by construction, peeled rounds of the exponential mechanism with
Gumbel noise (Durfee and Rogers, 2019). Given its own noise, the rivals of a candidate beat it
independently, so that its place is a sum of independent coins. The probabilities below are those of
the continuous twins of the noise, by quadrature; they plan, and guarantee nothing.

The exception is permute-and-flip in several rounds. It is summed over what may have gone before;
when that is too much it is predicted as the exponential mechanism, than which no round of it is
worse (McKenna and Sheldon, 2020).
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.mechanisms import noise_laws

Shape = Literal["laplace", "gaussian", "gumbel", "flips"]
QUADRATURE_NODES = 240  # of the quadrature; tails down to about 1e-5 are seen
MAX_WINNER_SETS = (
    500  # sets of earlier winners, of all groups, that permute-and-flip is summed over
)
MAX_FLIPPED_CANDIDATES = 1_000  # candidates beyond which permute-and-flip is predicted by its bound
MAX_LEADERS = 20  # of a staircase: more are alike
MAX_NUMBERS = 2**17  # that are held at once: as many as a processor has near
RESOLVED = 0.95  # a gap counts as resolved if places are right with this probability


@dataclass(frozen=True, eq=False)
class Right:
    """How much of a ranking is as in the scores that it was predicted for.

    Attributes:
        places: ``[place]``: the probability that a place names a candidate with the score that
            belongs there; candidates of equal score are as good as one another.
        hits: The expected share of those named that belong among the first k.
    """

    places: Floats
    hits: float

    @property
    def mean(self) -> float:
        """The mean over the places."""
        return float(self.places.mean())


def predicted(
    scores: Floats, k: int, shape: Shape, scale: float, weights: Floats | None = None
) -> Right:
    """What a ranking of ``scores`` gets right with noise of this shape and scale.

    Args:
        scores: ``[candidate]``; or ``[group, candidate]``, for the mean over the groups.
        k: How many are named.
        shape: The shape of the noise.
        scale: Its scale.
        weights: Of the groups in the mean, as `different_groups` has them; None for equal ones.
    """
    ordered = _ordered(scores) / scale
    if shape == "flips":
        if not _many(ordered.shape[1], k, len(ordered)):
            places, hits = zip(*(_flipped(row, k) for row in ordered), strict=True)
            return _mean(np.array(places), np.array(hits), weights)
        shape = "gumbel"
    return _mean(*_sorted(ordered, k, shape), weights)


def different_groups(scores: Floats) -> tuple[Floats, Floats]:
    """``[group, candidate]``, of groups with the same scores in any order only one; and weights."""
    groups, counts = np.unique(_ordered(scores), axis=0, return_counts=True)
    return groups, counts / counts.sum()


def prediction_terms(scores: Floats, k: int) -> int:
    """How much `predicted` adds up, at each node of its quadrature.

    For each group, each of the first k and each place: the candidates of different scores.
    """
    different = 1 + np.count_nonzero(np.diff(_ordered(scores), axis=1), axis=1)
    return int(different.sum()) * k**2


def _ordered(scores: Floats) -> Floats:
    """``[group, place]``: highest first."""
    return np.sort(np.atleast_2d(np.asarray(scores, dtype=np.float64)), axis=1)[:, ::-1]


def _mean(places: Floats, hits: Floats, weights: Floats | None) -> Right:
    mean = np.average(places, axis=0, weights=weights)
    return Right(mean, float(np.average(hits, weights=weights)))


def _flipped(ordered: Floats, k: int) -> tuple[Floats, float]:
    """Permute-and-flip, summed over what may have gone before; scores in noise scales."""
    probabilities = noise_laws.peeled(
        ordered - ordered[0], k, lambda left: noise_laws.permute_and_flip(left, 1.0)
    )
    belongs = ordered[None, :] == ordered[:k, None]  # [place, candidate]
    among = ordered >= ordered[k - 1]
    return (probabilities * belongs).sum(axis=1), float(probabilities[:, among].sum() / k)


def _many(categories: int, k: int, groups: int = 1) -> bool:
    """Whether permute-and-flip is too much to be summed over what may have gone before."""
    return (
        categories > MAX_FLIPPED_CANDIDATES
        or noise_laws.most_sets(categories, k) * groups > MAX_WINNER_SETS
    )


def staircase(categories: int, k: int) -> Floats:
    """``[category]``: k leaders, each 1 ahead of the next, all others alike and 1 behind."""
    return np.maximum(k - np.arange(categories, dtype=np.float64), 0.0)


@lru_cache(256)
def resolution(categories: int, k: int, shape: Shape) -> float:
    """The least step of a `staircase`, in noise scales, all of whose places are right (0.95).

    It depends on the law and the size of the query alone, on no data at all. At such a step a
    leader is confused with its neighbours alone: those `MAX_LEADERS` / 2 steps away are passed with
    a probability below 1e-13. So all leaders in the middle are alike, and few stand for many.
    """
    if categories == 1:
        return 0.0
    if shape == "flips" and _many(categories, k):
        return resolution(categories, k, "gumbel")
    if k > MAX_LEADERS:
        return resolution(categories - k + MAX_LEADERS, MAX_LEADERS, shape)
    steps = staircase(categories, k)

    def enough(step: float) -> bool:
        return float(predicted(steps * step, k, shape, 1.0).places.min()) >= RESOLVED

    low, high = 0.0, 4.0
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _sorted(ordered: Floats, k: int, shape: Shape) -> tuple[Floats, Floats]:
    """Noise on each score, then sort; scores ``[group, place]`` in noise scales, highest first.

    Returns:
        ``[group, place]`` and ``[group]``, as in `Right`.
    """
    groups = np.arange(len(ordered))[:, None]
    which = np.zeros(ordered.shape, dtype=np.int64)  # [group, place]: which of the different scores
    which[:, 1:] = np.cumsum(np.diff(ordered, axis=1) != 0, axis=1)
    values = np.repeat(ordered[:, -1:], which.max() + 1, axis=1)  # [group, score], highest first
    values[groups, which] = ordered
    sizes = np.zeros(values.shape, dtype=np.int64)  # how many candidates have each
    np.add.at(sizes, (groups, which), 1)
    leaders = np.argwhere(np.arange(values.shape[1]) <= which[:, k - 1 : k])  # of group and score
    probabilities = np.zeros((*values.shape, k))  # [group, score, place]: one with it is there
    step = max(1, MAX_NUMBERS // (k * QUADRATURE_NODES))
    for start in range(0, len(leaders), step):
        group, score = leaders[start : start + step].T
        ahead = _ahead(values[group], sizes[group], score, k, shape)
        probabilities[group, score] = sizes[group, score][:, None] * ahead
    right = np.take_along_axis(probabilities, which[:, None, :k], axis=1)[:, 0]
    return right, np.minimum(probabilities.sum(axis=(1, 2)) / k, 1.0)


def _ahead(values: Floats, sizes: Integers, score: Integers, k: int, shape: Shape) -> Floats:
    """``[leader, number below k]``: how many are ahead of one with ``values[leader, score]``."""
    own, weights = _nodes(shape)
    leader = np.arange(len(score))
    ahead = np.zeros((k, len(score), len(own)))  # [how many are ahead, leader, node]
    ahead[0] = 1.0
    for other in range(values.shape[1]):
        rivals = np.maximum(sizes[:, other] - (score == other), 0)
        if rivals.any():
            lead = values[leader, score] - values[:, other]
            above = _above(shape, own + lead[:, None])
            ahead = _added(ahead, _binomial(rivals[:, None], k, above))
    return np.asarray((ahead @ weights).T)


def _added(ahead: Floats, coins: Floats) -> Floats:
    """The sum of two independent numbers, ``[number, …]``, as far as ``ahead`` has place for it."""
    k = len(ahead)
    total = np.zeros_like(ahead)
    for i in range(len(coins)):
        total[i:] += ahead[: k - i] * coins[i]
    return total


def _binomial(size: Integers, k: int, probability: Floats) -> Floats:
    """``[number, …]``: how many of ``size`` coins fall; numbers below k that can be."""
    p = np.clip(probability, 0.0, 1.0)
    numbers = min(k, int(size.max()) + 1)
    if numbers <= 2 and size.max() == 1:
        return np.stack([1 - p * size, p * size])[:numbers]
    from scipy.special import gammaln, xlog1py, xlogy

    fallen = np.arange(numbers, dtype=np.float64).reshape(-1, *[1] * p.ndim)
    standing = np.maximum(size - fallen, 0.0)
    ways = gammaln(size + 1) - gammaln(fallen + 1) - gammaln(standing + 1)
    law: Floats = np.exp(ways + xlogy(fallen, p) + xlog1py(standing, -p))
    return np.where(fallen > size, 0.0, law)


@lru_cache(8)
def gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [-1, 1]; numpy finds them as eigenvalues, once is enough."""
    x, weights = np.polynomial.legendre.leggauss(count)
    return frozen(x), frozen(weights)


@lru_cache(8)
def _nodes(shape: Shape) -> tuple[Floats, Floats]:
    """Noise at the nodes of a quadrature over its distribution function, and the weights."""
    x, weights = gauss_legendre(QUADRATURE_NODES)
    u = (x + 1) / 2  # P(Z ≤ z)
    if shape == "laplace":
        z = np.where(u < 0.5, np.log(2 * u), -np.log(2 * (1 - u)))
    elif shape == "gaussian":
        from scipy.special import ndtri

        z = ndtri(u)
    else:
        z = -np.log(-np.log(u))
    return z, weights / 2


def _above(shape: Shape, z: Floats) -> Floats:
    """P(Z > z)."""
    if shape == "laplace":
        tail = np.exp(-np.abs(z)) / 2
        return np.where(z >= 0, tail, 1 - tail)
    if shape == "gaussian":
        from scipy.special import ndtr

        above: Floats = ndtr(-z)
        return above
    return -np.expm1(-np.exp(-np.clip(z, -700.0, None)))
