"""What flows between the states of two sides prove, compiled; rounded up.

Sources u have masses p, sinks v masses q, moving from u to v costs c(u, v) and gains W = e^c. Every
γ ≥ 0 with Σ_v γ(u, v) = p(u) proves log t for t = max_v Σ_u γ(u, v) W(u, v) / q(v) (weak duality).
A proposed flow only says in which proportions a source is sent to its sinks: it is scaled to p
here, so that whatever was proposed is a coupling, and what it proves is an upper bound. Imported
by need only: it loads numba.
"""

import math

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Floats, Integers
from takifugu._core.rounding import UNIT

Costs = tuple[Integers, Floats, Integers, Integers, Floats]
Shared = tuple[Integers, Integers, Floats, Floats, Costs]
SPREAD = 300.0  # costs further apart than this are not exponentiated
HEAVIEST = 1e200  # a larger mass on an arc is no flow


@compiled
def move(costs: Costs, u: int, v: int) -> float:
    """What moving from state u to state v costs, rounded up.

    ``costs`` are index, flat, offset, width, caps. It is the sum over tables m of
    ``flat[offset[m] + i * width[m] + j]``, where i = ``index[m, u]`` and j = ``index[m, v]``.
    Tables up to one whose ``caps`` is not negative cost no more than that together.
    """
    index, flat, offset, width, caps = costs
    tables = len(offset)
    total = part = 0.0
    for m in range(tables):
        part += flat[offset[m] + index[m, u] * width[m] + index[m, v]]
        if caps[m] >= 0:
            total += min(part, caps[m])
            part = 0.0
    return float(total * (1 + 2 * (tables + 2) * UNIT))


@compiled
def evaluate(
    shared: Shared,
    lefts: Integers,
    rights: Integers,
    first: Integers,
    source: Integers,
    sink: Integers,
    mass: Floats,
    values: Floats,
) -> None:
    """``values[n]``: an upper bound on log t between the sides ``lefts[n]`` and ``rights[n]``.

    ``shared`` are starts, states, most_chances, least_chances, and the costs of `move`. Side s has
    the states ``states[starts[s]:starts[s + 1]]``, with ``most_chances`` as a source
    and ``least_chances`` as a sink: raising the one and lowering the other can only raise t. Arcs
    ``first[n]`` to ``first[n + 1]`` are the flow of problem n. An arc without a positive mass, or
    to a sink without one, is passed over; a source without arcs goes to the likeliest sink.
    """
    starts, states, most_chances, least_chances, costs = shared
    largest = 0
    for s in range(len(starts) - 1):
        largest = max(largest, starts[s + 1] - starts[s])
    leaving, arriving = np.empty(largest), np.empty(largest)
    for n in range(len(lefts)):
        a, b = starts[lefts[n]], starts[rights[n]]
        k, w = starts[lefts[n] + 1] - a, starts[rights[n] + 1] - b
        low, high = np.inf, 0.0
        for u in range(k):
            leaving[u] = 0.0
            for v in range(w):
                cost = move(costs, states[a + u], states[b + v])
                low, high = min(low, cost), max(high, cost)
        values[n] = high  # every coupling costs at most the dearest move
        if not high - low < SPREAD:
            continue
        likeliest = 0
        for v in range(w):
            arriving[v] = 0.0
            if least_chances[b + v] > least_chances[b + likeliest]:
                likeliest = v
        for arc in range(first[n], first[n + 1]):
            u, v = source[arc], sink[arc]
            if 0 <= u < k and 0 <= v < w and 0 < mass[arc] < HEAVIEST and least_chances[b + v] > 0:
                leaving[u] += mass[arc]
        for arc in range(first[n], first[n + 1]):
            u, v = source[arc], sink[arc]
            if 0 <= u < k and 0 <= v < w and 0 < mass[arc] < HEAVIEST and least_chances[b + v] > 0:
                cost = move(costs, states[a + u], states[b + v])
                gain = math.exp(cost - low + 4 * UNIT * cost) * (1 + 8 * UNIT)
                arriving[v] += mass[arc] / leaving[u] * most_chances[a + u] * gain
        for u in range(k):
            if leaving[u] == 0:
                v = likeliest
                cost = move(costs, states[a + u], states[b + v])
                gain = math.exp(cost - low + 4 * UNIT * cost) * (1 + 8 * UNIT)
                arriving[v] += most_chances[a + u] * gain
        t = 0.0
        for v in range(w):
            if arriving[v] > 0:
                t = max(t, arriving[v] / least_chances[b + v])
        t *= 1 + 4 * (first[n + 1] - first[n] + k + 8) * UNIT
        bound = low + math.log(t) * (1 + 8 * UNIT)
        values[n] = min(high, max(bound + 8 * UNIT * (1 + abs(bound) + low), 0.0))


