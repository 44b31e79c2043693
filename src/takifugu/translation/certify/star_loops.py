"""The compiled loops of `takifugu.translation.certify.stars`: walks for one ratio, or for a grid.

A step is the same in both: `advance`. States with the same factor are one class: ``order`` lists
the states class by class, and ``last`` says where a class ends.

Directions (a, b) of a grid stand for the measure a·K(x,·) − b·K(y,·) at the first step: (1, 0),
then (1, τ) for every τ of the grid, then (0, 1). Each measure is an upper bound, every operation
rounded up, and is scaled by a power of 2 of its own, which does not change its direction.

This module is imported by need only: it loads numba.
"""

import math

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT
from takifugu.translation.certify.stars import Rays, StarSteps, TerminalSteps

LEAST_POWER = 1e-280  # a smaller positive entry of a power, beside its largest one, ends the walk
TINY = 1e-300  # what a positive number is raised to where a product may underflow
MAX_CUTS = 40  # of the search for the multiplier of a cell


@compiled
def advance(
    matrix: Floats,
    rays: Rays,
    e: Floats,
    j: int,
    error: float,
    floor: float,
    after: Floats,
    plus: Floats,
    minus: Floats,
) -> None:
    """One step of direction j, rounded up: ``after`` becomes the next measure.

    ``error`` is at least the relative error of a row, of a factor and of a sum of so many products.
    ``floor`` keeps products of positive numbers from underflow: a positive weight is raised to it.
    """
    high, low, order, last = rays
    k = e.shape[1]
    for v in range(k):
        plus[v] = minus[v] = 0.0
    begin = 0
    for place in range(k):
        if not last[place]:
            continue
        if begin == place:
            u = order[begin]
            if e[j, u] > 0:
                weight = max(e[j, u] * high[u], floor)
                for v in range(k):
                    plus[v] += weight * matrix[u, v]
            elif e[j, u] < 0:
                weight = -e[j, u] * low[u]
                for v in range(k):
                    minus[v] += weight * matrix[u, v]
        begin = place + 1
    for v in range(k):
        after[j, v] = plus[v] * (1 + error) - minus[v] * (1 - error)
    begin = 0
    for place in range(k):
        if not last[place]:
            continue
        if begin < place:
            rise, fall = high[order[begin]], low[order[begin]]
            for v in range(k):
                plus[v] = minus[v] = 0.0
            for index in range(begin, place + 1):
                u = order[index]
                if e[j, u] > 0:
                    weight = max(e[j, u], floor)
                    for v in range(k):
                        plus[v] += weight * matrix[u, v]
                elif e[j, u] < 0:
                    weight = -e[j, u]
                    for v in range(k):
                        minus[v] += weight * matrix[u, v]
            for v in range(k):
                value = plus[v] * (1 + error) - minus[v] * (1 - error)
                gained = value * (rise * (1 + error) if value > 0 else fall * (1 - error))
                total = after[j, v] + gained
                after[j, v] = total + (abs(after[j, v]) + abs(gained)) * 4 * UNIT
        begin = place + 1


@compiled
def remaining(rays: Rays, e: Floats, j: int, law: Floats, error: float) -> float:
    """The sum with the weights ``law`` that is left if nothing comes after this entry."""
    high, low, order, last = rays
    positive = negative = 0.0
    begin = 0
    for place in range(e.shape[1]):
        if not last[place]:
            continue
        u = order[begin]
        rise = fall = 0.0
        for index in range(begin, place + 1):
            value = e[j, order[index]]
            share = law[order[index]]
            if value > 0 and share > 0:
                rise += max(value * share, TINY)
            else:
                fall -= value * share
        excess = rise * (1 + error) - fall * (1 - error)
        if excess > 0:
            positive += high[u] * excess
        else:
            negative -= low[u] * excess
        begin = place + 1
    return positive * (1 + error) - negative * (1 - error)


@compiled
def rays_at(steps: StarSteps, level: int) -> Rays:
    """The factors of one of the costs."""
    return Rays(steps.high[level], steps.low[level], steps.order[level], steps.last[level])


