r"""The transport bounds of a few listed datasets, and of independent entries.

*Listed datasets.* With costs it is one transport problem for each pair: all datasets of the one
side are coupled with all of the other, at the sum of the costs of their entries. From below, a
linear program finds likelihoods, which are made admissible before they count.

*Independent entries.* The loss of an entry is what it was charged, coupled by its own law if a
secret is about sets of its values.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import permutations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from takifugu._core.numeric import Booleans, Floats, frozen
from takifugu.errors import UnsoundRequest
from takifugu.finite.translation_exact import ExactTranslation, translation_exact
from takifugu.finite.world import World
from takifugu.priors.explicit import Explicit
from takifugu.priors.independent import IndependentEntries
from takifugu.priors.networks import Factor
from takifugu.priors.secrets import EntryIs, Secrets
from takifugu.priors.universe import Name, Tables
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Binding, Bound, TransportBound, Witness, of_pair
from takifugu.translation.certify.messages import MergedDatasets
from takifugu.translation.certify.tables import attainable_cost, product_lower, table_lower
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models.tree import JunctionTree
from takifugu.translation.search.junction import CouplingSearch

MAX_COUPLED_DATASETS = 600  # on one side; beyond, costs count as the scalars that cover them
MAX_SOLVED_DATASETS = 1024  # of the linear program for a witness
STEEPEST_SOLVED = 30.0  # a cost beyond this is not given to the linear program
STEEPEST = 600.0  # a larger cost is not exponentiated


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
            sides = self._world.mask(pair.left), self._world.mask(pair.right)
            if any(np.count_nonzero(merged.law(side)) > MAX_COUPLED_DATASETS for side in sides):
                return self._by_scalars(costs)
            value = merged.upper(*sides, CouplingSearch)
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
                merged = self._merged(costs)
                laws = (
                    merged.law(self._world.mask(pair.left)),
                    merged.law(self._world.mask(pair.right)),
                )
                table = _worst_table(laws, merged.costs)
                leak = (
                    0.0 if table is None else table_lower(laws, merged.costs, table, self._law.size)
                )
                return Witness(leak, bound.binding, self._tables.entries)
        return Witness(0.0, bound.binding)

    @cached_property
    def _law(self) -> Floats:
        """The probabilities, with an axis for each entry."""
        return self._probability.reshape(self._tables.shape)

    def _merged(self, costs: EntryCosts) -> MergedDatasets:
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
        return MergedDatasets(self._law, matrices)


def _worst_table(laws: tuple[Floats, Floats], given: Sequence[Floats]) -> Floats | None:
    """Logarithms of the likelihoods that leak most, by a linear program; None if too large."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    sizes = laws[0].shape
    count = prod(sizes)
    costs = [attainable_cost(cost) for cost in given]
    total = sum(float(cost.max(initial=0.0)) for cost in costs)
    one, other = (law.ravel() for law in laws)
    if count > MAX_SOLVED_DATASETS or total > STEEPEST_SOLVED or not (one.any() and other.any()):
        return None
    numbers = np.arange(count).reshape(sizes)
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
        return np.zeros(sizes)
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
    table: Floats = np.log(np.maximum(solved.x, 1e-250)).reshape(sizes)
    return table


def _words(states: Sequence[Name], side: Sequence[int]) -> str:
    return "|".join(str(states[v]) for v in side)


class _Sides(NamedTuple):
    """A secret pair of an entry: in words, and by the numbers of its values."""

    left: str
    right: str
    from_values: tuple[int, ...]
    to_values: tuple[int, ...]


