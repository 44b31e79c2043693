r"""The transport bounds of a few listed datasets, and of independent entries.

*Listed datasets.* The law is one table on all entries, and so one clique of a junction tree: all
datasets of the one side are coupled with all of the other, at the sum of the costs of their
entries. From below, a linear program finds likelihoods, which are made admissible before they
count.

*Independent entries.* The law is a table on each entry, in cliques without separators. The loss of
an entry is what it was charged, coupled by its own law if a secret is about sets of its values.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isqrt, prod
from typing import Any, ClassVar

import numpy as np

from takifugu._core.numeric import Booleans, Floats, Integers, distinct, frozen
from takifugu.errors import TooLarge
from takifugu.finite.translation_exact import ExactTranslation, translation_exact
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.networks import Factor, NetworkPrior, secret_pair, secret_sides
from takifugu.priors.secrets import EntryIs, Secrets
from takifugu.priors.universe import Name, Tables
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness, of_pair
from takifugu.translation.certify.tables import attainable_cost, product_lower, table_lower
from takifugu.translation.entry_costs import EntryCosts, EntrySpending, cost_matrices
from takifugu.translation.models.networks import network_losses
from takifugu.translation.models.tree import JunctionTree
from takifugu.translation.search.junction import MAX_LAST_CELLS

MAX_COUPLED_DATASETS = 600  # on one side; beyond, entries are coupled one group after another,
# and the linear program of the scalars is asked too
MAX_SOLVED_DATASETS = 1024  # of the linear program for a witness
STEEPEST_SOLVED = 30.0  # a cost beyond this is not given to the linear program
STEEPEST = 600.0  # a larger cost is not exponentiated


@dataclass(frozen=True, eq=False, kw_only=True)
class ListedModel(NetworkPrior):
    """Another prior, as tables on its entries."""

    kind: ClassVar[str] = "tables"
    lists: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    entries: tuple[Name, ...]
    states: tuple[tuple[Name, ...], ...]
    tables: tuple[Factor, ...]

    def __post_init__(self) -> None:
        """The other prior has checked them."""

    def factors(self) -> tuple[Factor, ...]:
        """The tables whose product is the law."""
        return self.tables

    def bound(self, costs: EntryCosts, secrets: Secrets, *, fits: bool = True) -> Bound:
        """The loss if every entry has lost what ``costs`` says; whether its states fit one step."""
        most = MAX_COUPLED_DATASETS
        if not fits:  # then a step for many pairs has fewer
            pairs = max(map(len, secret_sides(self, secrets).values()))
            most = max(min(most, isqrt(MAX_LAST_CELLS // max(pairs, 1))), 1)
        losses = network_losses(self, costs, secrets, at_once=most)
        binding = None if losses.binding is None else of_pair(losses.binding)
        return Bound(losses.loss, binding, frozen(np.maximum(losses.by_entry, 0.0)))


class ExplicitTransport(TransportBound):
    """The linear program itself, certified from both sides."""

    def __init__(self, prior: Explicit, secrets: Secrets) -> None:
        self._world, self._secrets = World.about_entries(prior, secrets), secrets
        universe = self._world.universe
        assert isinstance(universe, Tables)  # noqa: S101 - `World.about_entries` refuses others
        self._law = prior.probability.reshape(universe.shape)
        everything = Factor(tuple(range(self._law.ndim)), self._law)
        states: tuple[tuple[Any, ...], ...] = universe.values
        self._model = ListedModel(entries=universe.entries, states=states, tables=(everything,))

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._model.entries)

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self.profile(np.full(len(self._model.entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``."""
        solved = translation_exact(self._world, epsilon)
        by_pair = solved.uppers.max(axis=1)
        by_entry = np.zeros(len(self._model.entries))
        for value, pair in zip(by_pair, self._world.pairs, strict=True):
            if isinstance(pair.left, EntryIs):
                column = self._model.entries.index(pair.left.entry)
                by_entry[column] = max(by_entry[column], value)
        return Bound(solved.upper, of_pair(solved.binding.pair), frozen(by_entry))

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``."""
        return largest_within(lambda e: self.uniform(e).value, target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """The worst mechanism, as a table."""
        spent = np.broadcast_to(epsilon, len(self._model.entries))
        solved: ExactTranslation = translation_exact(self._world, spent)
        return Witness(
            solved.lower,
            of_pair(solved.attacked.pair),
            self._model.entries,
            mechanism=solved.mechanism,
        )

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says: all datasets are coupled.

        Where they are too many for one step, the program of the scalars may say less.
        """
        fits = self._at_once(costs)
        found = self._model.bound(costs, self._secrets, fits=fits)
        if fits:
            return found
        with suppress(TooLarge):
            return min(found, self._by_scalars(costs), key=lambda bound: bound.value)
        return found

    def _at_once(self, costs: EntryCosts) -> bool:
        """Whether both sides of every secret are coupled in one step."""
        matrices = cost_matrices(self._model.entries, self._model.states, costs)
        numbers = np.arange(self._law.size).reshape(self._law.shape)
        told = numbers[np.ix_(*map(_alike, matrices))].ravel()  # those told apart by some cost
        sides = {side for pair in self._world.pairs for side in (pair.left, pair.right)}
        possible = (told[self._world.mask(side) & (self._law.ravel() > 0)] for side in sides)
        return all(len(distinct(datasets)) <= MAX_COUPLED_DATASETS for datasets in possible)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """The worst mechanism that a linear program finds for the pair that binds."""
        matrices = cost_matrices(self._model.entries, self._model.states, costs)
        for pair in self._world.pairs:
            if of_pair(pair) == bound.binding:
                left, right = (self._world.mask(side) for side in (pair.left, pair.right))
                laws = tuple(self._law * side.reshape(self._law.shape) for side in (left, right))
                table = _worst_table((laws[0], laws[1]), matrices)
                leak = 0.0
                if table is not None:
                    leak = table_lower((laws[0], laws[1]), matrices, table, 1)
                return Witness(leak, bound.binding, self._model.entries)
        return Witness(0.0, bound.binding)


