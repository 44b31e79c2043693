r"""Fields of any size, by pinning and by self-avoiding walks; the compiled loops, rounded up.

See `takifugu.translation.certify.fields` for the bound by walks, which is `reweighted`, `summed`,
`walked` and `rounds`, and for the identity behind pinning. Here that is written with odds
z = e^y, couplings :math:`a = e^J`, and *gains*: a factor 1 + x is held as x, so that small ones
keep their digits. A contact with odds z multiplies the odds of its neighbour by (1 + az)/(1 + z).
If its own odds gain D, that factor gains

.. math:: r = \frac{(a-1)\, z D}{(1 + a z)(1 + z + z D)},

which rises with D and with a, and as a function of z has one peak, at
:math:`z^2 = 1/(a(1+D))`. Nothing is subtracted and no logarithm is taken: every number is a sum of
products and quotients of positive ones, so that its relative error is a few units for each
operation, and one factor for each entry covers it.

A *box* (L, U, A, B) says that the odds of an entry are between L and U, and gain A to B when every
field rises by its ε. Imported by need only: it loads numba.
"""

import math

import numpy as np

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu._core.rounding import UNIT

Box = tuple[float, float, float, float]
BIG = 1e60  # odds beyond it are not computed with: they count as unbounded from above
HUGE = 1e200  # a gain beyond it counts as infinite
LEAST = 1e-305  # what underflow may lose of a gain
WHOLE = 1e-290  # a factor beyond it keeps all its digits, also after the next product


@compiled
def together(one: float, other: float) -> float:
    """The gain of a product of two factors; infinite, and never NaN, beyond HUGE."""
    return one + other + one * other if one < HUGE and other < HUGE else math.inf


@compiled
def at_most_big(odds: float) -> float:
    """A lower bound on odds that is computed with: 0 for NaN, which is 0 times infinity."""
    return min(odds, BIG) if odds >= 0 else 0.0


@compiled
def felt(odds: float, more: float) -> float:
    """What a contact with these odds and coupling gains its neighbour; ``more`` is a − 1."""
    return more * (odds / (1.0 + odds)) if odds < BIG else more


@compiled
def gained(odds: float, grown: float, more: float) -> float:
    """How much more a contact adds when its odds, at most BIG, gain ``grown``.

    Multiplied in an order in which nothing is lost to underflow but what is below LEAST anyway.
    """
    if more < BIG and grown < BIG:
        return more * grown * odds / ((1 + (1 + more) * odds) * (1 + odds + odds * grown))
    if grown < BIG:
        return more * odds / (1 + (1 + more) * odds) * (grown / (1 + odds + odds * grown))
    passed = odds * grown / (1 + odds + odds * grown) if grown < HUGE else 1.0
    return more / (1 + (1 + more) * odds) * passed


@compiled
def most_gain(low: float, high: float, grown: float, more: float) -> float:
    """The largest gain for odds in [low, high]: it has one peak."""
    product = (1 + more) * (1 + grown)
    if not product < HUGE:
        return more
    if low * low * product >= 1:
        return gained(low, grown, more)
    if high < BIG and high * high * product <= 1:
        return gained(high, grown, more)
    return gained(1 / math.sqrt(product), grown, more)


@compiled
def least_gain(low: float, high: float, grown: float, more: float) -> float:
    """The smallest gain for odds in [low, high]: at one of the ends.

    Numbers so small that floats no longer keep all their digits might be rounded up: they count
    as 0, which is below every gain.
    """
    if not high < BIG or not low * min(grown, more) > WHOLE:
        return 0.0
    least = min(gained(low, grown, more), gained(high, grown, more))
    return least if least > LEAST else 0.0


@compiled
def without_each(ordered: Floats, count: int, keep: int, room: Floats, found: Floats) -> None:
    """``found[r]``: the gain of the first ``keep`` of ``count`` factors without the r-th."""
    keep = min(keep, count - 1)
    room[0] = 0.0
    for k in range(keep):
        room[k + 1] = together(room[k], ordered[k])
    for r in range(keep, count):
        found[r] = room[keep]
    behind = 0.0
    for r in range(keep - 1, -1, -1):
        behind = together(behind, ordered[r + 1])
        found[r] = together(room[r], behind)


