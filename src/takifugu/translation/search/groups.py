"""Secrets about groups of values: where in a chain they are lost most, and how much.

`takifugu.translation.certify.groups` has the couplings that bound them. What the entries beyond a
window reveal is bounded by the pairwise recursion, and by a star that is at least the cost
(`takifugu.translation.certify.stars`), whichever is less.

Of a stationary chain with one cost, entries i to j lose at most what one would with all that is
after i and all that is before j: fewer entries reveal no more, since a mechanism may ignore some.
So the chain is cut into pieces, which are halved while the largest bound is that of a long piece.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, frozen
from takifugu.errors import InvalidWorld
from takifugu.translation.certify.flow import Couplings, mixture_step, pair_losses
from takifugu.translation.certify.groups import ConditionedWalk, Steps, Window
from takifugu.translation.certify.laws import HeldLaw, row_slack
from takifugu.translation.certify.stars import StarSide, classes_of, star_of
from takifugu.translation.models.chain import ChainLosses
from takifugu.translation.search.couplings import MAX_STATES, solve_step
from takifugu.translation.search.star_chains import halved, solve

MAX_WINDOW_STATES = 256
MAX_REACH = 16  # entries on each side of a window
MAX_HALVED_PIECES = 12  # of a chain
NEAR = 1e-4  # a piece whose bound is relatively nearer to that of a single entry is left alone
MAX_REFINED_ENTRIES = 24  # whose windows are coupled
MAX_STAR_WORK = 2e8  # products that solving all pairs of one side may take
HOPEFUL = 1.02  # times what windows prove: a side's bound that is larger is no use
PATIENCE = 2  # steps of a conditioned chain that may prove no less than the ones before
MAX_CONDITIONED_WORK = 3e5  # states⁴ × steps of the chains given one group of each pair

Side = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PairLosses:
    """The losses of the secret pairs of one entry.

    Attributes:
        value: The largest, at least 0.
        pair: Which pair has it; −1 if none can happen.
        by_values: ``[x, y]``: the largest loss of a pair with x on its left and y on its right.
    """

    value: float
    pair: int
    by_values: Floats


@dataclass(frozen=True, eq=False)
class SecretSides:
    """The secret pairs of an entry: ordered pairs of disjoint sets of its values."""

    sides: Sequence[tuple[Side, Side]]
    states: int

    @cached_property
    def mask(self) -> Booleans:
        """``[x, y]``: whether some secret pair has x on its left and y on its right."""
        return pair_mask(self.sides, self.states)

    @cached_property
    def _single(self) -> dict[tuple[int, int], int]:
        """The pairs of single values."""
        return {
            (a[0], b[0]): k
            for k, (a, b) in reversed(list(enumerate(self.sides)))
            if len(a) == len(b) == 1
        }

    def number(self, x: int, y: int) -> int:
        """Which secret pair is the one of the single values x and y."""
        return self._single[x, y]

    @cached_property
    def _groups(self) -> list[int]:
        return [k for k, (a, b) in enumerate(self.sides) if len(a) > 1 or len(b) > 1]

    @cached_property
    def _places(self) -> list[tuple[Integers, ...]]:
        """Where the pairs of values of each group stand in a table."""
        return [np.ix_(*self.sides[k]) for k in self._groups]

    @property
    def grouped(self) -> bool:
        """Whether some side is a group of values."""
        return bool(self._groups)

    @property
    def groups(self) -> Sequence[int]:
        """Which pairs have a group on a side."""
        return self._groups

    def losses(self, table: Floats, held: HeldLaw, within: Floats | None = None) -> PairLosses:
        """From ``table`` [x, y], what each pair of values loses; −∞ if it cannot happen.

        ``held`` is the law of the entry; ``within`` [group] is another bound on `groups`.
        """
        found = np.full((self.states, self.states), -np.inf)
        single = self._single
        if single:
            at = tuple(np.array(list(single), dtype=np.int64).T)
            found[at] = table[at]
        place = int(np.argmax(found))
        value, pair = float(found.flat[place]), -1
        if np.isfinite(value) or value > 0:
            pair = single[divmod(place, self.states)]
        by_group = self._by_group(table, held)
        if within is not None:
            by_group = np.minimum(by_group, within)
        for k, here, loss in zip(self._groups, self._places, by_group, strict=True):
            found[here] = np.maximum(found[here], loss)
            if loss > value:
                value, pair = float(loss), k
        return PairLosses(max(value, 0.0), pair, frozen(found))

    def _by_group(self, table: Floats, held: HeldLaw) -> Floats:
        """``[pair]``: the loss of each pair with a group; −∞ if a side cannot happen."""
        if not self._groups:
            return np.zeros(0)
        able, inside, rows, numbers = self._given(held)
        largest = np.array([table[here].max() for here in self._places])
        within = np.full(len(able), -np.inf)
        if not able.any():
            return within
        slack = held.slack + row_slack(self.states)
        step = mixture_step(rows, table[np.ix_(inside, inside)], slack=slack)
        guess = np.full((len(rows), len(rows)), float(largest[able].min()) / 2)
        proven = step.upper(solve_step(step, guess=guess))
        within[able] = proven[tuple(numbers.T)]
        least: Floats = np.minimum(within, largest)
        return least

    def _given(self, held: HeldLaw) -> tuple[Booleans, Integers, Floats, Integers]:
        """Which groups are able, which values can happen, ``[side, x]`` their laws, and whose."""
        known = self.__dict__.get("_last")
        if known is None or known[0] is not held:
            able = self.able(held)
            members, numbers = self.group_members(able)
            inside = np.flatnonzero(held.law.possible)
            rows = np.array([held.law.given(member)[inside] for member in members])
            known = self.__dict__["_last"] = held, (able, inside, rows, numbers)
        given: tuple[Booleans, Integers, Floats, Integers] = known[1]
        return given

    def able(self, held: HeldLaw) -> Booleans:
        """``[group]``: whether both sides of the pair can happen."""
        possible = held.law.possible
        pairs = [self.sides[k] for k in self._groups]
        return np.array([all(possible[list(side)].any() for side in pair) for pair in pairs])

    def group_members(self, chosen: Booleans) -> tuple[list[Booleans], Integers]:
        """The different sides ``[x]`` of the chosen groups; ``[group, 2]``: which are whose."""
        pairs = [self.sides[self._groups[k]] for k in np.flatnonzero(chosen)]
        listed = list(dict.fromkeys(side for pair in pairs for side in pair))
        number = {side: k for k, side in enumerate(listed)}
        members = [np.isin(np.arange(self.states), side) for side in listed]
        return members, np.array([[number[a], number[b]] for a, b in pairs], dtype=np.int64)


def pair_mask(sides: Sequence[tuple[Side, Side]], states: int) -> Booleans:
    """``[x, y]``: whether some secret pair has x on its left and y on its right."""
    mask = np.zeros((states, states), dtype=np.bool_)
    for a, b in sides:
        mask[np.ix_(a, b)] = True
    if not mask.any():
        raise InvalidWorld("secrets", given="hold no pair", needed="name two states at least")
    return mask


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
            steps = 16 if side is None else min(side.steps.most, 64)
            if side is not None and 10 * steps * size**4 <= MAX_STAR_WORK:
                pairs = np.argwhere(~np.eye(size, dtype=np.bool_))
                at = tuple(pairs.T)
                value = value.copy()
                value[at] = np.minimum(value[at], solve(side, pairs, value[at])[1])
            self.found[number] = value
        return self.found[number]


SideOfEntry = tuple[Steps, int, SideTables, int | None]  # steps, those of a window, tables, number


def window_losses(
    secret: SecretSides,
    held: HeldLaw,
    cost: Floats,
    ahead: SideOfEntry,
    behind: SideOfEntry,
    slack: float,
) -> PairLosses:
    """The losses of one entry's secret pairs, groups in windows and in conditioned chains.

    A side is its nearest steps, how many of them a window takes, the tables beyond, and the number
    that stands for the entry itself there (None if it is unbounded): one less or more for each
    step, as tables are numbered.
    """
    forward, backward = (_beyond(side, 0) for side in (ahead, behind))
    table = pair_losses(cost, forward, backward, held.law.possible)
    within = np.full(len(secret.groups), np.inf)
    able = secret.able(held)
    if able.any() and table.max() > 0:
        if ahead[1] or behind[1]:
            ends = _beyond(ahead, ahead[1]), _beyond(behind, behind[1])
            near = ahead[0][: ahead[1]], behind[0][: behind[1]]
            window = Window(held, cost, *near, *ends, slack)
            within[able] = _coupled(window, secret, able)
        for side, other in ((behind, forward), (ahead, backward)):
            own = pair_losses(cost, other, np.zeros_like(cost), held.law.possible)
            conditioned = _conditioned(secret, held, own, side, slack, able)
            hopeless = not (conditioned < HOPEFUL * within[able]).any()
            within[able] = np.minimum(within[able], conditioned)
            if hopeless:  # the other side is walked where this one shows that it may pay
                break
    return secret.losses(table, held, within)


def _coupled(window: Window, secret: SecretSides, able: Booleans) -> Floats:
    """``[group]``: the loss of each pair that is ``able``, in one window."""
    members, numbers = secret.group_members(able)
    step = window.step(members)
    guess = np.full((len(members), len(members)), step.dearest / 4)
    proven: Floats = step.upper(solve_step(step, guess=guess))[tuple(numbers.T)]
    return proven


def _conditioned(
    secret: SecretSides,
    held: HeldLaw,
    own: Floats,
    side: SideOfEntry,
    slack: float,
    able: Booleans,
) -> Floats:
    """``[group]``: the same by a walk along one side, given each group; infinite if it is long."""
    members, numbers = secret.group_members(able)
    found = np.full(len(numbers), np.inf)
    each = len(numbers) * float(secret.states) ** 4
    steps = side[0][: int(MAX_CONDITIONED_WORK / each)]
    if not steps or 2 * secret.states > MAX_STATES:
        return found
    for k, (left, right) in enumerate(numbers.tolist()):
        walk = ConditionedWalk(held, (members[left], members[right]), own, steps, slack)
        known: Couplings | None = None
        behind_best = 0
        for taken in range(len(steps) + 1 if walk.usable else 0):
            end = _beyond(side, taken)
            closing = walk.closing(end)
            guess = np.full((1, 1), closing.dearest / 2)
            loss = walk.loss(end, solve_step(closing, guess=guess))
            behind_best = 0 if loss < found[k] * (1 - NEAR) else behind_best + 1
            found[k] = min(found[k], loss)
            if walk.done or behind_best == PATIENCE:
                break
            step = walk.step()
            guess = np.full((secret.states, secret.states), step.dearest / 2)
            known = solve_step(step, guess=guess, known=known)
            walk.take(known)
    return found


def _beyond(side: SideOfEntry, steps: int) -> Floats:
    _, _, tables, number = side
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
            near, near_back = ([cost] * min(n, MAX_REACH) for n in (after, before))
            reach = window_reach(cost, near, near_back, (after <= MAX_REACH, before <= MAX_REACH))
            steps = [(rows, cost) for rows in self.rows[: len(near)]]
            steps_back = [(rows, cost) for rows in self.back[: len(near_back)]]
            return window_losses(
                *(self.secret, self.losses.laws[0], cost),
                *((steps, reach[0], ahead, after), (steps_back, reach[1], behind, before)),
                self.slack,
            )

        found, entry, top = _by_pieces(last + 1, entries, piece)
        return np.minimum(found, known[0]), entry, top

    def each(self, known: tuple[Floats, int, PairLosses]) -> tuple[Floats, int, PairLosses]:
        """The same for any chain: the largest of the ``known`` losses are lowered."""
        charged, last = self.losses.charged, self._last
        ahead = SideTables(lambda n: self._ahead(n or 0), self.stars[0], passed=True)
        behind = SideTables(lambda n: self._behind(last - (n or 0)), self.stars[1], passed=True)

        def single(entry: int) -> PairLosses:
            near = [charged.cost(j) for j in range(entry + 1, min(entry + MAX_REACH, last) + 1)]
            near_back = [
                charged.cost(j) for j in range(entry - 1, max(entry - MAX_REACH, 0) - 1, -1)
            ]
            ends = (last - entry <= MAX_REACH, entry <= MAX_REACH)
            after, before = window_reach(charged.cost(entry), near, near_back, ends)
            first = last - entry
            steps = list(zip(self.rows[entry : entry + len(near)], near, strict=True))
            rows_back = self.back[first : first + len(near_back)]
            steps_back = list(zip(rows_back, near_back, strict=True))
            return window_losses(
                *(self.secret, self.losses.laws[self.losses.law_at[entry]], charged.cost(entry)),
                *((steps, after, ahead, entry), (steps_back, before, behind, last - entry)),
                self.slack,
            )

        by_entry, worst, found = known[0].copy(), known[1:], {}
        for _ in range(MAX_REFINED_ENTRIES):
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
    star, many = star_of(cost), [cost] * MAX_REACH
    taken = window_reach(cost, many, many, (False, False))
    sides: list[SideOfEntry] = []
    for matrix, table, reach in zip(rows, known, taken, strict=True):
        side = StarSide.of([matrix], [star], slack=slack, unbounded=True)
        known_for_all: dict[int | None, Floats] = {None: table}
        tables = SideTables(known_for_all.__getitem__, side, passed=True)
        sides.append(([(matrix, cost)] * MAX_REACH, reach, tables, None))
    return window_losses(secret, held, cost, sides[0], sides[1], slack)


def _by_pieces(
    length: int, entries: Integers | None, loss: Callable[[int, int], PairLosses]
) -> tuple[Floats, int, PairLosses]:
    """``[entry]``: at least the loss of each; the entry that may have the largest, and its losses.

    ``loss`` takes the number of entries after one, and before it. Secrets are about ``entries``,
    None for all; other entries have 0.
    """
    listed = np.arange(length) if entries is None else entries

    def piece(begin: int, end: int) -> tuple[float, PairLosses]:
        found = loss(length - 1 - int(listed[begin]), int(listed[end - 1]))
        return found.value, found

    pieces = halved([(0, len(listed))], piece, MAX_HALVED_PIECES, NEAR)
    by_entry = np.zeros(length)
    for bound, begin, end, _ in pieces:
        by_entry[listed[begin:end]] = bound
    _, begin, end, top = max(pieces, key=lambda part: part[0])
    return by_entry, int(listed[(begin + end) // 2]), top


def window_reach(
    cost: Floats, ahead: Sequence[Floats], behind: Sequence[Floats], ends: tuple[bool, bool]
) -> tuple[int, int]:
    """How many of the entries ahead and behind, whose costs are given, make a window.

    ``ends`` says of each side whether those are all of its entries: beyond them nothing is.
    """
    size, sides = len(cost), (ahead[:MAX_REACH], behind[:MAX_REACH])
    classes = [[int(classes_of(c).max()) + 1 for c in side] for side in sides]

    def states(taken: tuple[int, int]) -> int:
        """How many states such a window has."""
        open_ = [
            not (end and n == len(given))
            for end, n, given in zip(ends, taken, (ahead, behind), strict=True)
        ]
        bare = any(more and n == 0 for more, n in zip(open_, taken, strict=True))
        total = size if bare else int(classes_of(cost).max()) + 1
        for count, n, more in zip(classes, taken, open_, strict=True):
            if n:
                total *= int(np.prod(count[: n - 1], dtype=np.float64).clip(max=1e9))
                total *= size if more else count[n - 1]
        return total

    taken = (0, 0)
    while True:
        longer = [
            (n0, n1)
            for n0, n1 in ((taken[0] + 1, taken[1]), (taken[0], taken[1] + 1))
            if n0 <= len(sides[0]) and n1 <= len(sides[1]) and states((n0, n1)) <= MAX_WINDOW_STATES
        ]
        if not longer:
            return taken
        taken = min(longer, key=lambda pair: abs(pair[0] - pair[1]))
