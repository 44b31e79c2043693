r"""What flows prove along a junction tree: upper bounds on losses, rounded up.

Let S separate the junction tree in two. For states σ, σ′ of S the *message* to S bounds
:math:`\log E[h|σ]/E[h|σ']` over all admissible h of the entries on one side. One step couples
P(R|σ) with P(R|σ′), R = clique minus separator, at the cost

.. math:: c(ρσ, ρ'σ') = \sum_{r∈R} ε_r [ρ_r ≠ ρ'_r] + \sum_{\text{other neighbours}} m(\cdot,\cdot):

the parts of the model behind the other neighbours are independent given the clique, so their
messages add. A secret about entry i is a last step from any clique that holds i to the separator
{i}; each of these cliques gives a bound, and the least counts. Messages run along every edge in
both directions, as in belief propagation, so all secrets share them. Zeros are no trouble: a state
of a separator that cannot happen has no message and needs none.

Everything is recomputed from the problem's tables. A *proof* only chooses: the junction tree, which
entries of R are coupled ahead of the others, between which states of a separator couplings are
given, and the flows of these couplings (`Proof`; `Messages` is one that was written down). Every
choice gives an upper bound (weak duality), and a malformed one proves nothing: ∞.

*By way of others.* If only some states of S are coupled, the ratio of E[G|σ] and E[G|σ′] is a
product of such ratios, so the message is a shortest path.

*In parts.* Where no pairs are chosen, the message is a sum of terms about single entries of S,

.. math:: m(σ, σ') = \sum_{v \in S} \max_{\text{others}} \big[\text{coupling of } (a, \text{others})
          \text{ with } (b, \text{others})\big]_{a = σ_v,\, b = σ'_v} :

change the entries of S one after the other and add up. The states on the way may be impossible.
E[G|σ] means nothing there, so it may be anything; it is set to E[G|φ(σ)] for a possible state φ(σ)
nearby, and the bound between (a, others) and (b, others) is one between their φ. The sum is cut
off at what all terms can cost at most, and at group privacy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import fsum, inf, prod
from typing import Any, Protocol

import numpy as np

from takifugu._core.compiled import share_range
from takifugu._core.numeric import Floats, Integers, distinct
from takifugu._core.rounding import gamma, up
from takifugu.errors import TakifuguError
from takifugu.priors.networks import Sides
from takifugu.translation.certify.closed import profile_group_loss
from takifugu.translation.certify.tables import PartitionSums, Weights
from takifugu.translation.models.tree import JunctionTree, Tree, any_change

RAREST = 2.0**-500  # a rarer state counts as this likely as a source, as impossible as a sink
MIN_SHARED_CELLS = 100_000  # cells for which no second thread is started
FIXED_WORK = 8  # what a problem costs beside its cells


class NoProof(Exception):
    """A proof that is malformed, or of another problem."""


# what hostile choices raise where they are used
MALFORMED = NoProof, AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError


@dataclass(frozen=True, eq=False)
class Term:
    """A bound log G(τ)/G(τ′) ≤ ``cost`` on how some part of an admissible function changes.

    Attributes:
        scope: The entries whose states are τ and τ′.
        cost: ``[state, state]``.
        states: The numbers of the states, in increasing order; None if they are all.
    """

    scope: tuple[int, ...]
    cost: Floats
    states: Integers | None = None

    def rows(self, numbers: Integers) -> Integers:
        """Which rows of ``cost`` belong to these states."""
        if self.states is None:
            return numbers
        rows = np.searchsorted(self.states, numbers)
        if not np.array_equal(self.states[rows], numbers):  # a state without a message
            raise NoProof
        return rows

    @cached_property
    def classes(self) -> Integers:
        """``[row]``: the first state to and from which the change costs nothing; often itself."""
        classes: Integers = np.argmax((self.cost == 0) & (self.cost.T == 0), axis=1)
        return classes

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
    def from_weights(cls, law: Weights) -> "PossibleStates":
        """Of a table, what is not 0."""
        flat = law.table.ravel()
        states = np.flatnonzero(flat)
        values = np.array(np.unravel_index(states, law.table.shape), dtype=np.int64)
        return cls(law.scope, values.reshape(len(law.scope), -1), flat[states], law.roundings)

    def number(self, part: Sequence[int], sizes: Sequence[int]) -> Integers:
        """``[state]``: the number of the state that it gives to ``part``."""
        numbers = np.zeros(len(self.weight), dtype=np.int64)
        for v in part:
            numbers = numbers * sizes[v] + self.values[self.scope.index(v)]
        return numbers

    def onto(self, part: tuple[int, ...], sizes: Sequence[int]) -> "PossibleStates":
        """The sums over all entries but ``part``."""
        numbers, first, inverse, counts = np.unique(
            self.number(part, sizes), return_index=True, return_inverse=True, return_counts=True
        )
        weight: Floats = np.bincount(inverse, self.weight, len(numbers)).astype(np.float64)
        values = self.values[[self.scope.index(v) for v in part]][:, first]
        return PossibleStates(part, values, weight, self.roundings + int(counts.max()))

    def merged(
        self, terms: Sequence[AnyTerm], keep: tuple[int, ...], sizes: Sequence[int]
    ) -> "PossibleStates":
        """One state for all that agree in ``keep`` and that no term tells apart.

        Where a change costs nothing either way, an admissible function has the same expectation.
        """
        parts = [part for term in terms for part in term.parts]
        told = {v for part in parts for v in part.scope}.union(keep)
        if told.issuperset(self.scope) and all(
            np.array_equal(part.classes, np.arange(len(part.cost))) for part in parts
        ):
            return self
        same = self.number(keep, sizes)
        for part in parts:
            rows = part.rows(self.number(part.scope, sizes))
            same = np.unique(same * len(part.cost) + part.classes[rows], return_inverse=True)[1]
        _, first, inverse, counts = np.unique(
            same, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.argsort(first)  # the states stay in order
        weight: Floats = np.bincount(inverse, self.weight)[order].astype(np.float64)
        values = self.values[:, first[order]]
        return PossibleStates(self.scope, values, weight, self.roundings + int(counts.max()) - 1)

    def only(self, part: Sequence[int], sizes: Sequence[int], states: Integers) -> "PossibleStates":
        """Those that give ``part`` one of its states numbered ``states``."""
        chosen = np.isin(self.number(part, sizes), states)
        return PossibleStates(
            self.scope, self.values[:, chosen], self.weight[chosen], self.roundings
        )


@dataclass(frozen=True, eq=False)
class Transports:
    """Transport problems between pairs of sides, each a list of states of one law.

    Attributes:
        shared: What `takifugu.translation.certify.message_loops.evaluate` needs of all of them.
        lefts: ``[problem]``: the side of the sources.
        rights: ``[problem]``: the side of the sinks.
        match: ``[state]``: states with the same number may stay where they are; each side has
            every number once, in order.
        ceiling: No move costs more.
    """

    shared: Any
    lefts: Integers
    rights: Integers
    match: Integers
    ceiling: float

    def part(self, begin: int, end: int) -> tuple[Any, Integers, Integers]:
        """What a loop needs of the problems from ``begin`` to before ``end``."""
        return self.shared, self.lefts[begin:end], self.rights[begin:end]

    def share(self, work: Callable[[int, int], None]) -> None:
        """Run ``work(begin, end)`` on all problems, in threads where that pays."""
        cells = len(self.lefts) * float(FIXED_WORK + self.widths.mean() ** 2)
        share_range(work, len(self.lefts), worthwhile=cells >= MIN_SHARED_CELLS)

    @property
    def widths(self) -> Integers:
        """``[side]``: how many states it has."""
        starts: Integers = self.shared[0]
        return starts[1:] - starts[:-1]


@dataclass(frozen=True, eq=False)
class Flows:
    """A flow for each of some transport problems, as a list of arcs.

    Attributes:
        first: ``[problem + 1]``: where the arcs of a problem begin.
        source: ``[arc]``: a state of the left side, by its place in it.
        sink: ``[arc]``: a state of the right side.
        mass: ``[arc]``: in which proportions a source is sent to its sinks.
    """

    first: Integers
    source: Integers
    sink: Integers
    mass: Floats

    def prove(self, problems: Transports) -> Floats:
        """``[problem]``: upper bounds on log t."""
        from takifugu.translation.certify import message_loops

        first, source, sink = (_integers(part) for part in (self.first, self.source, self.sink))
        mass = _floats(self.mass)
        count, arcs = len(problems.lefts), len(mass)
        if len(first) != count + 1 or len(source) != arcs or len(sink) != arcs:
            raise NoProof
        if first[0] != 0 or first[-1] != arcs or (first[1:] < first[:-1]).any():
            raise NoProof
        values = np.full(count, np.inf)

        def work(begin: int, end: int) -> None:
            given = *problems.part(begin, end), first[begin : end + 1]
            message_loops.evaluate(*given, source, sink, mass, values[begin:end])

        problems.share(work)
        return values


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Simple couplings: what can stay stays, and the rest moves anyhow.

    Attributes:
        tau: ``[problem]``: for what is proven see `message_loops.staying`.
        looked_up: Whether the dearest move is looked up, or is what all terms cost at most.
    """

    tau: Floats
    looked_up: bool

    def prove(self, problems: Transports) -> Floats:
        """``[problem]``: upper bounds on log t."""
        from takifugu.translation.certify import message_loops

        tau = _floats(self.tau)
        if tau.shape != problems.lefts.shape:
            raise NoProof
        values = np.full(len(tau), np.inf)
        ceiling = -1.0 if self.looked_up is True else problems.ceiling

        def work(begin: int, end: int) -> None:
            here = tau[begin:end], values[begin:end]
            message_loops.staying(*problems.part(begin, end), problems.match, ceiling, *here)

        problems.share(work)
        return values


