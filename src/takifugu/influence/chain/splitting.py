"""Which entries around a secret to expose: the best split of a sequence, for every size.

The best H is an interval around the secret's entry i. Proof. If i is not in H the value of entry
i is seen, and the leak is infinite. Otherwise let H′ be the longest run of H that contains i.
Given the secret, what lies outside H′ is reached only through the two entries next to it, both
seen: P(x_L | s) = P(l, r | s) · (a factor that does not depend on s), and the same for the larger
L′ = I ∖ H′. So H′ leaks as much as H and is no larger. With dL and dR the distances to the
nearest seen entries, |H′| = dL + dR − 1; past the end of the sequence there is nothing to see,
which is written as the distance one past the last entry.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers
from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.influence.curve import EXACT_SHARE, LEAST_EXACT, InfluenceCurve
from takifugu.influence.rounded_ratios import Side, leak_up
from takifugu.priors.prior import state_text
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name, State

Pairs = tuple[tuple[Side, Side], ...]
DEFAULT_EXPOSED = 100  # the largest number of exposed entries by default
MAX_SHORT_LENGTH = 40  # a sequence of up to so many entries gets all of its curve
MAX_CURVE_NUMBERS = 2**24
ALL_SECRETS = Secrets()  # every entry, every pair of values


@dataclass(frozen=True)
class CurveRequest:
    """Which secret pairs of a sequence a curve covers, how far it goes, and in which reading.

    Attributes:
        states: The names of the states.
        length: The number of entries; None if it is unbounded.
        most: The largest number of exposed entries, besides all of them.
        single: Ordered pairs of single states, and ``grouped``: of groups of states.
        symmetric: Whether one split must serve both directions of a pair.
        by_entry: Whether rows of different entries are kept apart; None: if there is room.
        side_names: What a side of a pair is called, if not by its states.
    """

    states: tuple[State, ...]
    length: int | None
    most: int
    single: Pairs
    grouped: Pairs
    entries: tuple[int, ...] | None
    symmetric: bool
    by_entry: bool | None
    side_names: Mapping[Side, str] | None = None

    @cached_property
    def left(self) -> Integers:
        """``[pair]``: the left state of each single pair."""
        return np.array([a[0] for a, _ in self.single], dtype=np.int64)

    @cached_property
    def right(self) -> Integers:
        """``[pair]``: the right state of each single pair."""
        return np.array([b[0] for _, b in self.single], dtype=np.int64)

    def side_name(self, side: Side) -> str:
        """What a side of a pair is called: its states, as 'ward|hall'."""
        if self.side_names is not None:
            return self.side_names[side]
        return "|".join(state_text(self.states[x]) for x in side)

    def apart(self, entries: int) -> bool:
        """Whether to keep the rows of so many entries apart; an error if there is no room."""
        pairs = len(self.single) + len(self.grouped)
        size = entries * pairs * (self.most + 1)
        if self.by_entry and size > MAX_CURVE_NUMBERS:
            raise TooLarge(
                f"{entries:,} entries with {pairs:,} pairs each make a curve of {size:,} numbers,"
                f" more than {MAX_CURVE_NUMBERS:,}; take by_entry=False, or a smaller max_exposed",
                field="by_entry",
                size=size,
                limit=MAX_CURVE_NUMBERS,
            )
        return size <= MAX_CURVE_NUMBERS if self.by_entry is None else self.by_entry


def curve_request(
    states: tuple[State, ...],
    length: int | None,
    secrets: Secrets,
    *,
    max_exposed: int | None,
    symmetric: bool,
    by_entry: bool | None,
) -> CurveRequest:
    """Check the options of a curve, and fill in the defaults."""
    sides = secrets.sides(states)
    if not sides:
        raise InvalidWorld("secrets", given="hold no pair", needed="name at least two states")
    if max_exposed is None:
        most = DEFAULT_EXPOSED
        if length is not None:
            small = (
                length <= MAX_SHORT_LENGTH
                and length * length * len(sides) <= MAX_CURVE_NUMBERS // 4
            )
            most = length if small else min(DEFAULT_EXPOSED, max((length - 1) // 2, 1))
    elif isinstance(max_exposed, bool) or not isinstance(max_exposed, int | np.integer):
        raise UnsoundRequest(
            f"max_exposed is {max_exposed!r}; it must be a whole number",
            field="max_exposed",
            given=max_exposed,
        )
    elif max_exposed < 1:
        raise UnsoundRequest(
            f"max_exposed is {max_exposed}; it must be 1 or more",
            field="max_exposed",
            given=max_exposed,
            needed=1,
        )
    else:
        most = int(max_exposed if length is None else min(max_exposed, length))
    if len(sides) * most > 2 * MAX_CURVE_NUMBERS:
        raise TooLarge(
            f"{len(sides):,} secret pairs with {most:,} exposed entries need {len(sides) * most:,}"
            f" numbers, more than {2 * MAX_CURVE_NUMBERS:,}; take a smaller max_exposed or fewer"
            " pairs",
            field="max_exposed",
            size=len(sides) * most,
            limit=2 * MAX_CURVE_NUMBERS,
        )
    chosen = (
        None if secrets.entries is None else tuple(entry_time(e, length) for e in secrets.entries)
    )
    return CurveRequest(
        states,
        length,
        most,
        tuple(pair for pair in sides if len(pair[0]) == len(pair[1]) == 1),
        tuple(pair for pair in sides if max(len(pair[0]), len(pair[1])) > 1),
        chosen,
        symmetric,
        by_entry,
    )


def entry_time(entry: Name, length: int | None) -> int:
    """An entry of a sequence that secrets name; raise if the sequence does not have it."""
    if isinstance(entry, int) and entry >= 0 and (length is None or entry < length):
        return entry
    last = "" if length is None else f" up to {length - 1}"
    raise InvalidWorld(
        "secrets", given=f"name the entry {entry!r}", needed=f"name entries 0, 1, …{last}"
    )


@dataclass(frozen=True)
class EntryLeaks(ABC):
    """What one entry, or a class of entries, leaks to what can be seen left and right of it.

    Attributes:
        entry: Which entry, in words.
        reach: How many entries there are to its left and right; None if more than are exposed.
        keep: ``[pair]``: whether both sides of the pair can happen here.
        exact: ``[pair]``: whether `leaks` is exact, up to ``error``.
        error: How far `leaks` may be above the truth where it is exact, in nats.
    """

    entry: str
    reach: tuple[int | None, int | None]
    keep: Booleans
    exact: Booleans
    error: float = field(default=0.0, kw_only=True)

    @abstractmethod
    def leaks(self, left: int, rights: range) -> Iterator[Floats]:
        """``[pair]``: upper bounds when the nearest seen entries are so far to the two sides.

        One for each of ``rights``; each is valid until the next is taken.
        """


@dataclass(frozen=True)
class PairLeaks(EntryLeaks):
    """Pairs of single values: left and right are independent given the value, so they add."""

    before: Sequence[Floats]  # [distance - 1][pair]
    after: Sequence[Floats]
    offset: Floats  # [pair], added to `before`

    def leaks(self, left: int, rights: range) -> Iterator[Floats]:
        """See `EntryLeaks`."""
        past = np.zeros(len(self.keep))
        if self.reach[0] is None or left <= self.reach[0]:
            past = self.before[left - 1] + self.offset
        total = np.empty(len(self.keep))
        for right in rights:
            if self.reach[1] is None or right <= self.reach[1]:
                yield np.add(past, self.after[right - 1], out=total)
            else:
                yield past


def distances(reach: int | None, most: int) -> range:
    """The distances to try on one side when at most ``most`` entries may be exposed."""
    return range(1, (most if reach is None else min(most, reach + 1)) + 1)


def best_leaks(part: EntryLeaks, most: int, reverse: Integers | None) -> Floats:
    """``[b - 1, pair]``: the least leak with at most b entries exposed, rounded up.

    With ``reverse`` (for each pair, where its reverse is) one split has to serve both directions.
    """
    best = np.full((most, len(part.keep)), np.inf)
    with np.errstate(invalid="ignore"):  # −∞ + ∞ for pairs that are not kept
        for left in distances(part.reach[0], most):
            rights = distances(part.reach[1], most + 1 - left)
            for right, leak in zip(rights, part.leaks(left, rights), strict=True):
                both = leak if reverse is None else np.maximum(leak, leak[reverse])
                row = best[left + right - 2]
                np.minimum(row, both, out=row)
    best[:, ~part.keep] = 0.0  # not a number there, and not used
    best[np.isnan(best)] = np.inf  # a pair with no number is not left out: it is not bounded
    np.minimum.accumulate(best, axis=0, out=best)
    best = leak_up(best)
    if None not in part.reach and sum(filter(None, part.reach)) + 1 <= most:
        best[sum(filter(None, part.reach)) :] = 0.0  # everything is exposed
    return best


@dataclass(frozen=True)
class SequenceSplits:
    """How each point of a sequence's curve is attained; searched for on demand."""

    rows: Sequence[tuple[Sequence[EntryLeaks], int]]  # for each pair of the curve
    exposed: Integers
    entries: int | None
    reverse: Sequence[Integers | None]

    def describe(self, pair: int, point: int) -> Mapping[str, Any]:
        """The entry, and how many entries left and right of it are exposed with it."""
        b = int(self.exposed[point])
        if b == self.entries:
            return {"exposed": "all"}
        entry_leaks, column = self.rows[pair]
        best = [self._best(part, column, b, self.reverse[pair]) for part in entry_leaks]
        entry, (_, left, right) = max(best, key=lambda item: item[1][0])
        return {"entry": entry, "left": left - 1, "right": right - 1}

    def _best(
        self, part: EntryLeaks, column: int, b: int, reverse: Integers | None
    ) -> tuple[str, tuple[float, int, int]]:
        best = (np.inf, 1, 1)
        for left in distances(part.reach[0], b):
            last = distances(part.reach[1], b + 1 - left)[-1]
            with np.errstate(invalid="ignore"):
                leak = next(part.leaks(left, range(last, last + 1)))
            value = leak[column] if reverse is None else max(leak[column], leak[reverse[column]])
            if value < best[0]:
                best = (float(value), left, last)
        return part.entry, best if part.keep[column] else (-np.inf, 1, 1)


