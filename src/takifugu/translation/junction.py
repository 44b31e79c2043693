r"""The exact translation for Bayesian networks and random fields of small treewidth.

Let S separate the junction tree in two. For states σ, σ′ of S the *message* to S bounds
:math:`\log E[h|σ]/E[h|σ']` over all admissible h of the entries on one side. One step couples
P(R|σ) with P(R|σ′), R = clique minus separator, at the cost

.. math:: c(ρσ, ρ'σ') = \sum_{r∈R} ε_r [ρ_r ≠ ρ'_r] + \sum_{\text{other neighbours}} m(\cdot,\cdot):

the parts of the model behind the other neighbours are independent given the clique, so their
messages add. Coupling all of R at once is never worse than one entry after the other. A secret
about entry i is a last step from any clique that holds i to the separator {i}; each of these
cliques gives a bound, and the least is kept. Messages run along every edge in both directions, as
in belief propagation, so all secrets share them.

Only couplings count as proof (weak duality), so every number is an upper bound whatever the
solver did. It is the exact worst case where one mechanism can be worst for all pairs of states of
a separator at once, as on trees of two-valued entries. Zeros are no trouble: a state of a
separator that cannot happen has no message and needs none.
"""

from dataclasses import dataclass

import numpy as np

from takifugu.errors import InvalidPrior
from takifugu.influence.search import chosen_entries
from takifugu.numeric import Floats, Integers, frozen, gamma, up
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name
from takifugu.translation.allowance import Spending, spent_per_entry
from takifugu.translation.junction_tree import JunctionTree, junction_tree
from takifugu.translation.partition import Sums, Weights, positions

LARGEST = 4096  # states of a clique; a message then compares millions of pairs


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
        """The largest loss of all; 0 if no pair can be asked."""
        return float(self.upper.max(initial=0.0))

    @property
    def binding(self) -> SecretPair | None:
        """The pair with the largest loss; None if no pair can be asked."""
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
    asked = secrets or Secrets()
    spent = spent_per_entry(model.entries, epsilon)
    chosen = chosen_entries(model, asked)
    tree = junction_tree(model, largest=largest)
    recursion = _Recursion(tree, Sums(tree, model.factors()), spent)
    pairs: list[SecretPair] = []
    upper: list[float] = []
    by_entry = np.full(len(model.entries), -np.inf)
    for entry in chosen:
        name, states = model.entries[entry], model.states[entry]
        sides = asked.sides(states)
        found = recursion.secret(entry, sides)
        by_entry[entry] = found.max(initial=-np.inf)
        upper += found.tolist()
        for left, right in sides:
            one, other = (EntryIs(name, tuple(states[v] for v in side)) for side in (left, right))
            pairs.append(SecretPair(one, other))
    return NetworkLosses(
        model.entries, spent, tuple(pairs), frozen(upper), frozen(by_entry)
    )


class _Recursion:
    """All messages of one model under one spending."""

    def __init__(self, tree: JunctionTree, sums: Sums, spent: Floats) -> None:
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
        states = np.flatnonzero(possible.ravel())
        place = positions(self.tree.cliques[one], separator, self.tree.sizes)
        sides = [np.flatnonzero(place == state) for state in states]
        lefts, rights = np.nonzero(~np.eye(len(states), dtype=np.bool_))
        law = self.sums.clique(one, but=other)
        message = np.full((possible.size, possible.size), np.inf)
        message[states, states] = 0.0
        message[states[lefts], states[rights]] = self._cross(
            one, law, sides, lefts, rights, but=other, paid=separator
        )
        self.sent[one, other] = message

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
        for clique in self.tree.holding(entry):
            value = positions(self.tree.cliques[clique], (entry,), self.tree.sizes)
            sides = [np.flatnonzero(np.isin(value, group)) for group in groups]
            law = self.sums.clique(clique)
            found = self._cross(clique, law, sides, lefts, rights)
            best[fine] = np.minimum(best[fine], found)
        return best

    def _cross(
        self,
        clique: int,
        law: Weights,
        sides: list[Integers],
        lefts: Integers,
        rights: Integers,
        *,
        but: int = -1,
        paid: tuple[int, ...] = (),
    ) -> Floats:
        """Bounds between sides, each a list of states of ``clique``; ``paid`` entries are free."""
        from takifugu.translation import coupling_kernel

        if not len(lefts):
            return np.zeros(0)
        scope, sizes = self.tree.cliques[clique], self.tree.sizes
        costs: list[Floats] = []
        index: list[Integers] = []
        for v in scope:
            if v not in paid and self.spent[v] > 0:
                costs.append(self.spent[v] * (1 - np.eye(sizes[v])))
                index.append(positions(scope, (v,), sizes))
        for near in self.tree.around(clique):
            message = self.sent.get((near, clique))
            if near != but and message is not None and message.any():
                costs.append(message)
                index.append(positions(scope, self.tree.separator(near, clique), sizes))
        if not costs:
            return np.zeros(len(lefts))
        weight = law.table.ravel()
        kept = [side[weight[side] > 0] for side in sides]
        chances = [weight[side] / weight[side].sum() if side.size else weight[side] for side in kept]
        values = np.zeros(len(lefts))
        coupling_kernel.cross(
            np.cumsum([0, *map(len, kept)]),
            np.concatenate(kept),
            np.concatenate(chances),
            np.array(index),
            np.concatenate([cost.ravel() for cost in costs]),
            np.cumsum([0, *(cost.size for cost in costs)])[:-1],
            np.array([len(cost) for cost in costs]),
            lefts.astype(np.int64),
            rights.astype(np.int64),
            values,
        )
        if np.isnan(values).any():
            raise InvalidPrior(
                "factors", given="lead to a loss that is no number", needed="be plain weights"
            )
        error = gamma(law.roundings + max(map(len, kept)))
        return up(values + 4 * error)
