"""The loop that walks many Markov chains and keeps nothing but counts.

Imported by need only: it loads numba. It is one file on purpose: numba reuses a compiled loop while
that loop's own file is unchanged.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from takifugu._core.compiled import compiled
from takifugu._core.numeric import Floats, Integers

SLOTS = 128  # of a guide: where in a row of cumulative probabilities a search begins


class GuidedLaws:
    """Laws as cumulative probabilities, and for each slot of [0, 1) where a search may begin.

    A uniform number u draws the first state whose cumulative probability exceeds u. The guide only
    says where to begin, never behind that state, so it does not change what is drawn.
    """

    def __init__(self, laws: Floats) -> None:
        """``laws``: ``[..., state]``, every last axis a distribution."""
        ends = np.cumsum(laws, axis=-1)
        ends /= ends[..., -1:]
        ends[..., -1] = 1.0  # so that every number below 1 finds a state
        slots = np.arange(SLOTS) / SLOTS
        rows = ends.reshape(-1, ends.shape[-1])
        begins = np.stack([np.searchsorted(row, slots, side="right") for row in rows])
        self.ends = ends
        self.begins: NDArray[np.int16] = begins.reshape(*ends.shape[:-1], SLOTS).astype(np.int16)


@compiled
def walk_and_count(
    first: Floats,
    first_begins: NDArray[np.int16],
    moves: Floats,
    move_begins: NDArray[np.int16],
    group: Integers,
    before: Integers,
    after: Integers,
    rng: Any,
    steps: Integers,
    seen_before: Integers,
    seen_after: Integers,
) -> None:
    """Walk every walker and add to three tables of counts, one uniform number for each state.

    Args:
        first: ``[group, state]``: cumulative probabilities of the first state.
        first_begins: ``[group, slot]``: its guide.
        moves: ``[group, state, state]``: the same of the next state.
        move_begins: ``[group, state, slot]``: its guide.
        group: ``[walker]``: whose law a walker follows.
        before: ``[walker]``: how many of its first states count as those before.
        after: ``[walker]``: how many follow.
        rng: A `numpy.random.Generator`.
        steps: ``[state, state]``: gains the steps between two states that both are before.
        seen_before: ``[state]``: gains the states before.
        seen_after: ``[group, state]``: gains the states after.
    """
    slots = first_begins.shape[1]
    for walker in range(len(group)):
        home = group[walker]
        here = 0
        for place in range(before[walker] + after[walker]):
            u = rng.random()
            slot = int(u * slots)
            if place == 0:
                there = first_begins[home, slot]
                while first[home, there] <= u:
                    there += 1
            else:
                there = move_begins[home, here, slot]
                while moves[home, here, there] <= u:
                    there += 1
            if place >= before[walker]:
                seen_after[home, there] += 1
            else:
                seen_before[there] += 1
                if place > 0:
                    steps[here, there] += 1
            here = there
