"""The influence curve of a network: the best set to expose, found by branch and bound.

Only connected sets matter, and a larger set never leaks more (see ``networks``). So for each
secret and each b the search runs over connected sets of b entries that hold the secret. It splits
them by "holds C, and nothing of X". Every such set lies in R, what can be reached from C in
b − |C| steps without X, so its leak is at least that of R: if that is not below the best leak
found, nothing better is among them. The bound is computed for a few states of the boundary of R
(a lower bound), the leaks that are reported for all states (an upper bound).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from takifugu.errors import InvalidPrior, TooLarge, UnsoundRequest
from takifugu.influence.curve import InfluenceCurve
from takifugu.influence.networks import Elimination, Side, bits
from takifugu.numeric import Booleans, Floats, up
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name

TIE = 1e-9  # leaks closer than this count as equal: pruning, not rounding
LOOKS = (24, 192)  # alternatives kept at a first and at a second look
CANDIDATES = 20_000  # sets of nearest entries that are tried for one secret and one b

Sides = tuple[tuple[Side, Side], ...]


@dataclass(frozen=True)
class Progress:
    """How far a search has come: the secret's entry, b, and the sets evaluated for it so far."""

    entry: Name
    b: int
    evaluations: int


@dataclass(frozen=True)
class ExposedSets:
    """Which entries are exposed, for each pair and point of a curve."""

    entries: tuple[Name, ...]
    masks: tuple[tuple[int, ...], ...]

    def describe(self, pair: int, point: int) -> Mapping[str, Any]:
        """``{"exposed": [entry, …]}``."""
        return {"exposed": [self.entries[v] for v in bits(self.masks[pair][point])]}


def network_curve(
    model: FactorModel,
    secrets: Secrets | None = None,
    *,
    largest: int = 5,
    evaluations: int | None = None,
    progress: Callable[[Progress], bool | None] | None = None,
) -> InfluenceCurve:
    """The curve of a Bayesian network or random field, exact up to b = ``largest``.

    ``evaluations`` limits the sets looked at for each secret; ``progress`` hears how the search
    goes, and ends it by returning False. Points that the search did not finish are upper bounds
    and say so (``exact``). Values that cannot happen are no secrets; their pairs are left out.
    """
    full = Elimination(model)
    quick = tuple(Elimination(model, thin=count) for count in LOOKS)

    def explore(entry: int, sides: Sides) -> "_Search":
        search = _Search(full, quick, entry, sides, model.entries[entry], evaluations, progress)
        search.run(largest)
        return search

    return _curve(model, full, secrets or Secrets(), largest, explore)


def nearest_curve(
    model: FactorModel, secrets: Secrets | None = None, *, largest: int = 5
) -> InfluenceCurve:
    """The paper's estimate (Section 6): expose the secret and its b − 1 nearest entries.

    Distances are steps in the moral graph (entries that share a table are one step apart). All
    ways to break ties are tried. An upper bound on the curve.
    """
    full = Elimination(model)
    quick = tuple(Elimination(model, thin=count) for count in LOOKS)

    def explore(entry: int, sides: Sides) -> "_Search":
        search = _Search(full, quick, entry, sides, model.entries[entry], None, None)
        for b in range(1, min(largest, search.whole.bit_count() - 1) + 1):
            search.open(b)
            search.settle(_nearest(full, entry, b))
            search.finished[-1] = False
        return search

    return _curve(model, full, secrets or Secrets(), largest, explore)


def _nearest(full: Elimination, entry: int, b: int) -> Iterable[int]:
    """The part that holds ``entry`` of every set of it and its b − 1 nearest."""
    held = 1 << entry
    while True:
        ring = full.boundary(held)
        short = b - held.bit_count()
        if ring.bit_count() > short:
            break
        held |= ring
    if comb(ring.bit_count(), short) > CANDIDATES:
        raise TooLarge(
            f"there are {comb(ring.bit_count(), short):,} sets of {b} nearest entries; at most"
            f" {CANDIDATES:,} are tried. Ask for a smaller `largest`, or use network_curve."
        )
    for more in combinations(bits(ring), short):
        yield held | sum(1 << v for v in more)


