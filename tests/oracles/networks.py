"""Splits of small laws written out in full: slow, and obvious."""

from collections.abc import Sequence
from itertools import combinations
from math import inf, log

import numpy as np

from takifugu.priors import Explicit, Tables


def leak(
    law: Explicit, exposed: Sequence[int], entry: int, left: Sequence[int], right: Sequence[int]
) -> float:
    """Largest log P(x_L | entry in left) / P(x_L | entry in right) over x_L possible under left."""
    universe = law.universe
    assert isinstance(universe, Tables)
    sums: dict[tuple[int, ...], list[float]] = {}
    total = [0.0, 0.0]
    for row, p in zip(universe.codes, law.probability, strict=True):
        known = tuple(int(v) for j, v in enumerate(row) if j not in exposed)
        for side, values in enumerate((left, right)):
            if row[entry] in values:
                sums.setdefault(known, [0.0, 0.0])[side] += float(p)
                total[side] += float(p)
    worst = -inf
    for a, b in sums.values():
        if a > 0:
            worst = max(worst, inf if b == 0 else log(a / total[0]) - log(b / total[1]))
    return worst


def best_leak(
    law: Explicit, b: int, entry: int, left: Sequence[int], right: Sequence[int]
) -> float:
    """The least leak over every set of at most b entries that holds ``entry``."""
    others = [j for j in range(len(law.universe.entries)) if j != entry]  # type: ignore[attr-defined]
    return min(
        leak(law, (entry, *more), entry, left, right)
        for size in range(b)
        for more in combinations(others, size)
    )


def probability(law: Explicit, entry: int, values: Sequence[int]) -> float:
    """P(entry in values)."""
    universe = law.universe
    assert isinstance(universe, Tables)
    return float(law.probability[np.isin(universe.codes[:, entry], list(values))].sum())
