"""How right a ranking is, and what is allowed under uncertainty, slowly and by definition."""

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from math import comb, inf, log, log2

from tests.oracles.baselines import Row, influence


def true_rankings(counts: Sequence[int], k: int) -> list[tuple[int, ...]]:
    """Every order of k labels that nobody could call wrong."""
    best = sorted(counts, reverse=True)[:k]
    return [
        order
        for order in permutations(range(len(counts)), k)
        if [counts[label] for label in order] == best
    ]


def metrics(counts: Sequence[int], named: Sequence[int]) -> dict[str, float | None]:
    """Every metric of one group; None where the group is not asked."""
    k = len(named)
    rankings = true_rankings(counts, k)
    best = sorted(counts, reverse=True)[:k]
    found: dict[str, float | None] = {}
    for place in range(k):
        right = any(ranking[place] == named[place] for ranking in rankings)
        found[f"acc@{place + 1}"] = None if best[place] == 0 else float(right)
    if best[0] == 0:
        return {**found, "hit": None, "ndcg": None, "l1": None}
    there = sum(count > 0 for count in best)
    seen = [{label for label in ranking if counts[label] > 0} for ranking in rankings]
    found["hit"] = max(len(top & set(named)) for top in seen) / there
    said = [counts[label] for label in named]
    found["ndcg"] = gain(said) / gain(best)
    found["l1"] = float(sum(abs(a - b) for a, b in zip(said, best, strict=True)))
    return found


def gain(counts: Sequence[int]) -> float:
    """Discounted cumulative gain, Järvelin and Kekäläinen (2002)."""
    return sum(count / log2(place + 2) for place, count in enumerate(counts))


def mildest(counts: Sequence[int], k: int) -> dict[str, float]:
    """For each metric the least change that a wrong ranking makes; 0 if no ranking is wrong."""
    right = metrics(counts, true_rankings(counts, k)[0])
    least = dict.fromkeys(right, inf)
    for named in permutations(range(len(counts)), k):
        for metric, found in metrics(counts, named).items():
            best = right[metric]
            if found is not None and best is not None and abs(found - best) > 1e-12:
                least[metric] = min(least[metric], abs(found - best))
    return {metric: change if change < inf else 0.0 for metric, change in least.items()}


def coverage(draws: int, probability: float, halves: Mapping[int, float]) -> float:
    """How often intervals of these half-widths, by number of hits, cover a binomial probability."""
    return sum(
        comb(draws, hits) * probability**hits * (1 - probability) ** (draws - hits)
        for hits in range(draws + 1)
        if abs(hits / draws - probability) <= halves[hits]
    )


def uncertain_quilts(law: Mapping[Row, float], epsilon: float, off: float) -> float:
    """What MQMExact allows when every P(x_Q | s) may be wrong by a factor of 1 ± ``off``.

    A quilt's influence rises by log((1 + off)/(1 − off)); no quilt at all tells nothing of anyone,
    so there is nothing to be wrong about.
    """
    n = len(next(iter(law)))
    shift = log((1 + off) / (1 - off))
    allowed = inf
    for node in range(n):
        others = [j for j in range(n) if j != node]
        best = epsilon / n
        for size in range(1, n):
            for quilt in combinations(others, size):
                first = max((j for j in quilt if j < node), default=-1)
                last = min((j for j in quilt if j > node), default=n)
                room = epsilon - influence(law, node, quilt) - shift
                best = max(best, room / (last - first - 1))
        allowed = min(allowed, best)
    return allowed
