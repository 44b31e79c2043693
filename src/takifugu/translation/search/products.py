r"""A mechanism and what it leaks: a lower bound on the loss of a network.

For a fixed output, :math:`g(D) = \prod_j g_j(x_j)` with :math:`g_j(u) \le e^{c_j(u,v)} g_j(v)` is
admissible: it applies randomised response to every entry and publishes one combined output. Given
all other factors the loss is linear-fractional in g_j. For per-entry ε-DP its best values are 1 and
e^ε, the higher ones where the odds of the secret are better: a threshold. For a cost c in general,
what is tried are :math:`e^{-c(A,u)}` and :math:`e^{c(u,B)}`, c(A, u) the least cost from a value in
A, for all sets A of values with the best and B with the worst odds; among them are all thresholds.
Factors are improved in turn, in plain floats; what they leak is
`takifugu.translation.certify.tables.product_lower`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum

import numpy as np

from takifugu._core.numeric import Booleans, Floats, frozen
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.priors.networks import NetworkPrior
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.translation.certify.tables import (
    PartitionSums,
    attainable_cost,
    product_lower,
    refuse_impossible,
)
from takifugu.translation.entry_costs import EntryCosts, EntrySpending, cost_matrices
from takifugu.translation.models.tree import JunctionTree
from takifugu.translation.search.junction import junction_tree

MAX_ROUNDS = 8  # of improving all factors at once
MAX_CLIQUE_STATES = 2**22  # that can be summed over
MAX_TOTAL_COST = 500.0  # of the other entries: weights times its exponential are floats
ENOUGH = 1e-12  # a smaller gain ends the search
MAX_PAIRS_TRIED = 12  # for which a mechanism is looked for
MAX_COSTS_TRIED = 4  # of several, the largest: a mechanism has one of them
MAX_WORK = 100_000_000  # cells that the sums of a search may have


@dataclass(frozen=True, eq=False)
class ProductWitness:
    """An admissible mechanism and how much it leaks.

    Attributes:
        pair: The secret pair that it was built for.
        lower: At least this much is lost for ``pair`` when the output is seen; rounded down.
        factors: For each entry ``[value]``: the factor of the output's probability, from 1 on.
    """

    pair: SecretPair
    lower: float
    factors: tuple[Floats, ...]


def product_witness(
    model: NetworkPrior, epsilon: EntrySpending, pair: SecretPair, *, sweeps: int = 1
) -> ProductWitness:
    """The best product mechanism found for ``pair``, two statements about the same entry.

    First all factors are improved at once, as long as it helps; then one after the other,
    ``sweeps`` times.
    """
    shown = [_searched(_Searches(model, alone), pair, sweeps) for alone in _alone(epsilon)]
    return max(shown, key=lambda witness: witness.lower)


def best_witness(
    model: NetworkPrior,
    epsilon: EntrySpending,
    pairs: Sequence[SecretPair],
    uppers: Sequence[float],
) -> ProductWitness:
    """The best product mechanism for any of ``pairs``, the largest of their ``uppers`` first.

    It ends where no upper bound is above what was found, or after a fixed amount of work.
    """
    shown = [_best(_Searches(model, alone), pairs, uppers) for alone in _alone(epsilon)]
    return max(shown, key=lambda witness: witness.lower)


def _alone(epsilon: EntrySpending) -> Sequence[EntrySpending]:
    """What one mechanism may have: one of several costs."""
    return epsilon.alone[:MAX_COSTS_TRIED] if isinstance(epsilon, EntryCosts) else (epsilon,)


def _best(
    searches: "_Searches", pairs: Sequence[SecretPair], uppers: Sequence[float]
) -> ProductWitness:
    order = sorted(range(len(pairs)), key=lambda k: -uppers[k])
    best = _searched(searches, pairs[order[0]], 0)
    for k in order[1:MAX_PAIRS_TRIED]:
        if uppers[k] <= best.lower or searches.work > MAX_WORK:
            break
        best = max(best, _searched(searches, pairs[k], 0), key=lambda shown: shown.lower)
    if 3 * len(searches.model.entries) * searches.cells > MAX_WORK:
        return best
    return max(best, _searched(searches, best.pair, 1), key=lambda shown: shown.lower)


@dataclass(eq=False)
class _Searches:
    """What the searches for several pairs of one model share."""

    model: NetworkPrior
    epsilon: EntrySpending
    work: int = 0
    cells: int = 0
    costs: list[Floats] = field(init=False)
    tree: JunctionTree | None = None

    def __post_init__(self) -> None:
        matrices = cost_matrices(self.model.entries, self.model.states, self.epsilon)
        self.costs = [attainable_cost(cost) for cost in matrices]
        self.factors = self.model.factors()

    @cached_property
    def plain(self) -> PartitionSums:
        """The sums of the model itself."""
        return self.sums({})

    def sums(self, extra: dict[int, Floats]) -> PartitionSums:
        """Sums with further weights on single entries."""
        if self.tree is None:
            self.tree = junction_tree(self.model, largest=MAX_CLIQUE_STATES)
            self.cells = sum(self.tree.states(c) for c in range(len(self.tree.cliques)))
        self.work += self.cells
        return PartitionSums(self.tree, self.factors, extra)


def _searched(searches: _Searches, pair: SecretPair, sweeps: int) -> ProductWitness:
    """The best mechanism for one pair."""
    entry, left, right = _sides(searches.model, pair)
    own = searches.costs[entry]
    between = own[np.ix_(left, right)]
    alone = bool((between == between.flat[0]).all())  # then the own factor is known
    others = [
        j for j, cost in enumerate(searches.costs) if cost.any() and (j != entry or not alone)
    ]
    costs = _written(searches.costs, others)
    logs = [np.zeros(len(states)) for states in searches.model.states]
    try:
        search = _PairSearch(searches, entry, left, right)
        search.improve(logs, costs, others, sweeps)
    except TooLarge:  # the secret's own entry alone: nothing has to be summed for it
        logs = [np.zeros(len(states)) for states in searches.model.states]
    if alone:
        shrunk = own if own.max() <= MAX_TOTAL_COST else own * (MAX_TOTAL_COST / own.max())
        logs[entry] = shrunk[:, right].min(axis=1)
    lower = product_lower(
        searches.tree, searches.factors, searches.costs, (entry, left, right), logs
    )
    return ProductWitness(pair, lower, tuple(frozen(np.exp(log - log.min())) for log in logs))


def _written(costs: Sequence[Floats], others: Sequence[int]) -> list[Floats]:
    """The cost of each entry, or less, so that factors and their products are floats.

    A mechanism that spends less than it may is still admissible.
    """
    total = fsum(float(costs[j].max()) for j in others)
    share = min(1.0, MAX_TOTAL_COST / total) if total > MAX_TOTAL_COST else 1.0
    return [cost * share if share < 1 else cost for cost in costs]


class _PairSearch:
    """Losses of product mechanisms for one pair, in plain floats."""

    def __init__(self, shared: _Searches, entry: int, left: Booleans, right: Booleans) -> None:
        self.shared, self.entry, self.left, self.right = shared, entry, left, right
        self.before = self._odds(shared.plain)

    def _odds(self, sums: PartitionSums) -> float:
        """The log odds of the left side."""
        weight = sums.entry(self.entry).table
        refuse_impossible(weight, self.left, self.right)
        return float(np.log(weight[self.left].sum()) - np.log(weight[self.right].sum()))

    def loss(self, logs: Sequence[Floats]) -> float:
        """The loss of a mechanism."""
        return self._odds(self.shared.sums(_extra(logs))) - self.before

    def improve(
        self, logs: list[Floats], costs: Sequence[Floats], others: list[int], sweeps: int
    ) -> None:
        """Improve ``logs`` in place: all factors at once, then each in turn ``sweeps`` times."""
        best = self.loss(logs)
        for _ in range(MAX_ROUNDS):
            better = self.improved(logs, costs, others)
            value = self.loss(better)
            if not value > best + ENOUGH:
                break
            best, logs[:] = value, better
        for _ in range(sweeps):
            before = best
            for j in others:
                better = self.improved(logs, costs, [j])
                value = self.loss(better)
                if value > best + ENOUGH:
                    best, logs[:] = value, better
            if not best > before + ENOUGH:
                break

    def improved(
        self, logs: Sequence[Floats], costs: Sequence[Floats], changing: list[int]
    ) -> list[Floats]:
        """The best factor of each of ``changing``, given all the others as they are."""
        extra = _extra(logs)
        given = []
        for side in (self.left, self.right):
            own = extra.get(self.entry, np.ones(len(side)))
            given.append(self.shared.sums({**extra, self.entry: side * own}))
        better = list(logs)
        for j in changing:
            one, other = (sums.entry(j).table / np.exp(logs[j]) for sums in given)
            better[j] = _best_factor(one, other, costs[j])
        return better


def _extra(logs: Sequence[Floats]) -> dict[int, Floats]:
    return {j: np.exp(log) for j, log in enumerate(logs) if log.max() > log.min()}


def _best_factor(one: Floats, other: Floats, cost: Floats) -> Floats:
    """The logarithms of the best factor tried, for values with these weights on the two sides."""
    near = cost == 0  # values that cannot be told apart count together
    first, second = near @ one / max(one.sum(), 1e-300), near @ other / max(other.sum(), 1e-300)
    with np.errstate(invalid="ignore"):
        share = np.where(first + second > 0, first / (first + second), 0.5)
    order = np.argsort(-share, kind="stable")
    from_best = np.minimum.accumulate(cost[order], axis=0)  # [set, value]
    to_worst = np.minimum.accumulate(cost[:, order[::-1]].T, axis=0)
    tried = np.concatenate([from_best.max(axis=1, keepdims=True) - from_best, to_worst])
    factors = np.exp(tried)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (factors @ one) / (factors @ other)
    best: Floats = tried[int(np.argmax(np.nan_to_num(ratios, nan=-1.0, posinf=1e300)))]
    return best if best.max() > best.min() else np.zeros(len(best))


def _sides(model: NetworkPrior, pair: SecretPair) -> tuple[int, Booleans, Booleans]:
    """The entry that ``pair`` speaks of, and the values of its sides."""
    left, right = pair.left, pair.right
    if not (isinstance(left, EntryIs) and isinstance(right, EntryIs)) or left.entry != right.entry:
        raise InvalidPrior(
            "pair",
            given=f"{pair} is not about one entry",
            needed="compare two values of an entry",
            reason="entries",
        )
    if left.entry not in model.entries:
        raise InvalidPrior(
            "pair", given=f"names {left.entry!r}", needed="name an entry", reason="entry"
        )
    entry = model.entries.index(left.entry)
    states = model.states[entry]
    sides = []
    for side in (left, right):
        if not side.values or any(value not in states for value in side.values):
            raise InvalidPrior(
                "pair",
                given=f"says {side}",
                needed=f"use the values {', '.join(map(repr, states[:12]))}",
                reason="value",
            )
        sides.append(np.array([state in side.values for state in states]))
    if (sides[0] & sides[1]).any():
        raise InvalidPrior(
            "pair", given=f"{pair} overlaps", needed="share no value", reason="overlap"
        )
    return entry, sides[0], sides[1]
