"""Laws that are products of small tables: Bayesian networks and random fields alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np

from takifugu.errors import InvalidPrior, TooLarge
from takifugu.fingerprint import ByContent
from takifugu.numeric import LEAST, Floats, frozen
from takifugu.priors.explicit import Explicit
from takifugu.priors.universe import Name, Tables

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


def neighbours(model: FactorModel) -> tuple[frozenset[int], ...]:
    """For every entry, the entries it shares a table with (the moral graph)."""
    around: list[set[int]] = [set() for _ in model.entries]
    for factor in model.factors():
        for entry in factor.scope:
            around[entry].update(factor.scope)
    return tuple(frozenset(found - {entry}) for entry, found in enumerate(around))


def written_out(model: FactorModel) -> Explicit:
    """The same law with one probability for every dataset; for small models only."""
    shape = tuple(len(states) for states in model.states)
    if prod(shape) > WRITTEN_OUT:
        raise TooLarge(
            f"{model.name!r} has {prod(shape):,} datasets; at most {WRITTEN_OUT:,} are written out."
            " Use the network itself, or fewer entries."
        )
    weight = np.ones(shape)
    for factor in model.factors():
        axes = [1] * len(shape)
        for entry in factor.scope:
            axes[entry] = shape[entry]
        ordered = np.transpose(factor.table, np.argsort(factor.scope))
        weight = weight * ordered.reshape(axes)
    total = float(weight.sum())
    if not 0 < total < np.inf:
        raise InvalidPrior(
            "factors", given="allow no dataset at all", needed="leave at least one possible"
        )
    values = dict(zip(model.entries, model.states, strict=True))
    return Explicit(Tables.of(values), weight.ravel() / total, model.name)


def checked_names(
    entries: Sequence[Name], states: Sequence[Sequence[Name]]
) -> tuple[tuple[Name, ...], tuple[tuple[Name, ...], ...]]:
    """Entries and their values as tuples, after checking that none is missing or named twice."""
    names, values = tuple(entries), tuple(tuple(given) for given in states)
    if not names or len(set(names)) != len(names):
        raise InvalidPrior("entries", given="are empty or repeat a name", needed="name each once")
    if len(values) != len(names):
        raise InvalidPrior(
            "states",
            given=f"are given for {len(values)} entries",
            needed=f"be given for each of the {len(names)} entries",
        )
    for name, domain in zip(names, values, strict=True):
        if not domain or len(set(domain)) != len(domain):
            raise InvalidPrior(
                "states",
                given=f"of entry {name!r} are empty or repeat themselves",
                needed="list each value of the entry once",
            )
    return names, values


def checked_weights(values: object, field: str) -> Floats:
    """A frozen table of weights: finite, 0 or at least 2⁻⁵⁰⁰, and not all 0."""
    try:
        table = frozen(values)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
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
    if not (table > 0).any():
        raise InvalidPrior(field, given="is 0 everywhere", needed="allow at least one state")
    return table
