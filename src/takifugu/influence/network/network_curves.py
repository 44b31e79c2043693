"""The influence curve of a network: the best set to expose, among all connected ones.

Only connected sets matter, and a larger set never leaks more (see ``networks``). So for each b
the search runs over all connected sets of b entries, and for each set over the secrets it holds.
Most sets need one state of the boundary only, which shows that they leak more than the best set
so far. The leaks that are reported are proved: largest over all states of the boundary.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from takifugu._core.numeric import Booleans, Floats
from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.influence.curve import ExposedSets, InfluenceCurve
from takifugu.influence.network.elimination import Elimination, Surroundings, bits
from takifugu.influence.rounded_ratios import leak_up
from takifugu.priors.networks import NetworkPrior, Sides, secret_pair, secret_sides
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name

SAME_LEAK = 1e-10  # leaks closer than this count as equal: pruning, not rounding
MAX_NEAREST_SETS = 20_000  # sets of nearest entries that are tried for one secret and one b
MAX_LAYER_SETS = 2_000_000  # connected sets of one size; beyond, the search ends


@dataclass(frozen=True)
class Progress:
    """How far a search has come: the secret's entry, b, and the sets evaluated for it so far."""

    entry: Name
    b: int
    evaluations: int


def network_curve(
    model: NetworkPrior,
    secrets: Secrets | None = None,
    *,
    largest: int = 5,
    evaluations: int | None = None,
    progress: Callable[[Progress], bool | None] | None = None,
) -> InfluenceCurve:
    """The curve of a Bayesian network or random field, exact up to b = ``largest``.

    ``evaluations`` limits the sets that are tried for each secret; ``progress`` is called on the
    way, and ends the search by returning False. Points that the search did not finish are upper
    bounds, and not ``exact``. Values that cannot happen are no secrets; their pairs are left out.
    """
    full = Elimination(model)

    def explore(searches: Sequence["_EntrySearch"]) -> None:
        layer = {1 << search.entry for search in searches}
        for b in range(1, largest + 1):
            active = [search for search in searches if b < search.whole.bit_count()]
            if not active or any(search.stopped for search in active):
                return
            first = {inside for search in active for inside in search.open(b)}
            if len(layer) > MAX_LAYER_SETS:
                for search in active:
                    search.stopped = True
            order = [*sorted(first), *sorted(layer - first)]
            _try_sets(full, order, active, b, evaluations, progress)
            layer = {inside | 1 << v for inside in layer for v in bits(full.boundary(inside))}

    return _searched(model, full, secrets, largest, explore)


def _try_sets(
    full: Elimination,
    sets: Iterable[int],
    active: Sequence["_EntrySearch"],
    b: int,
    evaluations: int | None,
    progress: Callable[[Progress], bool | None] | None,
) -> None:
    """Try each set for every secret that it holds, until all are done or stopped."""
    for inside in sets:
        around: Surroundings | None = None
        for search in active:
            if not inside >> search.entry & 1 or search.stopped:
                continue
            if evaluations is not None and search.evaluated >= evaluations:
                search.stopped = True
                continue
            if progress and progress(Progress(search.name, b, search.evaluated)) is False:
                for other in active:
                    other.stopped = True
                return
            if around is None:
                try:
                    around = full.surroundings(inside)
                except TooLarge:
                    for other in active:
                        if inside >> other.entry & 1:
                            other.unknown(inside)
                    break
            search.settle(around)


def nearest_curve(
    model: NetworkPrior, secrets: Secrets | None = None, *, largest: int = 5
) -> InfluenceCurve:
    """The paper's estimate (Section 6): expose the secret and its b − 1 nearest entries.

    Distances are steps in the moral graph (entries that share a table are one step apart). All
    ways to break ties are tried. An upper bound on the curve.
    """
    full = Elimination(model)

    def explore(searches: Sequence["_EntrySearch"]) -> None:
        for search in searches:
            for b in range(1, min(largest, search.whole.bit_count() - 1) + 1):
                search.open(b)
                _try_sets(full, _nearest(full, search.entry, b), [search], b, None, None)
                search.every = False

    return _searched(model, full, secrets, largest, explore)


