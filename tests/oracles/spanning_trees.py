"""All trees over a few names, and mutual information in plain loops over pairs of values."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from math import log


def spanning_trees(names: Sequence[str]) -> Iterator[frozenset[frozenset[str]]]:
    """The n^(n-2) trees, each from its Prüfer sequence."""
    size = len(names)
    if size == 1:
        yield frozenset()
        return
    for sequence in product(range(size), repeat=size - 2):
        degree = [1 + sequence.count(i) for i in range(size)]
        edges = set()
        for node in sequence:
            leaf = next(i for i in range(size) if degree[i] == 1)
            edges.add(frozenset((names[leaf], names[node])))
            degree[leaf] -= 1
            degree[node] -= 1
        last = [names[i] for i in range(size) if degree[i] == 1]
        edges.add(frozenset(last))
        yield frozenset(edges)


def information(pairs: Sequence[tuple[object, object]]) -> float:
    """The mutual information of the two values of a pair, one pair for each row."""
    together, left, right = (
        Counter(pairs),
        Counter(x for x, _ in pairs),
        Counter(y for _, y in pairs),
    )
    return sum(
        count / len(pairs) * log(count * len(pairs) / left[x] / right[y])
        for (x, y), count in together.items()
    )
