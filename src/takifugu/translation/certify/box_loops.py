"""The compiled loops of `takifugu.translation.certify.boxes`.

This module is imported by need only: it loads numba.
"""

import math

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT

MAX_HALVINGS = 40  # of the interval in which the least proven loss lies
CLOSE = 1e-7  # share of a loss at which that ends


@compiled
def step(
    below: Floats,
    above: Floats,
    high: Floats,
    low: Floats,
    e: Floats,
    total: float,
    error: float,
    floor: float,
    after: Floats,
    plus: Floats,
    minus: Floats,
) -> float:
    """One step: ``after`` becomes the next bounds; returns that on their sum."""
    k = e.shape[0]
    size = abs(total)
    missing = -total
    least = np.inf
    for u in range(k):
        missing += e[u]
        size += abs(e[u])
        least = min(least, low[u])
    missing = max(missing - size * error, 0.0)
    rise = fall = 0.0
    for v in range(k):
        plus[v] = minus[v] = 0.0
        after[v] = np.inf
    for u in range(k):
        for v in range(k):
            after[v] = min(after[v], below[u, v] * low[u])
        if e[u] > 0:
            weight = max(e[u] * high[u], floor)
            rise += weight
            for v in range(k):
                plus[v] += weight * above[u, v]
        elif e[u] < 0:
            weight = -e[u] * low[u]
            fall += weight
            for v in range(k):
                minus[v] += weight * below[u, v]
    for v in range(k):
        taken = minus[v] + missing * after[v]
        after[v] = plus[v] * (1 + error) - taken * (1 - error)
    return rise * (1 + error) - (fall + missing * least) * (1 - error)


@compiled
def proven(
    below: Floats,
    above: Floats,
    kinds: Integers,
    repeats: int,
    high: Floats,
    low: Floats,
    x: int,
    y: int,
    t: float,
    error: float,
    floor: float,
    work: Floats,
) -> int:
    """Walk kinds[0], ``repeats`` times in all, then the others; 0 fails, 1 holds, 2 for good.

    2: no measure is positive before the first kind ends, so that more repeats change nothing.
    """
    k = below.shape[1]
    e, after, plus, minus = work[0], work[1], work[2], work[3]
    first = kinds[0]
    for v in range(k):
        e[v] = above[first, x, v] * (1 + error) - t * below[first, y, v] * (1 - error)
    total = (1 - t) + 4 * UNIT * (1 + t)
    count = repeats + kinds.shape[0] - 1
    for n in range(1, count + 1):
        none = True
        for v in range(k):
            if not e[v] <= 0:
                none = False
                break
        if none:
            return 2 if n <= repeats else 1
        kind = kinds[0] if n < repeats else kinds[min(n - repeats + 1, kinds.shape[0] - 1)]
        total = step(
            below[kind], above[kind], high, low, e, total, error, floor, after, plus, minus
        )
        if not total <= 0:
            return 0
        most = abs(total)
        for v in range(k):
            most = max(most, abs(after[v]))
        if not (most < np.inf and most > 0):
            return 0
        exponent = math.frexp(most)[1]
        for v in range(k):
            e[v] = math.ldexp(after[v], -exponent)
        total = math.ldexp(total, -exponent)
    return 1


@compiled
def all_proven(
    below: Floats,
    above: Floats,
    kinds: Integers,
    begins: bool,
    most: int,
    unbounded: bool,
    high: Floats,
    low: Floats,
    x: int,
    y: int,
    t: float,
    error: float,
    floor: float,
    work: Floats,
) -> bool:
    """Whether log t is proven for sides of every number of entries, up to ``most`` or beyond.

    Without ``begins`` every entry has the first kind. With it, a side of n entries walks the last n
    kinds, the first of them repeated where n is larger than their number.
    """
    if not begins:
        result = proven(below, above, kinds[:1], most, high, low, x, y, t, error, floor, work)
        return result == 2 or (result == 1 and not unbounded)
    stages = kinds.shape[0]
    for n in range(1, min(stages - 1, most) + 1):
        part = kinds[stages - n :]
        if proven(below, above, part, 1, high, low, x, y, t, error, floor, work) == 0:
            return False
    for repeats in range(1, most - stages + 2):
        result = proven(below, above, kinds, repeats, high, low, x, y, t, error, floor, work)
        if result == 0:
            return False
        if result == 2:
            return True
    return not unbounded


@compiled
def least_proven(
    below: Floats,
    above: Floats,
    kinds: Integers,
    begins: bool,
    most: int,
    unbounded: bool,
    high: Floats,
    low: Floats,
    pairs: Integers,
    begin: int,
    end: int,
    caps: Floats,
    error: float,
    floor: float,
    losses: Floats,
) -> None:
    """For each pair a proven loss, about the least; infinite if its cap is not proven."""
    work = np.empty((4, below.shape[1]))
    for pair in range(begin, end):
        x, y, least, largest = pairs[pair, 0], pairs[pair, 1], 0.0, caps[pair]
        losses[pair] = np.inf
        for turn in range(MAX_HALVINGS):
            middle = largest if turn == 0 else 0.5 * (least + largest)
            if all_proven(
                below, above, kinds, begins, most, unbounded, high, low, x, y,
                math.exp(middle), error, floor, work,
            ):  # fmt: skip
                largest = middle
                losses[pair] = middle * (1 + 8 * UNIT) + 8 * UNIT
            elif turn == 0:
                break
            else:
                least = middle
            if largest - least <= CLOSE * largest:
                break
