r"""The metrics of the paper, their intervals over repetitions, and the accuracy that is expected.

**Ties and empty places.** A group has true counts; :math:`c_1 \ge c_2 \ge \dots` are its largest
ones. A mechanism names K different labels. The paper does not say what happens when counts are
equal or zero. Here:

* **Equal counts are equally right.** A label is right in place k if some true ranking has it
  there, that is if its count is :math:`c_k` (Acc@k). For the hit rate the K named are compared with
  the correct top K that is kindest to them: it holds every label above :math:`c_K`, and as many
  of those at :math:`c_K` as there is room for. So three labels that tie for two last seats are two
  hits, not three.
* **A place that no label earned does not count.** Where :math:`c_k = 0` every label never
  seen would be right; such a place is left out of Acc@k. A hit is a label seen at all, and
  the hit rate divides by the labels that there are to hit, K or the labels seen if they are fewer.
* **A group without any entry has no ranking** and is left out of everything.
* NDCG@K has the true counts as relevance, as in the paper; the l1 count error is
  :math:`\sum_k |\tilde c_k - c_k|`. Neither needs a rule for ties.

Which groups count depends on the true counts alone, so it is the same for every mechanism.

**Intervals** are valid also where nothing varies. Every repetition draws fresh noise for every
group, so there are N = repetitions × groups independent draws; the mean of one repetition averages
over its groups, and s is the standard deviation of those means. Student's interval, :math:`t
s/\sqrt R`, has width 0 when all of 200 repetitions are 100 % right, although a probability of
99.999 % explains that as well. So what a single draw can move the mean by, u = spread/N, is put in
as in Wilson's score interval (1927):

.. math:: h = \frac{t^2 u}{2} + t \sqrt{\frac{s^2}{R} + \frac{t^2 u^2}{4}}.

For shares of right answers the spread is 1 and this is mean ± h around Wilson's interval, on both
sides of it: with nothing wrong in N draws h is :math:`t^2/N`, a little more than the exact 3.7/N
(Clopper and Pearson, 1934). Where s is large it is Student's interval. For NDCG and the l1 error
the spread is the largest that was seen in one group, or the mildest mistake that a group can make
if that is more (`least_mistakes`): a sensible width, not a proven one.

Several differences are judged together by intervals that are simultaneous: with n of them each has
the confidence 1 − 0.05/n (Bonferroni), so that whatever their dependence, all of them hold at once
with 95 % confidence. Only t grows, from 1.97 to 3.44 for 72 comparisons of 200 repetitions.

**Expected accuracy**: how often Ours-Exp names the right label in each of three places, without
simulation. Peeling with the exponential mechanism at one scale b draws labels one after the other
without putting them back, each time with probability in proportion to :math:`w_l = e^{c_l/b}`
(Plackett and Luce). Let the counts fall, :math:`c_0 \ge c_1 \ge \dots`, with :math:`W = \sum_l
w_l`. Then label 0 is first, 1 is second and 2 is third with probabilities

.. math:: \frac{w_0}{W}, \quad \sum_{i \ne 1} \frac{w_i}{W}\,\frac{w_1}{W - w_i}, \quad
    \sum_{i \ne k;\ i, k \ne 2} \frac{w_i}{W}\,\frac{w_k}{W - w_i}\,\frac{w_2}{W - w_i - w_k}.

Where the largest label is among those that were drawn, what is left is summed anew from the label
that is then the largest, relative to it: no difference of nearly equal numbers is ever taken.

Labels whose counts are equal have the same probability in every place, and each of them is right
there, so a place counts as often as there are labels with its count. Groups whose count
in a place is 0 are left out of its mean.
"""

from collections.abc import Mapping

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.errors import Malformed
from takifugu.papers.composition.experiments.measurements import Difference, Estimate

K = 3  # the paper asks for the first three
METRICS = (*(f"acc@{place + 1}" for place in range(K)), "hit", "ndcg", "l1")
LESS_IS_BETTER = frozenset({"l1"})

Scores = Mapping[str, Floats]


def scores(counts: Integers, named: Integers) -> dict[str, Floats]:
    """``[repetition, group]`` of each metric, over the groups that it asks about.

    Args:
        counts: ``[group, label]``, the true ones.
        named: ``[repetition, group, place]``: the labels named, best first, all different.
    """
    table = checked_counts(counts)
    best = _best(table)  # [group, place]
    if named.ndim != 3 or named.shape[1:] != best.shape:
        raise Malformed(
            "named",
            given=f"has shape {named.shape}",
            needed=f"hold {K} labels for each of {len(best)} groups in every repetition",
        )
    named_counts = np.take_along_axis(table[None], named, axis=2)  # [repetition, group, place]
    counted = groups_counted(table)
    discount = 1 / np.log2(np.arange(K) + 2.0)
    found = {
        f"acc@{k + 1}": (named_counts[:, :, k] == best[:, k]).astype(np.float64) for k in range(K)
    }
    found["hit"] = _hits(named_counts, best) / np.maximum((best > 0).sum(axis=1), 1)
    found["ndcg"] = (named_counts @ discount) / np.maximum(best @ discount, 1.0)
    found["l1"] = np.abs(named_counts - best).sum(axis=2).astype(np.float64)
    return {name: found[name][:, counted[name]] for name in METRICS}


