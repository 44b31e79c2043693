r"""Chains under star-shaped costs: the loss of every entry, or of the worst one, solved.

Past and future are independent given X_i, and the best products of both sides multiply, so that
the pair (x, y) at entry i loses exactly c_i(x, y) + F_i(x, y) + B_i(x, y), each side solved by
`takifugu.translation.chain.coalescing`.

A stationary chain with one cost. An entry with more entries after it reveals no less through them,
since a mechanism may ignore some; so F grows with the number of entries after i, B with that before
it. The entries from i to j lose at most F with what is after i and B with what is before j. Entries
near the ends are looked at one by one, those between in pieces that are halved until nothing is
left to gain.

Other chains. A bound of each entry is known already; the entry with the largest is solved, and so
on until the largest is a solved one, or the work exceeds a limit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.translation.chain.coalescing import MARGIN, StarSide, WorstPair, worst_pair
from takifugu.translation.chain.stars import Star, star_of

NEAR = 1e-7  # a piece of the chain whose bound is relatively nearer to a solved one is left alone
AHEAD = ((1.2, 0.8), (1.05, 0.94))  # how far ahead pairs are compared; the share that decides
AGAIN = 4.0  # times a multiple at which pairs are looked at again
HALVED = 48  # pieces that are halved, at most
SOLVED = 256  # entries that are solved, at most
WORK = 3e9  # products that solving entries one by one may take
EVERY, EASY = 64, 2e4  # so many entries of so little work in all are solved one by one
WALK = 16.0  # steps that a pair takes in all, roughly


@dataclass(frozen=True, eq=False)
class SolvedLoss:
    """The largest loss of a chain.

    Attributes:
        value: At least the loss of every pair at every entry; infinite if it was not proven.
        pair: The values with the largest.
        entry: The entry with the largest; None for all alike.
        by_entry: ``[entry]``: at least the loss of each; None for all alike.
    """

    value: float
    pair: tuple[int, int]
    entry: int | None = None
    by_entry: Floats | None = None


@dataclass(frozen=True, eq=False)
class StationaryChain:
    """A stationary chain and the pairs of values that are secret.

    Attributes:
        ahead: ``[x, u]``: the law of the next entry.
        behind: ``[x, u]``: that of the one before.
        slacks: The rounding of the two.
        pairs: ``[pair, 2]``: the secret pairs of values.
    """

    ahead: Floats
    behind: Floats
    slacks: tuple[float, float]
    pairs: Integers

    def sides(self, star: Star, steps: int | None) -> tuple[StarSide, StarSide] | None:
        """Both directions, with so many entries or unbounded; None if they are out of range."""
        count = 1 if steps is None else steps
        found = [
            StarSide.of([rows] * count, [star] * count, slack=slack, unbounded=steps is None)
            for rows, slack in zip((self.ahead, self.behind), self.slacks, strict=True)
        ]
        return None if found[0] is None or found[1] is None else (found[0], found[1])

    def unbounded(self, cost: Floats, *, margin: float = MARGIN) -> SolvedLoss | None:
        """The loss of a chain of every length with this cost on every entry."""
        found = self.worst(cost, margin=margin)
        return None if found is None else SolvedLoss(found.loss, self._values(found.pair))

    def worst(
        self,
        cost: Floats,
        *,
        margin: float = MARGIN,
        leeway: float = 1.0,
        among: Integers | None = None,
        guesses: tuple[Floats, Floats] | None = None,
    ) -> WorstPair | None:
        """The same over all pairs, or ``among`` some of them: see `worst_pair`."""
        sides = self.sides(star_of(cost), None)
        if sides is None:
            return None
        pairs = self.pairs if among is None else self.pairs[among]
        own = _own(cost, pairs)
        return worst_pair(*sides, own, pairs, margin=margin, leeway=leeway, guesses=guesses)

    def product(self, cost: Floats, pair: tuple[int, int]) -> float:
        """About what a good product leaks of one pair of an unbounded chain, not rounded."""
        sides = self.sides(star_of(cost), None)
        if sides is None:
            return 0.0
        chosen = np.array([pair])
        found = [float(side.product(chosen, side.glance(chosen))[0]) for side in sides]
        return float(cost[pair]) + sum(found)

    def estimate(
        self, cost: Floats, pair: tuple[int, int], entry: int | None, length: int | None
    ) -> float:
        """About the loss of one pair at one entry: quick, and rounded neither way.

        Without ``entry`` the chain is unbounded.
        """
        steps = None if entry is None or length is None else length - 1
        sides = self.sides(star_of(cost), steps if steps is None else max(steps, 1))
        if sides is None:
            return np.inf
        near: list[StarSide | None] = [*sides]
        if entry is not None and steps is not None:
            near = [sides[0].nearest(steps - entry), sides[1].nearest(entry)]
        chosen = np.array([pair])
        found = [
            float(side.solve(chosen, side.glance(chosen))[0][0])
            for side in near
            if side is not None
        ]
        return float(cost[pair]) + sum(found)

    def finite(
        self, cost: Floats, length: int, entries: Integers | None, *, margin: float = MARGIN
    ) -> SolvedLoss | None:
        """The loss of a chain of ``length`` entries; secrets are about ``entries``, None for all.

        ``by_entry`` is 0 at other entries.
        """
        star, own = star_of(cost), _own(cost, self.pairs)
        sides = self.sides(star, max(length - 1, 1))
        if sides is None:
            return None
        listed = np.arange(length) if entries is None else entries

        def piece(begin: int, end: int) -> WorstPair:
            first, last = int(listed[begin]), int(listed[end - 1])
            return worst_pair(
                sides[0].nearest(length - 1 - first),
                sides[1].nearest(last),
                own,
                self.pairs,
                margin=margin,
            )

        heap = [(-piece(a, b).loss, a, b) for a, b in _pieces(len(listed))]
        heapify(heap)
        best, worst = -1.0, (0, -1)
        done: list[tuple[float, int, int]] = []
        for _ in range(HALVED):
            if not heap or -heap[0][0] <= best * (1 + NEAR):
                break
            bound, begin, end = heappop(heap)
            if end - begin == 1 or not -bound < np.inf:
                if -bound > best:
                    best, worst = -bound, (begin, end)
                done.append((bound, begin, end))
                continue
            middle = (begin + end) // 2
            for a, b in ((begin, middle), (middle, end)):
                heappush(heap, (-piece(a, b).loss, a, b))
        by_entry = np.zeros(length)
        for bound, begin, end in (*done, *heap):
            by_entry[listed[begin:end]] = -bound
            if worst[1] < 0:
                worst = (begin, end)
        value = float(by_entry.max())
        begin, end = worst
        middle = (begin + end) // 2
        binding = piece(middle, middle + 1)
        return SolvedLoss(value, self._values(binding.pair), int(listed[middle]), frozen(by_entry))

    def _values(self, pair: int) -> tuple[int, int]:
        return int(self.pairs[pair, 0]), int(self.pairs[pair, 1])


class RisingLosses:
    """The losses of rising multiples of a cost on every entry of an unbounded chain.

    The loss rises with the multiple. So pairs that lose little at a larger multiple are out of the
    question at a smaller one, if others lose more there. Pairs are compared far ahead, and those
    that are left again a little ahead.
    """

    def __init__(self, chain: StationaryChain, unit: Floats) -> None:
        self._chain, self._unit = chain, unit
        self._left = [np.arange(len(chain.pairs))] * (len(AHEAD) + 1)  # at each depth
        self._others = [0.0] * (len(AHEAD) + 1)  # at least the loss of pairs that are not left
        self._ceilings = [0.0] * len(AHEAD)
        self._guessed, self._guesses = 0.0, (np.zeros(0), np.zeros(0))

    def at(self, multiple: float) -> float:
        """The loss of ``multiple``, not below the one before; infinite where none is proven."""
        for depth, (ahead, leeway) in enumerate(AHEAD):
            if multiple <= self._ceilings[depth]:
                continue
            ceiling = min([ahead * multiple, *self._ceilings[:depth]])
            found = self._worst(ceiling, self._left[depth], leeway)
            left, others = self._left[depth], self._others[depth]
            if found is not None and found.loss < np.inf:
                left, others = left[found.rivals], max(others, found.others)
            self._left[depth + 1], self._others[depth + 1] = left, others
            self._ceilings[depth:] = [ceiling] + [0.0] * (len(AHEAD) - depth - 1)
        found = self._worst(multiple, self._left[-1], 1.0)
        if found is not None and not self._others[-1] <= found.loss:
            found = self._worst(multiple, self._left[0], 1.0)
        return np.inf if found is None else found.loss

    def _worst(self, multiple: float, among: Integers, leeway: float) -> WorstPair | None:
        if not multiple <= AGAIN * self._guessed:
            sides = self._chain.sides(star_of(multiple * self._unit), None)
            if sides is None:
                return None
            pairs = self._chain.pairs
            self._guesses = sides[0].glance(pairs), sides[1].glance(pairs)
            self._guessed = multiple
        share = multiple / self._guessed
        guesses = share * self._guesses[0][among], share * self._guesses[1][among]
        cost = multiple * self._unit
        return self._chain.worst(cost, leeway=leeway, among=among, guesses=guesses)


Entry = tuple[StarSide | None, StarSide | None, Floats, Integers]  # ahead, behind, own, pairs


def refined(
    known: Floats, at: Callable[[int], Entry | None], *, work: float, every: bool = False
) -> tuple[Floats, int, tuple[int, int] | None]:
    """``[entry]``: ``known`` bounds, the largest of them replaced by what solving the entry gives.

    ``at`` has the sides of an entry, the cost of its pairs and the pairs themselves; None if it is
    out of range. ``work`` is the number of products of one step of all pairs. Also the entry with
    the largest bound, and its worst pair if it was solved. Of a short chain every entry is solved;
    with ``every`` all of them or, where that takes too long, none.
    """
    by_entry, pairs = known.copy(), dict[int, tuple[int, int]]()
    most = int(min(max(WORK / (WALK * max(work, 1.0)), 2), SOLVED))
    easy = len(known) <= EVERY and len(known) * work <= EASY
    waiting = np.flatnonzero(known > 0)[::-1].tolist() if easy or every else []
    if every and len(waiting) > most:
        return by_entry, int(np.argmax(by_entry)), None
    while waiting or len(pairs) < most:
        entry = waiting.pop() if waiting else int(np.argmax(by_entry))
        if entry in pairs or by_entry[entry] <= 0:
            break
        found = at(entry)
        if found is None:
            break
        worst = worst_pair(*found)
        chosen = found[3][worst.pair] if worst.pair >= 0 else (0, 0)
        pairs[entry] = int(chosen[0]), int(chosen[1])
        by_entry[entry] = min(by_entry[entry], max(worst.loss, 0.0))
    top = int(np.argmax(by_entry))
    return by_entry, top, pairs.get(top)


def _own(cost: Floats, pairs: Integers) -> Floats:
    found: Floats = cost[pairs[:, 0], pairs[:, 1]]
    return found


def _pieces(count: int) -> list[tuple[int, int]]:
    """Pieces of 1, 3, 12, 48, … entries from both ends."""
    cuts = {0, count}
    reach = 1
    while 2 * reach < count:
        cuts |= {reach, count - reach}
        reach *= 4
    return list(pairwise(sorted(cuts)))