class IndependentTransport(TransportBound):
    """Independent entries: the loss of an entry is what it was charged."""

    def __init__(self, prior: IndependentEntries, secrets: Secrets) -> None:
        self._prior = prior
        self._entries = tuple(prior.marginals)
        self._pairs = {
            entry: sides
            for entry in (self._entries if secrets.entries is None else secrets.entries)
            if (sides := self._possible(entry, secrets))
        }

    def _possible(self, entry: Name, secrets: Secrets) -> list[_Sides]:
        if entry not in self._prior.marginals:
            raise UnsoundRequest(
                f"the secrets name the entry {entry!r}, which the prior does not have",
                field="secrets",
                given=entry,
            )
        states = self._prior.states[entry]
        law = self._prior.law(entry)
        pairs: Sequence[Any] = (
            [((x,), (y,)) for x, y in permutations(range(len(states)), 2)]
            if secrets.pairs is None
            else secrets.sides(states)
        )
        return [
            _Sides(_words(states, a), _words(states, b), tuple(a), tuple(b))
            for a, b in pairs
            if law[list(a)].sum() > 0 and law[list(b)].sum() > 0
        ]

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._entries)

    def uniform(self, epsilon: float) -> Bound:
        """ε itself, if some entry has a secret pair."""
        return self.profile(np.full(len(self._entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """What each entry was charged."""
        spent = np.asarray(epsilon, dtype=np.float64)
        secret = np.array([entry in self._pairs for entry in self._entries])
        by_entry = np.where(secret, spent, 0.0)
        k = int(np.argmax(by_entry))
        return Bound(float(by_entry[k]), self._binding(k), frozen(by_entry))

    def largest(self, target: float) -> float:
        """The target itself."""
        return float(target)

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """Randomised response on the entry alone."""
        spent = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(self._entries))
        k = int(
            np.argmax([e * (n in self._pairs) for e, n in zip(spent, self._entries, strict=True)])
        )
        binding = self._binding(k)
        if binding is None:
            return Witness(0.0, None)
        law = self._prior.law(self._entries[k])
        sides = self._pairs[self._entries[k]][0]
        masks = _mask(len(law), sides.from_values), _mask(len(law), sides.to_values)
        log: Floats = np.where(masks[0], min(float(spent[k]), STEEPEST), 0.0)
        cost = (float(spent[k]) * (1 - np.eye(len(law))),)
        leak = product_lower(None, (), cost, (0, *masks), (log,))
        return Witness(leak, binding, (self._entries[k],), frozen(np.exp(log)[None]))

    def _binding(self, k: int) -> Binding | None:
        pairs = self._pairs.get(self._entries[k])
        return None if not pairs else Binding(*pairs[0][:2], entry=self._entries[k])

    def valued(self, costs: EntryCosts) -> Bound:
        """What each entry was charged, value by value: its law given either side is coupled."""
        if costs.size is not None and costs.size != len(self._entries):
            raise UnsoundRequest(
                f"the profile has {costs.size} costs; there are {len(self._entries)} entries",
                field="profile",
                given=costs.size,
                needed=len(self._entries),
            )
        by_entry = np.zeros(len(self._entries))
        worst, binding = -1.0, None
        for k, entry in enumerate(self._entries):
            for sides in self._pairs.get(entry, []):
                value = self._coupled(
                    entry, costs.matrix(self._prior.states[entry], entry=k), sides
                )
                by_entry[k] = max(by_entry[k], value)
                if value > worst:
                    worst, binding = value, Binding(sides.left, sides.right, entry=entry)
        return Bound(max(worst, 0.0), binding, frozen(by_entry))

    def _coupled(self, entry: Name, cost: Floats, sides: _Sides) -> float:
        law = self._prior.law(entry)
        left, right = (
            [v for v in side if law[v] > 0] for side in (sides.from_values, sides.to_values)
        )
        if len(left) == len(right) == 1:
            return float(cost[left[0], right[0]])
        masks = (_mask(len(law), left), _mask(len(law), right))
        return MergedDatasets(law, [cost]).upper(*masks, CouplingSearch)

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:
        """A function of the entry that binds: the cost to the right side, or from the left."""
        if bound.binding is None or bound.binding.entry not in self._pairs:
            return Witness(0.0, bound.binding)
        entry = bound.binding.entry
        states, law = self._prior.states[entry], self._prior.law(entry)
        cost = attainable_cost(costs.matrix(states, entry=self._entries.index(entry)))
        cost = cost * min(1.0, STEEPEST / max(float(cost.max(initial=0.0)), STEEPEST))
        alone = JunctionTree((len(law),), ((0,),), (-1,)), (Factor((0,), law),), (cost,)
        best = Witness(0.0, bound.binding)
        for sides in self._pairs[entry]:
            if (sides.left, sides.right) != (bound.binding.left, bound.binding.right):
                continue
            left, right = list(sides.from_values), list(sides.to_values)
            secret = 0, _mask(len(law), left), _mask(len(law), right)
            for log in (cost[:, right].min(axis=1), -cost[left].min(axis=0)):
                leak = product_lower(*alone, secret, (log,))
                if leak > best.leak:
                    factors = np.exp(log - log.min())
                    best = Witness(leak, bound.binding, (entry,), frozen(factors[None]))
        return best


def _mask(size: int, values: Sequence[int]) -> Booleans:
    return np.isin(np.arange(size), values)
