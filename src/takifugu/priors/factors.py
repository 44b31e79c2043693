"""Laws that are products of small tables: Bayesian networks and random fields alike."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from takifugu._core.fingerprint import ByContent
from takifugu._core.numeric import LEAST, Floats, frozen, multiplied, vanished
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors.explicit import Explicit, refuse_vanishing
from takifugu.priors.prior import Prior
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name, Tables, distinct

Side = tuple[int, ...]  # a set of values of an entry, by number
Sides = tuple[tuple[Side, Side], ...]
WRITTEN_OUT = 2**20  # datasets that `written_out` makes at most


@dataclass(frozen=True, eq=False)
class Factor(ByContent):
    """A non-negative table over a few entries, given by their numbers: one axis for each."""

    scope: tuple[int, ...]
    table: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", frozen(self.table))


class FactorModel(Protocol):
    """A prior whose law is proportional to a product of tables.

    The law is the product divided by its total over all datasets. So a row of a Bayesian network
    that sums to 1 only up to rounding still makes one definite law.
    """

    @property
    def entries(self) -> tuple[Name, ...]:
        """What the entries are called."""

    @property
    def states(self) -> tuple[tuple[Name, ...], ...]:
        """The values of each entry, in order."""

    @property
    def name(self) -> str:
        """What the prior is called."""

    def factors(self) -> tuple[Factor, ...]:
        """The tables whose product is the law."""


class NetworkPrior(Prior):
    """A prior over named nodes, each with values of its own; both families are a `FactorModel`."""

    entries: tuple[Name, ...]
    states: tuple[tuple[Name, ...], ...]

    @property
    def entry_names(self) -> tuple[Name, ...]:
        """The nodes."""
        return self.entries

    @property
    def entry_values(self) -> tuple[tuple[Name, ...], ...]:
        """The values of each node."""
        return self.states

    @property
    def breadth(self) -> int:
        """The number of nodes."""
        return len(self.entries)


def neighbours(model: FactorModel) -> tuple[frozenset[int], ...]:
    """For every entry, the entries it shares a table with (the moral graph)."""
    around: list[set[int]] = [set() for _ in model.entries]
    for factor in model.factors():
        for entry in factor.scope:
            around[entry].update(factor.scope)
    return tuple(frozenset(found - {entry}) for entry, found in enumerate(around))


def secret_sides(model: FactorModel, secrets: Secrets) -> dict[int, Sides]:
    """The ordered secret pairs of each entry that has some; entries and values by number."""
    chosen = range(len(model.entries)) if secrets.entries is None else secrets.entries
    sides: dict[int, Sides] = {}
    known: dict[tuple[Name, ...], Sides] = {}
    for named in chosen:
        if secrets.entries is not None and named not in model.entries:
            raise InvalidPrior(
                "secrets", given=f"name the entry {named!r}", needed=f"use those of {model.name!r}"
            )
        entry = int(named) if secrets.entries is None else model.entries.index(named)
        states = model.states[entry]
        if states not in known:
            known[states] = secrets.sides(states)
        sides[entry] = known[states]
    return {entry: pairs for entry, pairs in sides.items() if pairs}


def secret_pair(model: FactorModel, entry: int, sides: tuple[Side, Side]) -> SecretPair:
    """Two sets of values of an entry as statements about it."""
    name, states = model.entries[entry], model.states[entry]
    left, right = (EntryIs(name, tuple(states[v] for v in side)) for side in sides)
    return SecretPair(left, right)


def written_out(model: FactorModel) -> Explicit:
    """The same law with one probability for every dataset; for small models only.

    A dataset that is possible but less likely than 2⁻⁵⁰⁰ is refused, never rounded to 0.
    """
    shape = tuple(len(states) for states in model.states)
    if prod(shape) > WRITTEN_OUT:
        raise TooLarge(
            f"{model.name!r} has {prod(shape):,} datasets; at most {WRITTEN_OUT:,} are written out."
            " Use the network itself, or fewer entries.",
            size=prod(shape),
            limit=WRITTEN_OUT,
        )
    parts = [np.ones(shape)]
    for factor in model.factors():
        axes = [1] * len(shape)
        for entry in factor.scope:
            axes[entry] = shape[entry]
        ordered = np.transpose(factor.table, np.argsort(factor.scope))
        parts.append(ordered.reshape(axes))
    weight, _, possible = multiplied(parts)
    if not possible.any():
        raise InvalidPrior(
            "factors", given="allow no dataset at all", needed="leave at least one possible"
        )
    values = dict(zip(model.entries, model.states, strict=True))
    law = weight.ravel() / float(weight.sum())
    refuse_vanishing(law, possible.ravel(), model.name)
    return Explicit(Tables.of(values), law, model.name)


def checked_names(
    entries: Sequence[Name], states: Sequence[Sequence[Name]]
) -> tuple[tuple[Name, ...], tuple[tuple[Name, ...], ...]]:
    """Entries and their values as tuples, after checking that none is missing or named twice."""
    names = listed_names(entries, "entries")
    values = tuple(listed_names(given, "states") for given in _listed(states, "states"))
    if not names or not distinct(names, "entries", InvalidPrior):
        raise InvalidPrior("entries", given="are empty or repeat a name", needed="name each once")
    if len(values) != len(names):
        raise InvalidPrior(
            "states",
            given=f"are given for {len(values)} entries",
            needed=f"be given for each of the {len(names)} entries",
        )
    for name, domain in zip(names, values, strict=True):
        if not domain or not distinct(domain, "states", InvalidPrior):
            raise InvalidPrior(
                "states",
                given=f"of entry {name!r} are empty or repeat themselves",
                needed="list each value of the entry once",
            )
    return names, values


def _listed(given: object, field: str) -> tuple[object, ...]:
    """A list as a tuple; a text is not a list of letters."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise InvalidPrior(field, given="is not a list", needed="be a list of names")
    return tuple(given)


def listed_names(given: object, field: str) -> tuple[Name, ...]:
    """Names, each a text or a whole number, as a tuple."""
    names: list[Name] = []
    for name in _listed(given, field):
        if isinstance(name, np.generic):
            name = name.item()
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise InvalidPrior(
                field,
                given=f"holds a {type(name).__name__}",
                needed="hold texts or whole numbers",
            )
        names.append(name)
    return tuple(names)


def checked_weights(values: object, field: str) -> Floats:
    """A frozen table of weights: finite, 0 or at least 2⁻⁵⁰⁰, and not all 0."""
    try:
        table = frozen(values)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidPrior(
            field, given="is not an array of numbers", needed="hold one number in each place"
        ) from error
    fits = (table == 0) | ((table >= LEAST) & (table <= 1 / LEAST))  # false for NaN
    if not fits.all():
        raise InvalidPrior(
            field,
            given=f"holds {table[~fits].ravel()[0]:g}",
            needed=f"hold weights that are 0 or between {LEAST:.3g} and {1 / LEAST:.3g}",
        )
    if vanished(values, table):
        raise InvalidPrior(
            field,
            given="holds a number that is not 0 but too small for float64",
            needed=f"hold weights that are 0 or between {LEAST:.3g} and {1 / LEAST:.3g}",
        )
    if not (table > 0).any():
        raise InvalidPrior(field, given="is 0 everywhere", needed="allow at least one state")
    return table
