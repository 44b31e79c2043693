r"""What a ranking will get right, before anything is spent: for public or synthetic scores.

Every top-k mechanism of this package but one has the law of "noise on each score, then sort":
integer Laplace or Gaussian noise by construction, peeled rounds of the exponential mechanism with
Gumbel noise (Durfee and Rogers, 2019). Given its own noise, the rivals of a candidate beat it
independently, so that its place is a sum of independent coins. The probabilities below are those of
the continuous twins of the noise, by quadrature; they plan, and guarantee nothing.

The exception is permute-and-flip in several rounds. It is summed over what may have gone before;
when that is too much it is predicted as the exponential mechanism, than which no round of it is
worse (McKenna and Sheldon, 2020).

How sure each place of a ranking is, from the noisy counts that it was sorted by.

A ranking that was made by noise on all counts and then sorting may show these counts: the noise
pays for all of them. Before the release nothing is known of a count but that it is a whole number
from 0 to the number of rows n. With every such number as likely as any other (a flat prior, each
count by itself), the posterior of a count c whose noisy one is x has the law of the noise:

.. math:: P(c \mid x) \propto P(Z = x - c), \qquad c = 0, \dots, n.

A place is *right* if its label could stand there in an exact ranking: with G rivals that have more
rows and E that have as many, place i (from 0) is right if :math:`G \le i \le G + E`. Given the
count c of its label the rivals are above it independently of each other, so that G and G + E are
sums of independent coins, and

.. math:: P(\text{right}) = \sum_c P(c \mid x) \, [P(G \le i \mid c) - P(G + E \le i - 1 \mid c)].

The sum over c has one term for each number within `POSTERIOR_SCALES` noise scales, or for each of
`POSTERIOR_BINS` bins of equal width if there are more, which takes less than 0.001 from it or adds
as much. It ignores that all counts add up to n.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Literal

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace

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


POSTERIOR_SCALES = 12.0  # noise scales: e^-12 is left beyond them
RIVAL_SCALES = 40.0  # noise scales below which a rival is not looked at
POSTERIOR_BINS = 160  # values of a count that are summed over
MAX_POSTERIOR_TERMS = 1e8  # labels that may be ahead × places × bins × numbers ahead
MAX_TERMS_HELD = 2_000_000  # terms that are held in memory
GAUSSIAN_RANGE_SCALES = 5.0  # noise scales beyond what is possible that a Gaussian draw is read at

Above = Callable[[Floats], Floats]  # P(Z > z), for whole z


def right_places(
    noisy: Integers, k: int, most: Integers, noise: IntegerLaplace | IntegerGaussian
) -> Floats | None:
    """``[group, place]``: the probability that it is right; None if that takes too long.

    Args:
        noisy: ``[group, candidate]``: the noisy counts.
        k: How many places there are; equal noisy counts are in the order of the candidates.
        most: ``[group]``: the most that a count can be.
        noise: The noise on the counts.
    """
    groups = len(noisy)
    if groups == 0:
        return np.zeros((0, k))
    order = np.argsort(-noisy, axis=1, kind="stable")
    ranked = np.take_along_axis(noisy, order, axis=1).astype(np.float64)
    top = most.astype(np.float64)[:, None]
    if isinstance(noise, IntegerLaplace):  # beyond the range its posterior is that of the end
        ranked = np.clip(ranked, 0.0, top)
    else:
        beyond = GAUSSIAN_RANGE_SCALES * noise.scale
        ranked = np.clip(ranked, np.floor(-beyond), np.ceil(top + beyond))
    last = ranked[:, k - 1] - (POSTERIOR_SCALES + RIVAL_SCALES) * noise.scale
    near = int((ranked >= last[:, None]).sum(axis=1).max())  # rivals that may be ahead
    if near * groups * k * k * POSTERIOR_BINS > MAX_POSTERIOR_TERMS:
        return None
    above, right = _tail_above(noise), np.empty((groups, k))
    step = max(1, MAX_TERMS_HELD // (k * k * POSTERIOR_BINS))
    for first in range(0, groups, step):
        part = slice(first, first + step)
        right[part] = _right(ranked[part, :near], k, top[part], noise.scale, above)
    return right


def _right(ranked: Floats, k: int, top: Floats, scale: float, above: Above) -> Floats:
    """``[group, place]``, from ``ranked[group, rank]`` and the most that each group can have."""
    own = ranked[:, :k, None]  # [group, place, 1]
    counts, weights = _bins(own, top[:, :, None], scale, above)  # [group, place, bin]
    more = np.zeros((*counts.shape, k))  # [..., how many rivals are ahead]
    more[..., 0] = 1.0
    level = more.copy()  # how many are ahead or level
    for rival in range(ranked.shape[1]):
        x = ranked[:, rival, None, None]
        over = _exceeds(counts, x, top[:, :, None], above)
        reach = _exceeds(counts - 1, x, top[:, :, None], above)
        if rival < k:  # no rival of itself
            over[:, rival], reach[:, rival] = 0.0, 0.0
        _toss(more, over)
        _toss(level, reach)
    places = np.arange(k)
    at_most = np.cumsum(more, axis=-1)[:, places, :, places]  # [place, group, bin]
    fewer = np.cumsum(level, axis=-1)[:, places, :, np.maximum(places - 1, 0)]
    fewer[0] = 0.0
    right = ((at_most - fewer) * weights.swapaxes(0, 1)).sum(axis=-1)
    return np.asarray(np.clip(right.T, 0.0, 1.0))


def _toss(ahead: Floats, probability: Floats) -> None:
    """One more coin: ``ahead[..., number]`` of those that fell, as far as it is looked at."""
    p = probability[..., None]
    ahead[..., 1:] = ahead[..., 1:] * (1 - p) + ahead[..., :-1] * p
    ahead[..., :1] *= 1 - p


def _bins(own: Floats, top: Floats, scale: float, above: Above) -> tuple[Floats, Floats]:
    """``[group, place, bin]``: values of a count, and the probability of the bin around each."""
    reach = np.ceil(POSTERIOR_SCALES * scale)
    low = np.minimum(np.maximum(own - reach, 0.0), top)
    high = np.maximum(np.minimum(own + reach, top), low)
    width = np.ceil((high - low + 1) / POSTERIOR_BINS)
    width += (width + 1) % 2  # odd, so that a bin has a middle
    bins = np.arange(POSTERIOR_BINS)
    begin = low + bins * width
    end = begin + width - 1
    last = end >= high  # the first such bin goes on to the end of the range, others are empty
    empty = begin > high
    before = np.where(bins == 0, 1.0, _exceeds(begin - 1, own, top, above))
    after = np.where(last, 0.0, _exceeds(end, own, top, above))
    middle = begin + np.floor((np.minimum(end, high) - begin) / 2)
    return np.where(empty, high, middle), np.where(empty, 0.0, before - after)


def _exceeds(count: Floats, noisy: Floats, top: Floats, above: Above) -> Floats:
    """P(C > count) of the posterior of a count on 0, …, top whose noisy one is ``noisy``."""
    end = above(top - noisy)
    inside = (above(count - noisy) - end) / (above(-1.0 - noisy) - end)
    return np.where(count < 0, 1.0, np.where(count >= top, 0.0, np.clip(inside, 0.0, 1.0)))


def _tail_above(noise: IntegerLaplace | IntegerGaussian) -> Above:
    """P(Z > z) as a function of whole z."""
    if isinstance(noise, IntegerLaplace):
        return partial(noise_laws.laplace_above, noise.scale)
    return noise_laws.gaussian_above(noise.scale)
