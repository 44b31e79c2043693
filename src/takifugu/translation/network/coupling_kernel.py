"""The transport with gains between two short lists of states, compiled.

Sources u have masses p > 0, sinks v masses q ≥ 0, and gains W(u, v). The least t for which some γ
≥ 0 has Σ_v γ(u, v) = p(u) and Σ_u γ(u, v) W(u, v) ≤ t q(v) is the largest Σ p a / Σ q b over
positive a, b with a(u) ≤ W(u, v) b(v). An extreme ray (a, b) is a spanning tree of tight arcs.
Along a tight arc mass times potential is conserved, so each arc's flow is the sum of p a − t q b
over the part of the tree behind its source. If no flow is negative, flow and potentials prove each
other optimal. If one is, the part behind the source is scaled down until another arc becomes tight,
and t rises: a dual simplex. Unlike `takifugu.translation.chain.tree_simplex`, sources and sinks are
different states here, and moving costs something even where they look alike.

Whatever the search finds, `cross` returns only what its coupling proves, with directed rounding.
Imported by need only: it loads numba.
"""

import math

import numpy as np

from takifugu._rounding import UNIT
from takifugu.numeric import Floats, Integers
from takifugu.translation.chain.tree_simplex import compiled

SPREAD = 300.0  # costs further apart than this are not exponentiated
NUDGE = 1e-10  # relative perturbation of gains, so that no two trees tie
BALANCED = 1e-13  # a flow this small beside the values it balances counts as zero


def _hang(
    gain: Floats, source: Integers, sink: Integers, root: int, level: Floats, links: Integers
) -> None:
    """Read the tree of arcs from ``root``: order, parents and potentials.

    Nodes are the sources, then the sinks. ``links`` [7, 2 arcs] is room to work in: row 0 holds
    the order, 1 the parent of each node, 2 the arc to it.
    """
    k, w = gain.shape
    order, parent, via, head, after, end = (
        links[0],
        links[1],
        links[2],
        links[3],
        links[4],
        links[5],
    )
    for node in range(k + w):
        head[node] = -1
        parent[node] = -2
    for arc in range(k + w - 1):
        u, v = source[arc], k + sink[arc]
        after[2 * arc], end[2 * arc], head[u] = head[u], v, 2 * arc
        after[2 * arc + 1], end[2 * arc + 1], head[v] = head[v], u, 2 * arc + 1
    order[0], parent[root], via[root], level[root] = root, -1, -1, 1.0
    placed = 1
    for at in range(k + w):
        node = order[at]
        half = head[node]
        while half >= 0:
            other = end[half]
            if parent[other] == -2:
                parent[other], via[other] = node, half // 2
                if other < k:
                    level[other] = gain[other, node - k] * level[node]
                else:
                    level[other] = level[node] / gain[node, other - k]
                order[placed] = other
                placed += 1
            half = after[half]


hang = compiled(_hang)


def _solve(
    p: Floats,
    q: Floats,
    gain: Floats,
    source: Integers,
    sink: Integers,
    flow: Floats,
    level: Floats,
    links: Integers,
    sums: Floats,
) -> None:
    """Find the tree and the mass on each of its arcs (``flow``)."""
    k, w = gain.shape
    low, best = 0, -1.0
    for v in range(w):  # start: all sources at one sink, all other sinks at their dearest source
        share = q[v] / p[v] if k == w else q[v]
        if share > best:
            low, best = v, share
    arcs = 0
    for u in range(k):
        source[arcs], sink[arcs] = u, low
        arcs += 1
    for v in range(w):
        if v == low:
            continue
        near, most = 0, -1.0
        for u in range(k):
            ratio = gain[u, low] / gain[u, v]
            if ratio > most:
                near, most = u, ratio
        source[arcs], sink[arcs] = near, v
        arcs += 1
    order, parent, via, inside = links[0], links[1], links[2], links[6]
    above, below = sums[0], sums[1]
    for _ in range(50 * (k + w)):
        hang(gain, source, sink, k + low, level, links)
        total_p = total_q = 0.0
        for u in range(k):
            above[u], below[u] = p[u] * level[u], 0.0
            total_p += above[u]
        for v in range(w):
            above[k + v], below[k + v] = 0.0, q[v] * level[k + v]
            total_q += below[k + v]
        t = total_p / total_q
        worst, cut = 0.0, -1
        for at in range(k + w - 1, 0, -1):
            node = order[at]
            excess = above[node] - t * below[node]
            value = excess if node < k else -excess
            flow[via[node]] = value / level[source[via[node]]]
            if value < worst and value < -BALANCED * (above[node] + t * below[node]):
                worst, cut = value, node
            above[parent[node]] += above[node]
            below[parent[node]] += below[node]
        if cut < 0:
            return
        inside[k + low] = 0
        for at in range(1, k + w):
            node = order[at]
            inside[node] = 1 if node == cut else inside[parent[node]]
        tail = 1 if cut < k else 0  # which side holds the source of the arc that is cut
        least, new_u, new_v = np.inf, -1, -1
        for u in range(k):
            if inside[u] == tail:
                continue
            for v in range(w):
                if inside[k + v] == tail:
                    ratio = gain[u, v] * level[k + v] / level[u]
                    if ratio < least:
                        least, new_u, new_v = ratio, u, v
        if new_u < 0:
            return
        source[via[cut]], sink[via[cut]] = new_u, new_v


