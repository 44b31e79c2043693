"""Losses of random fields: attractive ones in closed form or by pinning, others by walks.

The bounds themselves are `takifugu.translation.certify.fields`; here it is decided how far to look.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.errors import TooLarge
from takifugu.influence.network.attractive_curves import check_attractive
from takifugu.influence.network.network_curves import chosen_entries
from takifugu.priors.factors import FactorModel
from takifugu.priors.secrets import EntryIs, SecretPair, Secrets
from takifugu.priors.universe import Name
from takifugu.translation.bounds import EXACT
from takifugu.translation.certify.closed import profile_group_loss
from takifugu.translation.certify.fields import (
    Contacts,
    PairwiseField,
    RisingField,
    check_pairwise,
    contacts_of,
    counted_losses,
    log_ranges,
    pairwise_field,
)
from takifugu.translation.certify.tables import (
    ROUNDED_UP,
    EntrySpending,
    attainable_cost,
    cost_matrices,
    largest_costs,
)
from takifugu.translation.entry_costs import EntryCosts
from takifugu.translation.models.tree import JunctionTree, NetworkLosses
from takifugu.translation.search.junction import junction_tree

MAX_CLIQUE_STATES = 2**20  # that can be summed over
MAX_VISITS = 400_000  # entries that pinning visits before it stops
VISITS_PER_ENTRY = 1000  # the same for each entry, where that is more
ROUGH_VISITS = 20_000  # of a guess
MAX_COSTS_TRIED = 4  # of several costs: mechanisms with the largest
MAX_PAIRS_GUESSED = 2  # that a guess is made for
CLOSE = 0.01  # a gap of this share of the loss is narrow enough
FINER = 4.0  # by what the tolerance falls from round to round
FINEST = 2.0**-53  # of the first tolerance: what is left out below it is less than the rounding
WALK_DEPTH = 12  # steps of a self-avoiding walk
WALK_VISITS = 1_600_000  # entries that all walks together visit
MAX_WALK_STARTS = 16  # entries from which walks start: those with the largest losses


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
        self,
        model: FactorModel,
        secrets: Secrets | None = None,
        *,
        largest: int = MAX_CLIQUE_STATES,
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
        costs = cost_matrices(self.model.entries, self.model.states, epsilon)
        by_way = _by_way(costs)
        enough = max(MAX_VISITS, VISITS_PER_ENTRY * len(self._chosen)) if visits is None else visits
        lower, upper, summed = self._both(by_way, enough)
        if isinstance(epsilon, EntryCosts):
            lower = self._attained(epsilon, by_way, lower, enough)
        most = [profile_group_loss(part.tolist()) for part in by_way]
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
        attained = np.zeros_like(lower)
        for alone in costs.alone[:MAX_COSTS_TRIED]:
            matrices = cost_matrices(self.model.entries, self.model.states, alone)
            told = _by_way([attainable_cost(cost) for cost in matrices])
            here = lower if np.array_equal(told, by_way) else self._both(told, visits)[0]
            attained = np.maximum(attained, here - ROUNDED_UP * told.sum(axis=1, keepdims=True))
        return attained

    def _both(self, spent: Floats, visits: int) -> tuple[Floats, Floats, bool]:
        """``[way, k]`` twice: both bounds; and whether they are sums over the whole model."""
        if self.tree is not None:
            with suppress(TooLarge):
                return (*counted_losses(self.tree, self._factors, spent, self._chosen), True)
        return (*self._pinned(spent, visits), False)

    def estimate(self, epsilon: float) -> Callable[[float], float] | None:
        """A quick guess, neither an upper nor a lower bound, of the loss of constant ε near this.

        It is the bound of the few pairs that may have the largest. None if sums are quick anyway.
        """
        if self.tree is not None:
            return None
        rough = self.losses(epsilon, visits=ROUGH_VISITS)
        places = [
            self._places[n] for n in np.argsort(-rough.lower, kind="stable")[:MAX_PAIRS_GUESSED]
        ]

        def guess(other: float) -> float:
            spent = np.full((2, len(self.model.entries)), other)
            rising = self._rising(spent, places)
            narrow(rising, visits=ROUGH_VISITS)
            return max(float(field.upper.max(initial=0.0)) for field in rising)

        return guess

    def _pinned(self, spent: Floats, visits: int) -> tuple[Floats, Floats]:
        """The same by pinning: from the plain fields up, and from the lowered fields up."""
        rising = self._rising(spent, self._places)
        narrow(rising, visits=visits)
        lower, upper = np.zeros((2, len(self._chosen))), np.full((2, len(self._chosen)), np.inf)
        place = {entry: k for k, entry in enumerate(self._chosen)}
        for way, field in enumerate(rising):
            at = [place[entry] for entry in field.entries]
            lower[way, at], upper[way, at] = field.lower, field.upper
        return lower, upper

    def _rising(self, spent: Floats, places: Sequence[tuple[int, int]]) -> list[RisingField]:
        """The plain fields that rise, and the lowered ones, with the entries of ``places``."""
        field = self._field
        rising = []
        for way, start in enumerate((field, field.lowered(spent[1]))):
            secret = [self._chosen[k] for w, k in places if w == way]
            rising.append(RisingField(start, spent[way], list(dict.fromkeys(secret))))
        return rising


def _by_way(costs: Sequence[Floats]) -> Floats:
    """``[way, entry]``: what the change from 1 to 0 costs, and the other one."""
    return np.array([[cost[1, 0], cost[0, 1]] for cost in costs]).T


def attractive_losses(
    model: FactorModel,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    largest: int = MAX_CLIQUE_STATES,
    visits: int | None = None,
) -> AttractiveLosses:
    """The worst loss of all secrets of an attractive ``model`` whose entry j was queried with ε_j.

    See `AttractiveModel`, which reads the model once for many spendings.
    """
    return AttractiveModel(model, secrets, largest=largest).losses(epsilon, visits=visits)


def narrow(fields: Sequence[RisingField], *, visits: int, close: float = CLOSE) -> None:
    """Narrow the bounds of all entries of ``fields``.

    Each is explored once. The remaining ``visits`` go to those that may be the largest of all,
    until the largest is known to a relative ``close``, or what is left out is less than the
    rounding.
    """
    steepest = max((float(f.epsilon.max(initial=0.0)) for f in fields), default=0.0)
    tolerance = steepest / 10
    finest = FINEST * tolerance
    waiting = [(f, k) for f in fields if f.computes for k in range(len(f.entries))]
    left, explored = visits, False
    while waiting and ((left > 0 and tolerance > finest) or not explored):
        explored = True  # each of them at least once
        for field, k in waiting:
            left -= field.explore(k, tolerance, max(left, 1))
        largest = max(float(f.lower.max(initial=0.0)) for f in fields)
        waiting = [(f, k) for f, k in waiting if f.upper[k] > (1 + close) * largest]
        tolerance /= FINER


class PairwiseWalks:
    """A pairwise field and its secrets, read once: bounds for any spending.

    Tables on more than two entries, and zeros in tables on two, are refused (`TooLarge`).
    """

    def __init__(self, model: FactorModel, secrets: Secrets | None = None) -> None:
        check_pairwise(model)
        self.model, self._protected = model, secrets or Secrets()

    @cached_property
    def _contacts(self) -> Contacts:
        return contacts_of(self.model)

    @cached_property
    def _sides(self) -> dict[int, tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]]:
        """The secret pairs of each entry that has some, as sets of its values."""
        chosen = chosen_entries(self.model, self._protected)
        listed = {self.model.states[v] for v in chosen}
        known = {states: self._protected.sides(states) for states in listed}
        return {v: known[self.model.states[v]] for v in chosen if known[self.model.states[v]]}

    @cached_property
    def _pairs(self) -> tuple[SecretPair, ...]:
        pairs = []
        for entry, sides in self._sides.items():
            name, states = self.model.entries[entry], self.model.states[entry]
            for pair in sides:
                left, right = (EntryIs(name, tuple(states[v] for v in side)) for side in pair)
                pairs.append(SecretPair(left, right))
        return tuple(pairs)

    @cached_property
    def _spreads(self) -> tuple[Floats, Integers]:
        """The ranges of all tables for each pair of own values, and where those of each begin."""
        parts = [log_ranges(table).ravel() for table in self._contacts.tables]
        starts = np.cumsum([0, *map(len, parts)])
        return np.concatenate([*parts, np.zeros(0)]), starts

    def losses(
        self, epsilon: EntrySpending, *, depth: int = WALK_DEPTH, visits: int = WALK_VISITS
    ) -> NetworkLosses:
        """Bound the loss of all secrets.

        Every entry gets the non-backtracking bound. From the entries with the largest,
        self-avoiding walks of up to ``depth`` steps, ``visits`` visits in all, are followed; what
        lies behind is bounded as before.
        """
        from takifugu.translation.certify import field_loops

        contacts = self._contacts
        costs = cost_matrices(self.model.entries, self.model.states, epsilon)
        largest = np.array(largest_costs(costs))
        whole = profile_group_loss(largest.tolist())
        behind = contacts.behind(largest, whole)
        spreads, offsets = self._spreads

        def losses(entry: int, inner: Floats) -> list[float]:
            """The bounds of the pairs of one entry, given bounds behind each of its contacts."""
            total = np.array(costs[entry])
            first, last = contacts.start[entry : entry + 2]
            field_loops.summed(
                *(first, last, offsets, contacts.near, spreads, largest, inner, total)
            )
            return [
                min(whole, float(total[np.ix_(left, right)].max()))
                for left, right in self._sides[entry]
            ]

        upper = {v: losses(v, behind[slice(*contacts.start[v : v + 2])]) for v in self._sides}
        worst = sorted(upper, key=lambda v: -max(upper[v]))[:MAX_WALK_STARTS]
        done = 0.0
        for v in worst if depth > 0 else ():
            if max(upper[v]) <= done:
                break  # the largest loss is that of an entry whose walks were followed
            inner = contacts.walked(v, depth, visits // MAX_WALK_STARTS, largest, behind)
            upper[v] = np.minimum(upper[v], losses(v, inner)).tolist()
            done = max(done, *upper[v])
        by_entry = np.full(len(largest), -np.inf)
        by_entry[list(upper)] = [max(values) for values in upper.values()]
        values = [value for listed in upper.values() for value in listed]
        return NetworkLosses(
            self.model.entries, frozen(largest), self._pairs, frozen(values), frozen(by_entry)
        )


def walk_losses(
    model: FactorModel,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    depth: int = WALK_DEPTH,
    visits: int = WALK_VISITS,
) -> NetworkLosses:
    """Bound the loss of all secrets of a pairwise field, in time linear in its size.

    See `PairwiseWalks`, which reads the field once for many spendings.
    """
    return PairwiseWalks(model, secrets).losses(epsilon, depth=depth, visits=visits)
