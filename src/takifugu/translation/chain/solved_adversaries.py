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
from takifugu.translation.chain.star_sides import SideSearch, StarWalk

CLOSE, ROUGH = 2e-5, 4e-3  # share of a loss to which it is solved, at last and at first
STAGES = (ROUGH, CLOSE)
NEARLY = 0.9  # share of the largest loss above which an entry is solved closely
SOLVED = 400  # pairs that are solved, at most
TALLEST = 100.0  # where a bound is infinite, the largest loss of a side that is looked for
WORK = 2e7  # and as many as this allows, of entries × states³: some seconds


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
    _searches: dict[tuple[int, int], tuple[SideSearch, SideSearch]] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        """Whether numbers stay in range."""
        return self.after.usable and self.before.usable

    @property
    def affordable(self) -> int:
        """How many pairs may be solved."""
        work = (self.after.steps + self.before.steps) * len(self.cost) ** 3
        return int(max(min(SOLVED, WORK / max(work, 1)), 2))

    def _searched(self, x: int, y: int, cap: float) -> tuple[SideSearch, SideSearch]:
        key = x, y
        if key not in self._searches:
            self._searches[key] = self.after.search(x, y, cap), self.before.search(x, y, cap)
        return self._searches[key]

    def anywhere(self, x: int, y: int, cap: float, close: float) -> float:
        """What (x, y) loses at any entry at most, however many there are; ``cap`` at most."""
        total = float(self.cost[x, y])
        for search in self._searched(x, y, cap):
            rough = search.losses(ROUGH * cap)
            if close < ROUGH:
                rough = search.losses(close * cap, rough >= NEARLY * float(rough.max()))
            total += float(rough.max())
        return float(up(up(total)))

    def at_entries(self, x: int, y: int, cap: float, close: float, length: int) -> Floats:
        """``[entry]``: what (x, y) loses at each entry of a finite chain; ``cap`` at most."""
        own = float(self.cost[x, y])
        behind, ahead = np.arange(length), length - 1 - np.arange(length)
        total, near = np.zeros(length), np.ones(length, dtype=np.bool_)
        for step in dict.fromkeys((ROUGH, close)):
            sides = []
            for search, count in zip(self._searched(x, y, cap), (ahead, behind), strict=True):
                at = np.minimum(count, search.steps)
                wanted = np.zeros(search.steps + 1, dtype=np.bool_)
                wanted[at[near]] = True
                sides.append(search.losses(step * cap, wanted)[at])
            total = np.asarray(up(own + up(sides[0] + sides[1])))
            near = total >= NEARLY * float(total.max())
        return total

    def worst_start(self, x: int, y: int, entry: int | None) -> tuple[int, Floats] | None:
        """An entry, and a law of the first one that makes (x, y) lose about the most there."""
        if self.before.start is not None:
            return None
        search = self._searched(x, y, TALLEST)[1]
        before = search.losses(ROUGH)
        place = int(np.argmax(before)) if entry is None else entry
        if not 0 < place < len(before):
            return None
        law = search.worst_start(place)
        return None if law is None else (place, law)


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
    caps = np.where(np.isfinite(stacked), stacked, 0.0).max(axis=0)
    stages = np.zeros(mask.shape, dtype=np.int64)
    for _ in range(len(STAGES) * sides.affordable):
        x, y = (int(v) for v in np.unravel_index(int(np.argmax(tops)), tops.shape))
        if stages[x, y] == len(STAGES) or not tops[x, y] > 0:
            break
        close = STAGES[stages[x, y]]
        found = sides.at_entries(x, y, float(caps[x, y]), close, len(at))
        stacked[:, x, y] = np.minimum(stacked[:, x, y], found)
        tops[x, y] = stacked[secret, x, y].max()
        stages[x, y] += 1
    return stacked


def solve_anywhere(sides: SolvedSides, table: Floats, mask: Booleans) -> Floats:
    """``[x, y]``: the bound of any entry, with the pairs that matter solved."""
    found = table.copy()
    caps = np.minimum(table, TALLEST)
    stages = np.zeros(mask.shape, dtype=np.int64)
    for _ in range(len(STAGES) * sides.affordable):
        tops = np.where(mask, found, -np.inf)
        x, y = (int(v) for v in np.unravel_index(int(np.argmax(tops)), tops.shape))
        if stages[x, y] == len(STAGES) or not tops[x, y] > 0:
            break
        cap = float(caps[x, y])
        loss = sides.anywhere(x, y, cap, STAGES[stages[x, y]])
        if cap < TALLEST or loss < cap:  # otherwise the cap was no bound, and none was found
            found[x, y] = min(found[x, y], loss)
        stages[x, y] += 1
    return found
