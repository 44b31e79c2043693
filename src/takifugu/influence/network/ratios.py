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

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.influence.rounded_ratios import UNIT_ROUNDOFF

CLOSER = 2.0**-34  # a ratio is found up to this factor less one
PROVED, BEATEN, UNKNOWN = 0, 1, 2  # largest; at least the threshold; out of budget, a lower bound


# cells, where each message starts, its rows and width; limits, and where they start
Tables = tuple[Floats, Integers, Integers, Integers, Floats, Integers]
Case = tuple[Integers, Integers, Floats, int]  # parts, the cell of each state, what leads, |A|
Problem = tuple[Integers, Integers, Booleans, Floats, int, int]  # cases; |A| and |rest| at the end
Most = tuple[Floats, Floats]  # and least, that the parts after some contribute, jointly and alone
Pair = tuple[float, float]
Scratch = tuple[Floats, Floats, Integers]
Sums = tuple[Floats, Floats, Floats]


@compiled
def ratio(top: float, base: float) -> float:
    """Top / base; −1 if the top cannot happen, infinite if only the base cannot."""
    if top <= 0.0:
        return -1.0
    return np.inf if base <= 0.0 else top / base


@compiled
def descending(values: Floats) -> Integers:
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


@compiled
def ascend(
    tables: Tables, case: Case, chosen: Integers, work: Floats, sums: Floats, threshold: float
) -> tuple[float, float]:
    """Improve the chosen rows, part by part, until nothing changes or the threshold is reached.

    Returns the sums of both sides. ``cell_of`` is ``[part, state]``: the cell of a part that a
    state is in; ``lead`` the product of all parts without a choice; the states below ``half``
    are side A.
    """
    cells, start, rows, width, _, _ = tables
    parts, cell_of, lead, half = case
    count, states = cell_of.shape
    top, base = 0.0, 0.0
    for _ in range(4):
        changed = False
        for h in range(states):  # work[p]: the product of the parts from p on
            work[count, h] = 1.0
        for p in range(count - 1, -1, -1):
            at = start[parts[p]] + chosen[p] * width[parts[p]]
            for h in range(states):
                work[p, h] = work[p + 1, h] * cells[at + cell_of[p, h]]
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
                    sums[0, cell_of[p, h]] += work[0, h] * work[p + 1, h]
                for h in range(half, states):
                    sums[1, cell_of[p, h]] += work[0, h] * work[p + 1, h]
                best, best_row = -2.0, chosen[p]
                for a in range(rows[part]):
                    at = start[part] + a * wide
                    n, d = 0.0, 0.0
                    for c in range(wide):
                        n += sums[0, c] * cells[at + c]
                        d += sums[1, c] * cells[at + c]
                    quotient = ratio(n, d)
                    if quotient > best * (1 + 1e-13) or best == -2.0:
                        best, best_row, top, base = quotient, a, n, d
                if best >= threshold:
                    return top, base
                if best_row != chosen[p]:
                    chosen[p] = best_row
                    changed = True
            at = start[part] + chosen[p] * wide
            for h in range(states):
                work[0, h] *= cells[at + cell_of[p, h]]
        if not changed:
            break
    return top, base