def assemble(request: CurveRequest, entry_leaks: Sequence[Sequence[EntryLeaks]]) -> InfluenceCurve:
    """The curve of all entries: ``entry_leaks`` holds, for each, one part per kind of pair."""
    kinds = [pairs for pairs in (request.single, request.grouped) if pairs]
    apart = request.apart(len(entry_leaks))
    blocks: list[Floats] = []
    exact: list[Booleans] = []
    labels: list[str] = []
    rows: list[tuple[Sequence[EntryLeaks], int]] = []
    reverses: list[Integers | None] = []
    for kind, pairs in enumerate(kinds):
        reverse = _reversed(pairs) if request.symmetric else None
        parts = [parts[kind] for parts in entry_leaks]
        for group in [[part] for part in parts] if apart else [parts]:
            leak = np.full((request.most, len(pairs)), -np.inf)
            sure = np.ones(leak.shape, dtype=bool)
            for part in group:
                here = best_leaks(part, request.most, reverse)
                np.copyto(leak, np.maximum(leak, here), where=part.keep)
                known = part.error <= EXACT_SHARE * np.maximum(here, LEAST_EXACT)
                sure &= (part.exact & known) | ~part.keep
            possible = np.flatnonzero(leak[0] > -np.inf)
            blocks.append(leak.T[possible])
            exact.append(sure.T[possible])
            words = _words(request, pairs, group[0].entry if apart and len(entry_leaks) > 1 else "")
            labels += [f"{words[pairs[k][0]]} / {words[pairs[k][1]]}" for k in possible]
            rows += [(group, int(k)) for k in possible]
            reverses += [reverse] * len(possible)
    if not labels:
        raise InvalidWorld(
            "secrets",
            given="set only values against each other that never can be at the same entry",
            needed="ask about values that the prior allows",
        )
    return _curve(request, np.concatenate(blocks), np.concatenate(exact), labels, rows, reverses)


