"""The inner loops of `takifugu.translation.chain.coalescing`, compiled.

A *side* is a walk away from the secret's entry: step n leads by ``rows[row_at[n]]`` to an entry
whose factor lies between ``low[cost_at[n]]`` and ``high[cost_at[n]]``, state by state. States with
the same factor are one class: ``order[level]`` lists the states class by class, and ``last[level]``
says where a class ends. After its last step an unbounded side repeats it.

Two loops carry a measure along a side. `carried` takes the two laws a and b apart, with the factors
that are best for a − t·b, and returns the ratio of their totals. `certified` takes an upper bound
on a − t·b alone, every operation rounded up, and says whether its total is proven to be at most 0.

This module is imported by need only: it loads numba. It is one file on purpose: numba reuses a
compiled loop while that loop's own file is unchanged, whatever happened to the files it calls.
"""

import math

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT

ROUNDS = 60  # of raising t to the ratio that its factors attain
SETTLED = 1e-13  # a smaller relative rise of t counts as none
FEW = 16  # steps of a long side that are walked first
SHORT = 64  # steps of a side that are all looked at
WIDEST = 14  # factors of 3 by which a margin is widened until it can be proven


def _carried(
    rows: Floats,
    row_at: Integers,
    high: Floats,
    low: Floats,
    order: Integers,
    last: Booleans,
    cost_at: Integers,
    x: int,
    y: int,
    t: float,
    steps: int,
    whole: bool,
    work: Floats,
) -> float:
    """The ratio of E[Πg | x] to E[Πg | y] over ``steps`` steps, with the factors greedy at t.

    ``whole`` gives every class one factor, whatever the next entry is: that is a mechanism.
    """
    k = rows.shape[1]
    a, b, next_a, next_b, part_a, part_b = work[0], work[1], work[2], work[3], work[4], work[5]
    listed = row_at.shape[0]
    first = rows[row_at[0]]
    for v in range(k):
        a[v] = first[x, v]
        b[v] = first[y, v]
    total_a = total_b = 1.0
    for n in range(1, steps + 1):
        level = cost_at[min(n, listed) - 1]
        ends = n == steps
        matrix = rows[row_at[min(n, listed - 1)]]
        for v in range(k):
            next_a[v] = 0.0
            next_b[v] = 0.0
        total_a = total_b = 0.0
        begin = 0
        for place in range(k):
            if not last[level, place]:
                continue
            u = order[level, begin]
            up, down = high[level, u], low[level, u]
            if ends:
                sum_a = sum_b = 0.0
                for other in range(begin, place + 1):
                    sum_a += a[order[level, other]]
                    sum_b += b[order[level, other]]
                g = up if sum_a > t * sum_b else down
                total_a += g * sum_a
                total_b += g * sum_b
            elif begin == place:
                g = up if a[u] > t * b[u] else down
                weight_a, weight_b = g * a[u], g * b[u]
                if weight_a > 0 or weight_b > 0:
                    row = matrix[u]
                    for v in range(k):
                        next_a[v] += weight_a * row[v]
                        next_b[v] += weight_b * row[v]
            elif whole:
                sum_a = sum_b = 0.0
                for other in range(begin, place + 1):
                    sum_a += a[order[level, other]]
                    sum_b += b[order[level, other]]
                g = up if sum_a > t * sum_b else down
                for other in range(begin, place + 1):
                    u = order[level, other]
                    weight_a, weight_b = g * a[u], g * b[u]
                    if weight_a > 0 or weight_b > 0:
                        row = matrix[u]
                        for v in range(k):
                            next_a[v] += weight_a * row[v]
                            next_b[v] += weight_b * row[v]
            else:
                for v in range(k):
                    part_a[v] = 0.0
                    part_b[v] = 0.0
                for other in range(begin, place + 1):
                    u = order[level, other]
                    weight_a, weight_b = a[u], b[u]
                    if weight_a > 0 or weight_b > 0:
                        row = matrix[u]
                        for v in range(k):
                            part_a[v] += weight_a * row[v]
                            part_b[v] += weight_b * row[v]
                for v in range(k):
                    g = up if part_a[v] > t * part_b[v] else down
                    next_a[v] += g * part_a[v]
                    next_b[v] += g * part_b[v]
            begin = place + 1
        if ends:
            break
        most = 0.0
        for v in range(k):
            most = max(most, max(next_a[v], next_b[v]))
        scale = math.ldexp(1.0, -math.frexp(most)[1])
        for v in range(k):
            a[v] = next_a[v] * scale
            b[v] = next_b[v] * scale
    return total_a / total_b if total_b > 0 else np.inf


