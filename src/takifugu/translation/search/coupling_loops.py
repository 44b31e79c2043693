"""Flows between the states of two sides, found by a dual simplex; the compiled loops.

Sources and sinks are embedded in one set of states, between which only moves from a source to a
sink have a finite gain, and `takifugu.translation.search.tree_simplex` solves the transport. Plain
floats: what a flow proves is `takifugu.translation.certify.message_loops.evaluate`. Imported by
need only: it loads numba.
"""

import math

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.translation.certify.message_loops import SPREAD, Shared, extremes, likelier, move
from takifugu.translation.search.tree_simplex import climb, where_least

NUDGE = 1e-13  # relative perturbation of gains, so that no two trees tie
NOISE = 4e-16  # relative rounding of a sum, for each of its terms
MAX_NEWTON_STEPS = 60
MAX_RAISES = 60


@compiled
def plant(
    p: Floats,
    q: Floats,
    gain: Floats,
    turned: Floats,
    k: int,
    parent: Integers,
    tail: Booleans,
    g: Floats,
    order: Integers,
    level: Floats,
    inverse: Floats,
) -> None:
    """A first tree: by falling mass, each state a leaf at its best potential so far."""
    m = len(p)
    for v in range(m):  # insertion sort: short, and quick to compile
        at, mine = v, p[v] + q[v]
        while at > 0 and p[order[at - 1]] + q[order[at - 1]] < mine:
            order[at] = order[at - 1]
            at -= 1
        order[at] = v
        level[v] = inverse[v] = np.inf
    root = 0
    while order[root] < k:  # it begins with the likeliest sink, and then a source
        root += 1
    first = 0
    while order[first] >= k:
        first += 1
    v = order[root]
    parent[v], tail[v], g[v], level[v] = -1, False, 1.0, 1.0
    for step in range(-1, m):
        if step in (root, first):
            continue
        v = order[first] if step < 0 else order[step]
        tail[v] = v < k
        if v < k:
            parent[v] = where_least(gain[v], level)
            g[v] = gain[v, parent[v]] * g[parent[v]]
            inverse[v] = 1.0 / g[v]
        else:
            parent[v] = where_least(turned[v], inverse)
            g[v] = g[parent[v]] / gain[parent[v], v]
            level[v] = g[v]


@compiled
def propose(
    shared: Shared,
    lefts: Integers,
    rights: Integers,
    first: Integers,
    source: Integers,
    sink: Integers,
    mass: Floats,
) -> None:
    """The best flow of each problem: arcs from ``first[n]`` to ``first[n + 1]``, k + w − 1 of them.

    For all other arguments see `takifugu.translation.certify.message_loops.evaluate`.
    """
    starts, states, most_chances, least_chances, costs = shared
    largest = 0
    for n in range(len(lefts)):
        k = starts[lefts[n] + 1] - starts[lefts[n]]
        largest = max(largest, k + starts[rights[n] + 1] - starts[rights[n]])
    cost = np.empty(largest * largest)
    room, turned_room = np.empty(largest * largest), np.empty(largest * largest)
    all_p, all_q, all_g = np.empty(largest), np.empty(largest), np.empty(largest)
    all_parents, all_tails = np.empty(largest, np.int64), np.empty(largest, np.bool_)
    whole_room, real_room = np.empty(5 * largest, np.int64), np.empty(3 * largest)
    for n in range(len(lefts)):
        a, b = starts[lefts[n]], starts[rights[n]]
        k, w = starts[lefts[n] + 1] - a, starts[rights[n] + 1] - b
        m = k + w
        low, high = np.inf, 0.0
        for u in range(k):
            for v in range(w):
                total = move(costs, states[a + u], states[b + v])
                cost[u * w + v] = total
                low, high = min(low, total), max(high, total)
        for arc in range(first[n], first[n + 1]):
            source[arc] = sink[arc] = 0
            mass[arc] = 0.0
        if not high - low < SPREAD:
            continue
        gain, turned = room[: m * m].reshape(m, m), turned_room[: m * m].reshape(m, m)
        gain[:] = np.inf
        turned[:] = np.inf
        mark = 0.5
        for u in range(k):
            for v in range(w):
                mark = (mark + 0.6180339887498949) % 1.0
                value = math.exp(cost[u * w + v] - low) * (1 + NUDGE * mark)
                gain[u, k + v] = turned[k + v, u] = value
        p, q, g, parent, tail = all_p[:m], all_q[:m], all_g[:m], all_parents[:m], all_tails[:m]
        for u in range(k):
            p[u], q[u] = most_chances[a + u], 0.0
        for v in range(w):
            p[k + v], q[k + v] = 0.0, least_chances[b + v]
        real = real_room[: 3 * m].reshape(3, m)
        whole = whole_room[: 5 * m].reshape(5, m)
        plant(p, q, gain, turned, k, parent, tail, g, whole[0], real[0], real[1])
        t = climb(p, q, gain, turned, parent, tail, g, 50 * m, whole, real)
        arc = first[n]
        for v in range(m):
            if parent[v] < 0:
                continue
            excess = real[0, v] - t * real[1, v]
            noise = NOISE * m * (real[0, v] + t * real[1, v])  # what rounding left is no flow
            u, other = (v, parent[v]) if tail[v] else (parent[v], v)
            source[arc], sink[arc] = u, other - k
            flow = excess if tail[v] else -excess
            mass[arc] = flow / g[u] if flow > noise else 0.0
            arc += 1


@compiled
def propose_thresholds(
    shared: Shared,
    lefts: Integers,
    rights: Integers,
    match: Integers,
    ceiling: float,
    tau: Floats,
) -> None:
    """The least τ with 1 + g P(A) ≤ τ (1 + g Q(A)), A the states with p > τ q; and a little more.

    It is found by Newton steps from below, and then raised beyond rounding. See
    `takifugu.translation.certify.message_loops.staying`.
    """
    starts, states, most_chances, least_chances, costs = shared
    for n in range(len(lefts)):
        a, b = starts[lefts[n]], starts[rights[n]]
        end_a, end_b = starts[lefts[n] + 1], starts[rights[n] + 1]
        left, right = states[a:end_a], states[b:end_b]
        p, q = most_chances[a:end_a], least_chances[b:end_b]
        stay, high = extremes(left, right, match, costs, ceiling)
        tau[n] = 1.0
        if not 0.0 < high - stay < SPREAD:
            continue
        g = math.expm1(high - stay)
        for _ in range(MAX_NEWTON_STEPS):
            above, below = likelier(left, right, match, p, q, tau[n], g)
            if above / below <= tau[n] * (1 + 1e-14):
                break
            tau[n] = above / below
        margin = 2e-15 * (len(left) + len(right) + 8)
        for _ in range(MAX_RAISES):
            tau[n] *= 1 + margin
            above, below = likelier(left, right, match, p, q, tau[n], g)
            if above * (1 + margin / 2) <= tau[n] * below:
                break
            margin *= 2