def _nearest(full: Elimination, entry: int, b: int) -> Iterable[int]:
    """The part that holds ``entry`` of every set of it and its b − 1 nearest."""
    held = 1 << entry
    while True:
        ring = full.boundary(held)
        short = b - held.bit_count()
        if ring.bit_count() > short:
            break
        held |= ring
    if comb(ring.bit_count(), short) > MAX_NEAREST_SETS:
        raise TooLarge(
            f"there are {comb(ring.bit_count(), short):,} sets of {b} nearest entries; at most"
            f" {MAX_NEAREST_SETS:,} are tried. Ask for a smaller `largest`, or use network_curve.",
            field="largest",
            size=comb(ring.bit_count(), short),
            limit=MAX_NEAREST_SETS,
        )
    for more in combinations(bits(ring), short):
        yield held | sum(1 << v for v in more)


class BestSets(ABC):
    """The best sets of one secret entry, for each of its pairs and each b.

    Implementers: `_EntrySearch`, and `takifugu.influence.network.attractive_curves.AttractiveSets`.

    Attributes:
        entry: The secret's entry, and ``sides``: its pairs.
        whole: All entries that depend on it, as a bit mask.
        best: ``[b − 1][pair]``: upper bounds on log f_A / f_B, and ``sets``: their sets.
    """

    entry: int
    sides: Sides
    whole: int
    best: list[Floats]
    sets: list[list[int]]

    @abstractmethod
    def offset(self) -> tuple[Floats, bool]:
        """``[pair]``: log P(B)/P(A), rounded up; and whether that is all that rounding did."""

    @abstractmethod
    def exact(self, at: int, pair: int) -> bool:
        """Whether the leak of a pair at the b with number ``at`` is proved to be the least."""


class _EntrySearch(BestSets):
    """Everything about one secret entry: the best sets so far, for each pair and each b."""

    def __init__(self, full: Elimination, entry: int, sides: Sides, name: Name) -> None:
        self.full, self.entry, self.sides, self.name = full, entry, sides, name
        self.whole = full.part((1 << len(full.sizes)) - 1, entry)
        self._marks = np.zeros((len(sides), 2, full.sizes[entry]), dtype=np.bool_)
        for k, pair in enumerate(sides):
            for side in (0, 1):
                self._marks[k, side, list(pair[side])] = True
        self.best, self.sets = [], []
        self.every = True  # whether all connected sets are tried
        self.relaxed = False  # some number may be too high: nothing is exact
        self.evaluated = 0
        self.stopped = False
        self._offset: tuple[Floats, bool] | None = None
        self._doubt: list[tuple[int, Floats]] = []  # size and lower bound of sets out of reach

    def open(self, b: int) -> list[int]:
        """Start a new b from what the one before found; the sets to look at first."""
        if not self.best:
            self.best.append(np.full(len(self.sides), np.inf))
            self.sets.append([1 << self.entry] * len(self.sides))
            return [1 << self.entry]
        before = set(self.sets[-1])
        self.best.append(self.best[-1].copy())
        self.sets.append(list(self.sets[-1]))
        grown = {s | 1 << v for s in before for v in bits(self.full.boundary(s))}
        return [inside for inside in grown if inside.bit_count() == b]

    def settle(self, around: Surroundings) -> None:
        """Compare the leaks of a set, where they are less, with the best."""
        from takifugu.influence.network.ratios import PROVED, UNKNOWN

        self.evaluated += 1
        best = self.best[-1]
        leaks, verdict = self.full.evaluate(around, self.entry, self._marks, best - SAME_LEAK)
        self.relaxed = self.relaxed or not around.exact
        for k in np.flatnonzero((verdict == PROVED) & (leaks < best)):
            best[k] = leaks[k]
            self.sets[-1][k] = around.inside
        if (verdict == UNKNOWN).any():
            least = np.where(verdict == UNKNOWN, leaks - SAME_LEAK, np.inf)
            self._doubt.append((around.inside.bit_count(), least))

    def unknown(self, inside: int) -> None:
        """A set is out of reach: no point is exact for which it might have been the best."""
        self.evaluated += 1
        self._doubt.append((inside.bit_count(), np.full(len(self.sides), -np.inf)))

    def exact(self, at: int, pair: int) -> bool:
        """See `BestSets`: nothing was left out that might have been better."""
        done = at + 1 < len(self.best) or not self.stopped
        return (
            done
            and self.every
            and not self.relaxed
            and self.offset()[1]
            and not any(
                size <= at + 1 and least[pair] < self.best[at][pair] for size, least in self._doubt
            )
        )

    def offset(self) -> tuple[Floats, bool]:
        """See `BestSets`.

        The prior odds are an average of the posterior odds. So where they are out of reach, the
        largest log f_B / f_A of any set evaluated bounds log P(B)/P(A).
        """
        if self._offset is None:
            back = [self.sides.index((b, a)) for a, b in self.sides]
            try:
                self._offset = self.full.odds(self.whole, self.entry, self.sides)[back], True
            except TooLarge:
                bounds = np.min([np.full(len(back), np.inf), *self.best], axis=0)
                self._offset = bounds[back], False
        return self._offset