@compiled
def certified(steps: StarSteps, x: int, y: int, t: float, ones: Floats, work: Floats) -> bool:
    """Whether log t is proven to bound the side of the pair.

    Step n leads by ``rows[row_at[n]]`` to an entry with the factors of ``cost_at[n]``; after its
    last step an unbounded side repeats it.
    """
    rows, row_at, cost_at = steps.rows, steps.row_at, steps.cost_at
    error, floor, most_steps, unbounded = steps.error, steps.floor, steps.most, steps.unbounded
    k = rows.shape[1]
    e, after, before, plus, minus = work[0], work[1], work[2], work[3], work[4]
    current, next_one = work[0:1], work[1:2]  # e and after, as a grid of one direction
    listed = row_at.shape[0]
    first = rows[row_at[0]]
    for v in range(k):
        e[v] = first[x, v] * (1 + error) - t * first[y, v] * (1 - error)
    known = False  # whether `before` is the measure of the last step, up to a common factor
    for n in range(1, most_steps + 1):
        level = cost_at[min(n, listed) - 1]
        none = True
        for v in range(k):
            if not e[v] <= 0:
                none = False
                break
        if none:
            return True  # and it stays so
        rays = rays_at(steps, level)
        left = remaining(rays, current, 0, ones, error)
        if not left <= 0:
            return False  # entries that are left out reveal no less than t
        if n == most_steps and not unbounded:
            return True
        if known and steps.held[min(n, listed) - 1]:
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
        if n == most_steps:
            return False
        matrix = rows[row_at[min(n, listed - 1)]]
        advance(matrix, rays, current, 0, error, floor, next_one, plus, minus)
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


@compiled
def test(
    steps: StarSteps, pairs: Integers, begin: int, end: int, limits: Floats, proven: Booleans
) -> None:
    """Whether each pair's loss on this side is proven to be at most its limit."""
    work, ones = np.empty((5, steps.rows.shape[1])), np.ones(steps.rows.shape[1])
    for pair in range(begin, end):
        limit, (x, y) = limits[pair] * (1 - 8 * UNIT) - 8 * UNIT, pairs[pair]
        proven[pair] = limit >= 0 and certified(steps, x, y, math.exp(limit), ones, work)


@compiled
def raised(value: float, exponent: int) -> float:
    """Value · 2^exponent for an exponent of at most 0, rounded up where it underflows."""
    if value > 0:
        return max(math.ldexp(value, max(exponent, -1100)), TINY)
    return math.ldexp(value, max(exponent, -1100))


@compiled
def crossing(
    value: float, exponent: int, a: float, b: float,
    next_value: float, next_exponent: int, next_a: float, next_b: float,
) -> float:  # fmt: skip
    """At least the ratio b/a between two directions at which a convex function is 0.

    Its values are at most ``value`` > 0 at the first and ``next_value`` ≤ 0 at the second.
    """
    top = max(exponent, next_exponent)
    second = raised(value, exponent - top)
    first = -raised(next_value, next_exponent - top)
    below = first * a + second * next_a
    if not below > 0:
        return np.inf
    return (first * b + second * next_b) / below * (1 + 16 * UNIT)