def _alike(cost: Floats) -> Integers:
    """``[value]``: the first value to and from which the change costs nothing; often itself."""
    first: Integers = np.argmax((cost == 0) & (cost.T == 0), axis=1)
    return first


def _worst_table(laws: tuple[Floats, Floats], given: Sequence[Floats]) -> Floats | None:
    """Logarithms of the likelihoods that leak most, by a linear program; None if too large.

    Values between which nothing is charged have the same likelihood.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    merged = [np.unique(_alike(cost), return_inverse=True) for cost in given]
    costs = [
        attainable_cost(cost[np.ix_(v, v)]) for cost, (v, _) in zip(given, merged, strict=True)
    ]
    place = np.ix_(*(numbers for _, numbers in merged))
    sizes = tuple(map(len, costs))
    count = prod(sizes)
    total = sum(float(cost.max(initial=0.0)) for cost in costs)
    if count > MAX_SOLVED_DATASETS or total > STEEPEST_SOLVED or not all(law.any() for law in laws):
        return None
    numbers = np.arange(count).reshape(sizes)
    one, other = (np.bincount(numbers[place].ravel(), law.ravel(), count) for law in laws)
    rows, columns, values, made = [], [], [], 0
    for axis, cost in enumerate(costs):
        lines = np.moveaxis(numbers, axis, 0).reshape(len(cost), -1)
        for u, v in zip(*np.nonzero(~np.eye(len(cost), dtype=np.bool_)), strict=True):
            each = made + np.arange(lines.shape[1])
            rows += [each, each]
            columns += [lines[u], lines[v]]
            values += [np.ones(len(each)), np.full(len(each), -np.exp(cost[u, v]))]
            made += len(each)
    if not made:
        return np.zeros(laws[0].shape)
    cells = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    solved = linprog(
        -one / one.sum(),
        A_ub=coo_array(cells, shape=(made, count)).tocsr(),
        b_ub=np.zeros(made),
        A_eq=(other / other.sum())[None],
        b_eq=[1.0],
    )
    if solved.x is None:
        return None
    table: Floats = np.log(np.maximum(solved.x, 1e-250)).reshape(sizes)[place]
    return table


class IndependentTransport(TransportBound):
    """Independent entries: the loss of an entry is what it was charged."""

    def __init__(self, prior: IndependentEntries, secrets: Secrets) -> None:
        laws = [prior.law(entry) for entry in prior.marginals]
        tables = tuple(Factor((k,), law) for k, law in enumerate(laws))
        states = tuple(prior.states.values())
        self._model = ListedModel(entries=prior.entry_names, states=states, tables=tables)
        self._laws, self._secrets = laws, secrets
        self._pairs = {
            entry: possible
            for entry, pairs in secret_sides(self._model, secrets).items()
            if (possible := [p for p in pairs if all(laws[entry][list(v)].any() for v in p)])
        }

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._laws)

    def uniform(self, epsilon: float) -> Bound:
        """ε itself, if some entry has a secret pair."""
        return self.profile(np.full(len(self._laws), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """What each entry was charged."""
        by_entry = np.zeros(len(self._laws))
        by_entry[list(self._pairs)] = np.asarray(epsilon, dtype=np.float64)[list(self._pairs)]
        k = int(np.argmax(by_entry))
        return Bound(float(by_entry[k]), self._binding(k), frozen(by_entry))

    def largest(self, target: float) -> float:
        """The target itself."""
        return float(target)

    def valued(self, costs: EntryCosts) -> Bound:
        """What each entry was charged, value by value: its law given either side is coupled."""
        return self._model.bound(costs, self._secrets)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:
        """Randomised response on the entry alone."""
        return self._witness(np.array(np.broadcast_to(epsilon, len(self._laws))), bound)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """A function of the entry that binds: the cost to the right side, or from the left."""
        return self._witness(costs, bound)

    def _witness(self, spent: EntrySpending, bound: Bound) -> Witness:
        best = Witness(0.0, bound.binding)
        if bound.binding is None or bound.binding.entry is None:
            return best
        k = self._model.entries.index(bound.binding.entry)
        law, cost = self._laws[k], cost_matrices(self._model.entries, self._model.states, spent)[k]
        cost = attainable_cost(cost)
        cost = cost * min(1.0, STEEPEST / max(float(cost.max(initial=0.0)), STEEPEST))
        alone = JunctionTree((len(law),), ((0,),), (-1,)), (Factor((0,), law),), (cost,)
        for sides in self._pairs.get(k, []):
            if of_pair(secret_pair(self._model, k, sides)) != bound.binding:
                continue
            left, right = map(list, sides)
            secret = 0, _mask(len(law), left), _mask(len(law), right)
            for log in (cost[:, right].min(axis=1), -cost[left].min(axis=0)):
                leak = product_lower(*alone, secret, (log,))
                if leak > best.leak:
                    factors = np.exp(log - log.min())
                    entries = (bound.binding.entry,)
                    best = Witness(leak, bound.binding, entries, frozen(factors[None]))
        return best

    def _binding(self, k: int) -> Binding | None:
        return of_pair(secret_pair(self._model, k, self._pairs[k][0])) if k in self._pairs else None


def _mask(size: int, values: Sequence[int]) -> Booleans:
    return np.isin(np.arange(size), values)