class _Search:
    """Everything about one secret entry: the best sets so far, for each pair and each b."""

    def __init__(
        self,
        full: Elimination,
        quick: Sequence[Elimination],
        entry: int,
        sides: Sides,
        name: Name,
        evaluations: int | None,
        progress: Callable[[Progress], bool | None] | None,
    ) -> None:
        self.full, self.quick, self.entry, self.sides, self.name = full, quick, entry, sides, name
        self.limit, self.progress = evaluations, progress
        self.whole = full.part((1 << len(full.sizes)) - 1, entry)
        self.best: list[Floats] = []
        self.sets: list[list[int]] = []
        self.finished: list[bool] = []
        self.relaxed = False  # some number may be too high: nothing is exact
        self.evaluated = 0
        self.stopped = False
        self.guess: Floats = np.zeros(0)
        self.likely: dict[int, int] = {}
        self._doubt: list[tuple[int, Floats]] = []
        self._known: dict[int, Floats] = {}
        self._least: dict[int, tuple[int, Floats]] = {}

    def run(self, largest: int) -> None:
        """Search b = 1, 2, … up to ``largest``, or to all entries that matter but one.

        Rounds of two steps: find the sets whose lower bounds are least; compute the leaks of
        these. A round that finds no set below the leaks known proves that they are the least.
        """
        for b in range(1, min(largest, self.whole.bit_count() - 1) + 1):
            start = [1 << self.entry] if b == 1 else self._grown(set(self.sets[-1]))
            self.open(b)
            while True:
                self.guess, self.likely = self.best[-1].copy(), {}
                for inside in start:
                    self._look(inside)
                self._branch(b, 1 << self.entry, 0)
                if not self.likely:
                    break
                self.settle(set(self.likely.values()))
            self.finished[-1] &= not self.stopped

    def open(self, b: int) -> None:
        """Start a new b from what the one before found."""
        start = np.full(len(self.sides), np.inf)
        self.best.append(self.best[-1].copy() if self.best else start)
        self.sets.append(list(self.sets[-1]) if self.sets else [1 << self.entry] * len(self.sides))
        self.finished.append(True)
        self._tell(b)

    def _tell(self, b: int) -> None:
        if self.limit is not None and self.evaluated >= self.limit:
            self.stopped = True
        if self.progress is not None and not self.stopped:
            answer = self.progress(Progress(self.name, b, self.evaluated))
            self.stopped = answer is False

    def _grown(self, sets: set[int]) -> list[int]:
        return sorted(
            {inside | 1 << v for inside in sets for v in bits(self.full.boundary(inside))}
        )

    def _look(self, inside: int) -> None:
        """Note the set for the pairs for which it could be the best, after a second look."""
        if not np.any(self.least(inside) < self.guess - TIE):
            return
        least = self.least(inside, again=True)
        for k in np.flatnonzero(least < self.guess - TIE):
            self.guess[k] = least[k]
            self.likely[int(k)] = inside

    def settle(self, sets: Iterable[int]) -> None:
        """Compute the leaks of these sets; keep the best."""
        for inside in sorted(sets):
            try:
                found = self.evaluate(inside)
            except TooLarge:
                # out of reach: no point is exact for which this set might have been the best
                self._doubt.append((inside.bit_count(), self.least(inside)))
                self._least[inside] = 2, np.full(len(self.sides), np.inf)
                continue
            self._least[inside] = 2, found
            for k in np.flatnonzero(found < self.best[-1]):
                self.best[-1][k] = found[k]
                self.sets[-1][k] = inside

    def exact(self, at: int, pair: int) -> bool:
        """Whether the best leak of a pair at the b with number ``at`` is proved to be the least."""
        sure = self.finished[at] and not self.relaxed
        return sure and not any(
            size <= at + 1 and least[pair] < self.best[at][pair] - TIE
            for size, least in self._doubt
        )

    def evaluate(self, inside: int) -> Floats:
        """``[pair]``: the leak without the prior's odds, rounded up."""
        found = self._known.get(inside)
        if found is None:
            self.evaluated += 1
            found, exact = self.full.evaluate(inside, self.entry, self.sides)
            self.relaxed = self.relaxed or not exact
            self._known[inside] = found
        return found

    def least(self, inside: int, *, again: bool = False) -> Floats:
        """``[pair]``: a lower bound on the same; a better one if looked at ``again``."""
        nothing: Floats = np.full(len(self.sides), -np.inf)
        looks, found = self._least.get(inside, (0, nothing))
        wanted = 2 if again else 1
        while looks < wanted:
            self.evaluated += 1
            try:
                better, exact = self.quick[looks].evaluate(inside, self.entry, self.sides)
                self.relaxed = self.relaxed or not exact
                found = np.maximum(found, better)
            except TooLarge:
                pass  # no bound
            looks += 1
            self._least[inside] = looks, found
        return found

    def _branch(self, b: int, inside: int, banned: int) -> None:
        """All connected sets of b entries that hold ``inside`` and nothing of ``banned``."""
        self._tell(b)
        if self.stopped:
            return
        edge = self.full.boundary(inside) & ~banned
        if inside.bit_count() == b or not edge:
            self._look(inside)
            return
        reach = inside
        for _ in range(b - inside.bit_count()):
            reach |= self.full.boundary(reach) & ~banned
        if not np.any(self.least(reach) < self.guess - TIE):
            return
        if inside.bit_count() == b - 1:
            for v in bits(edge):
                self._look(inside | 1 << v)
            return
        v = (edge & -edge).bit_length() - 1
        self._branch(b, inside | 1 << v, banned)
        self._branch(b, inside, banned | 1 << v)

    def offset(self) -> tuple[Floats, bool]:
        """``[pair]``: log P(B)/P(A), rounded up; and whether that is all that rounding did.

        The prior odds are an average of the posterior odds. So where they are out of reach, the
        largest log f_B / f_A of any set evaluated bounds log P(B)/P(A).
        """
        back = [self.sides.index((b, a)) for a, b in self.sides]
        try:
            found, _ = self.full.evaluate(self.whole, self.entry, self.sides)
            return found[back], True
        except TooLarge:
            bounds = np.min([np.full(len(back), np.inf), *self._known.values()], axis=0)
            return bounds[back], False