@compiled
def multiplier(
    first: int,
    end: int,
    gains: Floats,
    exponents: Integers,
    a: Floats,
    b: Floats,
    one: Floats,
    other: Floats,
    error: float,
    enough: float,
) -> tuple[float, float]:
    """A t, and the β with β·G(u) + b·K(y,u) ≤ a·t·K(x,u) for all u at directions first … end − 1.

    β is to be divided by 2 to the largest exponent of these. The search for the least t ends at
    ``enough``: every β proves one, the least is where two lines meet.
    """
    k = one.shape[0]
    top = exponents[first]
    for j in range(first, end):
        top = max(top, exponents[j])
    least = 0.0  # β must be at least this
    right_slope = right_rest = 0.0  # of the steepest line t ≥ slope·β + rest
    free = 0.0  # β from which all falling lines are below 1
    for j in range(first, end):
        for u in range(k):
            g = raised(gains[j, u], exponents[j] - top)
            rest = b[j] * other[u] * (1 + error)
            weight = a[j] * one[u] * (1 - error)
            if weight > 0:
                if g > 0:
                    if g / weight > right_slope:
                        right_slope, right_rest = g / weight, rest / weight
                elif g < 0 and rest > weight:
                    free = max(free, (rest - weight) / -g)
            elif g > 0:
                return np.inf, 0.0
            elif rest > 0:
                if not g < 0:
                    return np.inf, 0.0
                least = max(least, rest / -g * (1 + 16 * UNIT))
    beta = least if right_slope > 0 else max(least, free) * (1 + 16 * UNIT)
    best, best_beta = np.inf, beta
    if not beta < np.inf:
        return np.inf, 0.0
    left_slope = left_rest = 0.0
    nudge = 1e-13
    for cut in range(MAX_CUTS):
        value, slope, line_rest = 0.0, 0.0, 0.0
        for j in range(first, end):
            for u in range(k):
                weight = a[j] * one[u] * (1 - error)
                if not weight > 0:
                    continue
                g = raised(gains[j, u], exponents[j] - top)
                rest = b[j] * other[u] * (1 + error)
                line = beta * g + rest
                line = (line + (abs(beta * g) + rest) * 4 * UNIT) / weight
                if line > value:
                    value, slope, line_rest = line, g / weight, rest / weight
        if value < best:
            best, best_beta = value, beta
        if best <= enough or not value < np.inf or slope == 0:
            break
        if slope > 0:
            if cut == 0:  # it rises from the least β on
                break
            right_slope, right_rest = slope, line_rest
        else:
            left_slope, left_rest = slope, line_rest
            if not right_slope > 0:
                break
        after = max((left_rest - right_rest) / (right_slope - left_slope), least)
        if not abs(after - beta) > 1e-13 * beta:  # as close as it gets, or a steep line's rounding
            if not slope < 0:
                break
            after = max(after, beta) * (1 + nudge)
            nudge *= 4
        if not after < np.inf:
            break
        beta = after
    return best * (1 + 16 * UNIT), best_beta


@compiled
def middle(
    j: int,
    gains: Floats,
    exponents: Integers,
    betas: Floats,
    a: Floats,
    b: Floats,
    one: Floats,
    other: Floats,
    error: float,
) -> float:
    """The t of the middle coefficient between directions j and j + 1, with β linear between."""
    worst = 0.0
    apart = exponents[j + 1] - exponents[j]
    if not abs(apart) < 900:
        return np.inf
    for u in range(one.shape[0]):
        here = math.ldexp(betas[j] * gains[j + 1, u], apart)
        there = math.ldexp(betas[j + 1] * gains[j, u], -apart)
        rest = (b[j] + b[j + 1]) * other[u] * (1 + error)
        weight = (a[j] + a[j + 1]) * one[u] * (1 - error)
        size = abs(here) + abs(there) + rest
        total = here + there + rest + size * 8 * UNIT
        if size > 0:
            total += TINY
        if not total < np.inf:
            return np.inf
        if weight > 0:
            worst = max(worst, total / weight)
        elif not total <= 0:
            return np.inf
    return worst * (1 + 16 * UNIT)


