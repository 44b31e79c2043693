"""Every ordered pair of rows at once: the compiled loops around one transport problem.

Imported by need only: it loads numba.
"""

import math

import numpy as np

from numpy.typing import NDArray

from takifugu.numeric import UNIT, Booleans, Floats
from takifugu.translation.tree import climb, compiled, least, plant, pour, regrow

Places = NDArray[np.int16]


def _improve(
    numerator: Floats,
    denominator: Floats,
    gain: Floats,
    turned: Floats,
    guess: Floats,
    fresh: bool,
    begin: int,
    end: int,
    parents: Places,
    tails: Booleans,
    orders: Places,
    masses: Floats,
    values: Floats,
) -> None:
    """Solve the pairs (x, y), begin ≤ x < end, x ≠ y, from their last trees unless ``fresh``."""
    n, m = numerator.shape
    whole = np.empty((5, m), np.int64)
    real = np.empty((3, m))
    parent = np.empty(m, np.int64)
    tail = np.empty(m, np.bool_)
    g = np.empty(m)
    for x in range(begin, end):
        p = numerator[x]
        for y in range(n):
            if x == y:
                continue
            q = denominator[y]
            if fresh:
                plant(p, q, math.exp(guess[x, y]), gain, turned, parent, tail, g, real)
            else:
                for v in range(m):
                    parent[v] = parents[x, y, v]
                    tail[v] = tails[x, y, v]
                regrow(gain, parent, tail, g, whole, real)
            t = climb(p, q, gain, turned, parent, tail, g, 50 * m, whole, real)
            pour(p, q, t, gain, parent, tail, g, masses[x, y], whole, real)
            values[x, y] = math.log(t)
            for v in range(m):
                parents[x, y, v] = parent[v]
                tails[x, y, v] = tail[v]
                orders[x, y, v] = whole[2, v]


improve = compiled(_improve)


def _follow(
    numerator: Floats,
    denominator: Floats,
    gain: Floats,
    closing: bool,
    begin: int,
    end: int,
    parents: Places,
    tails: Booleans,
    orders: Places,
    values: Floats,
) -> None:
    """log Σ p g / Σ q g of each pair, with the g that its old tree has under new gains.

    That is log t if the tree is still the best, and no bound if it is not. ``closing`` first
    lowers g to min_v W(u, v) g(v), which obeys every constraint: then it is a lower bound.
    """
    n, m = numerator.shape
    g = np.empty(m)
    for x in range(begin, end):
        for y in range(n):
            if x == y:
                continue
            above = below = 0.0
            for k in range(m):
                v = orders[x, y, k]
                up = parents[x, y, v]
                if up < 0:
                    g[v] = 1.0
                elif tails[x, y, v]:
                    g[v] = gain[v, up] * g[up]
                else:
                    g[v] = g[up] / gain[up, v]
                above += numerator[x, v] * g[v]
                below += denominator[y, v] * g[v]
            if closing:
                above = below = 0.0
                for u in range(m):
                    allowed = least(gain[u], g)
                    above += numerator[x, u] * allowed
                    below += denominator[y, u] * allowed
            values[x, y] = max(math.log(above / below), 0.0)


follow = compiled(_follow)


def _evaluate(
    numerator: Floats,
    denominator: Floats,
    gain: Floats,
    begin: int,
    end: int,
    parents: Places,
    tails: Booleans,
    masses: Floats,
    values: Floats,
) -> None:
    """What the flows prove: values[x, y] ≥ log max_u [p + arriving − leaving] / q, rounded up."""
    n, m = numerator.shape
    error = 2 * (m + 8) * UNIT
    arriving = np.empty(m)
    leaving = np.empty(m)
    for x in range(begin, end):
        for y in range(n):
            if x == y:
                values[x, y] = 0.0
                continue
            for v in range(m):
                arriving[v] = numerator[x, v]
                leaving[v] = 0.0
            for v in range(m):
                mass = masses[x, y, v]
                if mass > 0:
                    above = parents[x, y, v]
                    source, sink = (v, above) if tails[x, y, v] else (above, v)
                    leaving[source] += mass
                    arriving[sink] += mass * gain[source, sink]
            worst = 1.0
            for v in range(m):
                kept = arriving[v] * (1 + error) - leaving[v] * (1 - error)
                if kept > 0:
                    room = denominator[y, v]
                    worst = max(worst, kept / room if room > 0 else np.inf)
            values[x, y] = math.log(worst) * (1 + 8 * UNIT) + 8 * UNIT


evaluate = compiled(_evaluate)
