"""The transport bound of Bayesian networks and random fields."""

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice

import numpy as np

from takifugu._core.numeric import Floats, frozen
from takifugu.errors import TooLarge, UnsoundRequest
from takifugu.priors.networks import BayesianNetwork, MarkovRandomField, NetworkPrior, secret_sides
from takifugu.priors.secrets import EntryIs, Secrets
from takifugu.translation.accounting.largest_epsilon import largest_within
from takifugu.translation.bounds import Bound, LooserTranslation, TransportBound, Witness, of_pair
from takifugu.translation.certify import messages
from takifugu.translation.entry_costs import EntryCosts, EntrySpending, cost_matrices, largest_costs
from takifugu.translation.models.tree import NetworkLosses, Tree
from takifugu.translation.search.fields import AttractiveModel, PairwiseWalks
from takifugu.translation.search.junction import (
    CouplingSearch,
    proposed_trees,
)
from takifugu.translation.search.products import best_witness

Model = BayesianNetwork | MarkovRandomField
MAX_CLIQUE_STATES = 2**22  # possible or not
APART = 0.1  # relative: bounds that are further apart are said to be
CLOSE_ENOUGH = 0.01  # bounds this close to each other are not improved by another method


def network_losses(
    model: NetworkPrior,
    epsilon: EntrySpending,
    secrets: Secrets | None = None,
    *,
    together: Mapping[tuple[int, ...], float] | None = None,
    largest: int = MAX_CLIQUE_STATES,
    at_once: int | None = None,
) -> NetworkLosses:
    """Bound the loss of all secrets of ``model`` when entry j was queried with ε_j in total.

    ``epsilon`` is one number, or one for each entry, or costs, value by value. ``together`` has,
    for groups of entries by number, an ε that any change of a group costs beside, however many of
    its entries change. A model whose junction tree has a clique of more than ``largest`` states is
    refused (`TooLarge`). With ``at_once`` as many states are
    coupled at once in the last step, those that cost the same merged: for models of few datasets.
    """
    costs = cost_matrices(model.entries, model.states, epsilon)
    problem = Tree.from_model(model, costs, together)
    sides = secret_sides(model, secrets or Secrets())
    bounds: dict[int, Floats] = {}
    trees = proposed_trees(model, largest=largest, together=tuple(problem.together))
    for tree in trees if at_once is None else islice(trees, 1):
        search = CouplingSearch(tree)
        if at_once is not None:
            search = CouplingSearch(tree, at_once=at_once, merges=True)
        try:
            proven = messages.upper(problem, search, sides)
        except TooLarge:
            if not bounds:  # the plain tree comes first; weights of merged cliques span more
                raise
            continue
        bounds = {v: np.minimum(bounds.get(v, np.inf), proven[v]) for v in sides}
    return NetworkLosses.from_bounds(model, largest_costs(costs), sides, bounds)


