r"""How often Ours-Exp names the right label in each of three places: exactly, without simulation.

Peeling with the exponential mechanism at one scale b draws labels one after the other without
putting them back, each time with probability in proportion to :math:`w_l = e^{c_l/b}` (Plackett and
Luce). Let the counts fall, :math:`c_0 \ge c_1 \ge \dots`, with
:math:`W = \sum_l w_l`. Then label 0 is first, 1 is second and 2 is third with probabilities

.. math:: \frac{w_0}{W}, \quad \sum_{i \ne 1} \frac{w_i}{W}\,\frac{w_1}{W - w_i}, \quad
    \sum_{i \ne k;\ i, k \ne 2} \frac{w_i}{W}\,\frac{w_k}{W - w_i}\,\frac{w_2}{W - w_i - w_k}.

Where the largest label is among those that were drawn, what is left is summed anew from the label
that is then the largest, relative to it: no difference of nearly equal numbers is ever taken.

Labels whose counts are equal have the same probability in every place, and each of them is right
there (`metrics`), so a place counts as often as there are labels with its count. Groups whose count
in a place is 0 are left out of its mean.
"""

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.errors import Malformed
from takifugu.papers.composition.experiments.metrics import K


def expected_accuracies(counts: Floats, scales: Floats) -> Floats:
    """``[place, scale]``: the share of groups whose label in a place is right, as expected.

    Args:
        counts: ``[group, label]``: the true counts, of five labels or more.
        scales: ``[scale]``: scales of the Gumbel noise of peeling.
    """
    table = np.asarray(counts, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < K + 2 or not np.isfinite(table).all():
        raise Malformed(
            "counts",
            given=f"have shape {table.shape}",
            needed=f"be numbers [group, label], with {K + 2} labels or more",
        )
    best = -np.sort(-table, axis=1)[:, :K]  # [group, place]
    level = (table[:, None, :] == best[:, :, None]).sum(axis=2)  # [group, place]
    found = level * np.stack([_right(table, float(scale)) for scale in scales])
    counted = best > 0
    shares: Floats = (found * counted).sum(axis=1) / np.maximum(counted.sum(axis=0), 1)
    return shares.T


def _right(counts: Floats, scale: float) -> Floats:
    """``[group, place]``: the probability that the label of that rank is named there."""
    c = -np.sort(-counts, axis=1) / scale
    w, v, u = (np.exp(c[:, k:] - c[:, k : k + 1]) for k in range(K))  # relative to label k
    all_, but_first, but_two = (one.sum(axis=1) for one in (w, v, u))
    first = 1 / all_
    lower = w[:, 2:]  # neither of the first two
    second = first / but_first + (lower * w[:, 1:2] / (all_[:, None] - lower)).sum(axis=1) / all_
    rest, tail = v[:, 2:], w[:, 3:]  # neither of the first three, relative to label 1 and to 0
    third = first / but_first / but_two  # 0, then 1
    third += (rest / (but_first[:, None] - rest)).sum(axis=1) * v[:, 1] / all_ / but_first
    third += w[:, 1] / all_ / (all_ - w[:, 1]) / but_two  # 1, then 0
    third += (tail / (all_[:, None] - tail) * v[:, 1:2] / (but_first[:, None] - rest)).sum(
        axis=1
    ) / all_
    other = np.delete(w, (0, 2), axis=1)  # both drawn from these
    left = all_[:, None, None] - other[:, :, None] - other[:, None, :]
    same = np.arange(other.shape[1])
    left[:, same, same] = np.inf  # no label is drawn twice
    pairs = (other / (all_[:, None] - other))[:, :, None] * other[:, None, :] / left
    third += pairs.sum(axis=(1, 2)) * w[:, 2] / all_
    return np.stack([first, second, third], axis=1)
