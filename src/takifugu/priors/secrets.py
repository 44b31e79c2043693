"""Secrets: pairs of statements about the data that an output must not distinguish."""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import numpy as np

from takifugu._core.exact import Number, exactly
from takifugu._core.numeric import Booleans
from takifugu.errors import InvalidWorld, UnsoundRequest
from takifugu.priors.universe import Name, State, Tables, Universe


@dataclass(frozen=True)
class EntryIs:
    """The statement "this entry has one of these values"."""

    entry: Name
    values: tuple[Hashable, ...]

    def __str__(self) -> str:
        return f"{self.entry}={'|'.join(map(str, self.values))}"

    def mask(self, universe: Universe) -> Booleans:
        """``[dataset]``: where the statement is true."""
        if not isinstance(universe, Tables):
            raise InvalidWorld(
                "secret",
                given=f"{self} speaks of an entry, but the datasets are not tables",
                needed="be a named statement, or the datasets be tables over entries and values",
            )
        column = universe.entry(self.entry)
        domain = universe.values[column]
        for value in self.values:
            if value not in domain:
                raise InvalidWorld(
                    "secret",
                    given=f"{self} names a value that entry {self.entry!r} never has",
                    needed=f"use its values {', '.join(map(repr, domain[:12]))}",
                )
        allowed = [domain.index(value) for value in self.values]
        return np.isin(universe.codes[:, column], allowed)


@dataclass(frozen=True)
class Holds:
    """A named statement about the whole dataset, true where ``predicate`` says so."""

    name: str
    predicate: Callable[[Any], bool]

    def __str__(self) -> str:
        return self.name

    def mask(self, universe: Universe) -> Booleans:
        """``[dataset]``: where the statement is true."""
        try:
            return np.array([bool(self.predicate(d)) for d in universe.datasets], dtype=bool)
        except Exception as error:
            raise InvalidWorld(
                "secret",
                given=f"{self.name!r} failed with {type(error).__name__} on a dataset",
                needed="say true or false of every dataset",
            ) from error


@dataclass(frozen=True)
class OneOf:
    """A named statement given by the datasets of which it is true."""

    name: str
    datasets: tuple[Hashable, ...]

    def __str__(self) -> str:
        return self.name

    def mask(self, universe: Universe) -> Booleans:
        """``[dataset]``: where the statement is true."""
        mask = np.zeros(len(universe), dtype=bool)
        mask[[universe.position(dataset) for dataset in self.datasets]] = True
        return mask


Secret = EntryIs | Holds | OneOf


@dataclass(frozen=True)
class SecretPair:
    """An ordered pair of mutually exclusive statements: is it ``left``, or is it ``right``?"""

    left: Secret
    right: Secret

    def __str__(self) -> str:
        return f"{self.left} / {self.right}"

    @property
    def reversed(self) -> "SecretPair":
        """The same pair with its sides exchanged."""
        return SecretPair(self.right, self.left)


def both_ways(pairs: Iterable[SecretPair]) -> tuple[SecretPair, ...]:
    """Every pair followed by its reverse, each once, in order of first appearance."""
    return tuple(dict.fromkeys(p for pair in pairs for p in (pair, pair.reversed)))


def entry_pairs(
    universe: Tables,
    *,
    entries: Sequence[Name] | None = None,
    values: Mapping[Name, Iterable[tuple[Hashable, Hashable]]] | None = None,
) -> tuple[SecretPair, ...]:
    """The default secrets: "entry i is x" against "entry i is y", every i, x ≠ y, both ways.

    ``entries`` keeps only some entries, ``values`` only some (unordered) value pairs of an entry.
    """
    chosen = universe.entries if entries is None else tuple(entries)
    for name in values or ():
        universe.entry(name)  # an unknown name is an error, not ignored
    pairs = []
    for name in chosen:
        domain = universe.values[universe.entry(name)]
        chosen_pairs: Iterable[tuple[Hashable, Hashable]] = permutations(domain, 2)
        if values is not None and name in values:
            chosen_pairs = values[name]
        pairs += [SecretPair(EntryIs(name, (x,)), EntryIs(name, (y,))) for x, y in chosen_pairs]
    return both_ways(pairs)


