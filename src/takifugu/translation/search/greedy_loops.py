"""Greedy factors along a side of a chain under star costs; the compiled loops of a search.

Two laws a and b are carried apart, with the factors that are best for a − t·b, and t is raised to
the ratio of their totals until it settles. Plain floats: what t proves is
`takifugu.translation.certify.stars.StarSide.upper`. Imported by need only: it loads numba.
"""

import math

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.translation.certify.stars import StarSteps

MAX_RAISES = 60  # of t to the ratio that its factors attain
SETTLED = 1e-13  # a smaller relative rise of t counts as none
FIRST_STEPS = 16  # of a long side that are walked first
SHORT = 64  # steps of a side that are all looked at


@compiled
def carried(
    side: StarSteps,
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
    rows, row_at, cost_at = side.rows, side.row_at, side.cost_at
    high, low, order, last = side.high, side.low, side.order, side.last
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
            elif whole or begin == place:
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


@compiled
def raised(
    side: StarSteps,
    margin: float,
    pairs: Integers,
    begin: int,
    end: int,
    guess: Floats,
    below: Floats,
    whole: Booleans,
) -> None:
    """For each pair log t from below, not rounded, and whether all entries were walked.

    ``guess`` is where the search starts; ``margin`` the share of log t that steps which are left
    out may add.
    """
    most, unbounded = side.most, side.unbounded
    work = np.empty((6, side.rows.shape[1]))
    for pair in range(begin, end):
        x, y = pairs[pair, 0], pairs[pair, 1]
        t = math.exp(guess[pair])
        short = not unbounded and most <= SHORT  # then nothing is left out
        steps = most if short else min(FIRST_STEPS, most)
        started = False
        while True:
            for _ in range(MAX_RAISES):
                ratio = carried(side, x, y, t, steps, False, work)
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
            ratio = carried(side, x, y, t, longer, False, work)
            if math.log(ratio) <= math.log(t) * (1 + 0.25 * margin) + 1e-14:
                break
            t, steps = ratio, longer
        below[pair] = math.log(t)
        whole[pair] = steps >= most and not unbounded


@compiled
def glance(
    side: StarSteps,
    pairs: Integers,
    begin: int,
    end: int,
    steps: int,
    whole: bool,
    guess: Floats,
) -> None:
    """Replace each pair's guess by the ratio of its factors over a few steps."""
    work = np.empty((6, side.rows.shape[1]))
    for pair in range(begin, end):
        x, y = pairs[pair]
        ratio = carried(side, x, y, math.exp(guess[pair]), steps, whole, work)
        guess[pair] = max(math.log(ratio), 0.0) if 0 < ratio < np.inf else 0.0
