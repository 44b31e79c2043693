r"""Sums over all datasets, by messages along a junction tree (Shafer & Shenoy 1990).

The message from clique c to its neighbour d is the product of the tables on c's side of their
separator, summed over everything else on that side. Nothing is ever subtracted or divided, so
every cell keeps a small relative error: ``roundings`` counts it in units of 2⁻⁵³. Tables are
rescaled by powers of two, which is exact; only ratios within one table mean anything. A cell is 0
if and only if its state is impossible: a product that could underflow is refused instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from takifugu.errors import InvalidPrior, TooLarge
from takifugu.numeric import Floats, Integers
from takifugu.priors.factors import Factor
from takifugu.translation.network.junction_tree import JunctionTree

DEEPEST = -960  # binary exponent below which a product could underflow


@dataclass(frozen=True, eq=False)
class Weights:
    """A table over ``scope``, one axis for each entry, known up to one common factor."""

    scope: tuple[int, ...]
    table: Floats
    roundings: int
    least: int  # a binary exponent below every positive cell

    @classmethod
    def of(cls, scope: tuple[int, ...], table: Floats, roundings: int) -> "Weights":
        """Rescale ``table`` so that its largest cell is between ½ and 1."""
        top = int(np.frexp(table.max())[1])
        scaled = np.ldexp(table, -top)
        if table.size and not scaled.any():
            raise InvalidPrior(
                "factors",
                given="allow no dataset at all",
                needed="leave at least one possible",
                reason="impossible",
            )
        positive = scaled if scaled.all() else scaled[scaled > 0]
        return cls(scope, scaled, roundings, int(np.frexp(positive.min())[1]) - 1)

    def onto(self, scope: Sequence[int]) -> "Weights":
        """The sums over all entries but ``scope``, with axes in the order of ``scope``."""
        kept = tuple(v for v in self.scope if v in scope)
        gone = tuple(axis for axis, v in enumerate(self.scope) if v not in scope)
        sums = self.table.sum(axis=gone)
        terms = self.table.size // max(sums.size, 1)
        return Weights.of(
            tuple(scope), np.transpose(sums, [kept.index(v) for v in scope]), self.roundings + terms
        )


def product(scope: Sequence[int], sizes: Sequence[int], parts: Sequence[Weights]) -> Weights:
    """The product of tables over parts of ``scope``."""
    place = {v: axis for axis, v in enumerate(scope)}
    table = np.ones(tuple(sizes[v] for v in scope))
    least, roundings = 0, 0
    for part in parts:
        least, roundings = least + part.least, roundings + part.roundings + 1
        if least < DEEPEST:
            raise TooLarge(
                "the weights of this model span more than float64 can hold",
                field="factors",
                reason="range",
            )
        order = np.argsort([place[v] for v in part.scope])
        axes = [1] * len(place)
        for v in part.scope:
            axes[place[v]] = sizes[v]
        table *= np.transpose(part.table, order).reshape(axes)
    return Weights.of(tuple(scope), table, roundings)


class PartitionSums:
    """A product of tables on a junction tree, with all messages in both directions.

    ``extra`` holds further weights on single entries (tilts, evidence), each with up to four
    roundings of its own.
    """

    def __init__(
        self,
        tree: JunctionTree,
        factors: Sequence[Factor],
        extra: Mapping[int, Floats] | None = None,
    ) -> None:
        self.tree = tree
        own: list[list[Weights]] = [[] for _ in tree.cliques]
        given = [(factor.scope, factor.table, 0) for factor in factors]
        given += [((entry,), table, 4) for entry, table in (extra or {}).items()]
        for scope, table, roundings in given:
            fits = (c for c in tree.holding(scope[0]) if set(scope) <= set(tree.cliques[c]))
            own[next(fits)].append(Weights.of(scope, table, roundings))
        self._own = [
            product(scope, tree.sizes, parts)
            for scope, parts in zip(tree.cliques, own, strict=True)
        ]
        self._sent: dict[tuple[int, int], Weights] = {}
        count = len(tree.cliques)
        for c in range(count - 1, 0, -1):
            self._send(c, tree.parents[c])
        for c in range(1, count):
            self._send(tree.parents[c], c)

    def _send(self, one: int, other: int) -> None:
        self._sent[one, other] = self.clique(one, but=other).onto(self.tree.separator(one, other))

    def sent(self, one: int, other: int) -> Weights:
        """The message from a clique to its neighbour: weights of the separator's states."""
        return self._sent[one, other]

    def clique(self, clique: int, *, but: int = -1) -> Weights:
        """Weights of a clique's states, from all of the model, or without neighbour ``but``'s side.

        Without that side the ratios are still those of the law given the separator's state.
        """
        near = [self._sent[c, clique] for c in self.tree.around(clique) if c != but]
        if not near:
            return self._own[clique]
        return product(self.tree.cliques[clique], self.tree.sizes, [self._own[clique], *near])

    def entry(self, entry: int) -> Weights:
        """Weights of the values of one entry."""
        return self.clique(self.tree.holding(entry)[0]).onto((entry,))


def positions(scope: Sequence[int], part: Sequence[int], sizes: Sequence[int]) -> Integers:
    """``[state of scope]``: the number of the state that it gives to ``part``."""
    shape = tuple(sizes[v] for v in scope)
    grid = np.indices(shape, dtype=np.int64).reshape(len(shape), -1)
    number = np.zeros(grid.shape[1], dtype=np.int64)
    for v in part:
        number = number * sizes[v] + grid[list(scope).index(v)]
    return number
