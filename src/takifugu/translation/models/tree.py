"""Priors whose law is a product of tables: networks, fields, rows, listed and independent entries.

A `Tree` problem has tables on a few entries each, what changes of values cost, and secret pairs. A
`JunctionTree` joins overlapping *cliques* of entries, such that every table fits into a clique and
the cliques that hold an entry are connected. What two neighbouring cliques share, their
*separator*, then cuts the model in two halves that are independent once its state is known
(Lauritzen & Spiegelhalter 1988). A listed prior is one table on all entries, and so one clique;
independent entries have one table each, and separators without entries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from takifugu._core.numeric import Floats, frozen
from takifugu.priors.networks import Factor, NetworkPrior, Sides, secret_pair
from takifugu.priors.secrets import SecretPair
from takifugu.priors.universe import Name
from takifugu.translation.bounds import EXACT


@dataclass(frozen=True, eq=False)
class Tree:
    """A law that is proportional to a product of tables, with costs.

    Attributes:
        sizes: How many values each entry has.
        tables: The tables whose product is the law.
        costs: For each entry ``[u, v]``: what the change from value u to value v costs.
        together: For groups of entries an ε that any change of a group costs beside, however many
            of its entries change.
        roundings: How many relative roundings a cell of the tables can be off by.
    """

    sizes: tuple[int, ...]
    tables: tuple[Factor, ...]
    costs: tuple[Floats, ...]
    together: Mapping[tuple[int, ...], float]
    roundings: int = 0

    @classmethod
    def from_model(
        cls,
        model: NetworkPrior,
        costs: tuple[Floats, ...],
        together: Mapping[tuple[int, ...], float] | None = None,
    ) -> "Tree":
        """Of a network or field."""
        beside = {tuple(sorted(group)): value for group, value in (together or {}).items()}
        return cls(tuple(map(len, model.states)), model.factors(), costs, beside)


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, and the tree that joins them.

    Attributes:
        sizes: How many values each entry has.
        cliques: The entries of each clique, in increasing order.
        parents: For each clique the one above it, which stands before it; −1 for the first.
    """

    sizes: tuple[int, ...]
    cliques: tuple[tuple[int, ...], ...]
    parents: tuple[int, ...]

    def is_valid_for(self, problem: Tree) -> bool:
        """Whether it is a tree, cliques with an entry are connected, and every table fits in one.

        An entry is in a connected set of cliques if just one of them has a parent without it.
        """
        count = len(self.cliques)
        if not count or len(self.parents) != count or self.sizes != problem.sizes:
            return False
        if self.parents[0] != -1 or any(not 0 <= self.parents[c] < c for c in range(1, count)):
            return False
        tops = [0] * len(self.sizes)
        for c, scope in enumerate(self.cliques):
            if list(scope) != sorted(set(scope)) or not set(scope) <= set(range(len(self.sizes))):
                return False
            above = self.cliques[self.parents[c]] if c else ()
            for v in scope:
                tops[v] += v not in above
        scopes = (*(table.scope for table in problem.tables), *problem.together)
        return all(top == 1 for top in tops) and all(
            self.clique_with(scope) >= 0 for scope in scopes
        )

    def clique_with(self, scope: Sequence[int]) -> int:
        """The first clique, of those with few states, that holds all of ``scope``; −1 if none."""
        if not scope:
            return 0
        inside = set(scope)
        fits = (c for c in self.holding(scope[0]) if inside <= set(self.cliques[c]))
        return next(fits, -1)

    def separator(self, clique: int, neighbour: int) -> tuple[int, ...]:
        """What two neighbouring cliques share, in increasing order."""
        return tuple(v for v in self.cliques[clique] if v in self.cliques[neighbour])

    def around(self, clique: int) -> tuple[int, ...]:
        """The neighbours of a clique: the one above first."""
        return self._around[clique]

    @cached_property
    def _around(self) -> tuple[tuple[int, ...], ...]:
        near: list[list[int]] = [[] for _ in self.cliques]
        for c, parent in enumerate(self.parents):
            if parent >= 0:
                near[c].insert(0, parent)
                near[parent].append(c)
        return tuple(map(tuple, near))

    def shape(self, scope: Sequence[int]) -> tuple[int, ...]:
        """How many values each of these entries has."""
        return tuple(self.sizes[v] for v in scope)

    def states(self, clique: int) -> int:
        """How many states a clique has."""
        return prod(self.shape(self.cliques[clique]))

    def holding(self, entry: int) -> tuple[int, ...]:
        """The cliques that hold ``entry``, the one with the fewest states first."""
        return self._holding[entry]

    @cached_property
    def _holding(self) -> tuple[tuple[int, ...], ...]:
        holding: list[list[int]] = [[] for _ in self.sizes]
        for c in sorted(range(len(self.cliques)), key=self.states):
            for v in self.cliques[c]:
                holding[v].append(c)
        return tuple(map(tuple, holding))


def any_change(sizes: Sequence[int], scope: Sequence[int], epsilon: float) -> Floats:
    """``[state, state]``: ε between all different states of a group of entries."""
    return epsilon * (1.0 - np.eye(prod(sizes[v] for v in scope)))


@dataclass(frozen=True, eq=False)
class NetworkLosses:
    """Bounds on the Pufferfish loss of every secret pair of a network or field.

    Attributes:
        entries: What the entries are called.
        epsilon: ``[entry]``: the total ε spent on each.
        pairs: The ordered secret pairs.
        upper: ``[pair]``: no per-entry ε-DP mechanism loses more; −∞ for a pair of which one side
            cannot happen.
        by_entry: ``[entry]``: the largest over its pairs; −∞ if it has none.
        lower: ``[pair]``: some mechanism loses at least this much; 0 if none was looked for.
        summed: Whether both are a closed form; digits may be lost at an ε next to nothing.
    """

    entries: tuple[Name, ...]
    epsilon: Floats
    pairs: tuple[SecretPair, ...]
    upper: Floats
    by_entry: Floats
    lower: Floats
    summed: bool = False

    @classmethod
    def from_bounds(
        cls,
        model: NetworkPrior,
        epsilon: Floats,
        sides: Mapping[int, Sides],
        bounds: Mapping[int, Sequence[float] | Floats],
    ) -> "NetworkLosses":
        """Of upper bounds on the losses of the pairs of each entry, ``[pair]``."""
        by_entry = np.full(len(model.entries), -np.inf)
        by_entry[list(sides)] = [max(bounds[entry]) for entry in sides]
        pairs = [secret_pair(model, entry, pair) for entry in sides for pair in sides[entry]]
        upper = np.concatenate([*(bounds[entry] for entry in sides), np.zeros(0)])
        listed = tuple(pairs), frozen(upper), frozen(by_entry)
        return cls(model.entries, epsilon, *listed, frozen(np.zeros(len(pairs))))

    @property
    def loss(self) -> float:
        """The largest upper bound of all; 0 if no pair is possible."""
        return float(self.upper.max(initial=0.0))

    @property
    def attained(self) -> float:
        """The largest lower bound: some pair loses at least this much."""
        return float(self.lower.max(initial=0.0))

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return self.loss - self.attained

    @property
    def exact(self) -> bool:
        """Whether it is a closed form, whose largest bounds agree to a relative 1e-6."""
        return self.summed and self.attained >= (1 - EXACT) * self.loss

    @property
    def binding(self) -> SecretPair | None:
        """The pair with the largest upper bound; None if no pair is possible."""
        if not np.isfinite(self.upper).any():
            return None
        return self.pairs[int(np.argmax(self.upper))]
