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
from math import comb
from typing import Literal

import numpy as np

from takifugu.mechanisms import noise_laws
from takifugu.numeric import Floats, frozen

Shape = Literal["laplace", "gaussian", "gumbel", "flips"]
NODES = 240  # of the quadrature; tails down to about 1e-5 are seen
MOST_SETS = 500  # sets of earlier winners that permute-and-flip is summed over
MOST_FLIPS = 1_000  # candidates beyond which permute-and-flip is predicted by its bound
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


def predicted(scores: Floats, k: int, shape: Shape, scale: float) -> Right:
    """What a ranking of ``scores[candidate]`` gets right with noise of this shape and scale."""
    ordered = np.sort(np.asarray(scores, dtype=np.float64))[::-1] / scale
    if shape != "flips":
        return _sorted(ordered, k, shape)
    if _many(len(ordered), k):
        return _sorted(ordered, k, "gumbel")
    probabilities = noise_laws.peeled(
        ordered - ordered[0], k, lambda left: noise_laws.permute_and_flip(left, 1.0)
    )
    belongs = ordered[None, :] == ordered[:k, None]  # [place, candidate]
    among = ordered >= ordered[k - 1]
    return Right((probabilities * belongs).sum(axis=1), float(probabilities[:, among].sum() / k))


def _many(categories: int, k: int) -> bool:
    """Whether permute-and-flip is too much to be summed over what may have gone before."""
    return categories > MOST_FLIPS or comb(categories, k - 1) > MOST_SETS


def staircase(categories: int, k: int) -> Floats:
    """``[category]``: k leaders, each 1 ahead of the next, all others alike and 1 behind."""
    return np.maximum(k - np.arange(categories, dtype=np.float64), 0.0)


@lru_cache(256)
def resolution(categories: int, k: int, shape: Shape) -> float:
    """The least step of a `staircase`, in noise scales, all of whose places are right (0.95).

    It depends on the law and the size of the query alone, on no data at all.
    """
    if categories == 1:
        return 0.0
    if shape == "flips" and _many(categories, k):
        return resolution(categories, k, "gumbel")
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


def _sorted(ordered: Floats, k: int, shape: Shape) -> Right:
    """Noise on each score, then sort; scores in noise scales, highest first."""
    own, weights = _nodes(shape)
    values, sizes = np.unique(-ordered, return_counts=True)
    values = -values  # the different scores, highest first, and how many candidates have each
    leaders = values[values >= ordered[k - 1]]
    probabilities = np.zeros((len(leaders), k))  # [score, place]: that one with this score is there
    for i, value in enumerate(leaders):
        ahead = np.zeros((k, len(own)))  # [how many are ahead, node]
        ahead[0] = 1.0
        for other, size in zip(values, sizes, strict=True):
            rivals = int(size) - (other == value)
            if rivals:
                coins = _binomial(rivals, k, _above(shape, own + (value - other)))
                ahead = _added(ahead, coins)
        probabilities[i] = sizes[i] * (ahead @ weights)
    which = np.searchsorted(-leaders, -ordered[:k])
    return Right(probabilities[which, np.arange(k)], float(min(probabilities.sum() / k, 1.0)))


def _added(ahead: Floats, coins: Floats) -> Floats:
    """The sum of two independent numbers below k, each ``[number, node]``; more is dropped."""
    k = len(ahead)
    total = np.zeros_like(ahead)
    for i in range(k):
        total[i:] += ahead[: k - i] * coins[i]
    return total


def _binomial(size: int, k: int, probability: Floats) -> Floats:
    """``[number below k, node]``: how many of ``size`` coins fall."""
    from scipy.special import gammaln, xlog1py, xlogy

    fallen = np.arange(k, dtype=np.float64)[:, None]
    kept = np.maximum(size - fallen, 0.0)
    ways = gammaln(size + 1) - gammaln(fallen + 1) - gammaln(kept + 1)
    p = np.clip(probability, 0.0, 1.0)
    law: Floats = np.exp(ways + xlogy(fallen, p) + xlog1py(kept, -p))
    return np.where(fallen > size, 0.0, law)


@lru_cache(8)
def gauss_legendre(count: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [-1, 1]; numpy finds them as eigenvalues, once is enough."""
    x, weights = np.polynomial.legendre.leggauss(count)
    return frozen(x), frozen(weights)


@lru_cache(8)
def _nodes(shape: Shape) -> tuple[Floats, Floats]:
    """Noise at the nodes of a quadrature over its distribution function, and the weights."""
    x, weights = gauss_legendre(NODES)
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
