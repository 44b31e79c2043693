r"""How sure each place of a ranking is, from the noisy counts that it was sorted by.

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

import numpy as np

from takifugu._core.numeric import Floats, Integers
from takifugu.mechanisms import noise_laws
from takifugu.mechanisms.noise import IntegerGaussian, IntegerLaplace

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
    above, right = _above(noise), np.empty((groups, k))
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


def _above(noise: IntegerLaplace | IntegerGaussian) -> Above:
    """P(Z > z) of the noise."""
    if isinstance(noise, IntegerLaplace):
        return lambda z: noise_laws.laplace_above(noise.scale, z)
    if noise.scale > noise_laws.TABLE / 40:
        from scipy.special import ndtr

        return lambda z: np.asarray(ndtr(-(z + 0.5) / noise.scale))
    z, p = noise_laws.gaussian_table(noise.scale)
    tail = np.append(np.cumsum(p[::-1])[::-1], 0.0)  # [i]: P(Z ≥ z[i]), small terms first

    def above(least: Floats) -> Floats:
        place = np.clip(least + 1 - z[0], 0, len(z)).astype(np.int64)
        return np.asarray(np.minimum(tail[place], 1.0))

    return above