@compiled
def sort_places(values: Floats, count: int, rising: bool, order: Integers) -> None:
    """The places of ``values`` in ``order``; by insertion, since lists are short."""
    for k in range(count):
        at = k
        while (
            at > 0
            and (values[order[at - 1]] > values[k]) == rising
            and (values[order[at - 1]] != values[k])
        ):
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


@compiled
def pin_levels(near: Integers, back: Integers, degree: Integers, most: int) -> Integers:
    """``[w, a]``: how many must be gone, at least, for contact a of entry w to have pinned w.

    An entry g that is gone pins the contacts before the one that the walk went on to. So the walk
    went from g to a contact behind w in g's order, and from there to w without g: as many are gone
    as there are steps from that contact to w. At most ``most`` are counted; one more means never.
    """
    n, width = near.shape
    found = np.full((n, width), most + 1)
    seen = np.full(n, -1)
    queue, marked = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    number = 0
    for w in range(n):
        for a in range(degree[w]):
            g, rank = near[w, a], back[w, a]
            if rank == degree[g] - 1:
                continue
            for k in range(rank + 1, degree[g]):
                marked[near[g, k]] = True
            seen[w], seen[g] = number, number
            queue[0] = w
            first, last = 0, 1
            for step in range(1, most + 1):
                end = last
                while first < end and found[w, a] > most:
                    v = queue[first]
                    first += 1
                    for k in range(degree[v]):
                        u = near[v, k]
                        if seen[u] == number:
                            continue
                        if marked[u]:
                            found[w, a] = step
                            break
                        seen[u] = number
                        queue[last] = u
                        last += 1
                if found[w, a] <= most or first == last:
                    break
            for k in range(rank + 1, degree[g]):
                marked[near[g, k]] = False
            number += 1
    return found


@compiled
def far_boxes(
    low: Floats,
    high: Floats,
    own: Floats,
    whole: float,
    near: Integers,
    back: Integers,
    degree: Integers,
    weak: Floats,
    strong: Floats,
    levels_of_pins: Integers,
    boxes: Floats,
) -> None:
    """``boxes[m, i, a]``: contact a of entry i, i and up to m others taken out and pinned anyhow.

    The last level pins everybody; level m follows from level m + 1, and counts the pins that m
    entries can have made (`pin_levels`). Behind each box stands its
    upper end without the pins, for use where the pins are known. ``own`` is the gain of each entry
    by its ε, and ``whole`` that of all together: no odds gain more. What a contact adds is computed
    once for all of its entry's neighbours; who is left out is left out of a product.
    """
    levels, n, width, _ = boxes.shape
    terms, found, room = np.empty((5, width)), np.empty((5, width)), np.empty(width + 1)
    ordered, placed = np.empty(width), np.empty(width)
    order = np.empty(width, dtype=np.int64)
    for m in range(levels - 1, -1, -1):
        for w in range(n):
            count = degree[w]
            for b in range(count):
                pull, push = strong[w, b], weak[w, b]
                if m == levels - 1:
                    terms[0, b], terms[1, b], terms[2, b] = 0.0, pull, 0.0
                    terms[3, b], terms[4, b] = pull, 0.0
                    continue
                down, up = boxes[m + 1, w, b, 0], boxes[m + 1, w, b, 1]
                grown, more = boxes[m + 1, w, b, 2], boxes[m + 1, w, b, 3]
                terms[0, b] = felt(down, push)
                terms[1, b] = felt(up, pull)
                terms[2, b] = least_gain(down, up, grown, push)
                terms[3, b] = most_gain(down, up, more, pull)
                terms[4, b] = 0.0
                if levels_of_pins[w, b] <= m:
                    terms[4, b] = max((pull - terms[1, b]) / (1 + terms[1, b]), 0.0)
            for part in range(5):
                if part in (1, 3) or m == 0:  # nobody is gone, or it only lowers the number
                    keep = 0 if part == 4 else count
                    without_each(terms[part], count, keep, room, found[part])
                    continue
                sort_places(terms[part], count, part != 4, order)  # pins: those that raise most
                for r in range(count):
                    ordered[r] = terms[part, order[r]]
                keep = m if part == 4 else max(count - 1 - m, 0)
                without_each(ordered, count, keep, room, placed)
                for r in range(count):
                    found[part, order[r]] = placed[r]
            margin = 32 * (count + 4) * UNIT
            for b in range(count):
                i, a = near[w, b], back[w, b]
                upper = high[w] * (1 + found[1, b]) * (1 + margin)
                boxes[m, i, a, 0] = at_most_big(low[w] * (1 + found[0, b]) * (1 - margin))
                boxes[m, i, a, 1] = upper * (1 + found[4, b]) * (1 + margin)
                least = together(own[w], found[2, b]) * (1 - margin) - LEAST
                boxes[m, i, a, 2] = min(max(least, 0.0), HUGE)
                greatest = together(own[w], found[3, b]) * (1 + margin) + LEAST
                boxes[m, i, a, 3] = min(greatest, whole)
                boxes[m, i, a, 4] = upper


