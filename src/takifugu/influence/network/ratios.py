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

from takifugu._rounding import UNIT
from takifugu.numeric import Booleans, Floats, Integers

CLOSER = 2.0**-34  # a ratio is found up to this factor less one
GOLDEN = 0.6180339887498949  # spreads the rows that are tried
STARTS = 24  # choices of rows that are improved before the proof begins
LOOKS = 4  # cases that are tried before all are put in order
PROVED, BEATEN, UNKNOWN = 0, 1, 2  # largest; at least the threshold; out of budget, a lower bound

Loop = TypeVar("Loop", bound=Callable[..., Any])


def _compiled(loop: Loop) -> Loop:
    """Compile ``loop`` and keep it on disk where there is a place."""
    options: dict[str, Any] = {"error_model": "numpy"}
    try:
        kept: Loop = numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # numba: no locator available
        kept = numba.njit(**options)(loop)
    return kept


def _ratio(top: float, base: float) -> float:
    if top <= 0.0:
        return -1.0  # cannot happen: says nothing
    return np.inf if base <= 0.0 else top / base


ratio = _compiled(_ratio)


def _descending(values: Floats) -> Integers:
    """The places of the values, the largest first (Shell's sort: numba's own compiles slowly)."""
    order = np.empty(values.shape[0], dtype=np.int64)
    for i in range(values.shape[0]):
        order[i] = i
    gap = values.shape[0] // 2
    while gap > 0:
        for i in range(gap, values.shape[0]):
            moving, j = order[i], i
            while j >= gap and values[order[j - gap]] < values[moving]:
                order[j] = order[j - gap]
                j -= gap
            order[j] = moving
        gap //= 2
    return order


descending = _compiled(_descending)


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
            if best >= threshold or budget < 0:
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


def _rough(
    limit: Floats,
    edge: Integers,
    cases: Integers,
    place: Integers,
    lead: Floats,
    half: int,
    found: Floats,
) -> None:
    """Write ``[case]`` a rough upper bound on the ratio: the most for A, the least for B."""
    for k in range(cases.shape[0]):
        n, d = 0.0, 0.0
        for h in range(lead.shape[0]):
            side = 0 if h < half else 1
            weight = lead[h]
            for p in range(cases.shape[1]):
                weight *= limit[edge[cases[k, p], side] + place[p, h]]
            if h < half:
                n += weight
            else:
                d += weight
        found[k] = ratio(n, d)


rough = _compiled(_rough)