@compiled
def likelier(
    left: Integers, right: Integers, match: Integers, p: Floats, q: Floats, tau: float, g: float
) -> tuple[float, float]:
    """1 + g P(A) and 1 + g Q(A) for the set A of states with p > tau·q."""
    above, below, at = 1.0, 1.0, 0
    for u in range(len(left)):
        while at < len(right) and match[right[at]] < match[left[u]]:
            at += 1
        other = 0.0
        if at < len(right) and match[right[at]] == match[left[u]]:
            other = q[at]
        if p[u] > tau * other:
            above += g * p[u]
            below += g * other
    return above, below


@compiled
def extremes(
    left: Integers, right: Integers, match: Integers, costs: Costs, ceiling: float
) -> tuple[float, float]:
    """The most that staying and any move cost; with a ``ceiling`` only staying is looked up."""
    stay, high, first = 0.0, max(ceiling, 0.0), 0
    for u in range(len(left)):
        last = len(right)
        if ceiling >= 0:
            while first < len(right) and match[right[first]] < match[left[u]]:
                first += 1
            last = min(first + 1, len(right))
        for v in range(first, last):
            same = match[left[u]] == match[right[v]]
            if ceiling >= 0 and not same:
                continue
            cost = move(costs, left[u], right[v])
            high = max(high, cost)
            if same:
                stay = max(stay, cost)
    return stay, high


@compiled
def staying(
    shared: Shared,
    lefts: Integers,
    rights: Integers,
    match: Integers,
    ceiling: float,
    tau: Floats,
    values: Floats,
) -> None:
    """As `evaluate`, by simple couplings: what can stay stays, and the rest moves anyhow.

    States u and v with ``match[u] == match[v]`` are the same. If staying costs at most c and moving
    c + κ, then log t ≤ c + log τ for every τ ≥ 1 with 1 + g P(A) ≤ τ (1 + g Q(A)), where g = e^κ −
    1 and A is the set of states with p > τ q: 1 − τ + g Σ max(p − τ q, 0) falls in τ and is not
    positive there. States of a side are listed in the order of ``match``, each of which it has
    once. If ``ceiling`` is not negative, no move costs more. ``tau[n]`` is believed only where the
    inequality holds beyond rounding.
    """
    starts, states, most_chances, least_chances, costs = shared
    for n in range(len(lefts)):
        a, b = starts[lefts[n]], starts[rights[n]]
        end_a, end_b = starts[lefts[n] + 1], starts[rights[n] + 1]
        left, right = states[a:end_a], states[b:end_b]
        stay, high = extremes(left, right, match, costs, ceiling)
        values[n] = high
        if not (0.0 < high - stay < SPREAD and 1.0 <= tau[n] < np.inf):
            continue
        g = math.expm1(high - stay) * (1 + 8 * UNIT)
        above, below = likelier(
            left, right, match, most_chances[a:end_a], least_chances[b:end_b], tau[n], g
        )
        if above * (1 + 8 * (end_a - a + end_b - b + 8) * UNIT) <= tau[n] * below:
            bound = stay + math.log(tau[n]) * (1 + 8 * UNIT)
            values[n] = min(high, bound + 8 * UNIT * (1 + abs(bound)))


@compiled
def by_way_of_others(cost: Floats) -> None:
    """Replace ``cost[u, v]`` by the length of the shortest path from u to v, rounded up."""
    n = len(cost)
    for w in range(n):
        for u in range(n):
            begin = cost[u, w]
            if u == w or begin == np.inf:
                continue
            for v in range(n):
                cost[u, v] = min(cost[u, v], begin + cost[w, v])
    for u in range(n):
        for v in range(n):
            cost[u, v] *= 1 + 4 * n * UNIT
