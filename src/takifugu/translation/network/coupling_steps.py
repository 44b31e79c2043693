r"""One step of the recursion along a junction tree: messages from couplings of a clique's states.

A *term* (scope, m) is a bound :math:`\log G(τ)/G(τ') \le m(τ, τ')` on how much some part of an
admissible function changes with the state τ of the entries ``scope``. Terms about parts of a model
that are independent given a clique add up. Given terms about a clique, the message to the entries
S, a part of it, bounds :math:`\log E[G|σ]/E[G|σ']`: the value of any coupling of P(R|σ) with
P(R|σ′), R the rest of the clique, by weak duality.

**By way of others.** If S has many states σ, only those that differ in few entries are coupled. The
ratio of E[G|σ] and E[G|σ′] is a product of such ratios, so the message is a shortest path.

**In parts.** S may have so many states that even this is too much. Then the message is a sum of
terms about single entries of S,

.. math:: m(σ, σ') = \sum_{v \in S} \max_{\text{others}} \big[\text{coupling of } (a, \text{others})
          \text{ with } (b, \text{others})\big]_{a = σ_v,\, b = σ'_v} :

change the entries of S one after the other and add up. The states on the way may be impossible.
E[G|σ] means nothing there, so it may be anything; it is set to E[G|φ(σ)] for a possible state φ(σ)
nearby, and the bound between (a, others) and (b, others) is one between their φ. The sum is cut
off at what all terms can cost at most, and at group privacy.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, prod

import numpy as np

from takifugu._rounding import gamma, up
from takifugu.numeric import Floats, Integers, distinct
from takifugu.translation.network.partition_function import Weights

AT_ONCE = 128  # states of R that are coupled in one step; more are taken one group after another
WITHIN = 2.0**-500  # a rarer state counts as this likely as a source, as impossible as a sink
SOLVED = 15_000_000  # cells of cost matrices for which one message solves transport problems
LOOKED_AT = 30_000_000  # cells of cost matrices whose largest is found; beyond, it is estimated
EACH = 8  # what a problem costs beside its cells
ALONE = 100_000  # cells for which no second thread is started
PATHS = 1_500  # states between which shortest paths are found
PAIRS = 8_000_000  # pairs of states that are looked at for the entries in which they differ


@dataclass(frozen=True, eq=False)
class Term:
    """A cost of moving between states of some entries.

    Attributes:
        scope: The entries.
        cost: ``[state, state]``.
        states: The numbers of the states, in increasing order; None if they are all.
    """

    scope: tuple[int, ...]
    cost: Floats
    states: Integers | None = None

    def rows(self, numbers: Integers) -> Integers:
        """Which rows of ``cost`` belong to these states."""
        return numbers if self.states is None else np.searchsorted(self.states, numbers)

    @property
    def parts(self) -> "tuple[Term, ...]":
        """This term alone."""
        return (self,)

    @property
    def most(self) -> float:
        """No move costs more."""
        return float(self.cost.max(initial=0.0))


@dataclass(frozen=True, eq=False)
class CappedTerms:
    """Terms that bound the same part of a model together, and cost at most ``most``."""

    parts: tuple[Term, ...]
    most: float

    @property
    def scope(self) -> tuple[int, ...]:
        """The entries of all of them."""
        return tuple(sorted({v for term in self.parts for v in term.scope}))


AnyTerm = Term | CappedTerms


@dataclass(frozen=True, eq=False)
class PossibleStates:
    """The possible states of a few entries, with their weights up to one common factor.

    Attributes:
        scope: The entries.
        values: ``[entry, state]``: the value that a state gives to an entry.
        weight: ``[state]``, above 0.
        roundings: How many relative roundings a weight can be off by.
    """

    scope: tuple[int, ...]
    values: Integers
    weight: Floats
    roundings: int

    @classmethod
    def of(cls, law: Weights) -> "PossibleStates":
        """Of a table, what is not 0."""
        flat = law.table.ravel()
        states = np.flatnonzero(flat)
        values = np.array(np.unravel_index(states, law.table.shape), dtype=np.int64)
        return cls(law.scope, values.reshape(len(law.scope), -1), flat[states], law.roundings)

    def number(self, part: Sequence[int], sizes: Sequence[int]) -> Integers:
        """``[state]``: the number of the state that it gives to ``part``."""
        found = np.zeros(len(self.weight), dtype=np.int64)
        for v in part:
            found = found * sizes[v] + self.values[self.scope.index(v)]
        return found

    def onto(self, part: tuple[int, ...], sizes: Sequence[int]) -> "PossibleStates":
        """The sums over all entries but ``part``."""
        numbers, first, inverse, counts = np.unique(
            self.number(part, sizes), return_index=True, return_inverse=True, return_counts=True
        )
        weight: Floats = np.bincount(inverse, self.weight, len(numbers)).astype(np.float64)
        values = self.values[[self.scope.index(v) for v in part]][:, first]
        return PossibleStates(part, values, weight, self.roundings + int(counts.max()))

    def only(self, part: Sequence[int], sizes: Sequence[int], states: Integers) -> "PossibleStates":
        """Those that give ``part`` one of its states numbered ``states``."""
        chosen = np.isin(self.number(part, sizes), states)
        return PossibleStates(
            self.scope, self.values[:, chosen], self.weight[chosen], self.roundings
        )

    def most(self, keep: Sequence[int], sizes: Sequence[int]) -> int:
        """How many states there are at most for one state of ``keep``."""
        return int(np.unique(self.number(keep, sizes), return_counts=True)[1].max())


class CouplingSteps:
    """Steps between states of entries that have ``sizes`` values."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes

    def message(
        self,
        law: PossibleStates,
        terms: Sequence[AnyTerm],
        keep: tuple[int, ...],
        *,
        most: float = np.inf,
    ) -> list[AnyTerm]:
        """The message to ``keep``, as terms that add up.

        It is meant for the states that ``law`` has, and may be +∞ between others. No message can
        be above ``most``.
        """
        from takifugu.translation.network import coupling_kernel

        if not terms or not keep:
            return []
        law, terms = self.peeled(law, terms, keep, most=AT_ONCE)
        whole = float(up(fsum(term.most for term in terms)))  # every move costs at most this
        place = law.number(keep, self._sizes)
        order = np.argsort(place, kind="stable")
        there = distinct(place)
        cuts = np.searchsorted(place[order], np.append(there, there[-1] + 1))
        sides = [order[cuts[k] : cuts[k + 1]] for k in range(len(there))]
        chosen = self._chosen_pairs(keep, there, [len(side) for side in sides])
        if chosen is None:
            return self._in_parts(law, terms, keep, there, sides, min(most, whole))
        most = min(most, whole) if most < np.inf else most
        found = np.full((len(there), len(there)), most)
        np.fill_diagonal(found, 0.0)
        found[chosen] = np.minimum(self.between(law, terms, sides, *chosen), most)
        if len(chosen[0]) < len(there) * (len(there) - 1):
            coupling_kernel.by_way_of_others(found)
            apart = distinct(np.argmax(np.isfinite(found), axis=1))  # one state of each component
            if len(apart) > 1:
                one, other = np.nonzero(~np.eye(len(apart), dtype=np.bool_))
                lefts, rights = apart[one], apart[other]
                found[lefts, rights] = self.between(law, terms, sides, lefts, rights)
                coupling_kernel.by_way_of_others(found)
        return [Term(keep, found, there)]

    def _chosen_pairs(
        self, keep: tuple[int, ...], there: Integers, widths: list[int]
    ) -> tuple[Integers, Integers] | None:
        """Pairs of states to couple: all, or those that differ in few entries; None if too many."""
        count = len(there)
        if count * count > PAIRS:
            return None
        values = np.unravel_index(there, tuple(self._sizes[v] for v in keep))
        differ = np.zeros((count, count), dtype=np.int8)
        for value in values:
            differ += value[:, None] != value[None, :]
        work = EACH + np.outer(widths, widths)
        for most in range(len(keep), 0, -1):
            if float(work[(differ <= most) & (differ > 0)].sum()) <= SOLVED or len(keep) == 1:
                break
        else:
            return None
        if most < len(keep) and count > PATHS:
            return None
        lefts, rights = np.nonzero((differ <= most) & (differ > 0))
        return lefts, rights

    def _in_parts(
        self,
        law: PossibleStates,
        terms: Sequence[AnyTerm],
        keep: tuple[int, ...],
        there: Integers,
        sides: list[Integers],
        most: float,
    ) -> list[AnyTerm]:
        """A term for each entry of ``keep``: the largest over all states of the others."""
        shape = tuple(self._sizes[v] for v in keep)
        near = _nearest_possible(shape, there)
        found: list[Term] = []
        for axis, v in enumerate(keep):
            if shape[axis] == 1:
                continue
            contexts = np.moveaxis(near, axis, -1).reshape(-1, shape[axis])  # [others, value]
            contexts = distinct(contexts, axis=0)
            one, other = np.nonzero(~np.eye(shape[axis], dtype=np.bool_))
            codes, inverse = np.unique(
                contexts[:, one] * len(sides) + contexts[:, other], return_inverse=True
            )
            lefts, rights = np.divmod(codes, len(sides))
            widths = np.array([len(side) for side in sides])
            values = np.zeros(len(codes))
            move = np.flatnonzero(lefts != rights)
            lefts, rights = lefts[move], rights[move]
            simple = float((EACH + widths[lefts] * widths[rights]).sum()) > SOLVED
            values[move] = self.between(law, terms, sides, lefts, rights, apart=keep, simple=simple)
            matrix = np.zeros((shape[axis], shape[axis]))
            matrix[one, other] = values[inverse].reshape(len(contexts), -1).max(axis=0)
            if matrix.any():
                found.append(Term((v,), np.minimum(matrix, most)))
        return [CappedTerms(tuple(found), most)] if len(found) > 1 else [*found]

    def peeled(
        self, law: PossibleStates, terms: Sequence[AnyTerm], keep: tuple[int, ...], *, most: int
    ) -> tuple[PossibleStates, Sequence[AnyTerm]]:
        """Couple some entries ahead of the others, until at most ``most`` states are left."""
        sizes = self._sizes
        while True:
            free = sorted((v for v in law.scope if v not in keep), key=lambda v: -sizes[v])
            if prod(sizes[v] for v in free) <= most or law.most(keep, sizes) <= most:
                return law, terms
            chunk = {free[0]}
            for v in free[1:]:
                if prod(sizes[u] for u in (*chunk, v)) <= AT_ONCE:
                    chunk.add(v)
            rest = tuple(v for v in law.scope if v not in chunk)
            inner = [term for term in terms if chunk & set(term.scope)]
            outer = [term for term in terms if not chunk & set(term.scope)]
            terms = [*outer, *self.message(law, inner, rest)]
            law = law.onto(rest, sizes)

    def between(
        self,
        law: PossibleStates,
        terms: Sequence[AnyTerm],
        sides: list[Integers],
        lefts: Integers,
        rights: Integers,
        *,
        apart: tuple[int, ...] = (),
        simple: bool = False,
    ) -> Floats:
        """Bounds between pairs of sides, each a list of states of ``law``.

        A ``simple`` coupling leaves as much as possible where it is, entries ``apart`` aside, and
        moves the rest anyhow; what that costs at most is not looked up if there is too much of it.
        """
        from takifugu.translation.network import coupling_kernel

        if not len(lefts) or not terms:
            return np.zeros(len(lefts))
        used = distinct(np.concatenate([lefts, rights]))
        place = np.zeros(len(sides), dtype=np.int64)
        place[used] = np.arange(len(used))
        kept = [sides[k] for k in used]
        probabilities = np.concatenate([_normalised(law.weight[side]) for side in kept])
        values = np.zeros(len(lefts))
        single = [term for group in terms for term in group.parts]
        caps: list[float] = []
        for group in terms:
            caps += [-1.0] * (len(group.parts) - 1)
            caps.append(group.most if len(group.parts) > 1 else np.inf)
        shared = (
            np.cumsum([0, *map(len, kept)]),
            np.concatenate(kept),
            np.maximum(probabilities, WITHIN),
            np.where(probabilities >= WITHIN, probabilities, 0.0),
            np.array([term.rows(law.number(term.scope, self._sizes)) for term in single]),
            np.concatenate([term.cost.ravel() for term in single]),
            np.cumsum([0, *(term.cost.size for term in single)])[:-1],
            np.array([len(term.cost) for term in single]),
            np.array(caps),
        )
        lefts, rights = place[lefts], place[rights]
        match = law.number(tuple(v for v in law.scope if v not in apart), self._sizes)
        widths = np.array([len(side) for side in kept])
        every = float((EACH + widths[lefts] * widths[rights]).sum()) <= LOOKED_AT
        ceiling = -1.0 if every else float(up(fsum(term.most for term in terms)))

        def work(begin: int, end: int) -> None:
            here = lefts[begin:end], rights[begin:end], values[begin:end]
            if simple:
                coupling_kernel.nearly(*shared, *here, match, ceiling)
            else:
                coupling_kernel.cross(*shared, *here)

        _share(work, len(lefts), float(EACH + (len(law.weight) / len(sides)) ** 2))
        error = gamma(law.roundings + max(map(len, kept)))
        return up(values + 5 * error)  # two rows, each divided by its sum


