r"""The transport bound of a prior over a few datasets, all of them listed.

With costs it is one transport problem for each pair: all datasets of the one side are coupled with
all of the other, at the sum of the costs of their entries. Values between which nothing is charged
count as one, which leaves few datasets if only some values were asked for. From below, a linear
program finds g, and :math:`\min_{D'} g(D') e^{c(D, D')}`, taken entry by entry, is admissible
whatever the solver did.
"""

from collections.abc import Sequence
from functools import cached_property
from math import prod

import numpy as np

from takifugu._rounding import down, gamma, log_ratio_up
from takifugu.errors import UnsoundRequest
from takifugu.finite.translation_exact import ExactTranslation, translation_exact
from takifugu.finite.world import World
from takifugu.numeric import Booleans, Floats, Integers, frozen
from takifugu.priors.explicit import Explicit
from takifugu.priors.secrets import EntryIs, Secrets
from takifugu.priors.universe import Tables
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Bound, TransportBound, Witness, of_pair
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.network.coupling_steps import CouplingSteps, PossibleStates, Term
from takifugu.translation.network.spending import attainable_cost

MOST_COUPLED = 600  # datasets on one side; beyond, costs count as the scalars that cover them
MOST_SOLVED = 1024  # datasets of the linear program for a witness
STEEPEST = 30.0  # a cost beyond this is not given to the linear program
OFF = 1e-12  # relative error of a cost: matrices are rounded up, and mechanisms must be admissible