carried = compiled(_carried)


def _certified(
    rows: Floats,
    row_at: Integers,
    high: Floats,
    low: Floats,
    order: Integers,
    last: Booleans,
    cost_at: Integers,
    x: int,
    y: int,
    t: float,
    steps: int,
    unbounded: bool,
    held: Booleans,
    error: float,
    floor: float,
    work: Floats,
) -> bool:
    """Whether log t is proven to bound the side of the pair; ``steps`` is the most that is walked.

    ``held[n]`` is whether the maps of all entries from n on are equal. ``error`` is at least the
    relative error of a row, of a factor and of a sum of so many products. ``floor`` keeps products
    of positive numbers from underflow: a positive weight is raised to it.
    """
    k = rows.shape[1]
    e, before, after, plus, minus = work[0], work[1], work[2], work[3], work[4]
    listed = row_at.shape[0]
    first = rows[row_at[0]]
    for v in range(k):
        e[v] = first[x, v] * (1 + error) - t * first[y, v] * (1 - error)
    known = False  # whether `before` is the measure of the last step, up to a common factor
    for n in range(1, steps + 1):
        level = cost_at[min(n, listed) - 1]
        none = True
        for v in range(k):
            if not e[v] <= 0:
                none = False
                break
        if none:
            return True  # and it stays so
        # what is left if nothing comes after this entry
        positive = negative = 0.0
        begin = 0
        for place in range(k):
            if not last[level, place]:
                continue
            u = order[level, begin]
            up, down = 0.0, 0.0
            for other in range(begin, place + 1):
                value = e[order[level, other]]
                if value > 0:
                    up += value
                else:
                    down -= value
            excess = up * (1 + error) - down * (1 - error)
            if excess > 0:
                positive += high[level, u] * excess
            else:
                negative -= low[level, u] * excess
            begin = place + 1
        kept = positive * (1 + error) <= negative * (1 - error)
        if not kept:
            return False  # entries that are left out reveal no less than t
        if n == steps and not unbounded:
            return True
        if known and held[min(n, listed) - 1]:
            # e ≤ r·before, r > 0: then every later measure is at most r times the one before it
            least, most = np.inf, 0.0
            for v in range(k):
                if before[v] > 0:
                    most = max(most, e[v] / before[v])
                elif before[v] < 0:
                    least = min(least, e[v] / before[v])
                elif e[v] > 0:
                    most = np.inf
            if most * (1 + error) < least * (1 - error):
                return True
        if n == steps:
            return False
        matrix = rows[row_at[min(n, listed - 1)]]
        for v in range(k):
            plus[v] = 0.0
            minus[v] = 0.0
            after[v] = 0.0
        begin = 0
        for place in range(k):
            if not last[level, place]:
                continue
            if begin == place:
                u = order[level, begin]
                row = matrix[u]
                if e[u] > 0:
                    weight = max(e[u] * high[level, u], floor)
                    for v in range(k):
                        plus[v] += weight * row[v]
                elif e[u] < 0:
                    weight = -e[u] * low[level, u]
                    for v in range(k):
                        minus[v] += weight * row[v]
            begin = place + 1
        for v in range(k):
            after[v] = plus[v] * (1 + error) - minus[v] * (1 - error)
        begin = 0
        for place in range(k):
            if not last[level, place]:
                continue
            if begin < place:
                u = order[level, begin]
                up, down = high[level, u], low[level, u]
                for v in range(k):
                    plus[v] = 0.0
                    minus[v] = 0.0
                for other in range(begin, place + 1):
                    u = order[level, other]
                    row = matrix[u]
                    if e[u] > 0:
                        weight = max(e[u], floor)
                        for v in range(k):
                            plus[v] += weight * row[v]
                    elif e[u] < 0:
                        weight = -e[u]
                        for v in range(k):
                            minus[v] += weight * row[v]
                for v in range(k):
                    value = plus[v] * (1 + error) - minus[v] * (1 - error)
                    gained = value * (up * (1 + error) if value > 0 else down * (1 - error))
                    total = after[v] + gained
                    after[v] = total + (abs(after[v]) + abs(gained)) * 4 * UNIT
            begin = place + 1
        most = 0.0
        for v in range(k):
            most = max(most, abs(after[v]))
        if not most < np.inf:
            return False
        scale = math.ldexp(1.0, -math.frexp(most)[1])
        for v in range(k):
            before[v] = e[v]
            e[v] = after[v] * scale
        known = True
    return False


