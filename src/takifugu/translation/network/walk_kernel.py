"""Self-avoiding walks on a pairwise field; the compiled loop.

See `takifugu.translation.network.walk_losses` for the bound. Imported by need only: it loads numba.
"""

import math

from takifugu._rounding import UNIT
from takifugu.numeric import Booleans, Floats, Integers
from takifugu.translation.chain.tree_simplex import compiled


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