Couplings = Flows | Thresholds


class Proof(Protocol):
    """What a search proposes, step by step: nothing of it is trusted.

    Implementer: `takifugu.translation.search.junction.CouplingSearch`; see also `Messages`.
    """

    tree: JunctionTree
    merges: bool  # whether states that nothing tells apart are taken together first

    def ahead(self, law: PossibleStates, keep: tuple[int, ...], last: int) -> tuple[int, ...]:
        """Entries of a law, none of ``keep``, to be coupled next; none to couple all that remain.

        ``last`` is how many pairs of values a last step is about, 0 in a message.
        """

    def pairs(
        self, keep: tuple[int, ...], there: Integers, widths: Integers
    ) -> tuple[Integers, Integers] | None:
        """Pairs of the possible states ``there`` of a separator that are coupled; None: in parts.

        ``widths`` has how many states of the clique there are for each.
        """

    def couplings(self, problems: Transports, *, in_parts: bool) -> Couplings:
        """Couplings for transport problems."""

    def last_cliques(self, entry: int) -> Sequence[int]:
        """The cliques from which the last step to a secret about ``entry`` is taken."""


@dataclass(frozen=True, eq=False)
class Messages:
    """A proof that was written down: the choices in the order in which they are asked for.

    Attributes:
        tree: The junction tree.
        choices: What `Proof.ahead`, `Proof.pairs`, `Proof.couplings` and `Proof.last_cliques`
            answered, one after the other.
        merges: See `Proof`.
    """

    tree: JunctionTree
    choices: tuple[Any, ...]
    merges: bool = False


