r"""A mechanism and what it leaks: a lower bound on the loss of a network.

For a fixed output, :math:`g(D) = \prod_j g_j(x_j)` with :math:`g_j(u) \le e^{c_j(u,v)} g_j(v)` is
admissible: it applies randomised response to every entry and publishes one combined output. Given
all other factors the loss is linear-fractional in g_j. For per-entry ε-DP its best values are 1 and
e^ε, the higher ones where the odds of the secret are better: a threshold. For a cost c in general,
what is tried are :math:`e^{-c(A,u)}` and :math:`e^{c(u,B)}`, c(A, u) the least cost from a value in
A, for all sets A of values with the best and B with the worst odds; among them are all thresholds.
Factors are improved in turn. A cost that is 0 in one direction is 0 in the other as well, since the
probabilities of all outputs add up to 1: a mechanism that attains less is looked for then.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import fsum

import numpy as np

from takifugu._rounding import down, gamma, log_ratio_up
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.numeric import Booleans, Floats, frozen
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.network.junction_tree import JunctionTree, junction_tree
from takifugu.translation.network.partition_function import PartitionSums
from takifugu.translation.network.spending import EntrySpending, attainable_cost, cost_matrices

ROUNDS = 8  # of improving all factors at once
LARGEST = 2**22  # states of a clique that can be summed over
MOST = 500.0  # the total cost of the other entries: weights times e^MOST are floats
ENOUGH = 1e-12  # a smaller gain ends the search
OFF = 1e-12  # relative error of a cost: matrices are rounded up, and mechanisms must be admissible
TRIED = 12  # pairs for which a mechanism is looked for
COSTS = 4  # of several, the largest: a mechanism has one of them
WORK = 100_000_000  # cells that the sums of a search may have


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
    model: FactorModel, epsilon: EntrySpending, pair: SecretPair, *, sweeps: int = 1
) -> ProductWitness:
    """The best product mechanism found for ``pair``, two statements about the same entry.

    First all factors are improved at once, as long as it helps; then one after the other,
    ``sweeps`` times.
    """
    found = [_found(_Searches(model, one), pair, sweeps) for one in _alone(epsilon)]
    return max(found, key=lambda witness: witness.lower)


def best_witness(
    model: FactorModel, epsilon: EntrySpending, pairs: Sequence[SecretPair], uppers: Sequence[float]
) -> ProductWitness:
    """The best product mechanism for any of ``pairs``, the largest of their ``uppers`` first.

    It ends where no upper bound is above what was found, or after a fixed amount of work.
    """
    found = [_best(_Searches(model, one), pairs, uppers) for one in _alone(epsilon)]
    return max(found, key=lambda witness: witness.lower)


def _alone(epsilon: EntrySpending) -> Sequence[EntrySpending]:
    """What one mechanism may have: one of several costs."""
    return epsilon.alone[:COSTS] if isinstance(epsilon, EntryCosts) else (epsilon,)


def _best(
    searches: "_Searches", pairs: Sequence[SecretPair], uppers: Sequence[float]
) -> ProductWitness:
    order = sorted(range(len(pairs)), key=lambda k: -uppers[k])
    best = _found(searches, pairs[order[0]], 0)
    for k in order[1:TRIED]:
        if uppers[k] <= best.lower or searches.work > WORK:
            break
        best = max(best, _found(searches, pairs[k], 0), key=lambda found: found.lower)
    if 3 * len(searches.model.entries) * searches.cells > WORK:
        return best
    return max(best, _found(searches, best.pair, 1), key=lambda found: found.lower)


@dataclass(eq=False)
class _Searches:
    """What the searches for several pairs of one model share."""

    model: FactorModel
    epsilon: EntrySpending
    work: int = 0
    cells: int = 0
    costs: list[Floats] = field(init=False)
    tree: JunctionTree | None = None

    def __post_init__(self) -> None:
        self.costs = [attainable_cost(cost) for cost in cost_matrices(self.model, self.epsilon)]
        self.factors = self.model.factors()

    def sums(self, extra: dict[int, Floats]) -> PartitionSums:
        """Sums with further weights on single entries."""
        if self.tree is None:
            self.tree = junction_tree(self.model, largest=LARGEST)
            self.cells = sum(self.tree.states(c) for c in range(len(self.tree.cliques)))
        self.work += self.cells
        return PartitionSums(self.tree, self.factors, extra)


def _found(searches: _Searches, pair: SecretPair, sweeps: int) -> ProductWitness:
    """The best mechanism for one pair."""
    entry, left, right = _sides(searches.model, pair)
    own = searches.costs[entry]
    between = own[np.ix_(left, right)]
    alone = bool((between == between.flat[0]).all())  # then the own factor is known
    others = [
        j for j, cost in enumerate(searches.costs) if cost.any() and (j != entry or not alone)
    ]
    costs = _written(searches.costs, others)
    trivial = [np.ones(len(states)) for states in searches.model.states]
    factors = list(trivial)
    try:
        best = _searched(_PairSearch(searches, entry, left, right), factors, costs, others, sweeps)
    except TooLarge:  # the secret's own entry alone: nothing has to be summed for it
        best, factors = 0.0, list(trivial)
    if alone:
        steep = min(float(between.flat[0]), MOST)
        best += steep * (1 - OFF)
        shrunk = own if own.max() <= MOST else own * (MOST / own.max())
        factors[entry] = np.exp(shrunk[:, right].min(axis=1))
    slack = OFF * fsum(float(costs[j].max()) for j in others)
    lower = float(down(best - 2 * slack))
    return ProductWitness(pair, max(lower, 0.0), tuple(frozen(f) for f in factors))


def _written(costs: Sequence[Floats], others: Sequence[int]) -> list[Floats]:
    """The cost of each entry, or less, so that factors and their products are floats.

    A mechanism that spends less than it may is still admissible.
    """
    total = fsum(float(costs[j].max()) for j in others)
    return [cost * min(1.0, MOST / total) if total > MOST else cost for cost in costs]


def _searched(
    search: "_PairSearch",
    factors: list[Floats],
    costs: Sequence[Floats],
    others: list[int],
    sweeps: int,
) -> float:
    """Improve ``factors`` in place, and return their loss."""
    best = search.loss(factors)
    for _ in range(ROUNDS):
        better = search.improved(factors, costs, others)
        value = search.loss(better)
        if not value > best + ENOUGH:
            break
        best, factors[:] = value, better
    for _ in range(sweeps):
        before = best
        for j in others:
            better = search.improved(factors, costs, [j])
            value = search.loss(better)
            if value > best + ENOUGH:
                best, factors[:] = value, better
        if not best > before + ENOUGH:
            break
    return best


class _PairSearch:
    """Losses of product mechanisms for one pair."""

    def __init__(self, shared: _Searches, entry: int, left: Booleans, right: Booleans) -> None:
        self.shared, self.entry, self.left, self.right = shared, entry, left, right
        self.before = self._odds({}, reverse=False)

    def _odds(self, extra: dict[int, Floats], *, reverse: bool) -> float:
        """An upper bound on the log odds of the left side, or of the right one."""
        weight = self.shared.sums(extra).entry(self.entry)
        sides = [float(weight.table[side].sum()) for side in (self.left, self.right)]
        if not min(sides) > 0:
            raise InvalidPrior(
                "pair",
                given="has a side that cannot happen",
                needed="be possible on both sides",
                reason="impossible",
            )
        one, other = sides[::-1] if reverse else sides
        return float(log_ratio_up(one, other, error=gamma(weight.roundings + len(self.left))))

    def loss(self, factors: Sequence[Floats]) -> float:
        """A lower bound on the loss of a mechanism."""
        return -self._odds(_extra(factors), reverse=True) - self.before

    def improved(
        self, factors: Sequence[Floats], costs: Sequence[Floats], changing: list[int]
    ) -> list[Floats]:
        """The best factor of each of ``changing``, given all the others as they are."""
        extra = _extra(factors)
        given = []
        for side in (self.left, self.right):
            own = extra.get(self.entry, np.ones(len(side)))
            given.append(self.shared.sums({**extra, self.entry: side * own}))
        better = list(factors)
        for j in changing:
            one, other = (sums.entry(j).table / factors[j] for sums in given)
            better[j] = _best_factor(one, other, costs[j])
        return better


def _extra(factors: Sequence[Floats]) -> dict[int, Floats]:
    return {j: factor for j, factor in enumerate(factors) if factor.max() > factor.min()}


def _best_factor(one: Floats, other: Floats, cost: Floats) -> Floats:
    """The best of the factors that are tried, for values with these weights on the two sides."""
    near = cost == 0  # values that cannot be told apart count together
    first, second = near @ one / max(one.sum(), 1e-300), near @ other / max(other.sum(), 1e-300)
    with np.errstate(invalid="ignore"):
        share = np.where(first + second > 0, first / (first + second), 0.5)
    order = np.argsort(-share, kind="stable")
    from_best = np.minimum.accumulate(cost[order], axis=0)  # [set, value]
    to_worst = np.minimum.accumulate(cost[:, order[::-1]].T, axis=0)
    tried = np.concatenate(
        [np.exp(from_best.max(axis=1, keepdims=True) - from_best), np.exp(to_worst)]
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = (tried @ one) / (tried @ other)
    best: Floats = tried[int(np.argmax(np.nan_to_num(ratios, nan=-1.0, posinf=1e300)))]
    return best if best.max() > best.min() else np.ones(len(best))


def _sides(model: FactorModel, pair: SecretPair) -> tuple[int, Booleans, Booleans]:
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
