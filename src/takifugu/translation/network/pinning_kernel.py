"""Intervals for the log odds of entries of an attractive field, by pinning; the compiled loops.

See `takifugu.translation.network.pinning` for the identity behind it. A *box* (L, U, A, B) says
that the log odds of an entry are between L and U, and rise by A to B when every field rises by its
ε. Imported by need only: it loads numba.
"""

import math

import numpy as np

from takifugu._rounding import UNIT
from takifugu.numeric import Booleans, Floats, Integers
from takifugu.translation.chain.tree_simplex import compiled

Box = tuple[float, float, float, float]


@compiled
def soft(x: float) -> float:
    """log(1 + e^x)."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@compiled
def felt(y: float, pull: float) -> float:
    """What a contact with log odds y and coupling J adds: log(1 + (e^J − 1) P(1))."""
    return soft(y + pull) - soft(y)


@compiled
def rise(y: float, grown: float, pull: float) -> float:
    """How much more a contact adds when its log odds grow from y by ``grown``."""
    return felt(y + grown, pull) - felt(y, pull)


@compiled
def most_rise(low: float, high: float, grown: float, pull: float) -> float:
    """The largest rise for y in [low, high]: it has one peak, at −(J + E)/2."""
    y = min(max(-(pull + grown) / 2, low), high)
    return max(rise(y, grown, pull), 0.0)


@compiled
def least_rise(low: float, high: float, grown: float, pull: float) -> float:
    """The smallest rise for y in [low, high]: at one of the ends."""
    return max(min(rise(low, grown, pull), rise(high, grown, pull)), 0.0)


@compiled
def top(values: Floats, count: int, most: int) -> float:
    """The sum of the ``most`` largest of ``count`` non-negative values."""
    if most <= 0:
        return 0.0
    ordered = np.sort(values[:count])
    total = 0.0
    for k in range(max(count - most, 0), count):
        total += ordered[k]
    return total


@compiled
def far_boxes(
    low: Floats,
    high: Floats,
    epsilon: Floats,
    near: Integers,
    degree: Integers,
    weak: Floats,
    strong: Floats,
    boxes: Floats,
) -> None:
    """``boxes[m, i, a]``: contact a of entry i, i and up to m others taken out and pinned anyhow.

    The last level pins everybody; level m follows from level m + 1. Behind each box stands its
    upper end without the pins, for use where the pins are known.
    """
    levels, n, _, _ = boxes.shape
    room = np.empty((3, near.shape[1]))
    floor, ceiling, spread = room[0], room[1], room[2]
    whole = epsilon.sum() * (1 + 2 * n * UNIT)  # group privacy: no log odds rise by more
    for m in range(levels - 1, -1, -1):
        for i in range(n):
            for a in range(degree[i]):
                w = near[i, a]
                lower, upper, least, greatest = low[w], high[w], epsilon[w], epsilon[w]
                count, size = 0, abs(low[w]) + epsilon[w]
                for b in range(degree[w]):
                    if near[w, b] == i:
                        continue
                    pull, push = strong[w, b], weak[w, b]
                    size += pull
                    if m == levels - 1:
                        upper += pull
                        greatest += pull
                        continue
                    down, up = boxes[m + 1, w, b, 0], boxes[m + 1, w, b, 1]
                    grown, more = boxes[m + 1, w, b, 2], boxes[m + 1, w, b, 3]
                    size += abs(down) + abs(up) + more  # `felt` is off by units of these
                    floor[count] = max(felt(down, push), 0.0)
                    spread[count] = least_rise(down, up, grown, push)
                    one = felt(up, pull)
                    ceiling[count] = max(pull - one, 0.0)
                    lower += floor[count]
                    least += spread[count]
                    upper += one
                    greatest += most_rise(down, up, more, pull)
                    count += 1
                margin = 32 * (degree[w] + 4) * UNIT * (1 + size)
                boxes[m, i, a, 0] = lower - top(floor, count, m) - margin
                boxes[m, i, a, 1] = upper + top(ceiling, count, m) + margin
                boxes[m, i, a, 2] = max(least - top(spread, count, m) - margin, 0.0)
                boxes[m, i, a, 3] = min(greatest + margin, whole)
                boxes[m, i, a, 4] = upper + margin


@compiled
def explore(
    entry: int,
    depth: int,
    share: float,
    tolerance: float,
    most: int,
    low: Floats,
    high: Floats,
    epsilon: Floats,
    near: Integers,
    degree: Integers,
    weak: Floats,
    strong: Floats,
    boxes: Floats,
    gone: Booleans,
    pinned: Floats,
    kept: Floats,
    visits: Integers,
) -> Box:
    """The box of ``entry`` with the entries ``gone`` taken out and their pins in ``pinned``.

    A contact is explored further while what is unknown about it, times ``share`` (how much
    of it reaches the first entry), is above ``tolerance``, up to ``most`` visits in all.
    """
    visits[0] += 1
    lower, upper = low[entry] + pinned[0, entry], high[entry] + pinned[1, entry]
    least = greatest = epsilon[entry]
    size = abs(low[entry]) + pinned[1, entry] + least
    gone[entry] = True
    for a in range(degree[entry]):
        w = near[entry, a]
        kept[depth, 0, a], kept[depth, 1, a] = pinned[0, w], pinned[1, w]
        if gone[w]:
            continue
        push, pull = weak[entry, a], strong[entry, a]
        m = min(depth, boxes.shape[0] - 1)
        down = boxes[m, entry, a, 0] + pinned[0, w]
        up = min(boxes[m, entry, a, 1], boxes[m, entry, a, 4] + pinned[1, w])
        grown, more = boxes[m, entry, a, 2], boxes[m, entry, a, 3]
        unknown = most_rise(down, up, more, pull) - least_rise(down, up, grown, push)
        if share * unknown > tolerance and depth + 1 < kept.shape[0] and visits[0] < most:
            reach = most_rise(down, up, more, pull) / max(more, 1e-300)
            found = explore(
                *(w, depth + 1, share * reach, tolerance, most, low, high, epsilon, near, degree),
                *(weak, strong, boxes, gone, pinned, kept, visits),
            )
            down, up = max(down, found[0]), min(up, found[1])
            grown, more = max(grown, found[2]), min(more, found[3])
        size += abs(down) + abs(up) + more  # `felt` is off by units of these
        lower += max(felt(down, push), 0.0)
        upper += felt(up, pull)
        least += least_rise(down, up, grown, push)
        greatest += most_rise(down, up, more, pull)
        size += pull
        pinned[0, w] += push  # later contacts see this entry as 1 at w
        pinned[1, w] += pull
    gone[entry] = False
    for a in range(degree[entry]):
        w = near[entry, a]
        pinned[0, w], pinned[1, w] = kept[depth, 0, a], kept[depth, 1, a]
    margin = 32 * (degree[entry] + 4) * UNIT * (1 + size)
    return lower - margin, upper + margin, max(least - margin, 0.0), greatest + margin