class _Replay:
    """The choices of a `Messages`, one after the other, whatever is asked."""

    def __init__(self, proof: Messages) -> None:
        self.tree, self.merges, self._choices = proof.tree, proof.merges, iter(proof.choices)
        self.ahead = self.pairs = self.couplings = self.last_cliques = self._next

    def _next(self, *_: Any, **__: Any) -> Any:
        for choice in self._choices:
            return choice
        raise NoProof


def upper(
    problem: Tree, proof: Proof | Messages, secrets: Mapping[int, Sides]
) -> dict[int, Floats]:
    """By entry ``[pair]``: no mechanism loses more; −∞ for a pair of which a side cannot happen.

    ``secrets`` has, for entries, pairs of sets of values. All is ∞ if the proof is malformed.
    """
    whole = profile_group_loss(
        [*(float(cost.max(initial=0.0)) for cost in problem.costs), *problem.together.values()]
    )
    try:
        recursion = _Recursion(problem, _Replay(proof) if isinstance(proof, Messages) else proof)
        return {
            entry: np.minimum(recursion.secret(entry, pairs), whole)
            for entry, pairs in secrets.items()
        }
    except TakifuguError:
        raise  # the problem itself
    except MALFORMED:
        return {entry: np.full(len(pairs), inf) for entry, pairs in secrets.items()}


