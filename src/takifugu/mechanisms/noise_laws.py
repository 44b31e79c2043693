"""The exact laws behind the mechanisms: what noise and selections do, before they are drawn.

Everything here is a formula for planning. Nothing here draws, and nothing here is a guarantee.

The laws of the mechanisms drawn with numpy, many repetitions at once. Never for protection.

numpy's generators can be predicted and its floats leave gaps: a release drawn here would protect
nothing. These draws plan, benchmark and audit.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil, comb, exp, expm1, log, sqrt

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.errors import TooLarge
from takifugu.mechanisms.mechanism_protocol import Error, whole

RoundLaw = Callable[[Floats], Floats]
MAX_PLACE_SUMS = 4e8  # terms of the places of noisy scores
MAX_PEELED_SETS = 20_000  # sets of removed candidates that a ranking is summed over
MAX_TABLE_SIZE = 200_000  # a Gaussian narrower than this is tabulated; a wider one is its density


def laplace_error(scale: float) -> Error:
    r"""Integer Laplace noise: :math:`P(z) \propto r^{|z|}`, :math:`r = e^{-1/\text{scale}}`."""
    r, rest = exp(-1 / scale), -expm1(-1 / scale)
    return Error(deviation=sqrt(2 * r) / rest, interval=float(laplace_reach(scale, 0.05)))


def laplace_reach(scale: float, miss: float) -> int:
    """The least h with P(|Z| > h) ≤ ``miss``, of integer Laplace noise."""
    r = exp(-1 / scale)
    # P(|Z| > h) = 2 r^(h+1) / (1 + r)
    return max(ceil(scale * log(2 / miss / (1 + r))) - 1, 0)


def gaussian_error(scale: float) -> Error:
    r"""Integer Gaussian noise: :math:`P(z) \propto e^{-z^2 / 2\,\text{scale}^2}`."""
    interval = float(gaussian_reach(scale, 0.05))
    if scale > MAX_TABLE_SIZE / 40:
        return Error(deviation=scale, interval=interval)
    z, p = gaussian_table(scale)
    return Error(deviation=float(np.sqrt(p @ z.astype(np.float64) ** 2)), interval=interval)


def gaussian_reach(scale: float, miss: float) -> int:
    """The least h with P(|Z| > h) ≤ ``miss``, of integer Gaussian noise."""
    if scale > MAX_TABLE_SIZE / 40:
        if miss == 0.05:
            return ceil(1.96 * scale)
        from scipy.special import ndtri

        return ceil(-float(ndtri(miss / 2)) * scale * (1 + 1e-9))
    reaches = np.arange(ceil(12 * scale) + 3)
    return int(np.argmax(2 * gaussian_above(scale)(reaches.astype(np.float64)) <= miss))


def laplace_pmf(scale: float, z: Integers) -> Floats:
    """P(Z = z) of integer Laplace noise."""
    rest = -expm1(-1 / scale)
    probabilities: Floats = rest / (2 - rest) * np.exp(-np.abs(z) / scale)
    return probabilities


def laplace_above(scale: float, z: Floats) -> Floats:
    """P(Z > z) of integer Laplace noise, for whole z."""
    half = 1 / (1 + exp(-1 / scale))
    tail = half * np.exp(-(np.abs(z) + 1) / scale)  # P(Z > |z|)
    equal = laplace_pmf(scale, np.asarray(z, dtype=np.int64))
    return np.where(z >= 0, tail, 1 - tail - equal)


def gaussian_table(scale: float) -> tuple[Integers, Floats]:
    """Integer Gaussian noise, cut off where less than 10⁻³⁰ is left: its support and law."""
    reach = ceil(12 * scale) + 2
    z = np.arange(-reach, reach + 1)
    weight = np.exp(-0.5 * (z / scale) ** 2)
    return z, weight / weight.sum()


def gaussian_above(scale: float) -> Callable[[Floats], Floats]:
    """P(Z > z) of integer Gaussian noise as a function of whole z."""
    if scale > MAX_TABLE_SIZE / 40:
        from scipy.special import ndtr

        return lambda z: np.asarray(ndtr(-(z + 0.5) / scale))
    z, p = gaussian_table(scale)
    tail = np.append(np.cumsum(p[::-1])[::-1], 0.0)  # [i]: P(Z ≥ z[i]), small terms first

    def above(least: Floats) -> Floats:
        place = np.clip(least + 1 - z[0], 0, len(z)).astype(np.int64)
        return np.asarray(np.minimum(tail[place], 1.0))

    return above


def softmax(scores: Floats, scale: float) -> Floats:
    """``[..., candidate]``: the exponential mechanism, probability ∝ exp(score / scale)."""
    weight = np.exp((scores - scores.max(axis=-1, keepdims=True)) / scale)
    probabilities: Floats = weight / weight.sum(axis=-1, keepdims=True)
    return probabilities


def permute_and_flip(scores: Floats, scale: float) -> Floats:
    r"""``[..., candidate]``: permute-and-flip (McKenna and Sheldon, 2020).

    Candidates in random order, each accepted with probability
    :math:`q_i = e^{(x_i - \max x)/s}`. It has the law of the largest score with
    exponential noise (Ding et al., 2021), hence

    .. math:: P(i) = q_i \int_0^1 \prod_{j \ne i} (1 - q_j y) \, dy.

    The integrand is a polynomial without sign changes, which Gauss–Legendre quadrature of
    sufficient order integrates exactly.
    """
    n = scores.shape[-1]
    q = np.exp((scores - scores.max(axis=-1, keepdims=True)) / scale)
    nodes, weights = np.polynomial.legendre.leggauss(n // 2 + 1)
    probabilities = np.zeros_like(q)
    for y, w in zip((nodes + 1) / 2, weights / 2, strict=True):
        factors = 1 - q * y
        logs = np.log(factors)
        probabilities += w * np.exp(logs.sum(axis=-1, keepdims=True) - logs)
    return np.asarray(q * probabilities)


def most_sets(candidates: int, k: int) -> int:
    """The most sets of candidates that can have been removed before one of k rounds."""
    return comb(candidates, min(k - 1, candidates // 2))


def peeled(scores: Floats, k: int, law: RoundLaw) -> Floats:
    """``[place, candidate]``: k rounds of ``law``, each over the candidates that are left.

    Summed over the sets of candidates that may have been removed, which is exact; refused when
    there are too many.
    """
    n = len(scores)
    if (sets := most_sets(n, k)) > MAX_PEELED_SETS:
        raise TooLarge(
            f"one of the first {k} of {n} can be preceded by {sets:,} sets of candidates; at most"
            f" {MAX_PEELED_SETS:,} are summed over. Use `simulate` instead"
        )
    places = np.zeros((k, n))
    gone: Integers = np.zeros((1, 0), dtype=np.int64)  # [set, member]
    reached: Floats = np.ones(1)  # [set]
    for place in range(k):
        there = np.ones((len(gone), n), dtype=bool)
        np.put_along_axis(there, gone, False, axis=1)
        left = np.nonzero(there)[1].reshape(len(gone), n - place)  # [set, candidate left]
        probabilities = reached[:, None] * law(scores[left])
        np.add.at(places[place], left, probabilities)
        if place + 1 == k:
            break
        after = np.concatenate(
            [np.repeat(gone, n - place, axis=0), left.reshape(-1, 1)], axis=1
        )  # every set with every candidate that may follow
        gone, which = np.unique(np.sort(after, axis=1), axis=0, return_inverse=True)
        reached = np.asarray(np.bincount(which.ravel(), weights=probabilities.ravel()), np.float64)
    return places


def laplace_places(scores: Integers, k: int, scale: float) -> Floats:
    """``[place, candidate]``: the k largest of scores with integer Laplace noise on each."""
    reach = ceil(40 * scale) + 2
    _refuse_many(len(scores), k, scale)
    z = np.arange(-reach, reach + 1)
    return _places(scores, k, z, laplace_pmf(scale, z), partial(laplace_above, scale))


def gaussian_places(scores: Integers, k: int, scale: float) -> Floats:
    """``[place, candidate]``: the k largest of scores with integer Gaussian noise on each."""
    _refuse_many(len(scores), k, scale)
    z, own = gaussian_table(scale)
    return _places(scores, k, z, own, gaussian_above(scale))


def _places(scores: Integers, k: int, z: Integers, own: Floats, above: RoundLaw) -> Floats:
    """``[place, candidate]``: noise with P(Z = z) = ``own`` on every score, then sort.

    Equal noisy scores keep the order of the candidates. Given the noisy score of a candidate, the
    others beat it independently of one another, so that its place is a sum of independent coins.
    """
    n = len(scores)
    places = np.zeros((k, n))
    for i in range(n):
        ahead = np.zeros((k, len(z)))  # [how many are ahead, z]
        ahead[0] = 1.0
        for j in range(n):
            if j == i:
                continue
            needed = scores[i] + z - scores[j]  # j is ahead when its noise is above this
            beats = above((needed - (j < i)).astype(np.float64))
            ahead[1:] = ahead[1:] * (1 - beats) + ahead[:-1] * beats
            ahead[0] *= 1 - beats
        places[:, i] = ahead @ own
    return places


def _refuse_many(candidates: int, k: int, scale: float) -> None:
    if candidates**2 * scale * k > MAX_PLACE_SUMS:
        raise TooLarge(
            f"the places of {candidates} candidates with noise of scale {scale:.4g} take too many"
            " sums; use `simulate` instead"
        )


MAX_DRAWN_NUMBERS = 2**22  # numbers drawn at a time; bounds the memory, not the result


def draw_laplace(rng: "np.random.Generator", scale: float, shape: tuple[int, ...]) -> Integers:
    """Integer Laplace noise: the difference of two geometric numbers."""
    p = -expm1(-1 / scale)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


def draw_gaussian(rng: "np.random.Generator", scale: float, shape: tuple[int, ...]) -> Integers:
    """Integer Gaussian noise, from its table; when very wide a rounded normal.

    At a scale of σ > 5,000 a rounded normal differs in no probability by more than a part in 24 σ².
    """
    if scale > MAX_TABLE_SIZE / 40:
        return np.rint(rng.normal(0.0, scale, shape)).astype(np.int64)
    z, p = gaussian_table(scale)
    ends = np.cumsum(p)
    places = np.searchsorted(ends, rng.random(shape) * ends[-1], side="right")
    drawn: Integers = z[np.minimum(places, len(z) - 1)]
    return drawn


def top_gumbel(
    rng: "np.random.Generator", scores: Integers, k: int, scale: float, repetitions: int
) -> Integers:
    """``[repetition, ..., place]``: k rounds of the exponential mechanism, by one Gumbel each.

    The k largest scores with Gumbel noise have the law of k peeled rounds of softmax
    (Durfee and Rogers, 2019): independent clocks of rates exp(score / scale) ring in that
    order.
    """
    return _blocks(
        scores,
        repetitions,
        k,
        lambda part, shape: _largest(part / scale - np.log(rng.standard_exponential(shape)), k),
    )


def top_flips(
    rng: "np.random.Generator", scores: Integers, k: int, scale: float, repetitions: int
) -> Integers:
    """``[repetition, ..., place]``: k rounds of permute-and-flip, fresh exponentials each."""

    def draw(part: Floats, shape: tuple[int, ...]) -> Integers:
        left = np.broadcast_to(part / scale, shape).copy()
        chosen = np.empty((*shape[:-1], k), dtype=np.int64)
        for place in range(k):
            chosen[..., place] = np.argmax(left + rng.standard_exponential(shape), axis=-1)
            np.put_along_axis(left, chosen[..., place, None], -np.inf, axis=-1)
        return chosen

    return _blocks(scores, repetitions, k, draw)


def top_noisy(
    scores: Integers, k: int, repetitions: int, draw: Callable[[tuple[int, ...]], Integers]
) -> Integers:
    """``[repetition, ..., place]``: the k largest scores with noise on each."""
    return _blocks(scores, repetitions, k, lambda part, shape: _largest(part + draw(shape), k))


def _largest(noisy: Floats, k: int) -> Integers:
    """``[..., place]``: where the k largest numbers stand, largest first, ties in order.

    Overwrites ``noisy``.
    """
    chosen = np.empty((*noisy.shape[:-1], k), dtype=np.int64)
    for place in range(k):
        chosen[..., place] = np.argmax(noisy, axis=-1)
        if place + 1 < k:
            np.put_along_axis(noisy, chosen[..., place, None], -np.inf, axis=-1)
    return chosen


def _blocks(
    scores: Integers,
    repetitions: int,
    k: int,
    draw: Callable[[Floats, tuple[int, ...]], Integers],
) -> Integers:
    """Draw a block of repetitions at a time. Scores count from the best of their group."""
    times = whole(repetitions, "repetitions")
    part = (scores - scores.max(axis=-1, keepdims=True)).astype(np.float64)
    chosen = np.empty((times, *scores.shape[:-1], k), dtype=np.int64)
    for start, stop in _spans(times, max(MAX_DRAWN_NUMBERS // scores.size, 1)):
        chosen[start:stop] = draw(part, (stop - start, *scores.shape))
    return chosen


def _spans(total: int, step: int) -> Iterator[tuple[int, int]]:
    for start in range(0, total, step):
        yield start, min(start + step, total)
