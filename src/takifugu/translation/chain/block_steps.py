r"""Coupling several entries at once: a tighter recursion for chains of few states.

The step of `takifugu.translation.chain.chain_losses` bounds every pair of states of the next entry
by the mechanism that is worst for that pair; one mechanism may not be worst for all at once.
Coupling the next k entries together loses less. With :math:`U = (u_1 … u_k)` their states,

.. math:: F_i(x,y) \le T\Big(P(U|x), P(V|y);\ \sum_j c_{i+j}(u_j,v_j) + F_{i+k}(u_k,v_k)\Big)

by the same proof, for every k and whatever bound :math:`F_{i+k}` is. With all later entries in one
block this is the linear program itself, hence exact up to the other side of the entry.
"""

from collections.abc import Sequence

import numpy as np

from takifugu.numeric import Floats
from takifugu.translation.chain.entry_laws import FAINT
from takifugu.translation.chain.transport_steps import (
    LARGE,
    MOST_STATES,
    bound,
    closed,
    entry_cost,
    improve,
    off_diagonal,
)

STATES = 81  # of a block
LONGEST = 64  # entries of a chain that is walked in blocks
ROUNDS = 12  # of lowering a bound for chains of every length
STILL = 1e-4  # a smaller relative change counts as none


def block_length(states: int) -> int:
    """How many entries of so many states make a block; 1 if it does not pay."""
    length = 1
    while states > 1 and states ** (length + 1) <= min(STATES, MOST_STATES):
        length += 1
    return length


def block_step(
    rows: Sequence[Floats],
    spent: Sequence[float | Floats],
    after: Floats,
    *,
    slack: float,
) -> Floats:
    """``[x, y]``: the bound over the next entries, whose rows and costs are given, nearest first.

    A cost is a matrix ``[u, v]``, or an ε for any change.

    ``after`` bounds what lies behind the last of them; ``slack`` is the rounding of one step's
    rows. Never more than the dearest move.
    """
    size = len(after)
    unit = off_diagonal(size)
    law = np.ascontiguousarray(rows[0])  # [x, U]
    cost = entry_cost(spent[0], size)
    last = np.arange(size)
    for matrix, charged in zip(rows[1:], spent[1:], strict=True):
        law = (law[:, :, None] * matrix[last][None, :, :]).reshape(size, -1)
        law = np.where(law < FAINT, 0.0, law)  # negligible: see `entry_laws`
        cost = np.repeat(np.repeat(cost, size, axis=0), size, axis=1) + np.tile(
            entry_cost(charged, size), cost.shape
        )
        last = np.tile(np.arange(size), len(last))
    cost = closed(cost + after[np.ix_(last, last)])
    dearest = float(cost.max())
    if dearest == 0 or not dearest < LARGE:
        return dearest * unit
    law = np.ascontiguousarray(law / law.sum(axis=1, keepdims=True))
    _, found = improve(law, law, cost, guess=np.minimum(after, dearest))
    total = 2 * len(rows) * slack + 4 * law.shape[1] * 2.0**-53
    proven: Floats = np.minimum(bound(law, law, cost, found) + total * unit, dearest * unit)
    return proven


def walk_blocks(
    rows: Sequence[Floats], spent: Sequence[float | Floats] | Floats, *, size: int, slack: float
) -> list[Floats]:
    """Tables of what lies ahead, from the entry that begins to the last one.

    ``rows[j]`` leads from entry j to entry j + 1, which is charged ``spent[j]``.
    """
    most = block_length(size)
    tables = [np.zeros((size, size))]
    for j in reversed(range(len(rows))):
        taken = min(most, len(rows) - j)
        charged = list(spent[j : j + taken])
        after = tables[taken - 1]  # the first is that of entry j + 1
        tables.insert(0, block_step(rows[j : j + taken], charged, after, slack=slack))
    return tables


def settle(rows: Floats, cost: float | Floats, above: Floats, *, slack: float) -> Floats:
    """Lower a bound that holds for chains of every length, block by block, until it settles.

    If ``above`` bounds what n entries reveal, for every n, then a block step from it bounds what
    n + k entries reveal; and fewer entries reveal no more, since a mechanism may ignore some. So
    every step gives another bound for every length.
    """
    length = block_length(len(above))
    value = above
    for _ in range(ROUNDS):
        after = np.minimum(value, block_step([rows] * length, [cost] * length, value, slack=slack))
        settled = float((value - after).max()) <= STILL * float(value.max())
        value = after
        if settled:
            break
    return value
