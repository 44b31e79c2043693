"""Secrets about groups of values: where in a chain they are lost most, and how much.

What the entries beyond a window reveal is bounded by the pairwise recursion, and by a star that is
at least the cost (`takifugu.translation.chain.coalescing`), whichever is less.

Of a stationary chain with one cost, entries i to j lose at most what one would with all that is
after i and all that is before j: fewer entries reveal no more, since a mechanism may ignore some.
So the chain is cut into pieces, which are halved while the largest bound is that of a long piece.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from takifugu._rounding import up
from takifugu.numeric import Floats, Integers
from takifugu.translation.chain.chain_losses import ChainLosses, HeldLaw
from takifugu.translation.chain.coalescing import StarSide
from takifugu.translation.chain.group_step import PairLosses, SecretSides
from takifugu.translation.chain.group_window import REACH, Steps, Window, window_reach
from takifugu.translation.chain.stars import star_of

HALVED = 12  # pieces of a chain that are halved, at most
NEAR = 1e-4  # a piece whose bound is relatively nearer to that of a single entry is left alone
REFINED = 24  # entries whose window is coupled, at most
WORK = 2e8  # products that solving all pairs of one side may take


@dataclass(frozen=True, eq=False)
class SideTables:
    """What the entries to one side reveal, ``[x, y]``, with so many of them passed.

    Attributes:
        known: The bound when n entries are passed, or, of an unbounded side, for all of them.
        star: The same entries under a star; None if there is none.
        passed: Whether a number says how many entries are passed, or how many are left.
    """

    known: Callable[[int | None], Floats]
    star: StarSide | None
    passed: bool
    found: dict[int | None, Floats] = field(default_factory=dict)

    def table(self, number: int | None) -> Floats:
        """The least bound known."""
        if number not in self.found:
            value = self.known(number)
            size = len(value)
            side = self.star
            if side is not None and number is not None:
                side = side.beyond(number) if self.passed else side.nearest(number)
            steps = 16 if side is None else min(side.most, 64)
            if side is not None and 10 * steps * size**4 <= WORK:
                pairs = np.argwhere(~np.eye(size, dtype=np.bool_))
                at = tuple(pairs.T)
                value = value.copy()
                value[at] = np.minimum(value[at], side.solve(pairs, value[at])[1])
            self.found[number] = value
        return self.found[number]


def window_losses(
    secret: SecretSides,
    held: HeldLaw,
    cost: Floats,
    ahead: tuple[Steps, SideTables, int | None],
    behind: tuple[Steps, SideTables, int | None],
    slack: float,
) -> PairLosses:
    """The losses of one entry's secret pairs, groups in windows.

    A side is its nearest steps, as many as a window may need, the tables beyond, and the number
    that stands for the entry itself there (None if it is unbounded): one less or more for each
    step, as tables are numbered.
    """
    tables = [_beyond(side, 0) for side in (ahead, behind)]
    table = up(cost + tables[0] + tables[1])
    impossible = ~held.law.possible
    table[impossible, :] = table[:, impossible] = -np.inf
    np.fill_diagonal(table, np.where(impossible, -np.inf, 0.0))
    within = np.full(len(secret.groups), np.inf)
    if len(ahead[0]) or len(behind[0]):
        ends = _beyond(ahead, len(ahead[0])), _beyond(behind, len(behind[0]))
        within = Window(held, cost, ahead[0], behind[0], *ends, slack).losses(secret)
    return secret.losses(table, held, within)


def _beyond(side: tuple[Steps, SideTables, int | None], steps: int) -> Floats:
    _, tables, number = side
    if number is None:
        return tables.table(None)
    return tables.table(number + steps if tables.passed else number - steps)


@dataclass(frozen=True, eq=False)
class GroupWindows:
    """The windows of a finite chain.

    Attributes:
        secret: The secret pairs of an entry.
        losses: The pairwise recursion.
        sides: What is ahead of each entry and behind it in blocks; None if there are none.
        stars: All entries ahead of the first, and all behind the last, under stars.
        rows: The rows of all steps ahead, from the first entry on.
        back: The rows of all steps back, from the last entry on.
        slack: The rounding of these.
    """

    secret: SecretSides
    losses: ChainLosses
    sides: tuple[list[Floats], list[Floats]] | None
    stars: tuple[StarSide | None, StarSide | None]
    rows: Sequence[Floats]
    back: Sequence[Floats]
    slack: float

    @property
    def _last(self) -> int:
        return len(self.losses.charged) - 1

    def _ahead(self, entry: int) -> Floats:
        known = self.losses.forward[self.losses.forward_at[entry]]
        least: Floats = known if self.sides is None else np.minimum(known, self.sides[0][entry])
        return least

    def _behind(self, entry: int) -> Floats:
        known = self.losses.backward[self.losses.backward_at[entry]]
        least: Floats = known if self.sides is None else np.minimum(known, self.sides[1][entry])
        return least

    def alike(
        self, entries: Integers | None, known: tuple[Floats, int, PairLosses]
    ) -> tuple[Floats, int, PairLosses]:
        """``[entry]``: the loss of each; where it is largest. The chain is stationary, cost alike.

        ``known`` is the same by the group step alone; secrets are about ``entries``, None for all.
        """
        cost, last = self.losses.charged.cost(0), self._last
        ahead = SideTables(lambda n: self._ahead(last - (n or 0)), self.stars[0], passed=False)
        behind = SideTables(lambda n: self._behind(n or 0), self.stars[1], passed=False)

        def piece(after: int, before: int) -> PairLosses:
            near, near_back = ([cost] * min(n, REACH) for n in (after, before))
            reach = window_reach(cost, near, near_back, (after <= REACH, before <= REACH))
            steps = [(rows, cost) for rows in self.rows[: reach[0]]]
            steps_back = [(rows, cost) for rows in self.back[: reach[1]]]
            return window_losses(
                *(self.secret, self.losses.laws[0], cost),
                *((steps, ahead, after), (steps_back, behind, before), self.slack),
            )

        found, entry, top = _by_pieces(last + 1, entries, piece)
        return np.minimum(found, known[0]), entry, top

    def each(self, known: tuple[Floats, int, PairLosses]) -> tuple[Floats, int, PairLosses]:
        """The same for any chain: the largest of the ``known`` losses are lowered."""
        charged, last = self.losses.charged, self._last
        ahead = SideTables(lambda n: self._ahead(n or 0), self.stars[0], passed=True)
        behind = SideTables(lambda n: self._behind(last - (n or 0)), self.stars[1], passed=True)

        def single(entry: int) -> PairLosses:
            near = [charged.cost(j) for j in range(entry + 1, min(entry + REACH, last) + 1)]
            near_back = [charged.cost(j) for j in range(entry - 1, max(entry - REACH, 0) - 1, -1)]
            ends = (last - entry <= REACH, entry <= REACH)
            after, before = window_reach(charged.cost(entry), near, near_back, ends)
            steps = list(zip(self.rows[entry : entry + after], near[:after], strict=True))
            first = last - entry
            steps_back = list(
                zip(self.back[first : first + before], near_back[:before], strict=True)
            )
            return window_losses(
                *(self.secret, self.losses.laws[self.losses.law_at[entry]], charged.cost(entry)),
                *((steps, ahead, entry), (steps_back, behind, last - entry), self.slack),
            )

        by_entry, worst, found = known[0].copy(), known[1:], {}
        for _ in range(REFINED):
            entry = int(np.argmax(by_entry))
            if entry in found or by_entry[entry] <= 0:
                break
            found[entry] = single(entry)
            by_entry[entry] = min(by_entry[entry], found[entry].value)
        entry = int(np.argmax(by_entry))
        if by_entry[entry] <= 0:
            return by_entry, *worst
        return by_entry, entry, found[entry] if entry in found else single(entry)


def unbounded_groups(
    secret: SecretSides,
    held: HeldLaw,
    cost: Floats,
    rows: tuple[Floats, Floats],
    known: tuple[Floats, Floats],
    *,
    slack: float,
) -> PairLosses:
    """The losses of any entry of a stationary chain without end, one cost on every entry.

    ``rows`` lead ahead and back, and ``known`` bounds what every number of entries there reveals.
    """
    star, many = star_of(cost), [cost] * REACH
    taken = window_reach(cost, many, many, (False, False))
    sides: list[tuple[Steps, SideTables, None]] = []
    for matrix, table, reach in zip(rows, known, taken, strict=True):
        side = StarSide.of([matrix], [star], slack=slack, unbounded=True)
        known_for_all: dict[int | None, Floats] = {None: table}
        tables = SideTables(known_for_all.__getitem__, side, passed=True)
        sides.append(([(matrix, cost)] * reach, tables, None))
    return window_losses(secret, held, cost, sides[0], sides[1], slack)


def _by_pieces(
    length: int, entries: Integers | None, loss: Callable[[int, int], PairLosses]
) -> tuple[Floats, int, PairLosses]:
    """``[entry]``: at least the loss of each; the entry that may have the largest, and its losses.

    ``loss`` takes the number of entries after one, and before it. Secrets are about ``entries``,
    None for all; other entries have 0.
    """
    listed = np.arange(length) if entries is None else entries

    def piece(begin: int, end: int) -> tuple[float, int, int, PairLosses]:
        found = loss(length - 1 - int(listed[begin]), int(listed[end - 1]))
        return -found.value, begin, end, found

    heap = [piece(0, len(listed))]
    heapify(heap)
    done: list[tuple[float, int, int, PairLosses]] = []
    best = 0.0
    for _ in range(HALVED):
        if not heap or -heap[0][0] <= best * (1 + NEAR):
            break
        bound, begin, end, found = heappop(heap)
        if end - begin == 1 or not -bound < np.inf:
            best = max(best, -bound)
            done.append((bound, begin, end, found))
            continue
        middle = (begin + end) // 2
        for part in ((begin, middle), (middle, end)):
            heappush(heap, piece(*part))
    by_entry = np.zeros(length)
    for bound, begin, end, _ in (*done, *heap):
        by_entry[listed[begin:end]] = -bound
    _, begin, end, top = min((*done, *heap), key=lambda part: part[0])
    return by_entry, int(listed[(begin + end) // 2]), top
