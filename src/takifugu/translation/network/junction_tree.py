"""Junction trees: the entries of a model in overlapping cliques that hang together as a tree.

Every table of the model fits into a clique, and the cliques that hold an entry are connected. So
what two neighbouring cliques share, their *separator*, cuts the model in two independent halves
once its state is known (Lauritzen & Spiegelhalter 1988). Trees are found by eliminating entries
one by one, greedily; the smaller of two tries is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from math import prod

from takifugu.errors import TooLarge
from takifugu.priors.factors import FactorModel, neighbours


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

    def separator(self, one: int, other: int) -> tuple[int, ...]:
        """What two neighbouring cliques share, in increasing order."""
        return tuple(v for v in self.cliques[one] if v in self.cliques[other])

    def around(self, clique: int) -> tuple[int, ...]:
        """The neighbours of a clique: the one above first."""
        return self._around[clique]

    @cached_property
    def _around(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.cliques]
        for c, parent in enumerate(self.parents):
            if parent >= 0:
                found[c].insert(0, parent)
                found[parent].append(c)
        return tuple(map(tuple, found))

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
        found: list[list[int]] = [[] for _ in self.sizes]
        for c in sorted(range(len(self.cliques)), key=self.states):
            for v in self.cliques[c]:
                found[v].append(c)
        return tuple(map(tuple, found))


def junction_tree(
    model: FactorModel, *, largest: int, together: Sequence[Sequence[int]] = ()
) -> JunctionTree:
    """A junction tree of ``model`` whose cliques have at most ``largest`` states each.

    Each group of entries in ``together`` is in some clique, as if there were a table on it.
    """
    sizes = tuple(len(states) for states in model.states)
    around = [set(near) for near in neighbours(model)]
    for group in together:
        for v in group:
            around[v] |= set(group) - {v}
    wide = least_width(around)
    least = prod(sorted(sizes)[: wide + 1])
    if least > largest:
        raise TooLarge(
            f"{model.name!r} is too densely connected for an exact recursion: every junction tree"
            f" of it has a clique of {wide + 1} entries or more, and so {least:,} states; at most"
            f" {largest:,} are handled. Use the influence curve of the model instead",
            field="largest",
            size=least,
            limit=largest,
        )
    tries = [_cliques(around, sizes, badness, largest) for badness in (_fill, _weight)]
    fitting = [found for found in tries if _most(found, sizes) <= largest]
    if not fitting:
        widest = min(tries, key=lambda found: _most(found, sizes))
        most = _most(widest, sizes)
        raise TooLarge(
            f"{model.name!r} is too densely connected for an exact recursion: it has cliques of"
            f" {max(map(len, widest))} entries and {most:,} states, and at most {largest:,} are"
            " handled. Use the influence curve of the model instead",
            field="largest",
            size=most,
            limit=largest,
        )
    return _joined(
        sizes, min(fitting, key=lambda found: sum(_states(scope, sizes) ** 2 for scope in found))
    )


def least_width(given: Sequence[set[int]]) -> int:
    """A lower bound on the treewidth of a graph: every junction tree has a clique of one more.

    Contracting an edge does not raise the treewidth, and no graph has a lower one than its least
    degree. So an entry of least degree is merged with the neighbour that shares the fewest others
    with it, again and again, and the largest of the least degrees counts (Bodlaender & Koster,
    "Treewidth computations II", 2011).
    """
    around = {v: set(near) for v, near in enumerate(given)}
    queue = [(len(near), v) for v, near in around.items()]
    heapify(queue)
    best = 0
    while queue:
        degree, v = heappop(queue)
        if v not in around or len(around[v]) != degree:
            continue  # it was merged, or its degree has changed since
        best = max(best, degree)
        near = around.pop(v)
        if not near:
            continue
        into = min(near, key=lambda u: len(near & around[u]))
        for u in near:
            around[u].discard(v)
        for u in near - {into}:
            around[u].add(into)
            around[into].add(u)
        for u in near:
            heappush(queue, (len(around[u]), u))
    return best


def _most(cliques: list[frozenset[int]], sizes: tuple[int, ...]) -> int:
    return max(_states(scope, sizes) for scope in cliques)


def _states(scope: frozenset[int], sizes: tuple[int, ...]) -> int:
    return prod(sizes[v] for v in scope)


def _fill(v: int, around: list[set[int]], sizes: tuple[int, ...]) -> tuple[int, int]:
    """How many pairs of neighbours would have to be joined; then the states of the clique."""
    near = around[v]
    missing = sum(len(near - around[u]) - 1 for u in near) // 2
    return missing, _states(frozenset({v, *near}), sizes)


def _weight(v: int, around: list[set[int]], sizes: tuple[int, ...]) -> tuple[int, int]:
    """The states of the clique; then how many pairs would have to be joined."""
    fill, states = _fill(v, around, sizes)
    return states, fill


def _cliques(
    given: list[set[int]],
    sizes: tuple[int, ...],
    badness: Callable[[int, list[set[int]], tuple[int, ...]], tuple[int, int]],
    largest: int,
) -> list[frozenset[int]]:
    """Eliminate the entry of least badness, join its neighbours, go on; keep maximal cliques.

    It ends with the first clique that has more than ``largest`` states.
    """
    around = [set(near) for near in given]
    score = {v: badness(v, around, sizes) for v in range(len(sizes))}
    queue = [(score[v], v) for v in score]
    heapify(queue)
    found: list[frozenset[int]] = []
    holding: list[list[frozenset[int]]] = [[] for _ in sizes]  # the cliques that hold an entry
    while score:
        bad, v = heappop(queue)
        if score.get(v) != bad:
            continue  # it was eliminated, or its badness has changed since
        del score[v]
        near = around[v]
        scope = frozenset({v, *near})
        if not any(scope <= other for other in holding[v]):
            found.append(scope)
            for u in scope:
                holding[u].append(scope)
            if _states(scope, sizes) > largest:
                return found
        touched = set(near)
        for u in near:
            around[u].update(near)
            around[u] -= {u, v}
            touched |= around[u]
        for u in touched:
            score[u] = badness(u, around, sizes)
            heappush(queue, (score[u], u))
    return found


def _joined(sizes: tuple[int, ...], cliques: list[frozenset[int]]) -> JunctionTree:
    """Join the cliques by the largest separators (a maximum spanning tree), from the first on."""
    order, parents = [0], {0: -1}
    nearest = {c: (len(cliques[c] & cliques[0]), 0) for c in range(1, len(cliques))}
    while nearest:
        c = max(nearest, key=lambda k: nearest[k][0])
        parents[c] = nearest.pop(c)[1]
        order.append(c)
        for k in nearest:
            shared = len(cliques[k] & cliques[c])
            if shared > nearest[k][0]:
                nearest[k] = shared, c
    place = {c: k for k, c in enumerate(order)}
    return JunctionTree(
        sizes,
        tuple(tuple(sorted(cliques[c])) for c in order),
        tuple(-1 if parents[c] < 0 else place[parents[c]] for c in order),
    )
