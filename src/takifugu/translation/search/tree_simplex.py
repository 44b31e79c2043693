"""The inner loops of the transport, compiled: a dual simplex on spanning trees.

One problem has rows p, q and gains W(u, v) = e^{c(u, v)}, W(u, u) = 1, W(u, v) ≤ W(u, w) W(w, v).
Its dual is: maximise Σ p g / Σ q g over g > 0 with g(u) ≤ W(u, v) g(v). An extreme ray g is a
spanning tree of tight arcs u → v, g(u) = W(u, v) g(v). With t = Σ p g / Σ q g, let e = p − t q.
Along a tight arc the *value* (mass times g) is conserved, so the flow that balances the tree has
on every arc the value Σ e g over the tail's side. If none is negative, the flow and g prove each
other optimal. If one is negative, scaling the tail's side down raises t; the first constraint
that becomes tight replaces the arc. That is a pivot, and t never falls.

A tree is held as ``parent`` (−1 at a root) and ``tail``: whether the arc between a node and its
parent leaves the node. This module is imported by need only: it loads numba. It is one file on
purpose: numba reuses a compiled loop while that loop's own file is unchanged, whatever happened
to the files it calls.
"""

import math

import numpy as np
from numpy.typing import NDArray

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats, Integers

Places = NDArray[np.int16]
ROUNDOFF = 2.0**-53
BALANCED = 1e-12  # a flow this small beside the values it balances counts as zero
EXCEEDS = 1e-14  # a constraint broken by less than this factor counts as kept
FITS = 1e150  # potentials beyond it, or below its inverse, are not computed with


def _least(row: Floats, weight: Floats) -> float:
    best = np.inf
    for b in range(row.shape[0]):
        product = row[b] * weight[b]
        if product < best:
            best = product
    return best


least = compiled(_least, fast=True)


@compiled
def where_least(row: Floats, weight: Floats) -> int:
    """Where the product of a row and the weights is least."""
    best, place = np.inf, 0
    for b in range(row.shape[0]):
        product = row[b] * weight[b]
        if product < best:
            best, place = product, b
    return place


@compiled
def preorder(
    parent: Integers, first: Integers, sibling: Integers, order: Integers, size: Integers
) -> int:
    """Write each root's tree in preorder, and the size of each subtree; return how many roots."""
    m = parent.shape[0]
    for v in range(m):
        first[v] = -1
        size[v] = 1
    for v in range(m - 1, -1, -1):
        if parent[v] >= 0:
            sibling[v] = first[parent[v]]
            first[parent[v]] = v
    placed = roots = 0
    for root in range(m):
        if parent[root] >= 0:
            continue
        roots += 1
        v = root
        while True:
            order[placed] = v
            placed += 1
            if first[v] >= 0:
                v = first[v]
                continue
            while v != root and sibling[v] < 0:
                v = parent[v]
            if v == root:
                break
            v = sibling[v]
    for k in range(m - 1, -1, -1):
        v = order[k]
        if parent[v] >= 0:
            size[parent[v]] += size[v]
    return roots


@compiled
def shift(
    begin: int,
    end: int,
    rise: bool,
    order: Integers,
    parent: Integers,
    tail: Booleans,
    g: Floats,
    gain: Floats,
    turned: Floats,
    weight: Floats,
) -> None:
    """Scale the subtree ``order[begin:end]`` up or down until a new arc is tight; hang it there.

    Up stops at λ = min W(a, b) g(b) / g(a), down at 1/λ = min W(b, a) g(a) / g(b), over a inside
    and b outside. ``turned`` is the transpose of ``gain``; the rows of the smaller side are read.
    """
    m = parent.shape[0]
    inside = 2 * (end - begin) <= m
    # rows of the smaller side, weights of the other; `up` says which way its arcs point
    up = rise == inside
    for v in range(m):
        weight[v] = g[v] if up else 1.0 / g[v]
    rows_from, rows_to = (begin, end) if inside else (0, m)
    for k in range(m):
        if (begin <= k < end) == inside:
            weight[order[k]] = np.inf
    best, near = np.inf, order[begin]
    for k in range(rows_from, rows_to):
        if not inside and begin <= k < end:
            continue
        v = order[k]
        row = gain[v] if up else turned[v]
        ratio = least(row, weight)
        ratio = ratio / g[v] if up else ratio * g[v]
        if ratio < best:
            best, near = ratio, v
    far = where_least(gain[near] if up else turned[near], weight)
    a, b = (near, far) if inside else (far, near)
    factor = best if rise else 1.0 / best
    for k in range(begin, end):
        g[order[k]] *= factor
    v, above, leaves = a, b, rise
    while True:  # turn the path from `a` to the old top of the subtree round
        old_above, old_leaves = parent[v], tail[v]
        parent[v], tail[v] = above, leaves
        if v == order[begin]:
            return
        above, leaves = v, not old_leaves
        v = old_above