class _Recursion:
    """All messages of one problem.

    The cliques that hold a group of entries whose changes cost something together are connected, so
    that towards any root one of them is the last: it alone is not cut off by a separator that holds
    the group too, and pays the term.
    """

    def __init__(self, problem: Tree, proof: Proof) -> None:
        if not proof.tree.is_valid_for(problem):
            raise NoProof
        self.problem, self.proof, self.tree = problem, proof, proof.tree
        self.sums = PartitionSums(proof.tree, problem.tables, roundings=problem.roundings)
        self.steps = CouplingSteps(problem.sizes, proof)
        self.joint = tuple(
            Term(scope, any_change(problem.sizes, scope, epsilon))
            for scope, epsilon in problem.together.items()
        )
        self.sent: dict[tuple[int, int], list[AnyTerm]] = {}
        self._behind: dict[tuple[int, int], frozenset[int]] = {}
        for c in range(len(self.tree.cliques) - 1, 0, -1):
            self._send(c, self.tree.parents[c])
        for c in range(1, len(self.tree.cliques)):
            self._send(self.tree.parents[c], c)

    def _send(self, clique: int, to: int) -> None:
        """The message from a clique to its neighbour: terms between states of their separator."""
        separator = self.tree.separator(clique, to)
        possible = (self.sums.sent(clique, to).table > 0) & (self.sums.sent(to, clique).table > 0)
        law = PossibleStates.from_weights(self.sums.clique(clique, but=to)).only(
            separator, self.tree.sizes, np.flatnonzero(possible)
        )
        near = [c for c in self.tree.around(clique) if c != to]
        behind = frozenset(self.tree.cliques[clique]).union(
            *(self._behind[c, clique] for c in near)
        )
        self._behind[clique, to] = behind - set(separator)
        most = [float(self.problem.costs[v].max()) for v in sorted(self._behind[clique, to])]
        most += [t.most for t in self.joint if self._behind[clique, to].intersection(t.scope)]
        self.sent[clique, to] = self.steps.message(
            law,
            self._terms(clique, but=to, paid=separator),
            separator,
            most=profile_group_loss(most),
        )

    def secret(self, entry: int, pairs: Sides) -> Floats:
        """``[pair]``: bounds for pairs of sets of values of one entry."""
        weight = self.sums.entry(entry).table
        groups = list(dict.fromkeys(chain.from_iterable(pairs)))
        possible = {side: bool(weight[list(side)].any()) for side in groups}
        place = {side: k for k, side in enumerate(groups)}
        fine = [n for n, pair in enumerate(pairs) if all(possible[side] for side in pair)]
        lefts, rights = (
            np.array([place[pairs[n][k]] for n in fine], dtype=np.int64) for k in (0, 1)
        )
        best = np.full(len(pairs), -inf)
        if not fine:
            return best
        best[fine] = inf
        for clique in self.proof.last_cliques(entry):
            if entry not in self.tree.cliques[clique]:
                raise NoProof
            law, terms = self.steps.peeled(
                PossibleStates.from_weights(self.sums.clique(clique)),
                self._terms(clique),
                (entry,),
                last=len(fine),
            )
            value = law.number((entry,), self.tree.sizes)
            sides = [np.flatnonzero(np.isin(value, group)) for group in groups]
            bounds = self.steps.between(law, terms, sides, lefts, rights)
            best[fine] = np.minimum(best[fine], bounds)
        return best

    def _terms(self, clique: int, *, but: int = -1, paid: tuple[int, ...] = ()) -> list[AnyTerm]:
        """What moving between states of a clique costs: own entries, and all other sides."""
        own: list[AnyTerm] = [
            Term((v,), self.problem.costs[v])
            for v in self.tree.cliques[clique]
            if v not in paid and self.problem.costs[v].any()
        ]
        scope = set(self.tree.cliques[clique])
        own += [
            term
            for term in self.joint
            if term.most > 0 and scope.issuperset(term.scope) and not set(term.scope) <= set(paid)
        ]
        for near in self.tree.around(clique):
            if near != but:
                own += [term for term in self.sent[near, clique] if term.most > 0]
        return own


