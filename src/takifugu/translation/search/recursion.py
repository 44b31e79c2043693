r"""The transport bound of a Markov chain of finite length, entry by entry: the search.

`takifugu.translation.certify.chain` has the recursion and its proof. Here the couplings of each
step are solved, each from those of the step before.

Long stretches in which nothing changes are not walked one by one: when the last step raised the
table so little that all that are left would not raise it noticeably, or if a table is found that no
further step raises (`takifugu.translation.search.fixed_point`).
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.translation.certify.chain import Chain, ChainLosses, Tables
from takifugu.translation.certify.cost_levels import CostLevels
from takifugu.translation.certify.flow import (
    Couplings,
    FlowWalk,
    Hold,
    HullProof,
    Move,
    Settle,
    Step,
    Stretch,
    StretchOfSide,
    Take,
    off_diagonal,
)
from takifugu.translation.certify.hulls import (
    NARROW,
    HullLine,
    HullStep,
    HullStretch,
    hull_boxes,
)
from takifugu.translation.search.couplings import solve_step
from takifugu.translation.search.fixed_point import fixed_point, fixed_rows
from takifugu.translation.search.hull_steps import solve_hull

STILL = 1e-7  # a smaller relative change counts as none
NOTHING = 1e-10  # and so does a smaller absolute change
PATIENCE = 40  # steps of a stretch that are taken one by one before the others are bounded at once
MIN_PIECES = 64  # in which a stretch that never settles is bounded by a straight line
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
    return chain.losses(walk_side(chain.ahead, chain.size), walk_side(chain.behind, chain.size))


def walk_side(stretches: Sequence[StretchOfSide], size: int) -> Tables:
    """The tables of one side, each proven by the couplings that were found for its step."""
    walk = search_side(stretches, size)
    return tuple(walk.tables), walk.at


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
    assert isinstance(step, Step)  # noqa: S101 - there are two kinds
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
        assert isinstance(stretch, Stretch)  # noqa: S101 - there are two kinds
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
