"""The compiled loops of `takifugu.translation.certify.boxes`.

This module is imported by need only: it loads numba.
"""

import math
from typing import NamedTuple

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT

MAX_HALVINGS = 40  # of the interval in which the least proven loss lies
CLOSE = 1e-7  # share of a loss at which that ends


class BoxSteps(NamedTuple):
    """The steps of `takifugu.translation.certify.boxes.BoxSide` as the loops take them."""

    below: Floats
    above: Floats
    kinds: Integers
    begins: bool
    most: int
    unbounded: bool
    high: Floats
    low: Floats
    error: float
    floor: float


@compiled
def step(
    side: BoxSteps,
    kind: int,
    e: Floats,
    total: float,
    after: Floats,
    plus: Floats,
    minus: Floats,
) -> float:
    """One step: ``after`` becomes the next bounds; returns that on their sum."""
    below, above, high, low = side.below[kind], side.above[kind], side.high, side.low
    error, floor = side.error, side.floor
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
    side: BoxSteps, kinds: Integers, repeats: int, x: int, y: int, t: float, work: Floats
) -> int:
    """Walk kinds[0], ``repeats`` times in all, then the others; 0 fails, 1 holds, 2 for good.

    2: no measure is positive before the first kind ends, so that more repeats change nothing.
    """
    below, above, error = side.below, side.above, side.error
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
        total = step(side, kind, e, total, after, plus, minus)
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
def all_proven(side: BoxSteps, x: int, y: int, t: float, work: Floats) -> bool:
    """Whether log t is proven for sides of every number of entries, up to ``most`` or beyond.

    Without ``begins`` every entry has the first kind. With it, a side of n entries walks the last n
    kinds, the first of them repeated where n is larger than their number.
    """
    kinds, most, unbounded = side.kinds, side.most, side.unbounded
    if not side.begins:
        result = proven(side, kinds[:1], most, x, y, t, work)
        return result == 2 or (result == 1 and not unbounded)
    stages = kinds.shape[0]
    for n in range(1, min(stages - 1, most) + 1):
        part = kinds[stages - n :]
        if proven(side, part, 1, x, y, t, work) == 0:
            return False
    for repeats in range(1, most - stages + 2):
        result = proven(side, kinds, repeats, x, y, t, work)
        if result == 0:
            return False
        if result == 2:
            return True
    return not unbounded


@compiled
def least_proven(
    side: BoxSteps, pairs: Integers, begin: int, end: int, caps: Floats, losses: Floats
) -> None:
    """For each pair a proven loss, about the least; infinite if its cap is not proven."""
    work = np.empty((4, side.below.shape[1]))
    for pair in range(begin, end):
        x, y, least, largest = pairs[pair, 0], pairs[pair, 1], 0.0, caps[pair]
        losses[pair] = np.inf
        for turn in range(MAX_HALVINGS):
            middle = largest if turn == 0 else 0.5 * (least + largest)
            if all_proven(side, x, y, math.exp(middle), work):
                largest = middle
                losses[pair] = middle * (1 + 8 * UNIT) + 8 * UNIT
            elif turn == 0:
                break
            else:
                least = middle
            if largest - least <= CLOSE * largest:
                break
