r"""Chains under star-shaped costs: the loss of every entry, or of the worst one, solved.

Past and future are independent given X_i, and the best products of both sides multiply, so that
the pair (x, y) at entry i loses exactly c_i(x, y) + F_i(x, y) + B_i(x, y), each side solved by
`takifugu.translation.certify.stars`.

A stationary chain with one cost. An entry with more entries after it reveals no less through them,
since a mechanism may ignore some; so F grows with the number of entries after i, B with that before
it. The entries from i to j lose at most F with what is after i and B with what is before j. Entries
near the ends are looked at one by one, those between in pieces that are halved until nothing is
left to gain.

Other chains. A bound of each entry is known already; the entry with the largest is solved, and so
on until the largest is a solved one, or the work exceeds a limit.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeVar

import numpy as np

from takifugu._core.compiled import share_range
from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu.translation.certify.stars import (
    LARGEST_LOSS,
    MIN_SHARED_WORK,
    Star,
    StarSide,
    added,
    star_of,
    within,
)

T = TypeVar("T")
MARGIN = 1e-7  # share of a long side's loss that is first put on top of it
MAX_WIDENINGS = 14  # of what is put on top, by factors of 3, until it can be proven
GLANCED_STEPS = 5  # by which pairs are ranked
PRODUCT_STEPS = 128
MAX_PRODUCTS = 4  # of which the best is taken
ROUNDED = 2.0**-50  # what is left to the rounding of a limit, also as a share of it
BATCH = 64  # pairs that are solved before the target is raised
NEAR = 1e-7  # a piece of the chain whose bound is relatively nearer to a solved one is left alone
AHEAD = ((1.2, 0.8), (1.05, 0.94))  # how far ahead pairs are compared; the share that decides
AGAIN = 4.0  # times a multiple at which pairs are looked at again
MAX_HALVED = 48  # pieces that are halved, at most
SOLVED = 256  # entries that are solved, at most
WORK = 3e9  # products that solving entries one by one may take
EVERY, EASY = 64, 2e4  # so many entries of so little work in all are solved one by one
WALK = 16.0  # steps that a pair takes in all, roughly


def solve(
    side: StarSide, pairs: Integers, guess: Floats, *, margin: float = MARGIN
) -> tuple[Floats, Floats]:
    """``[pair]``: the loss from below, not rounded, and a proven upper bound on it.

    The second is within about ``margin`` of the first, as a share, and infinite where nothing was
    proven. ``guess`` is where the search starts. What is put on top of the first is three times as
    much until it is proven.
    """
    from takifugu.translation.search.greedy_loops import raised

    below, whole = np.zeros(len(pairs)), np.zeros(len(pairs), dtype=np.bool_)
    start = np.minimum(guess, LARGEST_LOSS)

    def work(begin: int, end: int) -> None:
        raised(side.steps, margin, pairs, begin, end, start, below, whole)

    _shared(side, pairs, work)
    added = np.where(whole, 1e-12, margin) * below + 4 * side.steps.error + 1e-15
    above = side.upper(pairs, np.full(len(pairs), np.inf))
    left = np.flatnonzero(below < LARGEST_LOSS)
    for _ in range(MAX_WIDENINGS):
        if not len(left):
            break
        trial = (below[left] + added[left]) * (1 + ROUNDED) + ROUNDED
        certified = side.upper(pairs[left], trial)
        above[left] = np.minimum(above[left], certified)
        left = left[certified > trial]
        added[left] *= 3
    return below, above


def glance(side: StarSide, pairs: Integers) -> Floats:
    """``[pair]``: about the loss of a few entries, to rank pairs by."""
    return _glanced(side, pairs, np.zeros(len(pairs)), GLANCED_STEPS, whole=False)


def product(side: StarSide, pairs: Integers, guess: Floats) -> Floats:
    """``[pair]``: about what a good product of factors attains, not rounded.

    Where classes have several values it may be less than the loss.
    """
    best, ratios = np.zeros(len(pairs)), guess
    for _ in range(MAX_PRODUCTS):
        ratios = _glanced(side, pairs, ratios, PRODUCT_STEPS, whole=True)
        best = np.maximum(best, ratios)
    return best


def _glanced(side: StarSide, pairs: Integers, guess: Floats, steps: int, *, whole: bool) -> Floats:
    from takifugu.translation.search import greedy_loops as kernel

    ratios = np.minimum(guess, LARGEST_LOSS)
    taken = steps if side.steps.unbounded else min(steps, len(side.steps.row_at))

    def work(begin: int, end: int) -> None:
        kernel.glance(side.steps, pairs, begin, end, taken, whole, ratios)

    _shared(side, pairs, work)
    return ratios


def _shared(side: StarSide, pairs: Integers, work: Callable[[int, int], None]) -> None:
    """Run ``work`` over all pairs, in threads if that is worthwhile."""
    share_range(work, len(pairs), worthwhile=len(pairs) * side.states**2 >= MIN_SHARED_WORK)


@dataclass(frozen=True, eq=False)
class WorstPair:
    """The pair with the largest loss.

    Attributes:
        loss: At least the loss of every pair that was examined; infinite if none was proven.
        pair: The number of the worst in the list of pairs; −1 if there is none.
        sides: What each side adds to its loss, proven: ahead, behind.
        rivals: The numbers of the pairs that may lose more than ``others``.
        others: At least the loss of every pair that is no rival.
    """

    loss: float
    pair: int
    sides: tuple[float, float]
    rivals: Integers
    others: float


def worst_pair(
    ahead: StarSide | None,
    behind: StarSide | None,
    own: Floats,
    pairs: Integers,
    *,
    margin: float = MARGIN,
    leeway: float = 1.0,
    guesses: tuple[Floats, Floats] | None = None,
) -> WorstPair:
    """The largest of own + ahead + behind over ``pairs`` [pair, 2], whose own loss is ``own``.

    Few pairs are solved. The others are shown to lose no more than those, which takes but a few
    steps where they lose much less. With a ``leeway`` below 1 most are shown to lose no more than
    that share of the first one solved; those that cannot be are the rivals. ``guesses`` of what
    each side of each pair loses save a first look at them. A side that is None has no entries.
    """
    if not len(pairs):
        return WorstPair(0.0, -1, (0.0, 0.0), np.zeros(0, dtype=np.int64), 0.0)
    sides = [ahead, behind]
    glances = guesses or tuple(
        np.zeros(len(own)) if side is None else glance(side, pairs) for side in sides
    )
    score = own + glances[0] + glances[1]
    left = np.argsort(-score, kind="stable")
    loss, pair, each = -1.0, -1, (0.0, 0.0)
    rivals, others = left, 0.0
    while len(left):
        taken, left = (left[:1], left[1:]) if pair < 0 else (left[:BATCH], left[BATCH:])
        found = [
            np.zeros(len(taken))
            if side is None
            else solve(side, pairs[taken], guess[taken], margin=margin)[1]
            for side, guess in zip(sides, glances, strict=True)
        ]
        upper = added(own[taken], found[0], found[1])
        place = int(np.argmax(upper))
        first = pair < 0
        if upper[place] > loss:
            loss, pair = float(upper[place]), int(taken[place])
            each = float(found[0][place]), float(found[1][place])
        if not loss < np.inf:
            break
        if first and leeway < 1:
            others = leeway * loss
            proven = _bounded(sides, pairs[left], own[left], [g[left] for g in glances], others)
            left = left[~proven]
            rivals = np.append(taken, left)
        if first or len(left) > BATCH:
            proven = _bounded(sides, pairs[left], own[left], [g[left] for g in glances], loss)
            left = left[~proven]
    return WorstPair(loss, pair, each, np.sort(rivals), others)


def _bounded(
    sides: Sequence[StarSide | None],
    pairs: Integers,
    own: Floats,
    glances: list[Floats],
    limit: float,
) -> Booleans:
    """Which pairs are proven to lose no more than ``limit``; the room is split by the glances."""
    total = glances[0] + glances[1]
    room = limit * (1 - 4 * ROUNDED) - 4 * ROUNDED - own - total
    parts = []
    for side, about in zip(sides, glances, strict=True):
        share = np.where(total > 0, about / np.where(total > 0, total, 1.0), 0.5)
        parts.append(np.zeros(len(own)) if side is None else about + share * room)
    proven: Booleans = room >= 0
    left = np.flatnonzero(proven)
    proven[left] = within(sides, own[left], pairs[left], [part[left] for part in parts], limit)
    return proven


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
        found = [float(product(side, chosen, glance(side, chosen))[0]) for side in sides]
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
            float(solve(side, chosen, glance(side, chosen))[0][0])
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

        def piece(begin: int, end: int) -> tuple[float, WorstPair]:
            first, last = int(listed[begin]), int(listed[end - 1])
            ahead, behind = sides[0].nearest(length - 1 - first), sides[1].nearest(last)
            found = worst_pair(ahead, behind, own, self.pairs, margin=margin)
            return found.loss, found

        pieces = halved(_pieces(len(listed)), piece, MAX_HALVED, NEAR)
        by_entry = np.zeros(length)
        for loss, begin, end, _ in pieces:
            by_entry[listed[begin:end]] = loss
        value = float(by_entry.max())
        _, begin, end, _ = pieces[0]
        middle = (begin + end) // 2
        _, binding = piece(middle, middle + 1)
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
            self._guesses = glance(sides[0], pairs), glance(sides[1], pairs)
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


def halved(
    pieces: Iterable[tuple[int, int]],
    bound: Callable[[int, int], tuple[float, T]],
    most: int,
    near: float,
) -> list[tuple[float, int, int, T]]:
    """Pieces of a chain with their bounds, halved where these are largest, ``most`` times at most.

    It ends where the largest bound is within a share ``near`` of that of a single entry; that one
    comes first.
    """

    def bounded(begin: int, end: int) -> tuple[float, int, int, T]:
        value, found = bound(begin, end)
        return -value, begin, end, found

    heap = [bounded(*piece) for piece in pieces]
    heapify(heap)
    single: list[tuple[float, int, int, T]] = []
    for _ in range(most):
        if not heap or (single and heap[0][0] >= single[0][0] * (1 + near)):
            break
        value, begin, end, found = heappop(heap)
        if end - begin == 1 or not -value < np.inf:
            single = sorted([*single, (value, begin, end, found)], key=lambda part: part[0])
            continue
        middle = (begin + end) // 2
        for part in ((begin, middle), (middle, end)):
            heappush(heap, bounded(*part))
    ranked = [*single, *sorted(heap, key=lambda part: part[0])]
    return [(-value, begin, end, found) for value, begin, end, found in ranked]


def _pieces(count: int) -> list[tuple[int, int]]:
    """Pieces of 1, 3, 12, 48, … entries from both ends."""
    cuts = {0, count}
    reach = 1
    while 2 * reach < count:
        cuts |= {reach, count - reach}
        reach *= 4
    return list(pairwise(sorted(cuts)))
