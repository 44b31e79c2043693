"""How sure a ranking is, summed over every vector of counts; no code is shared."""

import math
from itertools import product


def right_by_enumeration(
    noisy: list[int], k: int, most: int, scale: float, *, gaussian: bool
) -> list[float]:
    """``[place]``: that its label could stand there, under a flat prior on 0, …, ``most``."""

    def log_weight(z: int) -> float:
        return -((z / scale) ** 2) / 2 if gaussian else -abs(z) / scale

    order = sorted(range(len(noisy)), key=lambda i: -noisy[i])
    tables = []
    for x in noisy:
        logs = [log_weight(x - c) for c in range(most + 1)]
        weights = [math.exp(one - max(logs)) for one in logs]
        tables.append([w / sum(weights) for w in weights])
    found = [0.0] * k
    for counts in product(range(most + 1), repeat=len(noisy)):
        weight = math.prod(table[c] for table, c in zip(tables, counts, strict=True))
        if weight < 1e-15:
            continue
        ordered = sorted(counts, reverse=True)
        for place in range(k):
            found[place] += weight * (counts[order[place]] == ordered[place])
    return found