def _curve(
    request: CurveRequest,
    leak: Floats,
    exact: Booleans,
    labels: list[str],
    rows: list[tuple[Sequence[EntryLeaks], int]],
    reverses: list[Integers | None],
) -> InfluenceCurve:
    exposed = np.arange(1, request.most + 1)
    table = exact.copy()
    if request.length is not None:
        if request.length > request.most:  # group privacy is always there
            exposed = np.append(exposed, request.length)
            leak = np.hstack([leak, np.zeros((len(leak), 1))])
            table = np.hstack([table, np.ones((len(leak), 1), dtype=bool)])
        table[:, -1] = True
    splits = SequenceSplits(rows, exposed, request.length, reverses)
    return InfluenceCurve(exposed, leak, request.length, tuple(labels), table, splits)


def _reversed(pairs: Pairs) -> Integers:
    number = {pair: k for k, pair in enumerate(pairs)}
    return np.array([number[(b, a)] for a, b in pairs], dtype=np.int64)


def _words(request: CurveRequest, pairs: Pairs, entry: str) -> Mapping[Side, str]:
    """What each side of a pair is called: 'ward|hall', or '3=ward|hall' if entries are apart."""
    before = f"{entry}=" if entry else ""
    sides = dict.fromkeys(side for pair in pairs for side in pair)
    return {side: before + request.side_name(side) for side in sides}