def _climb(
    cells: Floats,
    start: Integers,
    rows: Integers,
    width: Integers,
    limit: Floats,
    edge: Integers,
    cases: Integers,
    place: Integers,
    lead: Floats,
    half: int,
    threshold: float,
    hint: int,
    work: Floats,
    sums: Floats,
    outer: Floats,
) -> tuple[float, float, int]:
    """High sums of both sides, and the case they are from; no proof that they are the highest.

    Tried are: the case ``hint`` and a few others; all cases, those with the highest rough bound
    (left in ``outer``) first; other rows in the best of them. Ends at the threshold.
    """
    number, count = cases.shape
    chosen = np.zeros(count, dtype=np.int64)
    order = np.zeros(number, dtype=np.int64)
    looks = min(LOOKS, number)
    top, base, best, where = 0.0, 0.0, -1.0, hint
    attempt = 0
    while attempt < looks + number + STARTS:
        if attempt == looks:
            rough(limit, edge, cases, place, lead, half, outer)
            order = descending(outer)
        again = attempt - looks - number
        if attempt < looks:
            k = (hint + attempt * number // looks) % number
        elif again < 0:
            k = order[attempt - looks]
            if outer[k] < 0 or outer[k] <= best * (1 + CLOSER / 2):
                attempt = looks + number  # nor can the cases after it be better
                continue
        else:
            k = where if again % 2 else order[again // 2 % looks]
        for p in range(count):
            share = max(again + 1, 0) * (p + 1) * GOLDEN
            chosen[p] = int((share - int(share)) * rows[cases[k, p]])
        n, d = ascend(
            cells, start, rows, width, cases[k], place, lead, half, chosen, work, sums, threshold
        )
        found = ratio(n, d)
        if found > best:
            top, base, best, where = n, d, found, k
        if best >= threshold:
            break
        attempt += 1
    return top, base, where


climb = _compiled(_climb)


def _turns(
    rows: Integers, width: Integers, limit: Floats, edge: Integers, parts: Integers
) -> Integers:
    """The order in which to choose: single rows first, then the parts that differ most."""
    spread = np.empty(parts.shape[0])
    for p in range(parts.shape[0]):
        part = parts[p]
        spread[p] = np.inf
        if rows[part] > 1:
            widest = 1.0
            for c in range(width[part]):
                most, least = limit[edge[part, 0] + c], limit[edge[part, 1] + c]
                if most > 0:
                    widest = max(widest, min(ratio(most, least), 1e300))
            spread[p] = widest
    return descending(spread)


turns = _compiled(_turns)


def _prove(
    cells: Floats,
    start: Integers,
    rows: Integers,
    width: Integers,
    limit: Floats,
    edge: Integers,
    cases: Integers,
    place: Integers,
    holds: Booleans,
    lead: Floats,
    half: int,
    rest: int,
    threshold: float,
    budget: float,
    work: Floats,
    sums: Floats,
    outer: Floats,
    top: float,
    base: float,
) -> tuple[float, float, int]:
    """Search all cases for higher sums than these; the highest, and what they are worth."""
    count, states = place.shape
    joint = np.empty((count + 1, 2, states))
    alone = np.empty((count + 1, 2, rest))
    at = np.zeros(count + 1, dtype=np.int64)
    parts, kept = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.bool_)
    moved = np.empty((count, states), dtype=np.int64)
    best = ratio(top, base)
    for k in descending(outer):
        if outer[k] < 0 or outer[k] <= best * (1 + CLOSER / 2):
            break
        turn = turns(rows, width, limit, edge, cases[k])
        for q in range(count):
            parts[q], kept[q] = cases[k, turn[q]], holds[turn[q]]
            for h in range(states):
                moved[q, h] = place[turn[q], h]
        first = 0
        while first < count - 1 and rows[parts[first]] == 1:
            first += 1
        limits(limit, edge, parts, moved, kept, rest, joint, alone)
        for h in range(states):
            work[first, h] = lead[h]
            for q in range(first):
                work[first, h] *= cells[start[parts[q]] + moved[q, h]]
        top, base, budget = descend(
            cells,
            start,
            rows,
            width,
            parts,
            moved,
            half,
            rest,
            first,
            work,
            joint,
            alone,
            sums,
            at,
            top,
            base,
            threshold,
            budget,
        )
        best = ratio(top, base)
        if best >= threshold:
            return top, base, BEATEN
        if budget < 0:
            return top, base, UNKNOWN
    return top, base, PROVED


prove = _compiled(_prove)


def _largest(
    cells: Floats,
    start: Integers,
    rows: Integers,
    width: Integers,
    limit: Floats,
    edge: Integers,
    cases: Integers,
    fixed: Integers,
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

    ``cases`` is ``[case, part]``, ``fixed`` the parts without a choice; ``strides``
    ``[part, entry]`` (of these two, one after the other) and ``sizes`` ``[entry]`` say which cell
    of a part a state of the set is in; ``sides`` is ``[pair, 2, value]``.
    """
    number, count = cases.shape
    values = sizes[axis]
    rest = int(np.prod(sizes) // values)
    zero = rest * 0  # not a literal, for which numba would compile everything once more
    within = np.zeros((count + fixed.shape[0], rest), dtype=np.int64)  # [part, state but secret]
    for r in range(rest):
        left = r
        for v in range(sizes.shape[0]):
            if v != axis:
                for p in range(within.shape[0]):
                    within[p, r] += left % sizes[v] * strides[p, v]
                left //= sizes[v]
    product = np.ones((values, rest))  # of the parts without a choice
    for p in range(fixed.shape[0]):
        first = start[fixed[p]]
        for v in range(values):
            for r in range(rest):
                cell = first + within[count + p, r] + v * strides[count + p, axis]
                product[v, r] *= cells[cell]
    widest = 1
    holds = np.empty(count, dtype=np.bool_)
    for p in range(count):
        holds[p] = strides[p, axis] > 0
        for k in range(number):
            widest = max(widest, width[cases[k, p]])
    sums, outer = np.empty((2, widest)), np.empty(number)
    hint = zero
    for pair in range(sides.shape[0]):
        half = states = zero
        for v in range(values):
            half += rest * sides[pair, 0, v]
            states += rest * (int(sides[pair, 0, v]) + int(sides[pair, 1, v]))
        place = np.empty((count, states), dtype=np.int64)
        lead = np.empty(states)
        work = np.empty((count + 1, states))
        h = 0
        for side in range(2):
            for v in range(values):
                if sides[pair, side, v]:
                    for r in range(rest):
                        lead[h + r] = product[v, r]
                        for p in range(count):
                            place[p, h + r] = within[p, r] + v * strides[p, axis]
                    h += rest
        threshold = thresholds[pair]
        top, base, hint = climb(
            cells,
            start,
            rows,
            width,
            limit,
            edge,
            cases,
            place,
            lead,
            half,
            threshold,
            hint,
            work,
            sums,
            outer,
        )
        found = ratio(top, base)
        if found >= threshold:
            verdict[pair] = BEATEN
        else:
            top, base, verdict[pair] = prove(
                cells,
                start,
                rows,
                width,
                limit,
                edge,
                cases,
                place,
                holds,
                lead,
                half,
                rest,
                threshold,
                budget,
                work,
                sums,
                outer,
                top,
                base,
            )
        sums_found[pair, 0] = top
        sums_found[pair, 1] = base


largest = _compiled(_largest)