def _share(work: Callable[[int, int], None], count: int, each: float) -> None:
    """Run ``work`` over all problems, in threads when there is enough of it."""
    workers = min(os.cpu_count() or 1, count)
    if count * each < ALONE or workers == 1:
        work(0, count)
        return
    cuts = np.linspace(0, count, min(8 * workers, count) + 1).astype(int)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, cuts[:-1].tolist(), cuts[1:].tolist()))


def _nearest_possible(shape: tuple[int, ...], there: Integers) -> Integers:
    """``[state]``, in ``shape``: the place in ``there`` of a possible state nearby; its own if any.

    The states that are one entry away from a possible one are settled first, and so on.
    """
    near = np.full(prod(shape), -1, dtype=np.int64)
    near[there] = np.arange(len(there))
    near = near.reshape(shape)
    while (near < 0).any():
        before = near.copy()
        for axis in range(len(shape)):
            lines = np.moveaxis(before, axis, 0)
            open_ones = np.moveaxis(near, axis, 0)
            for way in (lines, lines[::-1]):
                seen = way.copy()
                for k in range(1, len(seen)):
                    seen[k] = np.where(seen[k] < 0, seen[k - 1], seen[k])
                seen = seen if way is lines else seen[::-1]
                open_ones[...] = np.where(open_ones < 0, seen, open_ones)
    return near


def _normalised(weight: Floats) -> Floats:
    """Positive weights divided by their sum, whatever their size.

    They lie within 2⁹⁶⁰ of one another (`PartitionSums` refuses others), so none is lost.
    """
    scaled = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    law: Floats = scaled / scaled.sum()
    return law
