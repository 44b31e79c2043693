r"""The transport bound of a Markov chain of finite length, entry by entry: the search.

`takifugu.translation.models.chain` has the recursion and its proof. Here the couplings of each
step are solved, each from those of the step before.

Long stretches in which nothing changes are not walked one by one: when the last step raised the
table so little that all that are left would not raise it noticeably, or if a table is found that no
further step raises (`takifugu.translation.search.fixed_point`).

**Blocks.** The step of one entry bounds every pair of states of the next one by the mechanism that
is worst for that pair; one mechanism may not be worst for all at once. Coupling the next k entries
together loses less (`takifugu.translation.certify.flow.block_step`). With all later entries in one
block this is the linear program itself, hence exact up to the other side of the entry.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.translation.certify.flow import (
    Couplings,
    FlowWalk,
    Hold,
    HullProof,
    Move,
    Settle,
    StretchOfSide,
    Take,
    block_step,
    off_diagonal,
)
from takifugu.translation.certify.hulls import (
    NARROW,
    HullLine,
    HullStep,
    HullStretch,
    hull_boxes,
)
from takifugu.translation.entry_costs import CostLevels
from takifugu.translation.models.chain import Chain, ChainLosses
from takifugu.translation.search.couplings import MAX_STATES, solve_step
from takifugu.translation.search.fixed_point import fixed_point, fixed_rows
from takifugu.translation.search.hull_steps import solve_hull

STILL = 1e-7  # a smaller relative change counts as none
NOTHING = 1e-10  # and so does a smaller absolute change
PATIENCE = 40  # steps of a stretch that are taken one by one before the others are bounded at once
MIN_PIECES = 64  # in which a stretch that never settles is bounded by a straight line
MAX_BLOCK_STATES = 81
MAX_BLOCK_ENTRIES = 64  # of a chain that is walked in blocks
MAX_SETTLING_STEPS = 12  # of lowering a bound for chains of every length
SETTLED = 1e-4  # a smaller relative change of such a bound counts as none
MAX_STAGES = 400  # steps of an unbounded chain over hulls, before the others are bounded at once
MAX_TRIALS = 60  # of a bound for all later entries
WIDE = 0.1  # a hull whose boxes are of no use
MAX_NUMBERS = 20_000  # that the tables of such pieces may hold, where more of them are possible


def chain_losses(
    transitions: ArrayLike | Sequence[ArrayLike],
    charged: ArrayLike | CostLevels,
    *,
    start: ArrayLike | Literal["unknown"] | None = None,
) -> ChainLosses:
    """Bound the loss at every entry of a chain whose entry i was ``charged`` its own ε or cost.

    ``transitions`` is one matrix, or one for each step from an entry to the next. Without
    ``start``, the law of the first entry, the chain is stationary, with one matrix; it may be
    "unknown".
    """
    chain = Chain.from_priors(transitions, charged, start)
    walks = [search_side(part, chain.size) for part in (chain.ahead, chain.behind)]
    return chain.losses(*((tuple(walk.tables), walk.at) for walk in walks))


def search_side(
    stretches: Sequence[StretchOfSide], size: int, *, recorded: bool = False
) -> FlowWalk:
    """The walk of one side; ``recorded``, its moves are kept."""
    walk = FlowWalk(stretches, size, recorded=recorded)
    couplings: Couplings | None = None
    while not walk.done:
        last, stretch = walk.value, walk.stretch
        couplings = _take(walk, couplings)
        if walk.done or not walk.walked:  # another stretch begins
            continue
        move = _remainder(walk, stretch, last, couplings)
        if move is not None:
            walk.move(move)
    return walk


def _take(walk: FlowWalk, known: Couplings | None) -> Couplings | None:
    """Take one step; ``known`` couplings are where its search starts, and others are returned."""
    step = walk.step()
    if isinstance(step, HullStep):
        walk.move(Take(solve_hull(step, guess=walk.value)))
        return None
    solved = solve_step(step, guess=walk.value, known=known)
    walk.move(Take(solved))
    return solved or known


def _remainder(
    walk: FlowWalk, stretch: StretchOfSide, last: Floats, couplings: Couplings | None
) -> Move | None:
    """What bounds several of the steps that are left of a stretch, if they need not be taken."""
    value, rise, left = walk.value, walk.rise, walk.left
    still = STILL * float(value.max()) + NOTHING
    if float((last - value).max()) > still:  # it falls: T(F) ≤ F + rise, so hold it a while
        held = min(left, walk.walked // 8 if walk.walked >= 10 * PATIENCE else 0)
        return Hold(held) if held else None
    if left * rise <= still:
        return Hold(left)
    if stretch.same_for(walk.walked) < PATIENCE or left <= PATIENCE:
        return None
    settled = _settled(stretch, value, walk.walked, couplings)
    if settled is not None and settled.table.max() <= value.max() + left * rise:
        return settled
    return Hold(left, min(left, max(MIN_PIECES, MAX_NUMBERS // value.size)))


def _settled(
    stretch: StretchOfSide,
    value: Floats,
    walked: int,
    couplings: Couplings | None,
    tolerance: float = 1e-3,
) -> Settle | None:
    """A table above ``value`` that no further step raises, if one is found."""
    if isinstance(stretch, HullStretch):
        hull = stretch.line.at(stretch.first + walked)
        rows, slack = hull_boxes(hull, stretch.weights), 2 * hull.slack
        cost = stretch.cost
    else:
        if couplings is None:
            return None
        rows, slack, cost = fixed_rows(stretch.rows), stretch.slack, stretch.cost
    settled = fixed_point(
        *(rows, cost),
        slack=slack,
        tolerance=tolerance,
        above=value,
        known=couplings,
    )
    if settled.couplings is None:
        return None
    hulls = isinstance(stretch, HullStretch)
    return Settle(settled.upper, HullProof(settled.couplings) if hulls else settled.couplings)


def unbounded_start(kernel: Floats, charged: Floats, *, tolerance: float = 1e-3) -> Floats:
    """``[x, y]``: what the entries before any entry reveal, whichever law the first one has.

    However many there are; infinite if no bound is found.
    """
    size = len(charged)
    turned = np.ascontiguousarray(kernel.T)
    stretch = HullStretch(HullLine((kernel,)), 0, turned, charged, MAX_STAGES)
    walk = FlowWalk([stretch], size)
    while walk.left > 1:
        last = walk.value
        _take(walk, None)
        moved = float(np.abs(walk.value - last).max())
        if stretch.line.ended and stretch.line.hulls[-1].width > NARROW:
            break  # what follows is too faint to be computed with
        if stretch.same_for(walk.walked) and moved <= 0.1 * tolerance * walk.value.max() + NOTHING:
            break
    walk.move(_settled_hull(stretch, walk.value, walk.walked, tolerance))
    return np.asarray(np.max(walk.tables, axis=0)) if walk.settled else off_diagonal(size, np.inf)


def _settled_hull(stretch: HullStretch, value: Floats, walked: int, tolerance: float) -> Move:
    """A table that no further step raises: by boxes, or by the step itself if the hull is wide."""
    if stretch.line.at(walked).width <= WIDE:
        settled = _settled(stretch, value, walked, None, tolerance)
        if settled is not None:
            return settled
    room, trial, proof = 1e-3 * tolerance, value, None
    for _ in range(MAX_TRIALS):
        trial = np.maximum(trial, value) * (1 + room) + NOTHING * off_diagonal(len(value))
        step = stretch.step(trial, walked)
        proof = solve_hull(step, guess=trial)
        after = step.upper(proof)
        if (after <= trial).all():
            break
        trial = np.maximum(after, trial)
        room *= 1.5
    return Settle(trial, proof)


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
    for _ in range(MAX_SETTLING_STEPS):
        after = np.minimum(
            value, coupled_block([rows] * length, [cost] * length, value, slack=slack)
        )
        settled = float((value - after).max()) <= SETTLED * float(value.max())
        value = after
        if settled:
            break
    return value