@compiled
def explore(
    entry: int,
    depth: int,
    share: float,
    tolerance: float,
    most: int,
    low: Floats,
    high: Floats,
    own: Floats,
    near: Integers,
    degree: Integers,
    weak: Floats,
    strong: Floats,
    boxes: Floats,
    gone: Booleans,
    pinned: Floats,
    kept: Floats,
    visits: Integers,
) -> Box:
    """The box of ``entry`` with the entries ``gone`` taken out and their pins in ``pinned``.

    A contact is explored further while what is unknown about it, times ``share`` (how much
    of it reaches the first entry), is above ``tolerance``, up to ``most`` visits in all.
    """
    visits[0] += 1
    lower, upper = 0.0, 0.0
    least = greatest = own[entry]
    gone[entry] = True
    m = min(depth, boxes.shape[0] - 1)
    for a in range(degree[entry]):
        w = near[entry, a]
        kept[depth, 0, a], kept[depth, 1, a] = pinned[0, w], pinned[1, w]
        if gone[w]:
            continue
        push, pull = weak[entry, a], strong[entry, a]
        down = at_most_big(boxes[m, entry, a, 0] * pinned[0, w])
        up = min(boxes[m, entry, a, 1], boxes[m, entry, a, 4] * pinned[1, w])
        grown, more = boxes[m, entry, a, 2], boxes[m, entry, a, 3]
        little, much = least_gain(down, up, grown, push), most_gain(down, up, more, pull)
        unknown = (much - little) / (1 + little)
        if share * unknown > tolerance and depth + 1 < kept.shape[0] and visits[0] < most:
            reach = min(much * (1 + more) / ((1 + much) * max(more, 1e-300)), 1.0)
            found = explore(
                *(w, depth + 1, share * reach, tolerance, most, low, high, own, near, degree),
                *(weak, strong, boxes, gone, pinned, kept, visits),
            )
            down, up = max(down, found[0]), min(up, found[1])
            grown, more = max(grown, found[2]), min(more, found[3])
            little, much = least_gain(down, up, grown, push), most_gain(down, up, more, pull)
        lower, upper = together(lower, felt(down, push)), together(upper, felt(up, pull))
        least, greatest = together(least, little), together(greatest, much)
        pinned[0, w] *= 1 + push  # later contacts see this entry as 1 at w
        pinned[1, w] *= 1 + pull
    gone[entry] = False
    for a in range(degree[entry]):
        w = near[entry, a]
        pinned[0, w], pinned[1, w] = kept[depth, 0, a], kept[depth, 1, a]
    margin = 32 * (degree[entry] + depth + 4) * UNIT
    bottom = at_most_big(low[entry] * pinned[0, entry] * (1 + lower) * (1 - margin))
    top = high[entry] * pinned[1, entry] * (1 + upper) * (1 + margin)
    least = min(max(least * (1 - margin) - LEAST, 0.0), HUGE)
    return bottom, top, least, greatest * (1 + margin) + LEAST


