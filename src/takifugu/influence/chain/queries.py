"""What is asked of a sequence of entries: which pairs, how far, in which reading."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.numeric import Integers
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name

USUAL = 100  # how many exposed entries a curve goes up to unless told otherwise
SHORT = 40  # a sequence of up to so many entries gets all of its curve
ROOM = 2**24  # numbers in a curve
WHOLE = Secrets()  # every entry, every pair of values

Side = tuple[int, ...]


@dataclass(frozen=True)
class Wanted:
    """A question to a sequence: which pairs of states, how far, and in which reading.

    Attributes:
        states: The names of the states.
        length: How many entries there are; None if there is no end.
        most: The largest number of exposed entries, besides all of them.
        single: Ordered pairs of single states, and ``grouped``: of groups of states.
        symmetric: Whether one split must serve both directions of a pair.
        by_entry: Whether rows of different entries are kept apart; None: if there is room.
    """

    states: tuple[Name, ...]
    length: int | None
    most: int
    single: tuple[tuple[Side, Side], ...]
    grouped: tuple[tuple[Side, Side], ...]
    entries: tuple[int, ...] | None
    symmetric: bool
    by_entry: bool | None

    @cached_property
    def left(self) -> Integers:
        """``[pair]``: the left state of each single pair."""
        return np.array([a[0] for a, _ in self.single], dtype=np.int64)

    @cached_property
    def right(self) -> Integers:
        """``[pair]``: the right state of each single pair."""
        return np.array([b[0] for _, b in self.single], dtype=np.int64)

    def apart(self, entries: int) -> bool:
        """Whether to keep the rows of so many entries apart; an error if asked in vain."""
        pairs = len(self.single) + len(self.grouped)
        size = entries * pairs * (self.most + 1)
        if self.by_entry and size > ROOM:
            raise TooLarge(
                f"{entries:,} entries with {pairs:,} pairs each make a curve of {size:,} numbers,"
                f" more than {ROOM:,}; take by_entry=False, or a smaller max_exposed"
            )
        return size <= ROOM if self.by_entry is None else self.by_entry


def wanted(
    states: tuple[Name, ...],
    length: int | None,
    secrets: Secrets,
    *,
    max_exposed: int | None,
    symmetric: bool,
    by_entry: bool | None,
) -> Wanted:
    """Check the question, and fill in what was left open."""
    sides = secrets.sides(states)
    if not sides:
        raise InvalidWorld("secrets", given="hold no pair", needed="ask about two states at least")
    if max_exposed is None:
        most = USUAL
        if length is not None:
            small = length <= SHORT and length * length * len(sides) <= ROOM // 4
            most = length if small else min(USUAL, max((length - 1) // 2, 1))
    elif isinstance(max_exposed, bool) or not isinstance(max_exposed, int | np.integer):
        raise UnsoundRequest(f"max_exposed is {max_exposed!r}; it must be a whole number")
    elif max_exposed < 1:
        raise UnsoundRequest(f"max_exposed is {max_exposed}; it must be 1 or more")
    else:
        most = int(max_exposed if length is None else min(max_exposed, length))
    if len(sides) * most > 2 * ROOM:
        raise TooLarge(
            f"{len(sides):,} secret pairs with {most:,} exposed entries need {len(sides) * most:,}"
            f" numbers, more than {2 * ROOM:,}; take a smaller max_exposed or fewer pairs"
        )
    chosen = None if secrets.entries is None else tuple(_time(e, length) for e in secrets.entries)
    return Wanted(
        states,
        length,
        most,
        tuple(pair for pair in sides if len(pair[0]) == len(pair[1]) == 1),
        tuple(pair for pair in sides if max(len(pair[0]), len(pair[1])) > 1),
        chosen,
        symmetric,
        by_entry,
    )


def _time(entry: Name, length: int | None) -> int:
    if isinstance(entry, int) and entry >= 0 and (length is None or entry < length):
        return entry
    last = "" if length is None else f" up to {length - 1}"
    raise InvalidWorld(
        "secrets", given=f"name the entry {entry!r}", needed=f"name entries 0, 1, …{last}"
    )