def _curve(
    model: FactorModel,
    full: Elimination,
    secrets: Secrets,
    largest: int,
    explore: Callable[[int, Sides], _Search],
) -> InfluenceCurve:
    """Put the searches of all secrets together."""
    count = len(model.entries)
    if not largest >= 1:
        raise UnsoundRequest(f"largest is {largest}; a curve exposes at least one entry")
    chosen = chosen_entries(model, secrets)
    everything = (1 << count) - 1
    wholes = {entry: full.part(everything, entry) for entry in chosen}
    exposed = sorted(
        {*range(1, min(largest, count) + 1), *(w.bit_count() for w in wholes.values()), count}
    )
    leak: list[Floats] = []
    exact: list[Booleans] = []
    pairs: list[str] = []
    masks: list[tuple[int, ...]] = []
    for entry in chosen:
        sides = secrets.sides(model.states[entry])
        if not sides:
            continue
        found = explore(entry, sides)
        offset, sure = found.offset()
        for k in range(len(sides)):
            if offset[k] in (np.inf, -np.inf) and sure:
                continue  # one side of the pair cannot happen
            row, flags, shown = _row(found, k, exposed, float(offset[k]), sure)
            leak.append(row)
            exact.append(flags)
            masks.append(shown)
            pairs.append(pair_label(model, entry, sides[k]))
    if not leak:
        raise InvalidPrior(
            "secrets", given="leave no pair of values that can happen", needed="ask of at least one"
        )
    splits = ExposedSets(model.entries, tuple(masks))
    return InfluenceCurve(
        np.array(exposed), np.array(leak), count, tuple(pairs), np.array(exact), splits
    )


def _row(
    found: _Search, pair: int, exposed: Sequence[int], offset: float, sure: bool
) -> tuple[Floats, Booleans, tuple[int, ...]]:
    """The leak of one pair at every point, whether it is exact, and the set exposed."""
    row, flags, masks = np.zeros(len(exposed)), np.ones(len(exposed), dtype=np.bool_), []
    for k, b in enumerate(exposed):
        if b >= found.whole.bit_count():  # nothing that is left depends on the secret
            masks.append(found.whole)
            continue
        at = min(b, len(found.best)) - 1
        best = float(found.best[at][pair])
        row[k] = np.inf if best == np.inf else max(0.0, float(up(best + offset)))
        flags[k] = b <= len(found.best) and sure and found.exact(at, pair)
        masks.append(found.sets[at][pair])
    return row, flags, tuple(masks)


def chosen_entries(model: FactorModel, secrets: Secrets) -> list[int]:
    """The numbers of the entries that are secret."""
    if secrets.entries is None:
        return list(range(len(model.entries)))
    for name in secrets.entries:
        if name not in model.entries:
            raise InvalidPrior(
                "secrets", given=f"name the entry {name!r}", needed=f"use those of {model.name!r}"
            )
    return [model.entries.index(name) for name in secrets.entries]


def pair_label(model: FactorModel, entry: int, sides: tuple[Side, Side]) -> str:
    """A secret pair in words."""
    left, right = (
        EntryIs(model.entries[entry], tuple(model.states[entry][v] for v in side)) for side in sides
    )
    return str(SecretPair(left, right))