@compiled
def reweighted(spread: float, rise: float) -> float:
    """β(Δ, α), rounded up: at most the smaller of the two."""
    least = min(spread, rise)
    if not least > 0.0:
        return 0.0
    if not spread + rise < 1e300:
        return least
    product = math.tanh(spread / 4) * math.tanh(rise / 4)
    if product < 0.5:
        value = 4 * math.atanh(product) * (1 + 64 * UNIT)
    else:
        high, low = (spread + rise) / 4, abs(spread - rise) / 4
        # log cosh h − log cosh l, both written without overflow
        value = 2 * (high - low + math.log1p(math.exp(-2 * high)) - math.log1p(math.exp(-2 * low)))
        value += 64 * UNIT * (1 + high)
    return min(max(value, 1e-300), least)  # the product may have been rounded to 0


@compiled
def summed(
    first: int,
    last: int,
    offsets: Integers,
    near: Integers,
    spreads: Floats,
    cost: Floats,
    behind: Floats,
    total: Floats,
) -> None:
    """Add to ``total``, ``[x, y]``, what the contacts ``first`` to ``last`` of an entry add.

    ``spreads[offsets[k]:offsets[k + 1]]`` is the range of the table of contact k for each pair of
    own values, and ``behind`` bounds what lies behind each of them.
    """
    size = total.shape[0]
    for k in range(first, last):
        grown = (cost[near[k]] + behind[k - first]) * (1 + 2 * UNIT)
        for x in range(size):
            for y in range(size):
                total[x, y] += reweighted(spreads[offsets[k] + x * size + y], grown)
    margin = 1 + 4 * (last - first + 2) * UNIT
    for x in range(size):
        for y in range(size):
            total[x, y] *= margin


@compiled
def walked(
    entry: int,
    depth: int,
    visits: Integers,
    cost: Floats,
    start: Integers,
    near: Integers,
    spread: Floats,
    behind: Floats,
    gone: Booleans,
) -> float:
    """A bound on how far the law of all entries but those ``gone`` depends on ``entry``.

    ``near[start[i]:start[i + 1]]`` are the contacts of entry i, ``spread`` the Δ to each of them,
    and ``behind`` bounds what lies behind that contact. Walks end after ``depth`` more steps.
    """
    visits[0] -= 1
    gone[entry] = True
    total, terms = 0.0, 0
    for k in range(start[entry], start[entry + 1]):
        j = near[k]
        if gone[j]:
            continue
        below = behind[k]
        if depth > 0 and visits[0] > 0 and below > 0:
            below = min(
                below, walked(j, depth - 1, visits, cost, start, near, spread, behind, gone)
            )
        total += reweighted(spread[k], (cost[j] + below) * (1 + 2 * UNIT))
        terms += 1
    gone[entry] = False
    return total * (1 + 2 * (terms + 1) * UNIT)


@compiled
def rounds(
    most: int,
    close: float,
    cost: Floats,
    start: Integers,
    near: Integers,
    back: Integers,
    spread: Floats,
    behind: Floats,
    falling: bool,
) -> None:
    """Rounds of the non-backtracking recursion, ``behind`` being replaced.

    ``back[k]`` is the number of the contact k seen from its other end. If ``falling``, from a bound
    down: every round is one, and it ends when little changes. Else from 0 up.
    """
    n = len(start) - 1
    felt = behind.copy()
    for _ in range(most):
        moved = False
        for k in range(len(near)):
            felt[k] = reweighted(spread[k], (cost[near[k]] + behind[k]) * (1 + 2 * UNIT))
        for j in range(n):
            total = 0.0
            for k in range(start[j], start[j + 1]):
                total += felt[k]
            for k in range(start[j], start[j + 1]):
                # what i = near[k] finds behind j: all contacts of j but i; the rounding of a sum
                # of so many terms and of a difference is added
                rest = total - felt[k] + 4 * (start[j + 1] - start[j] + 2) * UNIT * total
                at = back[k]
                if start[j + 1] - start[j] == 1:
                    rest = 0.0
                if rest < behind[at] or not falling:
                    moved = moved or not falling or rest < behind[at] * (1 - close)
                    behind[at] = rest
        if not moved:
            return
