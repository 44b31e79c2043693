r"""The transport bound of Bayesian networks and random fields of small treewidth.

Let S separate the junction tree in two. For states σ, σ′ of S the *message* to S bounds
:math:`\log E[h|σ]/E[h|σ']` over all admissible h of the entries on one side. One step couples
P(R|σ) with P(R|σ′), R = clique minus separator, at the cost

.. math:: c(ρσ, ρ'σ') = \sum_{r∈R} ε_r [ρ_r ≠ ρ'_r] + \sum_{\text{other neighbours}} m(\cdot,\cdot):

the parts of the model behind the other neighbours are independent given the clique, so their
messages add. All of R is coupled at once, which is never worse than one entry after the other,
unless it has too many states; then it is taken group by group. A secret
about entry i is a last step from any clique that holds i to the separator {i}; each of these
cliques gives a bound, and the least is kept. Messages run along every edge in both directions, as
in belief propagation, so all secrets share them.

Only couplings count as proof (weak duality), so every number is an upper bound whatever the
solver did. It is the exact worst case where one mechanism can be worst for all pairs of states of
a separator at once, as on trees of two-valued entries. Zeros are no trouble: a state of a
separator that cannot happen has no message and needs none.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from takifugu._rounding import gamma, up
from takifugu.influence.network.network_curves import chosen_entries
from takifugu.numeric import Booleans, Floats, Integers, frozen
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name
from takifugu.translation.network.junction_tree import JunctionTree, junction_tree
from takifugu.translation.network.partition_function import PartitionSums, Weights, positions
from takifugu.translation.network.spending import Spending, spent_per_entry

LARGEST = 4096  # states of a clique; a message then compares millions of pairs of them
AT_ONCE = 128  # states of R that are coupled in one step; more are taken one group after another
AT_LAST = 256  # the same for the step to a secret, of which there are few
WITHIN = 2.0**-500  # a rarer state counts as this likely as a source, as impossible as a sink
ALSO = 512  # states up to which a second clique that holds a secret is tried


@dataclass(frozen=True, eq=False)
class NetworkLosses:
    """Upper bounds on the Pufferfish loss of every secret pair of a network or field.

    Attributes:
        entries: What the entries are called.
        epsilon: ``[entry]``: the total ε spent on each.
        pairs: The ordered secret pairs.
        upper: ``[pair]``: no per-entry ε-DP mechanism loses more; −∞ for a pair of which one side
            cannot happen.
        by_entry: ``[entry]``: the largest over its pairs; −∞ if it has none.
    """

    entries: tuple[Name, ...]
    epsilon: Floats
    pairs: tuple[SecretPair, ...]
    upper: Floats
    by_entry: Floats

    @property
    def loss(self) -> float:
        """The largest loss of all; 0 if no pair is possible."""
        return float(self.upper.max(initial=0.0))

    @property
    def binding(self) -> SecretPair | None:
        """The pair with the largest loss; None if no pair is possible."""
        if not np.isfinite(self.upper).any():
            return None
        return self.pairs[int(np.argmax(self.upper))]


def network_losses(
    model: FactorModel,
    epsilon: Spending,
    secrets: Secrets | None = None,
    *,
    largest: int = LARGEST,
) -> NetworkLosses:
    """Bound the loss of all secrets of ``model`` when entry j was queried with ε_j in total.

    ``epsilon`` is one number, or one for each entry. A model whose junction tree has a clique of
    more than ``largest`` states is refused (`TooLarge`).
    """
    protected = secrets or Secrets()
    spent = spent_per_entry(model.entries, epsilon)
    chosen = chosen_entries(model, protected)
    tree = junction_tree(model, largest=largest)
    recursion = _Recursion(tree, PartitionSums(tree, model.factors()), spent)
    pairs: list[SecretPair] = []
    upper: list[float] = []
    by_entry = np.full(len(model.entries), -np.inf)
    for entry in chosen:
        name, states = model.entries[entry], model.states[entry]
        sides = protected.sides(states)
        found = recursion.secret(entry, sides)
        by_entry[entry] = found.max(initial=-np.inf)
        upper += found.tolist()
        for left, right in sides:
            one, other = (EntryIs(name, tuple(states[v] for v in side)) for side in (left, right))
            pairs.append(SecretPair(one, other))
    return NetworkLosses(model.entries, spent, tuple(pairs), frozen(upper), frozen(by_entry))


Term = tuple[tuple[int, ...], Floats]  # a cost [state, state] between states of some entries


class _Recursion:
    """All messages of one model under one spending."""

    def __init__(self, tree: JunctionTree, sums: PartitionSums, spent: Floats) -> None:
        self.tree, self.sums, self.spent = tree, sums, spent
        self.sent: dict[tuple[int, int], Floats] = {}
        count = len(tree.cliques)
        for c in range(count - 1, 0, -1):
            self._send(c, tree.parents[c])
        for c in range(1, count):
            self._send(tree.parents[c], c)

    def _send(self, one: int, other: int) -> None:
        """The message from a clique to its neighbour: ``[σ, σ′]``, +∞ beside impossible states."""
        separator = self.tree.separator(one, other)
        possible = (self.sums.sent(one, other).table > 0) & (self.sums.sent(other, one).table > 0)
        law = self.sums.clique(one, but=other)
        terms = self._terms(one, but=other, paid=separator)
        self.sent[one, other] = self._message(law, terms, separator, possible.ravel())

    def secret(
        self, entry: int, pairs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    ) -> Floats:
        """``[pair]``: bounds for pairs of sets of values of one entry."""
        groups = list(dict.fromkeys(side for pair in pairs for side in pair))
        weight = self.sums.entry(entry).table
        fine = [n for n, pair in enumerate(pairs) if all(weight[list(side)].any() for side in pair)]
        best = np.full(len(pairs), -np.inf)
        if not fine:
            return best
        best[fine] = np.inf
        lefts, rights = (np.array([groups.index(pairs[n][k]) for n in fine]) for k in (0, 1))
        for k, clique in enumerate(self.tree.holding(entry)):
            if k and self.tree.states(clique) > ALSO:
                break
            law, terms = self._peeled(
                self.sums.clique(clique), self._terms(clique), (entry,), most=AT_LAST
            )
            value = positions(law.scope, (entry,), self.tree.sizes)
            sides = [np.flatnonzero(np.isin(value, group)) for group in groups]
            best[fine] = np.minimum(best[fine], self._cross(law, terms, sides, lefts, rights))
        return best

    def _terms(self, clique: int, *, but: int = -1, paid: tuple[int, ...] = ()) -> list[Term]:
        """What moving between states of a clique costs: own entries, and all other sides."""
        scope, sizes = self.tree.cliques[clique], self.tree.sizes
        own: list[Term] = [
            ((v,), self.spent[v] * (1 - np.eye(sizes[v])))
            for v in scope
            if v not in paid and self.spent[v] > 0
        ]
        behind: list[Term] = [
            (self.tree.separator(near, clique), self.sent[near, clique])
            for near in self.tree.around(clique)
            if near != but and self.sent[near, clique].any()
        ]
        return own + behind

    def _peeled(
        self, law: Weights, terms: list[Term], keep: tuple[int, ...], *, most: int
    ) -> tuple[Weights, list[Term]]:
        """Couple some entries ahead of the others, until at most ``most`` states are left."""
        sizes = self.tree.sizes
        while True:
            free = sorted((v for v in law.scope if v not in keep), key=lambda v: -sizes[v])
            if prod(sizes[v] for v in free) <= most:
                return law, terms
            chunk = {free[0]}
            for v in free[1:]:
                if prod(sizes[u] for u in (*chunk, v)) <= AT_ONCE:
                    chunk.add(v)
            rest = tuple(v for v in law.scope if v not in chunk)
            outer = law.onto(rest)
            inner = [term for term in terms if chunk & set(term[0])]
            message = self._message(law, inner, rest, outer.table.ravel() > 0)
            terms = [*(term for term in terms if not chunk & set(term[0])), (rest, message)]
            law = outer

    def _message(
        self, law: Weights, terms: list[Term], keep: tuple[int, ...], possible: Booleans
    ) -> Floats:
        """``[σ, σ′]`` for the ``possible`` states of ``keep``, +∞ beside the others."""
        law, terms = self._peeled(law, terms, keep, most=AT_ONCE)
        states = np.flatnonzero(possible)
        place = positions(law.scope, keep, self.tree.sizes)
        order = np.argsort(place, kind="stable")
        cuts = np.searchsorted(place[order], np.arange(possible.size + 1))
        sides = [order[cuts[state] : cuts[state + 1]] for state in states]
        lefts, rights = np.nonzero(~np.eye(len(states), dtype=np.bool_))
        message = np.full((possible.size, possible.size), np.inf)
        message[states, states] = 0.0
        message[states[lefts], states[rights]] = self._cross(law, terms, sides, lefts, rights)
        return message

    def _cross(
        self,
        law: Weights,
        terms: list[Term],
        sides: list[Integers],
        lefts: Integers,
        rights: Integers,
    ) -> Floats:
        """Bounds between pairs of sides, each a list of states of ``law``."""
        from takifugu.translation.network import coupling_kernel

        if not len(lefts) or not terms:
            return np.zeros(len(lefts))
        weight = law.table.ravel()
        kept = [side[weight[side] > 0] for side in sides]
        probabilities = np.concatenate([_normalised(weight[side]) for side in kept])
        values = np.zeros(len(lefts))
        coupling_kernel.cross(
            np.cumsum([0, *map(len, kept)]),
            np.concatenate(kept),
            np.maximum(probabilities, WITHIN),
            np.where(probabilities >= WITHIN, probabilities, 0.0),
            np.array([positions(law.scope, part, self.tree.sizes) for part, _ in terms]),
            np.concatenate([cost.ravel() for _, cost in terms]),
            np.cumsum([0, *(cost.size for _, cost in terms)])[:-1],
            np.array([len(cost) for _, cost in terms]),
            lefts.astype(np.int64),
            rights.astype(np.int64),
            values,
        )
        error = gamma(law.roundings + max(map(len, kept)))
        return up(values + 5 * error)  # two rows, each divided by its sum


def _normalised(weight: Floats) -> Floats:
    """Positive weights divided by their sum, whatever their size.

    They lie within 2⁹⁶⁰ of one another (`PartitionSums` refuses others), so none is lost.
    """
    if not weight.size:
        return weight
    scaled = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    law: Floats = scaled / scaled.sum()
    return law