solve = compiled(_solve)


def _proven(
    p: Floats, q: Floats, gain: Floats, source: Integers, sink: Integers, flow: Floats, sums: Floats
) -> float:
    """An upper bound on t from the flow alone: rows are scaled up to p, columns read off.

    A sink without mass takes nothing: what was sent there goes elsewhere.
    """
    k, w = gain.shape
    leaving, arriving = sums[0], sums[1]
    for u in range(k):
        leaving[u] = 0.0
    for v in range(w):
        arriving[v] = 0.0
    for arc in range(k + w - 1):
        if flow[arc] > 0 and q[sink[arc]] > 0:
            leaving[source[arc]] += flow[arc]
    for arc in range(k + w - 1):
        u, v = source[arc], sink[arc]
        if leaving[u] == 0:  # no mass was found for this source: send all of it to one sink
            leaving[u] = -1.0
            if q[v] == 0:
                for other in range(w):
                    if q[other] > q[v]:
                        v = other
            arriving[v] += p[u] * gain[u, v]
        elif leaving[u] > 0 and flow[arc] > 0 and q[v] > 0:
            arriving[v] += flow[arc] / leaving[u] * p[u] * gain[u, v]
    worst = 0.0
    for v in range(w):
        if arriving[v] > 0:
            worst = max(worst, arriving[v] / q[v])
    return float(worst * (1 + 4 * (k + w + 8) * UNIT))


proven = compiled(_proven)


def _move(
    index: Integers,
    flat: Floats,
    offset: Integers,
    width: Integers,
    caps: Floats,
    u: int,
    v: int,
) -> float:
    """What moving from state u to state v costs, rounded up: see `cross`."""
    tables = len(offset)
    total = part = 0.0
    for m in range(tables):
        part += flat[offset[m] + index[m, u] * width[m] + index[m, v]]
        if caps[m] >= 0:
            total += min(part, caps[m])
            part = 0.0
    return float(total * (1 + 2 * (tables + 2) * UNIT))


move = compiled(_move)


def _cross(
    starts: Integers,
    states: Integers,
    most_chances: Floats,
    least_chances: Floats,
    index: Integers,
    flat: Floats,
    offset: Integers,
    width: Integers,
    caps: Floats,
    lefts: Integers,
    rights: Integers,
    values: Floats,
) -> None:
    """``values[n]``: an upper bound on log t between the sides ``lefts[n]`` and ``rights[n]``.

    Side s has the states ``states[starts[s]:starts[s + 1]]``, with ``most_chances`` as a source
    and ``least_chances`` as a sink: raising the one and lowering the other can only raise t.
    Moving from state u to state v costs the sum over tables k of
    ``flat[offset[k] + i * width[k] + j]``, where i = ``index[k, u]`` and j = ``index[k, v]``.
    Tables up to one whose ``caps`` is not negative cost no more than that together.
    """
    most = 0
    for s in range(len(starts) - 1):
        most = max(most, starts[s + 1] - starts[s])
    cost, room, nudged = np.empty((most, most)), np.empty(most * most), np.empty(most * most)
    source, sink = np.empty(2 * most, np.int64), np.empty(2 * most, np.int64)
    flow, level = np.empty(2 * most), np.empty(2 * most)
    links, sums = np.empty((7, 4 * most), np.int64), np.empty((2, 2 * most))
    for n in range(len(lefts)):
        a, b = starts[lefts[n]], starts[rights[n]]
        k, w = starts[lefts[n] + 1] - a, starts[rights[n] + 1] - b
        low, high = np.inf, 0.0
        for u in range(k):
            for v in range(w):
                total = move(index, flat, offset, width, caps, states[a + u], states[b + v])
                cost[u, v] = total
                low, high = min(low, total), max(high, total)
        if not high - low < SPREAD:
            values[n] = high  # every coupling costs at most the dearest move
            continue
        gain = room[: k * w].reshape(k, w)
        apart = nudged[: k * w].reshape(k, w)
        mark = 0.5
        for u in range(k):
            for v in range(w):
                gain[u, v] = math.exp(cost[u, v] - low + 4 * UNIT * cost[u, v]) * (1 + 8 * UNIT)
                mark = (mark + 0.6180339887498949) % 1.0
                apart[u, v] = gain[u, v] * (1 + NUDGE * mark)
        p, q = most_chances[a : a + k], least_chances[b : b + w]
        solve(p, q, apart, source, sink, flow, level, links, sums)
        t = proven(p, q, gain, source, sink, flow, sums)
        found = low + math.log(t) * (1 + 8 * UNIT)
        values[n] = min(high, max(found + 8 * UNIT * (1 + abs(found) + low), 0.0))


