"""What a product of per-entry DP outputs reveals to somebody who knows the rows before: by listing.

Every sequence of the released rows is written out with its probability given the rows before, in
exact order of the definition. Nothing of the translation is used.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import log

Path = tuple[int, ...]


def leak(
    step: Callable[[Path, int], Sequence[float]],
    before: dict[Path, float],
    factors: Sequence[Sequence[float]],
    states: int,
) -> float:
    """The largest log-ratio of the expected likelihood given two values of one released row.

    Args:
        step: From the rows so far and the number of the next released row to its probabilities.
        before: How probable the adversary holds each past.
        factors: For each released row, the likelihood of its output by its value.
        states: The number of values.
    """
    rows = range(len(factors))
    mass = [[0.0] * states for _ in rows]
    seen = [[0.0] * states for _ in rows]
    for past, weight in before.items():
        for path in product(range(states), repeat=len(factors)):
            probability, likelihood = weight, 1.0
            for row, value in enumerate(path):
                probability *= step(past + path[:row], row)[value]
                likelihood *= factors[row][value]
            for row, value in enumerate(path):
                mass[row][value] += probability
                seen[row][value] += probability * likelihood
    worst = 0.0
    for row in rows:
        able = [x for x in range(states) if mass[row][x] > 0]
        values = [log(seen[row][x] / mass[row][x]) for x in able]
        worst = max(worst, max(values) - min(values))
    return worst