@compiled
def bounds(
    side: TerminalSteps,
    x: int,
    y: int,
    points: Floats,
    enough: float,
    upper: Floats,
    cells: Integers,
) -> int:
    """``upper[n]``: at least the loss of a side with n entries; ``cells[n]``: where it is largest.

    Returns the last n that was walked; its bound holds for all further entries too.
    """
    kernel, rays, law, steps = side.kernel, side.rays, side.law, side.steps
    known, unknown, stochastic = side.known, side.unknown, side.stochastic
    slack, error, floor = side.slack, side.error, side.floor
    high, low, _, _ = rays
    k, count = kernel.shape[0], points.shape[0] + 2
    a, b = np.ones(count), np.ones(count)
    a[count - 1] = b[0] = 0.0
    for j in range(1, count - 1):
        b[j] = math.exp(points[j - 1])
    e, after = np.zeros((count, k)), np.zeros((count, k))
    exponents = np.zeros(count, dtype=np.int64)
    gains = np.zeros((count, k))
    one, other, next_one, next_other = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    able, able_other = np.empty(k, dtype=np.bool_), np.empty(k, dtype=np.bool_)
    next_able, next_able_other = np.empty(k, dtype=np.bool_), np.empty(k, dtype=np.bool_)
    plus, minus = np.empty(k), np.empty(k)
    values, betas = np.empty(count), np.empty(count)
    for v in range(k):
        one[v], other[v] = kernel[x, v], kernel[y, v]
        able[v], able_other[v] = one[v] > 0, other[v] > 0
    for j in range(count):
        tau = b[j] * (1 - 4 * UNIT) if 0 < j < count - 1 else b[j]
        for v in range(k):
            e[j, v] = a[j] * one[v] * (1 + error) - tau * other[v] * (1 - error)
    upper[0] = 0.0
    cells[0] = -1
    nearer, nearer_cell = 0.0, -1  # what the entries known so far prove, without the last rounding
    begin_j, end_j = 0, count  # directions before these prove a loss of 0; after, of nothing
    for n in range(1, steps + 1):
        drift = 2 * (n + 1) * error
        top, where = nearer, nearer_cell
        impossible = False
        # the largest ratio of the powers: at least that of every later one
        widest = -np.inf
        for v in range(k):
            if able_other[v]:
                widest = max(widest, math.log(other[v] / one[v]) if able[v] else np.inf)
        shift = 0.0
        if not stochastic and not unknown:
            weight = weight_other = 0.0
            for v in range(k):
                weight += law[v] * one[v]
                weight_other += law[v] * other[v]
            impossible = not (weight > 0 and weight_other > 0)
            if not impossible:
                shift = math.log(weight_other / weight)
        alone = (stochastic or side.steady) and not known and not unknown
        ends = shift if alone else widest
        for j in range(begin_j + 1, end_j - 1):  # up to this ratio nothing is lost
            if math.log(b[j]) + ends + drift + slack + 64 * UNIT * (1 + abs(ends)) <= 0:
                begin_j = j
        for j in range(begin_j + 1, end_j):  # and from this one on no measure is positive
            none = True
            for v in range(k):
                if not e[j, v] <= 0:
                    none = False
                    break
            if none:
                end_j = j + 1
                break
        if known and n > 1:
            for v in range(k):
                if not (able[v] and able_other[v]):
                    continue
                j = begin_j
                while j < end_j and e[j, v] > 0:
                    j += 1
                if j == end_j:
                    ratio = np.inf
                elif j == begin_j:
                    continue
                else:
                    ratio = crossing(
                        e[j - 1, v], exponents[j - 1], a[j - 1], b[j - 1],
                        e[j, v], exponents[j], a[j], b[j],
                    )  # fmt: skip
                value = math.log(ratio) + math.log(other[v] / one[v])
                if value > top:
                    top, where = value, j - 1
            nearer, nearer_cell = top, where
        if not unknown and not impossible:
            before = 0.0
            for j in range(begin_j, end_j):
                value = remaining(rays, e, j, law, error)
                if value <= 0:
                    if j > begin_j:
                        value = shift + math.log(
                            crossing(
                                before, exponents[j - 1], a[j - 1], b[j - 1],
                                value, exponents[j], a[j], b[j],
                            )
                        )  # fmt: skip
                    if value > top:
                        top, where = value, j - 1
                    break
                before = value
                if j == end_j - 1:
                    top = np.inf
        if unknown:
            for j in range(begin_j, end_j):
                for u in range(k):
                    value = e[j, u]
                    if value > 0:
                        gains[j, u] = max(value * high[u], TINY) * (1 + error)
                    else:
                        gains[j, u] = value * low[u] * (1 - error)
            ratio = math.exp(min(top, 700.0))
            for j in range(begin_j, end_j):
                found = multiplier(j, j + 1, gains, exponents, a, b, one, other, drift, 0.0)
                values[j], betas[j] = found[0], found[1]
            for j in range(begin_j, end_j - 1):
                value = max(values[j], values[j + 1])
                value = max(value, middle(j, gains, exponents, betas, a, b, one, other, drift))
                if not value <= ratio:  # one multiplier for both ends may do better
                    found = multiplier(j, j + 2, gains, exponents, a, b, one, other, drift, ratio)
                    value = min(value, found[0])
                if not value <= ratio:
                    ratio, top, where = value, math.log(value), j
        if top > 0:
            top = top + drift + slack + 64 * UNIT * (1 + top)
        upper[n], cells[n] = top, where
        if n == steps and side.whole:
            return n
        # what all further entries may add: no measure is positive anywhere
        tail, j = np.inf, end_j - 1
        none = True
        for v in range(k):
            none = none and e[j, v] <= 0
        if none and j > 0:
            ratio, reached = np.inf, 0.0
            if a[j] > 0:
                ratio = b[j] / a[j]
            for v in range(k):
                if e[j - 1, v] > 0:
                    value = crossing(
                        e[j - 1, v], exponents[j - 1], a[j - 1], b[j - 1],
                        e[j, v], exponents[j], a[j], b[j],
                    )  # fmt: skip
                    reached = max(reached, value)
            if j > begin_j and reached > 0:
                ratio = min(ratio, reached)
            tail = math.log(ratio) + ends
            tail = max(tail + drift + slack + 64 * UNIT * (1 + abs(tail)), 0.0)
        if tail <= max(enough, top + side.close) or n == steps:
            if tail > top:
                upper[n], cells[n] = tail, j - 1
            return n
        # one step further
        for j in range(begin_j, end_j):
            advance(kernel, rays, e, j, error, floor, after, plus, minus)
            most = 0.0
            for v in range(k):
                most = max(most, abs(after[j, v]))
            if not most < np.inf:
                upper[n] = np.inf
                return n
            exponent = math.frexp(most)[1]
            exponents[j] += exponent
            for v in range(k):
                e[j, v] = math.ldexp(after[j, v], -exponent)
        most = 0.0
        for v in range(k):
            next_one[v] = next_other[v] = 0.0
            next_able[v] = next_able_other[v] = False
        for u in range(k):
            if able[u] or able_other[u]:
                for v in range(k):
                    next_one[v] += one[u] * kernel[u, v]
                    next_other[v] += other[u] * kernel[u, v]
                    if kernel[u, v] > 0:
                        next_able[v] = next_able[v] or able[u]
                        next_able_other[v] = next_able_other[v] or able_other[u]
        for v in range(k):
            most = max(most, max(next_one[v], next_other[v]))
        exponent = math.frexp(most)[1]
        for v in range(k):
            one[v] = math.ldexp(next_one[v], -exponent)
            other[v] = math.ldexp(next_other[v], -exponent)
            able[v], able_other[v] = next_able[v], next_able_other[v]
            if (able[v] and one[v] < LEAST_POWER) or (able_other[v] and other[v] < LEAST_POWER):
                upper[n] = np.inf  # what is further away cannot be computed with
                cells[n] = -1
                return n
    return steps


@compiled
def all_bounds(
    side: TerminalSteps,
    pairs: Integers,
    begin: int,
    end: int,
    points: Floats,
    enough: Floats,
    upper: Floats,
    cells: Integers,
    walked: Integers,
) -> None:
    """The bounds of many pairs, each with a grid of its own; NaN points are left out."""
    for pair in range(begin, end):
        count = 0
        while count < points.shape[1] and points[pair, count] == points[pair, count]:
            count += 1
        (x, y), grid = pairs[pair], points[pair, :count]
        walked[pair] = bounds(side, x, y, grid, enough[pair], upper[pair], cells[pair])