class CouplingSteps:
    """Steps between states of entries that have ``sizes`` values, by the choices of ``proof``."""

    def __init__(self, sizes: Sequence[int], proof: Proof) -> None:
        self._sizes, self._proof = sizes, proof

    def message(
        self,
        law: PossibleStates,
        terms: Sequence[AnyTerm],
        keep: tuple[int, ...],
        *,
        most: float = inf,
    ) -> list[AnyTerm]:
        """The message to ``keep``, as terms that add up.

        It is meant for the states that ``law`` has, and may be +∞ between others. No message can
        be above ``most``.
        """
        from takifugu.translation.certify import message_loops

        if not terms or not keep:
            return []
        law, terms = self.peeled(law, terms, keep)
        whole = float(up(fsum(term.most for term in terms)))  # every move costs at most this
        numbers = law.number(keep, self._sizes)
        order = np.argsort(numbers, kind="stable")
        there = distinct(numbers)
        cuts = np.searchsorted(numbers[order], np.append(there, there[-1] + 1))
        sides = [order[cuts[k] : cuts[k + 1]] for k in range(len(there))]
        chosen = self._proof.pairs(keep, there, np.diff(cuts))
        if chosen is None:
            return self._in_parts(law, terms, keep, there, sides, min(most, whole))
        most = min(most, whole) if most < inf else most
        lefts, rights = (_integers(part) for part in chosen)
        bounds = np.full((len(there), len(there)), most)
        np.fill_diagonal(bounds, 0.0)
        bounds[lefts, rights] = np.minimum(
            self.between(law, terms, sides, lefts, rights, keep=keep), most
        )
        np.fill_diagonal(bounds, 0.0)
        if len(lefts) < len(there) * (len(there) - 1):
            message_loops.by_way_of_others(bounds)
            apart = distinct(np.argmax(np.isfinite(bounds), axis=1))  # a state of each component
            if len(apart) > 1:
                lefts, rights = (apart[k] for k in np.nonzero(~np.eye(len(apart), dtype=np.bool_)))
                bounds[lefts, rights] = self.between(law, terms, sides, lefts, rights, keep=keep)
                message_loops.by_way_of_others(bounds)
        return [Term(keep, bounds, there)]

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
        parts: list[Term] = []
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
            values = np.zeros(len(codes))
            moves = np.flatnonzero(lefts != rights)
            values[moves] = self.between(
                law, terms, sides, lefts[moves], rights[moves], keep=keep, in_parts=True
            )
            matrix = np.zeros((shape[axis], shape[axis]))
            matrix[one, other] = values[inverse].reshape(len(contexts), -1).max(axis=0)
            if matrix.any():
                parts.append(Term((v,), np.minimum(matrix, most)))
        return [CappedTerms(tuple(parts), most)] if len(parts) > 1 else [*parts]

    def peeled(
        self, law: PossibleStates, terms: Sequence[AnyTerm], keep: tuple[int, ...], *, last: int = 0
    ) -> tuple[PossibleStates, Sequence[AnyTerm]]:
        """Couple some entries ahead of the others, as the proof says."""
        if self._proof.merges:
            law = law.merged(terms, keep, self._sizes)
        while chunk := set(self._proof.ahead(law, keep, last)):
            if not chunk <= set(law.scope) - set(keep):
                raise NoProof
            rest = tuple(v for v in law.scope if v not in chunk)
            inner = [term for term in terms if chunk & set(term.scope)]
            outer = [term for term in terms if not chunk & set(term.scope)]
            terms = [*outer, *self.message(law, inner, rest)]
            law = law.onto(rest, self._sizes)
        return law, terms

    def between(
        self,
        law: PossibleStates,
        terms: Sequence[AnyTerm],
        sides: list[Integers],
        lefts: Integers,
        rights: Integers,
        *,
        keep: tuple[int, ...] = (),
        in_parts: bool = False,
    ) -> Floats:
        """Bounds between pairs of sides, each a list of states of ``law``.

        Pairs may have been proposed: numbers that are not those of sides, in pairs, are no proof.
        If all states of a side agree in the entries ``keep``, those that agree in all other
        entries may stay where they are.
        """
        if lefts.shape != rights.shape:
            raise NoProof
        if not len(lefts) or not terms:
            return np.zeros(len(lefts))
        used = distinct(np.concatenate([lefts, rights]))
        if not 0 <= used[0] <= used[-1] < len(sides):
            raise NoProof
        place = np.zeros(len(sides), dtype=np.int64)
        place[used] = np.arange(len(used))
        listed = [sides[k] for k in used]
        probabilities = np.concatenate([_normalised(law.weight[side]) for side in listed])
        single = [term for group in terms for term in group.parts]
        caps: list[float] = []
        for group in terms:
            caps += [-1.0] * (len(group.parts) - 1)
            caps.append(group.most if len(group.parts) > 1 else inf)
        shared = (
            np.cumsum([0, *map(len, listed)]),
            np.concatenate(listed),
            np.maximum(probabilities, RAREST),
            np.where(probabilities >= RAREST, probabilities, 0.0),
            (
                np.array([term.rows(law.number(term.scope, self._sizes)) for term in single]),
                np.concatenate([term.cost.ravel() for term in single]),
                np.cumsum([0, *(term.cost.size for term in single)])[:-1],
                np.array([len(term.cost) for term in single]),
                np.array(caps),
            ),
        )
        problems = Transports(
            shared,
            place[lefts],
            place[rights],
            law.number(tuple(v for v in law.scope if v not in keep), self._sizes),
            float(up(fsum(term.most for term in terms))),
        )
        couplings = self._proof.couplings(problems, in_parts=in_parts)
        if type(couplings) not in (Flows, Thresholds):  # others would vouch for themselves
            raise NoProof
        values = couplings.prove(problems)
        error = 5 * gamma(law.roundings + max(map(len, listed)))  # of rows divided by their sums
        widened = up(values + error)
        if keep:  # messages become costs, and a search is not to meet ties among them
            return widened
        certain = np.maximum(*(problems.widths[k] for k in (problems.lefts, problems.rights))) == 1
        bounds: Floats = np.where(certain, values, widened)
        return bounds


def _integers(values: Any) -> Integers:
    """A list of integers, whatever was proposed."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise NoProof
    return np.ascontiguousarray(array, dtype=np.int64)


def _floats(values: Any) -> Floats:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind != "f"):
        raise NoProof
    return np.ascontiguousarray(array, dtype=np.float64)


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
            unsettled = np.moveaxis(near, axis, 0)
            for way in (lines, lines[::-1]):
                seen = way.copy()
                for k in range(1, len(seen)):
                    seen[k] = np.where(seen[k] < 0, seen[k - 1], seen[k])
                seen = seen if way is lines else seen[::-1]
                unsettled[...] = np.where(unsettled < 0, seen, unsettled)
    return near


def _normalised(weight: Floats) -> Floats:
    """Positive weights divided by their sum, whatever their size.

    They lie within 2⁹⁶⁰ of one another (`PartitionSums` refuses others), so none is lost.
    """
    scaled = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    law: Floats = scaled / scaled.sum()
    return law
