"""Proposals for bounds along a junction tree: the tree, what is coupled, and the flows.

Trees are found by eliminating entries one by one, greedily; the smaller of two tries is taken. All
of a clique is coupled at once, which is never worse than one entry after the other, unless it has
too many states. If a separator has many states, only those that differ in few entries are coupled,
or it is bounded entry by entry. Nothing here is trusted: `takifugu.translation.certify.messages`
computes what it proves.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from math import isqrt, prod
from typing import Any, TypeVar, cast

import numpy as np

from takifugu._core.numeric import Integers
from takifugu.errors import TooLarge
from takifugu.priors.networks import NetworkPrior, neighbours
from takifugu.translation.certify.messages import (
    FIXED_WORK,
    Couplings,
    Flows,
    Messages,
    PossibleStates,
    Thresholds,
    Transports,
)
from takifugu.translation.models.tree import JunctionTree

Proposal = TypeVar("Proposal", bound=Callable[..., Any])
MAX_COUPLED_STATES = 128  # of R in one step; more are taken one group after another
MAX_LAST_STATES = 256  # that are coupled in the step to a secret, of which there are few
MAX_LAST_CELLS = 30_000_000  # cells of cost matrices in that step, of all pairs of values
MAX_SECOND_STATES = 512  # up to which a second clique that holds a secret is tried
MAX_SOLVED_CELLS = 15_000_000  # of cost matrices for which one message solves transport problems
MAX_SCANNED_CELLS = 30_000_000  # whose largest is looked up; beyond, it is estimated
MAX_PATH_STATES = 1_500  # between which shortest paths are found
MAX_COMPARED_PAIRS = 8_000_000  # of states that are looked at for the entries in which they differ
MAX_MERGED_STATES = 256  # of a clique that is made of several
MAX_MERGED_CELLS = 15_000_000  # of cost matrices for which merged cliques are tried in any case


class CouplingSearch:
    """A `takifugu.translation.certify.messages.Proof` that solves every problem as it is asked."""

    def __init__(
        self, tree: JunctionTree, *, at_once: int | None = None, merges: bool = False
    ) -> None:
        """``at_once``: how many states are coupled in the last step, however many pairs ask it."""
        self.tree, self.merges, self._at_once = tree, merges, at_once

    def ahead(self, law: PossibleStates, keep: tuple[int, ...], last: int) -> tuple[int, ...]:
        """The widest entries first, until few enough states are left."""
        sizes, most = self.tree.sizes, MAX_COUPLED_STATES
        if last:
            most = self._at_once or max(min(MAX_LAST_STATES, isqrt(MAX_LAST_CELLS // last)), 1)
        free = sorted((v for v in law.scope if v not in keep), key=lambda v: -sizes[v])
        if prod(sizes[v] for v in free) <= most:
            return ()
        if int(np.unique(law.number(keep, sizes), return_counts=True)[1].max()) <= most:
            return ()
        chunk = [free[0]]
        for v in free[1:]:
            if prod(sizes[u] for u in (*chunk, v)) <= MAX_COUPLED_STATES:
                chunk.append(v)
        return tuple(chunk)

    def pairs(
        self, keep: tuple[int, ...], there: Integers, widths: Integers
    ) -> tuple[Integers, Integers] | None:
        """All pairs of states, or those that differ in few entries; None if these are too many."""
        count = len(there)
        if count * count > MAX_COMPARED_PAIRS:
            return None
        differ = np.zeros((count, count), dtype=np.int8)
        for value in np.unravel_index(there, self.tree.shape(keep)):
            differ += value[:, None] != value[None, :]
        work = FIXED_WORK + np.outer(widths, widths)
        for most in range(len(keep), 0, -1):
            solved = float(work[(differ <= most) & (differ > 0)].sum())
            if solved <= MAX_SOLVED_CELLS or len(keep) == 1:
                break
        else:
            return None
        if most < len(keep) and count > MAX_PATH_STATES:
            return None
        lefts, rights = np.nonzero((differ <= most) & (differ > 0))
        return lefts, rights

    def couplings(self, problems: Transports, *, in_parts: bool) -> Couplings:
        """The best flows; simple couplings where they are too much work."""
        widths = problems.widths
        cells = float((FIXED_WORK + widths[problems.lefts] * widths[problems.rights]).sum())
        if in_parts and cells > MAX_SOLVED_CELLS:
            return self._thresholds(problems, looked_up=cells <= MAX_SCANNED_CELLS)
        return self._flows(problems)

    def last_cliques(self, entry: int) -> Sequence[int]:
        """The smallest clique that holds the entry, and all others that are small."""
        first, *others = self.tree.holding(entry)
        return (first, *(c for c in others if self.tree.states(c) <= MAX_SECOND_STATES))

    @staticmethod
    def _flows(problems: Transports) -> Flows:
        from takifugu.translation.search import coupling_loops

        lefts, rights, widths = problems.lefts, problems.rights, problems.widths
        first = np.cumsum(np.append(0, widths[lefts] + widths[rights] - 1))
        source, sink = (np.zeros(first[-1], dtype=np.int64) for _ in range(2))
        mass = np.zeros(first[-1])

        def work(begin: int, end: int) -> None:
            flows = first[begin : end + 1], source, sink, mass
            coupling_loops.propose(*problems.part(begin, end), *flows)

        problems.share(work)
        return Flows(first, source, sink, mass)

    @staticmethod
    def _thresholds(problems: Transports, *, looked_up: bool) -> Thresholds:
        from takifugu.translation.search import coupling_loops

        tau = np.ones(len(problems.lefts))
        ceiling = -1.0 if looked_up else problems.ceiling

        def work(begin: int, end: int) -> None:
            proposed = problems.match, ceiling, tau[begin:end]
            coupling_loops.propose_thresholds(*problems.part(begin, end), *proposed)

        problems.share(work)
        return Thresholds(tau, looked_up)


class RecordingSearch:
    """A search that writes down everything that it proposes."""

    def __init__(self, tree: JunctionTree) -> None:
        search, self.tree = CouplingSearch(tree), tree
        self.merges = search.merges
        self._choices: list[Any] = []
        self.ahead, self.pairs = self._noting(search.ahead), self._noting(search.pairs)
        self.couplings = self._noting(search.couplings)
        self.last_cliques = self._noting(search.last_cliques)

    def _noting(self, propose: Proposal) -> Proposal:
        def noted(*given: Any, **options: Any) -> Any:
            self._choices.append(propose(*given, **options))
            return self._choices[-1]

        return cast("Proposal", noted)

    @property
    def messages(self) -> Messages:
        """The proof, once it has been walked through."""
        return Messages(self.tree, tuple(self._choices))


def messages_to_document(proof: Messages) -> dict[str, Any]:
    """A proof as lists and numbers."""
    tree = proof.tree
    return {
        "sizes": list(tree.sizes),
        "cliques": [list(scope) for scope in tree.cliques],
        "parents": list(tree.parents),
        "choices": [_choice_to_document(choice) for choice in proof.choices],
    }


def messages_from_document(document: Mapping[str, Any]) -> Messages:
    """What `messages_to_document` wrote."""
    tree = JunctionTree(
        tuple(document["sizes"]),
        tuple(tuple(scope) for scope in document["cliques"]),
        tuple(document["parents"]),
    )
    return Messages(tree, tuple(map(_choice_from_document, document["choices"])))


def _choice_to_document(choice: Any) -> dict[str, Any]:
    match choice:
        case Flows(first, source, sink, mass):
            parts = {"first": first, "source": source, "sink": sink, "mass": mass}
            return {name: part.tolist() for name, part in parts.items()}
        case Thresholds(tau, looked_up):
            return {"tau": tau.tolist(), "looked_up": looked_up}
        case (np.ndarray() as lefts, np.ndarray() as rights):
            return {"lefts": lefts.tolist(), "rights": rights.tolist()}
        case None:
            return {"parts": True}
        case _:
            return {"numbers": [int(v) for v in choice]}


def _choice_from_document(document: Mapping[str, Any]) -> Any:
    match document:
        case {"mass": mass, "first": first, "source": source, "sink": sink}:
            begin, tail, head = (np.array(part, dtype=np.int64) for part in (first, source, sink))
            return Flows(begin, tail, head, np.array(mass))
        case {"tau": tau, "looked_up": looked_up}:
            return Thresholds(np.array(tau), looked_up)
        case {"lefts": lefts, "rights": rights}:
            return np.array(lefts, dtype=np.int64), np.array(rights, dtype=np.int64)
        case {"numbers": numbers}:
            return tuple(numbers)
        case _:
            return None


def junction_tree(
    model: NetworkPrior, *, largest: int, together: Sequence[Sequence[int]] = ()
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
    fitting = [cliques for cliques in tries if _most(cliques, sizes) <= largest]
    if not fitting:
        widest = min(tries, key=lambda cliques: _most(cliques, sizes))
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
        sizes,
        min(fitting, key=lambda cliques: sum(_states(scope, sizes) ** 2 for scope in cliques)),
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
    cliques: list[frozenset[int]] = []
    holding: list[list[frozenset[int]]] = [[] for _ in sizes]  # the cliques that hold an entry
    while score:
        bad, v = heappop(queue)
        if score.get(v) != bad:
            continue  # it was eliminated, or its badness has changed since
        del score[v]
        near = around[v]
        scope = frozenset({v, *near})
        if not any(scope <= other for other in holding[v]):
            cliques.append(scope)
            for u in scope:
                holding[u].append(scope)
            if _states(scope, sizes) > largest:
                return cliques
        touched = set(near)
        for u in near:
            around[u].update(near)
            around[u] -= {u, v}
            touched |= around[u]
        for u in touched:
            score[u] = badness(u, around, sizes)
            heappush(queue, (score[u], u))
    return cliques


def proposed_trees(
    model: NetworkPrior, *, largest: int, together: Sequence[Sequence[int]] = ()
) -> Iterator[JunctionTree]:
    """A junction tree of small cliques; and one of larger ones, where that is little work.

    What larger cliques couple at once is bounded better, unless it has too many states: then it is
    taken in groups, and the smaller cliques may be better.
    """
    tree = junction_tree(model, largest=largest, together=together)
    yield tree
    joined = merged(tree, MAX_MERGED_STATES)
    if len(joined.cliques) < len(tree.cliques):
        work = [
            sum(min(each.states(c) ** 2, MAX_SOLVED_CELLS) for c in range(len(each.cliques)))
            for each in (tree, joined)
        ]
        if work[1] <= max(MAX_MERGED_CELLS, work[0] // 2):
            yield joined


def merged(tree: JunctionTree, most: int) -> JunctionTree:
    """Neighbouring cliques joined, those with the fewest states first, up to ``most`` states.

    What is coupled at once is never bounded worse than one clique after the other.
    """
    cliques = {c: frozenset(scope) for c, scope in enumerate(tree.cliques)}
    near = {c: set(tree.around(c)) for c in cliques}
    queue = [
        (_states(cliques[c] | cliques[d], tree.sizes), c, d) for c in near for d in near[c] if c < d
    ]
    heapify(queue)
    while queue:
        states, c, d = heappop(queue)
        if states > most:
            break
        if c not in cliques or d not in cliques or d not in near[c]:
            continue  # one of them was joined with another
        union = cliques[c] | cliques[d]
        if _states(union, tree.sizes) != states:
            continue
        cliques[c] = union
        del cliques[d]
        for other in near.pop(d) - {c}:
            near[other] = near[other] - {d} | {c}
            near[c].add(other)
        near[c] -= {d}
        for other in near[c]:
            heappush(queue, (_states(union | cliques[other], tree.sizes), c, other))
    return _joined(tree.sizes, list(cliques.values()))


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
