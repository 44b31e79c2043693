"""What all priors over sequences share: entries 0, 1, … that take one set of states."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from takifugu.errors import InvalidPrior
from takifugu.priors.prior import Prior
from takifugu.priors.universe import Name

LONGEST = 2**53  # entries of a sequence: beyond it float64 skips whole numbers


class SequencePrior(Prior):
    """A prior over a sequence: its entries are the times 0, 1, …, all with the same states.

    Implementers are dataclasses with the fields ``states`` and ``length``: `MarkovChain`,
    `IntervalMarkovChain`, `HigherOrderChain`.

    Attributes:
        states: The names of the states.
        length: The number of entries; None if it is unbounded.
    """

    states: tuple[Name, ...]
    length: int | None

    @property
    def entry_names(self) -> Sequence[Name] | None:
        """The times 0, 1, …; None if their number is unbounded."""
        return None if self.length is None else range(self.length)

    @property
    def entry_values(self) -> Sequence[tuple[Name, ...]]:
        """The states, once for all entries."""
        return (self.states,)

    @property
    def breadth(self) -> int:
        """The number of states."""
        return len(self.states)

    def facts(self) -> dict[str, Any]:
        """What `takifugu prior show` prints, beside kind and fingerprint."""
        names = [str(state) for state in self.states]
        return {"states": len(names), "names": names, "length": self.length}


def named_states(states: Sequence[Name], size: int) -> tuple[Name, ...]:
    """The names given, once each, or 0, 1, … if none were."""
    names = tuple(states) or tuple(range(size))
    if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in names):
        raise InvalidPrior(
            "states", given="holds something else", needed="hold strings or whole numbers"
        )
    if len(names) != size or len(set(names)) != size:
        raise InvalidPrior(
            "states",
            given=f"has {len(set(names))} different names",
            needed=f"name each of the {size} states once",
        )
    return names


def checked_length(length: object) -> int | None:
    """A number of entries, at least 1, or None for an unbounded sequence."""
    if length is None:
        return None
    if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
        raise InvalidPrior(
            "length", given=f"is {length!r}", needed="be a whole number of at least 1, or null"
        )
    if length > LONGEST:
        raise InvalidPrior(
            "length", given="is beyond 2^53", needed="be smaller, or null for an unbounded sequence"
        )
    return int(length)


def known_keys(
    document: Mapping[str, Any], kind: str, needed: Sequence[str], optional: Sequence[str]
) -> None:
    """Refuse a document of another kind, with a key missing, or with an unknown key."""
    if document.get("kind") != kind:
        raise InvalidPrior("kind", given=f"is {document.get('kind')!r:.60}", needed=f"be {kind!r}")
    known = ("kind", *needed, *optional)
    for key in document:
        if key not in known:
            near = get_close_matches(str(key), known, n=1, cutoff=0.0)
            raise InvalidPrior(
                str(key),
                given=f"is not a key of a {kind}",
                needed=f"be one of {', '.join(known)}; did you mean {near[0]!r}?",
            )
    for key in needed:
        if key not in document:
            raise InvalidPrior(key, given="is missing", needed=f"be given for a {kind}")


def listed_states(document: Mapping[str, Any]) -> tuple[Name, ...]:
    """The names of a document's states."""
    states = document.get("states", [])
    if not isinstance(states, list | tuple):
        raise InvalidPrior("states", given="is not a list", needed="list the names of the states")
    return tuple(states)
