"""Adversaries who know more, under one cost in the shape of a star: the worst pairs solved.

A bound of every pair is known already. The pair with the largest is solved on both sides
(`takifugu.translation.chain.star_sides`), and so on until the largest is a solved one, or enough
were solved. What is left unsolved keeps the bound that it had.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from takifugu._rounding import up
from takifugu.numeric import Booleans, Floats, Integers
from takifugu.translation.chain.star_sides import StarWalk

CLOSE = 5e-5  # share of a loss to which it is solved
SOLVED = 400  # pairs that are solved, at most
TALLEST = 100.0  # where a bound is infinite, the largest loss of a side that is looked for
WORK = 2e9  # and as many as this allows, of entries × states³


@dataclass(eq=False)
class SolvedSides:
    """Both sides of an entry, and what each pair of values was found to lose through them.

    Attributes:
        after: The entries after it.
        before: Those before it.
        cost: ``[x, y]``: what a change of the entry costs.
    """

    after: StarWalk
    before: StarWalk
    cost: Floats
    _found: dict[tuple[int, int], tuple[Floats, Floats]] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether numbers stay in range."""
        return self.after.usable and self.before.usable

    @property
    def affordable(self) -> int:
        """How many pairs may be solved."""
        work = (self.after.steps + self.before.steps) * len(self.cost) ** 3
        return int(max(min(SOLVED, WORK / max(work, 1)), 2))

    def pair(self, x: int, y: int, caps: tuple[float, float]) -> tuple[Floats, Floats]:
        """What n entries after, and n before, reveal of (x, y), from n = 0; the last is for all."""
        if (x, y) not in self._found:
            close = CLOSE * (float(self.cost[x, y]) + sum(caps)) / 2
            self._found[x, y] = (
                self.after.losses(x, y, caps[0], close),
                self.before.losses(x, y, caps[1], close),
            )
        return self._found[x, y]

    def worst_start(self, x: int, y: int, entry: int | None) -> tuple[int, Floats] | None:
        """An entry, and a law of the first one that makes (x, y) lose about the most there."""
        if self.before.start is not None:
            return None
        _, before = self.pair(x, y, (TALLEST, TALLEST))
        place = int(np.argmax(before)) if entry is None else entry
        if not 0 < place < len(before):
            return None
        close = CLOSE * (float(self.cost[x, y]) + float(before.max()))
        law = self.before.worst_start(x, y, place, float(before.max()), close)
        return None if law is None else (place, law)

    def at_entries(self, x: int, y: int, caps: tuple[float, float], length: int) -> Floats:
        """``[entry]``: what (x, y) loses at each entry of a finite chain."""
        after, before = self.pair(x, y, caps)
        place = np.arange(length)
        ahead = after[np.minimum(length - 1 - place, len(after) - 1)]
        behind = before[np.minimum(place, len(before) - 1)]
        return np.asarray(up(self.cost[x, y] + up(ahead + behind)))


def solve_entries(
    sides: SolvedSides, tables: Sequence[Floats], at: Integers, secret: Booleans, mask: Booleans
) -> Floats:
    """``[entry, x, y]``: the tables of all entries, with the pairs that matter solved.

    ``tables[at[i]]`` is the bound at entry i; only ``secret`` entries and the pairs of ``mask``
    count.
    """
    stacked = np.stack(tables)[at]  # [entry, x, y]
    counted = np.where(mask[None], stacked[secret], -np.inf)
    tops = counted.max(axis=0) if secret.any() else np.full(mask.shape, -np.inf)
    solved = np.zeros(mask.shape, dtype=np.bool_)
    for _ in range(sides.affordable):
        x, y = (int(v) for v in np.unravel_index(int(np.argmax(tops)), tops.shape))
        if solved[x, y] or not tops[x, y] > 0:
            break
        cap = float(np.where(np.isfinite(stacked[:, x, y]), stacked[:, x, y], 0.0).max())
        found = sides.at_entries(x, y, (cap, cap), len(at))
        stacked[:, x, y] = np.minimum(stacked[:, x, y], found)
        tops[x, y] = stacked[secret, x, y].max()
        solved[x, y] = True
    return stacked


def solve_anywhere(sides: SolvedSides, table: Floats, mask: Booleans) -> Floats:
    """``[x, y]``: the bound of any entry, with the pairs that matter solved."""
    found = table.copy()
    solved = np.zeros(mask.shape, dtype=np.bool_)
    for _ in range(sides.affordable):
        tops = np.where(mask, found, -np.inf)
        x, y = (int(v) for v in np.unravel_index(int(np.argmax(tops)), tops.shape))
        if solved[x, y] or not tops[x, y] > 0:
            break
        cap = min(float(found[x, y]), TALLEST)
        after, before = sides.pair(x, y, (cap, cap))
        if max(after.max(), before.max()) < cap or cap < TALLEST:
            loss = float(up(sides.cost[x, y] + up(after.max() + before.max())))
            found[x, y] = min(found[x, y], loss)
        solved[x, y] = True
    return found