def _searched(
    model: NetworkPrior,
    full: Elimination,
    secrets: Secrets | None,
    largest: int,
    explore: Callable[[Sequence[_EntrySearch]], None],
) -> InfluenceCurve:
    """Search for the sets of all secrets, and put them together."""
    if not largest >= 1:
        raise UnsoundRequest(
            f"largest is {largest}; a curve exposes at least one entry",
            field="largest",
            given=largest,
            needed=1,
        )
    searches = [
        _EntrySearch(full, entry, sides, model.entries[entry])
        for entry, sides in secret_sides(model, secrets or Secrets()).items()
    ]
    explore(searches)
    return curve_of_sets(model, searches, largest)


def curve_of_sets(
    model: NetworkPrior, searches: Sequence[BestSets], largest: int
) -> InfluenceCurve:
    """The curve of all secrets, from the best sets of each entry.

    Its b are up to ``largest``, all that depends on some secret, and all entries.
    """
    count = len(model.entries)
    few = range(1, min(largest, count) + 1)
    exposed = sorted({*few, *(search.whole.bit_count() for search in searches), count})
    leak: list[Floats] = []
    exact: list[Booleans] = []
    pairs: list[str] = []
    members: list[list[list[Name]]] = []
    for search in searches:
        offset, sure = search.offset()
        for k, sides in enumerate(search.sides):
            if offset[k] in (np.inf, -np.inf) and sure:
                continue  # one side of the pair cannot happen
            row, flags, masks = _row(search, k, exposed, float(offset[k]))
            leak.append(row)
            exact.append(flags)
            members.append([[model.entries[v] for v in bits(mask)] for mask in masks])
            pairs.append(str(secret_pair(model, search.entry, sides)))
    if not leak:
        raise InvalidPrior(
            "secrets", given="leave no pair of values that can happen", needed="leave at least one"
        )
    splits = ExposedSets(members)
    return InfluenceCurve(
        np.array(exposed), np.array(leak), count, tuple(pairs), np.array(exact), splits
    )


def _row(
    search: BestSets, pair: int, exposed: Sequence[int], offset: float
) -> tuple[Floats, Booleans, list[int]]:
    """The leak of one pair at every point, whether it is exact, and the set exposed."""
    row, flags, masks = np.zeros(len(exposed)), np.ones(len(exposed), dtype=np.bool_), []
    for k, b in enumerate(exposed):
        if b >= search.whole.bit_count():  # nothing that is left depends on the secret
            masks.append(search.whole)
            continue
        at = min(b, len(search.best)) - 1
        best = float(search.best[at][pair])
        if best > -np.inf:  # otherwise the left side cannot happen, whatever the others are
            row[k] = np.inf if best == np.inf else float(leak_up(best + offset))
        flags[k] = b <= len(search.best) and search.exact(at, pair)
        masks.append(search.sets[at][pair])
    return row, flags, masks