def groups_counted(counts: Integers) -> dict[str, Booleans]:
    """``[group]`` for each metric: whether the group has an answer that could be right."""
    table = checked_counts(counts)
    best = _best(table)
    some = best[:, 0] > 0
    counted = dict.fromkeys(METRICS, some)
    counted |= {f"acc@{k + 1}": best[:, k] > 0 for k in range(K)}
    for name, groups in counted.items():
        if not groups.any():
            raise Malformed(
                "counts",
                given=f"have no group with an answer for {name}",
                needed=f"have a group with {K} different labels",
            )
    return counted


def least_mistakes(counts: Integers) -> dict[str, float]:
    """By how much a metric changes at the least when one group goes wrong; of all groups the most.

    The mildest mistake swaps two neighbouring places, or gives one to the label that is next. A
    metric that cannot change, as every ranking of every group is right, has 0.
    """
    table = checked_counts(counts)
    best = _best(table)
    discount = 1 / np.log2(np.arange(K) + 2.0)
    swapped = (best[:, :-1] - best[:, 1:]).astype(np.float64)  # [group, place]
    l1, gain = [2 * swapped], [-swapped * np.diff(discount)]
    if table.shape[1] > K:
        following = np.sort(table, axis=1)[:, -K - 1]
        lower = table.max(axis=1, where=table < best[:, -1:], initial=-1)  # if there is one
        for other in (following, np.where(lower >= 0, lower, following)):
            replaced = (best - other[:, None]).astype(np.float64)
            l1.append(replaced)
            gain.append(replaced * discount)
    least = _least(l1)
    wrong = least > 0
    if not wrong.any():
        return dict.fromkeys(METRICS, 0.0)
    some = (best > 0).sum(axis=1)[wrong]
    return {
        **dict.fromkeys(METRICS, 1.0),
        "hit": float((1 / some).max()) if table.shape[1] > K else 0.0,
        "ndcg": float((_least(gain)[wrong] / (best @ discount)[wrong]).max()),
        "l1": float(least.max()),
    }


def majority(train: Integers, groups: int) -> Integers:
    """``[1, group, place]``: the top labels of the fitted part, for every group alike.

    It spends nothing on what is released from; equal counts keep the order of the labels.
    """
    if train.ndim != 1 or len(train) < K:
        raise Malformed(
            "train", given=f"has shape {train.shape}", needed=f"count {K} labels or more"
        )
    first = np.argsort(-train, kind="stable")[:K]
    return np.broadcast_to(first, (1, groups, K))


def checked_counts(counts: Integers) -> Integers:
    """The counts, if they are whole numbers ``[group, label]``, 0 or more."""
    table = np.asarray(counts)
    shape = table.shape
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer) or (table < 0).any():
        raise Malformed(
            "counts", given=f"have shape {shape}", needed="be whole numbers [group, label]"
        )
    if shape[1] < K or not shape[0]:
        raise Malformed(
            "counts", given=f"have shape {shape}", needed=f"have a group, and {K} labels or more"
        )
    return table.astype(np.int64, copy=False)


def _best(table: Integers) -> Integers:
    """``[group, place]``: the largest counts."""
    return np.sort(table, axis=1)[:, ::-1][:, :K]


def _least(changes: list[Floats]) -> Floats:
    """``[group]``: the least change that is one; 0 if there is none."""
    every = np.concatenate(changes, axis=1)
    least = np.where(every > 0, every, np.inf).min(axis=1)
    return np.where(np.isfinite(least), least, 0.0)


def _hits(named_counts: Integers, best: Integers) -> Floats:
    """``[repetition, group]``: how many of the named are in the kindest correct top K."""
    last = np.maximum(best[:, -1:], 1)  # nobody earns a place with 0
    above = (named_counts > last).sum(axis=2)
    level = (named_counts == last).sum(axis=2)
    seats = K - (best > last).sum(axis=1)
    hits: Floats = (above + np.minimum(level, seats)).astype(np.float64)
    return hits


CONFIDENCE = 0.95


def estimate(values: Floats, *, least: float) -> Estimate:
    """The mean of ``values[repetition, group]``, with its 95 % interval.

    ``least`` is by how much a group's value changes at the least when it changes; 0 if it cannot.
    """
    return interval(difference(values, least=least))


def difference(values: Floats, *, least: float) -> Difference:
    """The mean of ``values[repetition, group]``, with all that an interval needs."""
    if values.ndim != 2 or not values.size or not 0 <= least < np.inf or len(values) < 2:
        raise Malformed(
            "values",
            given=f"have shape {values.shape} and change by {least:g}",
            needed="be numbers [repetition, group], of 2 repetitions or more",
        )
    repetitions = len(values)
    means = values.mean(axis=1)
    spread = max(float(np.ptp(values, axis=0).max()), least)
    error = float(np.sqrt(means.var(ddof=1) / repetitions))
    return Difference(float(means.mean()), error, spread / values.size, repetitions)


def interval(found: Difference, *, together: int = 1) -> Estimate:
    """The 95 % interval of a difference; simultaneous for as many as are judged ``together``."""
    if together < 1:
        raise Malformed("together", given=f"is {together}", needed="be 1 or more")
    from scipy.special import stdtrit

    t = float(-stdtrit(found.repetitions - 1, (1 - CONFIDENCE) / (2 * together)))
    half = t * t * found.step / 2 + t * float(np.hypot(found.error, t * found.step / 2))
    return Estimate(found.mean, half)


def known(values: Floats) -> Estimate:
    """The mean of ``values[1, group]`` of a deterministic answer: an interval of width 0."""
    return Estimate(float(values.mean()), 0.0)


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