@compiled
def hopeless(
    weight: Floats, joint: Floats, alone: Floats, half: int, rest: int, level: float, margin: float
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


@compiled
def descend(
    tables: Tables,
    case: Case,
    rest: int,
    most: Most,
    scratch: Scratch,
    best_sums: Pair,
    threshold: float,
    budget: float,
) -> tuple[float, float, float]:
    """Depth first through the rows of all parts; the best sums and the budget left."""
    cells, start, rows, width, _, _ = tables
    parts, cell_of, _, half = case
    work, sums, at = scratch
    joint, alone = most
    top, base = best_sums
    count, states = cell_of.shape
    margin = (rest + states + 4 * count + 16) * 2.0 * UNIT_ROUNDOFF
    best = ratio(top, base)
    level = max(best, 0.0) * (1 + CLOSER)
    if hopeless(work[0], joint[0], alone[0], half, rest, level, margin):
        return top, base, budget
    depth = 0
    at[depth] = 0
    while depth >= 0:
        part = parts[depth]
        wide = width[part]
        if depth == count - 1:  # the last part: all its rows at once
            for c in range(wide):
                sums[0, c] = 0.0
                sums[1, c] = 0.0
            for h in range(half):
                sums[0, cell_of[depth, h]] += work[depth, h]
            for h in range(half, states):
                sums[1, cell_of[depth, h]] += work[depth, h]
            for a in range(rows[part]):
                here = start[part] + a * wide
                n, d = 0.0, 0.0
                for c in range(wide):
                    n += sums[0, c] * cells[here + c]
                    d += sums[1, c] * cells[here + c]
                quotient = ratio(n, d)
                if quotient > best:
                    best, top, base = quotient, n, d
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
            work[depth + 1, h] = work[depth, h] * cells[here + cell_of[depth, h]]
        budget -= 2 * states
        if budget < 0:
            return top, base, budget
        deeper = depth + 1
        if hopeless(work[deeper], joint[deeper], alone[deeper], half, rest, level, margin):
            continue
        depth = deeper
        at[depth] = 0
    return top, base, budget


@compiled
def limits(
    tables: Tables, parts: Integers, cell_of: Integers, holds: Booleans, rest: int, most: Most
) -> None:
    """Write, for each number of parts chosen, the most and the least the others contribute."""
    joint, alone = most
    limit, edge = tables[4], tables[5]
    count, states = cell_of.shape
    for side in range(2):
        joint[count, side, :states] = 1.0
        alone[count, side, :rest] = 1.0
        for p in range(count - 1, -1, -1):
            at = edge[parts[p], side]
            if holds[p]:
                for h in range(states):
                    joint[p, side, h] = joint[p + 1, side, h] * limit[at + cell_of[p, h]]
                for r in range(rest):
                    alone[p, side, r] = alone[p + 1, side, r]
            else:
                for r in range(rest):
                    alone[p, side, r] = alone[p + 1, side, r] * limit[at + cell_of[p, r]]
                for h in range(states):
                    joint[p, side, h] = joint[p + 1, side, h]


@compiled
def rough(
    tables: Tables, cases: Integers, cell_of: Integers, lead: Floats, half: int, bounds: Floats
) -> None:
    """Write ``[case]`` a rough upper bound on the ratio: the most for A, the least for B."""
    limit, edge = tables[4], tables[5]
    for k in range(cases.shape[0]):
        n, d = 0.0, 0.0
        for h in range(lead.shape[0]):
            side = 0 if h < half else 1
            weight = lead[h]
            for p in range(cases.shape[1]):
                weight *= limit[edge[cases[k, p], side] + cell_of[p, h]]
            if h < half:
                n += weight
            else:
                d += weight
        bounds[k] = ratio(n, d)


@compiled
def climb(
    tables: Tables, problem: Problem, threshold: float, hint: int, scratch: Sums
) -> tuple[float, float, int]:
    """High sums of both sides, and the case they are from; no proof that they are the highest.

    Tried are: the case ``hint``, and all others, those with the highest rough bound (left in
    ``outer``) first. Ends at the threshold.
    """
    cases, cell_of, _, lead, half, _ = problem
    work, sums, outer = scratch
    order = np.zeros(cases.shape[0], dtype=np.int64)
    chosen = np.zeros(cases.shape[1], dtype=np.int64)
    top, base, best, where = 0.0, 0.0, -1.0, hint
    for attempt in range(-1, cases.shape[0]):
        if attempt == 0:
            rough(tables, cases, cell_of, lead, half, outer)
            order = descending(outer)
        k = hint if attempt < 0 else order[attempt]
        if attempt >= 0 and (outer[k] < 0 or outer[k] <= best * (1 + CLOSER / 2)):
            break  # nor can the cases after it be better
        chosen[:] = 0
        n, d = ascend(tables, (cases[k], cell_of, lead, half), chosen, work, sums, threshold)
        if ratio(n, d) > best:
            top, base, best, where = n, d, ratio(n, d), k
        if best >= threshold:
            break
    return top, base, where


@compiled
def prove(
    tables: Tables,
    problem: Problem,
    threshold: float,
    budget: float,
    scratch: Sums,
    best_sums: Pair,
) -> tuple[float, float, int]:
    """Search all cases for higher sums than these; the highest, and what they are worth."""
    cases, cell_of, holds, lead, half, rest = problem
    work, sums, outer = scratch
    top, base = best_sums
    count, states = cell_of.shape
    most = np.empty((count + 1, 2, states)), np.empty((count + 1, 2, rest))
    at = np.zeros(count + 1, dtype=np.int64)
    best = ratio(top, base)
    for k in descending(outer):
        if outer[k] < 0 or outer[k] <= best * (1 + CLOSER / 2):
            break
        limits(tables, cases[k], cell_of, holds, rest, most)
        for h in range(states):
            work[0, h] = lead[h]
        case, buffers = (cases[k], cell_of, lead, half), (work, sums, at)
        top, base, budget = descend(
            tables, case, rest, most, buffers, (top, base), threshold, budget
        )
        best = ratio(top, base)
        if best >= threshold:
            return top, base, BEATEN
        if budget < 0:
            return top, base, UNKNOWN
    return top, base, PROVED


@compiled
def largest(
    tables: Tables,
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
    cells, start, _, width, _, _ = tables
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
        cell_of = np.empty((count, states), dtype=np.int64)
        lead = np.empty(states)
        work = np.empty((count + 1, states))
        h = 0
        for side in range(2):
            for v in range(values):
                if sides[pair, side, v]:
                    for r in range(rest):
                        lead[h + r] = product[v, r]
                        for p in range(count):
                            cell_of[p, h + r] = within[p, r] + v * strides[p, axis]
                    h += rest
        threshold = thresholds[pair]
        problem, scratch = (cases, cell_of, holds, lead, half, rest), (work, sums, outer)
        top, base, hint = climb(tables, problem, threshold, hint, scratch)
        quotient = ratio(top, base)
        if quotient >= threshold:
            verdict[pair] = BEATEN
        else:
            top, base, verdict[pair] = prove(
                tables, problem, threshold, budget, scratch, (top, base)
            )
        sums_found[pair, 0] = top
        sums_found[pair, 1] = base
