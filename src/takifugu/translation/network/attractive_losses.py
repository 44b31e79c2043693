r"""The exact translation for contagion and other attractive fields of zeros and ones.

Let the prior be positively affiliated. Then the worst mechanism counts: for the pair
(X_i = 1, X_i = 0) the largest loss over all per-entry ε-DP mechanisms is

.. math:: ε_i + \log E\big[e^{\sum_{j≠i} ε_j X_j} \,\big|\, X_i=1\big]
        - \log E\big[e^{\sum_{j≠i} ε_j X_j} \,\big|\, X_i=0\big].

Proof: let f* be that exponential and f any admissible function of the other entries; f / f* is
decreasing. Tilting by f*, a product, keeps affiliation, so the tilted law given X_i = 1 dominates
the one given X_i = 0, and E₁f/E₀f ≤ E₁f*/E₀f*. Written with odds, the loss is

.. math:: \mathrm{logit}\, P_{+ε}(X_i=1) - \mathrm{logit}\, P(X_i=1),

the shift of the log odds of entry i when every field is raised by its ε. The reverse pair lowers
every field: :math:`\mathrm{logit}\,P - \mathrm{logit}\,P_{-ε}`. Only :math:`f(1) \le e^{ε_j} f(0)`
was used of an entry's cost for the pair (1, 0), and :math:`f(0) \le e^{ε_j} f(1)` for the other: a
cost that differs by direction is exact as well, ε_j being that of its direction. So three sums over
the whole model give all entries, exactly, where a junction tree allows it. Where it does not,
pinning gives bounds (`takifugu.translation.network.pinning`). The lower bound is a loss that
happens: a noisy count leaks it.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from takifugu._rounding import down, gamma, log_ratio_up, up
from takifugu.errors import TooLarge
from takifugu.influence.network.attractive_curves import check_attractive
from takifugu.influence.network.network_curves import chosen_entries
from takifugu.numeric import Floats, frozen
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name
from takifugu.translation.bounds import EXACT
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.network.junction_tree import JunctionTree, junction_tree
from takifugu.translation.network.partition_function import PartitionSums
from takifugu.translation.network.pinning import (
    PairwiseField,
    RisingField,
    narrow,
    pairwise_field,
)
from takifugu.translation.network.spending import (
    EntrySpending,
    attainable_cost,
    cost_matrices,
    group_loss,
    largest_costs,
)

LARGEST = 2**20  # states of a clique that can be summed over
STEEP = 300.0  # an ε beyond this is not exponentiated
VISITS = 400_000  # entries that pinning visits before it stops
VISITS_EACH = 1000  # the same for each entry, where that is more
ROUGH = 20_000  # visits of a guess
TRIED = 4  # of several costs: mechanisms with the largest
LIKELY = 2  # pairs that a guess is made for
OFF = 1e-12  # relative error of a cost: matrices are rounded up, and mechanisms must be admissible


@dataclass(frozen=True, eq=False)
class AttractiveLosses:
    """The worst Pufferfish loss of every secret pair of an attractive field, from both sides.

    Attributes:
        entries: What the entries are called.
        epsilon: ``[entry]``: the total ε spent on each.
        pairs: The ordered secret pairs.
        upper: ``[pair]``: no per-entry ε-DP mechanism loses more.
        lower: ``[pair]``: the mechanism that counts loses at least this much.
        by_entry: ``[entry]``: the largest upper bound of its pairs; −∞ if it has none.
        exact: Whether it is a closed form, whose largest bounds agree to a relative 1e-6.
        summed: Whether it is a closed form; digits may be lost at an ε next to nothing.
    """

    entries: tuple[Name, ...]
    epsilon: Floats
    pairs: tuple[SecretPair, ...]
    upper: Floats
    lower: Floats
    by_entry: Floats
    exact: bool
    summed: bool = False

    @property
    def loss(self) -> float:
        """The largest upper bound; 0 if there is no pair."""
        return float(self.upper.max(initial=0.0))

    @property
    def attained(self) -> float:
        """The largest lower bound: some pair loses at least this much."""
        return float(self.lower.max(initial=0.0))

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return self.loss - self.attained

    @property
    def binding(self) -> SecretPair | None:
        """The pair with the largest upper bound; None if there is no pair."""
        return self.pairs[int(np.argmax(self.upper))] if self.pairs else None


class AttractiveModel:
    """An attractive model and its secrets, read once: losses of any spending.

    A model that is not attractive is refused (`UnsoundRequest`). If a clique of its junction tree
    has more than ``largest`` states, or the weights leave float64, bounds are found by pinning.
    """

    def __init__(
        self, model: FactorModel, secrets: Secrets | None = None, *, largest: int = LARGEST
    ) -> None:
        check_attractive(model)
        protected = secrets or Secrets()
        self.model, self._factors = model, model.factors()
        self._chosen = [
            v for v in chosen_entries(model, protected) if protected.sides(model.states[v])
        ]
        self.pairs: list[SecretPair] = []
        self._places: list[tuple[int, int]] = []  # of each pair: its way, and which of the chosen
        for k, entry in enumerate(self._chosen):
            name, states = model.entries[entry], model.states[entry]
            for left, right in protected.sides(states):
                self._places.append((0 if left == (1,) else 1, k))
                sides = (EntryIs(name, tuple(states[v] for v in side)) for side in (left, right))
                self.pairs.append(SecretPair(*sides))
        self.tree: JunctionTree | None = None
        with suppress(TooLarge):
            self.tree = junction_tree(model, largest=largest)

    @cached_property
    def _field(self) -> PairwiseField:
        return pairwise_field(self.model)

    def losses(self, epsilon: EntrySpending, *, visits: int | None = None) -> AttractiveLosses:
        """The worst loss of all secrets when entry j was queried with ε_j.

        Bounds by pinning get closer with ``visits``.
        """
        costs = cost_matrices(self.model, epsilon)
        by_way = _by_way(costs)
        enough = max(VISITS, VISITS_EACH * len(self._chosen)) if visits is None else visits
        lower, upper, summed = self._both(by_way, enough)
        if isinstance(epsilon, EntryCosts):
            lower = self._attained(epsilon, by_way, lower, enough)
        most = [group_loss(part.tolist()) for part in by_way]
        least, greatest = np.zeros(len(self.pairs)), np.zeros(len(self.pairs))
        by_entry = np.full(len(self.model.entries), -np.inf)
        for n, (way, k) in enumerate(self._places):
            greatest[n] = min(most[way], float(upper[way, k]))
            least[n] = max(0.0, min(float(lower[way, k]), greatest[n]))
            by_entry[self._chosen[k]] = max(by_entry[self._chosen[k]], greatest[n])
        return AttractiveLosses(
            self.model.entries,
            largest_costs(costs),
            tuple(self.pairs),
            frozen(greatest),
            frozen(least),
            frozen(by_entry),
            bool(summed and least.max(initial=0.0) >= (1 - EXACT) * greatest.max(initial=0.0)),
            summed,
        )

    def _attained(self, costs: EntryCosts, by_way: Floats, lower: Floats, visits: int) -> Floats:
        """``[way, k]``: what a mechanism that exists leaks; ``lower`` is what ``by_way`` would.

        A mechanism has one of several costs everywhere, and matrices are rounded up.
        """
        found = np.zeros_like(lower)
        for one in costs.alone[:TRIED]:
            told = _by_way([attainable_cost(cost) for cost in cost_matrices(self.model, one)])
            here = lower if np.array_equal(told, by_way) else self._both(told, visits)[0]
            found = np.maximum(found, here - OFF * told.sum(axis=1, keepdims=True))
        return found

    def _both(self, spent: Floats, visits: int) -> tuple[Floats, Floats, bool]:
        """``[way, k]`` twice: both bounds; and whether they are sums over the whole model."""
        if self.tree is not None:
            with suppress(TooLarge):
                return (*self._summed(self.tree, spent), True)
        return (*self._pinned(spent, visits), False)

    def _summed(self, tree: JunctionTree, spent: Floats) -> tuple[Floats, Floats]:
        """``[way, k]`` twice: both bounds by sums over the whole model; way 0 is (1, 0)."""
        if not spent.max() < STEEP:
            raise TooLarge(
                f"an ε of {spent.max():g} is too large to be exponentiated",
                field="epsilon",
                size=float(spent.max()),
                limit=STEEP,
            )
        chosen, factors = self._chosen, self._factors
        plain = PartitionSums(tree, factors)
        lower, upper = np.empty((2, len(chosen))), np.empty((2, len(chosen)))
        for way in (0, 1):
            value = 1 - way  # the value that the worst mechanism counts
            gain = np.exp(spent[way])
            tilt = {
                j: np.roll([float(gain[j]), 1.0], value) for j in range(len(gain)) if gain[j] > 1
            }
            tilted = PartitionSums(tree, factors, tilt)
            for k, entry in enumerate(chosen):
                after, before = tilted.entry(entry), plain.entry(entry)
                error = gamma(max(after.roundings, before.roundings) + 4)
                (a, b), (c, d) = after.table[[value, way]], before.table[[value, way]]
                above = log_ratio_up(a, b, error=error) + log_ratio_up(d, c, error=error)
                below = log_ratio_up(b, a, error=error) + log_ratio_up(c, d, error=error)
                upper[way, k], lower[way, k] = up(above), down(-below)
        return lower, upper

    def estimate(self, epsilon: float) -> Callable[[float], float] | None:
        """A quick guess, neither an upper nor a lower bound, of the loss of constant ε near this.

        It is the bound of the few pairs that may have the largest. None if sums are quick anyway.
        """
        if self.tree is not None:
            return None
        rough = self.losses(epsilon, visits=ROUGH)
        places = [self._places[n] for n in np.argsort(-rough.lower, kind="stable")[:LIKELY]]

        def guess(other: float) -> float:
            spent = np.full((2, len(self.model.entries)), other)
            rising = self._rising(spent, places)
            narrow(rising, visits=ROUGH)
            return max(float(one.upper.max(initial=0.0)) for one in rising)

        return guess

    def _pinned(self, spent: Floats, visits: int) -> tuple[Floats, Floats]:
        """The same by pinning: from the plain fields up, and from the lowered fields up."""
        rising = self._rising(spent, self._places)
        narrow(rising, visits=visits)
        lower, upper = np.zeros((2, len(self._chosen))), np.full((2, len(self._chosen)), np.inf)
        place = {entry: k for k, entry in enumerate(self._chosen)}
        for way, one in enumerate(rising):
            at = [place[entry] for entry in one.entries]
            lower[way, at], upper[way, at] = one.lower, one.upper
        return lower, upper

    def _rising(self, spent: Floats, places: Sequence[tuple[int, int]]) -> list[RisingField]:
        """The plain fields that rise, and the lowered ones, with the entries of ``places``."""
        field = self._field
        lowered = replace(field, low=down(field.low - spent[1]), high=up(field.high - spent[1]))
        found = []
        for way, start in enumerate((field, lowered)):
            secret = [self._chosen[k] for w, k in places if w == way]
            found.append(RisingField(start, spent[way], list(dict.fromkeys(secret))))
        return found


def _by_way(costs: Sequence[Floats]) -> Floats:
    """``[way, entry]``: what the change from 1 to 0 costs, and the other one."""
    return np.array([[cost[1, 0], cost[0, 1]] for cost in costs]).T


def attractive_losses(
    model: FactorModel,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    largest: int = LARGEST,
    visits: int | None = None,
) -> AttractiveLosses:
    """The worst loss of all secrets of an attractive ``model`` whose entry j was queried with ε_j.

    See `AttractiveModel`, which reads the model once for many spendings.
    """
    return AttractiveModel(model, secrets, largest=largest).losses(epsilon, visits=visits)