class NetworkTransport(TransportBound):
    """Attractive fields in closed form or by pinning, other models along a junction tree.

    Pairwise fields of any size are bounded by walks as well, and the least bound of each pair
    is kept. A model that is too wide for a junction tree and no pairwise field is refused with
    `TooLarge`. Where sums are given up and the bounds from both sides do not meet, a warning says
    so (`LooserTranslation`).
    """

    def __init__(self, model: Model, secrets: Secrets) -> None:
        self._model, self._secrets = model, secrets
        self._attractive: AttractiveModel | None = None
        self._walks: PairwiseWalks | None = None
        with suppress(UnsoundRequest):
            self._attractive = AttractiveModel(model, secrets)
        with suppress(TooLarge):
            self._walks = PairwiseWalks(model, secrets)
        self._known: tuple[object, NetworkLosses] | None = None
        self._narrow = True
        self._wide = False
        self.uniform(0.0)  # an error now rather than later
        if not self._narrow:
            self._say(
                f"{model.name!r} is too densely connected for a junction tree, and not all its"
                " tables favour agreement; it is bounded by walks along its contacts. Exact sums"
                " were given up: the loss is an upper bound, and how far above the true one is not"
                " known"
            )

    @property
    def size(self) -> int | None:
        """How many entries there are."""
        return len(self._model.entries)

    def uniform(self, epsilon: float) -> Bound:
        """The loss when every entry is charged ``epsilon``."""
        return self.profile(np.full(len(self._model.entries), epsilon))

    def profile(self, epsilon: Floats) -> Bound:
        """The loss when entry i is charged ``epsilon[i]``."""
        return self._bound(epsilon)

    def valued(self, costs: EntryCosts) -> Bound:
        """The loss if every entry has lost what ``costs`` says, value by value.

        Groups of values are coupled by their laws given either group, as any other states are.
        """
        return self._bound(costs)

    def largest(self, target: float) -> float:
        """The largest constant ε whose loss is at most ``target``.

        Where a bound takes long, guesses say where to look for it.
        """
        guess = None
        if self._attractive is not None and 0 < target < np.inf:
            guess = self._attractive.estimate(target / 4)
        if guess is None:
            return largest_within(lambda e: self.uniform(e).value, target)
        estimate = guess
        first = largest_within(estimate, target)
        return largest_within(
            lambda e: self.uniform(e).value,
            target,
            first=first or None,
            nearby=lambda _: estimate,
        )

    def witness(self, epsilon: float | Floats, bound: Bound) -> Witness:  # noqa: ARG002
        """Randomised response on every entry; in attractive fields it counts."""
        spent = np.broadcast_to(np.asarray(epsilon, dtype=np.float64), len(self._model.entries))
        return self._witness(np.array(spent))

    def valued_witness(self, costs: EntryCosts, bound: Bound) -> Witness:  # noqa: ARG002
        """A product of functions of single entries with these costs."""
        return self._witness(costs)

    def _witness(self, spent: Floats | EntryCosts) -> Witness:
        losses = self._losses(spent)
        if losses.binding is None:
            return Witness(0.0, None)
        if self._attractive is not None:
            pair = losses.pairs[int(np.argmax(losses.lower))]
            return Witness(losses.attained, of_pair(pair), self._model.entries)
        shown = best_witness(self._model, spent, losses.pairs, losses.upper.tolist())
        factors = None
        if len({len(part) for part in shown.factors}) == 1:
            factors = frozen(np.stack(shown.factors))
        return Witness(shown.lower, of_pair(shown.pair), self._model.entries, factors)

    def _bound(self, spent: Floats | EntryCosts) -> Bound:
        losses = self._losses(spent)
        binding = None if losses.binding is None else of_pair(losses.binding)
        return Bound(losses.loss, binding, frozen(np.maximum(losses.by_entry, 0.0)))

    def _losses(self, spent: Floats | EntryCosts) -> NetworkLosses:
        """By the methods that apply; the last result is kept, since a witness follows a bound."""
        key = spent if isinstance(spent, EntryCosts) else spent.tobytes()
        if self._known is None or self._known[0] != key:
            self._known = key, self._computed(spent)
        return self._known[1]

    def _computed(self, spent: Floats | EntryCosts) -> NetworkLosses:
        if self._attractive is not None:
            losses = self._attractive.losses(spent)
            if self._walks is None or losses.loss <= (1 + CLOSE_ENOUGH) * losses.attained:
                return losses
            losses = self._least(losses, self._walks.losses(spent))
            apart = losses.loss > (1 + APART) * losses.attained
            if apart and not losses.summed and not self._wide:
                self._wide = True
                self._say(
                    f"contacts of {self._model.name!r} are so many and so strong that its bounds"
                    " do not meet. Exact sums were given up, and so was the search along contacts,"
                    f" which was cut off: the loss is an upper bound, more than {APART:.0%} above"
                    " what a noisy count is known to leak"
                )
            return losses
        walks = self._walks
        if walks is None:
            return network_losses(self._model, spent, self._secrets)
        if self._narrow:
            with suppress(TooLarge):
                along_tree = network_losses(self._model, spent, self._secrets)
                return self._least(along_tree, walks.losses(spent))
            self._narrow = False
        return walks.losses(spent)

    @staticmethod
    def _say(what: str) -> None:
        warnings.warn(f"a looser bound is used: {what}", LooserTranslation, stacklevel=2)

    def _least(self, losses: NetworkLosses, other: NetworkLosses) -> NetworkLosses:
        """The lesser bound of each pair."""
        known = dict(zip(other.pairs, other.upper.tolist(), strict=True))
        upper = np.minimum(losses.upper, [known.get(pair, np.inf) for pair in losses.pairs])
        by_entry = np.full(len(losses.entries), -np.inf)
        place = {name: k for k, name in enumerate(losses.entries)}
        for pair, value in zip(losses.pairs, upper, strict=True):
            if isinstance(pair.left, EntryIs):
                at = place[pair.left.entry]
                by_entry[at] = max(by_entry[at], value)
        return replace(losses, upper=frozen(upper), by_entry=frozen(by_entry))
