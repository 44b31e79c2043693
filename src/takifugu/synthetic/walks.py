"""Many Markov chains walked side by side, each for as many steps as it has."""

import numpy as np

from takifugu._core.numeric import Floats, Integers


class Moves:
    """Draws the next state of many walkers at once, by one search in one sorted array.

    Row r of a table of laws becomes the numbers r + (cumulative probabilities): all rows together
    are sorted, and r plus a uniform number falls behind the state that is drawn.
    """

    def __init__(self, laws: Floats) -> None:
        """``laws``: ``[row, state]``, every row a distribution."""
        rows, self.states = laws.shape
        ends = np.cumsum(laws, axis=1)
        ends /= ends[:, -1:]
        ends[:, -1] = 1.0  # so that a uniform number below 1 stays in its row
        self._ends = (np.arange(rows)[:, None] + ends).ravel()

    def draw(self, rows: Integers, *, rng: np.random.Generator) -> Integers:
        """One state for each row of the table that is named."""
        point = rows + rng.random(len(rows))
        point = np.minimum(point, np.nextafter(rows + 1.0, 0.0))  # the sum may round up
        found: Integers = np.searchsorted(self._ends, point, side="right") - rows * self.states
        return found


def walk(
    start: Moves, moves: Moves, group: Integers, lengths: Integers, *, rng: np.random.Generator
) -> Integers:
    """The states of walkers one after the other, walker by walker.

    Args:
        start: The first state; row = group.
        moves: The next state; row = group × number of states + state.
        group: ``[walker]``: whose table a walker follows.
        lengths: ``[walker]``: how many states each has, at least 1.
        rng: The source of randomness.
    """
    longest_first = np.argsort(-lengths, kind="stable")
    begins = np.concatenate([[0], np.cumsum(lengths)[:-1]])[longest_first]
    group, left = group[longest_first], lengths[longest_first]
    active = len(left) - np.searchsorted(left[::-1], np.arange(left[0]), side="right")
    path = np.empty(int(lengths.sum()), dtype=np.int64)
    states = start.draw(group, rng=rng)
    path[begins] = states
    for step, walkers in enumerate(active[1:].tolist(), start=1):
        states = moves.draw(group[:walkers] * moves.states + states[:walkers], rng=rng)
        path[begins[:walkers] + step] = states
    return path