@compiled
def climb(
    p: Floats,
    q: Floats,
    gain: Floats,
    turned: Floats,
    parent: Integers,
    tail: Booleans,
    g: Floats,
    most: int,
    whole: Integers,
    real: Floats,
) -> float:
    """Join a forest into one tree, then pivot until no flow is negative; return t.

    ``whole`` [5, m] and ``real`` [3, m] are room to work in. On return they hold the preorder
    (rows 2 and 3) and the subtree sums of p g and q g (rows 0 and 1).
    """
    m = p.shape[0]
    first, sibling, order, size, place = whole[0], whole[1], whole[2], whole[3], whole[4]
    sum_p, sum_q, weight = real[0], real[1], real[2]
    pivots = 0
    while True:
        roots = preorder(parent, first, sibling, order, size)
        for v in range(m):
            sum_p[v] = p[v] * g[v]
            sum_q[v] = q[v] * g[v]
        total_p = total_q = 0.0
        for k in range(m - 1, -1, -1):
            v = order[k]
            place[v] = k
            if parent[v] >= 0:
                sum_p[parent[v]] += sum_p[v]
                sum_q[parent[v]] += sum_q[v]
            else:
                total_p += sum_p[v]
                total_q += sum_q[v]
        t = total_p / total_q
        chosen, rise = -1, False
        if roots > 1:
            for v in range(m):
                if parent[v] < 0 and (chosen < 0 or size[v] < size[chosen]):
                    chosen = v
            rise = sum_p[chosen] > t * sum_q[chosen]
        elif pivots < most:
            worst = 0.0
            for v in range(m):
                if parent[v] < 0:
                    continue
                excess = sum_p[v] - t * sum_q[v]
                flow = excess if tail[v] else -excess
                if flow < worst and flow < -BALANCED * (sum_p[v] + t * sum_q[v]):
                    worst, chosen = flow, v
            if chosen >= 0:
                rise = not tail[chosen]
            pivots += 1
        if chosen < 0:
            return t
        begin = place[chosen]
        shift(begin, begin + size[chosen], rise, order, parent, tail, g, gain, turned, weight)


@compiled
def plant(
    p: Floats,
    q: Floats,
    t: float,
    gain: Floats,
    turned: Floats,
    parent: Integers,
    tail: Booleans,
    g: Floats,
    whole: Integers,
    real: Floats,
) -> None:
    """A first tree: states by falling |p − t q|, each a leaf at its best potential so far."""
    m = p.shape[0]
    weight, inverse = real[0], real[1]
    for v in range(m):
        real[2, v] = -abs(p[v] - t * q[v])
        weight[v] = inverse[v] = np.inf
    by_size = whole[0]
    for v in range(m):  # insertion sort: short, and quick to compile
        k = v
        while k > 0 and real[2, by_size[k - 1]] > real[2, v]:
            by_size[k] = by_size[k - 1]
            k -= 1
        by_size[k] = v
    root = by_size[0]
    parent[root] = -1
    g[root] = weight[root] = inverse[root] = 1.0
    for k in range(1, m):
        v = by_size[k]
        tail[v] = p[v] > t * q[v]
        if tail[v]:
            parent[v] = where_least(gain[v], weight)
            g[v] = gain[v, parent[v]] * g[parent[v]]
        else:
            parent[v] = where_least(turned[v], inverse)
            g[v] = g[parent[v]] / gain[parent[v], v]
        weight[v] = g[v]
        inverse[v] = 1.0 / g[v]


@compiled
def regrow(
    gain: Floats, parent: Integers, tail: Booleans, g: Floats, whole: Integers, real: Floats
) -> bool:
    """Potentials of an old tree under new gains; arcs that break a constraint are replaced.

    A state above its bound min_v W(u, v) g(v) falls to it and hangs on the state that gave it,
    which is itself at its bound (the gains obey the triangle inequality); its other arcs are cut.
    False, with nothing done, if the new gains along the old tree are more than floats can hold.
    """
    m = parent.shape[0]
    preorder(parent, whole[0], whole[1], whole[2], whole[3])
    for k in range(m):
        v = whole[2, k]
        above = parent[v]
        if above < 0:
            g[v] = 1.0
        elif tail[v]:
            g[v] = gain[v, above] * g[above]
        else:
            g[v] = g[above] / gain[above, v]
    for v in range(m):
        if not 1 / FITS < g[v] < FITS:
            return False
    for u in range(m):
        bound = least(gain[u], g)
        real[0, u] = bound if bound < g[u] * (1 - EXCEEDS) else -1.0
    for v in range(m):
        if parent[v] >= 0 and real[0, parent[v]] > 0:
            parent[v] = -1
    for u in range(m):
        if real[0, u] > 0:
            parent[u] = where_least(gain[u], g)
            tail[u] = True
    for u in range(m):
        if real[0, u] > 0:
            g[u] = real[0, u]
    return True