class ExplicitTransport(TransportBound):
    """The linear program itself, certified from both sides."""

    def __init__(self, prior: Explicit, secrets: Secrets) -> None:
        self._world = World.about_entries(prior, secrets)
        self._probability = prior.probability
        self._universe = self._world.universe

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._tables.entries)

    @cached_property
    def _tables(self) -> Tables:
        assert isinstance(self._universe, Tables)  # noqa: S101 - `World.about_entries` refuses others
        return self._universe

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self.profile(np.full(len(self._tables.entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``."""
        solved = translation_exact(self._world, epsilon)
        by_pair = solved.uppers.max(axis=1)
        by_entry = np.zeros(len(self._tables.entries))
        for value, pair in zip(by_pair, self._world.pairs, strict=True):
            if isinstance(pair.left, EntryIs):
                column = self._tables.entry(pair.left.entry)
                by_entry[column] = max(by_entry[column], value)
        return Bound(solved.upper, of_pair(solved.binding.pair), frozen(by_entry))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """The worst mechanism, as a table."""
        spent = np.broadcast_to(epsilon, len(self._tables.entries))
        solved: ExactTranslation = translation_exact(self._world, spent)
        return Witness(
            solved.lower,
            of_pair(solved.attacked.pair),
            self._tables.entries,
            mechanism=solved.mechanism,
        )

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says: all datasets are coupled."""
        merged = self._merged(costs)
        uppers: list[float] = []
        by_entry = np.zeros(len(self._tables.entries))
        for pair in self._world.pairs:
            value = merged.upper(self._world.mask(pair.left), self._world.mask(pair.right))
            if value is None:
                return self._by_scalars(costs)
            uppers.append(value)
            if isinstance(pair.left, EntryIs):
                column = self._tables.entry(pair.left.entry)
                by_entry[column] = max(by_entry[column], value)
        if not uppers:
            return self._by_scalars(costs)
        binding = of_pair(self._world.pairs[int(np.argmax(uppers))])
        return Bound(max(uppers), binding, frozen(by_entry))

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The worst mechanism that a linear program finds for the pair that binds."""
        for pair in self._world.pairs:
            if of_pair(pair) == bound.binding:
                leak = self._merged(costs).lower(
                    self._world.mask(pair.left), self._world.mask(pair.right)
                )
                return Witness(leak, bound.binding, self._tables.entries)
        return Witness(0.0, bound.binding)

    def _merged(self, costs: EntryCosts) -> "_MergedDatasets":
        """All datasets, values that cost nothing taken together."""
        entries = len(self._tables.entries)
        if costs.size is not None and costs.size != entries:
            raise UnsoundRequest(
                f"the profile has {costs.size} costs; there are {entries} entries",
                field="profile",
                given=costs.size,
                needed=entries,
            )
        matrices = [costs.matrix(v, entry=k) for k, v in enumerate(self._tables.values)]
        return _MergedDatasets(self._probability, self._tables.shape, matrices)


class _MergedDatasets:
    """Datasets that differ in value classes only, and the costs between these."""

    def __init__(
        self, probability: Floats, shape: tuple[int, ...], matrices: Sequence[Floats]
    ) -> None:
        self._probability = probability
        classes = [_classes(matrix) for matrix in matrices]
        self._sizes = tuple(int(found.max()) + 1 for found in classes)
        self._costs = [
            matrix[np.ix_(first, first)]
            for matrix, found in zip(matrices, classes, strict=True)
            for first in [np.unique(found, return_index=True)[1]]
        ]
        values = np.array(np.unravel_index(np.arange(prod(shape)), shape))
        self._values = np.array([found[row] for found, row in zip(classes, values, strict=True)])
        self._number = np.ravel_multi_index(tuple(self._values), self._sizes)

    def _law(self, mask: Booleans) -> Floats:
        """``[merged dataset]``: the weights of one side."""
        return np.bincount(self._number[mask], self._probability[mask], prod(self._sizes)).astype(
            np.float64
        )

    def upper(self, left: Booleans, right: Booleans) -> float | None:
        """An upper bound on the loss; None if there are too many datasets."""
        sides = [np.flatnonzero(self._law(mask)) for mask in (left, right)]
        if not min(map(len, sides)):
            return 0.0  # a side that cannot happen is not asked about
        if max(map(len, sides)) > MOST_COUPLED:
            return None
        states = np.concatenate(sides)
        weight = np.concatenate(
            [self._law(m)[side] for m, side in zip((left, right), sides, strict=True)]
        )
        scope = tuple(range(len(self._sizes)))
        values: Integers = np.array(np.unravel_index(states, self._sizes), dtype=np.int64)
        law = PossibleStates(scope, values, weight, len(self._probability))
        terms = [Term((k,), cost) for k, cost in enumerate(self._costs) if cost.any()]
        places = np.arange(len(sides[0])), np.arange(len(sides[0]), len(states))
        found = CouplingSteps(self._sizes).between(
            law, terms, list(places), np.array([0]), np.array([1])
        )
        return float(found[0])

    def lower(self, left: Booleans, right: Booleans) -> float:
        """What some admissible mechanism leaks; 0 if none is found."""
        from scipy.optimize import linprog
        from scipy.sparse import coo_array

        count = prod(self._sizes)
        costs = [attainable_cost(cost) for cost in self._costs]
        total = sum(float(cost.max(initial=0.0)) for cost in costs)
        one, other = (self._law(mask) for mask in (left, right))
        if count > MOST_SOLVED or total > STEEPEST or not (one.any() and other.any()):
            return 0.0
        numbers = np.arange(count).reshape(self._sizes)
        rows, columns, values, made = [], [], [], 0
        for axis, cost in enumerate(costs):
            lines = np.moveaxis(numbers, axis, 0).reshape(len(cost), -1)
            for u, v in zip(*np.nonzero(~np.eye(len(cost), dtype=np.bool_)), strict=True):
                each = made + np.arange(lines.shape[1])
                rows += [each, each]
                columns += [lines[u], lines[v]]
                values += [np.ones(len(each)), np.full(len(each), -np.exp(cost[u, v]))]
                made += len(each)
        log_g = np.zeros(count)
        if made:
            entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
            solved = linprog(
                -one / one.sum(),
                A_ub=coo_array(entries, shape=(made, count)).tocsr(),
                b_ub=np.zeros(made),
                A_eq=(other / other.sum())[None],
                b_eq=[1.0],
            )
            if solved.x is None:
                return 0.0
            log_g = np.log(np.maximum(solved.x, 1e-300))
        table = log_g.reshape(self._sizes)
        for axis, cost in enumerate(costs):  # the least over all ways to change this entry
            table = np.moveaxis(table, axis, 0)
            shape = -1, *[1] * (table.ndim - 1)
            ways = [(table + row.reshape(shape)).min(axis=0) for row in cost]
            table = np.moveaxis(np.stack(ways), 0, axis)
        g = np.exp(table - table.max()).ravel()
        error = gamma(2 * count + 16)
        leak = -float(log_ratio_up(g @ other, g @ one, error=error)) - float(
            log_ratio_up(one.sum(), other.sum(), error=error)
        )
        return max(float(down(leak - 4 * OFF * (1 + total))), 0.0)


def _classes(matrix: Floats) -> Integers:
    """``[value]``: numbers of the classes of values between which nothing is charged."""
    same = (matrix == 0) & (matrix.T == 0)
    return np.unique(np.argmax(same, axis=1), return_inverse=True)[1]
