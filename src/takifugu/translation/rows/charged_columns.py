r"""Few columns were read: the exact loss of every column's secrets, by one coupling.

Let a release read the columns K of a row, at cost c. An admissible function of the row does not
change with any other column, so it is a function g of :math:`X_K`, and what remains is

.. math:: \max_g \log \frac{E[g(X_K) | s]}{E[g(X_K) | s']} \quad\text{s.t.}\quad
          g(u) \le e^{c(u,v)} g(v),

a transport with gains between the laws of :math:`X_K` given either side of the secret. It is
solved as a whole, so that the bound is the worst case itself: by duality a feasible coupling is an
upper bound, and the best one is attained. No recursion along the network is needed, and columns
that were not read take part only by their laws given :math:`X_K`.

For one column read at ε, and another one's values x, y with q and q' the probabilities of a set of
values of the first, the worst case is the largest :math:`\log[(1+(e^ε-1)q)/(1+(e^ε-1)q')]`.
"""

from math import prod

import numpy as np

from takifugu._rounding import float_up
from takifugu.errors import TooLarge
from takifugu.numeric import Floats
from takifugu.priors.factors import FactorModel
from takifugu.priors.universe import Name
from takifugu.translation.network.coupling_steps import CouplingSteps, PossibleStates, Term
from takifugu.translation.network.junction_tree import junction_tree
from takifugu.translation.network.partition_function import DEEPEST, PartitionSums
from takifugu.translation.rows.row_spending import RowSpending

MOST_STATES = 256  # joint states of the columns that were read
MOST_CELLS = 4_000_000  # cells of cost matrices, of all pairs and columns; beyond, by the network
LARGEST = 2**16  # states of a clique that holds them all
RARE = 1e-9  # a rarer state, beside the likeliest, may keep the solver from its best coupling
KEPT = 32  # sets of columns whose laws are cached

Sides = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


class ChargedColumns:
    """The laws of a few columns of a network given any other, and the couplings of them."""

    def __init__(self, model: FactorModel) -> None:
        self._model = model
        self._sizes = tuple(len(states) for states in model.states)
        self._place = {name: k for k, name in enumerate(model.entries)}
        self._laws: dict[tuple[int, ...], tuple[PossibleStates | None, ...] | None] = {}

    def losses(self, spending: RowSpending, column: Name, sides: Sides) -> Floats | None:
        """``[pair]``: the loss of each pair of sets of values of ``column``, rounded up.

        −∞ for a pair of which one side cannot happen. None if the columns that were read have too
        many states, which takes too long for the little that it gains over the network, or
        probabilities too far apart.
        """
        read = tuple(sorted(self._place[name] for name in spending.columns))
        entry = self._place[column]
        laws = self._given(read)
        if laws is None or (law := laws[entry]) is None:
            return None
        found = np.full(len(sides), -np.inf)
        groups = list(dict.fromkeys(side for pair in sides for side in pair))
        value = law.values[law.scope.index(entry)]
        states = [np.flatnonzero(np.isin(value, group)) for group in groups]
        fine = [
            n for n, pair in enumerate(sides) if all(len(states[groups.index(s)]) for s in pair)
        ]
        if fine:
            lefts, rights = (np.array([groups.index(sides[n][k]) for n in fine]) for k in (0, 1))
            steps = CouplingSteps(self._sizes)
            found[fine] = steps.between(law, self._terms(spending), states, lefts, rights)
        return found

    def has_rare_states(self, spending: RowSpending, column: Name) -> bool:
        """Whether `losses` are sound but need not be the best: some states are all but impossible.

        The solver perturbs gains by more than such a state weighs.
        """
        laws = self._given(tuple(sorted(self._place[name] for name in spending.columns)))
        law = None if laws is None else laws[self._place[column]]
        return law is not None and float(law.weight.min()) < RARE * float(law.weight.max())

    def _terms(self, spending: RowSpending) -> list[Term]:
        terms = []
        for column, cost in spending.alone.items():
            entry = self._place[column]
            terms.append(Term((entry,), cost.matrix(self._model.states[entry])))
        for columns, epsilon in spending.together.items():
            scope = tuple(sorted(self._place[name] for name in columns))
            differ = 1.0 - np.eye(prod(self._sizes[v] for v in scope))
            terms.append(Term(scope, float_up(epsilon) * differ))
        return [term for term in terms if term.cost.any()]

    def _given(self, read: tuple[int, ...]) -> tuple[PossibleStates | None, ...] | None:
        """``[entry]``: the joint law of ``read`` and that entry; None where it is out of reach."""
        if read not in self._laws:
            if len(self._laws) >= KEPT:
                self._laws.clear()
            try:
                self._laws[read] = self._found(read)
            except TooLarge:
                self._laws[read] = None
        return self._laws[read]

    def _found(self, read: tuple[int, ...]) -> tuple[PossibleStates | None, ...] | None:
        shape = tuple(self._sizes[v] for v in read)
        most = max(self._sizes)
        cells = len(self._sizes) * most * (most - 1) * prod(shape) ** 2
        if prod(shape) > MOST_STATES or cells > MOST_CELLS:
            return None
        factors = self._model.factors()
        tree = junction_tree(self._model, largest=LARGEST, together=(read,))
        sums = PartitionSums(tree, factors)
        clique = next(c for c in range(len(tree.cliques)) if set(read) <= set(tree.cliques[c]))
        law = PossibleStates.of(sums.clique(clique).onto(read))
        others = [v for v in range(len(self._sizes)) if v not in read]
        tables = {v: np.zeros((len(law.weight), self._sizes[v])) for v in others}
        roundings = dict.fromkeys(others, 0)
        for n in range(len(law.weight)):  # the law of every other entry, given this state
            seen = {v: np.eye(self._sizes[v])[law.values[k, n]] for k, v in enumerate(read)}
            given = PartitionSums(tree, factors, seen)
            for v in others:
                weights = given.entry(v)
                tables[v][n] = weights.table / weights.table.sum()
                roundings[v] = max(roundings[v], weights.roundings + self._sizes[v] + 4)
        return tuple(
            law if v in read else _times(law, v, tables[v], roundings[v])
            for v in range(len(self._sizes))
        )


def _times(law: PossibleStates, entry: int, table: Floats, roundings: int) -> PossibleStates | None:
    """The joint law of ``law``'s entries and another one; None if a product could underflow."""
    states, values = np.nonzero(table)
    least = np.frexp(law.weight[states])[1] + np.frexp(table[states, values])[1]
    if least.min() - np.frexp(law.weight.max())[1] < DEEPEST:
        return None
    scope = (*law.scope, entry)
    place = np.vstack([law.values[:, states], values[None]]).astype(np.int64)
    weight = np.ldexp(law.weight, -int(np.frexp(law.weight.max())[1]))[states]
    return PossibleStates(
        scope, place, weight * table[states, values], law.roundings + roundings + 1
    )
