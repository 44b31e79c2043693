"""Losses of random fields: attractive ones in closed form or by pinning, others by walks.

The bounds themselves are `takifugu.translation.certify.fields`; here it is decided how far to look.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from takifugu._core.numeric import Floats, Integers, frozen
from takifugu.errors import TooLarge
from takifugu.influence.network.attractive_curves import check_attractive
from takifugu.priors.networks import NetworkPrior, Sides, secret_sides
from takifugu.priors.secrets import Secrets
from takifugu.translation.certify.closed import profile_group_loss
from takifugu.translation.certify.fields import (
    Contacts,
    PairwiseField,
    RisingField,
    check_pairwise,
    contacts_of,
    counted_losses,
    pairwise_field,
)
from takifugu.translation.certify.tables import ROUNDED_UP, attainable_cost
from takifugu.translation.entry_costs import EntryCosts, EntrySpending, cost_matrices, largest_costs
from takifugu.translation.models.tree import JunctionTree, NetworkLosses
from takifugu.translation.search.junction import junction_tree

MAX_CLIQUE_STATES = 2**20  # that can be summed over
MAX_VISITS = 400_000  # entries that pinning visits before it stops
VISITS_PER_ENTRY = 1000  # the same for each entry, where that is more
ROUGH_VISITS = 20_000  # of a guess
MAX_COSTS_TRIED = 4  # of several costs: mechanisms with the largest
MAX_PAIRS_GUESSED = 2  # that a guess is made for
CLOSE_BOUNDS = 0.01  # a gap of this share of the loss is narrow enough
FINER = 4.0  # by what the tolerance falls from round to round
FINEST = 2.0**-53  # of the first tolerance: what is left out below it is less than the rounding
WALK_DEPTH = 12  # steps of a self-avoiding walk
WALK_VISITS = 1_600_000  # entries that all walks together visit
MAX_WALK_STARTS = 16  # entries from which walks start: those with the largest losses


class AttractiveModel:
    """An attractive model and its secrets, read once: losses of any spending.

    A model that is not attractive is refused (`UnsoundRequest`). If a clique of its junction tree
    has more than ``largest`` states, or the weights leave float64, bounds are found by pinning.
    """

    def __init__(
        self,
        model: NetworkPrior,
        secrets: Secrets | None = None,
        *,
        largest: int = MAX_CLIQUE_STATES,
    ) -> None:
        check_attractive(model)
        self.model, self._factors = model, model.factors()
        self._sides = secret_sides(model, secrets or Secrets())
        self._chosen = list(self._sides)
        self._places = [  # of each pair: its way, and which of the chosen
            (0 if left == (1,) else 1, k)
            for k, pairs in enumerate(self._sides.values())
            for left, _ in pairs
        ]
        self.tree: JunctionTree | None = None
        with suppress(TooLarge):
            self.tree = junction_tree(model, largest=largest)

    @cached_property
    def _field(self) -> PairwiseField:
        return pairwise_field(self.model)

    def losses(self, epsilon: EntrySpending, *, visits: int | None = None) -> NetworkLosses:
        """The worst loss of all secrets when entry j was queried with ε_j.

        Bounds by pinning get closer with ``visits``.
        """
        costs = cost_matrices(self.model.entries, self.model.states, epsilon)
        by_way = _by_way(costs)
        enough = max(MAX_VISITS, VISITS_PER_ENTRY * len(self._chosen)) if visits is None else visits
        lower, upper, summed = self._both(by_way, enough)
        if isinstance(epsilon, EntryCosts):
            lower = self._attained(epsilon, by_way, lower, enough)
        most = np.array([[profile_group_loss(part.tolist())] for part in by_way])
        greatest = np.fmin(most, upper)
        least = np.maximum(np.minimum(np.nan_to_num(lower), greatest), 0.0)
        bounds: dict[int, list[float]] = {entry: [] for entry in self._chosen}
        for way, k in self._places:
            bounds[self._chosen[k]].append(float(greatest[way, k]))
        losses = NetworkLosses.from_bounds(self.model, largest_costs(costs), self._sides, bounds)
        attained = np.array([least[place] for place in self._places], dtype=np.float64)
        return replace(losses, lower=frozen(attained), summed=summed)

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


def narrow(fields: Sequence[RisingField], *, visits: int, close: float = CLOSE_BOUNDS) -> None:
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

    def __init__(self, model: NetworkPrior, secrets: Secrets | None = None) -> None:
        check_pairwise(model)
        self.model, self._protected = model, secrets or Secrets()

    @cached_property
    def _contacts(self) -> Contacts:
        return contacts_of(self.model)

    @cached_property
    def _sides(self) -> dict[int, Sides]:
        return secret_sides(self.model, self._protected)

    @cached_property
    def _spreads(self) -> tuple[Floats, Integers]:
        """The ranges of all tables for each pair of own values, and where those of each begin."""
        parts = [ranges.ravel() for ranges in self._contacts.ranges]
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
        return NetworkLosses.from_bounds(self.model, frozen(largest), self._sides, upper)
