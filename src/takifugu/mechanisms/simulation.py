"""The laws of the mechanisms drawn with numpy, many repetitions at once. Never for protection.

numpy's generators can be predicted and its floats leave gaps: a release drawn here would protect
nothing. These draws plan, benchmark and audit.
"""

from collections.abc import Callable, Iterator
from math import expm1

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.mechanisms.checks import whole
from takifugu.mechanisms.noise_laws import TABLE, gaussian_table

CELLS = 2**22  # numbers drawn at a time; bounds the memory, not the result


def laplace(rng: "np.random.Generator", scale: float, shape: tuple[int, ...]) -> Integers:
    """Integer Laplace noise: the difference of two geometric numbers."""
    p = -expm1(-1 / scale)
    return rng.geometric(p, shape) - rng.geometric(p, shape)


def gaussian(rng: "np.random.Generator", scale: float, shape: tuple[int, ...]) -> Integers:
    """Integer Gaussian noise, from its table; when very wide a rounded normal.

    At a scale of σ > 5,000 a rounded normal differs in no probability by more than a part in 24 σ².
    """
    if scale > TABLE / 40:
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
    for start, stop in _spans(times, max(CELLS // scores.size, 1)):
        chosen[start:stop] = draw(part, (stop - start, *scores.shape))
    return chosen


def _spans(total: int, step: int) -> Iterator[tuple[int, int]]:
    for start in range(0, total, step):
        yield start, min(start + step, total)
