"""What a curve of a sequence must cover: which secret pairs, how many exposed entries."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from takifugu.errors import InvalidWorld, TooLarge, UnsoundRequest
from takifugu.numeric import Integers
from takifugu.priors.prior import state_text
from takifugu.priors.secrets import Secrets
from takifugu.priors.universe import Name, State

USUAL = 100  # the largest number of exposed entries by default
SHORT = 40  # a sequence of up to so many entries gets all of its curve
ROOM = 2**24  # numbers in a curve
WHOLE = Secrets()  # every entry, every pair of values

Side = tuple[int, ...]


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
    single: tuple[tuple[Side, Side], ...]
    grouped: tuple[tuple[Side, Side], ...]
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
        if self.by_entry and size > ROOM:
            raise TooLarge(
                f"{entries:,} entries with {pairs:,} pairs each make a curve of {size:,} numbers,"
                f" more than {ROOM:,}; take by_entry=False, or a smaller max_exposed",
                field="by_entry",
                size=size,
                limit=ROOM,
            )
        return size <= ROOM if self.by_entry is None else self.by_entry


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
        most = USUAL
        if length is not None:
            small = length <= SHORT and length * length * len(sides) <= ROOM // 4
            most = length if small else min(USUAL, max((length - 1) // 2, 1))
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
    if len(sides) * most > 2 * ROOM:
        raise TooLarge(
            f"{len(sides):,} secret pairs with {most:,} exposed entries need {len(sides) * most:,}"
            f" numbers, more than {2 * ROOM:,}; take a smaller max_exposed or fewer pairs",
            field="max_exposed",
            size=len(sides) * most,
            limit=2 * ROOM,
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
