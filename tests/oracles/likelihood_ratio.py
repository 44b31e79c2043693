"""Order one against order two by the likelihoods of plain Python; nothing of the package."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence


def orders(paths: Sequence[Sequence[Hashable]]) -> tuple[float, int]:
    """Twice the difference of the best log-likelihoods of all third values, and degrees of freedom.

    A model of order two has a law for each pair that was seen, over the values that ever followed
    the second of the pair; one of order one has a law for each value.
    """
    triples = [tuple(path[t : t + 3]) for path in paths for t in range(len(path) - 2)]
    after_pair, after_one = defaultdict(list), defaultdict(list)
    for first, second, third in triples:
        after_pair[first, second].append(third)
        after_one[second].append(third)
    pairs = sum(_best(values) for values in after_pair.values())
    ones = sum(_best(values) for values in after_one.values())
    free_two = sum(len(set(after_one[second])) - 1 for _, second in after_pair)
    free_one = sum(len(set(values)) - 1 for values in after_one.values())
    return 2 * (pairs - ones), free_two - free_one


def _best(values: Sequence[Hashable]) -> float:
    """The largest log-likelihood of independent draws."""
    return sum(n * math.log(n / len(values)) for n in Counter(values).values())