@dataclass(frozen=True)
class Secrets:
    """Which statements about single entries are secret, for priors that are not written out.

    By default every entry, and all pairs of different values, both ways. ``pairs`` keeps chosen
    pairs only, such as "hospital" against "home"; a side may be a group of values.

    For entries that are real numbers ``within`` is needed instead: the pairs are "which of two
    numbers at most that far apart".

    >>> Secrets(within=10).within
    Fraction(10, 1)
    >>> Secrets(pairs=((("ward",), ("home", "work")),)).sides(("home", "work", "ward"))
    (((2,), (0, 1)), ((0, 1), (2,)))
    """

    entries: tuple[Name, ...] | None = None
    pairs: tuple[tuple[tuple[State, ...], tuple[State, ...]], ...] | None = None
    within: Number | None = field(default=None, metadata={"unless_default": True}, kw_only=True)

    def __post_init__(self) -> None:
        if self.within is not None:
            object.__setattr__(self, "within", _distance(self.within))
            if self.pairs is not None:
                raise InvalidWorld(
                    "secrets",
                    given="have both `pairs` and `within`",
                    needed="have `pairs` of labels, or numbers `within` a distance",
                )
        if self.entries is not None:
            object.__setattr__(self, "entries", _names(self.entries, "entries"))
        if self.pairs is not None:
            object.__setattr__(self, "pairs", _groups(self.pairs))

    @classmethod
    def of_column(
        cls,
        column: str,
        columns: Sequence[str],
        states: Sequence[Hashable],
        *,
        pairs: Sequence[tuple[Sequence[Name], Sequence[Name]]] | None = None,
        entries: tuple[Name, ...] | None = None,
    ) -> "Secrets":
        """What ``column`` is, in joint ``states`` of ``columns``: x against y, whatever the others.

        Every pair of its values, or chosen ``pairs`` of groups of them.

        >>> joint = (("home", "ill"), ("home", "well"), ("out", "well"))
        >>> Secrets.of_column("health", ("place", "health"), joint).sides(joint)
        (((0,), (1, 2)), ((1, 2), (0,)))
        """
        if column not in columns:
            raise InvalidWorld(
                "secrets",
                given=f"are about column {column!r}",
                needed=f"be about one of {', '.join(columns)}",
            )
        place, of_value = tuple(columns).index(column), dict[Name, list[State]]()
        for state in states:
            if not isinstance(state, tuple) or len(state) != len(columns):
                raise InvalidWorld(
                    "states", given="hold no joint states", needed="be tuples, a value a column"
                )
            of_value.setdefault(state[place], []).append(state)
        chosen = pairs
        if chosen is None:
            chosen = [((x,), (y,)) for x, y in combinations(of_value, 2)]
        groups = []
        for pair in _groups(chosen):
            _refuse_unknown((*pair[0], *pair[1]), of_value)
            left, right = (tuple(s for v in side for s in of_value[v]) for side in pair)  # type: ignore[index]
            groups.append((left, right))
        return cls(entries=entries, pairs=tuple(groups))

    def sides(
        self, states: Sequence[Hashable]
    ) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Ordered pairs of sets of states, by number, for an entry that has these ``states``."""
        if self.pairs is None:
            return tuple(((x,), (y,)) for x, y in permutations(range(len(states)), 2))
        number: dict[Hashable, int] = {str(state): i for i, state in enumerate(states)}
        number.update({state: i for i, state in enumerate(states)})  # exact names come first
        ordered = []
        for left, right in self.pairs:
            _refuse_unknown((*left, *right), number, shown=states)
            a, b = (tuple(sorted({number[v] for v in side})) for side in (left, right))
            if set(a) & set(b):
                raise InvalidWorld(
                    "secrets",
                    given=f"set {left} against {right}",
                    needed="be pairs of groups of values that have no value in common",
                )
            ordered += [(a, b), (b, a)]
        return tuple(dict.fromkeys(ordered))


def _refuse_unknown(
    named: Iterable[Hashable], known: Collection[Hashable], *, shown: Sequence[Hashable] = ()
) -> None:
    """Raise unless all values that secrets name are known."""
    for value in named:
        if value not in known:
            use = ", ".join(map(repr, (shown or tuple(known))[:12]))
            raise InvalidWorld("secrets", given=f"name the value {value!r}", needed=f"use {use}")


def _distance(within: Any) -> Fraction:
    """A distance above 0, exactly."""
    try:
        distance = exactly(within, "within")
    except UnsoundRequest as error:
        raise InvalidWorld(
            "secrets, within", given="is not a number", needed="be a distance above 0"
        ) from error
    if not 0 < distance < 2**1000:
        raise InvalidWorld(
            "secrets, within",
            given="is not above 0, or beyond all measure",
            needed="be a distance above 0: which of two numbers at most that far apart",
        )
    return distance


def _groups(pairs: Any) -> tuple[tuple[tuple[State, ...], tuple[State, ...]], ...]:
    """Pairs of groups of values; at least one, since nothing is protected by none."""
    if not isinstance(pairs, Sequence) or isinstance(pairs, str) or not pairs:
        raise InvalidWorld(
            "secrets, pairs", given="are none", needed="be pairs, or be left out for all of them"
        )
    groups = []
    for pair in pairs:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InvalidWorld(
                "secrets, pairs", given="hold something else", needed="hold two groups each"
            )
        left, right = (_names(side, "pairs") for side in pair)
        groups.append((left, right))
    return tuple(groups)


def _names(names: Any, field: str) -> tuple[Name, ...]:
    """A group of names, which is a list also if it holds one: ("ward",); joint states as tuples."""
    if isinstance(names, Sequence) and not isinstance(names, str):
        names = [tuple(name) if isinstance(name, list) else name for name in names]
    if (
        not isinstance(names, Sequence)
        or isinstance(names, str)
        or not names
        or any(isinstance(name, bool) or not isinstance(name, Hashable) for name in names)
    ):
        raise InvalidWorld(
            f"secrets, {field}",
            given="hold something else than a list of names",
            needed="hold lists of at least one name, as ('ward',)",
        )
    return tuple(names)