@compiled
def pour(
    p: Floats,
    q: Floats,
    t: float,
    gain: Floats,
    parent: Integers,
    tail: Booleans,
    g: Floats,
    mass: Floats,
    whole: Integers,
    real: Floats,
) -> None:
    """The mass on each arc of a balanced tree, from the subtree sums that `climb` left.

    Rounding is moved to where it does not matter. A sink takes no more than fits, least of all
    where q is 0. What a source then has left goes to the sink with the most room, and a source
    with hardly any q of its own sends a hair more than it has to, so that the proof finds nothing
    left there.
    """
    m = p.shape[0]
    best = whole[0]
    arriving, left = real[0], real[2]
    for v in range(m):
        best[v] = -1
        hair = 8 * (m + 8) * ROUNDOFF * p[v]
        left[v] = p[v] - t * q[v] + (hair if hair > 1e-9 * t * q[v] else 0.0)
        mass[v] = 0.0
    for v in range(m):
        above = parent[v]
        if above < 0:
            continue
        excess = real[0, v] - t * real[1, v]
        source = v if tail[v] else above
        mass[v] = max(excess if tail[v] else -excess, 0.0) / g[source]
    for v in range(m):
        arriving[v] = 0.0
    for v in range(m):
        if parent[v] >= 0:
            source, sink = (v, parent[v]) if tail[v] else (parent[v], v)
            arriving[sink] += mass[v] * gain[source, sink]
    for v in range(m):
        if parent[v] < 0:
            continue
        source, sink = (v, parent[v]) if tail[v] else (parent[v], v)
        room = max(t * q[sink] - p[sink], 0.0)
        if arriving[sink] > room:
            mass[v] *= room / arriving[sink]
        left[source] -= mass[v]
        rival = best[source]
        if rival < 0 or q[sink] > q[parent[rival] if tail[rival] else rival]:
            best[source] = v
    for u in range(m):
        # a rounding stays where there is room for it: moved, it may be more than all of a small q
        if left[u] > 16 * (m + 8) * ROUNDOFF * t * q[u] and p[u] > t * q[u] and best[u] >= 0:
            mass[best[u]] += left[u]


@compiled
def improve(
    numerator: Floats,
    denominator: Floats,
    gain: Floats,
    turned: Floats,
    guess: Floats,
    fresh: bool,
    crossed: bool,
    begin: int,
    end: int,
    parents: Places,
    tails: Booleans,
    orders: Places,
    masses: Floats,
    values: Floats,
) -> None:
    """Solve the pairs (x, y), begin ≤ x < end, x ≠ y, from their last trees unless ``fresh``.

    Pairs of rows with the same number too, if they are ``crossed``.
    """
    n, m = numerator.shape
    whole = np.empty((5, m), np.int64)
    real = np.empty((3, m))
    parent = np.empty(m, np.int64)
    tail = np.empty(m, np.bool_)
    g = np.empty(m)
    for x in range(begin, end):
        p = numerator[x]
        for y in range(n):
            if x == y and not crossed:
                continue
            q = denominator[y]
            if not fresh:
                for v in range(m):
                    parent[v] = parents[x, y, v]
                    tail[v] = tails[x, y, v]
            if fresh or not regrow(gain, parent, tail, g, whole, real):
                plant(p, q, math.exp(guess[x, y]), gain, turned, parent, tail, g, whole, real)
            t = climb(p, q, gain, turned, parent, tail, g, 50 * m, whole, real)
            pour(p, q, t, gain, parent, tail, g, masses[x, y], whole, real)
            values[x, y] = math.log(t)
            for v in range(m):
                parents[x, y, v] = parent[v]
                tails[x, y, v] = tail[v]
                orders[x, y, v] = whole[2, v]


@compiled
def follow(
    numerator: Floats,
    denominator: Floats,
    gain: Floats,
    begin: int,
    end: int,
    parents: Places,
    tails: Booleans,
    orders: Places,
    values: Floats,
) -> None:
    """Each pair's log Σ p g / Σ q g, with the g that its old tree has under new gains.

    That is log t if the tree is still the best, and no bound if it is not. Infinite where g is more
    than floats can hold.
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
            if 0 < above < np.inf and 0 < below < np.inf:
                values[x, y] = max(math.log(above / below), 0.0)
            else:
                values[x, y] = np.inf


@compiled
def respond(
    numerator: Floats,
    denominator: Floats,
    gain: Floats,
    turned: Floats,
    fresh: bool,
    parents: Places,
    tails: Booleans,
    potentials: Floats,
) -> None:
    """The g with the largest Σ p g / Σ q g for row k of each, from its last tree unless ``fresh``.

    1 everywhere where a row has no mass: nothing is known there.
    """
    rows, m = numerator.shape
    whole = np.empty((5, m), np.int64)
    real = np.empty((3, m))
    parent = np.empty(m, np.int64)
    tail = np.empty(m, np.bool_)
    for k in range(rows):
        p, q, g = numerator[k], denominator[k], potentials[k]
        above = below = 0.0
        for v in range(m):
            g[v] = 1.0
            above += p[v]
            below += q[v]
            parent[v] = parents[k, v]
            tail[v] = tails[k, v]
        if not (above > 0 and below > 0):
            continue
        if fresh or not regrow(gain, parent, tail, g, whole, real):
            plant(p, q, above / below, gain, turned, parent, tail, g, whole, real)
        climb(p, q, gain, turned, parent, tail, g, 50 * m, whole, real)
        for v in range(m):
            parents[k, v] = parent[v]
            tails[k, v] = tail[v]
