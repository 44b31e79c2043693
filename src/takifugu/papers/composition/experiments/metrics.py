r"""How right a ranking is: the metrics of the paper, with ties and empty places decided.

A group has true counts; :math:`c_1 \ge c_2 \ge \dots` are its largest ones. A mechanism names K
different labels. The paper does not say what happens when counts are equal or zero. Here:

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
"""

from collections.abc import Mapping

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.errors import Malformed

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
