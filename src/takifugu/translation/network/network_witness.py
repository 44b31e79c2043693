r"""A mechanism and what it leaks: a lower bound on the loss of a network.

For a fixed output, :math:`g(D) = \prod_j g_j(x_j)` with 1 ≤ g_j ≤ e^{ε_j} is per-entry ε-DP: it
applies randomised response to every entry and publishes one combined output. Given
all other factors the loss is linear-fractional in g_j, so its best values are 1 and e^{ε_j}, the
higher ones where the odds of the secret are better: a threshold. Factors are improved in turn.
"""

from dataclasses import dataclass

import numpy as np

from takifugu._rounding import UNIT, down, gamma, log_ratio_up
from takifugu.errors import InvalidPrior, TooLarge
from takifugu.numeric import Booleans, Floats, frozen
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair
from takifugu.translation.network.junction_tree import junction_tree
from takifugu.translation.network.partition_function import PartitionSums
from takifugu.translation.network.spending import Spending, spent_per_entry

ROUNDS = 8  # of improving all factors at once
LARGEST = 2**20  # states of a clique that can be summed over
MOST = 500.0  # the total of ε over the other entries: weights times e^MOST are floats
ENOUGH = 1e-12  # a smaller gain ends the search


@dataclass(frozen=True, eq=False)
class ProductWitness:
    """A per-entry ε-DP mechanism and how much it leaks.

    Attributes:
        pair: The secret pair that it was built for.
        lower: At least this much is lost for ``pair`` when the output is seen; rounded down.
        factors: For each entry ``[value]``: the factor of the output's probability, from 1 to e^ε.
    """

    pair: SecretPair
    lower: float
    factors: tuple[Floats, ...]


def product_witness(
    model: FactorModel, epsilon: Spending, pair: SecretPair, *, sweeps: int = 1
) -> ProductWitness:
    """The best product mechanism found for ``pair``, two statements about the same entry.

    First all factors are improved at once, as long as it helps; then one after the other,
    ``sweeps`` times.
    """
    spent = spent_per_entry(model.entries, epsilon)
    entry, left, right = _sides(model, pair)
    others = [j for j in range(len(spent)) if j != entry and spent[j] > 0]
    high = np.maximum(np.exp(_written(spent, others)) * (1 - 4 * UNIT), 1.0)
    chosen = [np.zeros(len(states), dtype=np.bool_) for states in model.states]
    try:
        best = _searched(_WitnessSearch(model, entry, left, right), chosen, high, others, sweeps)
    except TooLarge:  # the secret's own entry alone: nothing has to be summed for it
        best = 0.0
        chosen = [np.zeros(len(states), dtype=np.bool_) for states in model.states]
    chosen[entry] = left
    lower = float(down(best + np.log(high[entry])))
    factors = tuple(frozen(np.where(up, h, 1.0)) for up, h in zip(chosen, high, strict=True))
    return ProductWitness(pair, max(lower, 0.0), factors)


def _written(spent: Floats, others: list[int]) -> Floats:
    """ε of each entry, or less, so that factors and their products are floats.

    A mechanism that spends less than it may is still admissible.
    """
    used = np.minimum(spent, MOST)
    if others and float(used[others].sum()) > MOST:
        used[others] = np.minimum(used[others], MOST / len(others))
    return used


def _searched(
    search: "_WitnessSearch", chosen: list[Booleans], high: Floats, others: list[int], sweeps: int
) -> float:
    """Improve ``chosen`` in place, and return the loss of the others' factors."""
    best = search.loss(chosen, high)
    for _ in range(ROUNDS):
        better = search.thresholds(chosen, high, others)
        value = search.loss(better, high)
        if not value > best + ENOUGH:
            break
        best, chosen[:] = value, better
    for _ in range(sweeps):
        before = best
        for j in others:
            better = search.thresholds(chosen, high, [j])
            value = search.loss(better, high)
            if value > best + ENOUGH:
                best, chosen[:] = value, better
        if not best > before + ENOUGH:
            break
    return best


class _WitnessSearch:
    """Losses of product mechanisms for one pair, the factor of the secret's entry left out."""

    def __init__(self, model: FactorModel, entry: int, left: Booleans, right: Booleans) -> None:
        self.entry, self.left, self.right = entry, left, right
        self.tree = junction_tree(model, largest=LARGEST)
        self.factors = model.factors()
        self.before = self._odds({}, reverse=False)

    def _odds(self, extra: dict[int, Floats], *, reverse: bool) -> float:
        """An upper bound on the log odds of the left side, or of the right one."""
        weight = PartitionSums(self.tree, self.factors, extra).entry(self.entry)
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

    def loss(self, chosen: list[Booleans], high: Floats) -> float:
        """A lower bound on the loss of a mechanism, the secret's own entry not counted."""
        return -self._odds(self._extra(chosen, high), reverse=True) - self.before

    def _extra(self, chosen: list[Booleans], high: Floats) -> dict[int, Floats]:
        return {j: np.where(up, high[j], 1.0) for j, up in enumerate(chosen) if up.any()}

    def thresholds(
        self, chosen: list[Booleans], high: Floats, changing: list[int]
    ) -> list[Booleans]:
        """The best factor of each of ``changing``, given all the others as they are."""
        extra = self._extra(chosen, high)
        given = [
            PartitionSums(self.tree, self.factors, {**extra, self.entry: side.astype(np.float64)})
            for side in (self.left, self.right)
        ]
        better = list(chosen)
        for j in changing:
            own = extra.get(j, np.ones(len(chosen[j])))
            one, other = (sums.entry(j).table / own for sums in given)
            with np.errstate(divide="ignore", invalid="ignore"):
                order = np.argsort(-np.where(one > 0, one / other, -1.0))
            gain = high[j] - 1
            above, below = one.sum() + gain * np.cumsum(one[order]), gain * np.cumsum(other[order])
            best = int(np.argmax(above / (other.sum() + below)))
            better[j] = np.zeros(len(order), dtype=np.bool_)
            better[j][order[: best + 1]] = True
            if better[j].all():
                better[j][:] = False  # the same factor everywhere reveals nothing
        return better


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
