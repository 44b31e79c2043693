r"""The transport bound of a Markov chain of finite length, entry by entry: the search.

`takifugu.translation.certify.chain` has the recursion and its proof. Here the couplings of each
step are solved, each from those of the step before.

Long stretches in which nothing changes are not walked one by one: when the last step raised the
table so little that all that are left would not raise it noticeably, or if a table is found that no
further step raises (`takifugu.translation.search.fixed_point`).
"""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from takifugu._core.numeric import Floats
from takifugu.translation.certify.chain import Chain, ChainLosses, Tables
from takifugu.translation.certify.cost_levels import CostLevels
from takifugu.translation.certify.flow import (
    Couplings,
    FlowWalk,
    Hold,
    Move,
    Settle,
    Stretch,
    Take,
)
from takifugu.translation.search.couplings import solve_step
from takifugu.translation.search.fixed_point import fixed_point, fixed_rows

STILL = 1e-7  # a smaller relative change counts as none
NOTHING = 1e-10  # and so does a smaller absolute change
PATIENCE = 40  # steps of a stretch that are taken one by one before the others are bounded at once
MIN_PIECES = 64  # in which a stretch that never settles is bounded by a straight line
MAX_NUMBERS = 20_000  # that the tables of such pieces may hold, where more of them are possible


def chain_losses(
    transitions: ArrayLike | Sequence[ArrayLike],
    charged: ArrayLike | CostLevels,
    *,
    start: ArrayLike | None = None,
) -> ChainLosses:
    """Bound the loss at every entry of a chain whose entry i was ``charged`` its own ε or cost.

    ``transitions`` is one matrix, or one for each step from an entry to the next. Without
    ``start``, the law of the first entry, the chain is stationary, with one matrix.
    """
    chain = Chain.from_priors(transitions, charged, start)
    return chain.losses(walk_side(chain.ahead, chain.size), walk_side(chain.behind, chain.size))


def walk_side(stretches: Sequence[Stretch], size: int) -> Tables:
    """The tables of one side, each proven by the couplings that were found for its step."""
    walk = search_side(stretches, size)
    return tuple(walk.tables), walk.at


def search_side(stretches: Sequence[Stretch], size: int, *, recorded: bool = False) -> FlowWalk:
    """The walk of one side; ``recorded``, its moves are kept."""
    walk = FlowWalk(stretches, size, recorded=recorded)
    couplings: Couplings | None = None
    while not walk.done:
        last, stretch = walk.value, walk.stretch
        solved = solve_step(walk.step(), guess=last, known=couplings)
        couplings = solved or couplings
        walk.move(Take(solved))
        if walk.done or not walk.walked:  # another stretch begins
            continue
        move = _remainder(walk, stretch, last, couplings)
        if move is not None:
            walk.move(move)
    return walk


def _remainder(
    walk: FlowWalk, stretch: Stretch, last: Floats, couplings: Couplings | None
) -> Move | None:
    """What bounds several of the steps that are left of a stretch, if they need not be taken."""
    value, rise, left = walk.value, walk.rise, walk.left
    still = STILL * float(value.max()) + NOTHING
    if float((last - value).max()) > still:  # it falls: T(F) ≤ F + rise, so hold it a while
        held = min(left, walk.walked // 8 if walk.walked >= 10 * PATIENCE else 0)
        return Hold(held) if held else None
    if left * rise <= still:
        return Hold(left)
    if walk.walked < PATIENCE or left <= PATIENCE:
        return None
    if couplings is not None:
        settled = fixed_point(
            *(fixed_rows(stretch.rows), stretch.cost),
            slack=stretch.slack,
            above=value,
            known=couplings,
            with_lower=False,
        )
        if settled.couplings is not None and settled.upper.max() <= value.max() + left * rise:
            return Settle(settled.upper, settled.couplings)
    return Hold(left, min(left, max(MIN_PIECES, MAX_NUMBERS // value.size)))