cross = compiled(_cross)


def _likelier(
    left: Integers,
    right: Integers,
    match: Integers,
    p: Floats,
    q: Floats,
    tau: float,
    g: float,
) -> tuple[float, float]:
    """1 + g P(A) and 1 + g Q(A) for the set A of states with p > tau·q: see `nearly`."""
    above, below, place = 1.0, 1.0, 0
    for u in range(len(left)):
        while place < len(right) and match[right[place]] < match[left[u]]:
            place += 1
        other = 0.0
        if place < len(right) and match[right[place]] == match[left[u]]:
            other = q[place]
        if p[u] > tau * other:
            above += g * p[u]
            below += g * other
    return above, below


likelier = compiled(_likelier)


def _nearly(
    starts: Integers,
    states: Integers,
    most_chances: Floats,
    least_chances: Floats,
    index: Integers,
    flat: Floats,
    offset: Integers,
    width: Integers,
    caps: Floats,
    lefts: Integers,
    rights: Integers,
    values: Floats,
    match: Integers,
    ceiling: float,
) -> None:
    """As `cross`, by simple couplings: what can stay stays, and the rest moves anyhow.

    States u and v with ``match[u] == match[v]`` are the same. If staying costs at most c and moving
    c + κ, then log t ≤ c + log τ, τ the largest (1 + g P(A)) / (1 + g Q(A)) over sets A of states,
    g = e^κ − 1. That is the root of 1 − τ + g Σ max(p − τ q, 0), which falls in τ: it is found by
    Newton steps from below, and then raised until the function is negative beyond rounding.
    States of a side are listed in the order of ``match``, each of which it has once. If
    ``ceiling`` is not negative, no move costs more, and only the costs of staying are looked up.
    """
    for n in range(len(lefts)):
        a, b = starts[lefts[n]], starts[rights[n]]
        k, w = starts[lefts[n] + 1] - a, starts[rights[n] + 1] - b
        stay, high, first = 0.0, max(ceiling, 0.0), 0
        for u in range(k):
            last = w
            if ceiling >= 0:
                while first < w and match[states[b + first]] < match[states[a + u]]:
                    first += 1
                last = min(first + 1, w)
            for v in range(first, last):
                same = match[states[a + u]] == match[states[b + v]]
                if ceiling >= 0 and not same:
                    continue
                total = move(index, flat, offset, width, caps, states[a + u], states[b + v])
                high = max(high, total)
                if same:
                    stay = max(stay, total)
        values[n] = high
        if not 0.0 < high - stay < SPREAD:
            continue
        g = math.expm1(high - stay) * (1 + 8 * UNIT)
        tau = 1.0
        for _ in range(60):
            above, below = likelier(
                states[a : a + k], states[b : b + w], match,
                most_chances[a : a + k], least_chances[b : b + w], tau, g,
            )  # fmt: skip
            better = above / below
            if better <= tau * (1 + 1e-14):
                break
            tau = better
        margin = 16 * (k + w + 8) * UNIT
        proved = False
        for _ in range(60):
            tau *= 1 + margin
            above, below = likelier(
                states[a : a + k], states[b : b + w], match,
                most_chances[a : a + k], least_chances[b : b + w], tau, g,
            )  # fmt: skip
            if above * (1 + margin / 2) <= tau * below:
                proved = True
                break
            margin *= 2
        if proved:
            found = stay + math.log(tau) * (1 + 8 * UNIT)
            values[n] = min(high, found + 8 * UNIT * (1 + abs(found)))


nearly = compiled(_nearly)


def _by_way_of_others(cost: Floats) -> None:
    """Replace ``cost[u, v]`` by the length of the shortest path from u to v, rounded up."""
    n = len(cost)
    for w in range(n):
        for u in range(n):
            first = cost[u, w]
            if u == w or first == np.inf:
                continue
            for v in range(n):
                cost[u, v] = min(cost[u, v], first + cost[w, v])
    for u in range(n):
        for v in range(n):
            cost[u, v] *= 1 + 4 * n * UNIT


by_way_of_others = compiled(_by_way_of_others)
