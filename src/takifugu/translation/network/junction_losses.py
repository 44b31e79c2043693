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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np

from takifugu.influence.network.network_curves import chosen_entries
from takifugu.numeric import Floats, frozen
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name
from takifugu.translation.network.coupling_steps import AnyTerm, CouplingSteps, PossibleStates, Term
from takifugu.translation.network.junction_tree import JunctionTree, junction_tree
from takifugu.translation.network.partition_function import PartitionSums
from takifugu.translation.network.spending import (
    EntrySpending,
    cost_matrices,
    group_loss,
    largest_costs,
)

LARGEST = 2**22  # states of a clique, possible or not
AT_LAST = 256  # states that are coupled in the step to a secret, of which there are few
LAST_CELLS = 30_000_000  # cells of cost matrices in that step, of all pairs of values
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
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    together: Mapping[tuple[int, ...], float] | None = None,
    largest: int = LARGEST,
) -> NetworkLosses:
    """Bound the loss of all secrets of ``model`` when entry j was queried with ε_j in total.

    ``epsilon`` is one number, or one for each entry, or costs, value by value. ``together`` has,
    for groups of entries by number, an ε that any change of a group costs beside, however many of
    its entries change. A model whose junction tree has a clique of more than ``largest`` states is
    refused (`TooLarge`).
    """
    protected = secrets or Secrets()
    costs = cost_matrices(model, epsilon)
    spent = largest_costs(costs)
    beside = together or {}
    whole = group_loss([*spent.tolist(), *beside.values()])
    chosen = chosen_entries(model, protected)
    tree = junction_tree(model, largest=largest, together=tuple(beside))
    joint = tuple(_any_change(tree, group, value) for group, value in beside.items())
    recursion = _Recursion(tree, PartitionSums(tree, model.factors()), costs, joint)
    pairs: list[SecretPair] = []
    upper: list[float] = []
    by_entry = np.full(len(model.entries), -np.inf)
    for entry in chosen:
        name, states = model.entries[entry], model.states[entry]
        sides = protected.sides(states)
        found = np.minimum(recursion.secret(entry, sides), whole)
        by_entry[entry] = found.max(initial=-np.inf)
        upper += found.tolist()
        for left, right in sides:
            one, other = (EntryIs(name, tuple(states[v] for v in side)) for side in (left, right))
            pairs.append(SecretPair(one, other))
    return NetworkLosses(model.entries, spent, tuple(pairs), frozen(upper), frozen(by_entry))


def _any_change(tree: JunctionTree, group: Sequence[int], epsilon: float) -> Term:
    """ε between all different states of a group of entries."""
    scope = tuple(sorted(group))
    return Term(scope, epsilon * (1.0 - np.eye(prod(tree.shape(scope)))))


class _Recursion:
    """All messages of one model under one spending.

    ``costs`` has a matrix for each entry, ``joint`` terms about groups of entries, each within a
    clique. The cliques that hold a group are connected, so that towards any root one of them is
    the last: it alone is not cut off by a separator that holds the group too, and pays the term.
    """

    def __init__(
        self,
        tree: JunctionTree,
        sums: PartitionSums,
        costs: tuple[Floats, ...],
        joint: tuple[Term, ...] = (),
    ) -> None:
        self.tree, self.sums, self.costs, self.joint = tree, sums, costs, joint
        self.steps = CouplingSteps(tree.sizes)
        self.sent: dict[tuple[int, int], list[AnyTerm]] = {}
        self._behind: dict[tuple[int, int], frozenset[int]] = {}
        count = len(tree.cliques)
        for c in range(count - 1, 0, -1):
            self._send(c, tree.parents[c])
        for c in range(1, count):
            self._send(tree.parents[c], c)

    def _send(self, one: int, other: int) -> None:
        """The message from a clique to its neighbour: terms between states of their separator."""
        separator = self.tree.separator(one, other)
        possible = (self.sums.sent(one, other).table > 0) & (self.sums.sent(other, one).table > 0)
        law = PossibleStates.of(self.sums.clique(one, but=other)).only(
            separator, self.tree.sizes, np.flatnonzero(possible)
        )
        near = [c for c in self.tree.around(one) if c != other]
        behind = frozenset(self.tree.cliques[one]).union(*(self._behind[c, one] for c in near))
        self._behind[one, other] = behind - set(separator)
        most = [float(self.costs[v].max()) for v in sorted(self._behind[one, other])]
        most += [t.most for t in self.joint if self._behind[one, other].intersection(t.scope)]
        whole = group_loss(most)
        self.sent[one, other] = self.steps.message(
            law,
            self._terms(one, but=other, paid=separator),
            separator,
            most=whole,  # group privacy
        )

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
        most = max(min(AT_LAST, isqrt(LAST_CELLS // len(fine))), 1)
        for k, clique in enumerate(self.tree.holding(entry)):
            if k and self.tree.states(clique) > ALSO:
                break
            law, terms = self.steps.peeled(
                PossibleStates.of(self.sums.clique(clique)),
                self._terms(clique),
                (entry,),
                most=most,
            )
            value = law.number((entry,), self.tree.sizes)
            sides = [np.flatnonzero(np.isin(value, group)) for group in groups]
            found = self.steps.between(law, terms, sides, lefts, rights)
            best[fine] = np.minimum(best[fine], found)
        return best

    def _terms(self, clique: int, *, but: int = -1, paid: tuple[int, ...] = ()) -> list[AnyTerm]:
        """What moving between states of a clique costs: own entries, and all other sides."""
        own: list[AnyTerm] = [
            Term((v,), self.costs[v])
            for v in self.tree.cliques[clique]
            if v not in paid and self.costs[v].any()
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
