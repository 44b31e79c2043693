r"""Coupling several entries at once: a tighter recursion for chains of few states.

The step of one entry bounds every pair of states of the next one by the mechanism that is worst for
that pair; one mechanism may not be worst for all at once. Coupling the next k entries together
loses less (`takifugu.translation.certify.flow.block_step`). With all later entries in one block
this is the linear program itself, hence exact up to the other side of the entry.
"""

from collections.abc import Sequence

import numpy as np

from takifugu._core.numeric import Floats
from takifugu.translation.certify.flow import block_step
from takifugu.translation.search.couplings import MAX_STATES, solve_step

MAX_BLOCK_STATES = 81
MAX_BLOCK_ENTRIES = 64  # of a chain that is walked in blocks
MAX_REFINEMENT_ROUNDS = 12  # of lowering a bound for chains of every length
STILL = 1e-4  # a smaller relative change counts as none


def block_length(states: int) -> int:
    """How many entries of so many states make a block; 1 if it does not pay."""
    length = 1
    while states > 1 and states ** (length + 1) <= min(MAX_BLOCK_STATES, MAX_STATES):
        length += 1
    return length


def coupled_block(
    rows: Sequence[Floats], spent: Sequence[float | Floats], after: Floats, *, slack: float
) -> Floats:
    """``[x, y]``: the bound over the next entries, whose rows and costs are given, nearest first.

    A cost is a matrix ``[u, v]``, or an ε for any change. ``after`` bounds what lies behind the
    last of them; ``slack`` is the rounding of one step's rows.
    """
    step = block_step(rows, spent, after, slack=slack)
    return step.upper(solve_step(step, guess=np.minimum(after, step.dearest)))


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
        tables.insert(0, coupled_block(rows[j : j + taken], charged, after, slack=slack))
    return tables


def settle(rows: Floats, cost: float | Floats, above: Floats, *, slack: float) -> Floats:
    """Lower a bound that holds for chains of every length, block by block, until it settles.

    If ``above`` bounds what n entries reveal, for every n, then a block step from it bounds what
    n + k entries reveal; and fewer entries reveal no more, since a mechanism may ignore some. So
    every step gives another bound for every length.
    """
    length = block_length(len(above))
    value = above
    for _ in range(MAX_REFINEMENT_ROUNDS):
        after = np.minimum(
            value, coupled_block([rows] * length, [cost] * length, value, slack=slack)
        )
        settled = float((value - after).max()) <= STILL * float(value.max())
        value = after
        if settled:
            break
    return value