certified = compiled(_certified)


def _solve(
    rows: Floats,
    row_at: Integers,
    high: Floats,
    low: Floats,
    order: Integers,
    last: Booleans,
    cost_at: Integers,
    unbounded: bool,
    most: int,
    held: Booleans,
    error: float,
    floor: float,
    margin: float,
    pairs: Integers,
    begin: int,
    end: int,
    guess: Floats,
    below: Floats,
    above: Floats,
) -> None:
    """For each pair log t from below, not rounded, and a proven one; infinite if none was proven.

    ``guess`` is where the search starts; ``most`` the steps that are walked; ``margin`` what is put
    on top of a long side's log t, as a share, and three times as much until it is proven.
    """
    work = np.empty((6, rows.shape[1]))
    for pair in range(begin, end):
        x, y = pairs[pair, 0], pairs[pair, 1]
        t = math.exp(guess[pair])
        short = not unbounded and most <= SHORT  # then nothing is left out
        steps = most if short else min(FEW, most)
        started = False
        while True:
            for _ in range(ROUNDS):
                ratio = carried(
                    rows, row_at, high, low, order, last, cost_at, x, y, t, steps, False, work
                )
                risen = ratio > t * (1 + SETTLED)
                if risen or not started:
                    settled = not risen and ratio >= t * (1 - SETTLED)
                    t = max(ratio, 1.0)
                    started = True
                    if settled:
                        break
                else:
                    break
            if steps >= most or not t < np.inf:
                break
            longer = min(2 * steps, most)
            ratio = carried(
                rows, row_at, high, low, order, last, cost_at, x, y, t, longer, False, work
            )
            if math.log(ratio) <= math.log(t) * (1 + 0.25 * margin) + 1e-14:
                break
            t, steps = ratio, longer
        below[pair] = math.log(t)
        above[pair] = np.inf
        if not t < np.inf:
            continue
        share = 1e-12 if steps >= most and not unbounded else margin
        added = share * below[pair] + 4 * error + 1e-15
        for _ in range(WIDEST):
            if certified(
                rows, row_at, high, low, order, last, cost_at, x, y,
                math.exp(below[pair] + added), most, unbounded, held, error, floor, work,
            ):  # fmt: skip
                above[pair] = (below[pair] + added) * (1 + 8 * UNIT) + 8 * UNIT
                break
            added *= 3


solve = compiled(_solve)


def _test(
    rows: Floats,
    row_at: Integers,
    high: Floats,
    low: Floats,
    order: Integers,
    last: Booleans,
    cost_at: Integers,
    unbounded: bool,
    most: int,
    held: Booleans,
    error: float,
    floor: float,
    pairs: Integers,
    begin: int,
    end: int,
    limits: Floats,
    proven: Booleans,
) -> None:
    """Whether each pair's loss on this side is proven to be at most its limit."""
    work = np.empty((6, rows.shape[1]))
    for pair in range(begin, end):
        limit = limits[pair] * (1 - 8 * UNIT) - 8 * UNIT
        proven[pair] = limit >= 0 and certified(
            rows, row_at, high, low, order, last, cost_at, pairs[pair, 0], pairs[pair, 1],
            math.exp(limit), most, unbounded, held, error, floor, work,
        )  # fmt: skip


test = compiled(_test)


def _glance(
    rows: Floats,
    row_at: Integers,
    high: Floats,
    low: Floats,
    order: Integers,
    last: Booleans,
    cost_at: Integers,
    pairs: Integers,
    begin: int,
    end: int,
    steps: int,
    whole: bool,
    guess: Floats,
) -> None:
    """Replace each pair's guess by the ratio of its factors over a few steps."""
    work = np.empty((6, rows.shape[1]))
    for pair in range(begin, end):
        ratio = carried(
            rows, row_at, high, low, order, last, cost_at, pairs[pair, 0], pairs[pair, 1],
            math.exp(guess[pair]), steps, whole, work,
        )  # fmt: skip
        guess[pair] = max(math.log(ratio), 0.0) if 0 < ratio < np.inf else 0.0


glance = compiled(_glance)
