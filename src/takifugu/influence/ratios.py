r"""The largest ratio of two sums over a set, over every state of its boundary; compiled.

A problem is a list of *cases* (states of the entries that several tables on the boundary share).
In each case the weight of a state h of the set is a product of *parts*, each chosen freely from
its rows, and the question is

.. math:: \max_{a}\ \frac{\sum_{h:\,s\in A}\prod_p m_{p,a_p}(h)}
                         {\sum_{h:\,s\in B}\prod_p m_{p,a_p}(h)}.

The ratio is linear-fractional in each part, so improving one part after another finds a high
value r quickly. A depth-first search then proves that there is no higher one: with some parts
chosen, let c(h) be the weight of h on side A less r times that on side B, summed over s. Every
choice of the others gives at most Σ c⁺ U + c⁻ L, where U and L are the largest and the least
that the others can contribute to h. If that is not positive, no choice beats r. It is checked
with room for the rounding of the sums. This module is imported by need only: it loads numba.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

from takifugu.numeric import UNIT, Booleans, Floats, Integers

CLOSER = 2.0**-34  # a ratio is found up to this factor less one
STARTS = 24  # choices of rows that are improved before the proof begins
LOOKS = 4  # cases that are tried before all are put in order
PROVED, BEATEN, UNKNOWN = 0, 1, 2  # largest; at least the threshold; out of budget, a lower bound

Loop = TypeVar("Loop", bound=Callable[..., Any])


def _compiled(loop: Loop) -> Loop:
    """Compile ``loop`` and keep it on disk where there is a place."""
    try:
        kept: Loop = numba.njit(cache=True)(loop)
    except RuntimeError:  # numba: no locator available
        kept = numba.njit(loop)
    return kept


def _ratio(top: float, base: float) -> float:
    if top <= 0.0:
        return -1.0  # cannot happen: says nothing
    return np.inf if base <= 0.0 else top / base


ratio = _compiled(_ratio)


def _ascend(
    cells: Floats,
    start: Integers,
    rows: Integers,
    width: Integers,
    parts: Integers,
    place: Integers,
    lead: Floats,
    half: int,
    chosen: Integers,
    work: Floats,
    sums: Floats,
    threshold: float,
) -> tuple[float, float]:
    """Improve the chosen rows, part by part, until nothing changes or the threshold is reached.

    Returns the sums of both sides. ``place`` is ``[part, state]``: the cell of a part that a
    state is in; ``lead`` the product of all parts without a choice; the states below ``half``
    are side A.
    """
    count, states = place.shape
    top, base = 0.0, 0.0
    for _ in range(4):
        changed = False
        for h in range(states):  # work[p]: the product of the parts from p on
            work[count, h] = 1.0
        for p in range(count - 1, -1, -1):
            at = start[parts[p]] + chosen[p] * width[parts[p]]
            for h in range(states):
                work[p, h] = work[p + 1, h] * cells[at + place[p, h]]
        for h in range(states):  # work[0] is now the product of the parts before p
            work[0, h] = lead[h]
        for p in range(count):
            part = parts[p]
            wide = width[part]
            if rows[part] > 1 or p == count - 1:
                for c in range(wide):
                    sums[0, c] = 0.0
                    sums[1, c] = 0.0
                for h in range(half):
                    sums[0, place[p, h]] += work[0, h] * work[p + 1, h]
                for h in range(half, states):
                    sums[1, place[p, h]] += work[0, h] * work[p + 1, h]
                best, best_row = -2.0, chosen[p]
                for a in range(rows[part]):
                    at = start[part] + a * wide
                    n, d = 0.0, 0.0
                    for c in range(wide):
                        n += sums[0, c] * cells[at + c]
                        d += sums[1, c] * cells[at + c]
                    found = ratio(n, d)
                    if found > best * (1 + 1e-13) or best == -2.0:
                        best, best_row, top, base = found, a, n, d
                if best >= threshold:
                    return top, base
                if best_row != chosen[p]:
                    chosen[p] = best_row
                    changed = True
            at = start[part] + chosen[p] * wide
            for h in range(states):
                work[0, h] *= cells[at + place[p, h]]
        if not changed:
            break
    return top, base


ascend = _compiled(_ascend)


def _hopeless(
    weight: Floats,
    joint: Floats,
    alone: Floats,
    half: int,
    rest: int,
    level: float,
    margin: float,
) -> bool:
    """Whether no choice of the parts that are left gives a ratio above ``level``.

    ``joint`` ``[2, state]``: the most and the least from parts that hold the secret; ``alone``
    ``[2, rest]``: from the others.
    """
    total, scale = 0.0, 0.0
    states = weight.shape[0]
    for r in range(rest):
        n, d = 0.0, 0.0
        for h in range(r, half, rest):
            n += weight[h] * joint[0, h]
        for h in range(half + r, states, rest):
            d += weight[h] * joint[1, h]
        d *= level
        c = n - d
        total += c * alone[0, r] if c > 0 else c * alone[1, r]
        scale += (n + d) * alone[0, r]
    return total + margin * scale <= 0.0


hopeless = _compiled(_hopeless)


def _descend(
    cells: Floats,
    start: Integers,
    rows: Integers,
    width: Integers,
    parts: Integers,
    place: Integers,
    half: int,
    rest: int,
    first: int,
    work: Floats,
    joint: Floats,
    alone: Floats,
    sums: Floats,
    at: Integers,
    top: float,
    base: float,
    threshold: float,
    budget: float,
) -> tuple[float, float, float]:
    """Depth first through the rows of parts ``first``, …; the best sums and the budget left."""
    count, states = place.shape
    margin = (rest + states + 4 * count + 16) * 2.0 * UNIT
    best = ratio(top, base)
    level = max(best, 0.0) * (1 + CLOSER)
    if hopeless(work[first], joint[first], alone[first], half, rest, level, margin):
        return top, base, budget
    depth = first
    at[depth] = 0
    while depth >= first:
        part = parts[depth]
        wide = width[part]
        if depth == count - 1:  # the last part: all its rows at once
            for c in range(wide):
                sums[0, c] = 0.0
                sums[1, c] = 0.0
            for h in range(half):
                sums[0, place[depth, h]] += work[depth, h]
            for h in range(half, states):
                sums[1, place[depth, h]] += work[depth, h]
            for a in range(rows[part]):
                here = start[part] + a * wide
                n, d = 0.0, 0.0
                for c in range(wide):
                    n += sums[0, c] * cells[here + c]
                    d += sums[1, c] * cells[here + c]
                found = ratio(n, d)
                if found > best:
                    best, top, base = found, n, d
                    level = best * (1 + CLOSER)
            budget -= states + rows[part] * wide
            if best >= threshold or best == np.inf or budget < 0:
                return top, base, budget
            depth -= 1
            continue
        if at[depth] == rows[part]:
            depth -= 1
            continue
        here = start[part] + at[depth] * wide
        at[depth] += 1
        for h in range(states):
            work[depth + 1, h] = work[depth, h] * cells[here + place[depth, h]]
        budget -= 2 * states
        if budget < 0:
            return top, base, budget
        deeper = depth + 1
        if hopeless(work[deeper], joint[deeper], alone[deeper], half, rest, level, margin):
            continue
        depth = deeper
        at[depth] = 0
    return top, base, budget


descend = _compiled(_descend)


def _limits(
    limit: Floats,
    edge: Integers,
    parts: Integers,
    place: Integers,
    holds: Booleans,
    rest: int,
    joint: Floats,
    alone: Floats,
) -> None:
    """Write, for each number of parts chosen, the most and the least the others contribute."""
    count, states = place.shape
    for side in range(2):
        joint[count, side, :states] = 1.0
        alone[count, side, :rest] = 1.0
        for p in range(count - 1, -1, -1):
            at = edge[parts[p], side]
            if holds[p]:
                for h in range(states):
                    joint[p, side, h] = joint[p + 1, side, h] * limit[at + place[p, h]]
                for r in range(rest):
                    alone[p, side, r] = alone[p + 1, side, r]
            else:
                for r in range(rest):
                    alone[p, side, r] = alone[p + 1, side, r] * limit[at + place[p, r]]
                for h in range(states):
                    joint[p, side, h] = joint[p + 1, side, h]


limits = _compiled(_limits)


def _largest(
    cells: Floats,
    start: Integers,
    rows: Integers,
    width: Integers,
    limit: Floats,
    edge: Integers,
    cases: Integers,
    strides: Integers,
    sizes: Integers,
    axis: int,
    sides: Booleans,
    thresholds: Floats,
    budget: float,
    sums_found: Floats,
    verdict: Integers,
) -> None:
    """For each pair the largest sums ``[pair, 2]`` and what they are worth.

    ``cases`` is ``[case, part]``; ``strides`` ``[part, entry]`` and ``sizes`` ``[entry]`` say
    which cell of a part a state of the set is in; ``sides`` is ``[pair, 2, value]``.
    """
    number, every = cases.shape
    entries = sizes.shape[0]
    open_parts = np.zeros(every, dtype=np.bool_)  # those with a choice
    for p in range(every):
        for k in range(number):
            part = cases[k, p]
            if part != cases[0, p] or rows[part] > 1:
                open_parts[p] = True
                break
    if not open_parts.any():
        open_parts[every - 1] = True
    count = open_parts.sum()
    rest = 1
    for v in range(entries):
        if v != axis:
            rest *= sizes[v]
    within = np.zeros((every, rest), dtype=np.int64)  # [part, state of all but the secret]
    for r in range(rest):
        left = r
        for v in range(entries):
            if v != axis:
                value = left % sizes[v]
                left //= sizes[v]
                for p in range(every):
                    within[p, r] += value * strides[p, v]
    values = sizes[axis]
    fixed = np.ones(values * rest)  # the product of the parts without a choice
    for p in range(every):
        if not open_parts[p]:
            first = start[cases[0, p]]
            for v in range(values):
                for r in range(rest):
                    fixed[v * rest + r] *= cells[first + within[p, r] + v * strides[p, axis]]
    cases = np.ascontiguousarray(cases[:, open_parts])
    strides = np.ascontiguousarray(strides[open_parts])
    within = np.ascontiguousarray(within[open_parts])
    widest = 0
    for k in range(number):
        for p in range(count):
            widest = max(widest, width[cases[k, p]])
    lead = np.empty(values * rest)
    place = np.empty((count, values * rest), dtype=np.int64)
    work = np.empty((count + 1, values * rest))
    joint = np.empty((count + 1, 2, values * rest))
    alone = np.empty((count + 1, 2, rest))
    sums = np.empty((2, widest))
    chosen = np.zeros(count, dtype=np.int64)
    at = np.zeros(count + 1, dtype=np.int64)
    outer = np.empty(number)
    ordered = np.empty(count, dtype=np.int64)
    moved = np.empty((count, values * rest), dtype=np.int64)
    moved_holds = np.empty(count, dtype=np.bool_)
    holds = strides[:, axis] > 0
    hint, seed = 0, 1
    for pair in range(sides.shape[0]):
        states = 0
        half = 0
        for side in range(2):
            for v in range(values):
                if sides[pair, side, v]:
                    for r in range(rest):
                        lead[states + r] = fixed[v * rest + r]
                    for p in range(count):
                        for r in range(rest):
                            place[p, states + r] = within[p, r] + v * strides[p, axis]
                    states += rest
            if side == 0:
                half = states
        here = place[:, :states]
        top, base, best = 0.0, 0.0, -1.0
        threshold = thresholds[pair]
        verdict[pair] = BEATEN
        for look in range(min(LOOKS, number)):  # the case that did best last, and a few others
            k = (hint + look * number // LOOKS) % number
            for p in range(count):
                chosen[p] = 0
            n, d = ascend(
                cells,
                start,
                rows,
                width,
                cases[k],
                here,
                lead,
                half,
                chosen,
                work[:, :states],
                sums,
                threshold,
            )
            found = ratio(n, d)
            if found > best:
                top, base, best, hint = n, d, found, k
            if best >= threshold:
                break
        sums_found[pair, 0] = top
        sums_found[pair, 1] = base
        if best >= threshold:
            continue
        for k in range(number):  # a rough bound for each case: the order in which to look
            parts = cases[k]
            n, d = 0.0, 0.0
            for h in range(states):
                product = lead[h]
                side = 0 if h < half else 1
                for p in range(count):
                    product *= limit[edge[parts[p], side] + here[p, h]]
                if h < half:
                    n += product
                else:
                    d += product
            outer[k] = ratio(n, d)
        order = np.argsort(-outer)
        verdict[pair] = PROVED
        for k in order:
            if outer[k] < 0 or outer[k] <= best * (1 + CLOSER / 2):
                break
            for p in range(count):
                chosen[p] = 0
            n, d = ascend(
                cells,
                start,
                rows,
                width,
                cases[k],
                here,
                lead,
                half,
                chosen,
                work[:, :states],
                sums,
                threshold,
            )
            found = ratio(n, d)
            if found > best:
                top, base, best, hint = n, d, found, k
            if best >= threshold or best == np.inf:
                break
        left = budget
        for again in range(STARTS):  # from other rows, in the cases that looked best
            if best >= threshold or best == np.inf:
                break
            k = hint if again % 2 else order[again // 2 % min(number, LOOKS)]
            for p in range(count):
                seed = (seed * 1103515245 + 12345) % 2147483648
                chosen[p] = (seed >> 8) % rows[cases[k, p]]
            n, d = ascend(
                cells,
                start,
                rows,
                width,
                cases[k],
                here,
                lead,
                half,
                chosen,
                work[:, :states],
                sums,
                threshold,
            )
            found = ratio(n, d)
            if found > best:
                top, base, best, hint = n, d, found, k
        if best >= threshold:
            verdict[pair] = BEATEN
        elif best < np.inf:
            for k in order:
                if outer[k] < 0 or outer[k] <= best * (1 + CLOSER / 2):
                    break
                parts = cases[k]
                # single rows first; then the parts that differ most
                spread = np.empty(count)
                for p in range(count):
                    part = parts[p]
                    spread[p] = -np.inf
                    if rows[part] > 1:
                        spread[p] = 0.0
                        for c in range(width[part]):
                            most, least = limit[edge[part, 0] + c], limit[edge[part, 1] + c]
                            if most > 0:
                                spread[p] = max(spread[p], min(ratio(most, least), 1e300))
                        spread[p] = -spread[p]
                turn = np.argsort(spread)
                first = 0
                for q in range(count):
                    ordered[q] = parts[turn[q]]
                    moved[q, :states] = here[turn[q]]
                    moved_holds[q] = holds[turn[q]]
                    first += rows[ordered[q]] == 1
                first = min(first, count - 1)
                limits(
                    limit, edge, ordered, moved[:, :states], moved_holds, rest, joint, alone
                )
                for h in range(states):
                    work[first, h] = lead[h]
                    for q in range(first):
                        work[first, h] *= cells[start[ordered[q]] + moved[q, h]]
                top, base, left = descend(
                    cells,
                    start,
                    rows,
                    width,
                    ordered,
                    moved[:, :states],
                    half,
                    rest,
                    first,
                    work[:, :states],
                    joint[:, :, :states],
                    alone,
                    sums,
                    at,
                    top,
                    base,
                    threshold,
                    left,
                )
                best = ratio(top, base)
                if best >= threshold:
                    verdict[pair] = BEATEN
                    break
                if left < 0:
                    verdict[pair] = UNKNOWN
                    break
                if best == np.inf:
                    break
        sums_found[pair, 0] = top
        sums_found[pair, 1] = base


largest = _compiled(_largest)
